//! JSON objects with free content.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value};

use super::Json;
use super::text::{Builder, JsonError};

/// A JSON object whose members belong to the agents or to extensions: metadata, extension parameters (JSON-12).
///
/// ```
/// use a2ad_proto::Metadata;
/// let old = Metadata::parse(r#"{"a":1,"b":2}"#)?;
/// let new = old.merged(&Metadata::parse(r#"{"b":3.0,"c":4}"#)?);
/// assert_eq!(new.as_str(), r#"{"a":1,"b":3.0,"c":4}"#);
/// # Ok::<(), a2ad_proto::JsonError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Metadata(Json);

impl Metadata {
    /// Reads a JSON object.
    ///
    /// # Errors
    /// As [`Json::parse`], and if the value is not an object.
    pub fn parse(text: &str) -> Result<Self, JsonError> {
        Self::try_from(Json::parse(text)?)
    }

    /// The text of an object built in code.
    #[must_use]
    pub fn from_map(map: &Map<String, Value>) -> Self {
        // Printing a map of strings and values cannot fail; `{}` is what an impossible failure would lose it to.
        let text = serde_json::to_string(map).unwrap_or_else(|_| "{}".to_owned());
        Self(Json::from_compact(text))
    }

    /// The compact text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The value of the member `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Json> {
        let mut name = Builder::with_capacity(key.len() + 2);
        name.string(key);
        let name = name.finish();
        let (_, value) = self.members().find(|(found, _)| *found == name)?;
        Some(Json::from_compact(value.to_owned()))
    }

    /// Whether the object has no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.as_str() == "{}"
    }

    /// A shallow merge in which `other` wins; literals stay as they are.
    #[must_use]
    pub fn merged(&self, other: &Self) -> Self {
        if other.is_empty() {
            return self.clone();
        }
        if self.is_empty() {
            return other.clone();
        }
        let capacity = self.as_str().len() + other.as_str().len();
        let mut out = Builder::with_capacity(capacity);
        let object = out.begin_object();
        for (key, value) in self.members().chain(other.members()) {
            out.begin_member(object);
            out.raw(key);
            let member = out.end_key();
            out.raw(value);
            out.end_member(member);
        }
        out.end_object(object);
        Self(Json::from_compact(out.finish()))
    }

    /// The object without the member `key`, or nothing if that was all.
    pub(crate) fn without(&self, key: &str) -> Option<Self> {
        let mut name = Builder::with_capacity(key.len() + 2);
        name.string(key);
        let name = name.finish();
        let left: Vec<String> = self
            .members()
            .filter(|(found, _)| *found != name)
            .map(|(found, value)| format!("{found}:{value}"))
            .collect();
        let text = format!("{{{}}}", left.join(","));
        (!left.is_empty()).then(|| Self(Json::from_compact(text)))
    }

    /// The object as a map; numbers outside the 64-bit integers are rounded to doubles.
    #[must_use]
    pub fn to_map(&self) -> Map<String, Value> {
        serde_json::from_str(self.as_str()).unwrap_or_default()
    }

    /// The members as raw text, names with their quotes. Names compare as text because every string has one spelling.
    pub(crate) fn members(&self) -> Members<'_> {
        Members {
            rest: self.as_str(),
        }
    }
}

impl Default for Metadata {
    fn default() -> Self {
        Self(Json::from_compact("{}".to_owned()))
    }
}

impl TryFrom<Json> for Metadata {
    type Error = JsonError;

    fn try_from(json: Json) -> Result<Self, JsonError> {
        if json.as_str().starts_with('{') {
            return Ok(Self(json));
        }
        Err(JsonError {
            reason: "expected an object",
            offset: 0,
        })
    }
}

impl From<Metadata> for Json {
    fn from(metadata: Metadata) -> Self {
        metadata.0
    }
}

impl fmt::Debug for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Metadata {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::try_from(Json::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

/// Walks the members of an object in normalised text, which therefore needs no checking.
pub(crate) struct Members<'a> {
    /// Starts with the brace or comma before the next member.
    rest: &'a str,
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest.get(1..)?;
        if !rest.starts_with('"') {
            return None;
        }
        let (key, value) = rest.split_at(string_end(rest.as_bytes()));
        let value = value.get(1..)?;
        let (value, rest) = value.split_at(value_end(value.as_bytes()));
        self.rest = rest;
        Some((key, value))
    }
}

/// The length of the string `text` starts with.
pub(super) fn string_end(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

/// The length of the value `text` starts with.
fn value_end(text: &[u8]) -> usize {
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => {
                at += string_end(&text[at..]);
                continue;
            }
            b'{' | b'[' => depth += 1,
            b',' | b'}' | b']' if depth == 0 => return at,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    text.len()
}
