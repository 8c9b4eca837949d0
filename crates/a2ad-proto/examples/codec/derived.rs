//! The alternative measured against: a second set of types derived with prost, and conversions.
//! Only what the measurement needs.

use std::collections::BTreeMap;

use a2ad_proto as our;
use prost::{Enumeration, Message as Derive, Oneof};
use serde_json::Value as Tree;

#[derive(Clone, PartialEq, Derive)]
pub(crate) struct Task {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(string, tag = "2")]
    context_id: String,
    #[prost(message, optional, tag = "3")]
    status: Option<TaskStatus>,
    #[prost(message, repeated, tag = "4")]
    artifacts: Vec<Artifact>,
    #[prost(message, repeated, tag = "5")]
    history: Vec<Message>,
    #[prost(message, optional, tag = "6")]
    metadata: Option<Struct>,
}

#[derive(Clone, PartialEq, Derive)]
pub(crate) struct TaskStatus {
    #[prost(enumeration = "TaskState", tag = "1")]
    state: i32,
    #[prost(message, optional, tag = "2")]
    message: Option<Message>,
    #[prost(message, optional, tag = "3")]
    timestamp: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub(crate) enum TaskState {
    Unspecified = 0,
    Submitted = 1,
    Working = 2,
    Completed = 3,
}

#[derive(Clone, PartialEq, Derive)]
pub(crate) struct Message {
    #[prost(string, tag = "1")]
    message_id: String,
    #[prost(string, tag = "2")]
    context_id: String,
    #[prost(string, tag = "3")]
    task_id: String,
    #[prost(int32, tag = "4")]
    role: i32,
    #[prost(message, repeated, tag = "5")]
    parts: Vec<Part>,
    #[prost(message, optional, tag = "6")]
    metadata: Option<Struct>,
    #[prost(string, repeated, tag = "7")]
    extensions: Vec<String>,
    #[prost(string, repeated, tag = "8")]
    reference_task_ids: Vec<String>,
}

#[derive(Clone, PartialEq, Derive)]
pub(crate) struct Artifact {
    #[prost(string, tag = "1")]
    artifact_id: String,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(string, tag = "3")]
    description: String,
    #[prost(message, repeated, tag = "4")]
    parts: Vec<Part>,
    #[prost(message, optional, tag = "5")]
    metadata: Option<Struct>,
    #[prost(string, repeated, tag = "6")]
    extensions: Vec<String>,
}

#[derive(Clone, PartialEq, Derive)]
pub(crate) struct Part {
    #[prost(oneof = "Content", tags = "1, 2, 3, 4")]
    content: Option<Content>,
    #[prost(message, optional, tag = "5")]
    metadata: Option<Struct>,
    #[prost(string, tag = "6")]
    filename: String,
    #[prost(string, tag = "7")]
    media_type: String,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Content {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(bytes, tag = "2")]
    Raw(Vec<u8>),
    #[prost(string, tag = "3")]
    Url(String),
    #[prost(message, tag = "4")]
    Data(Value),
}

#[derive(Clone, PartialEq, Derive)]
pub(crate) struct StatusUpdate {
    #[prost(string, tag = "1")]
    task_id: String,
    #[prost(string, tag = "2")]
    context_id: String,
    #[prost(message, optional, tag = "3")]
    status: Option<TaskStatus>,
    #[prost(message, optional, tag = "4")]
    metadata: Option<Struct>,
}

