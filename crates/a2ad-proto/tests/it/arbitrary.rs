//! Arbitrary values of the wire types.

use std::collections::BTreeMap;

use a2ad_proto::{
    AgentCapabilities, AgentCard, AgentCardSignature, AgentExtension, AgentInterface,
    AgentProvider, AgentSkill, ApiKeySecurityScheme, Artifact, AuthenticationInfo,
    AuthorizationCodeOAuthFlow, DeviceCodeOAuthFlow, Json, ListTasksRequest, ListTasksResponse,
    Message, Metadata, MutualTlsSecurityScheme, OAuth2SecurityScheme, OAuthFlows, Part,
    PartContent, Role, SecurityRequirement, SecurityScheme, SendMessageConfiguration,
    SendMessageRequest, StreamResponse, StringList, Task, TaskArtifactUpdateEvent,
    TaskPushNotificationConfig, TaskState, TaskStatus, TaskStatusUpdateEvent, Timestamp,
};
use proptest::collection::{btree_map, vec};
use proptest::option::of;
use proptest::prelude::*;
use serde_json::Value;

/// Short text with what needs care: quotes, control characters, characters beyond the basic plane, nothing at all.
pub(crate) fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[a-z0-9-]{0,12}",
        1 => "[\\x00-\\x7f]{0,6}",
        1 => "\\PC{0,6}",
    ]
}

/// A tree whose numbers are doubles exactly, so that protobuf gives them back.
pub(crate) fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        (-9_007_199_254_740_991_i64..=9_007_199_254_740_991).prop_map(Value::from),
        (any::<i32>(), 1_u8..16).prop_map(|(n, s)| Value::from(f64::from(n) + f64::from(s) / 16.0)),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(text(), inner, 0..4).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

pub(crate) fn metadata() -> impl Strategy<Value = Metadata> {
    let map = btree_map(text(), tree(), 0..3);
    map.prop_map(|map| Metadata::from_map(&map.into_iter().collect()))
}

pub(crate) fn timestamp() -> impl Strategy<Value = Timestamp> {
    let range = Timestamp::MIN.seconds()..=Timestamp::MAX.seconds();
    let nanos = prop_oneof![
        Just(0),
        0..1_000_000_000_u32,
        (0..1_000_u32).prop_map(|m| m * 1_000_000)
    ];
    (range, nanos).prop_map(|(seconds, nanos)| Timestamp::from_parts(seconds, nanos).unwrap())
}

fn state() -> impl Strategy<Value = TaskState> {
    proptest::sample::select(TaskState::ALL)
}

pub(crate) fn part() -> impl Strategy<Value = Part> {
    let content = prop_oneof![
        text().prop_map(PartContent::Text),
        vec(any::<u8>(), 0..20).prop_map(|raw| PartContent::Raw(raw.into())),
        text().prop_map(PartContent::Url),
        tree().prop_map(|tree| PartContent::Data(Json::from_value(&tree))),
    ];
    (content, of(metadata()), text(), text()).prop_map(
        |(content, metadata, filename, media_type)| Part {
            content,
            metadata,
            filename,
            media_type,
        },
    )
}

pub(crate) fn message() -> impl Strategy<Value = Message> {
    let ids = (text(), text(), text());
    let role = proptest::sample::select(Role::ALL);
    let lists = (vec(text(), 0..3), vec(text(), 0..3));
    (ids, role, vec(part(), 0..3), of(metadata()), lists).prop_map(
        |(ids, role, parts, metadata, lists)| Message {
            message_id: ids.0,
            context_id: ids.1,
            task_id: ids.2,
            role,
            parts,
            metadata,
            extensions: lists.0,
            reference_task_ids: lists.1,
        },
    )
}

fn artifact() -> impl Strategy<Value = Artifact> {
    let names = (text(), text(), text());
    (names, vec(part(), 0..3), of(metadata()), vec(text(), 0..2)).prop_map(
        |(names, parts, metadata, extensions)| Artifact {
            artifact_id: names.0,
            name: names.1,
            description: names.2,
            parts,
            metadata,
            extensions,
        },
    )
}

