//! Writes values as compact JSON, several times faster than `serde_json` and byte for byte the same.
//!
//! Every event is written once and every answer again, and most of what they hold is short names and ids: here they
//! are looked at eight bytes at a time instead of one by one.

use std::fmt;

use serde::Serialize;
use serde::ser::{self, Impossible};

/// The name under which `serde_json` passes text that is JSON already.
const RAW: &str = "$serde_json::private::RawValue";

/// Adds `value` as compact JSON to `out`.
pub fn write_json<T: Serialize + ?Sized>(value: &T, out: &mut Vec<u8>) {
    let from = out.len();
    if value.serialize(Writer::new(out)).is_ok() {
        return;
    }
    // Something that our types do not have and this writer does not know.
    out.truncate(from);
    if serde_json::to_writer(&mut *out, value).is_err() {
        // A map whose keys are no strings: there is no JSON for it.
        out.truncate(from);
    }
}

/// A value as compact JSON.
#[must_use]
pub fn to_json<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    write_json(value, &mut out);
    out
}

/// Left to `serde_json`.
#[derive(Debug)]
struct Unknown;

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not written here")
    }
}

impl std::error::Error for Unknown {}

impl ser::Error for Unknown {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

struct Writer<'a> {
    out: &'a mut Vec<u8>,
    /// Texts are JSON already.
    raw: bool,
}

/// A list or an object that is being written.
struct Members<'a> {
    out: &'a mut Vec<u8>,
    /// Nothing is written yet.
    first: bool,
    close: &'static [u8],
}

impl Members<'_> {
    fn separate(&mut self) {
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
    }

    fn member<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Unknown> {
        // What a program calls its fields needs no escapes.
        debug_assert!(first_to_escape(name.as_bytes()).is_none());
        self.out.reserve(name.len() + 4);
        self.separate();
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        value.serialize(Writer::new(self.out))
    }

    fn finish(self) -> Result<(), Unknown> {
        self.out.extend_from_slice(self.close);
        Ok(())
    }
}

/// An object, or text that is JSON already.
enum Struct<'a> {
    Object(Members<'a>),
    Raw(&'a mut Vec<u8>),
}

impl<'a> Writer<'a> {
    fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, raw: false }
    }

    fn open(self, open: &[u8], close: &'static [u8]) -> Members<'a> {
        self.out.extend_from_slice(open);
        Members {
            out: self.out,
            first: true,
            close,
        }
    }

    /// What a variant that holds something is written as: an object with the variant's name as its only member.
    fn variant(self, name: &str) -> &'a mut Vec<u8> {
        self.out.push(b'{');
        string(self.out, name);
        self.out.push(b':');
        self.out
    }
}

macro_rules! integers {
    ($($name:ident: $type:ty,)*) => {$(
        fn $name(self, number: $type) -> Result<(), Unknown> {
            let mut digits = itoa::Buffer::new();
            self.out.extend_from_slice(digits.format(number).as_bytes());
            Ok(())
        }
    )*};
}

impl<'a> ser::Serializer for Writer<'a> {
    type Ok = ();
    type Error = Unknown;
    type SerializeSeq = Members<'a>;
    type SerializeTuple = Impossible<(), Unknown>;
    type SerializeTupleStruct = Impossible<(), Unknown>;
    type SerializeTupleVariant = Impossible<(), Unknown>;
    type SerializeMap = Members<'a>;
    type SerializeStruct = Struct<'a>;
    type SerializeStructVariant = Members<'a>;

    integers! {
        serialize_i8: i8,
        serialize_i16: i16,
        serialize_i32: i32,
        serialize_i64: i64,
        serialize_u8: u8,
        serialize_u16: u16,
        serialize_u32: u32,
        serialize_u64: u64,
    }

    fn serialize_bool(self, flag: bool) -> Result<(), Unknown> {
        let text: &[u8] = if flag { b"true" } else { b"false" };
        self.out.extend_from_slice(text);
        Ok(())
    }

    fn serialize_f32(self, _: f32) -> Result<(), Unknown> {
        Err(Unknown)
    }

    fn serialize_f64(self, _: f64) -> Result<(), Unknown> {
        Err(Unknown)
    }

