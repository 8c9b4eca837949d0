//! The closed set of protocol errors and how each binding shows them.

/// The `domain` of every `google.rpc.ErrorInfo` the protocol defines.
pub const ERROR_DOMAIN: &str = "a2a-protocol.org";

/// What went wrong, as the protocol tells its clients. Every binding shows the same kind (ERR-08).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The task does not exist or is not visible to the caller.
    TaskNotFound,
    /// The task has ended and cannot be canceled.
    TaskNotCancelable,
    /// The agent offers no push notifications.
    PushNotificationNotSupported,
    /// The agent does not offer the operation, or not in the task's state.
    UnsupportedOperation,
    /// A part has a media type the agent does not take, or it cannot produce any accepted one.
    ContentTypeNotSupported,
    /// The agent behind us answered with something that is not A2A.
    InvalidAgentResponse,
    /// The extended card is announced but none is configured.
    ExtendedAgentCardNotConfigured,
    /// The client does not declare an extension the agent requires.
    ExtensionSupportRequired,
    /// The protocol version asked for is not served.
    VersionNotSupported,
    /// The body is not JSON.
    Parse,
    /// The body is JSON but not a request.
    InvalidRequest,
    /// There is no such method or path.
    MethodNotFound,
    /// The request's content is wrong; the violations say where.
    InvalidParams,
    /// Our fault.
    Internal,
    /// The caller did not say who it is.
    Unauthenticated,
    /// The caller may not do this.
    PermissionDenied,
    /// The caller exceeded a limit.
    ResourceExhausted,
    /// We cannot serve the request now.
    Unavailable,
}

struct Row {
    json_rpc_code: i32,
    http_status: u16,
    grpc: Grpc,
    reason: &'static str,
}

struct Grpc(i32, &'static str);

const INVALID_ARGUMENT: Grpc = Grpc(3, "INVALID_ARGUMENT");
const NOT_FOUND: Grpc = Grpc(5, "NOT_FOUND");
const PERMISSION_DENIED: Grpc = Grpc(7, "PERMISSION_DENIED");
const RESOURCE_EXHAUSTED: Grpc = Grpc(8, "RESOURCE_EXHAUSTED");
const FAILED_PRECONDITION: Grpc = Grpc(9, "FAILED_PRECONDITION");
const UNIMPLEMENTED: Grpc = Grpc(12, "UNIMPLEMENTED");
const INTERNAL: Grpc = Grpc(13, "INTERNAL");
const UNAVAILABLE: Grpc = Grpc(14, "UNAVAILABLE");
const UNAUTHENTICATED: Grpc = Grpc(16, "UNAUTHENTICATED");

impl ErrorKind {
    /// Every kind, in the order of the specification's table.
    pub const ALL: [Self; 18] = [
        Self::TaskNotFound,
        Self::TaskNotCancelable,
        Self::PushNotificationNotSupported,
        Self::UnsupportedOperation,
        Self::ContentTypeNotSupported,
        Self::InvalidAgentResponse,
        Self::ExtendedAgentCardNotConfigured,
        Self::ExtensionSupportRequired,
        Self::VersionNotSupported,
        Self::Parse,
        Self::InvalidRequest,
        Self::MethodNotFound,
        Self::InvalidParams,
        Self::Internal,
        Self::Unauthenticated,
        Self::PermissionDenied,
        Self::ResourceExhausted,
        Self::Unavailable,
    ];

    // The table of specification section 5.4; the rows after VersionNotSupported are partly our choice.
    #[rustfmt::skip]
    const fn row(self) -> Row {
        const fn row(json_rpc_code: i32, http_status: u16, grpc: Grpc, reason: &'static str) -> Row {
            Row { json_rpc_code, http_status, grpc, reason }
        }
        match self {
            Self::TaskNotFound                   => row(-32001, 404, NOT_FOUND,           "TASK_NOT_FOUND"),
            Self::TaskNotCancelable              => row(-32002, 400, FAILED_PRECONDITION, "TASK_NOT_CANCELABLE"),
            Self::PushNotificationNotSupported   => row(-32003, 400, FAILED_PRECONDITION, "PUSH_NOTIFICATION_NOT_SUPPORTED"),
            Self::UnsupportedOperation           => row(-32004, 400, FAILED_PRECONDITION, "UNSUPPORTED_OPERATION"),
            Self::ContentTypeNotSupported        => row(-32005, 400, INVALID_ARGUMENT,    "CONTENT_TYPE_NOT_SUPPORTED"),
            Self::InvalidAgentResponse           => row(-32006, 500, INTERNAL,            "INVALID_AGENT_RESPONSE"),
            Self::ExtendedAgentCardNotConfigured => row(-32007, 400, FAILED_PRECONDITION, "EXTENDED_AGENT_CARD_NOT_CONFIGURED"),
            Self::ExtensionSupportRequired       => row(-32008, 400, FAILED_PRECONDITION, "EXTENSION_SUPPORT_REQUIRED"),
            Self::VersionNotSupported            => row(-32009, 400, FAILED_PRECONDITION, "VERSION_NOT_SUPPORTED"),
            Self::Parse                          => row(-32700, 400, INVALID_ARGUMENT,    "PARSE_ERROR"),
            Self::InvalidRequest                 => row(-32600, 400, INVALID_ARGUMENT,    "INVALID_REQUEST"),
            Self::MethodNotFound                 => row(-32601, 404, UNIMPLEMENTED,       "METHOD_NOT_FOUND"),
            Self::InvalidParams                  => row(-32602, 400, INVALID_ARGUMENT,    "INVALID_PARAMS"),
            Self::Internal                       => row(-32603, 500, INTERNAL,            "INTERNAL_ERROR"),
            // These four travel as HTTP statuses; the codes are for the rare case they end up in a JSON-RPC body.
            // The first two are the ones the Go SDK uses there.
            Self::Unauthenticated                => row(-31401, 401, UNAUTHENTICATED,     "UNAUTHENTICATED"),
            Self::PermissionDenied               => row(-31403, 403, PERMISSION_DENIED,   "PERMISSION_DENIED"),
            Self::ResourceExhausted              => row(-32603, 429, RESOURCE_EXHAUSTED,  "RESOURCE_EXHAUSTED"),
            Self::Unavailable                    => row(-32603, 503, UNAVAILABLE,         "UNAVAILABLE"),
        }
    }

    /// The `code` of a JSON-RPC error object.
    #[must_use]
    pub const fn json_rpc_code(self) -> i32 {
        self.row().json_rpc_code
    }

    /// The HTTP status on the HTTP+JSON binding.
    #[must_use]
    pub const fn http_status(self) -> u16 {
        self.row().http_status
    }

    /// The number of the gRPC status.
    #[must_use]
    pub const fn grpc_code(self) -> i32 {
        self.row().grpc.0
    }

    /// The name of the gRPC status, which HTTP+JSON error bodies carry too (ERR-05).
    #[must_use]
    pub const fn grpc_status_name(self) -> &'static str {
        self.row().grpc.1
    }

    /// The `reason` of the `google.rpc.ErrorInfo` detail.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        self.row().reason
    }

    /// The kind a peer's `ErrorInfo` names.
    #[must_use]
    pub fn from_reason(reason: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.reason() == reason)
    }

    /// The kind a peer's JSON-RPC code means; of those sharing a code, the most general one.
    #[must_use]
    pub fn from_json_rpc_code(code: i32) -> Option<Self> {
        // `Internal` comes before the kinds that share its code.
        Self::ALL
            .into_iter()
            .find(|kind| kind.json_rpc_code() == code)
    }
}
