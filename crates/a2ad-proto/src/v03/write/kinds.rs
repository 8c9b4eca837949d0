//! Objects with `kind`.

use base64::Engine as _;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::part::STANDARD;
use crate::v03::words::{self, WRAPPED};
use crate::{
    Artifact, AuthenticationInfo, Json, Message, Metadata, Part, PartContent, Task,
    TaskArtifactUpdateEvent, TaskPushNotificationConfig, TaskStatus, TaskStatusUpdateEvent,
};

/// Writes a value of 1.0 in this dialect.
pub(super) struct Kinds<'a, T>(pub(super) &'a T);

/// Writes a list of them.
pub(super) struct Each<'a, T>(pub(super) &'a [T]);

/// Writes a status update.
pub(super) struct Update<'a> {
    pub(super) event: &'a TaskStatusUpdateEvent,
    pub(super) last: bool,
}

impl<'a, T> Serialize for Each<'a, T>
where
    Kinds<'a, T>: Serialize,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Kinds))
    }
}

/// An object whose members are left out if there is nothing to say.
pub(in crate::v03) struct Object<O>(O);

impl<O: SerializeStruct> Object<O> {
    pub(in crate::v03) fn begin<S>(serializer: S) -> Result<Self, S::Error>
    where
        S: Serializer<SerializeStruct = O>,
    {
        // The length is only a hint, but zero would close the object at once.
        serializer.serialize_struct("Object", 1).map(Self)
    }

    pub(in crate::v03) fn put<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), O::Error> {
        self.0.serialize_field(name, value)
    }

    pub(in crate::v03) fn text(&mut self, name: &'static str, text: &str) -> Result<(), O::Error> {
        if text.is_empty() {
            return Ok(());
        }
        self.put(name, text)
    }

    pub(in crate::v03) fn some<T: Serialize>(
        &mut self,
        name: &'static str,
        value: Option<T>,
    ) -> Result<(), O::Error> {
        value.map_or(Ok(()), |value| self.put(name, &value))
    }

    pub(in crate::v03) fn list<T: Serialize>(
        &mut self,
        name: &'static str,
        list: &[T],
    ) -> Result<(), O::Error> {
        if list.is_empty() {
            return Ok(());
        }
        self.put(name, list)
    }

    fn each<'a, T>(&mut self, name: &'static str, list: &'a [T]) -> Result<(), O::Error>
    where
        Kinds<'a, T>: Serialize,
    {
        if list.is_empty() {
            return Ok(());
        }
        self.put(name, &Each(list))
    }

    pub(in crate::v03) fn end(self) -> Result<O::Ok, O::Error> {
        self.0.end()
    }
}

impl Serialize for Kinds<'_, Task> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let task = self.0;
        let mut object = Object::begin(serializer)?;
        object.put("kind", "task")?;
        object.put("id", &task.id)?;
        object.put("contextId", &task.context_id)?;
        object.put("status", &Kinds(&task.status))?;
        object.each("artifacts", &task.artifacts)?;
        object.each("history", &task.history)?;
        object.some("metadata", task.metadata.as_ref())?;
        object.end()
    }
}

impl Serialize for Kinds<'_, TaskStatus> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let status = self.0;
        let mut object = Object::begin(serializer)?;
        object.put("state", words::state(status.state))?;
        object.some("message", status.message.as_ref().map(Kinds))?;
        object.some("timestamp", status.timestamp)?;
        object.end()
    }
}

impl Serialize for Kinds<'_, Message> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let message = self.0;
        let mut object = Object::begin(serializer)?;
        object.put("kind", "message")?;
        object.put("messageId", &message.message_id)?;
        object.text("contextId", &message.context_id)?;
        object.text("taskId", &message.task_id)?;
        object.put("role", words::role(message.role))?;
        object.put("parts", &Each(&message.parts))?;
        object.some("metadata", message.metadata.as_ref())?;
        object.list("extensions", &message.extensions)?;
        object.list("referenceTaskIds", &message.reference_task_ids)?;
        object.end()
    }
}

