//! Tasks, what they produce, and what is told of them.

use serde_json::value::RawValue;

use super::Reader;
use super::content::kind;
use crate::v03::raw::{Read, free, list, members, read, text, texts, time};
use crate::v03::words::AnyState;
use crate::{Artifact, Message, Task, TaskArtifactUpdateEvent, TaskStatus, TaskStatusUpdateEvent};

impl Reader {
    pub(super) fn any_message(self, value: &RawValue) -> Read<Message> {
        self.message(value).map(|found| found.message)
    }

    pub(super) fn task(self, value: &RawValue) -> Read<Task> {
        let mut task = Task::default();
        members(value, |name, value| {
            Ok(Some(match name {
                "kind" => {
                    kind(value, &["task"])?;
                    "kind"
                }
                "id" => {
                    task.id = text(value)?;
                    "id"
                }
                "contextId" | "context_id" => {
                    task.context_id = text(value)?;
                    "contextId"
                }
                "status" => {
                    task.status = self.status(value)?;
                    "status"
                }
                "artifacts" => {
                    task.artifacts = list(value, usize::MAX, |it| self.artifact(it))?;
                    "artifacts"
                }
                "history" => {
                    task.history = list(value, usize::MAX, |it| self.any_message(it))?;
                    "history"
                }
                "metadata" => {
                    task.metadata = free(value)?;
                    "metadata"
                }
                _ => return Ok(None),
            }))
        })?;
        Ok(task)
    }

    fn status(self, value: &RawValue) -> Read<TaskStatus> {
        let mut status = TaskStatus::default();
        members(value, |name, value| {
            Ok(Some(match name {
                "state" => {
                    status.state = read::<AnyState>(value)?.0;
                    "state"
                }
                "message" | "update" => {
                    status.message = Some(self.any_message(value)?);
                    "message"
                }
                "timestamp" => {
                    status.timestamp = Some(time(value)?);
                    "timestamp"
                }
                _ => return Ok(None),
            }))
        })?;
        Ok(status)
    }

    fn artifact(self, value: &RawValue) -> Read<Artifact> {
        let mut artifact = Artifact::default();
        members(value, |name, value| {
            Ok(Some(match name {
                "artifactId" | "artifact_id" => {
                    artifact.artifact_id = text(value)?;
                    "artifactId"
                }
                "name" => {
                    artifact.name = text(value)?;
                    "name"
                }
                "description" => {
                    artifact.description = text(value)?;
                    "description"
                }
                "parts" => {
                    artifact.parts = list(value, usize::MAX, |part| self.part(part))?;
                    "parts"
                }
                "metadata" => {
                    artifact.metadata = free(value)?;
                    "metadata"
                }
                "extensions" => {
                    artifact.extensions = texts(value, usize::MAX)?;
                    "extensions"
                }
                _ => return Ok(None),
            }))
        })?;
        Ok(artifact)
    }

    /// A new status, and whether the agent says that nothing follows it.
    pub(super) fn status_update(self, value: &RawValue) -> Read<(TaskStatusUpdateEvent, bool)> {
        let mut event = TaskStatusUpdateEvent::default();
        let mut last = false;
        members(value, |name, value| {
            Ok(Some(match name {
                "taskId" | "task_id" => {
                    event.task_id = text(value)?;
                    "taskId"
                }
                "contextId" | "context_id" => {
                    event.context_id = text(value)?;
                    "contextId"
                }
                "status" => {
                    event.status = self.status(value)?;
                    "status"
                }
                "final" => {
                    last = read(value)?;
                    "final"
                }
                "metadata" => {
                    event.metadata = free(value)?;
                    "metadata"
                }
                _ => return Ok(None),
            }))
        })?;
        Ok((event, last))
    }

    pub(super) fn artifact_update(self, value: &RawValue) -> Read<TaskArtifactUpdateEvent> {
        let mut event = TaskArtifactUpdateEvent::default();
        members(value, |name, value| {
            Ok(Some(match name {
                "taskId" | "task_id" => {
                    event.task_id = text(value)?;
                    "taskId"
                }
                "contextId" | "context_id" => {
                    event.context_id = text(value)?;
                    "contextId"
                }
                "artifact" => {
                    event.artifact = self.artifact(value)?;
                    "artifact"
                }
                "append" => {
                    event.append = read(value)?;
                    "append"
                }
                "lastChunk" | "last_chunk" => {
                    event.last_chunk = read(value)?;
                    "lastChunk"
                }
                "metadata" => {
                    event.metadata = free(value)?;
                    "metadata"
                }
                _ => return Ok(None),
            }))
        })?;
        Ok(event)
    }
}
