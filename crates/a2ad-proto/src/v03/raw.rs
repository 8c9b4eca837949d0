//! Reads JSON one level at a time, with the values below still as text.
//!
//! What a member means depends on its neighbours here, and errors name it as it was written; a table would know
//! neither. Nothing is kept but members that somebody asks for, so a body costs no more memory than its text.

use std::borrow::Cow;
use std::fmt;

use serde::Deserializer as _;
use serde::de::{self, Deserialize, IgnoredAny, MapAccess, SeqAccess};
use serde_json::value::RawValue;

use crate::check::violation;
use crate::wire::{Path, too_many};
use crate::{Metadata, Timestamp, Violations};

pub(super) type Read<T> = Result<T, Violations>;

/// One JSON value.
pub(super) fn value(json: &[u8]) -> Read<&RawValue> {
    let Ok(text) = std::str::from_utf8(json) else {
        return Err(Violations::one("", "not JSON: not UTF-8"));
    };
    serde_json::from_str(text).map_err(|error| Violations::one("", format!("not JSON: {error}")))
}

/// Hands every member of an object to `member`, which returns the one name for its spellings, or nothing if the
/// member is of no interest. `null` is as good as no member.
pub(super) fn members<'a>(
    object: &'a RawValue,
    member: impl FnMut(&str, &'a RawValue) -> Read<Option<&'static str>>,
) -> Read<()> {
    let mut wrong = None;
    let visitor = Members {
        member,
        wrong: &mut wrong,
    };
    let read = serde_json::Deserializer::from_str(object.get()).deserialize_map(visitor);
    match (wrong, read) {
        (Some(wrong), _) => Err(wrong),
        (None, Err(error)) => Err(violation(&error)),
        (None, Ok(())) => Ok(()),
    }
}

struct Members<'w, F> {
    member: F,
    /// What `member` found wrong, since serde's errors are but texts.
    wrong: &'w mut Option<Violations>,
}

impl<'a, F> de::Visitor<'a> for Members<'_, F>
where
    F: FnMut(&str, &'a RawValue) -> Read<Option<&'static str>>,
{
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(mut self, mut map: A) -> Result<(), A::Error> {
        let mut seen: Vec<&'static str> = Vec::new();
        while let Some(name) = map.next_key::<Cow<'a, str>>()? {
            let value: &'a RawValue = map.next_value()?;
            if value.get() == "null" {
                continue;
            }
            let known = match (self.member)(&name, value) {
                Ok(None) => continue,
                Ok(Some(known)) if !seen.contains(&known) => Ok(known),
                Ok(Some(_)) => Err(Violations::one("", "given twice")),
                Err(violations) => Err(violations),
            };
            match known {
                Ok(known) => seen.push(known),
                Err(violations) => {
                    *self.wrong = Some(violations.at(Path::Name(&name)));
                    return Err(de::Error::custom("told apart"));
                }
            }
        }
        Ok(())
    }
}

/// A list of at most `most` elements; nothing beyond them is read.
pub(super) fn list<'a, T>(
    value: &'a RawValue,
    most: usize,
    element: impl FnMut(&'a RawValue) -> Read<T>,
) -> Read<Vec<T>> {
    let mut wrong = None;
    let visitor = List {
        most,
        element,
        wrong: &mut wrong,
    };
    let read = serde_json::Deserializer::from_str(value.get()).deserialize_seq(visitor);
    match (wrong, read) {
        (Some(wrong), _) => Err(wrong),
        (None, read) => read.map_err(|error| violation(&error)),
    }
}

struct List<'w, F> {
    most: usize,
    element: F,
    wrong: &'w mut Option<Violations>,
}

impl<'a, T, F: FnMut(&'a RawValue) -> Read<T>> de::Visitor<'a> for List<'_, F> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'a>>(mut self, mut seq: A) -> Result<Vec<T>, A::Error> {
        let mut list = Vec::new();
        while list.len() < self.most {
            let Some(raw) = seq.next_element::<&'a RawValue>()? else {
                return Ok(list);
            };
            match (self.element)(raw) {
                Ok(element) => list.push(element),
                Err(violations) => {
                    *self.wrong = Some(violations.at(Path::Index(list.len())));
                    return Err(de::Error::custom("told apart"));
                }
            }
        }
        match seq.next_element::<IgnoredAny>()? {
            Some(_) => Err(de::Error::custom(too_many(self.most))),
            None => Ok(list),
        }
    }
}

/// A value that serde reads by itself.
pub(super) fn read<'a, T: Deserialize<'a>>(value: &'a RawValue) -> Read<T> {
    serde_json::from_str(value.get()).map_err(|error| violation(&error))
}

pub(super) fn text(value: &RawValue) -> Read<String> {
    read(value)
}

pub(super) fn texts(value: &RawValue, most: usize) -> Read<Vec<String>> {
    list(value, most, text)
}

pub(super) fn free(value: &RawValue) -> Read<Option<Metadata>> {
    read(value).map(Some)
}

pub(super) fn integer(value: &RawValue) -> Read<i32> {
    read::<crate::wire::Int32>(value).map(Into::into)
}

/// A time. Without a zone it is in UTC: Python peers leave it out.
pub(super) fn time(value: &RawValue) -> Read<Timestamp> {
    let text: Cow<'_, str> = read(value)?;
    let parsed = text.parse().or_else(|error| {
        let zoned = format!("{text}Z");
        zoned.parse().map_err(|_| error)
    });
    parsed.map_err(|error: crate::TimestampError| Violations::one("", error.to_string()))
}

/// What belongs to protocol 1.0, and what 0.3 has in its place.
pub(super) fn modern<T>(instead: &str) -> Read<T> {
    let description = format!("is of protocol 1.0; this is protocol 0.3, which has {instead}");
    Err(Violations::one("", description))
}