    fn serialize_char(self, _: char) -> Result<(), Unknown> {
        Err(Unknown)
    }

    fn serialize_str(self, text: &str) -> Result<(), Unknown> {
        if self.raw {
            self.out.extend_from_slice(text.as_bytes());
        } else {
            string(self.out, text);
        }
        Ok(())
    }

    fn serialize_bytes(self, _: &[u8]) -> Result<(), Unknown> {
        Err(Unknown)
    }

    fn serialize_none(self) -> Result<(), Unknown> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Unknown> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Unknown> {
        self.out.extend_from_slice(b"null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Unknown> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), Unknown> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Unknown> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Unknown> {
        let out = self.variant(variant);
        value.serialize(Writer::new(out))?;
        out.push(b'}');
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Members<'a>, Unknown> {
        Ok(self.open(b"[", b"]"))
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, Unknown> {
        Err(Unknown)
    }

    fn serialize_tuple_struct(
        self,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleStruct, Unknown> {
        Err(Unknown)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Unknown> {
        Err(Unknown)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Members<'a>, Unknown> {
        Ok(self.open(b"{", b"}"))
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Struct<'a>, Unknown> {
        Ok(if name == RAW {
            Struct::Raw(self.out)
        } else {
            Struct::Object(self.open(b"{", b"}"))
        })
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Members<'a>, Unknown> {
        Ok(Writer::new(self.variant(variant)).open(b"{", b"}}"))
    }
}

impl ser::SerializeSeq for Members<'_> {
    type Ok = ();
    type Error = Unknown;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unknown> {
        self.separate();
        value.serialize(Writer::new(self.out))
    }

    fn end(self) -> Result<(), Unknown> {
        self.finish()
    }
}

impl ser::SerializeMap for Members<'_> {
    type Ok = ();
    type Error = Unknown;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Unknown> {
        self.separate();
        let from = self.out.len();
        key.serialize(Writer::new(self.out))?;
        if self.out.get(from) != Some(&b'"') {
            return Err(Unknown);
        }
        self.out.push(b':');
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unknown> {
        value.serialize(Writer::new(self.out))
    }

    fn end(self) -> Result<(), Unknown> {
        self.finish()
    }
}

impl ser::SerializeStruct for Struct<'_> {
    type Ok = ();
    type Error = Unknown;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Unknown> {
        match self {
            Self::Object(members) => members.member(name, value),
            Self::Raw(out) => value.serialize(Writer { out, raw: true }),
        }
    }

    fn end(self) -> Result<(), Unknown> {
        match self {
            Self::Object(members) => members.finish(),
            Self::Raw(_) => Ok(()),
        }
    }
}

impl ser::SerializeStructVariant for Members<'_> {
    type Ok = ();
    type Error = Unknown;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Unknown> {
        self.member(name, value)
    }

    fn end(self) -> Result<(), Unknown> {
        self.finish()
    }
}

/// Writes `text` as a string with its quotes and escapes.
fn string(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    let mut from = 0;
    while let Some(at) = first_to_escape(&bytes[from..]) {
        let at = from + at;
        out.extend_from_slice(&bytes[from..at]);
        escape(out, bytes[at]);
        from = at + 1;
    }
    out.extend_from_slice(&bytes[from..]);
    out.push(b'"');
}

/// Where the first byte is that cannot stand in a string as it is: a quote, a backslash, a control character.
fn first_to_escape(bytes: &[u8]) -> Option<usize> {
    let plain = |byte: &u8| *byte >= 0x20 && *byte != b'"' && *byte != b'\\';
    let (words, rest) = bytes.as_chunks::<8>();
    let odd = words.iter().position(|word| is_odd(*word));
    let from = match (odd, bytes.last_chunk::<8>()) {
        (Some(odd), _) => odd * 8,
        // The last word again covers what is left over.
        (None, Some(last)) if !is_odd(*last) => return None,
        (None, _) => bytes.len() - rest.len(),
    };
    let at = bytes[from..].iter().position(|byte| !plain(byte))?;
    Some(from + at)
}

/// Whether one of eight bytes may have to be escaped. Never says no where it should say yes.
fn is_odd(word: [u8; 8]) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    // A byte is below the limit if subtracting that borrows, unless its high bit was set; a borrow may also touch the
    // byte above.
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word;
    let word = u64::from_le_bytes(word);
    let quote = word ^ (ONES * u64::from(b'"'));
    let backslash = word ^ (ONES * u64::from(b'\\'));
    (below(word, 0x20) | below(quote, 1) | below(backslash, 1)) & HIGHS != 0
}

