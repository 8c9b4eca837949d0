//! What agents answer.

use serde_json::value::RawValue;

use super::Reader;
use crate::v03::Dialect;
use crate::v03::raw::{Read, integer, list, members, text, value};
use crate::wire::Path;
use crate::{
    ListTaskPushNotificationConfigsResponse, ListTasksResponse, SendMessageResponse,
    StreamResponse, Task, TaskPushNotificationConfig, Violations,
};

/// Reads a task.
///
/// # Errors
/// With the first violation found.
pub fn read_task(json: &[u8], dialect: Dialect) -> Result<Task, Violations> {
    Reader::of_answers(dialect).task(value(json)?)
}

/// Reads the answer to a message.
///
/// # Errors
/// With the first violation found, or if it is neither a task nor a message.
pub fn read_sent(json: &[u8], dialect: Dialect) -> Result<SendMessageResponse, Violations> {
    match read_event(json, dialect)? {
        (StreamResponse::Task(task), _) => Ok(SendMessageResponse::Task(task)),
        (StreamResponse::Message(message), _) => Ok(SendMessageResponse::Message(message)),
        (StreamResponse::StatusUpdate(_) | StreamResponse::ArtifactUpdate(_), _) => {
            Err(Violations::one("kind", "expected task or message"))
        }
    }
}

/// Reads an event of a stream, and whether the agent says that nothing follows it.
///
/// # Errors
/// With the first violation found.
pub fn read_event(json: &[u8], dialect: Dialect) -> Result<(StreamResponse, bool), Violations> {
    let reader = Reader::of_answers(dialect);
    let value = value(json)?;
    let shape = shape(value)?;
    let (object, wrapper) = match shape.inside {
        Some((object, wrapper)) => (object, Some(wrapper)),
        None => (value, None),
    };
    let read = reader.event(shape.kind, object);
    read.map_err(|wrong| match wrapper {
        Some(wrapper) => wrong.at(Path::Name(wrapper)),
        None => wrong,
    })
}

impl Reader {
    fn event(self, kind: Kind, value: &RawValue) -> Read<(StreamResponse, bool)> {
        Ok(match kind {
            Kind::Task => (StreamResponse::Task(self.task(value)?), false),
            Kind::Message => (StreamResponse::Message(self.any_message(value)?), true),
            Kind::StatusUpdate => {
                let (event, last) = self.status_update(value)?;
                (StreamResponse::StatusUpdate(event), last)
            }
            Kind::ArtifactUpdate => {
                let event = self.artifact_update(value)?;
                (StreamResponse::ArtifactUpdate(event), false)
            }
        })
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Task,
    Message,
    StatusUpdate,
    ArtifactUpdate,
}

/// What an object is, and the object itself if it is inside another.
struct Shape<'a> {
    kind: Kind,
    inside: Option<(&'a RawValue, &'static str)>,
}

/// Finds out what an object is: by its `kind`, by the only member around it, or by what it has (V03-02).
fn shape(value: &RawValue) -> Read<Shape<'_>> {
    const EXPECTED: &str = "expected task, message, status-update or artifact-update";
    let mut said = None;
    let mut inside = None;
    let [
        mut message_id,
        mut artifact,
        mut status,
        mut task_id,
        mut id,
    ] = [false; 5];
    members(value, |name, value| {
        let wrapped = |kind, name| Some((kind, (value, name)));
        Ok(Some(match name {
            "kind" => {
                said = Some(match &*text(value)? {
                    "task" => Kind::Task,
                    "message" => Kind::Message,
                    "status-update" => Kind::StatusUpdate,
                    "artifact-update" => Kind::ArtifactUpdate,
                    _ => return Err(Violations::one("", EXPECTED)),
                });
                "kind"
            }
            "task" => {
                inside = wrapped(Kind::Task, "task");
                "task"
            }
            "message" | "msg" => {
                inside = wrapped(Kind::Message, "message");
                "message"
            }
            "statusUpdate" | "status_update" => {
                inside = wrapped(Kind::StatusUpdate, "statusUpdate");
                "statusUpdate"
            }
            "artifactUpdate" | "artifact_update" => {
                inside = wrapped(Kind::ArtifactUpdate, "artifactUpdate");
                "artifactUpdate"
            }
            "messageId" | "message_id" => {
                message_id = true;
                "messageId"
            }
            "artifact" => {
                artifact = true;
                "artifact"
            }
            "status" => {
                status = true;
                "status"
            }
            "taskId" | "task_id" => {
                task_id = true;
                "taskId"
            }
            "id" => {
                id = true;
                "id"
            }
            _ => return Ok(None),
        }))
    })?;
    let kind = match (said, message_id, artifact, status, task_id, id) {
        (Some(said), ..) => said,
        (None, true, ..) => Kind::Message,
        (None, false, true, ..) => Kind::ArtifactUpdate,
        (None, false, false, true, true, _) => Kind::StatusUpdate,
        (None, false, false, true, false, true) => Kind::Task,
        (None, ..) => {
            let (kind, inside) = inside.ok_or_else(|| Violations::one("kind", EXPECTED))?;
            let inside = Some(inside);
            return Ok(Shape { kind, inside });
        }
    };
    let inside = None;
    Ok(Shape { kind, inside })
}

/// Reads a page of tasks: an object as in 1.0, or just the list.
///
/// # Errors
/// With the first violation found.
pub fn read_page(json: &[u8], dialect: Dialect) -> Result<ListTasksResponse, Violations> {
    let reader = Reader::of_answers(dialect);
    let value = value(json)?;
    let tasks = |value| list(value, usize::MAX, |task| reader.task(task));
    let mut page = ListTasksResponse::default();
    if value.get().starts_with('[') {
        page.tasks = tasks(value)?;
        page.total_size = i32::try_from(page.tasks.len()).unwrap_or(i32::MAX);
        page.page_size = page.total_size;
        return Ok(page);
    }
    members(value, |name, value| {
        Ok(Some(match name {
            "tasks" => {
                page.tasks = tasks(value)?;
                "tasks"
            }
            "nextPageToken" | "next_page_token" => {
                page.next_page_token = text(value)?;
                "nextPageToken"
            }
            "pageSize" | "page_size" => {
                page.page_size = integer(value)?;
                "pageSize"
            }
            "totalSize" | "total_size" => {
                page.total_size = integer(value)?;
                "totalSize"
            }
            _ => return Ok(None),
        }))
    })?;
    Ok(page)
}

/// Reads a push notification configuration.
///
/// # Errors
/// With the first violation found.
pub fn read_push(json: &[u8]) -> Result<TaskPushNotificationConfig, Violations> {
    Reader::of_answers(Dialect::Kinds).task_push_config(value(json)?)
}

/// Reads the push notification configurations of a task: just a list, or the schema's object around it.
///
/// # Errors
/// With the first violation found.
pub fn read_pushes(json: &[u8]) -> Result<ListTaskPushNotificationConfigsResponse, Violations> {
    let reader = Reader::of_answers(Dialect::Kinds);
    let value = value(json)?;
    let configs = |value| list(value, usize::MAX, |it| reader.task_push_config(it));
    let mut page = ListTaskPushNotificationConfigsResponse::default();
    if value.get().starts_with('[') {
        page.configs = configs(value)?;
        return Ok(page);
    }
    members(value, |name, value| {
        Ok(Some(match name {
            "configs" => {
                page.configs = configs(value)?;
                "configs"
            }
            "nextPageToken" | "next_page_token" => {
                page.next_page_token = text(value)?;
                "nextPageToken"
            }
            _ => return Ok(None),
        }))
    })?;
    Ok(page)
}
