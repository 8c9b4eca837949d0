//! The schema as descriptors, for those who ask a server what it speaks (gRPC reflection).
//!
//! They come from the same tables as the encoding, so that they cannot say anything else. What the official schema
//! has beside names, numbers and types (comments, HTTP routes, which fields are required) is not in them.

mod table;
mod well_known;
mod write;

pub(crate) use table::{Declared, Described, Field, Kind, Label, Names, Table, Typed};
pub(crate) use write::set as write_set;

use crate::{
    AgentCapabilities, AgentCard, AgentCardSignature, AgentExtension, AgentInterface,
    AgentProvider, AgentSkill, ApiKeySecurityScheme, Artifact, AuthenticationInfo,
    AuthorizationCodeOAuthFlow, CancelTaskRequest, ClientCredentialsOAuthFlow,
    DeleteTaskPushNotificationConfigRequest, DeviceCodeOAuthFlow, GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest, GetTaskRequest, HttpAuthSecurityScheme,
    ImplicitOAuthFlow, ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse, ListTasksRequest, ListTasksResponse, Message,
    MutualTlsSecurityScheme, OAuth2SecurityScheme, OAuthFlows, OpenIdConnectSecurityScheme, Part,
    PasswordOAuthFlow, Role, SecurityRequirement, SecurityScheme, SendMessageConfiguration,
    SendMessageRequest, SendMessageResponse, StreamResponse, StringList, SubscribeToTaskRequest,
    Task, TaskArtifactUpdateEvent, TaskPushNotificationConfig, TaskState, TaskStatus,
    TaskStatusUpdateEvent,
};

/// The gRPC service by its full name.
pub const SERVICE: &str = "lf.a2a.v1.A2AService";

/// A file of a schema.
pub(crate) struct File {
    pub(crate) name: &'static str,
    pub(crate) package: &'static str,
    pub(crate) needs: &'static [&'static str],
    pub(crate) messages: &'static [Table],
    pub(crate) enums: &'static [Names],
    pub(crate) service: Option<Service>,
}

pub(crate) struct Service {
    pub(crate) name: &'static str,
    pub(crate) methods: &'static [Rpc],
}

pub(crate) struct Rpc {
    pub(crate) name: &'static str,
    pub(crate) takes: Kind,
    pub(crate) gives: Kind,
    pub(crate) streams: bool,
}

/// The files that schemas need.
pub(crate) const WELL_KNOWN: [File; 3] =
    [well_known::EMPTY, well_known::STRUCT, well_known::TIMESTAMP];

const A2A: File = File {
    name: "a2a.proto",
    package: "lf.a2a.v1",
    needs: &[
        well_known::EMPTY.name,
        well_known::STRUCT.name,
        well_known::TIMESTAMP.name,
    ],
    messages: &[
        SendMessageConfiguration::TABLE,
        Task::TABLE,
        TaskStatus::TABLE,
        Part::TABLE,
        Message::TABLE,
        Artifact::TABLE,
        TaskStatusUpdateEvent::TABLE,
        TaskArtifactUpdateEvent::TABLE,
        AuthenticationInfo::TABLE,
        AgentInterface::TABLE,
        AgentCard::TABLE,
        AgentProvider::TABLE,
        AgentCapabilities::TABLE,
        AgentExtension::TABLE,
        AgentSkill::TABLE,
        AgentCardSignature::TABLE,
        TaskPushNotificationConfig::TABLE,
        StringList::TABLE,
        SecurityRequirement::TABLE,
        SecurityScheme::TABLE,
        ApiKeySecurityScheme::TABLE,
        HttpAuthSecurityScheme::TABLE,
        OAuth2SecurityScheme::TABLE,
        OpenIdConnectSecurityScheme::TABLE,
        MutualTlsSecurityScheme::TABLE,
        OAuthFlows::TABLE,
        AuthorizationCodeOAuthFlow::TABLE,
        ClientCredentialsOAuthFlow::TABLE,
        ImplicitOAuthFlow::TABLE,
        PasswordOAuthFlow::TABLE,
        DeviceCodeOAuthFlow::TABLE,
        SendMessageRequest::TABLE,
        GetTaskRequest::TABLE,
        ListTasksRequest::TABLE,
        ListTasksResponse::TABLE,
        CancelTaskRequest::TABLE,
        GetTaskPushNotificationConfigRequest::TABLE,
        DeleteTaskPushNotificationConfigRequest::TABLE,
        SubscribeToTaskRequest::TABLE,
        ListTaskPushNotificationConfigsRequest::TABLE,
        GetExtendedAgentCardRequest::TABLE,
        SendMessageResponse::TABLE,
        StreamResponse::TABLE,
        ListTaskPushNotificationConfigsResponse::TABLE,
    ],
    enums: &[TaskState::NAMES, Role::NAMES],
    service: Some(Service {
        name: "A2AService",
        methods: &[
            Rpc::new::<SendMessageRequest, SendMessageResponse>("SendMessage"),
            Rpc::new::<SendMessageRequest, StreamResponse>("SendStreamingMessage").streaming(),
            Rpc::new::<GetTaskRequest, Task>("GetTask"),
            Rpc::new::<ListTasksRequest, ListTasksResponse>("ListTasks"),
            Rpc::new::<CancelTaskRequest, Task>("CancelTask"),
            Rpc::new::<SubscribeToTaskRequest, StreamResponse>("SubscribeToTask").streaming(),
            Rpc::new::<TaskPushNotificationConfig, TaskPushNotificationConfig>(
                "CreateTaskPushNotificationConfig",
            ),
            Rpc::new::<GetTaskPushNotificationConfigRequest, TaskPushNotificationConfig>(
                "GetTaskPushNotificationConfig",
            ),
            Rpc::new::<
                ListTaskPushNotificationConfigsRequest,
                ListTaskPushNotificationConfigsResponse,
            >("ListTaskPushNotificationConfigs"),
            Rpc::new::<GetExtendedAgentCardRequest, AgentCard>("GetExtendedAgentCard"),
            Rpc {
                name: "DeleteTaskPushNotificationConfig",
                takes: <DeleteTaskPushNotificationConfigRequest as Typed>::KIND,
                gives: Kind::Message(".google.protobuf.Empty"),
                streams: false,
            },
        ],
    }),
};

impl Rpc {
    pub(crate) const fn new<Takes: Typed, Gives: Typed>(name: &'static str) -> Self {
        Self {
            name,
            takes: Takes::KIND,
            gives: Gives::KIND,
            streams: false,
        }
    }

    pub(crate) const fn streaming(mut self) -> Self {
        self.streams = true;
        self
    }
}

/// The schema as an encoded `google.protobuf.FileDescriptorSet`, with the files it needs.
#[must_use]
pub fn descriptor_set() -> Vec<u8> {
    write::set(&[
        well_known::EMPTY,
        well_known::STRUCT,
        well_known::TIMESTAMP,
        A2A,
    ])
}
