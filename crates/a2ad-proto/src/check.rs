//! Reading requests and saying what is wrong with them.

use std::fmt;

use serde::de::{DeserializeOwned, IgnoredAny};

use crate::wire::{Path, shorten, split};
use crate::{
    Artifact, ArtifactId, CancelTaskRequest, ContextId, DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest, GetTaskRequest, IdError,
    ListTaskPushNotificationConfigsRequest, ListTasksRequest, Message, MessageId, Role,
    SendMessageRequest, SubscribeToTaskRequest, TaskPushNotificationConfig,
};

/// One thing wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldViolation {
    /// The path of the member in JSON names, such as `message.parts[0].raw`; empty for the whole value.
    pub field: String,
    /// What is wrong with it.
    pub description: String,
}

/// Everything found wrong with a request; the content of a `google.rpc.BadRequest` (ERR-03).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Violations(pub Vec<FieldViolation>);

impl std::error::Error for Violations {}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, FieldViolation { field, description }) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("; ")?;
            }
            if !field.is_empty() {
                write!(f, "{field}: ")?;
            }
            f.write_str(description)?;
        }
        Ok(())
    }
}

impl Violations {
    /// One violation.
    pub fn one(field: impl Into<String>, description: impl Into<String>) -> Self {
        let mut violations = Self::default();
        violations.add(field, description);
        violations
    }

    /// Adds a violation.
    pub fn add(&mut self, field: impl Into<String>, description: impl Into<String>) {
        self.0.push(FieldViolation {
            field: field.into(),
            description: description.into(),
        });
    }

    /// Puts `step` before the path of every violation.
    #[cold]
    pub(crate) fn at(mut self, step: Path<'_>) -> Self {
        for FieldViolation { field, .. } in &mut self.0 {
            let between = if field.is_empty() || field.starts_with('[') {
                ""
            } else {
                "."
            };
            *field = format!("{step}{between}{field}");
        }
        self
    }

    fn require(&mut self, field: &str, is_set: bool) {
        self.require_in("", field, is_set);
    }

    /// Names are put together only for what is wrong: nearly all requests are right.
    fn require_in(&mut self, path: &str, name: &str, is_set: bool) {
        if !is_set {
            self.add(join(path, name), "is required");
        }
    }

    fn id(&mut self, path: &str, name: &str, checked: Result<(), IdError>) {
        if let Err(error) = checked {
            self.add(join(path, name), error.to_string());
        }
    }

    fn history_length(&mut self, field: &str, length: Option<i32>) {
        if length.is_some_and(|length| length < 0) {
            self.add(field, "must not be negative");
        }
    }

    fn message(&mut self, path: &str, message: &Message) {
        self.id(path, "messageId", MessageId::check(&message.message_id));
        if !message.context_id.is_empty() {
            self.id(path, "contextId", ContextId::check(&message.context_id));
        }
        self.require_in(path, "role", message.role != Role::Unspecified);
        self.require_in(path, "parts", !message.parts.is_empty());
    }

    fn push_config(&mut self, path: &str, config: &TaskPushNotificationConfig) {
        self.require_in(path, "url", !config.url.is_empty());
        if let Some(authentication) = &config.authentication {
            let is_set = !authentication.scheme.is_empty();
            self.require_in(path, "authentication.scheme", is_set);
        }
    }

