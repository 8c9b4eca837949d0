//! The schema as descriptors.

use super::asks::{
    CancelTaskRequest, DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest, GetTaskRequest, ListTaskPushNotificationConfigRequest,
    TaskSubscriptionRequest,
};
use super::card::{
    AgentCapabilities, AgentCard, AgentCardSignature, AgentExtension, AgentInterface,
    AgentProvider, AgentSkill,
};
use super::enums::{Role, TaskState};
use super::message::{Artifact, DataPart, FilePart, Message, Part};
use super::push::{
    AuthenticationInfo, CreateTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigResponse, PushNotificationConfig, TaskPushNotificationConfig,
};
use super::requests::{SendMessageConfiguration, SendMessageRequest};
use super::security::{
    ApiKeySecurityScheme, AuthorizationCodeOAuthFlow, ClientCredentialsOAuthFlow,
    HttpAuthSecurityScheme, ImplicitOAuthFlow, MutualTlsSecurityScheme, OAuth2SecurityScheme,
    OAuthFlows, OpenIdConnectSecurityScheme, PasswordOAuthFlow, Security, SecurityScheme,
    StringList,
};
use super::task::{
    SendMessageResponse, StreamResponse, Task, TaskArtifactUpdateEvent, TaskStatus,
    TaskStatusUpdateEvent,
};
use crate::pb::{Described as _, File, Kind, Rpc, Service, Table, Typed, WELL_KNOWN, write_set};

/// The gRPC service by its full name.
pub const SERVICE: &str = "a2a.v1.A2AService";

/// There is nothing in it to read or write.
const NO_QUESTION: Table = Table {
    name: "GetAgentCardRequest",
    choice: None,
    fields: &[],
};

const A2A: File = File {
    // Not the name of the file of 1.0: tools keep files by their names.
    name: "a2a/v1/a2a.proto",
    package: "a2a.v1",
    needs: &[WELL_KNOWN[0].name, WELL_KNOWN[1].name, WELL_KNOWN[2].name],
    messages: &[
        SendMessageConfiguration::TABLE,
        Task::TABLE,
        TaskStatus::TABLE,
        Part::TABLE,
        FilePart::TABLE,
        DataPart::TABLE,
        Message::TABLE,
        Artifact::TABLE,
        TaskStatusUpdateEvent::TABLE,
        TaskArtifactUpdateEvent::TABLE,
        PushNotificationConfig::TABLE,
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
        Security::TABLE,
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
        SendMessageRequest::TABLE,
        GetTaskRequest::TABLE,
        CancelTaskRequest::TABLE,
        GetTaskPushNotificationConfigRequest::TABLE,
        DeleteTaskPushNotificationConfigRequest::TABLE,
        CreateTaskPushNotificationConfigRequest::TABLE,
        TaskSubscriptionRequest::TABLE,
        ListTaskPushNotificationConfigRequest::TABLE,
        NO_QUESTION,
        SendMessageResponse::TABLE,
        StreamResponse::TABLE,
        ListTaskPushNotificationConfigResponse::TABLE,
    ],
    enums: &[TaskState::NAMES, Role::NAMES],
    service: Some(Service {
        name: "A2AService",
        methods: &[
            Rpc::new::<SendMessageRequest, SendMessageResponse>("SendMessage"),
            Rpc::new::<SendMessageRequest, StreamResponse>("SendStreamingMessage").streaming(),
            Rpc::new::<GetTaskRequest, Task>("GetTask"),
            Rpc::new::<CancelTaskRequest, Task>("CancelTask"),
            Rpc::new::<TaskSubscriptionRequest, StreamResponse>("TaskSubscription").streaming(),
            Rpc::new::<CreateTaskPushNotificationConfigRequest, TaskPushNotificationConfig>(
                "CreateTaskPushNotificationConfig",
            ),
            Rpc::new::<GetTaskPushNotificationConfigRequest, TaskPushNotificationConfig>(
                "GetTaskPushNotificationConfig",
            ),
            Rpc::new::<ListTaskPushNotificationConfigRequest, ListTaskPushNotificationConfigResponse>(
                "ListTaskPushNotificationConfig",
            ),
            Rpc {
                name: "GetAgentCard",
                takes: Kind::Message(".a2a.v1.GetAgentCardRequest"),
                gives: <AgentCard as Typed>::KIND,
                streams: false,
            },
            Rpc {
                name: "DeleteTaskPushNotificationConfig",
                takes: <DeleteTaskPushNotificationConfigRequest as Typed>::KIND,
                gives: Kind::Message(".google.protobuf.Empty"),
                streams: false,
            },
        ],
    }),
};

/// The schema as an encoded `google.protobuf.FileDescriptorSet`, with the files it needs.
#[must_use]
pub fn descriptor_set() -> Vec<u8> {
    let [empty, structs, timestamp] = WELL_KNOWN;
    write_set(&[empty, structs, timestamp, A2A])
}
