//! Tasks and their states.

use serde::{Serialize, Serializer};

use crate::wire::{Field as _, message, wire_enum};
use crate::{Artifact, Message, Metadata, Timestamp};

message! {
    /// One unit of work an agent does for a client.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Task {
        /// Its name, minted by the server.
        pub id: String = 1 "id" R,
        /// The conversation it belongs to.
        pub context_id: String = 2 "contextId",
        /// Where it stands.
        pub status: TaskStatus = 3 "status" R,
        /// What it produced so far.
        pub artifacts: Vec<Artifact> = 4 "artifacts",
        /// The messages exchanged about it, oldest first, as far as they were asked for.
        pub history: Vec<Message> = 5 "history",
        /// Free content.
        pub metadata: Option<Metadata> = 6 "metadata",
    }
}

message! {
    /// The state of a task at some time.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct TaskStatus {
        /// The state.
        pub state: TaskState = 1 "state" R,
        /// What the agent says about it: a question, progress, a reason.
        pub message: Option<Message> = 2 "message",
        /// When it was entered.
        pub timestamp: Option<Timestamp> = 3 "timestamp",
    }
}

wire_enum! {
    /// The states of a task.
    pub enum TaskState {
        /// Not given.
        #[default]
        Unspecified = 0 "TASK_STATE_UNSPECIFIED",
        /// Accepted, not started.
        Submitted = 1 "TASK_STATE_SUBMITTED",
        /// The agent works on it.
        Working = 2 "TASK_STATE_WORKING",
        /// Ended well.
        Completed = 3 "TASK_STATE_COMPLETED",
        /// Ended badly.
        Failed = 4 "TASK_STATE_FAILED",
        /// Ended at the client's wish.
        Canceled = 5 "TASK_STATE_CANCELED",
        /// Waits for an answer from the client.
        InputRequired = 6 "TASK_STATE_INPUT_REQUIRED",
        /// Not taken on by the agent.
        Rejected = 7 "TASK_STATE_REJECTED",
        /// Waits for credentials.
        AuthRequired = 8 "TASK_STATE_AUTH_REQUIRED",
    }
}

impl TaskState {
    /// Whether the task has ended for good (MODEL-03).
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Completed | Self::Failed | Self::Canceled | Self::Rejected => true,
            Self::Unspecified
            | Self::Submitted
            | Self::Working
            | Self::InputRequired
            | Self::AuthRequired => false,
        }
    }

    /// Whether the task waits for the client.
    #[must_use]
    pub const fn is_interrupted(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }
}

/// A task in a listing that asked for artifacts: the `artifacts` member is written even when empty, which is how the
/// client tells "none" from "not asked for" (LIST-05). Elsewhere an empty list is left out.
#[derive(Clone, Copy, Debug)]
pub struct ListedTask<'a>(pub &'a Task);

impl Serialize for ListedTask<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct as _;
        let Task {
            id,
            context_id,
            status,
            artifacts,
            history,
            metadata,
        } = self.0;
        let mut object = serializer.serialize_struct("Task", 1)?;
        object.serialize_field("id", id)?;
        if !context_id.is_absent() {
            object.serialize_field("contextId", context_id)?;
        }
        object.serialize_field("status", status)?;
        object.serialize_field("artifacts", artifacts)?;
        if !history.is_absent() {
            object.serialize_field("history", history)?;
        }
        if !metadata.is_absent() {
            object.serialize_field("metadata", metadata)?;
        }
        object.end()
    }
}
