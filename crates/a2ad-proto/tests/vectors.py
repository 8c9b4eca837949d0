"""Writes tests/it/vectors.tsv: every message of lf.a2a.v1 with every field set. The same for a2a.v1, and its fields.

    pip install a2a-sdk && python tests/vectors.py > tests/it/vectors.tsv
    pip install 'a2a-sdk[grpc]==0.3.26' && python tests/vectors.py > tests/it/v03/vectors.tsv
    python tests/vectors.py fields > tests/it/v03/fields.tsv

Walks the official descriptors, so it knows nothing of our tables. Maps and free objects get one member each, because
the order of several is nobody's promise.
"""

import json
import sys

try:
    from a2a.types import a2a_pb2
except ImportError:
    from a2a.grpc import a2a_pb2
from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor as Field

count = 0


def scalar(field):
    """A value unlike its neighbours', so that swapped fields show."""
    global count
    count += 1
    if field.type == Field.TYPE_STRING:
        return f"{field.name[0]}{count}"
    if field.type == Field.TYPE_BYTES:
        return bytes([count % 256, 255, 0])
    if field.type == Field.TYPE_BOOL:
        return True
    if field.type == Field.TYPE_INT32:
        return -count if count % 2 else count * 1000
    if field.type == Field.TYPE_ENUM:
        values = field.enum_type.values
        return values[1 + count % (len(values) - 1)].number
    raise ValueError(field.full_name)


def choices(descriptor):
    return [oneof for oneof in descriptor.oneofs if len(oneof.fields) > 1]


def fill(message, depth, pick):
    """Sets every field; of a choice, the member number `pick`."""
    descriptor = message.DESCRIPTOR
    if descriptor.full_name == "google.protobuf.Struct":
        message.update({f"k{count}": [1, -2.5, None, True, 'é"\n', {"x": {}}]})
        return
    if descriptor.full_name == "google.protobuf.Value":
        json_format.ParseDict({"v": [0.5, 12345678901]}, message)
        return
    if descriptor.full_name == "google.protobuf.Timestamp":
        message.seconds, message.nanos = 1769850000 + count, 125000000
        return
    for field in descriptor.fields:
        oneof = field.containing_oneof
        if oneof in choices(descriptor) and oneof.fields[pick % len(oneof.fields)] != field:
            continue
        value = getattr(message, field.name)
        if field.message_type and field.message_type.GetOptions().map_entry:
            of = field.message_type.fields_by_name["value"]
            if of.message_type:
                fill(value[f"key{depth}"], depth + 1, pick)
            else:
                value[f"key{depth}"] = scalar(of)
        elif field.is_repeated:
            for i in range(2):
                if field.message_type:
                    fill(value.add(), depth + 1, pick + i)
                else:
                    value.append(scalar(field))
        elif field.message_type:
            value.SetInParent()
            fill(value, depth + 1, pick)
        else:
            setattr(message, field.name, scalar(field))


def fields():
    """Every field with its number, JSON name, type, whether it repeats, its choice and what it is made of."""
    for name, descriptor in sorted(a2a_pb2.DESCRIPTOR.message_types_by_name.items()):
        for field in sorted(descriptor.fields, key=lambda field: field.number):
            of = field.message_type or field.enum_type
            choice = field.containing_oneof
            print(name, field.name, field.number, field.json_name, field.type, int(field.is_repeated),
                  choice.name if choice else "", of.full_name if of else "", sep="\t")
    for name, enum in sorted(a2a_pb2.DESCRIPTOR.enum_types_by_name.items()):
        for value in enum.values:
            print(name, value.name, value.number, sep="\t")
    for service in a2a_pb2.DESCRIPTOR.services_by_name.values():
        for method in service.methods:
            print(service.full_name, method.name, method.input_type.full_name, method.output_type.full_name,
                  int(method.server_streaming), sep="\t")


if "fields" in sys.argv:
    fields()
    sys.exit()

for name, descriptor in sorted(a2a_pb2.DESCRIPTOR.message_types_by_name.items()):
    for pick in range(max([len(oneof.fields) for oneof in choices(descriptor)] or [1])):
        count = 0
        message = getattr(a2a_pb2, name)()
        fill(message, 0, pick)
        text = json.dumps(json_format.MessageToDict(message), ensure_ascii=False, separators=(",", ":"))
        print(name, text, message.SerializeToString(deterministic=True).hex(), sep="\t")
