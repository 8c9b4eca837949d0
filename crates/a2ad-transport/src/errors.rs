//! The one table of everything that can go wrong, and how callers see it.
//!
//! Kinds, codes and statuses of the protocol are [`ErrorKind`]'s; this module adds what the edge itself refuses,
//! which kinds leave JSON-RPC's HTTP 200, and the shapes of an error on the wire.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

use a2ad_core::engine::EngineError;
use a2ad_proto::v03;
use a2ad_proto::{ERROR_DOMAIN, ErrorKind, FieldViolation, Violations};
use http::StatusCode;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::value::RawValue;

use crate::version::Generation;

mod status;

/// What the edge refuses without asking the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    NoSuchPath,
    WrongVerb,
    NoHost,
    AmbiguousLength,
    MediaType,
    ContentEncoding,
    BodyTooLarge,
    BodyTooSlow,
    BodyBroken,
    NotUtf8,
    NotJson,
    Batch,
    NotAnObject,
    RepeatedMember,
    NotJsonRpc2,
    NoId,
    BadId,
    NoMethod,
    Version,
    UnknownMethod,
    ParamsNotObject,
    IdempotencyKey,
    Cursor,
    NoStreaming,
    NoPush,
    NoExtendedCard,
    ExtendedCardNotConfigured,
    ExtensionRequired,
    NoSuchTenant,
    Unauthorized,
    Forbidden,
    OnlyGrpc,
    GrpcNeedsHttp2,
    GrpcMediaType,
    NotOneMessage,
    CompressedMessage,
    NotProtobuf,
    Timeout,
    Stopping,
}

struct Row {
    kind: ErrorKind,
    /// The HTTP status where it is not the one of the kind.
    status: Option<StatusCode>,
    /// Whether an HTTP/1 connection can be used no further.
    close: bool,
    message: &'static str,
}

impl Refusal {
    #[cfg(test)]
    pub(crate) const ALL: [Self; 39] = [
        Self::NoSuchPath,
        Self::WrongVerb,
        Self::NoHost,
        Self::AmbiguousLength,
        Self::MediaType,
        Self::ContentEncoding,
        Self::BodyTooLarge,
        Self::BodyTooSlow,
        Self::BodyBroken,
        Self::NotUtf8,
        Self::NotJson,
        Self::Batch,
        Self::NotAnObject,
        Self::RepeatedMember,
        Self::NotJsonRpc2,
        Self::NoId,
        Self::BadId,
        Self::NoMethod,
        Self::Version,
        Self::UnknownMethod,
        Self::ParamsNotObject,
        Self::IdempotencyKey,
        Self::Cursor,
        Self::NoStreaming,
        Self::NoPush,
        Self::NoExtendedCard,
        Self::ExtendedCardNotConfigured,
        Self::ExtensionRequired,
        Self::NoSuchTenant,
        Self::Unauthorized,
        Self::Forbidden,
        Self::OnlyGrpc,
        Self::GrpcNeedsHttp2,
        Self::GrpcMediaType,
        Self::NotOneMessage,
        Self::CompressedMessage,
        Self::NotProtobuf,
        Self::Timeout,
        Self::Stopping,
    ];

