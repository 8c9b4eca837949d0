//! The protobuf encoding of every message of `lf.a2a.v1`, on the same types as the JSON one.
//!
//! The field numbers stand in the tables of the message files; here is what they mean in bytes. Metadata and data
//! parts become `google.protobuf.Struct` and `Value`, whose numbers are doubles: integers beyond 2^53 are rounded on
//! the way (JSON-10), and equal values may come back as other literals (`1.0` as `1`).

mod field;
mod part;
mod schema;
mod value;
mod wire;

pub(crate) use field::{Body, Pieces, Single, Slot};
pub(crate) use schema::{Declared, Described, Field, Kind, Label, Names, Table, Typed};
pub use schema::{SERVICE, descriptor_set};
pub(crate) use wire::{Payload, Reader, nested, put_bytes};

use crate::Violations;
use crate::wire::{Bounds, Path};

/// Bytes that are not the message asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// They are not protobuf, or not of this schema.
    #[error("malformed protobuf: {0}")]
    Malformed(&'static str),
    /// They are, but hold a value that means nothing to us: an enum value or time out of range, a choice without a
    /// member. JSON that says the same is refused with the same words.
    #[error("{0}")]
    Invalid(Violations),
}

impl DecodeError {
    #[cold]
    pub(crate) fn invalid(description: impl Into<String>) -> Self {
        Self::Invalid(Violations::one("", description))
    }

    /// Puts `step` before the path of what is invalid.
    #[cold]
    pub(crate) fn at(self, step: Path<'_>) -> Self {
        match self {
            Self::Invalid(violations) => Self::Invalid(violations.at(step)),
            malformed @ Self::Malformed(_) => malformed,
        }
    }
}

/// A message that travels as protobuf. Implemented by every message type of this crate and nothing else.
///
/// ```
/// use a2ad_proto::{GetTaskRequest, pb::Message as _};
/// let request = GetTaskRequest { id: "t1".to_owned(), ..Default::default() };
/// let bytes = request.encode_to_vec();
/// assert_eq!(bytes, b"\x12\x02t1");
/// assert_eq!(GetTaskRequest::decode(&bytes)?, request);
/// # Ok::<(), a2ad_proto::pb::DecodeError>(())
/// ```
pub trait Message: Sized {
    /// Appends the encoding to `out`.
    fn encode(&self, out: &mut Vec<u8>);

    /// The encoding in a buffer of its own.
    fn encode_to_vec(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode(&mut out);
        out
    }

    /// Reads a message from all of `bytes`. Unknown fields are skipped.
    ///
    /// # Errors
    /// If the bytes are not protobuf, hold text that is not UTF-8, an enum value or time we do not know, or a
    /// choice without a member.
    fn decode(bytes: &[u8]) -> Result<Self, DecodeError>;
}

impl<T: Body> Message for T {
    fn encode(&self, out: &mut Vec<u8>) {
        self.write(out);
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        T::read(bytes, Bounds::None)
    }
}
