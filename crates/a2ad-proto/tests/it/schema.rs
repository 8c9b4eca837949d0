//! The descriptors say what the encoding does.

use std::collections::{BTreeMap, BTreeSet};

use a2ad_proto::{pb, to_json};
use proptest::prelude::*;
use prost::Message as _;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FileDescriptorProto, FileDescriptorSet};
use serde_json::Value;

use super::arbitrary as any;

fn files() -> Vec<FileDescriptorProto> {
    FileDescriptorSet::decode(&*pb::descriptor_set())
        .unwrap()
        .file
}

/// Every message by its full name, entries of maps included.
fn messages() -> BTreeMap<String, DescriptorProto> {
    let mut all = BTreeMap::new();
    for file in files() {
        let package = file.package.unwrap();
        for message in file.message_type {
            let name = format!(".{package}.{}", message.name());
            for entry in &message.nested_type {
                all.insert(format!("{name}.{}", entry.name()), entry.clone());
            }
            all.insert(name, message);
        }
    }
    all
}

#[test]
fn grpc_01_the_service_has_its_eleven_methods() {
    let files = files();
    let file = files.last().unwrap();
    let service = &file.service[0];
    assert_eq!(
        format!("{}.{}", file.package(), service.name()),
        pb::SERVICE
    );
    assert_eq!(service.method.len(), 11);
    let streams: Vec<_> = service
        .method
        .iter()
        .filter(|method| method.server_streaming())
        .map(|method| method.name())
        .collect();
    assert_eq!(streams, ["SendStreamingMessage", "SubscribeToTask"]);
    let create = &service.method[6];
    assert_eq!(create.input_type(), create.output_type());
    let delete = service.method.last().unwrap();
    assert_eq!(delete.output_type(), ".google.protobuf.Empty");
    for needed in &file.dependency {
        assert!(files.iter().any(|file| file.name() == needed), "{needed}");
    }
}

/// Whatever a method leads to is described, and nothing else is.
#[test]
fn the_description_is_whole() {
    let messages = messages();
    let enums: BTreeSet<String> = files()
        .iter()
        .flat_map(|file| {
            let package = file.package().to_owned();
            let names = file.enum_type.iter().map(|it| it.name().to_owned());
            names.map(move |name| format!(".{package}.{name}"))
        })
        .collect();
    let service = files().pop().unwrap().service.remove(0);
    let mut waiting: Vec<String> = service
        .method
        .iter()
        .flat_map(|method| {
            [
                method.input_type().to_owned(),
                method.output_type().to_owned(),
            ]
        })
        .collect();
    let mut seen = BTreeSet::new();
    while let Some(name) = waiting.pop() {
        let message = messages.get(&name).unwrap_or_else(|| panic!("no {name}"));
        for field in &message.field {
            match field.r#type() {
                Type::Message if !seen.contains(field.type_name()) => {
                    waiting.push(field.type_name().to_owned());
                }
                Type::Enum => assert!(enums.contains(field.type_name())),
                _ => {}
            }
        }
        seen.insert(name);
    }
    let all: BTreeSet<String> = messages.into_keys().collect();
    assert_eq!(seen, all);
}

/// As protoc has it: a field of explicit presence is alone in a choice of its own, behind the real ones.
#[test]
fn presence_and_choices_are_told() {
    let messages = messages();
    let list = &messages[".lf.a2a.v1.ListTasksRequest"];
    let choices: Vec<_> = list.oneof_decl.iter().map(|it| it.name()).collect();
    assert_eq!(
        choices,
        ["_page_size", "_history_length", "_include_artifacts"]
    );
    let optional: Vec<_> = list
        .field
        .iter()
        .filter(|field| field.proto3_optional())
        .map(|field| (field.name(), field.oneof_index))
        .collect();
    let expected = [
        ("page_size", Some(0)),
        ("history_length", Some(1)),
        ("include_artifacts", Some(2)),
    ];
    assert_eq!(optional, expected);

    let part = &messages[".lf.a2a.v1.Part"];
    let chosen: Vec<_> = part.field.iter().map(|field| field.oneof_index).collect();
    let content = Some(0);
    assert_eq!(
        chosen,
        [content, content, content, content, None, None, None]
    );
    assert_eq!(part.oneof_decl[0].name(), "content");

    let card = &messages[".lf.a2a.v1.AgentCard"];
    let schemes = &card.field[7];
    assert_eq!(schemes.label(), Label::Repeated);
    let entry = &messages[schemes.type_name()];
    assert_eq!(entry.name(), "SecuritySchemesEntry");
    assert!(entry.options.as_ref().unwrap().map_entry());
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            break;
        }
    }
    number
}

fn wire_type(kind: Type) -> u64 {
    match kind {
        Type::Double => 1,
        Type::Int32 | Type::Int64 | Type::Bool | Type::Enum => 0,
        Type::String | Type::Bytes | Type::Message => 2,
        other => panic!("{other:?}"),
    }
}

/// Reads `bytes` by the descriptors alone. Every field must be described, with the type it has on the wire and the
/// name it has in JSON.
fn walk(
    all: &BTreeMap<String, DescriptorProto>,
    name: &str,
    mut bytes: &[u8],
    json: Option<&Value>,
) {
    let message = &all[name];
    let mut count = BTreeMap::<i32, usize>::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let number = i32::try_from(key >> 3).unwrap();
        let field = message.field.iter().find(|field| field.number() == number);
        let field = field.unwrap_or_else(|| panic!("{name} has no field {number}"));
        assert_eq!(key & 7, wire_type(field.r#type()), "{name}.{number}");
        let nth = count.entry(number).or_default();
        let json = json.map(|json| {
            let found = json.get(field.json_name());
            found.unwrap_or_else(|| panic!("{name}.{} is not in the JSON", field.name()))
        });
        let value = match key & 7 {
            0 => {
                varint(&mut bytes);
                continue;
            }
            1 => bytes.split_off(..8).unwrap(),
            _ => {
                let length = usize::try_from(varint(&mut bytes)).unwrap();
                bytes.split_off(..length).unwrap()
            }
        };
        if field.r#type() != Type::Message {
            continue;
        }
        let of = field.type_name();
        // Struct, Value and Timestamp have JSON of their own, and maps are no lists.
        let plain = !of.starts_with(".google.") && !of.ends_with("Entry");
        let json = json.filter(|_| plain);
        match field.label() {
            Label::Repeated => walk(all, of, value, json.map(|json| &json[*nth])),
            _ => walk(all, of, value, json),
        }
        *nth += 1;
    }
}

fn check<T: pb::Message + serde::Serialize>(
    all: &BTreeMap<String, DescriptorProto>,
    name: &str,
    value: &T,
) {
    let json: Value = serde_json::from_slice(&to_json(value)).unwrap();
    walk(all, name, &value.encode_to_vec(), Some(&json));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_is_written_is_as_described(
        event in any::stream_response(),
        send in any::send_request(),
        list in any::list_request(),
        page in any::list_response(),
        push in any::push_config(),
        card in any::card(),
    ) {
        let all = messages();
        check(&all, ".lf.a2a.v1.StreamResponse", &event);
        check(&all, ".lf.a2a.v1.SendMessageRequest", &send);
        check(&all, ".lf.a2a.v1.ListTasksRequest", &list);
        check(&all, ".lf.a2a.v1.ListTasksResponse", &page);
        check(&all, ".lf.a2a.v1.TaskPushNotificationConfig", &push);
        check(&all, ".lf.a2a.v1.AgentCard", &card);
    }
}
