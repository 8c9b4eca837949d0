//! What 1.0 says comes back from 0.3, but for what 0.3 cannot say.

use a2ad_proto::v03::{self, Dialect};
use a2ad_proto::{
    AgentCard, Artifact, Message, Metadata, OAuthFlows, Part, PartContent, Role, SecurityScheme,
    SendMessageConfiguration, SendMessageRequest, SendMessageResponse, StreamResponse, Task,
    TaskPushNotificationConfig, from_json,
};
use proptest::prelude::*;

use super::BOTH;
use crate::arbitrary as any;

/// Leaves out what 0.3 has no place for (see the module's documentation).
struct Losses(Dialect);

impl Losses {
    fn part(&self, part: &mut Part) {
        if matches!(part.content, PartContent::Text(_) | PartContent::Data(_)) {
            part.filename.clear();
            part.media_type.clear();
        }
        // An empty object of metadata is lost when the mark of wrapped data is taken out of it.
        let is_object = |data: &str| data.starts_with('{');
        if let PartContent::Data(data) = &part.content
            && !is_object(data.as_str())
            && part.metadata.as_ref().is_some_and(Metadata::is_empty)
        {
            part.metadata = None;
        }
    }

    fn message(&self, message: &mut Message) {
        message.parts.iter_mut().for_each(|part| self.part(part));
        if self.0 == Dialect::Kinds {
            if message.role == Role::Unspecified {
                message.role = Role::Agent;
            }
        } else {
            message.reference_task_ids.clear();
        }
    }

    fn artifact(&self, artifact: &mut Artifact) {
        artifact.parts.iter_mut().for_each(|part| self.part(part));
    }

    fn task(&self, task: &mut Task) {
        task.status
            .message
            .iter_mut()
            .for_each(|it| self.message(it));
        task.history.iter_mut().for_each(|it| self.message(it));
        task.artifacts.iter_mut().for_each(|it| self.artifact(it));
    }

    fn event(&self, event: &mut StreamResponse) {
        match event {
            StreamResponse::Task(task) => self.task(task),
            StreamResponse::Message(message) => self.message(message),
            StreamResponse::StatusUpdate(event) => {
                event
                    .status
                    .message
                    .iter_mut()
                    .for_each(|it| self.message(it));
            }
            StreamResponse::ArtifactUpdate(event) => self.artifact(&mut event.artifact),
        }
    }

    fn push(&self, config: &mut TaskPushNotificationConfig) {
        config.tenant.clear();
        let empty = |it: &mut a2ad_proto::AuthenticationInfo| {
            it.scheme.is_empty() && it.credentials.is_empty()
        };
        config.authentication.take_if(empty);
    }

    fn send(&self, request: &mut SendMessageRequest) {
        request.tenant.clear();
        request.message.iter_mut().for_each(|it| self.message(it));
        if self.0 != Dialect::Kinds {
            request
                .configuration
                .get_or_insert_with(SendMessageConfiguration::default);
        }
        if let Some(configuration) = &mut request.configuration {
            if let Some(config) = &mut configuration.task_push_notification_config {
                self.push(config);
                config.task_id.clear();
            }
            if self.0 != Dialect::Kinds {
                configuration.history_length.take_if(|length| *length == 0);
            }
        }
    }
}

