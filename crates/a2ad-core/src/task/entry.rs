//! What a journal holds: numbered entries, and the records that their bytes spell.

use a2ad_proto::{
    Message, Metadata, StreamResponse, Task, TaskArtifactUpdateEvent, TaskState,
    TaskStatusUpdateEvent,
};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::keys::{Attempt, Number};

/// The format of entry bytes that this code writes: the 1.0 ProtoJSON of a `StreamResponse` for
/// visible entries, [`Hidden`] as JSON for the others.
pub const FORMAT: u8 = 1;

/// What an entry says.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// The task began. Visible as the stream's `task` frame.
    Submitted(Task),
    /// The status changed, or the agent said something about its progress. Visible.
    Status(TaskStatusUpdateEvent),
    /// A piece of output. Visible.
    Artifact(TaskArtifactUpdateEvent),
    /// Kept, numbered, but never shown as a frame.
    Hidden(Hidden),
}

/// Records that are no stream frames.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hidden {
    /// A further message of the client to the task; opens a turn.
    Message(Message),
    /// What came with the message of a turn beside the message itself.
    Request {
        /// The turn it belongs to.
        turn: Number,
        /// The request's own metadata.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Metadata>,
        /// The media types the client can take; empty means any.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        accepted_output_modes: Vec<String>,
    },
    /// Somebody began to work on a turn.
    Attempt {
        /// The turn.
        turn: Number,
        /// Its lease.
        attempt: Attempt,
    },
    /// An attempt ended without an outcome; the turn is tried again or has died.
    AttemptEnded {
        /// The turn.
        turn: Number,
        /// Its lease.
        attempt: Attempt,
        /// Why.
        reason: Broken,
    },
    /// A turn ended that nobody had begun: together with its task, or because there was nothing to
    /// work on.
    TurnDropped {
        /// The turn.
        turn: Number,
    },
    /// The status that follows is the agent's direct reply: whoever made the task is answered
    /// with its message alone.
    Replied {
        /// The turn that it ends.
        turn: Number,
    },
    /// The client asked to cancel.
    CancelRequested {
        /// The cancel request's metadata.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Metadata>,
    },
}

/// Why an attempt ended without an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Broken {
    /// The agent failed in a way that may pass.
    Failed,
    /// Its holder went away: a crash, a lost lease.
    Lost,
    /// Its holder handed it back in good order.
    Released,
    /// It ran past its deadline.
    Deadline,
}

impl Broken {
    /// Every reason.
    pub(crate) const ALL: [Self; 4] = [Self::Failed, Self::Lost, Self::Released, Self::Deadline];

    /// What metrics call it.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Lost => "lost",
            Self::Released => "released",
            Self::Deadline => "deadline",
        }
    }
}

/// What can be known of an entry without parsing its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Shown as a stream frame.
    pub visible: bool,
    /// A passing text delta: streamed and replayed, never folded.
    pub delta: bool,
    /// Carries data of a protocol extension, so it is rendered per caller.
    pub extension: bool,
    /// The state it puts the task in, if it is about the status.
    pub state: Option<TaskState>,
}

impl Shape {
    const VISIBLE: u8 = 1;
    const DELTA: u8 = 2;
    const EXTENSION: u8 = 4;

    /// One byte for the store: flags below, the state above.
    #[must_use]
    pub fn to_byte(self) -> u8 {
        let state = self.state.map_or(0, |state| state as u8) << 4;
        state
            | if self.visible { Self::VISIBLE } else { 0 }
            | if self.delta { Self::DELTA } else { 0 }
            | if self.extension { Self::EXTENSION } else { 0 }
    }

    /// The reverse of [`to_byte`](Self::to_byte).
    #[must_use]
    pub fn from_byte(byte: u8) -> Self {
        let state = match byte >> 4 {
            0 => None,
            number => TaskState::from_number(i32::from(number)),
        };
        Self {
            visible: byte & Self::VISIBLE != 0,
            delta: byte & Self::DELTA != 0,
            extension: byte & Self::EXTENSION != 0,
            state,
        }
    }
}

impl Record {
    /// Adds its bytes to `out`, and says what can be known without reading them.
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> Shape {
        let visible = |extension, state| Shape {
            visible: true,
            delta: false,
            extension,
            state,
        };
        match self {
            Self::Submitted(task) => {
                a2ad_proto::write_json(&StreamResponseRef::Task(task), out);
                let extension = task.history.iter().any(|said| !said.extensions.is_empty());
                visible(extension, Some(task.status.state))
            }
            Self::Status(update) => {
                a2ad_proto::write_json(&StreamResponseRef::StatusUpdate(update), out);
                let said = update.status.message.as_ref();
                let extension = said.is_some_and(|said| !said.extensions.is_empty());
                visible(extension, Some(update.status.state))
            }
            Self::Artifact(update) => {
                a2ad_proto::write_json(&StreamResponseRef::ArtifactUpdate(update), out);
                visible(!update.artifact.extensions.is_empty(), None)
            }
            Self::Hidden(hidden) => {
                a2ad_proto::write_json(hidden, out);
                Shape {
                    visible: false,
                    delta: false,
                    extension: false,
                    state: None,
                }
            }
        }
    }
}

/// One numbered record of a journal, as bytes that all readers share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its place in the journal.
    pub number: Number,
    /// What can be known without parsing.
    pub shape: Shape,
    /// The record's bytes in [`FORMAT`].
    pub bytes: Bytes,
}

/// Bytes of a journal that do not spell a record.
#[derive(Debug, thiserror::Error)]
#[error("entry {number} cannot be read")]
pub struct CorruptEntry {
    /// Which entry.
    pub number: Number,
    /// What is wrong with its bytes.
    #[source]
    pub source: serde_json::Error,
}

impl Entry {
    /// Gives `record` its number and its bytes.
    #[must_use]
    pub fn encode(number: Number, record: &Record) -> Self {
        let mut bytes = Vec::new();
        let shape = record.write(&mut bytes);
        Self {
            number,
            shape,
            bytes: Bytes::from(bytes),
        }
    }

    /// Reads the record back.
    pub fn record(&self) -> Result<Record, CorruptEntry> {
        let corrupt = |source| CorruptEntry {
            number: self.number,
            source,
        };
        if !self.shape.visible {
            return serde_json::from_slice(&self.bytes)
                .map(Record::Hidden)
                .map_err(corrupt);
        }
        match serde_json::from_slice(&self.bytes).map_err(corrupt)? {
            StreamResponse::Task(task) => Ok(Record::Submitted(task)),
            StreamResponse::StatusUpdate(update) => Ok(Record::Status(update)),
            StreamResponse::ArtifactUpdate(update) => Ok(Record::Artifact(update)),
            StreamResponse::Message(_) => Err(corrupt(serde::de::Error::custom(
                "a journal holds no bare message",
            ))),
        }
    }
}

/// A `StreamResponse` that borrows, so that writing an entry copies nothing.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum StreamResponseRef<'a> {
    Task(&'a Task),
    StatusUpdate(&'a TaskStatusUpdateEvent),
    ArtifactUpdate(&'a TaskArtifactUpdateEvent),
}
