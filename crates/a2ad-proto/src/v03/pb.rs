//! The same for gRPC: the protobuf of `a2a.v1` (V03-17), from and to the types of 1.0.
//!
//! `dialect` only says whether a file's bytes hold its base64 text ([`Dialect::Proto`]) or the file itself
//! ([`Dialect::ProtoPlain`]). A page of tasks is not among the answers: the service has no method for it.

use super::names::{SendNames, config_id, config_name, push_names, task_id, task_name};
use super::raw::Read;
use super::{Dialect, proto};
use crate::pb::{DecodeError, Message as _};
use crate::wire::Path;
use crate::{
    AgentCard, CancelTaskRequest, DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest, GetTaskRequest, ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse, SendMessageRequest, SendMessageResponse,
    StreamResponse, SubscribeToTaskRequest, Task, TaskPushNotificationConfig, Violations,
};

pub use super::proto::schema::{SERVICE, descriptor_set};

type Decoded<T> = Result<T, DecodeError>;

impl From<Violations> for DecodeError {
    fn from(violations: Violations) -> Self {
        Self::Invalid(violations)
    }
}

fn named<T>(member: &str, read: Read<T>) -> Decoded<T> {
    read.map_err(|wrong| wrong.at(Path::Name(member)).into())
}

/// Reads the message of `SendMessage` and `SendStreamingMessage`, and checks it.
///
/// # Errors
/// If the bytes are not protobuf, or with every violation found, under the names of the 0.3 schema's JSON.
pub fn read_send(bytes: &[u8], dialect: Dialect) -> Decoded<SendMessageRequest> {
    let request = proto::SendMessageRequest::decode(bytes)?.into_core(dialect)?;
    let checked = request.check();
    checked.map_err(|wrong| SendNames::PROTO.put_into(wrong))?;
    Ok(request)
}

/// Reads the message of `GetTask` and checks it.
///
/// # Errors
/// As for [`read_send`].
pub fn read_get(bytes: &[u8]) -> Decoded<GetTaskRequest> {
    let request = proto::GetTaskRequest::decode(bytes)?;
    let length = request.history_length;
    let request = GetTaskRequest {
        id: named("name", task_id(&request.name))?,
        // Zero is as good as unset (V03-10).
        history_length: (length != 0).then_some(length),
        ..Default::default()
    };
    request.check()?;
    Ok(request)
}

/// Reads the message of `CancelTask` and checks it.
///
/// # Errors
/// As for [`read_send`].
pub fn read_cancel(bytes: &[u8]) -> Decoded<CancelTaskRequest> {
    let request = proto::CancelTaskRequest::decode(bytes)?;
    Ok(CancelTaskRequest {
        id: named("name", task_id(&request.name))?,
        ..Default::default()
    })
}

/// Reads the message of `TaskSubscription` and checks it.
///
/// # Errors
/// As for [`read_send`].
pub fn read_subscribe(bytes: &[u8]) -> Decoded<SubscribeToTaskRequest> {
    let request = proto::TaskSubscriptionRequest::decode(bytes)?;
    Ok(SubscribeToTaskRequest {
        id: named("name", task_id(&request.name))?,
        ..Default::default()
    })
}

/// Reads the message of `CreateTaskPushNotificationConfig` and checks it.
///
/// # Errors
/// As for [`read_send`].
pub fn read_push_create(bytes: &[u8]) -> Decoded<TaskPushNotificationConfig> {
    let request = proto::CreateTaskPushNotificationConfigRequest::decode(bytes)?;
    let config = request.into_core()?;
    let checked = config.check();
    checked.map_err(|wrong| push_names("config.pushNotificationConfig", wrong))?;
    Ok(config)
}