/// A name that fits into a resource's.
fn plain(mut config: TaskPushNotificationConfig) -> TaskPushNotificationConfig {
    let plain = |text: &str| text.replace('/', "-");
    config.task_id = format!("t{}", plain(&config.task_id));
    config.id = format!("c{}", plain(&config.id));
    config
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn events(mut event in any::stream_response(), last in any::<bool>()) {
        for dialect in [Dialect::Kinds, Dialect::Proto, Dialect::ProtoPlain] {
            Losses(dialect).event(&mut event);
            let written = v03::write_event(&event, last, dialect);
            prop_assert!(!written.contains(&b'\n'));
            let (read, said) = v03::read_event(&written, dialect).unwrap();
            prop_assert_eq!(&read, &event);
            let expected = match &event {
                StreamResponse::StatusUpdate(_) => last,
                StreamResponse::Message(_) => true,
                StreamResponse::Task(_) | StreamResponse::ArtifactUpdate(_) => false,
            };
            prop_assert_eq!(said, expected);
        }
    }

    #[test]
    fn answers(mut task in any::task(), mut message in any::message()) {
        for dialect in BOTH {
            Losses(dialect).task(&mut task);
            Losses(dialect).message(&mut message);
            let written = v03::write_task(&task, dialect);
            prop_assert_eq!(&v03::read_task(&written, dialect).unwrap(), &task);
            for answer in [SendMessageResponse::Task(task.clone()), SendMessageResponse::Message(message.clone())] {
                let written = v03::write_sent(&answer, dialect);
                prop_assert_eq!(v03::read_sent(&written, dialect).unwrap(), answer);
            }
        }
    }

    #[test]
    fn sends(mut request in any::send_request()) {
        for dialect in BOTH {
            Losses(dialect).send(&mut request);
            let written = v03::ask_send(&request, dialect);
            // Only what 1.0 would take is taken.
            match (v03::read_send(&written, dialect), request.check()) {
                (Ok(read), Ok(())) => prop_assert_eq!(&read, &request),
                (Err(found), Err(expected)) => prop_assert_eq!(found.0.len(), expected.0.len()),
                (read, checked) => prop_assert!(false, "{:?} but {:?}", read, checked),
            }
        }
    }

    #[test]
    fn configurations(config in any::push_config()) {
        let mut config = plain(config);
        for dialect in BOTH {
            Losses(dialect).push(&mut config);
            let written = v03::write_push(&config, dialect);
            prop_assert_eq!(&v03::read_push(&written).unwrap(), &config);
            let written = v03::ask_push_create(&config, dialect);
            match (v03::read_push_create(&written, dialect, None), config.check()) {
                (Ok(read), Ok(())) => prop_assert_eq!(&read, &config),
                (Err(found), Err(expected)) => prop_assert_eq!(found.0.len(), expected.0.len()),
                (read, checked) => prop_assert!(false, "{:?} but {:?}", read, checked),
            }
        }
    }

    #[test]
    fn other_requests(list in any::list_request(), id in "[a-z]{1,9}", config in "[a-z]{1,9}") {
        let mut list = list;
        list.tenant.clear();
        if list.check().is_ok() {
            let written = v03::ask_list(&list);
            prop_assert_eq!(v03::read_list(&written, Dialect::Kinds).unwrap(), list);
        }
        let get = a2ad_proto::GetTaskRequest { id: id.clone(), history_length: Some(0), ..Default::default() };
        prop_assert_eq!(v03::read_get(&v03::ask_get(&get), Dialect::Kinds).unwrap(), get);
        let cancel = a2ad_proto::CancelTaskRequest { id: id.clone(), metadata: Some(Metadata::default()), ..Default::default() };
        prop_assert_eq!(v03::read_cancel(&v03::ask_cancel(&cancel)).unwrap(), cancel);
        let subscribe = a2ad_proto::SubscribeToTaskRequest { id: id.clone(), ..Default::default() };
        prop_assert_eq!(v03::read_subscribe(&v03::ask_subscribe(&subscribe)).unwrap(), subscribe);
        let get = a2ad_proto::GetTaskPushNotificationConfigRequest { task_id: id.clone(), id: config.clone(), ..Default::default() };
        prop_assert_eq!(v03::read_push_get(&v03::ask_push_get(&get)).unwrap(), get);
        let delete = a2ad_proto::DeleteTaskPushNotificationConfigRequest { task_id: id.clone(), id: config, ..Default::default() };
        prop_assert_eq!(v03::read_push_delete(&v03::ask_push_delete(&delete)).unwrap(), delete);
        let list = a2ad_proto::ListTaskPushNotificationConfigsRequest { task_id: id, ..Default::default() };
        prop_assert_eq!(v03::read_push_list(&v03::ask_push_list(&list)).unwrap(), list);
    }

    #[test]
    fn cards(mut card in any::card()) {
        let hybrid = v03::write_hybrid_card(&card);
        prop_assert_eq!(&from_json::<AgentCard>(&hybrid).unwrap(), &card);
        let mut seen = Vec::new();
        for (at, interface) in card.supported_interfaces.iter_mut().enumerate() {
            "0.3".clone_into(&mut interface.protocol_version);
            interface.url = format!("https://h.example/{at}");
            interface.protocol_binding.push('X');
            interface.tenant.clear();
            seen.push(interface.clone());
        }
        let hybrid = v03::write_hybrid_card(&card);
        prop_assert_eq!(&from_json::<AgentCard>(&hybrid).unwrap(), &card);
        let Some(written) = v03::write_card(&card) else {
            return Ok(());
        };
        card.signatures.clear();
        card.capabilities.extended_agent_card.take_if(|it| !*it);
        card.documentation_url.take_if(|it| it.is_empty());
        card.icon_url.take_if(|it| it.is_empty());
        card.security_schemes.retain(|_, scheme| *scheme != SecurityScheme::Unset);
        for scheme in card.security_schemes.values_mut() {
            if let SecurityScheme::OAuth2(it) = scheme {
                match &mut it.flows {
                    OAuthFlows::DeviceCode(_) => it.flows = OAuthFlows::Unset,
                    OAuthFlows::AuthorizationCode(flow) => flow.pkce_required = false,
                    _ => {}
                }
            }
        }
        prop_assert_eq!(v03::read_card(&written).unwrap(), card);
    }

    #[test]
    fn arbitrary_text_never_panics(text in "\\PC{0,60}", bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        read_all(text.as_bytes());
        read_all(&bytes);
    }

    #[test]
    fn arbitrary_json_never_panics(tree in any::tree(), event in any::stream_response(), at in 0.0..1.0_f64, byte in any::<u8>()) {
        read_all(tree.to_string().as_bytes());
        for name in ["message", "request", "configuration", "pushNotificationConfig", "config", "securitySchemes", "skills"] {
            read_all(format!(r#"{{"{name}":{tree}}}"#).as_bytes());
            read_all(format!(r#"{{"message":{{"parts":[{{"{name}":{tree},"data":{tree}}}]}}}}"#).as_bytes());
        }
        for dialect in BOTH {
            let mut written = v03::write_event(&event, true, dialect);
            let at = (at * written.len() as f64) as usize;
            written[at] = byte;
            read_all(&written);
            read_all(&written[..at]);
        }
    }
}

fn read_all(json: &[u8]) {
    for dialect in [Dialect::Kinds, Dialect::Proto, Dialect::ProtoPlain] {
        drop(v03::read_send(json, dialect));
        drop(v03::read_get(json, dialect));
        drop(v03::read_list(json, dialect));
        drop(v03::read_push_create(json, dialect, None));
        drop(v03::read_event(json, dialect));
        drop(v03::read_page(json, dialect));
    }
    drop(v03::read_cancel(json));
    drop(v03::read_subscribe(json));
    drop(v03::read_push_get(json));
    drop(v03::read_push_list(json));
    drop(v03::read_push_delete(json));
    drop(v03::read_push(json));
    drop(v03::read_pushes(json));
    drop(v03::read_card(json));
    let _hint = v03::looks_like_v03(json);
}
