//! The A2A protocol as data: the messages of `lf.a2a.v1` with exact ProtoJSON, ids, times, and the error table.
//!
//! The wire types have the shape of the schema: an unset id is an empty string, an unset message is `None`. Reading
//! one checks its form only; [`SendMessageRequest::check`] and its like check what the schema requires. The ids of
//! this crate, such as [`TaskId`], are for after that.
//!
//! Protocol 0.3 is read into these types and written from them, in [`v03`].
//!
//! This crate knows no clock, no I/O, no agents and no bindings.
//!
//! ```
//! use a2ad_proto::{SendMessageRequest, from_json};
//! let request: SendMessageRequest = from_json(br#"{"message":{"messageId":"m1","role":1,"parts":[{"text":"hi"}]}}"#)?;
//! request.check()?;
//!
//! let wrong = from_json::<SendMessageRequest>(br#"{"message":{"parts":[{"text":5}]}}"#).unwrap_err();
//! assert_eq!(wrong.0[0].field, "message.parts[0].text");
//! # Ok::<(), a2ad_proto::Violations>(())
//! ```
#![deny(missing_docs)]

mod artifact;
mod card;
mod check;
mod error;
mod event;
mod ids;
mod json;
mod message;
mod part;
#[cfg(feature = "protobuf")]
pub mod pb;
mod push;
mod requests;
#[cfg(feature = "protobuf")]
pub mod rpc;
mod security;
mod task;
mod time;
pub mod v03;
mod wire;

pub use artifact::Artifact;
pub use card::{
    AgentCapabilities, AgentCard, AgentCardSignature, AgentExtension, AgentInterface,
    AgentProvider, AgentSkill,
};
pub use check::{FieldViolation, Violations, from_json, is_json};
pub use error::{ERROR_DOMAIN, ErrorKind};
pub use event::{
    SendMessageResponse, StreamResponse, TaskArtifactUpdateEvent, TaskStatusUpdateEvent,
};
pub use ids::{AgentId, ArtifactId, ContextId, IdError, MessageId, PushConfigId, TaskId};
pub use json::{Json, JsonError, Metadata, canonical_json, to_json, write_json};
pub use message::{Message, Role};
pub use part::{Part, PartContent};
pub use push::{
    AuthenticationInfo, DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest, ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse, TaskPushNotificationConfig,
};
pub use requests::{
    CancelTaskRequest, GetExtendedAgentCardRequest, GetTaskRequest, ListTasksRequest,
    ListTasksResponse, SendMessageConfiguration, SendMessageRequest, SubscribeToTaskRequest,
    WithArtifacts,
};
pub use security::{
    ApiKeySecurityScheme, AuthorizationCodeOAuthFlow, ClientCredentialsOAuthFlow,
    DeviceCodeOAuthFlow, HttpAuthSecurityScheme, ImplicitOAuthFlow, MutualTlsSecurityScheme,
    OAuth2SecurityScheme, OAuthFlows, OpenIdConnectSecurityScheme, PasswordOAuthFlow,
    SecurityRequirement, SecurityScheme, StringList,
};
pub use task::{ListedTask, Task, TaskState, TaskStatus};
pub use time::{Timestamp, TimestampError};

/// The extension of agents that number the events of their streams, resume them from any number, and recognise
/// messages that come again. Where a binding has no place for an event's number, its metadata holds it under this
/// name.
pub const REPLAY: &str = "urn:a2ad:replay:v1";
