//! The words that 0.3 has for what 1.0 calls by its schema's names.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer};

use crate::{ErrorKind, Role, TaskState};

/// Marks a part whose data was no object and is now the `value` of one.
pub(super) const WRAPPED: &str = "data_part_compat";

/// The name of a state in JSON-RPC.
pub(super) const fn state(state: TaskState) -> &'static str {
    match state {
        TaskState::Unspecified => "unknown",
        TaskState::Submitted => "submitted",
        TaskState::Working => "working",
        TaskState::Completed => "completed",
        TaskState::Failed => "failed",
        TaskState::Canceled => "canceled",
        TaskState::InputRequired => "input-required",
        TaskState::Rejected => "rejected",
        TaskState::AuthRequired => "auth-required",
    }
}

/// The name of a role in JSON-RPC, which has none for "not given".
pub(super) const fn role(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Agent | Role::Unspecified => "agent",
    }
}

fn state_of(word: &str) -> Option<TaskState> {
    // The schema of 0.3 spells this one with two l, and peers do as they like.
    if matches!(word, "TASK_STATE_CANCELLED" | "cancelled") {
        return Some(TaskState::Canceled);
    }
    let by_word = || TaskState::ALL.iter().find(|it| state(**it) == word);
    TaskState::from_name(word).or_else(|| by_word().copied())
}

fn role_of(word: &str) -> Option<Role> {
    match word {
        "user" => Some(Role::User),
        "agent" => Some(Role::Agent),
        _ => Role::from_name(word),
    }
}

/// A state in any spelling.
pub(super) struct AnyState(pub(super) TaskState);

/// A role in any spelling.
pub(super) struct AnyRole(pub(super) Role);

impl<'de> Deserialize<'de> for AnyState {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spelling = Spelling {
            expected: "a state such as `working`",
            by_word: state_of,
            by_number: TaskState::from_number,
        };
        deserializer.deserialize_any(spelling).map(Self)
    }
}

impl<'de> Deserialize<'de> for AnyRole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spelling = Spelling {
            expected: "`user` or `agent`",
            by_word: role_of,
            by_number: Role::from_number,
        };
        deserializer.deserialize_any(spelling).map(Self)
    }
}

struct Spelling<T> {
    expected: &'static str,
    by_word: fn(&str) -> Option<T>,
    by_number: fn(i32) -> Option<T>,
}

impl<T> Spelling<T> {
    fn number<E: de::Error>(&self, number: i64, unexpected: de::Unexpected<'_>) -> Result<T, E> {
        let known = i32::try_from(number).ok().and_then(self.by_number);
        known.ok_or_else(|| E::invalid_value(unexpected, &self.expected))
    }
}

impl<T> de::Visitor<'_> for Spelling<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<T, E> {
        let unexpected = || E::invalid_value(de::Unexpected::Str(word), &self);
        (self.by_word)(word).ok_or_else(unexpected)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        self.number(number, de::Unexpected::Signed(number))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        let signed = i64::try_from(number).unwrap_or(i64::MAX);
        self.number(signed, de::Unexpected::Unsigned(number))
    }
}

/// The name of an error's class, which 0.3 peers put into HTTP+JSON bodies and before the text of gRPC statuses
/// (V03-24, V03-25).
#[must_use]
pub const fn error_name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::TaskNotFound => "TaskNotFoundError",
        ErrorKind::TaskNotCancelable => "TaskNotCancelableError",
        ErrorKind::PushNotificationNotSupported => "PushNotificationNotSupportedError",
        ErrorKind::UnsupportedOperation => "UnsupportedOperationError",
        ErrorKind::ContentTypeNotSupported => "ContentTypeNotSupportedError",
        ErrorKind::InvalidAgentResponse => "InvalidAgentResponseError",
        ErrorKind::ExtendedAgentCardNotConfigured => "AuthenticatedExtendedCardNotConfiguredError",
        ErrorKind::ExtensionSupportRequired => "ExtensionSupportRequiredError",
        ErrorKind::VersionNotSupported => "VersionNotSupportedError",
        ErrorKind::Parse => "JSONParseError",
        ErrorKind::InvalidRequest => "InvalidRequestError",
        ErrorKind::MethodNotFound => "MethodNotFoundError",
        ErrorKind::InvalidParams => "InvalidParamsError",
        ErrorKind::Internal => "InternalError",
        ErrorKind::Unauthenticated => "UnauthenticatedError",
        ErrorKind::PermissionDenied => "PermissionDeniedError",
        ErrorKind::ResourceExhausted => "ResourceExhaustedError",
        ErrorKind::Unavailable => "UnavailableError",
    }
}

/// The kind that a class name means.
#[must_use]
pub fn kind_of_error_name(name: &str) -> Option<ErrorKind> {
    ErrorKind::ALL
        .into_iter()
        .find(|kind| error_name(*kind) == name)
}