fn status() -> impl Strategy<Value = TaskStatus> {
    (state(), of(message()), of(timestamp())).prop_map(|(state, message, timestamp)| TaskStatus {
        state,
        message,
        timestamp,
    })
}

pub(crate) fn task() -> impl Strategy<Value = Task> {
    let lists = (vec(artifact(), 0..3), vec(message(), 0..3));
    ((text(), text()), status(), lists, of(metadata())).prop_map(
        |(ids, status, lists, metadata)| Task {
            id: ids.0,
            context_id: ids.1,
            status,
            artifacts: lists.0,
            history: lists.1,
            metadata,
        },
    )
}

pub(crate) fn stream_response() -> impl Strategy<Value = StreamResponse> {
    let status_update = (text(), text(), status(), of(metadata()));
    let artifact_update = (
        (text(), text()),
        artifact(),
        any::<(bool, bool)>(),
        of(metadata()),
    );
    prop_oneof![
        task().prop_map(StreamResponse::Task),
        message().prop_map(StreamResponse::Message),
        status_update.prop_map(|(task_id, context_id, status, metadata)| {
            StreamResponse::StatusUpdate(TaskStatusUpdateEvent {
                task_id,
                context_id,
                status,
                metadata,
            })
        }),
        artifact_update.prop_map(|(ids, artifact, flags, metadata)| {
            StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
                task_id: ids.0,
                context_id: ids.1,
                artifact,
                append: flags.0,
                last_chunk: flags.1,
                metadata,
            })
        }),
    ]
}

pub(crate) fn push_config() -> impl Strategy<Value = TaskPushNotificationConfig> {
    let authentication = (text(), text()).prop_map(|(scheme, credentials)| AuthenticationInfo {
        scheme,
        credentials,
    });
    (vec(text(), 5), of(authentication)).prop_map(|(texts, authentication)| {
        let [tenant, id, task_id, url, token] = texts.try_into().unwrap();
        TaskPushNotificationConfig {
            tenant,
            id,
            task_id,
            url,
            token,
            authentication,
        }
    })
}

pub(crate) fn send_request() -> impl Strategy<Value = SendMessageRequest> {
    let configuration = (
        vec(text(), 0..2),
        of(push_config()),
        of(any::<i32>()),
        any::<bool>(),
    );
    let configuration =
        configuration.prop_map(
            |(modes, push, history_length, flag)| SendMessageConfiguration {
                accepted_output_modes: modes,
                task_push_notification_config: push,
                history_length,
                return_immediately: flag,
            },
        );
    (text(), of(message()), of(configuration), of(metadata())).prop_map(
        |(tenant, message, configuration, metadata)| SendMessageRequest {
            tenant,
            message,
            configuration,
            metadata,
        },
    )
}

pub(crate) fn list_request() -> impl Strategy<Value = ListTasksRequest> {
    let texts = (text(), text(), text());
    let numbers = (of(any::<i32>()), of(any::<i32>()), of(any::<bool>()));
    (texts, state(), numbers, of(timestamp())).prop_map(|(texts, status, numbers, after)| {
        ListTasksRequest {
            tenant: texts.0,
            context_id: texts.1,
            status,
            page_size: numbers.0,
            page_token: texts.2,
            history_length: numbers.1,
            status_timestamp_after: after,
            include_artifacts: numbers.2,
        }
    })
}

pub(crate) fn list_response() -> impl Strategy<Value = ListTasksResponse> {
    (vec(task(), 0..2), text(), any::<(i32, i32)>()).prop_map(|(tasks, next_page_token, sizes)| {
        ListTasksResponse {
            tasks,
            next_page_token,
            page_size: sizes.0,
            total_size: sizes.1,
        }
    })
}