#[derive(Clone, PartialEq, Derive)]
pub(crate) struct StreamResponse {
    #[prost(oneof = "Payload", tags = "1, 3")]
    payload: Option<Payload>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Payload {
    #[prost(message, tag = "1")]
    Task(Task),
    #[prost(message, tag = "3")]
    StatusUpdate(StatusUpdate),
}

#[derive(Clone, PartialEq, Derive)]
pub(crate) struct Timestamp {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

#[derive(Clone, PartialEq, Derive)]
pub(crate) struct Struct {
    #[prost(btree_map = "string, message", tag = "1")]
    fields: BTreeMap<String, Value>,
}

#[derive(Clone, PartialEq, Derive)]
pub(crate) struct Value {
    #[prost(oneof = "Kind", tags = "1, 2, 3, 4, 5, 6")]
    kind: Option<Kind>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Kind {
    #[prost(int32, tag = "1")]
    Null(i32),
    #[prost(double, tag = "2")]
    Number(f64),
    #[prost(string, tag = "3")]
    String(String),
    #[prost(bool, tag = "4")]
    Bool(bool),
    #[prost(message, tag = "5")]
    Struct(Struct),
    #[prost(message, tag = "6")]
    List(List),
}

#[derive(Clone, PartialEq, Derive)]
pub(crate) struct List {
    #[prost(message, repeated, tag = "1")]
    values: Vec<Value>,
}

/// What has no counterpart in our types.
#[derive(Debug)]
pub(crate) struct Unknown;

impl From<Tree> for Value {
    fn from(tree: Tree) -> Self {
        let kind = match tree {
            Tree::Null => Kind::Null(0),
            Tree::Bool(flag) => Kind::Bool(flag),
            Tree::Number(number) => Kind::Number(number.as_f64().unwrap_or_default()),
            Tree::String(text) => Kind::String(text),
            Tree::Array(list) => Kind::List(List {
                values: list.into_iter().map(Into::into).collect(),
            }),
            Tree::Object(map) => Kind::Struct(Struct {
                fields: map.into_iter().map(|(k, v)| (k, v.into())).collect(),
            }),
        };
        Self { kind: Some(kind) }
    }
}

impl From<Value> for Tree {
    fn from(value: Value) -> Self {
        match value.kind {
            None | Some(Kind::Null(_)) => Self::Null,
            Some(Kind::Bool(flag)) => flag.into(),
            Some(Kind::Number(number)) if number.trunc() == number => (number as i64).into(),
            Some(Kind::Number(number)) => number.into(),
            Some(Kind::String(text)) => text.into(),
            Some(Kind::List(list)) => list.values.into_iter().map(Self::from).collect(),
            Some(Kind::Struct(object)) => Self::Object(tree_map(object)),
        }
    }
}

fn tree_map(object: Struct) -> serde_json::Map<String, Tree> {
    object
        .fields
        .into_iter()
        .map(|(k, v)| (k, v.into()))
        .collect()
}

fn to_struct(metadata: &our::Metadata) -> Struct {
    Struct {
        fields: metadata
            .to_map()
            .into_iter()
            .map(|(k, v)| (k, v.into()))
            .collect(),
    }
}

fn from_struct(object: Struct) -> our::Metadata {
    our::Metadata::from_map(&tree_map(object))
}

impl From<&our::Task> for Task {
    fn from(task: &our::Task) -> Self {
        Self {
            id: task.id.clone(),
            context_id: task.context_id.clone(),
            status: Some((&task.status).into()),
            artifacts: task.artifacts.iter().map(Into::into).collect(),
            history: task.history.iter().map(Into::into).collect(),
            metadata: task.metadata.as_ref().map(to_struct),
        }
    }
}

impl TryFrom<Task> for our::Task {
    type Error = Unknown;

    fn try_from(task: Task) -> Result<Self, Unknown> {
        Ok(Self {
            id: task.id,
            context_id: task.context_id,
            status: task.status.unwrap_or_default().try_into()?,
            artifacts: convert(task.artifacts)?,
            history: convert(task.history)?,
            metadata: task.metadata.map(from_struct),
        })
    }
}

fn convert<A: TryInto<B, Error = Unknown>, B>(list: Vec<A>) -> Result<Vec<B>, Unknown> {
    list.into_iter().map(TryInto::try_into).collect()
}

impl From<&our::TaskStatus> for TaskStatus {
    fn from(status: &our::TaskStatus) -> Self {
        Self {
            state: status.state.number(),
            message: status.message.as_ref().map(Into::into),
            timestamp: status.timestamp.map(|time| Timestamp {
                seconds: time.seconds(),
                nanos: time.nanos() as i32,
            }),
        }
    }
}

impl TryFrom<TaskStatus> for our::TaskStatus {
    type Error = Unknown;

    fn try_from(status: TaskStatus) -> Result<Self, Unknown> {
        let time = |time: Timestamp| our::Timestamp::from_parts(time.seconds, time.nanos as u32);
        Ok(Self {
            state: our::TaskState::from_number(status.state).ok_or(Unknown)?,
            message: status.message.map(TryInto::try_into).transpose()?,
            timestamp: status
                .timestamp
                .map(time)
                .transpose()
                .map_err(|_| Unknown)?,
        })
    }
}

impl From<&our::Message> for Message {
    fn from(message: &our::Message) -> Self {
        Self {
            message_id: message.message_id.clone(),
            context_id: message.context_id.clone(),
            task_id: message.task_id.clone(),
            role: message.role.number(),
            parts: message.parts.iter().map(Into::into).collect(),
            metadata: message.metadata.as_ref().map(to_struct),
            extensions: message.extensions.clone(),
            reference_task_ids: message.reference_task_ids.clone(),
        }
    }
}

impl TryFrom<Message> for our::Message {
    type Error = Unknown;

