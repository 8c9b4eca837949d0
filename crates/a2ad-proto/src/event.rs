//! What a stream tells and what a send answers.

use crate::wire::{message, oneof};
use crate::{Artifact, Message, Metadata, Task, TaskStatus};

message! {
    /// A task's status changed.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct TaskStatusUpdateEvent {
        /// The task.
        pub task_id: String = 1 "taskId" R,
        /// Its conversation.
        pub context_id: String = 2 "contextId" R,
        /// The new status.
        pub status: TaskStatus = 3 "status" R,
        /// Free content.
        pub metadata: Option<Metadata> = 4 "metadata",
    }
}

message! {
    /// A task produced an artifact or more of one.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct TaskArtifactUpdateEvent {
        /// The task.
        pub task_id: String = 1 "taskId" R,
        /// Its conversation.
        pub context_id: String = 2 "contextId" R,
        /// The artifact, or the parts to append to it.
        pub artifact: Artifact = 3 "artifact" R,
        /// Whether the parts follow those of the artifact with the same id.
        pub append: bool = 4 "append",
        /// Whether nothing more follows for this artifact.
        pub last_chunk: bool = 5 "lastChunk",
        /// Free content.
        pub metadata: Option<Metadata> = 6 "metadata",
    }
}

oneof! {
    /// One event of a stream, and the body of one push notification.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum StreamResponse "payload" {
        /// The task as it stands.
        Task(Task) = 1 "task" "task",
        /// A reply without a task.
        Message(Message) = 2 "message" "message",
        /// A new status.
        StatusUpdate(TaskStatusUpdateEvent) = 3 "statusUpdate" "status_update",
        /// A new piece of an artifact.
        ArtifactUpdate(TaskArtifactUpdateEvent) = 4 "artifactUpdate" "artifact_update",
    }
}

oneof! {
    /// The answer to a message (SEND-01).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum SendMessageResponse "payload" {
        /// The task the message started or continued.
        Task(Task) = 1 "task" "task",
        /// A direct reply.
        Message(Message) = 2 "message" "message",
    }
}