/// Reads the message of `GetTaskPushNotificationConfig` and checks it. The configuration's id is empty if the client
/// gives none (V03-11).
///
/// # Errors
/// As for [`read_send`].
pub fn read_push_get(bytes: &[u8]) -> Decoded<GetTaskPushNotificationConfigRequest> {
    let request = proto::GetTaskPushNotificationConfigRequest::decode(bytes)?;
    let (task_id, id) = named("name", config_id(&request.name))?;
    if task_id.is_empty() {
        return Err(Violations::one("name", "is required").into());
    }
    Ok(GetTaskPushNotificationConfigRequest {
        task_id,
        id,
        ..Default::default()
    })
}

/// Reads the message of `DeleteTaskPushNotificationConfig` and checks it.
///
/// # Errors
/// As for [`read_send`].
pub fn read_push_delete(bytes: &[u8]) -> Decoded<DeleteTaskPushNotificationConfigRequest> {
    let request = proto::DeleteTaskPushNotificationConfigRequest::decode(bytes)?;
    let (task_id, id) = named("name", config_id(&request.name))?;
    if task_id.is_empty() || id.is_empty() {
        let expected = "expected tasks/{id}/pushNotificationConfigs/{id}";
        return Err(Violations::one("name", expected).into());
    }
    Ok(DeleteTaskPushNotificationConfigRequest {
        task_id,
        id,
        ..Default::default()
    })
}

/// Reads the message of `ListTaskPushNotificationConfig` and checks it.
///
/// # Errors
/// As for [`read_send`].
pub fn read_push_list(bytes: &[u8]) -> Decoded<ListTaskPushNotificationConfigsRequest> {
    let request = proto::ListTaskPushNotificationConfigRequest::decode(bytes)?;
    let request = ListTaskPushNotificationConfigsRequest {
        task_id: named("parent", task_id(&request.parent))?,
        page_size: request.page_size,
        page_token: request.page_token,
        ..Default::default()
    };
    request.check()?;
    Ok(request)
}

/// Writes a task.
#[must_use]
pub fn write_task(task: &Task, dialect: Dialect) -> Vec<u8> {
    proto::Task::of(task, dialect).encode_to_vec()
}

/// Writes the answer to a message.
#[must_use]
pub fn write_sent(answer: &SendMessageResponse, dialect: Dialect) -> Vec<u8> {
    proto::SendMessageResponse::of(answer, dialect).encode_to_vec()
}

/// Writes an event of a stream. `last` says that the stream ends with it, which status updates tell (V03-06).
#[must_use]
pub fn write_event(event: &StreamResponse, last: bool, dialect: Dialect) -> Vec<u8> {
    proto::StreamResponse::of(event, last, dialect).encode_to_vec()
}

/// Writes a push notification configuration.
#[must_use]
pub fn write_push(config: &TaskPushNotificationConfig) -> Vec<u8> {
    proto::TaskPushNotificationConfig::of(config).encode_to_vec()
}

/// Writes the push notification configurations of a task.
#[must_use]
pub fn write_push_list(page: &ListTaskPushNotificationConfigsResponse) -> Vec<u8> {
    proto::ListTaskPushNotificationConfigResponse::of(page).encode_to_vec()
}

/// Writes a card, or nothing if none of its interfaces speaks 0.3.
#[must_use]
pub fn write_card(card: &AgentCard) -> Option<Vec<u8>> {
    // Cannot fail: what is recoded was encoded a moment ago.
    let card = proto::AgentCard::of(card).ok().flatten()?;
    Some(card.encode_to_vec())
}

/// Writes the message of `SendMessage` and `SendStreamingMessage`.
#[must_use]
pub fn ask_send(request: &SendMessageRequest, dialect: Dialect) -> Vec<u8> {
    proto::SendMessageRequest::of(request, dialect).encode_to_vec()
}

/// Writes the message of `GetTask`.
#[must_use]
pub fn ask_get(request: &GetTaskRequest) -> Vec<u8> {
    proto::GetTaskRequest {
        name: task_name(&request.id),
        history_length: request.history_length.unwrap_or_default(),
    }
    .encode_to_vec()
}

