//! The JSON-RPC request object, read without building a tree (RPC-02, RPC-03).

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::errors::Refusal;

/// Longest id literal. It is echoed in every frame of a stream, so it must not be a burden.
const ID_BYTES_MAX: usize = 1024;

/// A request whose envelope is right. What it asks for is still unknown.
#[derive(Debug)]
pub(super) struct Envelope<'a> {
    /// The id's literal, to be echoed as it was written.
    pub(super) id: &'a RawValue,
    /// The method's name.
    pub(super) method: Cow<'a, str>,
    /// The params, whatever they are.
    pub(super) params: Option<&'a RawValue>,
}

impl<'a> Envelope<'a> {
    /// The params as the text of an object; absent or null params mean an empty one (RPC-05).
    pub(super) fn params(&self) -> Result<&'a [u8], Refusal> {
        match self.params.map(RawValue::get) {
            None | Some("null") => Ok(b"{}"),
            Some(text) if text.starts_with('{') => Ok(text.as_bytes()),
            Some(_) => Err(Refusal::ParamsNotObject),
        }
    }
}

/// Reads a request.
///
/// # Errors
/// With what is wrong, and the id to answer to: the request's own if it has a valid one, else null.
pub(super) fn read(body: &[u8]) -> Result<Envelope<'_>, (&RawValue, Refusal)> {
    let text = std::str::from_utf8(body).map_err(|_| (RawValue::NULL, Refusal::NotUtf8))?;
    // No shape is an error to the visitor, so what fails here is not JSON.
    let members = match serde_json::from_str(text) {
        Ok(Document::Object(members)) => members,
        Ok(Document::Array) => return Err((RawValue::NULL, Refusal::Batch)),
        Ok(Document::Other) => return Err((RawValue::NULL, Refusal::NotAnObject)),
        Err(_) => return Err((RawValue::NULL, Refusal::NotJson)),
    };
    let id = match members.id {
        Some(id) if is_id(id.get()) => Ok(id),
        Some(_) => Err(Refusal::BadId),
        None => Err(Refusal::NoId),
    };
    // Of two ids neither is the request's.
    let known_id = match id {
        Ok(id) if !members.repeated => id,
        Ok(_) | Err(_) => RawValue::NULL,
    };
    let refuse = |refusal| Err((known_id, refusal));
    if members.repeated {
        return refuse(Refusal::RepeatedMember);
    }
    if members.jsonrpc.and_then(string).as_deref() != Some("2.0") {
        return refuse(Refusal::NotJsonRpc2);
    }
    let id = match id {
        Ok(id) => id,
        Err(refusal) => return refuse(refusal),
    };
    let Some(method) = members.method.and_then(string) else {
        return refuse(Refusal::NoMethod);
    };
    Ok(Envelope {
        id,
        method,
        params: members.params,
    })
}

/// A string, an integer without fraction or exponent, or null.
fn is_id(literal: &str) -> bool {
    if literal.len() > ID_BYTES_MAX {
        return false;
    }
    match literal.as_bytes().first() {
        // Reading it finds lone surrogates, which would make our answer unreadable.
        Some(b'"') => serde_json::from_str::<Cow<'_, str>>(literal).is_ok(),
        Some(b'-' | b'0'..=b'9') => !literal.contains(['.', 'e', 'E']),
        _ => literal == "null",
    }
}

fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    serde_json::from_str::<Text<'_>>(raw.get())
        .ok()
        .map(|text| text.0)
}

/// What kind of JSON a body holds.
enum Document<'a> {
    Object(Members<'a>),
    Array,
    Other,
}

#[derive(Default)]
struct Members<'a> {
    jsonrpc: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
    /// One of these appeared twice: two readers might disagree on what was asked.
    repeated: bool,
}

impl<'de: 'a, 'a> Deserialize<'de> for Document<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyDocument)
    }
}

struct AnyDocument;

impl<'de> Visitor<'de> for AnyDocument {
    type Value = Document<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Members::default();
        while let Some(name) = map.next_key::<Name>()? {
            let place = match name {
                Name::JsonRpc => &mut members.jsonrpc,
                Name::Id => &mut members.id,
                Name::Method => &mut members.method,
                Name::Params => &mut members.params,
                Name::Other => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            members.repeated |= place.is_some();
            *place = Some(map.next_value()?);
        }
        Ok(Document::Object(members))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Document::Array)
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Document::Other)
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Document::Other)
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Document::Other)
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Document::Other)
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<Self::Value, E> {
        Ok(Document::Other)
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(Document::Other)
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Name {
    JsonRpc,
    Id,
    Method,
    Params,
    #[serde(other)]
    Other,
}

#[cfg(test)]
mod tests;