    #[rustfmt::skip]
    const fn row(self) -> Row {
        use ErrorKind as K;
        const fn row(kind: ErrorKind, message: &'static str) -> Row {
            Row { kind, status: None, close: false, message }
        }
        const fn http(kind: ErrorKind, status: StatusCode, close: bool, message: &'static str) -> Row {
            Row { kind, status: Some(status), close, message }
        }
        match self {
            Self::NoSuchPath      => http(K::MethodNotFound, StatusCode::NOT_FOUND, false, "There is nothing at this path"),
            Self::WrongVerb       => http(K::MethodNotFound, StatusCode::METHOD_NOT_ALLOWED, false, "This path does not take this method"),
            Self::NoHost          => http(K::InvalidRequest, StatusCode::BAD_REQUEST, true, "An HTTP/1.1 request needs exactly one Host header"),
            Self::AmbiguousLength => http(K::InvalidRequest, StatusCode::BAD_REQUEST, true, "A request cannot have both Content-Length and Transfer-Encoding"),
            // A wrong media type is a JSON-RPC outcome like any other, hence HTTP 200 (RPC-04). The body is not
            // looked at: refusing it unread is what keeps other sites' forms out.
            Self::MediaType       => row(K::ContentTypeNotSupported, "Send the request as application/json"),
            Self::ContentEncoding => row(K::ContentTypeNotSupported, "Send the request without Content-Encoding"),
            Self::BodyTooLarge    => http(K::InvalidRequest, StatusCode::PAYLOAD_TOO_LARGE, true, "The request body is too large"),
            Self::BodyTooSlow     => http(K::InvalidRequest, StatusCode::REQUEST_TIMEOUT, true, "The request body came too slowly"),
            Self::BodyBroken      => http(K::InvalidRequest, StatusCode::BAD_REQUEST, true, "The request body broke off"),
            Self::NotUtf8         => row(K::Parse, "The request is not UTF-8"),
            Self::NotJson         => row(K::Parse, "The request is not JSON"),
            Self::Batch           => row(K::InvalidRequest, "Batches are not supported"),
            Self::NotAnObject     => row(K::InvalidRequest, "The request must be a JSON object"),
            Self::RepeatedMember  => row(K::InvalidRequest, "A member of the request appears twice"),
            Self::NotJsonRpc2     => row(K::InvalidRequest, "jsonrpc must be \"2.0\""),
            Self::NoId            => row(K::InvalidRequest, "id is missing; every method has an answer"),
            Self::BadId           => row(K::InvalidRequest, "id must be a string, an integer or null, of at most 1024 bytes"),
            Self::NoMethod        => row(K::InvalidRequest, "method must be a string"),
            Self::Version         => row(K::VersionNotSupported, "This protocol version is not supported here; send the header A2A-Version: 1.0, or use a method or path of 0.3"),
            Self::UnknownMethod   => row(K::MethodNotFound, "Unknown method"),
            Self::ParamsNotObject => row(K::InvalidParams, "params must be an object"),
            Self::IdempotencyKey  => row(K::InvalidRequest, "Idempotency-Key must be given once and be neither empty nor long nor hold control characters"),
            Self::Cursor          => row(K::InvalidParams, "The position to resume after must be a whole number"),
            Self::NoStreaming     => row(K::UnsupportedOperation, "Streaming is not supported by this agent"),
            Self::NoPush          => row(K::PushNotificationNotSupported, "Push notifications are not supported by this agent"),
            Self::NoExtendedCard  => row(K::UnsupportedOperation, "GetExtendedAgentCard is not supported by this agent"),
            Self::ExtendedCardNotConfigured => row(K::ExtendedAgentCardNotConfigured, "This agent has no extended card"),
            Self::ExtensionRequired => row(K::ExtensionSupportRequired, "This agent requires extensions; name them in the header A2A-Extensions"),
            Self::NoSuchTenant    => row(K::InvalidParams, "There is no such tenant"),
            Self::Unauthorized    => row(K::Unauthenticated, "Unauthorized"),
            Self::Forbidden       => row(K::PermissionDenied, "This credential does not allow that"),
            // The rest is of gRPC alone.
            Self::OnlyGrpc        => http(K::MethodNotFound, StatusCode::NOT_FOUND, false, "There is nothing but gRPC at this port"),
            Self::GrpcNeedsHttp2  => http(K::InvalidRequest, StatusCode::HTTP_VERSION_NOT_SUPPORTED, false, "gRPC needs HTTP/2"),
            Self::GrpcMediaType   => row(K::ContentTypeNotSupported, "Send the request as application/grpc or application/grpc+proto"),
            Self::NotOneMessage   => row(K::Parse, "The request is not one gRPC message"),
            // As UNIMPLEMENTED, which is how gRPC clients learn to send it again as it is.
            Self::CompressedMessage => row(K::ContentTypeNotSupported, "Send the request without compression"),
            Self::NotProtobuf     => row(K::Parse, "The request is not a protobuf message of this method"),
            Self::Timeout         => row(K::InvalidRequest, "grpc-timeout must be up to eight digits and one of H, M, S, m, u, n"),
            Self::Stopping        => row(K::Unavailable, "The server is stopping; subscribe again after the last frame"),
        }
    }
}