/// Writes the message of `CancelTask`.
#[must_use]
pub fn ask_cancel(request: &CancelTaskRequest) -> Vec<u8> {
    let name = task_name(&request.id);
    proto::CancelTaskRequest { name }.encode_to_vec()
}

/// Writes the message of `TaskSubscription`.
#[must_use]
pub fn ask_subscribe(request: &SubscribeToTaskRequest) -> Vec<u8> {
    let name = task_name(&request.id);
    proto::TaskSubscriptionRequest { name }.encode_to_vec()
}

/// Writes the message of `CreateTaskPushNotificationConfig`.
#[must_use]
pub fn ask_push_create(config: &TaskPushNotificationConfig) -> Vec<u8> {
    proto::CreateTaskPushNotificationConfigRequest::of(config).encode_to_vec()
}

/// Writes the message of `GetTaskPushNotificationConfig`.
#[must_use]
pub fn ask_push_get(request: &GetTaskPushNotificationConfigRequest) -> Vec<u8> {
    let name = config_name(&request.task_id, &request.id);
    proto::GetTaskPushNotificationConfigRequest { name }.encode_to_vec()
}

/// Writes the message of `DeleteTaskPushNotificationConfig`.
#[must_use]
pub fn ask_push_delete(request: &DeleteTaskPushNotificationConfigRequest) -> Vec<u8> {
    let name = config_name(&request.task_id, &request.id);
    proto::DeleteTaskPushNotificationConfigRequest { name }.encode_to_vec()
}

/// Writes the message of `ListTaskPushNotificationConfig`.
#[must_use]
pub fn ask_push_list(request: &ListTaskPushNotificationConfigsRequest) -> Vec<u8> {
    proto::ListTaskPushNotificationConfigRequest {
        parent: task_name(&request.task_id),
        page_size: request.page_size,
        page_token: request.page_token.clone(),
    }
    .encode_to_vec()
}

/// Reads a task.
///
/// # Errors
/// If the bytes are not protobuf, or with the first violation found.
pub fn read_task(bytes: &[u8], dialect: Dialect) -> Decoded<Task> {
    Ok(proto::Task::decode(bytes)?.into_core(dialect)?)
}

/// Reads the answer to a message.
///
/// # Errors
/// As for [`read_task`].
pub fn read_sent(bytes: &[u8], dialect: Dialect) -> Decoded<SendMessageResponse> {
    Ok(proto::SendMessageResponse::decode(bytes)?.into_core(dialect)?)
}

/// Reads an event of a stream, and whether the agent says that nothing follows it.
///
/// # Errors
/// As for [`read_task`].
pub fn read_event(bytes: &[u8], dialect: Dialect) -> Decoded<(StreamResponse, bool)> {
    Ok(proto::StreamResponse::decode(bytes)?.into_core(dialect)?)
}

/// Reads a push notification configuration.
///
/// # Errors
/// As for [`read_task`].
pub fn read_push(bytes: &[u8]) -> Decoded<TaskPushNotificationConfig> {
    Ok(proto::TaskPushNotificationConfig::decode(bytes)?.into_core()?)
}

/// Reads the push notification configurations of a task.
///
/// # Errors
/// As for [`read_task`].
pub fn read_pushes(bytes: &[u8]) -> Decoded<ListTaskPushNotificationConfigsResponse> {
    let page = proto::ListTaskPushNotificationConfigResponse::decode(bytes)?;
    let configs = page.configs.into_iter();
    let configs = configs.map(proto::TaskPushNotificationConfig::into_core);
    Ok(ListTaskPushNotificationConfigsResponse {
        configs: configs.collect::<Read<_>>()?,
        next_page_token: page.next_page_token,
    })
}

/// Reads a card.
///
/// # Errors
/// As for [`read_task`].
pub fn read_card(bytes: &[u8]) -> Decoded<AgentCard> {
    proto::AgentCard::decode(bytes)?.into_core()
}
