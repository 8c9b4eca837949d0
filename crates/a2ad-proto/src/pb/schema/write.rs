//! Tables as the messages of `descriptor.proto`. The numbers are its field numbers.

use super::{Field, File, Kind, Label, Names, Service, Table};
use crate::pb::nested;
use crate::pb::wire::{put_bytes, put_number};

pub(crate) fn set(files: &[File]) -> Vec<u8> {
    let mut out = Vec::new();
    for each in files {
        nested(&mut out, 1, |out| file(each, out));
    }
    out
}

fn text(out: &mut Vec<u8>, field: u32, text: &str) {
    put_bytes(out, field, text.as_bytes());
}

fn file(file: &File, out: &mut Vec<u8>) {
    text(out, 1, file.name);
    text(out, 2, file.package);
    for needed in file.needs {
        text(out, 3, needed);
    }
    for each in file.messages {
        nested(out, 4, |out| message(file.package, each, out));
    }
    for each in file.enums {
        nested(out, 5, |out| names(each, out));
    }
    if let Some(it) = &file.service {
        nested(out, 6, |out| service(it, out));
    }
    text(out, 12, "proto3");
}

fn message(package: &str, table: &Table, out: &mut Vec<u8>) {
    text(out, 1, table.name);
    // The choice comes first; behind it, every optional field is alone in a choice of its own.
    let mut choices: Vec<String> = table.choice.map(str::to_owned).into_iter().collect();
    for each in table.fields {
        let choice = match each.label {
            Label::Choice => Some(0),
            Label::Optional => {
                choices.push(format!("_{}", each.name));
                Some(choices.len() - 1)
            }
            Label::One | Label::Repeated | Label::Map => None,
        };
        nested(out, 2, |out| field(package, table, each, choice, out));
    }
    for each in table.fields.iter().filter(|each| each.label == Label::Map) {
        nested(out, 3, |out| entry(each, out));
    }
    for name in &choices {
        nested(out, 8, |out| text(out, 1, name));
    }
}

fn field(package: &str, table: &Table, field: &Field, choice: Option<usize>, out: &mut Vec<u8>) {
    let Field {
        name, json, number, ..
    } = *field;
    let repeated = matches!(field.label, Label::Repeated | Label::Map);
    if field.label == Label::Map {
        let of = format!(".{package}.{}.{}", table.name, entry_name(field));
        value(name, number, repeated, (MESSAGE, Some(&of)), out);
    } else {
        value(name, number, repeated, field.kind.code(), out);
    }
    if let Some(choice) = choice {
        put_number(out, 9, choice as u64);
    }
    text(out, 10, json);
    if field.label == Label::Optional {
        put_number(out, 17, 1);
    }
}

/// A map is a list of such messages.
fn entry(field: &Field, out: &mut Vec<u8>) {
    text(out, 1, &entry_name(field));
    let members = [("key", 1, Kind::Text), ("value", 2, field.kind)];
    for (name, number, kind) in members {
        nested(out, 2, |out| {
            value(name, number, false, kind.code(), out);
            text(out, 10, name);
        });
    }
    nested(out, 7, |out| put_number(out, 7, 1));
}

fn entry_name(field: &Field) -> String {
    let mut name = String::new();
    for word in field.name.split('_') {
        let (first, rest) = word.split_at(word.len().min(1));
        name.push_str(&first.to_ascii_uppercase());
        name.push_str(rest);
    }
    name + "Entry"
}

fn value(
    name: &str,
    number: u32,
    repeated: bool,
    (code, of): (u64, Option<&str>),
    out: &mut Vec<u8>,
) {
    text(out, 1, name);
    put_number(out, 3, number.into());
    put_number(out, 4, if repeated { 3 } else { 1 });
    put_number(out, 5, code);
    if let Some(of) = of {
        text(out, 6, of);
    }
}

const MESSAGE: u64 = 11;

impl Kind {
    /// Its number, and its name where the number does not say it all.
    fn code(self) -> (u64, Option<&'static str>) {
        match self {
            Self::Double => (1, None),
            Self::Int64 => (3, None),
            Self::Int32 => (5, None),
            Self::Bool => (8, None),
            Self::Text => (9, None),
            Self::Message(name) => (MESSAGE, Some(name)),
            Self::Bytes => (12, None),
            Self::Enum(name) => (14, Some(name)),
        }
    }
}

fn names(names: &Names, out: &mut Vec<u8>) {
    text(out, 1, names.name);
    for (name, number) in names.values {
        nested(out, 2, |out| {
            text(out, 1, name);
            put_number(out, 2, i64::from(*number) as u64);
        });
    }
}

fn service(service: &Service, out: &mut Vec<u8>) {
    text(out, 1, service.name);
    for method in service.methods {
        nested(out, 2, |out| {
            text(out, 1, method.name);
            for (number, kind) in [(2, method.takes), (3, method.gives)] {
                text(out, number, kind.code().1.unwrap_or_default());
            }
            if method.streams {
                put_number(out, 6, 1);
            }
        });
    }
}
