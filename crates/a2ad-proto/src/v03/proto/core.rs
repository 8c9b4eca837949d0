//! From these messages to those of 1.0.

use super::message::{Artifact, FilePart, Message, Part};
use super::push::{
    CreateTaskPushNotificationConfigRequest, PushNotificationConfig, TaskPushNotificationConfig,
};
use super::requests::{SendMessageConfiguration, SendMessageRequest};
use super::task::{
    SendMessageResponse, StreamResponse, Task, TaskArtifactUpdateEvent, TaskStatus,
    TaskStatusUpdateEvent,
};
use crate::v03::Dialect;
use crate::v03::names::{config_id, task_id};
use crate::v03::raw::Read;
use crate::v03::read::unpacked;
use crate::wire::Path;
use crate::{PartContent, Role, TaskState, Violations};

/// Puts a member's name before what is wrong in it.
trait At<T> {
    fn at(self, name: &str) -> Read<T>;
}

impl<T> At<T> for Read<T> {
    fn at(self, name: &str) -> Self {
        self.map_err(|wrong| wrong.at(Path::Name(name)))
    }
}

fn each<From, To>(
    name: &str,
    list: Vec<From>,
    mut convert: impl FnMut(From) -> Read<To>,
) -> Read<Vec<To>> {
    let each = list.into_iter().enumerate();
    each.map(|(at, element)| convert(element).map_err(|wrong| wrong.at(Path::Index(at))))
        .collect::<Read<_>>()
        .at(name)
}

impl Part {
    fn into_core(self, dialect: Dialect) -> Read<crate::Part> {
        let part = match (self.text, self.file, self.data) {
            (Some(text), None, None) => crate::Part::text(text),
            (None, Some(file), None) => file.into_core(dialect).at("file")?,
            (None, None, Some(data)) => crate::Part::data(data.data.unwrap_or_default().into()),
            _ => {
                let expected = "expected an object with one of text file data";
                return Err(Violations::one("", expected));
            }
        };
        Ok(crate::Part {
            metadata: self.metadata,
            ..part
        }
        .unwrapped())
    }
}

impl FilePart {
    fn into_core(self, dialect: Dialect) -> Read<crate::Part> {
        let content = match (self.file_with_bytes, self.file_with_uri) {
            (Some(bytes), None) => PartContent::Raw(unpacked(bytes.0, dialect)),
            (None, Some(uri)) => PartContent::Url(uri),
            _ => {
                let expected = "expected an object with one of fileWithBytes fileWithUri";
                return Err(Violations::one("", expected));
            }
        };
        Ok(crate::Part {
            content,
            metadata: None,
            filename: self.name,
            media_type: self.mime_type,
        })
    }
}

impl Message {
    fn into_core(self, dialect: Dialect) -> Read<crate::Message> {
        Ok(crate::Message {
            message_id: self.message_id,
            context_id: self.context_id,
            task_id: self.task_id,
            role: Role::from_number(self.role.number()).unwrap_or_default(),
            parts: each("content", self.content, |part| part.into_core(dialect))?,
            metadata: self.metadata,
            extensions: self.extensions,
            reference_task_ids: Vec::new(),
        })
    }
}

impl Artifact {
    fn into_core(self, dialect: Dialect) -> Read<crate::Artifact> {
        Ok(crate::Artifact {
            artifact_id: self.artifact_id,
            name: self.name,
            description: self.description,
            parts: each("parts", self.parts, |part| part.into_core(dialect))?,
            metadata: self.metadata,
            extensions: self.extensions,
        })
    }
}

impl TaskStatus {
    fn into_core(self, dialect: Dialect) -> Read<crate::TaskStatus> {
        let message = self.update.map(|message| message.into_core(dialect));
        Ok(crate::TaskStatus {
            state: TaskState::from_number(self.state.number()).unwrap_or_default(),
            message: message.transpose().at("message")?,
            timestamp: self.timestamp,
        })
    }
}

impl Task {
    pub(in crate::v03) fn into_core(self, dialect: Dialect) -> Read<crate::Task> {
        let status = self.status.unwrap_or_default();
        Ok(crate::Task {
            id: self.id,
            context_id: self.context_id,
            status: status.into_core(dialect).at("status")?,
            artifacts: each("artifacts", self.artifacts, |it| it.into_core(dialect))?,
            history: each("history", self.history, |it| it.into_core(dialect))?,
            metadata: self.metadata,
        })
    }
}

