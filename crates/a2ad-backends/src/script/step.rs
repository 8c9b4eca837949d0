//! What a script can do.

use std::time::Duration;

use a2ad_proto::{ArtifactId, Json};
use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::written::{WrittenArtifact, WrittenDeltas, WrittenPart};
use crate::units;

/// One step, named by its only key.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Step {
    /// A word about progress.
    Status(Words),
    /// Text of the answer, which goes to the turn's `response` artifact.
    Text(Deltas),
    /// An artifact, at once or in chunks. One with the same id is replaced.
    Artifact(ArtifactStep),
    /// Waits; a cancel ends it.
    Wait(Pause),
    /// Ends the turn with a question to the client.
    Ask(Words),
    /// Ends the turn because an authorisation is needed.
    Auth(Words),
    /// Answers with a message instead of a task. If it is not the first answer in the task, or not
    /// the first step that says something, it is the same as `complete`.
    Message(Reply),
    /// Ends the task: completed. So does a script that just ends.
    Complete(Words),
    /// Ends the task: failed.
    Fail(Words),
    /// Ends the task: rejected.
    Reject(Words),
    /// Works until the task is canceled.
    Hold(Hold),
}

impl Step {
    /// The key, if nothing can come after such a step.
    pub(super) fn ends(&self) -> Option<&'static str> {
        match self {
            Self::Ask(_) => Some("ask"),
            Self::Auth(_) => Some("auth"),
            Self::Message(_) => Some("message"),
            Self::Complete(_) => Some("complete"),
            Self::Fail(_) => Some("fail"),
            Self::Reject(_) => Some("reject"),
            Self::Hold(_) => Some("hold"),
            Self::Status(_) | Self::Text(_) | Self::Artifact(_) | Self::Wait(_) => None,
        }
    }
}

/// What a message says: a text, a list of parts, or nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub(super) struct Words(pub(super) Vec<PartStep>);

/// What a message says that has to say something: a text, or a list of parts.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub(super) struct Reply(pub(super) Vec<PartStep>);

/// Pieces of text.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(into = "WrittenDeltas")]
pub(super) struct Deltas {
    pub(super) pieces: Pieces,
    /// The pause between two, if there is one.
    pub(super) every: Option<Duration>,
    /// Each is written down before the next is said.
    pub(super) flush: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Pieces {
    /// As they stand.
    Listed(Vec<String>),
    /// One text, cut before each word once it is filled in.
    Words(String),
}

/// An artifact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "WrittenArtifact", into = "WrittenArtifact")]
#[schemars(with = "WrittenArtifact", rename = "Artifact")]
pub(super) struct ArtifactStep {
    pub(super) id: ArtifactId,
    pub(super) name: String,
    pub(super) description: String,
    /// At least one, and none of them is empty.
    pub(super) chunks: Vec<Vec<PartStep>>,
    /// The pause between two chunks, if there is one.
    pub(super) every: Option<Duration>,
    /// Each chunk is written down before the next is said.
    pub(super) flush: bool,
}

/// A part, with names that are still to be filled in.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(into = "WrittenPart")]
pub(super) struct PartStep {
    pub(super) content: Content,
    pub(super) media_type: String,
    pub(super) filename: String,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Content {
    Text(String),
    Raw(Bytes),
    Url(String),
    Data(Data),
}

/// A JSON value, with names that are still to be filled in.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Data {
    pub(super) value: Value,
    /// What it always is, if it has no names.
    pub(super) always: Option<Json>,
}

impl From<Value> for Data {
    fn from(value: Value) -> Self {
        let always = (!may_have_names(&value)).then(|| Json::from_value(&value));
        Self { value, always }
    }
}

fn may_have_names(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('{'),
        Value::Array(items) => items.iter().any(may_have_names),
        Value::Object(members) => members.values().any(may_have_names),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

impl PartStep {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self {
            content: Content::Text(text.into()),
            media_type: String::new(),
            filename: String::new(),
        }
    }
}

/// A time to wait.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(super) struct Pause(
    #[serde(with = "units::duration")]
    #[schemars(with = "units::DurationText")]
    pub(super) Duration,
);

/// `true`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(into = "bool")]
pub(super) struct Hold;

impl From<Hold> for bool {
    fn from(_: Hold) -> Self {
        true
    }
}
