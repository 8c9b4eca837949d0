//! What the engine answers when it cannot do what was asked.

use a2ad_proto::{ErrorKind, Violations};

use crate::store::StoreError;

/// An operation that was not carried out. `Display` is for the client; sources are for the log.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// No such task, not the caller's, or not any more: the same answer for all.
    #[error("Unknown taskId \"{}\" (expired or never existed).", shown(id))]
    TaskNotFound {
        /// The id as the caller gave it.
        id: String,
    },
    /// The task has ended and cannot be canceled.
    #[error("Task cannot be canceled")]
    NotCancelable {
        /// The task's id.
        id: String,
    },
    /// The operation makes no sense for this task or this agent.
    #[error("{0}")]
    Unsupported(String),
    /// The request is wrong; the violations say where.
    #[error("Invalid parameters: {0}")]
    InvalidParams(Violations),
    /// The agent does not take such content, or cannot answer with any that the client takes; the
    /// violations say where. Nothing was begun.
    #[error("Content type not supported: {0}")]
    ContentTypeNotSupported(Violations),
    /// Push notifications are off.
    #[error("Push notifications are not supported by this agent")]
    PushNotSupported,
    /// A bound is reached: the caller may try again later.
    #[error("Too much at once: {0}")]
    Exhausted(&'static str),
    /// The store takes no writes at the moment, or the server is stopping.
    #[error("The server cannot take this at the moment; try again")]
    Unavailable(#[source] Option<StoreError>),
    /// Something that should not happen.
    #[error("Internal error")]
    Internal(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl EngineError {
    /// The protocol's name for it.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::TaskNotFound { .. } => ErrorKind::TaskNotFound,
            Self::NotCancelable { .. } => ErrorKind::TaskNotCancelable,
            Self::Unsupported(_) => ErrorKind::UnsupportedOperation,
            Self::InvalidParams(_) => ErrorKind::InvalidParams,
            Self::ContentTypeNotSupported(_) => ErrorKind::ContentTypeNotSupported,
            Self::PushNotSupported => ErrorKind::PushNotificationNotSupported,
            Self::Exhausted(_) => ErrorKind::ResourceExhausted,
            Self::Unavailable(_) => ErrorKind::Unavailable,
            Self::Internal(_) => ErrorKind::Internal,
        }
    }

    /// The task it is about, if that may be told.
    #[must_use]
    pub fn task_id(&self) -> Option<&str> {
        match self {
            Self::TaskNotFound { id } | Self::NotCancelable { id } => Some(id),
            Self::Unsupported(_)
            | Self::InvalidParams(_)
            | Self::ContentTypeNotSupported(_)
            | Self::PushNotSupported
            | Self::Exhausted(_)
            | Self::Unavailable(_)
            | Self::Internal(_) => None,
        }
    }

    /// A wrong member of a request.
    pub(crate) fn invalid(field: &str, description: impl Into<String>) -> Self {
        Self::InvalidParams(Violations(vec![a2ad_proto::FieldViolation {
            field: field.to_owned(),
            description: description.into(),
        }]))
    }

    pub(crate) fn not_found(id: &str) -> Self {
        Self::TaskNotFound { id: id.to_owned() }
    }
}

/// No id of ours is as long, and nobody has to read more of another.
const SHOWN_MAX: usize = 128;

fn shown(id: &str) -> std::borrow::Cow<'_, str> {
    match id.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &id[..end]).into(),
        None => id.into(),
    }
}

impl From<Violations> for EngineError {
    fn from(violations: Violations) -> Self {
        Self::InvalidParams(violations)
    }
}

impl From<StoreError> for EngineError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Full(_) | StoreError::Unavailable(_) | StoreError::Stopped(_) => {
                Self::Unavailable(Some(error))
            }
            StoreError::Corrupt(_) => Self::Internal(Box::new(error)),
        }
    }
}