impl TaskStatusUpdateEvent {
    fn into_core(self, dialect: Dialect) -> Read<crate::TaskStatusUpdateEvent> {
        let status = self.status.unwrap_or_default();
        Ok(crate::TaskStatusUpdateEvent {
            task_id: self.task_id,
            context_id: self.context_id,
            status: status.into_core(dialect).at("status")?,
            metadata: self.metadata,
        })
    }
}

impl TaskArtifactUpdateEvent {
    fn into_core(self, dialect: Dialect) -> Read<crate::TaskArtifactUpdateEvent> {
        let artifact = self.artifact.unwrap_or_default();
        Ok(crate::TaskArtifactUpdateEvent {
            task_id: self.task_id,
            context_id: self.context_id,
            artifact: artifact.into_core(dialect).at("artifact")?,
            append: self.append,
            last_chunk: self.last_chunk,
            metadata: self.metadata,
        })
    }
}

impl SendMessageResponse {
    pub(in crate::v03) fn into_core(self, dialect: Dialect) -> Read<crate::SendMessageResponse> {
        Ok(match self {
            Self::Task(task) => {
                crate::SendMessageResponse::Task(task.into_core(dialect).at("task")?)
            }
            Self::Message(message) => {
                crate::SendMessageResponse::Message(message.into_core(dialect).at("message")?)
            }
        })
    }
}

impl StreamResponse {
    /// The event, and whether the agent says that nothing follows it.
    pub(in crate::v03) fn into_core(self, dialect: Dialect) -> Read<(crate::StreamResponse, bool)> {
        Ok(match self {
            Self::Task(task) => {
                let task = task.into_core(dialect).at("task")?;
                (crate::StreamResponse::Task(task), false)
            }
            Self::Message(message) => {
                let message = message.into_core(dialect).at("message")?;
                (crate::StreamResponse::Message(message), true)
            }
            Self::StatusUpdate(event) => {
                let last = event.last;
                let event = event.into_core(dialect).at("statusUpdate")?;
                (crate::StreamResponse::StatusUpdate(event), last)
            }
            Self::ArtifactUpdate(event) => {
                let event = event.into_core(dialect).at("artifactUpdate")?;
                (crate::StreamResponse::ArtifactUpdate(event), false)
            }
        })
    }
}

impl SendMessageRequest {
    pub(in crate::v03) fn into_core(self, dialect: Dialect) -> Read<crate::SendMessageRequest> {
        let message = self.request.map(|message| message.into_core(dialect));
        Ok(crate::SendMessageRequest {
            tenant: String::new(),
            message: message.transpose().at("message")?,
            configuration: self.configuration.map(SendMessageConfiguration::into_core),
            metadata: self.metadata,
        })
    }
}

impl SendMessageConfiguration {
    /// What is unset looks like its default here (V03-09, V03-10).
    fn into_core(self) -> crate::SendMessageConfiguration {
        let length = self.history_length;
        crate::SendMessageConfiguration {
            accepted_output_modes: self.accepted_output_modes,
            task_push_notification_config: self
                .push_notification
                .map(PushNotificationConfig::into_core),
            history_length: (length != 0).then_some(length),
            return_immediately: !self.blocking,
        }
    }
}

impl PushNotificationConfig {
    fn into_core(self) -> crate::TaskPushNotificationConfig {
        let authentication = self.authentication.map(|info| crate::AuthenticationInfo {
            scheme: info.schemes.into_iter().next().unwrap_or_default(),
            credentials: info.credentials,
        });
        crate::TaskPushNotificationConfig {
            tenant: String::new(),
            id: self.id,
            task_id: String::new(),
            url: self.url,
            token: self.token,
            authentication: authentication
                .filter(|info| *info != crate::AuthenticationInfo::default()),
        }
    }
}

impl TaskPushNotificationConfig {
    pub(in crate::v03) fn into_core(self) -> Read<crate::TaskPushNotificationConfig> {
        let (task, id) = config_id(&self.name).at("name")?;
        let config = self.push_notification_config.unwrap_or_default();
        let mut config = config.into_core();
        config.task_id = task;
        if config.id.is_empty() {
            config.id = id;
        }
        Ok(config)
    }
}

impl CreateTaskPushNotificationConfigRequest {
    pub(in crate::v03) fn into_core(self) -> Read<crate::TaskPushNotificationConfig> {
        let config = self.config.unwrap_or_default();
        let mut config = config.into_core().at("config")?;
        if !self.parent.is_empty() {
            config.task_id = task_id(&self.parent).at("parent")?;
        }
        if config.id.is_empty() {
            config.id = self.config_id;
        }
        Ok(config)
    }
}
