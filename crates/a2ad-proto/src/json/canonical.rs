//! One text for every way to say the same.

use serde::Serialize;

use super::metadata::string_end;
use super::write::to_json;

/// Writes a value so that equal content is equal text: members are ordered by their names, and numbers are the doubles
/// that they become in protobuf, so `1.0` is `1`. To be compared or hashed, not to be read.
///
/// ```
/// use a2ad_proto::{Metadata, canonical_json};
/// let one = Metadata::parse(r#"{"b":1,"a":9007199254740993}"#)?;
/// let other = Metadata::parse(r#"{"a":9007199254740992.0,"b":1.0}"#)?;
/// assert_eq!(canonical_json(&one), canonical_json(&other));
/// # Ok::<(), a2ad_proto::JsonError>(())
/// ```
#[must_use]
pub fn canonical_json<T: Serialize>(value: &T) -> String {
    let text = String::from_utf8(to_json(value)).unwrap_or_default();
    let mut out = String::with_capacity(text.len());
    Source { rest: &text }.node().write(&mut out);
    out
}

enum Node<'a> {
    /// As it stands in the text.
    Scalar(&'a str),
    List(Vec<Self>),
    Object(Vec<(&'a str, Self)>),
}

/// Compact text of our own writing. It needs no checks: what cannot happen ends the loop it is in.
struct Source<'a> {
    rest: &'a str,
}

impl<'a> Source<'a> {
    fn first(&self) -> Option<u8> {
        self.rest.as_bytes().first().copied()
    }

    fn cut(&mut self, at: usize) -> &'a str {
        let (head, rest) = self.rest.split_at_checked(at).unwrap_or((self.rest, ""));
        self.rest = rest;
        head
    }

    fn string(&mut self) -> &'a str {
        self.cut(string_end(self.rest.as_bytes()))
    }

    fn node(&mut self) -> Node<'a> {
        match self.first() {
            Some(b'"') => Node::Scalar(self.string()),
            Some(b'[') => Node::List(self.elements(Self::node)),
            Some(b'{') => Node::Object(self.elements(|source| {
                let name = source.string();
                source.cut(1);
                (name, source.node())
            })),
            _ => {
                let end = self.rest.find([',', '}', ']']).unwrap_or(self.rest.len());
                Node::Scalar(self.cut(end))
            }
        }
    }

    fn elements<T>(&mut self, mut element: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let mut all = Vec::new();
        self.cut(1);
        while !matches!(self.first(), Some(b']' | b'}') | None) {
            all.push(element(self));
            if self.first() == Some(b',') {
                self.cut(1);
            }
        }
        self.cut(1);
        all
    }
}

impl Node<'_> {
    fn write(self, out: &mut String) {
        match self {
            Self::Scalar(text) => match text.as_bytes().first() {
                // Not by way of `serde_json`, whose reader may be off by the last bit.
                Some(b'-' | b'0'..=b'9') => {
                    let number: f64 = text.parse().unwrap_or_default();
                    out.push_str(&serde_json::to_string(&number).unwrap_or_default());
                }
                _ => out.push_str(text),
            },
            Self::List(elements) => {
                out.push('[');
                for element in elements {
                    element.write(out);
                    out.push(',');
                }
                out.push(']');
            }
            Self::Object(mut members) => {
                members.sort_unstable_by_key(|(name, _)| *name);
                out.push('{');
                for (name, value) in members {
                    out.push_str(name);
                    out.push(':');
                    value.write(out);
                    out.push(',');
                }
                out.push('}');
            }
        }
    }
}
