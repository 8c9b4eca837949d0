//! How the tables of the message files become ProtoJSON readers and writers.
//!
//! Derived serde code gets several rules of ProtoJSON wrong: `null` for unset, the two spellings of a name, a member
//! given twice, enum numbers, integers as strings. Here each rule is written once.

mod bounds;
mod field;
mod macros;
mod path;

pub(crate) use bounds::{Bounds, too_many};
pub(crate) use field::{Field, Int32, Leaf};
#[cfg(feature = "protobuf")]
pub(crate) use macros::package;
pub(crate) use macros::{message, oneof, wire_enum};
pub(crate) use path::{Path, at, shorten, split};