fn escape(out: &mut Vec<u8>, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let short = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        0x09 => b't',
        0x0a => b'n',
        0x0c => b'f',
        0x0d => b'r',
        _ => {
            out.extend_from_slice(b"\\u00");
            out.push(DIGITS[usize::from(byte >> 4)]);
            out.push(DIGITS[usize::from(byte & 15)]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::{Artifact, Json, Message, Metadata, Part, Role, Task, TaskState, Timestamp};

    #[track_caller]
    fn same(value: &(impl Serialize + ?Sized)) {
        let theirs = serde_json::to_string(value).unwrap();
        assert_eq!(String::from_utf8(to_json(value)).unwrap(), theirs);
    }

    #[derive(Serialize)]
    #[serde(rename_all = "snake_case")]
    enum Shapes {
        Unit,
        Newtype(String),
        Tuple(i32, String),
        Struct { one: u64, two: Option<bool> },
    }

    #[test]
    fn shapes_are_written_as_serde_json_writes_them() {
        same(&Shapes::Unit);
        same(&Shapes::Newtype("a\"b".into()));
        same(&Shapes::Tuple(-1, String::new()));
        same(&Shapes::Struct {
            one: u64::MAX,
            two: None,
        });
        same(&((), (1_i8, 2_u8), [Some(i64::MIN), None], 'x', 1.5, 1.0_f32));
        same(&BTreeMap::from([(1, "a"), (2, "b")]));
        same(&BTreeMap::from([("k", BTreeMap::<String, i32>::new())]));
        same(&Vec::<i32>::new());
        same(&serde_bytes_like());
    }

    fn serde_bytes_like() -> impl Serialize {
        struct Raw;
        impl Serialize for Raw {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_bytes(b"ab")
            }
        }
        vec![Raw, Raw]
    }

    #[test]
    fn every_control_character_is_escaped_wherever_it_stands() {
        for byte in 0..=0x7f_u8 {
            for at in 0..20 {
                let mut text = "e\u{301}xact ly/12345678".to_owned();
                let at = (at..).find(|at| text.is_char_boundary(*at)).unwrap();
                text.insert(at, char::from(byte));
                same(&text);
            }
        }
    }

    #[test]
    fn raw_values_stay_as_they_are() {
        let data = Json::parse(r#"{"n":9007199254740993,"f":1.0,"s":"\u00e9\n"}"#).unwrap();
        same(&Part::data(data.clone()));
        assert_eq!(to_json(&data), data.as_str().as_bytes());
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(|number| json!(number)),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 64, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..8)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_text_is_written_as_serde_json_writes_it(text in any::<String>()) {
            same(&text);
        }

        #[test]
        fn any_value_is_written_as_serde_json_writes_it(value in value()) {
            same(&value);
        }

        #[test]
        fn any_task_is_written_as_serde_json_writes_it(
            texts in prop::collection::vec(any::<String>(), 0..5), data in value(), millis: i64
        ) {
            let parts: Vec<Part> = texts
                .iter()
                .map(Part::text)
                .chain([Part::data(Json::from_value(&data))])
                .collect();
            let mut task = Task {
                id: texts.concat(),
                metadata: Metadata::parse(r#"{"a":[1,2.0]}"#).ok(),
                history: vec![Message {
                    role: Role::User,
                    parts: parts.clone(),
                    extensions: texts.clone(),
                    ..Message::default()
                }],
                artifacts: vec![Artifact {
                    parts,
                    ..Artifact::default()
                }],
                ..Task::default()
            };
            task.status.state = TaskState::Working;
            task.status.timestamp = Some(Timestamp::from_millis(millis));
            same(&task);
        }
    }
}