impl Serialize for Kinds<'_, Part> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let part = self.0;
        let mut object = Object::begin(serializer)?;
        let mut metadata = part.metadata.as_ref();
        let marked;
        match &part.content {
            PartContent::Text(text) => {
                object.put("kind", "text")?;
                object.put("text", text)?;
            }
            PartContent::Raw(_) | PartContent::Url(_) => {
                object.put("kind", "file")?;
                object.put("file", &File(part))?;
            }
            PartContent::Data(data) => {
                object.put("kind", "data")?;
                if let Some((wrapped, mark)) = wrapped(data, metadata) {
                    object.put("data", &wrapped)?;
                    marked = mark;
                    metadata = Some(&marked);
                } else {
                    object.put("data", data)?;
                }
            }
        }
        object.some("metadata", metadata)?;
        object.end()
    }
}

/// Data that is no object in one, and the metadata that say so; nothing if it is one already.
pub(in crate::v03) fn wrapped(
    data: &Json,
    metadata: Option<&Metadata>,
) -> Option<(Metadata, Metadata)> {
    if data.as_str().starts_with('{') {
        return None;
    }
    let object = |text| Metadata::try_from(Json::from_compact(text)).unwrap_or_default();
    let data = object(format!(r#"{{"value":{}}}"#, data.as_str()));
    let mark = object(format!(r#"{{"{WRAPPED}":true}}"#));
    let marked = metadata.map_or_else(|| mark.clone(), |metadata| metadata.merged(&mark));
    Some((data, marked))
}

struct File<'a>(&'a Part);

impl Serialize for File<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let part = self.0;
        let mut object = Object::begin(serializer)?;
        object.text("name", &part.filename)?;
        object.text("mimeType", &part.media_type)?;
        match &part.content {
            PartContent::Raw(raw) => object.put("bytes", &STANDARD.encode(raw))?,
            PartContent::Url(url) => object.put("uri", url)?,
            PartContent::Text(_) | PartContent::Data(_) => {}
        }
        object.end()
    }
}

impl Serialize for Kinds<'_, Artifact> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let artifact = self.0;
        let mut object = Object::begin(serializer)?;
        object.put("artifactId", &artifact.artifact_id)?;
        object.text("name", &artifact.name)?;
        object.text("description", &artifact.description)?;
        object.put("parts", &Each(&artifact.parts))?;
        object.some("metadata", artifact.metadata.as_ref())?;
        object.list("extensions", &artifact.extensions)?;
        object.end()
    }
}

impl Serialize for Update<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let event = self.event;
        let mut object = Object::begin(serializer)?;
        object.put("kind", "status-update")?;
        object.put("taskId", &event.task_id)?;
        object.put("contextId", &event.context_id)?;
        object.put("status", &Kinds(&event.status))?;
        object.put("final", &self.last)?;
        object.some("metadata", event.metadata.as_ref())?;
        object.end()
    }
}

impl Serialize for Kinds<'_, TaskArtifactUpdateEvent> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let event = self.0;
        let mut object = Object::begin(serializer)?;
        object.put("kind", "artifact-update")?;
        object.put("taskId", &event.task_id)?;
        object.put("contextId", &event.context_id)?;
        object.put("artifact", &Kinds(&event.artifact))?;
        object.some("append", event.append.then_some(true))?;
        object.some("lastChunk", event.last_chunk.then_some(true))?;
        object.some("metadata", event.metadata.as_ref())?;
        object.end()
    }
}

impl Serialize for Kinds<'_, TaskPushNotificationConfig> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = Object::begin(serializer)?;
        object.put("taskId", &self.0.task_id)?;
        object.put("pushNotificationConfig", &Webhook(self.0))?;
        object.end()
    }
}

/// A configuration without its task.
pub(super) struct Webhook<'a>(pub(super) &'a TaskPushNotificationConfig);

impl Serialize for Webhook<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let config = self.0;
        let mut object = Object::begin(serializer)?;
        object.text("id", &config.id)?;
        object.put("url", &config.url)?;
        object.text("token", &config.token)?;
        object.some("authentication", config.authentication.as_ref().map(Kinds))?;
        object.end()
    }
}

impl Serialize for Kinds<'_, AuthenticationInfo> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = Object::begin(serializer)?;
        let scheme = Some(&self.0.scheme).filter(|scheme| !scheme.is_empty());
        object.put("schemes", scheme.as_slice())?;
        object.text("credentials", &self.0.credentials)?;
        object.end()
    }
}
