//! What the tables of this crate say of a message, as data.

use std::collections::BTreeMap;

use crate::{Json, Metadata, Timestamp};

/// The type of one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Double,
    Int64,
    Int32,
    Bool,
    Text,
    Bytes,
    /// By its full name, with a leading dot.
    Message(&'static str),
    Enum(&'static str),
}

/// How many values a field has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Label {
    /// One. Zero is as good as unset, except for messages.
    One,
    /// One or none, and zero is not none.
    Optional,
    /// One or none, and none if another member of the message's choice is set.
    Choice,
    Repeated,
    /// One per text.
    Map,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) json: &'static str,
    pub(crate) number: u32,
    pub(crate) kind: Kind,
    pub(crate) label: Label,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// The name of the choice that the fields labelled [`Label::Choice`] belong to.
    pub(crate) choice: Option<&'static str>,
    pub(crate) fields: &'static [Field],
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Names {
    pub(crate) name: &'static str,
    pub(crate) values: &'static [(&'static str, i32)],
}

/// A message with a table.
pub(crate) trait Described {
    const TABLE: Table;
}

/// One value of a known type.
pub(crate) trait Typed {
    const KIND: Kind;
}

/// A field's type.
pub(crate) trait Declared {
    const KIND: Kind;
    const LABEL: Label;
}

macro_rules! typed {
    ($($type:ty: $kind:expr;)*) => {$(
        impl Typed for $type {
            const KIND: Kind = $kind;
        }
    )*};
}

typed! {
    String: Kind::Text;
    bool: Kind::Bool;
    i32: Kind::Int32;
    Timestamp: Kind::Message(".google.protobuf.Timestamp");
    Metadata: Kind::Message(".google.protobuf.Struct");
    Json: Kind::Message(".google.protobuf.Value");
}

impl<T: Typed> Declared for T {
    const KIND: Kind = T::KIND;
    const LABEL: Label = Label::One;
}

impl<T: Typed> Declared for Option<T> {
    const KIND: Kind = T::KIND;
    // A message has presence anyway.
    const LABEL: Label = match T::KIND {
        Kind::Message(_) => Label::One,
        _ => Label::Optional,
    };
}

impl<T: Typed> Declared for Vec<T> {
    const KIND: Kind = T::KIND;
    const LABEL: Label = Label::Repeated;
}

impl<T: Typed> Declared for BTreeMap<String, T> {
    const KIND: Kind = T::KIND;
    const LABEL: Label = Label::Map;
}

impl Described for crate::Part {
    const TABLE: Table = {
        const fn content(name: &'static str, number: u32, kind: Kind) -> Field {
            Field {
                name,
                json: name,
                number,
                kind,
                label: Label::Choice,
            }
        }
        const fn field(name: &'static str, json: &'static str, number: u32, kind: Kind) -> Field {
            Field {
                name,
                json,
                number,
                kind,
                label: Label::One,
            }
        }
        Table {
            name: "Part",
            choice: Some("content"),
            fields: &[
                content("text", 1, Kind::Text),
                content("raw", 2, Kind::Bytes),
                content("url", 3, Kind::Text),
                content("data", 4, <Json as Typed>::KIND),
                field("metadata", "metadata", 5, <Metadata as Typed>::KIND),
                field("filename", "filename", 6, Kind::Text),
                field("media_type", "mediaType", 7, Kind::Text),
            ],
        }
    };
}

impl Typed for crate::Part {
    const KIND: Kind = Kind::Message(".lf.a2a.v1.Part");
}
