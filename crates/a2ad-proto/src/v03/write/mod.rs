//! From the types of 1.0 to the JSON of 0.3.

mod kinds;
mod requests;

use serde::Serialize;

use self::kinds::{Each, Kinds, Update};
pub(super) use self::kinds::{Object, wrapped};
use super::Dialect;
use super::proto;
use crate::{
    ListTaskPushNotificationConfigsResponse, ListTasksResponse, SendMessageResponse,
    StreamResponse, Task, TaskPushNotificationConfig, to_json,
};

pub use requests::{
    ask_cancel, ask_get, ask_list, ask_push_create, ask_push_delete, ask_push_get, ask_push_list,
    ask_send, ask_subscribe,
};

/// Writes a task. With [`Dialect::Kinds`] this is also the body of a webhook's notification (V03-18).
#[must_use]
pub fn write_task(task: &Task, dialect: Dialect) -> Vec<u8> {
    match dialect {
        Dialect::Kinds => to_json(&Kinds(task)),
        Dialect::Proto | Dialect::ProtoPlain => to_json(&proto::Task::of(task, dialect)),
    }
}

/// Writes the answer to a message: the object itself, or in the schema's JSON an object around it.
#[must_use]
pub fn write_sent(answer: &SendMessageResponse, dialect: Dialect) -> Vec<u8> {
    match (dialect, answer) {
        (Dialect::Kinds, SendMessageResponse::Task(task)) => to_json(&Kinds(task)),
        (Dialect::Kinds, SendMessageResponse::Message(message)) => to_json(&Kinds(message)),
        (Dialect::Proto | Dialect::ProtoPlain, answer) => {
            to_json(&proto::SendMessageResponse::of(answer, dialect))
        }
    }
}

/// Writes an event of a stream. `last` says that the stream ends with it, which status updates tell (V03-06).
#[must_use]
pub fn write_event(event: &StreamResponse, last: bool, dialect: Dialect) -> Vec<u8> {
    if dialect != Dialect::Kinds {
        return to_json(&proto::StreamResponse::of(event, last, dialect));
    }
    match event {
        StreamResponse::Task(task) => to_json(&Kinds(task)),
        StreamResponse::Message(message) => to_json(&Kinds(message)),
        StreamResponse::StatusUpdate(event) => to_json(&Update { event, last }),
        StreamResponse::ArtifactUpdate(event) => to_json(&Kinds(event)),
    }
}

/// Writes a page of tasks. 0.3 has none in JSON-RPC; ours is the one of 1.0 with tasks of 0.3. In HTTP+JSON it is
/// just a list.
#[must_use]
pub fn write_list(page: &ListTasksResponse, dialect: Dialect) -> Vec<u8> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Page<'a> {
        tasks: Each<'a, Task>,
        next_page_token: &'a str,
        page_size: i32,
        total_size: i32,
    }
    match dialect {
        Dialect::Kinds => to_json(&Page {
            tasks: Each(&page.tasks),
            next_page_token: &page.next_page_token,
            page_size: page.page_size,
            total_size: page.total_size,
        }),
        Dialect::Proto | Dialect::ProtoPlain => {
            let tasks = page.tasks.iter().map(|task| proto::Task::of(task, dialect));
            to_json(&tasks.collect::<Vec<_>>())
        }
    }
}

/// Writes a push notification configuration.
#[must_use]
pub fn write_push(config: &TaskPushNotificationConfig, dialect: Dialect) -> Vec<u8> {
    match dialect {
        Dialect::Kinds => to_json(&Kinds(config)),
        Dialect::Proto | Dialect::ProtoPlain => {
            to_json(&proto::TaskPushNotificationConfig::of(config))
        }
    }
}

/// Writes push notification configurations: just a list, or in the schema's JSON an object around it.
#[must_use]
pub fn write_push_list(
    page: &ListTaskPushNotificationConfigsResponse,
    dialect: Dialect,
) -> Vec<u8> {
    match dialect {
        Dialect::Kinds => to_json(&Each(&page.configs)),
        Dialect::Proto | Dialect::ProtoPlain => {
            to_json(&proto::ListTaskPushNotificationConfigResponse::of(page))
        }
    }
}
