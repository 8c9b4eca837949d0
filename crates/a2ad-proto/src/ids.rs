//! Names of things, checked once.
//!
//! The wire types carry plain strings, as the proto has them; the engine takes these.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A string that cannot be an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} {reason}")]
pub struct IdError {
    /// Which kind of id was asked for.
    pub what: &'static str,
    /// What is wrong with the string.
    pub reason: &'static str,
}

macro_rules! id {
    ($(#[$meta:meta])* $name:ident, $what:literal, $bytes_max:literal, $check:path) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Longest accepted length in bytes.
            pub const BYTES_MAX: usize = $bytes_max;

            /// The id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Whether a string can be such an id.
            pub(crate) fn check(text: &str) -> Result<(), IdError> {
                let reason = if text.is_empty() {
                    Some("is empty")
                } else if text.len() > Self::BYTES_MAX {
                    Some(concat!("is longer than ", $bytes_max, " bytes"))
                } else {
                    $check(text)
                };
                match reason {
                    Some(reason) => Err(IdError { what: $what, reason }),
                    None => Ok(()),
                }
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::check(text)?;
                Ok(Self(text.into()))
            }
        }

        impl TryFrom<&str> for $name {
            type Error = IdError;

            fn try_from(text: &str) -> Result<Self, IdError> {
                text.parse()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({:?})", stringify!($name), &*self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
            }
        }
    };
}

id! {
    /// A task's name, minted by the server (CTX-01).
    TaskId, "task id", 256, no_control
}
id! {
    /// A conversation's name, minted by the server or kept as the client gave it (CTX-08).
    ContextId, "context id", 128, no_folder
}
id! {
    /// A message's name, chosen by its sender: opaque to us, but never empty or huge.
    MessageId, "message id", 256, no_control
}
id! {
    /// An artifact's name, unique inside its task.
    ArtifactId, "artifact id", 256, no_control
}
id! {
    /// An agent's name. It appears in paths and file names, hence the narrow alphabet.
    AgentId, "agent id", 128, path_segment
}
id! {
    /// The name of a push notification configuration, unique inside its task.
    PushConfigId, "push configuration id", 256, no_folder
}

/// Control characters would break log lines and headers.
fn no_control(text: &str) -> Option<&'static str> {
    let found = if text.is_ascii() {
        text.bytes().any(|byte| byte.is_ascii_control())
    } else {
        text.chars().any(char::is_control)
    };
    found.then_some("contains a control character")
}

/// Names that clients choose and that may come to stand in paths: a folder is none.
fn no_folder(text: &str) -> Option<&'static str> {
    if matches!(text, "." | "..") {
        return Some("is the name of a folder");
    }
    no_control(text)
}

fn path_segment(text: &str) -> Option<&'static str> {
    let inside = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    if !text.bytes().all(inside) {
        return Some("contains a character other than letters, digits, '.', '_' and '-'");
    }
    // A leading dot would allow `..`; a leading dash reads as an option.
    (!text.starts_with(|c: char| c.is_ascii_alphanumeric()))
        .then_some("does not start with a letter or digit")
}