/// The HTTP status of a JSON-RPC error: 200, since clients of other SDKs discard the body of anything else
/// (RPC-04), except for what concerns HTTP itself or what a proxy should see.
pub(crate) fn json_rpc_status(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::Unauthenticated => StatusCode::UNAUTHORIZED,
        ErrorKind::PermissionDenied => StatusCode::FORBIDDEN,
        ErrorKind::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        ErrorKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::TaskNotFound
        | ErrorKind::TaskNotCancelable
        | ErrorKind::PushNotificationNotSupported
        | ErrorKind::UnsupportedOperation
        | ErrorKind::ContentTypeNotSupported
        | ErrorKind::InvalidAgentResponse
        | ErrorKind::ExtendedAgentCardNotConfigured
        | ErrorKind::ExtensionSupportRequired
        | ErrorKind::VersionNotSupported
        | ErrorKind::Parse
        | ErrorKind::InvalidRequest
        | ErrorKind::MethodNotFound
        | ErrorKind::InvalidParams
        | ErrorKind::Internal => StatusCode::OK,
    }
}

/// Whether the same request may succeed a little later.
pub(crate) fn is_transient(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::ResourceExhausted | ErrorKind::Unavailable)
}

/// An error as callers see it.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) kind: ErrorKind,
    pub(crate) close: bool,
    status: Option<StatusCode>,
    message: Cow<'static, str>,
    metadata: Vec<(&'static str, String)>,
    violations: Violations,
}

impl Fault {
    fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind,
            close: false,
            status: None,
            message: message.into(),
            metadata: Vec::new(),
            violations: Violations::default(),
        }
    }

    /// Adds something for programs to read.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.metadata.push((name, value.into()));
        self
    }

    /// Says which field is wrong, in the words of the message.
    pub(crate) fn about(mut self, field: &str) -> Self {
        self.violations.0.push(FieldViolation {
            field: field.to_owned(),
            description: self.message.clone().into_owned(),
        });
        self
    }

    /// The HTTP status on the JSON-RPC binding.
    pub(crate) fn json_rpc_status(&self) -> StatusCode {
        self.status.unwrap_or_else(|| json_rpc_status(self.kind))
    }

    /// The HTTP status everywhere else.
    pub(crate) fn http_status(&self) -> StatusCode {
        self.status.unwrap_or_else(|| {
            StatusCode::from_u16(self.kind.http_status())
                .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
        })
    }

    /// A JSON-RPC response with this error, on one line.
    pub(crate) fn json_rpc(&self, id: &RawValue) -> Vec<u8> {
        a2ad_proto::to_json(&JsonRpc {
            jsonrpc: "2.0",
            id,
            error: JsonRpcError {
                code: self.kind.json_rpc_code(),
                message: &self.message,
                data: Details(self),
            },
        })
    }

    /// This error of a request that should be of 1.0, with a word about what in it is not.
    pub(crate) fn expecting_v10(mut self, hint: Option<impl fmt::Display>) -> Self {
        if let Some(hint) = hint {
            self.message = format!("{}; this is protocol 1.0, and {hint}", self.message).into();
        }
        self
    }

    /// The same in 0.3, where it may have another code and other names: clients of 0.3 know a message to a task that
    /// takes none as wrong parameters (V03-13).
    pub(crate) fn of_send_in_v03(mut self) -> Self {
        if self.kind == ErrorKind::UnsupportedOperation {
            self.kind = ErrorKind::InvalidParams;
        }
        // Parts have no such member there.
        for violation in &mut self.violations.0 {
            if let Some(part) = violation.field.strip_suffix(".mediaType") {
                violation.field = part.to_owned();
            }
        }
        self
    }

    /// The body of this error outside JSON-RPC (ERR-05). Clients of 0.3 also look for its parts at the top (V03-25).
    pub(crate) fn http_json(&self, generation: Generation) -> Vec<u8> {
        let is_v03 = generation == Generation::V03;
        a2ad_proto::to_json(&HttpJson {
            kind: is_v03.then(|| v03::error_name(self.kind)),
            code: is_v03.then(|| self.kind.json_rpc_code()),
            message: is_v03.then_some(&*self.message),
            error: HttpJsonError {
                code: self.http_status().as_u16(),
                status: self.kind.grpc_status_name(),
                message: &self.message,
                details: Details(self),
            },
        })
    }
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        let row = refusal.row();
        Self {
            close: row.close,
            status: row.status,
            ..Self::new(row.kind, row.message)
        }
    }
}

