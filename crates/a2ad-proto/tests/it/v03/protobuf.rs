//! The protobuf of 0.3. The fields themselves are compared inside the crate, where their types are.

use std::collections::BTreeSet;

use a2ad_proto::pb::DecodeError;
use a2ad_proto::v03::{self, Dialect, pb};
use a2ad_proto::{Message, PartContent, StreamResponse, TaskState};
use proptest::prelude::*;
use prost::Message as _;
use prost_types::{FileDescriptorProto, FileDescriptorSet};

use super::roundtrip::{Losses, plain};
use crate::arbitrary as any;

const FIELDS: &str = include_str!("fields.tsv");

#[track_caller]
fn wrong<T: std::fmt::Debug>(read: Result<T, DecodeError>) -> String {
    match read.unwrap_err() {
        DecodeError::Invalid(found) => found.0[0].field.clone(),
        malformed @ DecodeError::Malformed(_) => panic!("{malformed}"),
    }
}

/// V03-17: names, numbers, types and choices are those of the official descriptors.
#[test]
fn v03_17_the_schema_is_told_as_it_is() {
    let set = FileDescriptorSet::decode(&*pb::descriptor_set()).unwrap();
    let file = set.file.last().unwrap();
    let ours: BTreeSet<String> = lines(file).into_iter().collect();
    let theirs: BTreeSet<String> = FIELDS.lines().map(str::to_owned).collect();
    assert_eq!(ours, theirs);
    for needed in &file.dependency {
        assert!(
            set.file.iter().any(|file| file.name() == needed),
            "{needed}"
        );
    }
}

/// The file in the form of `fields.tsv`.
fn lines(file: &FileDescriptorProto) -> Vec<String> {
    let bare = |name: &str| name.trim_start_matches('.').to_owned();
    let mut lines = Vec::new();
    for message in &file.message_type {
        for field in &message.field {
            let choice = field.oneof_index.map_or("", |at| {
                message.oneof_decl[usize::try_from(at).unwrap()].name()
            });
            lines.push(format!(
                "{}\t{}\t{}\t{}\t{}\t{}\t{choice}\t{}",
                message.name(),
                field.name(),
                field.number(),
                field.json_name(),
                field.r#type.unwrap(),
                i32::from(field.label == Some(3)),
                bare(field.type_name()),
            ));
        }
    }
    for names in &file.enum_type {
        for value in &names.value {
            lines.push(format!(
                "{}\t{}\t{}",
                names.name(),
                value.name(),
                value.number()
            ));
        }
    }
    for service in &file.service {
        assert_eq!(
            format!("{}.{}", file.package(), service.name()),
            pb::SERVICE
        );
        for method in &service.method {
            lines.push(format!(
                "{}\t{}\t{}\t{}\t{}",
                pb::SERVICE,
                method.name(),
                bare(method.input_type()),
                bare(method.output_type()),
                i32::from(method.server_streaming()),
            ));
        }
    }
    lines
}

#[test]
fn v03_17_resources_are_named_by_paths() {
    // Field 1, twelve bytes.
    let named = |name: &str| [&[0x0a, u8::try_from(name.len()).unwrap()], name.as_bytes()].concat();
    let task = named("tasks/t1");
    assert_eq!(pb::read_get(&task).unwrap().id, "t1");
    assert_eq!(pb::read_cancel(&task).unwrap().id, "t1");
    assert_eq!(pb::read_subscribe(&task).unwrap().id, "t1");
    assert_eq!(pb::read_push_list(&task).unwrap().task_id, "t1");
    let config = named("tasks/t1/pushNotificationConfigs/c1");
    let get = pb::read_push_get(&config).unwrap();
    assert_eq!((&*get.task_id, &*get.id), ("t1", "c1"));
    assert_eq!(pb::read_push_delete(&config).unwrap().id, "c1");
    for name in [
        "",
        "t1",
        "tasks/t1/x",
        "tasks/t1/pushNotificationConfigs/c/d",
    ] {
        let bytes = named(name);
        assert_eq!(wrong(pb::read_get(&bytes)), "name", "{name}");
        assert_eq!(wrong(pb::read_push_delete(&bytes)), "name", "{name}");
        assert_eq!(wrong(pb::read_push_list(&bytes)), "parent", "{name}");
    }
    // A history of zero is no limit (V03-10).
    assert_eq!(pb::read_get(&task).unwrap().history_length, None);
}

#[test]
fn v03_16_bytes_of_a_file_hold_its_base64_text() {
    let mut message = Message {
        message_id: "m".to_owned(),
        role: a2ad_proto::Role::User,
        parts: vec![PartContent::Raw(b"hi".as_slice().into()).into()],
        ..Message::default()
    };
    let request = |message: &Message| a2ad_proto::SendMessageRequest {
        message: Some(message.clone()),
        ..Default::default()
    };
    let contains = |bytes: &[u8], text: &[u8]| bytes.windows(text.len()).any(|it| it == text);
    let text = pb::ask_send(&request(&message), Dialect::Proto);
    assert!(contains(&text, b"\x04aGk="));
    let plain = pb::ask_send(&request(&message), Dialect::ProtoPlain);
    assert!(contains(&plain, b"\x02hi"));
    let read = |bytes: &[u8], dialect| {
        let message = pb::read_send(bytes, dialect).unwrap().message.unwrap();
        message.parts[0].content.clone()
    };
    let hi = PartContent::Raw(b"hi".as_slice().into());
    assert_eq!(read(&text, Dialect::Proto), hi);
    assert_eq!(read(&plain, Dialect::Proto), hi);
    assert_eq!(read(&plain, Dialect::ProtoPlain), hi);
    message.parts.clear();
    let empty = pb::ask_send(&request(&message), Dialect::Proto);
    assert_eq!(
        wrong(pb::read_send(&empty, Dialect::Proto)),
        "message.content"
    );
}

