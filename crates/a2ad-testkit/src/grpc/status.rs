//! The status of a call, and what its details say.

use std::collections::BTreeMap;

use base64::Engine as _;
use hyper::HeaderMap;
use prost::Message as _;
use serde_json::{Value, json};

/// How a call ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// `grpc-status`.
    pub code: i32,
    /// `grpc-message`, decoded.
    pub message: String,
    /// `grpc-status-details-bin` as ProtoJSON, its members under `code`, `message` and `details`.
    pub details: Option<Value>,
}

impl Status {
    /// Reads the status in trailers, or in headers that are trailers too.
    #[must_use]
    pub fn read(headers: &HeaderMap) -> Option<Self> {
        let text = |name: &str| {
            let value = headers.get(name)?;
            Some(value.to_str().expect("headers are ASCII"))
        };
        Some(Self {
            code: text("grpc-status")?.parse().expect("a status is a number"),
            message: text("grpc-message").map(unescape).unwrap_or_default(),
            details: text("grpc-status-details-bin").map(details),
        })
    }
}

fn unescape(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, more)) = rest.split_first() {
        rest = more;
        match rest.split_first_chunk::<2>() {
            Some((digits, more)) if first == b'%' => {
                let digits = str::from_utf8(digits).expect("digits are ASCII");
                bytes.push(u8::from_str_radix(digits, 16).expect("an escape is hexadecimal"));
                rest = more;
            }
            _ => bytes.push(first),
        }
    }
    String::from_utf8(bytes).expect("a message is UTF-8")
}

#[derive(Clone, PartialEq, prost::Message)]
struct RpcStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Any {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ErrorInfo {
    #[prost(string, tag = "1")]
    reason: String,
    #[prost(string, tag = "2")]
    domain: String,
    #[prost(btree_map = "string, string", tag = "3")]
    metadata: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct BadRequest {
    #[prost(message, repeated, tag = "1")]
    violations: Vec<Violation>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Violation {
    #[prost(string, tag = "1")]
    field: String,
    #[prost(string, tag = "2")]
    description: String,
}

/// The details of a status in the form that the other bindings give them.
fn details(text: &str) -> Value {
    let engine = base64::engine::GeneralPurpose::new(
        &base64::alphabet::STANDARD,
        base64::engine::general_purpose::NO_PAD
            .with_decode_padding_mode(base64::engine::DecodePaddingMode::Indifferent),
    );
    let bytes = engine.decode(text).expect("details are base64");
    let status = RpcStatus::decode(&*bytes).expect("details are a google.rpc.Status");
    let detail = |any: &Any| {
        let mut detail = json!({"@type": any.type_url});
        if any.type_url.ends_with("/google.rpc.ErrorInfo") {
            let info = ErrorInfo::decode(&*any.value).expect("an ErrorInfo");
            detail["reason"] = info.reason.into();
            detail["domain"] = info.domain.into();
            if !info.metadata.is_empty() {
                detail["metadata"] = json!(info.metadata);
            }
        } else if any.type_url.ends_with("/google.rpc.BadRequest") {
            let blamed = BadRequest::decode(&*any.value).expect("a BadRequest");
            let one = |it: &Violation| json!({"field": it.field, "description": it.description});
            detail["fieldViolations"] = blamed.violations.iter().map(one).collect();
        }
        detail
    };
    json!({
        "code": status.code,
        "message": status.message,
        "details": status.details.iter().map(detail).collect::<Vec<_>>(),
    })
}