impl From<Violations> for Fault {
    fn from(violations: Violations) -> Self {
        EngineError::from(violations).into()
    }
}

impl From<EngineError> for Fault {
    /// Also the one place where causes that callers must not see are logged.
    fn from(error: EngineError) -> Self {
        let mut fault = Self::new(error.kind(), error.to_string());
        if let Some(task) = error.task_id() {
            fault = fault.with("taskId", task);
        }
        match error {
            EngineError::InvalidParams(violations)
            | EngineError::ContentTypeNotSupported(violations) => fault.violations = violations,
            EngineError::Internal(_) => {
                let id = error_id();
                tracing::error!(error_id = %id, cause = %Causes(&error), "internal error");
                fault = fault.with("errorId", id);
            }
            EngineError::Unavailable(Some(_)) => {
                tracing::warn!(cause = %Causes(&error), "a request was turned away");
            }
            EngineError::Unavailable(None)
            | EngineError::TaskNotFound { .. }
            | EngineError::NotCancelable { .. }
            | EngineError::Unsupported(_)
            | EngineError::PushNotSupported
            | EngineError::Exhausted(_) => {}
        }
        fault
    }
}

/// A name by which a caller's report leads to the line in the log.
fn error_id() -> String {
    // Without random numbers the id is useless but the answer is still right.
    getrandom::u32().map_or_else(|_| "00000000".to_owned(), |bits| format!("{bits:08x}"))
}

/// An error's causes on one line, outermost first.
struct Causes<'a>(&'a dyn Error);

impl fmt::Display for Causes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cause = self.0.source();
        let mut between = "";
        while let Some(error) = cause {
            write!(f, "{between}{error}")?;
            between = ": ";
            cause = error.source();
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct JsonRpc<'a> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    error: JsonRpcError<'a>,
}

#[derive(Serialize)]
struct JsonRpcError<'a> {
    code: i32,
    message: &'a str,
    data: Details<'a>,
}

#[derive(Serialize)]
struct HttpJson<'a> {
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    error: HttpJsonError<'a>,
}

#[derive(Serialize)]
struct HttpJsonError<'a> {
    code: u16,
    status: &'static str,
    message: &'a str,
    details: Details<'a>,
}

/// `ErrorInfo`, and `BadRequest` where fields are to blame (ERR-02, ERR-03).
struct Details<'a>(&'a Fault);

impl Serialize for Details<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fault = self.0;
        let info = Detail::ErrorInfo {
            reason: fault.kind.reason(),
            domain: ERROR_DOMAIN,
            metadata: Pairs(&fault.metadata),
        };
        let blamed = !fault.violations.0.is_empty();
        let bad_request = blamed.then(|| Detail::BadRequest {
            field_violations: fault.violations.0.iter().map(Blame::from).collect(),
        });
        serializer.collect_seq(std::iter::once(info).chain(bad_request))
    }
}

#[derive(Serialize)]
#[serde(tag = "@type")]
enum Detail<'a> {
    #[serde(rename = "type.googleapis.com/google.rpc.ErrorInfo")]
    ErrorInfo {
        reason: &'static str,
        domain: &'static str,
        #[serde(skip_serializing_if = "Pairs::is_empty")]
        metadata: Pairs<'a>,
    },
    #[serde(rename = "type.googleapis.com/google.rpc.BadRequest")]
    BadRequest {
        #[serde(rename = "fieldViolations")]
        field_violations: Vec<Blame<'a>>,
    },
}

#[derive(Serialize)]
struct Blame<'a> {
    field: &'a str,
    description: &'a str,
}

impl<'a> From<&'a FieldViolation> for Blame<'a> {
    fn from(violation: &'a FieldViolation) -> Self {
        Self {
            field: &violation.field,
            description: &violation.description,
        }
    }
}

struct Pairs<'a>(&'a [(&'static str, String)]);

impl Pairs<'_> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Pairs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests;