    fn into_result(self) -> Result<(), Self> {
        if self.0.is_empty() { Ok(()) } else { Err(self) }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

impl Message {
    /// Checks what the schema requires of any message (MODEL-02).
    ///
    /// # Errors
    /// With every violation found.
    pub fn check(&self) -> Result<(), Violations> {
        let mut found = Violations::default();
        found.message("", self);
        found.into_result()
    }
}

impl Artifact {
    /// Checks what the schema requires of any artifact (MODEL-02).
    ///
    /// # Errors
    /// With every violation found.
    pub fn check(&self) -> Result<(), Violations> {
        let mut found = Violations::default();
        found.id("", "artifactId", ArtifactId::check(&self.artifact_id));
        found.require("parts", !self.parts.is_empty());
        found.into_result()
    }
}

impl SendMessageRequest {
    /// Checks the request as a server does (SEND-06, SEND-07, HIST-04). The task id is left to the engine: a
    /// malformed one is a task that does not exist.
    ///
    /// # Errors
    /// With every violation found.
    pub fn check(&self) -> Result<(), Violations> {
        let mut found = Violations::default();
        found.require("message", self.message.is_some());
        if let Some(message) = &self.message {
            found.message("message", message);
            if message.role == Role::Agent {
                found.add("message.role", "must be ROLE_USER");
            }
        }
        if let Some(configuration) = &self.configuration {
            found.history_length("configuration.historyLength", configuration.history_length);
            if let Some(config) = &configuration.task_push_notification_config {
                found.push_config("configuration.taskPushNotificationConfig", config);
            }
        }
        found.into_result()
    }
}

impl GetTaskRequest {
    /// Checks that a task is named and the history length is not negative.
    ///
    /// # Errors
    /// With every violation found.
    pub fn check(&self) -> Result<(), Violations> {
        let mut found = Violations::default();
        found.require("id", !self.id.is_empty());
        found.history_length("historyLength", self.history_length);
        found.into_result()
    }
}

impl ListTasksRequest {
    /// Checks the page size, which is refused rather than clamped, and the history length.
    ///
    /// # Errors
    /// With every violation found.
    pub fn check(&self) -> Result<(), Violations> {
        let mut found = Violations::default();
        let size = self.page_size.unwrap_or(Self::PAGE_SIZE_DEFAULT);
        if !(1..=Self::PAGE_SIZE_MAX).contains(&size) {
            found.add("pageSize", "must be between 1 and 100");
        }
        found.history_length("historyLength", self.history_length);
        found.into_result()
    }
}

impl TaskPushNotificationConfig {
    /// Checks a configuration to be created: it needs a task, a URL and, with authentication, a scheme.
    ///
    /// # Errors
    /// With every violation found.
    pub fn check(&self) -> Result<(), Violations> {
        let mut found = Violations::default();
        found.require("taskId", !self.task_id.is_empty());
        found.push_config("", self);
        found.into_result()
    }
}

impl ListTaskPushNotificationConfigsRequest {
    /// Checks that a task is named and the page size is not negative.
    ///
    /// # Errors
    /// With every violation found.
    pub fn check(&self) -> Result<(), Violations> {
        let mut found = Violations::default();
        found.require("taskId", !self.task_id.is_empty());
        if self.page_size < 0 {
            found.add("pageSize", "must not be negative");
        }
        found.into_result()
    }
}

/// Requests that are right as soon as they name what they are about.
macro_rules! check_named {
    ($($request:ty: $($field:ident $json:literal),+;)*) => {$(
        impl $request {
            /// Checks that the request names what it is about.
            ///
            /// # Errors
            /// With every violation found.
            pub fn check(&self) -> Result<(), Violations> {
                let mut found = Violations::default();
                $(found.require($json, !self.$field.is_empty());)+
                found.into_result()
            }
        }
    )*};
}

check_named! {
    CancelTaskRequest: id "id";
    SubscribeToTaskRequest: id "id";
    GetTaskPushNotificationConfigRequest: task_id "taskId", id "id";
    DeleteTaskPushNotificationConfigRequest: task_id "taskId", id "id";
}

/// Reads a value; what has the wrong type is named by its path.
///
/// # Errors
/// With the first violation found. Its field is empty if the text is not JSON at all, which
/// [`is_json`] tells apart, or not an object.
pub fn from_json<T: DeserializeOwned>(text: &[u8]) -> Result<T, Violations> {
    // Checking the encoding of all the text at once is faster than string by string.
    let Ok(text) = std::str::from_utf8(text) else {
        return Err(Violations::one("", "not JSON: not UTF-8"));
    };
    serde_json::from_str(text).map_err(|error| {
        // A syntax error is nobody's field, wherever the reader happened to be.
        if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
            return Violations::one("", format!("not JSON: {error}"));
        }
        violation(&error)
    })
}

/// What the reader says is wrong, where.
pub(crate) fn violation(error: &serde_json::Error) -> Violations {
    let text = error.to_string();
    // The position in the text adds nothing to the path.
    let text = text
        .rsplit_once(" at line ")
        .map_or(&*text, |(text, _)| text);
    let (field, description) = split(text);
    Violations::one(field, shorten(description))
}

/// Whether the text is well-formed JSON: a request that is not is a parse error, any other bad one is not.
#[must_use]
pub fn is_json(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok())
}
