//! What clients ask for, and the answer to a listing.

use serde::{Serialize, Serializer};

use crate::task::ListedTask;
use crate::wire::message;
use crate::{Message, Metadata, Task, TaskPushNotificationConfig, TaskState, Timestamp};

message! {
    /// Sends a message to an agent.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct SendMessageRequest from Request {
        /// The tenant addressed.
        pub tenant: String = 1 "tenant",
        /// The message; required.
        pub message: Option<Message> = 2 "message",
        /// How to handle it.
        pub configuration: Option<SendMessageConfiguration> = 3 "configuration",
        /// Free content about the call.
        pub metadata: Option<Metadata> = 4 "metadata",
    }
}

message! {
    /// How a message is to be handled.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct SendMessageConfiguration {
        /// The media types the client takes; none means all.
        pub accepted_output_modes: Vec<String> = 1 "acceptedOutputModes" [SendMessageConfiguration::OUTPUT_MODES_MAX],
        /// A webhook for the task.
        pub task_push_notification_config: Option<TaskPushNotificationConfig> = 2 "taskPushNotificationConfig",
        /// At most this many messages of history in the answer; none asked for means no limit (HIST-04).
        pub history_length: Option<i32> = 3 "historyLength",
        /// Whether to answer as soon as the task exists (SEND-03).
        pub return_immediately: bool = 4 "returnImmediately",
    }
}

impl SendMessageConfiguration {
    /// Most media types that a client may list.
    pub const OUTPUT_MODES_MAX: usize = 1_000;
}

message! {
    /// Asks for one task.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct GetTaskRequest {
        /// The tenant addressed.
        pub tenant: String = 1 "tenant",
        /// The task.
        pub id: String = 2 "id" R,
        /// At most this many messages of history.
        pub history_length: Option<i32> = 3 "historyLength",
    }
}

message! {
    /// Asks for a page of the tasks visible to the caller.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct ListTasksRequest {
        /// The tenant addressed.
        pub tenant: String = 1 "tenant",
        /// Only tasks of this conversation.
        pub context_id: String = 2 "contextId",
        /// Only tasks in this state; unspecified means all.
        pub status: TaskState = 3 "status",
        /// How many tasks at most.
        pub page_size: Option<i32> = 4 "pageSize",
        /// Where to go on, from the previous answer.
        pub page_token: String = 5 "pageToken",
        /// At most this many messages of history per task.
        pub history_length: Option<i32> = 6 "historyLength",
        /// Only tasks whose status was entered then or later.
        pub status_timestamp_after: Option<Timestamp> = 7 "statusTimestampAfter",
        /// Whether to include artifacts.
        pub include_artifacts: Option<bool> = 8 "includeArtifacts",
    }
}

impl ListTasksRequest {
    /// Tasks per page when the request does not say.
    pub const PAGE_SIZE_DEFAULT: i32 = 50;
    /// Most tasks per page.
    pub const PAGE_SIZE_MAX: i32 = 100;
}

message! {
    /// A page of tasks. All members are always written (LIST-07).
    ///
    /// Tasks without artifacts are written without the member; for a request that asked for artifacts, serialise
    /// [`ListTasksResponse::with_artifacts`] instead.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct ListTasksResponse {
        /// The tasks, newest status first.
        pub tasks: Vec<Task> = 1 "tasks" R,
        /// Where to go on; empty on the last page.
        pub next_page_token: String = 2 "nextPageToken" R,
        /// The page size applied.
        pub page_size: i32 = 3 "pageSize" R,
        /// How many tasks match in all.
        pub total_size: i32 = 4 "totalSize" R,
    }
}

impl ListTasksResponse {
    /// The same page as written for `includeArtifacts: true`: every task has the member, `[]` if need be (LIST-05).
    #[must_use]
    pub fn with_artifacts(&self) -> WithArtifacts<'_> {
        WithArtifacts(self)
    }
}

/// Writes a page in which every task has its `artifacts`; see [`ListTasksResponse::with_artifacts`].
#[derive(Clone, Copy, Debug)]
pub struct WithArtifacts<'a>(&'a ListTasksResponse);

impl Serialize for WithArtifacts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct as _;
        struct Tasks<'a>(&'a [Task]);
        impl Serialize for Tasks<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_seq(self.0.iter().map(ListedTask))
            }
        }
        let page = self.0;
        let mut object = serializer.serialize_struct("ListTasksResponse", 4)?;
        object.serialize_field("tasks", &Tasks(&page.tasks))?;
        object.serialize_field("nextPageToken", &page.next_page_token)?;
        object.serialize_field("pageSize", &page.page_size)?;
        object.serialize_field("totalSize", &page.total_size)?;
        object.end()
    }
}

message! {
    /// Asks to end a task.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct CancelTaskRequest {
        /// The tenant addressed.
        pub tenant: String = 1 "tenant",
        /// The task.
        pub id: String = 2 "id" R,
        /// Free content.
        pub metadata: Option<Metadata> = 3 "metadata",
    }
}

message! {
    /// Asks to follow a task.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct SubscribeToTaskRequest {
        /// The tenant addressed.
        pub tenant: String = 1 "tenant",
        /// The task.
        pub id: String = 2 "id" R,
    }
}

message! {
    /// Asks for the card that authenticated clients see.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct GetExtendedAgentCardRequest {
        /// The tenant addressed.
        pub tenant: String = 1 "tenant",
    }
}
