//! What we ask agents of 0.3 for.

use serde::{Serialize, Serializer};

use super::kinds::{Kinds, Object, Webhook};
use crate::v03::{Dialect, proto, words};
use crate::{
    CancelTaskRequest, DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest, GetTaskRequest, ListTaskPushNotificationConfigsRequest,
    ListTasksRequest, SendMessageConfiguration, SendMessageRequest, SubscribeToTaskRequest,
    TaskPushNotificationConfig, TaskState, to_json,
};

/// Writes the parameters of `message/send` and `message/stream`, or the body of their HTTP+JSON twins.
#[must_use]
pub fn ask_send(request: &SendMessageRequest, dialect: Dialect) -> Vec<u8> {
    match dialect {
        Dialect::Kinds => to_json(&Kinds(request)),
        Dialect::Proto | Dialect::ProtoPlain => {
            to_json(&proto::SendMessageRequest::of(request, dialect))
        }
    }
}

impl Serialize for Kinds<'_, SendMessageRequest> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let request = self.0;
        let mut object = Object::begin(serializer)?;
        object.some("message", request.message.as_ref().map(Kinds))?;
        object.some("configuration", request.configuration.as_ref().map(Kinds))?;
        object.some("metadata", request.metadata.as_ref())?;
        object.end()
    }
}

impl Serialize for Kinds<'_, SendMessageConfiguration> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let configuration = self.0;
        let push = configuration.task_push_notification_config.as_ref();
        let mut object = Object::begin(serializer)?;
        object.list("acceptedOutputModes", &configuration.accepted_output_modes)?;
        object.some("historyLength", configuration.history_length)?;
        object.some("pushNotificationConfig", push.map(Webhook))?;
        // Always said: agents differ in what they take silence for (V03-09).
        object.put("blocking", &!configuration.return_immediately)?;
        object.end()
    }
}

/// An object with the ids that a request is about.
struct Named<'a> {
    id: &'a str,
    config: &'a str,
}

impl Serialize for Named<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = Object::begin(serializer)?;
        object.put("id", self.id)?;
        object.text("pushNotificationConfigId", self.config)?;
        object.end()
    }
}

/// Writes the parameters of `tasks/get`.
#[must_use]
pub fn ask_get(request: &GetTaskRequest) -> Vec<u8> {
    to_json(&Kinds(request))
}

impl Serialize for Kinds<'_, GetTaskRequest> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = Object::begin(serializer)?;
        object.put("id", &self.0.id)?;
        object.some("historyLength", self.0.history_length)?;
        object.end()
    }
}

/// Writes the parameters of `tasks/cancel`.
#[must_use]
pub fn ask_cancel(request: &CancelTaskRequest) -> Vec<u8> {
    to_json(&Kinds(request))
}

impl Serialize for Kinds<'_, CancelTaskRequest> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = Object::begin(serializer)?;
        object.put("id", &self.0.id)?;
        object.some("metadata", self.0.metadata.as_ref())?;
        object.end()
    }
}

/// Writes the parameters of `tasks/resubscribe`.
#[must_use]
pub fn ask_subscribe(request: &SubscribeToTaskRequest) -> Vec<u8> {
    to_json(&Named {
        id: &request.id,
        config: "",
    })
}

/// Writes the parameters of `tasks/list`, which agents of 0.3 may know although it does not.
#[must_use]
pub fn ask_list(request: &ListTasksRequest) -> Vec<u8> {
    to_json(&Kinds(request))
}

impl Serialize for Kinds<'_, ListTasksRequest> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let request = self.0;
        let status = Some(request.status).filter(|status| *status != TaskState::Unspecified);
        let mut object = Object::begin(serializer)?;
        object.text("contextId", &request.context_id)?;
        object.some("status", status.map(words::state))?;
        object.some("pageSize", request.page_size)?;
        object.text("pageToken", &request.page_token)?;
        object.some("historyLength", request.history_length)?;
        object.some("statusTimestampAfter", request.status_timestamp_after)?;
        object.some("includeArtifacts", request.include_artifacts)?;
        object.end()
    }
}

/// Writes the parameters of `tasks/pushNotificationConfig/set`, or the body of its HTTP+JSON twin.
#[must_use]
pub fn ask_push_create(config: &TaskPushNotificationConfig, dialect: Dialect) -> Vec<u8> {
    match dialect {
        Dialect::Kinds => to_json(&Kinds(config)),
        Dialect::Proto | Dialect::ProtoPlain => {
            to_json(&proto::CreateTaskPushNotificationConfigRequest::of(config))
        }
    }
}

/// Writes the parameters of `tasks/pushNotificationConfig/get`.
#[must_use]
pub fn ask_push_get(request: &GetTaskPushNotificationConfigRequest) -> Vec<u8> {
    to_json(&Named {
        id: &request.task_id,
        config: &request.id,
    })
}

/// Writes the parameters of `tasks/pushNotificationConfig/list`.
#[must_use]
pub fn ask_push_list(request: &ListTaskPushNotificationConfigsRequest) -> Vec<u8> {
    to_json(&Named {
        id: &request.task_id,
        config: "",
    })
}

/// Writes the parameters of `tasks/pushNotificationConfig/delete`.
#[must_use]
pub fn ask_push_delete(request: &DeleteTaskPushNotificationConfigRequest) -> Vec<u8> {
    to_json(&Named {
        id: &request.task_id,
        config: &request.id,
    })
}