    fn try_from(message: Message) -> Result<Self, Unknown> {
        Ok(Self {
            message_id: message.message_id,
            context_id: message.context_id,
            task_id: message.task_id,
            role: our::Role::from_number(message.role).ok_or(Unknown)?,
            parts: convert(message.parts)?,
            metadata: message.metadata.map(from_struct),
            extensions: message.extensions,
            reference_task_ids: message.reference_task_ids,
        })
    }
}

impl From<&our::Artifact> for Artifact {
    fn from(artifact: &our::Artifact) -> Self {
        Self {
            artifact_id: artifact.artifact_id.clone(),
            name: artifact.name.clone(),
            description: artifact.description.clone(),
            parts: artifact.parts.iter().map(Into::into).collect(),
            metadata: artifact.metadata.as_ref().map(to_struct),
            extensions: artifact.extensions.clone(),
        }
    }
}

impl TryFrom<Artifact> for our::Artifact {
    type Error = Unknown;

    fn try_from(artifact: Artifact) -> Result<Self, Unknown> {
        Ok(Self {
            artifact_id: artifact.artifact_id,
            name: artifact.name,
            description: artifact.description,
            parts: convert(artifact.parts)?,
            metadata: artifact.metadata.map(from_struct),
            extensions: artifact.extensions,
        })
    }
}

impl From<&our::Part> for Part {
    fn from(part: &our::Part) -> Self {
        let content = match &part.content {
            our::PartContent::Text(text) => Content::Text(text.clone()),
            our::PartContent::Raw(raw) => Content::Raw(raw.to_vec()),
            our::PartContent::Url(url) => Content::Url(url.clone()),
            our::PartContent::Data(data) => Content::Data(data.to_value().into()),
        };
        Self {
            content: Some(content),
            metadata: part.metadata.as_ref().map(to_struct),
            filename: part.filename.clone(),
            media_type: part.media_type.clone(),
        }
    }
}

impl TryFrom<Part> for our::Part {
    type Error = Unknown;

    fn try_from(part: Part) -> Result<Self, Unknown> {
        Ok(Self {
            content: match part.content.ok_or(Unknown)? {
                Content::Text(text) => our::PartContent::Text(text),
                Content::Raw(raw) => our::PartContent::Raw(raw.into()),
                Content::Url(url) => our::PartContent::Url(url),
                Content::Data(data) => our::PartContent::Data(our::Json::from_value(&data.into())),
            },
            metadata: part.metadata.map(from_struct),
            filename: part.filename,
            media_type: part.media_type,
        })
    }
}

impl From<&our::StreamResponse> for StreamResponse {
    fn from(response: &our::StreamResponse) -> Self {
        let payload = match response {
            our::StreamResponse::Task(task) => Some(Payload::Task(task.into())),
            our::StreamResponse::StatusUpdate(update) => {
                Some(Payload::StatusUpdate(StatusUpdate {
                    task_id: update.task_id.clone(),
                    context_id: update.context_id.clone(),
                    status: Some((&update.status).into()),
                    metadata: update.metadata.as_ref().map(to_struct),
                }))
            }
            our::StreamResponse::Message(_) | our::StreamResponse::ArtifactUpdate(_) => None,
        };
        Self { payload }
    }
}

impl TryFrom<StreamResponse> for our::StreamResponse {
    type Error = Unknown;

    fn try_from(response: StreamResponse) -> Result<Self, Unknown> {
        Ok(match response.payload.ok_or(Unknown)? {
            Payload::Task(task) => Self::Task(task.try_into()?),
            Payload::StatusUpdate(update) => Self::StatusUpdate(our::TaskStatusUpdateEvent {
                task_id: update.task_id,
                context_id: update.context_id,
                status: update.status.unwrap_or_default().try_into()?,
                metadata: update.metadata.map(from_struct),
            }),
        })
    }
}
