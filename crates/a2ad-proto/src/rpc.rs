//! `google.rpc.Status` and its details, as errors carry them over gRPC (GRPC-03).
//!
//! They are no messages of A2A: they appear in no schema of ours and have no JSON here.

use std::collections::BTreeMap;

/// `google.rpc.Status`
#[derive(Clone, PartialEq, prost::Message)]
pub struct Status {
    /// The gRPC code.
    #[prost(int32, tag = "1")]
    pub code: i32,
    /// What is wrong, for people.
    #[prost(string, tag = "2")]
    pub message: String,
    /// What is wrong, for programs.
    #[prost(message, repeated, tag = "3")]
    pub details: Vec<Any>,
}

/// `google.protobuf.Any`
#[derive(Clone, PartialEq, prost::Message)]
pub struct Any {
    /// Whose name ends it is.
    #[prost(string, tag = "1")]
    pub type_url: String,
    /// The message.
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

impl Any {
    /// A detail, by the name of its type in `google.rpc`.
    #[must_use]
    pub fn of(name: &str, message: &impl prost::Message) -> Self {
        Self {
            type_url: format!("type.googleapis.com/google.rpc.{name}"),
            value: message.encode_to_vec(),
        }
    }
}

/// `google.rpc.ErrorInfo`
#[derive(Clone, PartialEq, prost::Message)]
pub struct ErrorInfo {
    /// Which error it is.
    #[prost(string, tag = "1")]
    pub reason: String,
    /// Whose errors these are.
    #[prost(string, tag = "2")]
    pub domain: String,
    /// What else is known.
    #[prost(btree_map = "string, string", tag = "3")]
    pub metadata: BTreeMap<String, String>,
}

/// `google.rpc.BadRequest`
#[derive(Clone, PartialEq, prost::Message)]
pub struct BadRequest {
    /// The fields to blame.
    #[prost(message, repeated, tag = "1")]
    pub field_violations: Vec<Violation>,
}

/// `google.rpc.BadRequest.FieldViolation`
#[derive(Clone, PartialEq, prost::Message)]
pub struct Violation {
    /// The path to the field.
    #[prost(string, tag = "1")]
    pub field: String,
    /// What is wrong with it.
    #[prost(string, tag = "2")]
    pub description: String,
}

/// `google.rpc.RetryInfo`
#[derive(Clone, PartialEq, prost::Message)]
pub struct RetryInfo {
    /// How long to wait.
    #[prost(message, optional, tag = "1")]
    pub delay: Option<Delay>,
}

/// `google.protobuf.Duration`
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Delay {
    /// Whole seconds.
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    /// What is left of one.
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}
