//! JSON values kept as text.
//!
//! Metadata and data parts belong to the agents, not to us. Holding them as the text they arrived in keeps every
//! number literal (JSON-10) and costs one allocation; a tree would cost one per node and round integers.

mod canonical;
mod metadata;
pub(crate) mod text;
mod write;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;
use serde_json::value::RawValue;

pub use canonical::canonical_json;
pub use metadata::Metadata;
pub use text::JsonError;
pub use write::{to_json, write_json};

/// One JSON value, kept as compact text so number literals survive. Cheap to clone.
///
/// The text is normalised on the way in: no whitespace between tokens (so it fits on one line of an event stream),
/// one spelling per string, and the last of several members with the same name, so that no two later readers can
/// disagree on what the value says. Equality is equality of that text.
///
/// ```
/// use a2ad_proto::Json;
/// let json = Json::parse(r#" { "n" : 9007199254740993, "n": 1.0 } "#)?;
/// assert_eq!(json.as_str(), r#"{"n":1.0}"#);
/// # Ok::<(), a2ad_proto::JsonError>(())
/// ```
#[derive(Clone)]
pub struct Json(Arc<RawValue>); // raw, because wrapping text as raw at each write would scan it each time

impl Json {
    /// Deepest nesting of arrays and objects that is accepted.
    pub const DEPTH_MAX: usize = text::DEPTH_MAX;

    /// Reads exactly one JSON value.
    ///
    /// # Errors
    /// If `text` is not JSON, nests deeper than [`Json::DEPTH_MAX`], holds a lone surrogate, or holds a number
    /// that no double can approximate.
    pub fn parse(text: &str) -> Result<Self, JsonError> {
        Ok(Self::from_compact(text::compact(text)?))
    }

    /// The text of a value built in code. Its depth is not checked: what is deeper than [`Json::DEPTH_MAX`] will
    /// be refused when it is read back.
    #[must_use]
    pub fn from_value(value: &Value) -> Self {
        // `Value` prints compact text with the same escapes as ours and has no duplicate members.
        Self::from_compact(value.to_string())
    }

    /// Wraps text known to be normalised already.
    pub(crate) fn from_compact(text: String) -> Self {
        // Cannot fail for such text.
        let raw = RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned());
        Self(raw.into())
    }

    /// The value `null`.
    #[must_use]
    pub fn null() -> Self {
        Self(RawValue::NULL.to_owned().into())
    }

    /// Whether this is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.as_str() == "null"
    }

    /// The compact text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// The value as a tree; numbers outside the 64-bit integers are rounded to doubles.
    #[must_use]
    pub fn to_value(&self) -> Value {
        // Cannot fail: the text was checked against a stricter reader than this one.
        serde_json::from_str(self.as_str()).unwrap_or(Value::Null)
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Json {}

impl Hash for Json {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    /// Works with `serde_json` only: other formats have no raw text to give.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let text = text::compact(raw.get()).map_err(de::Error::custom)?;
        if text == raw.get() {
            return Ok(Self(raw.into()));
        }
        Ok(Self::from_compact(text))
    }
}