fn scheme() -> impl Strategy<Value = SecurityScheme> {
    let scopes = || btree_map(text(), text(), 0..3);
    let code =
        (vec(text(), 3), scopes(), any::<bool>()).prop_map(|(texts, scopes, pkce_required)| {
            let [authorization_url, token_url, refresh_url] = texts.try_into().unwrap();
            OAuthFlows::AuthorizationCode(AuthorizationCodeOAuthFlow {
                authorization_url,
                token_url,
                refresh_url,
                scopes,
                pkce_required,
            })
        });
    let device = (vec(text(), 3), scopes()).prop_map(|(texts, scopes)| {
        let [device_authorization_url, token_url, refresh_url] = texts.try_into().unwrap();
        OAuthFlows::DeviceCode(DeviceCodeOAuthFlow {
            device_authorization_url,
            token_url,
            refresh_url,
            scopes,
        })
    });
    let flows = prop_oneof![code, device, Just(OAuthFlows::Unset)];
    prop_oneof![
        (text(), text(), text()).prop_map(|(description, location, name)| {
            SecurityScheme::ApiKey(ApiKeySecurityScheme {
                description,
                location,
                name,
            })
        }),
        (text(), flows, text()).prop_map(|(description, flows, oauth2_metadata_url)| {
            SecurityScheme::OAuth2(OAuth2SecurityScheme {
                description,
                flows,
                oauth2_metadata_url,
            })
        }),
        text().prop_map(
            |description| SecurityScheme::MutualTls(MutualTlsSecurityScheme { description })
        ),
    ]
}

fn requirement() -> impl Strategy<Value = SecurityRequirement> {
    let list = vec(text(), 0..3).prop_map(|list| StringList { list });
    btree_map(text(), list, 0..3).prop_map(|schemes| SecurityRequirement { schemes })
}

pub(crate) fn card() -> impl Strategy<Value = AgentCard> {
    let interface = vec(text(), 4).prop_map(|texts| {
        let [url, protocol_binding, tenant, protocol_version] = texts.try_into().unwrap();
        AgentInterface {
            url,
            protocol_binding,
            tenant,
            protocol_version,
        }
    });
    let provider =
        (text(), text()).prop_map(|(url, organization)| AgentProvider { url, organization });
    let extension = (text(), text(), any::<bool>(), of(metadata())).prop_map(
        |(uri, description, required, params)| AgentExtension {
            uri,
            description,
            required,
            params,
        },
    );
    let flags = (of(any::<bool>()), of(any::<bool>()), of(any::<bool>()));
    let capabilities =
        (flags, vec(extension, 0..2)).prop_map(|(flags, extensions)| AgentCapabilities {
            streaming: flags.0,
            push_notifications: flags.1,
            extensions,
            extended_agent_card: flags.2,
        });
    let skill = (
        vec(text(), 3),
        vec(vec(text(), 0..2), 4),
        vec(requirement(), 0..2),
    );
    let skill = skill.prop_map(|(texts, lists, security_requirements)| {
        let [id, name, description] = texts.try_into().unwrap();
        let [tags, examples, input_modes, output_modes] = lists.try_into().unwrap();
        AgentSkill {
            id,
            name,
            description,
            tags,
            examples,
            input_modes,
            output_modes,
            security_requirements,
        }
    });
    let signature = (text(), text(), of(metadata())).prop_map(|(protected, signature, header)| {
        AgentCardSignature {
            protected,
            signature,
            header,
        }
    });
    let schemes = btree_map(text(), scheme(), 0..3).prop_map(|map: BTreeMap<_, _>| map);
    (
        (vec(text(), 3), of(text()), of(text()), of(provider)),
        (
            vec(interface, 0..2),
            capabilities,
            vec(skill, 0..2),
            vec(signature, 0..2),
        ),
        (schemes, vec(requirement(), 0..2), vec(vec(text(), 0..2), 2)),
    )
        .prop_map(|(about, parts, security)| {
            let [name, description, version] = about.0.try_into().unwrap();
            let [default_input_modes, default_output_modes] = security.2.try_into().unwrap();
            AgentCard {
                name,
                description,
                supported_interfaces: parts.0,
                provider: about.3,
                version,
                documentation_url: about.1,
                capabilities: parts.1,
                security_schemes: security.0,
                security_requirements: security.1,
                default_input_modes,
                default_output_modes,
                skills: parts.2,
                signatures: parts.3,
                icon_url: about.2,
            }
        })
}