/// V03-09: on gRPC a caller that says nothing but sends settings does not wait.
#[test]
fn silence_is_not_waiting_on_grpc() {
    // SendMessageRequest{request{message_id: "m", role: USER, content{text: ""}}, configuration{}}
    let message = b"\x0a\x01m\x20\x01\x2a\x02\x0a\x00";
    let mut bytes = vec![0x0a, u8::try_from(message.len()).unwrap()];
    bytes.extend_from_slice(message);
    let read = |bytes: &[u8]| pb::read_send(bytes, Dialect::Proto).unwrap().configuration;
    assert_eq!(read(&bytes), None);
    bytes.extend_from_slice(b"\x12\x00");
    assert!(read(&bytes).unwrap().return_immediately);
    bytes.truncate(bytes.len() - 2);
    bytes.extend_from_slice(b"\x12\x02\x20\x01");
    assert!(!read(&bytes).unwrap().return_immediately);
}

/// MODEL-09, V03-17: lists are bounded as in JSON.
#[test]
fn lists_are_bounded() {
    // Parts without content, which would be refused one by one.
    let parts = b"\x2a\x00".repeat(Message::PARTS_MAX + 1);
    let mut bytes = vec![0x0a];
    let length = parts.len();
    bytes.extend([
        (length & 0x7f | 0x80) as u8,
        (length >> 7 & 0x7f | 0x80) as u8,
        (length >> 14) as u8,
    ]);
    bytes.extend(parts);
    let found = pb::read_send(&bytes, Dialect::Proto)
        .unwrap_err()
        .to_string();
    assert_eq!(found, "message.content: has more than 10000 elements");
    let one = [0x0a, 2, 0x2a, 0];
    assert_eq!(
        wrong(pb::read_send(&one, Dialect::Proto)),
        "message.content[0]"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn events_survive(mut event in any::stream_response(), last in any::<bool>()) {
        for dialect in [Dialect::Proto, Dialect::ProtoPlain] {
            Losses(dialect).event(&mut event);
            let (read, said) = pb::read_event(&pb::write_event(&event, last, dialect), dialect).unwrap();
            prop_assert_eq!(&read, &event);
            if let StreamResponse::StatusUpdate(_) = read {
                prop_assert_eq!(said, last);
            }
        }
    }

    #[test]
    fn the_rest_survives(mut task in any::task(), mut send in any::send_request(), config in any::push_config(), mut card in any::card()) {
        let losses = Losses(Dialect::Proto);
        losses.task(&mut task);
        prop_assert_eq!(&pb::read_task(&pb::write_task(&task, Dialect::Proto), Dialect::Proto).unwrap(), &task);
        losses.send(&mut send);
        if send.check().is_ok() {
            let read = pb::read_send(&pb::ask_send(&send, Dialect::Proto), Dialect::Proto);
            prop_assert_eq!(read.unwrap(), send);
        }
        let mut config = plain(config);
        losses.push(&mut config);
        prop_assert_eq!(&pb::read_push(&pb::write_push(&config)).unwrap(), &config);
        if config.check().is_ok() {
            prop_assert_eq!(pb::read_push_create(&pb::ask_push_create(&config)).unwrap(), config);
        }
        for interface in &mut card.supported_interfaces {
            "0.3".clone_into(&mut interface.protocol_version);
        }
        // As in JSON, but for flags, which have no presence here.
        let (Some(json), Some(bytes)) = (v03::write_card(&card), pb::write_card(&card)) else {
            prop_assert_eq!(pb::write_card(&card), None);
            return Ok(());
        };
        let mut expected = v03::read_card(&json).unwrap();
        let flags = &mut expected.capabilities;
        for flag in [&mut flags.streaming, &mut flags.push_notifications] {
            flag.take_if(|it| !*it);
        }
        flags.extended_agent_card.get_or_insert(false);
        prop_assert_eq!(pb::read_card(&bytes).unwrap(), expected);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80), event in any::stream_response(), at in 0.0..1.0_f64, byte in any::<u8>()) {
        let mut written = pb::write_event(&event, true, Dialect::Proto);
        written.push(0);
        let at = (at * written.len() as f64) as usize;
        written[at] = byte;
        for bytes in [&*bytes, &*written, &written[..at]] {
            drop(pb::read_send(bytes, Dialect::Proto));
            drop(pb::read_get(bytes));
            drop(pb::read_cancel(bytes));
            drop(pb::read_subscribe(bytes));
            drop(pb::read_push_create(bytes));
            drop(pb::read_push_get(bytes));
            drop(pb::read_push_list(bytes));
            drop(pb::read_push_delete(bytes));
            drop(pb::read_event(bytes, Dialect::Proto));
            drop(pb::read_sent(bytes, Dialect::Proto));
            drop(pb::read_task(bytes, Dialect::Proto));
            drop(pb::read_push(bytes));
            drop(pb::read_pushes(bytes));
            drop(pb::read_card(bytes));
        }
    }
}

/// V03-04: the canceled state has its number, whatever its name.
#[test]
fn states_keep_their_numbers() {
    for state in TaskState::ALL {
        let mut task = a2ad_proto::Task::default();
        task.status.state = *state;
        let read = pb::read_task(&pb::write_task(&task, Dialect::Proto), Dialect::Proto);
        assert_eq!(read.unwrap().status.state, *state);
    }
}
