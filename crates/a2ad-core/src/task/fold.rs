//! From a journal to the task that clients see.

use a2ad_proto::{
    Artifact, Message, Metadata, Role, Task, TaskArtifactUpdateEvent, TaskState,
    TaskStatusUpdateEvent,
};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::entry::{Hidden, Record};
use super::splice::shorten;
use crate::keys::{Attempt, Number};

/// A task as its journal tells it so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fold {
    /// What clients see.
    pub task: Task,
    /// The number of the last entry folded in.
    pub version: Number,
    marks: Marks,
}

/// What the journal says beside the task itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Marks {
    /// Where the running attempt began, so that a later attempt can take back what it said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attempt: Option<AttemptMark>,
    /// The status message is a direct reply.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    replied: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct AttemptMark {
    turn: Number,
    attempt: Attempt,
    /// Messages from here on were said since the attempt began.
    history_from: usize,
    /// So was the current status message.
    said_status: bool,
}

/// Folds the next record into `fold`. Total: replaying a journal cannot fail.
pub fn apply(fold: &mut Fold, record: Record) {
    fold.version = fold.version.next();
    match record {
        Record::Submitted(task) => {
            fold.task = task;
            fold.marks = Marks::default();
        }
        Record::Status(update) => apply_status(fold, update),
        Record::Artifact(update) => apply_artifact(&mut fold.task.artifacts, update),
        Record::Hidden(Hidden::Message(message)) => {
            // The question that this message answers stands before it in the history.
            fold.task.history.extend(fold.task.status.message.take());
            fold.task.history.push(message);
        }
        Record::Hidden(Hidden::Attempt { turn, attempt }) => begin_attempt(fold, turn, attempt),
        Record::Hidden(Hidden::Replied { .. }) => {
            // Who has written to the task meanwhile, even if there was nothing in it, knows it as a
            // task (SEND-15).
            let asked = fold.task.history.iter().filter(|it| it.role == Role::User);
            fold.marks.replied = asked.count() <= 1;
        }
        Record::Hidden(
            Hidden::Request { .. }
            | Hidden::AttemptEnded { .. }
            | Hidden::TurnDropped { .. }
            | Hidden::CancelRequested { .. },
        ) => {}
    }
}

fn apply_status(fold: &mut Fold, update: TaskStatusUpdateEvent) {
    fold.task.history.extend(fold.task.status.message.take());
    let ended = update.status.state.is_terminal();
    fold.task.status = update.status;
    add_metadata(&mut fold.task.metadata, update.metadata);
    if ended {
        // No attempt follows that would take anything back.
        fold.marks.attempt = None;
    } else if let Some(mark) = &mut fold.marks.attempt {
        mark.said_status = true;
    }
}

fn begin_attempt(fold: &mut Fold, turn: Number, attempt: Attempt) {
    if let Some(dead) = fold.marks.attempt.take()
        && dead.turn == turn
    {
        // What the dead attempt said is said again by this one; what the client said stays.
        let from = dead.history_from.min(fold.task.history.len());
        let since = fold.task.history.split_off(from);
        fold.task
            .history
            .extend(since.into_iter().filter(|said| said.role == Role::User));
        if dead.said_status {
            fold.task.status.message = None;
        }
    }
    fold.marks.attempt = Some(AttemptMark {
        turn,
        attempt,
        history_from: fold.task.history.len(),
        said_status: false,
    });
}

fn apply_artifact(artifacts: &mut Vec<Artifact>, update: TaskArtifactUpdateEvent) {
    let new = update.artifact;
    let known = artifacts
        .iter_mut()
        .find(|known| known.artifact_id == new.artifact_id);
    match known {
        None => artifacts.push(new),
        Some(known) if !update.append => *known = new,
        Some(known) => {
            known.parts.extend(new.parts);
            add_metadata(&mut known.metadata, new.metadata);
            for uri in new.extensions {
                if !known.extensions.contains(&uri) {
                    known.extensions.push(uri);
                }
            }
        }
    }
}

fn add_metadata(known: &mut Option<Metadata>, more: Option<Metadata>) {
    if let Some(more) = more {
        *known = Some(match known.take() {
            Some(old) => old.merged(&more),
            None => more,
        });
    }
}

/// [`Marks`] that say nothing, which is what most ended tasks have.
const NO_MARKS: Bytes = Bytes::from_static(b"{}");
/// No artifacts, as they are written.
const NO_ARTIFACTS: Bytes = Bytes::from_static(b"[]");

/// A fold as bytes. Artifacts stand apart, so that lists need not read them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The number of the last entry folded in.
    pub version: Number,
    /// What later folding needs and clients do not see.
    pub marks: Bytes,
    /// The task as 1.0 ProtoJSON, without its artifacts.
    pub body: Bytes,
    /// The artifacts, as a JSON array.
    pub artifacts: Bytes,
}

