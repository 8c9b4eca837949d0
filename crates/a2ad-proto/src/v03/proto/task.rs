//! Tasks and what is told of them.

use super::enums::TaskState;
use super::message::{Artifact, Message};
use crate::v03::Dialect;
use crate::wire::{message, oneof};
use crate::{Metadata, Timestamp};

message! {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Task of V03 {
        pub id: String = 1 "id",
        pub context_id: String = 2 "contextId",
        pub status: Option<TaskStatus> = 3 "status",
        pub artifacts: Vec<Artifact> = 4 "artifacts",
        pub history: Vec<Message> = 5 "history",
        pub metadata: Option<Metadata> = 6 "metadata",
    }
}

message! {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct TaskStatus of V03 {
        pub state: TaskState = 1 "state",
        pub update: Option<Message> = 2 "message",
        pub timestamp: Option<Timestamp> = 3 "timestamp",
    }
}

message! {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct TaskStatusUpdateEvent of V03 {
        pub task_id: String = 1 "taskId",
        pub context_id: String = 2 "contextId",
        pub status: Option<TaskStatus> = 3 "status",
        pub last: bool as "final" = 4 "final",
        pub metadata: Option<Metadata> = 5 "metadata",
    }
}

message! {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct TaskArtifactUpdateEvent of V03 {
        pub task_id: String = 1 "taskId",
        pub context_id: String = 2 "contextId",
        pub artifact: Option<Artifact> = 3 "artifact",
        pub append: bool = 4 "append",
        pub last_chunk: bool = 5 "lastChunk",
        pub metadata: Option<Metadata> = 6 "metadata",
    }
}

oneof! {
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum SendMessageResponse "payload" of V03 {
        Task(Task) = 1 "task" "task",
        Message(Message) = 2 "message" "msg",
    }
}

oneof! {
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum StreamResponse "payload" of V03 {
        Task(Task) = 1 "task" "task",
        Message(Message) = 2 "message" "msg",
        StatusUpdate(TaskStatusUpdateEvent) = 3 "statusUpdate" "status_update",
        ArtifactUpdate(TaskArtifactUpdateEvent) = 4 "artifactUpdate" "artifact_update",
    }
}

impl Task {
    pub(in crate::v03) fn of(task: &crate::Task, dialect: Dialect) -> Self {
        let artifacts = task.artifacts.iter().map(|it| Artifact::of(it, dialect));
        let history = task.history.iter().map(|it| Message::of(it, dialect));
        Self {
            id: task.id.clone(),
            context_id: task.context_id.clone(),
            status: Some(TaskStatus::of(&task.status, dialect)),
            artifacts: artifacts.collect(),
            history: history.collect(),
            metadata: task.metadata.clone(),
        }
    }
}

impl TaskStatus {
    fn of(status: &crate::TaskStatus, dialect: Dialect) -> Self {
        let message = status.message.as_ref();
        Self {
            state: status.state.into(),
            update: message.map(|message| Message::of(message, dialect)),
            timestamp: status.timestamp,
        }
    }
}

impl SendMessageResponse {
    pub(in crate::v03) fn of(answer: &crate::SendMessageResponse, dialect: Dialect) -> Self {
        match answer {
            crate::SendMessageResponse::Task(task) => Self::Task(Task::of(task, dialect)),
            crate::SendMessageResponse::Message(message) => {
                Self::Message(Message::of(message, dialect))
            }
        }
    }
}

impl StreamResponse {
    pub(in crate::v03) fn of(event: &crate::StreamResponse, last: bool, dialect: Dialect) -> Self {
        match event {
            crate::StreamResponse::Task(task) => Self::Task(Task::of(task, dialect)),
            crate::StreamResponse::Message(message) => Self::Message(Message::of(message, dialect)),
            crate::StreamResponse::StatusUpdate(event) => {
                Self::StatusUpdate(TaskStatusUpdateEvent {
                    task_id: event.task_id.clone(),
                    context_id: event.context_id.clone(),
                    status: Some(TaskStatus::of(&event.status, dialect)),
                    last,
                    metadata: event.metadata.clone(),
                })
            }
            crate::StreamResponse::ArtifactUpdate(event) => {
                Self::ArtifactUpdate(TaskArtifactUpdateEvent {
                    task_id: event.task_id.clone(),
                    context_id: event.context_id.clone(),
                    artifact: Some(Artifact::of(&event.artifact, dialect)),
                    append: event.append,
                    last_chunk: event.last_chunk,
                    metadata: event.metadata.clone(),
                })
            }
        }
    }
}
