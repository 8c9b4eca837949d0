//! Every message with every field set, as an independent implementation encodes it.
//!
//! As for 1.0 (see `tests/it/vectors.rs`), by the official descriptors of a2a-sdk 0.3.26.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{asks, card, message, push, requests, security, task};
use crate::pb::Message as _;
use crate::{from_json, to_json};

const VECTORS: &str = include_str!("../../../tests/it/v03/vectors.tsv");

macro_rules! messages {
    ($($name:literal $module:ident $type:ident,)*) => {
        const NAMES: &[&str] = &[$($name),*];

        /// Our bytes for the JSON, and our JSON for the bytes.
        fn ours(name: &str, json: &[u8], bytes: &[u8]) -> (Vec<u8>, Vec<u8>) {
            match name {
                $($name => {
                    let read: $module::$type = from_json(json).unwrap();
                    let decoded = $module::$type::decode(bytes).unwrap();
                    (read.encode_to_vec(), to_json(&decoded))
                })*
                _ => panic!("no type for {name}"),
            }
        }
    };
}

messages! {
    "APIKeySecurityScheme" security ApiKeySecurityScheme,
    "AgentCapabilities" card AgentCapabilities,
    "AgentCard" card AgentCard,
    "AgentCardSignature" card AgentCardSignature,
    "AgentExtension" card AgentExtension,
    "AgentInterface" card AgentInterface,
    "AgentProvider" card AgentProvider,
    "AgentSkill" card AgentSkill,
    "Artifact" message Artifact,
    "AuthenticationInfo" push AuthenticationInfo,
    "AuthorizationCodeOAuthFlow" security AuthorizationCodeOAuthFlow,
    "CancelTaskRequest" asks CancelTaskRequest,
    "ClientCredentialsOAuthFlow" security ClientCredentialsOAuthFlow,
    "CreateTaskPushNotificationConfigRequest" push CreateTaskPushNotificationConfigRequest,
    "DataPart" message DataPart,
    "DeleteTaskPushNotificationConfigRequest" asks DeleteTaskPushNotificationConfigRequest,
    "FilePart" message FilePart,
    "GetTaskPushNotificationConfigRequest" asks GetTaskPushNotificationConfigRequest,
    "GetTaskRequest" asks GetTaskRequest,
    "HTTPAuthSecurityScheme" security HttpAuthSecurityScheme,
    "ImplicitOAuthFlow" security ImplicitOAuthFlow,
    "ListTaskPushNotificationConfigRequest" asks ListTaskPushNotificationConfigRequest,
    "ListTaskPushNotificationConfigResponse" push ListTaskPushNotificationConfigResponse,
    "Message" message Message,
    "MutualTlsSecurityScheme" security MutualTlsSecurityScheme,
    "OAuth2SecurityScheme" security OAuth2SecurityScheme,
    "OAuthFlows" security OAuthFlows,
    "OpenIdConnectSecurityScheme" security OpenIdConnectSecurityScheme,
    "Part" message Part,
    "PasswordOAuthFlow" security PasswordOAuthFlow,
    "PushNotificationConfig" push PushNotificationConfig,
    "Security" security Security,
    "SecurityScheme" security SecurityScheme,
    "SendMessageConfiguration" requests SendMessageConfiguration,
    "SendMessageRequest" requests SendMessageRequest,
    "SendMessageResponse" task SendMessageResponse,
    "StreamResponse" task StreamResponse,
    "StringList" security StringList,
    "Task" task Task,
    "TaskArtifactUpdateEvent" task TaskArtifactUpdateEvent,
    "TaskPushNotificationConfig" push TaskPushNotificationConfig,
    "TaskStatus" task TaskStatus,
    "TaskStatusUpdateEvent" task TaskStatusUpdateEvent,
    "TaskSubscriptionRequest" asks TaskSubscriptionRequest,
}

#[test]
fn v03_17_every_message_is_encoded_as_the_schema_has_it() {
    let mut seen = BTreeSet::new();
    for line in VECTORS.lines() {
        let [name, json, hex] = line.split('\t').collect::<Vec<_>>().try_into().unwrap();
        if name == "GetAgentCardRequest" {
            assert_eq!((json, hex), ("{}", ""));
            continue;
        }
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
    convert(serde_json::from_slice(text).unwrap_or_default())
}
