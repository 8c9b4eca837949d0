//! Every message with every field set, as an independent implementation encodes it.
//!
//! Each line of `vectors.tsv` has a message's name, its ProtoJSON and its protobuf bytes in hexadecimal. They were
//! made by `tests/vectors.py` from the official descriptors with Google's Python library (a2a-sdk 1.3.0), each choice
//! taken in turn, so a wrong number, name or type anywhere in our tables shows here.

use std::collections::BTreeSet;

use a2ad_proto::pb::Message as _;
use a2ad_proto::{from_json, to_json};
use serde_json::Value;

const VECTORS: &str = include_str!("vectors.tsv");

macro_rules! messages {
    ($($name:literal $type:ident,)*) => {
        const NAMES: &[&str] = &[$($name),*];

        /// Our bytes for the JSON, and our JSON for the bytes.
        fn ours(name: &str, json: &[u8], bytes: &[u8]) -> (Vec<u8>, Vec<u8>) {
            match name {
                $($name => {
                    let read: a2ad_proto::$type = from_json(json).unwrap();
                    let decoded = a2ad_proto::$type::decode(bytes).unwrap();
                    (read.encode_to_vec(), to_json(&decoded))
                })*
                _ => panic!("no type for {name}"),
            }
        }
    };
}

messages! {
    "APIKeySecurityScheme" ApiKeySecurityScheme,
    "AgentCapabilities" AgentCapabilities,
    "AgentCard" AgentCard,
    "AgentCardSignature" AgentCardSignature,
    "AgentExtension" AgentExtension,
    "AgentInterface" AgentInterface,
    "AgentProvider" AgentProvider,
    "AgentSkill" AgentSkill,
    "Artifact" Artifact,
    "AuthenticationInfo" AuthenticationInfo,
    "AuthorizationCodeOAuthFlow" AuthorizationCodeOAuthFlow,
    "CancelTaskRequest" CancelTaskRequest,
    "ClientCredentialsOAuthFlow" ClientCredentialsOAuthFlow,
    "DeleteTaskPushNotificationConfigRequest" DeleteTaskPushNotificationConfigRequest,
    "DeviceCodeOAuthFlow" DeviceCodeOAuthFlow,
    "GetExtendedAgentCardRequest" GetExtendedAgentCardRequest,
    "GetTaskPushNotificationConfigRequest" GetTaskPushNotificationConfigRequest,
    "GetTaskRequest" GetTaskRequest,
    "HTTPAuthSecurityScheme" HttpAuthSecurityScheme,
    "ImplicitOAuthFlow" ImplicitOAuthFlow,
    "ListTaskPushNotificationConfigsRequest" ListTaskPushNotificationConfigsRequest,
    "ListTaskPushNotificationConfigsResponse" ListTaskPushNotificationConfigsResponse,
    "ListTasksRequest" ListTasksRequest,
    "ListTasksResponse" ListTasksResponse,
    "Message" Message,
    "MutualTlsSecurityScheme" MutualTlsSecurityScheme,
    "OAuth2SecurityScheme" OAuth2SecurityScheme,
    "OAuthFlows" OAuthFlows,
    "OpenIdConnectSecurityScheme" OpenIdConnectSecurityScheme,
    "Part" Part,
    "PasswordOAuthFlow" PasswordOAuthFlow,
    "SecurityRequirement" SecurityRequirement,
    "SecurityScheme" SecurityScheme,
    "SendMessageConfiguration" SendMessageConfiguration,
    "SendMessageRequest" SendMessageRequest,
    "SendMessageResponse" SendMessageResponse,
    "StreamResponse" StreamResponse,
    "StringList" StringList,
    "SubscribeToTaskRequest" SubscribeToTaskRequest,
    "Task" Task,
    "TaskArtifactUpdateEvent" TaskArtifactUpdateEvent,
    "TaskPushNotificationConfig" TaskPushNotificationConfig,
    "TaskStatus" TaskStatus,
    "TaskStatusUpdateEvent" TaskStatusUpdateEvent,
}

#[test]
fn model_01_every_message_is_encoded_as_the_schema_has_it() {
    let mut seen = BTreeSet::new();
    for line in VECTORS.lines() {
        let [name, json, hex] = line.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let expected: Vec<u8> = (hex.as_bytes().chunks(2))
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect();
        let (bytes, text) = ours(name, json.as_bytes(), &expected);
        assert_eq!(bytes, expected, "{name}: {json}");
        assert_eq!(doubles(&text), doubles(json.as_bytes()), "{name}");
        seen.insert(name);
    }
    assert_eq!(seen, NAMES.iter().copied().collect());
}

/// The tree with every number as a double: the other side writes `1.0` where we write `1`.
fn doubles(text: &[u8]) -> Value {
    fn convert(value: Value) -> Value {
        match value {
            Value::Number(number) => number.as_f64().into(),
            Value::Array(list) => list.into_iter().map(convert).collect(),
            Value::Object(map) => map.into_iter().map(|(k, v)| (k, convert(v))).collect(),
            other => other,
        }
    }
    convert(serde_json::from_slice(text).unwrap())
}