/// Stored snapshot bytes that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the snapshot at {version} cannot be read")]
pub struct CorruptSnapshot {
    /// Which version it claims.
    pub version: Number,
    /// What is wrong with its bytes.
    #[source]
    pub source: serde_json::Error,
}

impl Fold {
    /// The agent's direct reply, if that is what the task came to.
    #[must_use]
    pub fn reply(&self) -> Option<&Message> {
        let ended = self.task.status.state == TaskState::Completed;
        let said = self.task.status.message.as_ref();
        said.filter(|_| self.marks.replied && ended)
    }

    /// Freezes the fold. (It is as before afterwards; it lends its artifacts out for a moment.)
    #[must_use]
    pub fn snapshot(&mut self) -> Snapshot {
        let artifacts = std::mem::take(&mut self.task.artifacts);
        let body = a2ad_proto::to_json(&self.task).into();
        self.task.artifacts = artifacts;
        Snapshot {
            version: self.version,
            marks: if self.marks == Marks::default() {
                NO_MARKS
            } else {
                a2ad_proto::to_json(&self.marks).into()
            },
            body,
            artifacts: if self.task.artifacts.is_empty() {
                NO_ARTIFACTS
            } else {
                a2ad_proto::to_json(&self.task.artifacts).into()
            },
        }
    }

    /// Thaws a snapshot.
    pub fn thaw(snapshot: &Snapshot) -> Result<Self, CorruptSnapshot> {
        let corrupt = |source| CorruptSnapshot {
            version: snapshot.version,
            source,
        };
        let mut task: Task = serde_json::from_slice(&snapshot.body).map_err(corrupt)?;
        task.artifacts = serde_json::from_slice(&snapshot.artifacts).map_err(corrupt)?;
        Ok(Self {
            task,
            version: snapshot.version,
            marks: serde_json::from_slice(&snapshot.marks).map_err(corrupt)?,
        })
    }
}

impl Snapshot {
    /// A task that has ended, and not in a direct reply, from its parts.
    pub(super) fn ended(version: Number, body: Bytes, artifacts: Option<Bytes>) -> Self {
        Self {
            version,
            marks: NO_MARKS,
            body,
            artifacts: artifacts.unwrap_or(NO_ARTIFACTS),
        }
    }

    /// Whether the task may have come to a direct reply: a look at the marks alone. Marks that
    /// cannot be read rule nothing out.
    #[must_use]
    pub fn may_be_reply(&self) -> bool {
        self.marks != NO_MARKS
            && serde_json::from_slice(&self.marks).map_or(true, |marks: Marks| marks.replied)
    }

    /// The whole task as 1.0 ProtoJSON.
    #[must_use]
    pub fn task_json(&self) -> Bytes {
        if self.artifacts == NO_ARTIFACTS {
            return self.body.clone();
        }
        let mut json = Vec::with_capacity(self.body.len() + self.artifacts.len() + 16);
        json.extend_from_slice(&self.body);
        self.add_artifacts(&mut json);
        json.into()
    }

    /// The same with at most the latest `length` messages (HIST-02, HIST-03).
    pub fn shortened_json(&self, length: usize) -> Result<Bytes, CorruptSnapshot> {
        let mut json = Vec::with_capacity(self.body.len() + self.artifacts.len() + 16);
        self.write_body(length, &mut json)?;
        if self.artifacts != NO_ARTIFACTS {
            self.add_artifacts(&mut json);
        }
        Ok(json.into())
    }

    /// Adds the task without its artifacts and with at most the latest `length` messages.
    pub fn write_body(&self, length: usize, json: &mut Vec<u8>) -> Result<(), CorruptSnapshot> {
        if shorten(&self.body, length, json).is_some() {
            return Ok(());
        }
        let mut task: Task =
            serde_json::from_slice(&self.body).map_err(|source| CorruptSnapshot {
                version: self.version,
                source,
            })?;
        task.history
            .drain(..task.history.len().saturating_sub(length));
        a2ad_proto::write_json(&task, json);
        Ok(())
    }

    /// The whole task as the `task` member of a response.
    #[must_use]
    pub fn task_response(&self) -> Bytes {
        let mut json = Vec::with_capacity(self.body.len() + self.artifacts.len() + 32);
        json.extend_from_slice(b"{\"task\":");
        json.extend_from_slice(&self.body);
        if self.artifacts != NO_ARTIFACTS {
            self.add_artifacts(&mut json);
        }
        json.push(b'}');
        json.into()
    }

    /// Adds the artifacts to the task that `json` ends with, also if there are none (LIST-05).
    pub fn add_artifacts(&self, json: &mut Vec<u8>) {
        json.pop_if(|last| *last == b'}');
        json.extend_from_slice(b",\"artifacts\":");
        json.extend_from_slice(&self.artifacts);
        json.push(b'}');
    }

    /// How many bytes it takes to keep.
    #[must_use]
    pub fn size(&self) -> usize {
        self.body.len() + self.artifacts.len() + self.marks.len()
    }
}
