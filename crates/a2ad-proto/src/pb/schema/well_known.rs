//! The messages of `google.protobuf` that the schema uses.

use super::{Field, File, Kind, Label, Names, Table};

const fn field(
    name: &'static str,
    json: &'static str,
    number: u32,
    kind: Kind,
    label: Label,
) -> Field {
    Field {
        name,
        json,
        number,
        kind,
        label,
    }
}

const fn file(name: &'static str, messages: &'static [Table], enums: &'static [Names]) -> File {
    File {
        name,
        package: "google.protobuf",
        needs: &[],
        messages,
        enums,
        service: None,
    }
}

pub(super) const EMPTY: File = file(
    "google/protobuf/empty.proto",
    &[Table {
        name: "Empty",
        choice: None,
        fields: &[],
    }],
    &[],
);

pub(super) const TIMESTAMP: File = file(
    "google/protobuf/timestamp.proto",
    &[Table {
        name: "Timestamp",
        choice: None,
        fields: &[
            field("seconds", "seconds", 1, Kind::Int64, Label::One),
            field("nanos", "nanos", 2, Kind::Int32, Label::One),
        ],
    }],
    &[],
);

const VALUE: Kind = Kind::Message(".google.protobuf.Value");

pub(super) const STRUCT: File = file(
    "google/protobuf/struct.proto",
    &[
        Table {
            name: "Struct",
            choice: None,
            fields: &[field("fields", "fields", 1, VALUE, Label::Map)],
        },
        Table {
            name: "Value",
            choice: Some("kind"),
            fields: &[
                field(
                    "null_value",
                    "nullValue",
                    1,
                    Kind::Enum(".google.protobuf.NullValue"),
                    Label::Choice,
                ),
                field(
                    "number_value",
                    "numberValue",
                    2,
                    Kind::Double,
                    Label::Choice,
                ),
                field("string_value", "stringValue", 3, Kind::Text, Label::Choice),
                field("bool_value", "boolValue", 4, Kind::Bool, Label::Choice),
                field(
                    "struct_value",
                    "structValue",
                    5,
                    Kind::Message(".google.protobuf.Struct"),
                    Label::Choice,
                ),
                field(
                    "list_value",
                    "listValue",
                    6,
                    Kind::Message(".google.protobuf.ListValue"),
                    Label::Choice,
                ),
            ],
        },
        Table {
            name: "ListValue",
            choice: None,
            fields: &[field("values", "values", 1, VALUE, Label::Repeated)],
        },
    ],
    &[Names {
        name: "NullValue",
        values: &[("NULL_VALUE", 0)],
    }],
);
