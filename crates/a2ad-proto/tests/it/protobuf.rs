//! The protobuf encoding.

use std::fmt::Debug;

use a2ad_proto::pb::{DecodeError, Message as _};
use a2ad_proto::{
    AgentCard, GetTaskRequest, Json, ListTaskPushNotificationConfigsRequest, Message, Metadata,
    Part, SecurityScheme, SendMessageConfiguration, SendMessageRequest, StreamResponse, Task,
    TaskState, TaskStatus, Timestamp, from_json, pb, to_json,
};
use proptest::prelude::*;

use super::{arbitrary as any, refused};

fn through_protobuf<T: pb::Message + PartialEq + Debug>(value: &T) {
    assert_eq!(&T::decode(&value.encode_to_vec()).unwrap(), value);
}

#[track_caller]
fn reason<T: pb::Message + Debug>(bytes: &[u8]) -> &'static str {
    let DecodeError::Malformed(reason) = T::decode(bytes).unwrap_err() else {
        panic!("only invalid");
    };
    reason
}

#[track_caller]
fn invalid<T: pb::Message + Debug>(bytes: &[u8]) -> (String, String) {
    let DecodeError::Invalid(violations) = T::decode(bytes).unwrap_err() else {
        panic!("malformed");
    };
    let [violation] = violations.0.try_into().unwrap();
    (violation.field, violation.description)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn stream_responses_come_back(value in any::stream_response()) {
        through_protobuf(&value);
    }

    #[test]
    fn requests_come_back(send in any::send_request(), list in any::list_request(), push in any::push_config()) {
        through_protobuf(&send);
        through_protobuf(&list);
        through_protobuf(&push);
    }

    #[test]
    fn pages_and_cards_come_back(page in any::list_response(), card in any::card()) {
        through_protobuf(&page);
        through_protobuf(&card);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        drop(StreamResponse::decode(&bytes));
        drop(AgentCard::decode(&bytes));
        drop(Json::decode(&bytes));
    }

    #[test]
    fn malformed_bytes_never_panic(value in any::stream_response(), at in 0.0..1.0_f64, byte in any::<u8>()) {
        let mut bytes = value.encode_to_vec();
        let at = (at * bytes.len() as f64) as usize;
        bytes[at] = byte;
        if let Ok(read) = StreamResponse::decode(&bytes) {
            // Whatever was understood must be writable and readable as JSON.
            prop_assert_eq!(&from_json::<StreamResponse>(&to_json(&read)).unwrap(), &read);
        }
        drop(StreamResponse::decode(&bytes[..at]));
    }
}

#[test]
fn numbers_and_lengths_are_those_of_the_schema() {
    let task = Task {
        id: "t".to_owned(),
        context_id: "c".to_owned(),
        status: TaskStatus {
            state: TaskState::AuthRequired,
            message: None,
            timestamp: Some(Timestamp::from_millis(1_500)),
        },
        metadata: Some(Metadata::parse(r#"{"k":[true,null]}"#).unwrap()),
        ..Task::default()
    };
    let mut expected: Vec<u8> = Vec::new();
    expected.extend(b"\x0a\x01t\x12\x01c");
    expected.extend(b"\x1a\x0c\x08\x08\x1a\x08\x08\x01\x10\x80\xca\xb5\xee\x01");
    // Struct { fields: { "k": Value { list: [Value { bool: true }, Value { null }] } } }
    expected.extend(b"\x32\x11\x0a\x0f\x0a\x01k\x12\x0a\x32\x08\x0a\x02\x20\x01\x0a\x02\x08\x00");
    assert_eq!(task.encode_to_vec(), expected);
}

#[test]
fn long_bodies_have_long_lengths() {
    for length in [
        0, 1, 100, 123, 124, 127, 128, 16_379, 16_380, 16_384, 3_000_000,
    ] {
        let message = Message {
            parts: vec![Part::text("x".repeat(length))],
            ..Message::default()
        };
        through_protobuf(&message);
    }
}

#[test]
fn explicit_presence_survives() {
    let configuration = |history_length| SendMessageConfiguration {
        history_length,
        ..SendMessageConfiguration::default()
    };
    assert_eq!(configuration(None).encode_to_vec(), b"");
    assert_eq!(configuration(Some(0)).encode_to_vec(), b"\x18\x00");
    let minus_one = b"\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
    assert_eq!(configuration(Some(-1)).encode_to_vec(), minus_one);
    for length in [None, Some(0), Some(-1), Some(i32::MIN), Some(i32::MAX)] {
        through_protobuf(&configuration(length));
    }
    // A required message is there even when empty.
    assert_eq!(Task::default().encode_to_vec(), b"\x1a\x00");
}

#[test]
fn json_10_numbers_become_doubles() {
    for (text, expected) in [
        ("5", "5"),
        ("5.0", "5"),
        ("-0.0", "-0.0"),
        ("1e2", "100"),
        ("0.1", "0.1"),
        ("9007199254740991", "9007199254740991"),
        ("9007199254740993", "9007199254740992.0"),
    ] {
        let json = Json::parse(text).unwrap();
        assert_eq!(
            Json::decode(&json.encode_to_vec()).unwrap().as_str(),
            expected
        );
    }
    let infinite = [b"\x11".as_slice(), &f64::INFINITY.to_le_bytes()].concat();
    assert_eq!(invalid::<Json>(&infinite).1, "number out of range");
}

#[test]
fn json_07_data_null_is_a_value_here_too() {
    let part = Part::data(Json::null());
    assert_eq!(part.encode_to_vec(), b"\x22\x02\x08\x00");
    through_protobuf(&part);
    through_protobuf(&Part::text(""));
    assert_eq!(invalid::<Part>(b""), refused::<Part>("{}"));
}

#[test]
fn unknown_fields_are_skipped() {
    // Fields 99 to 101 of the four wire types, then the id.
    let bytes = b"\x98\x06\x05\x9d\x06\0\0\0\0\xa1\x06\0\0\0\0\0\0\0\0\xaa\x06\x02ab\x12\x01t";
    assert_eq!(GetTaskRequest::decode(bytes).unwrap().id, "t");
}

#[test]
fn pieces_of_a_message_are_merged() {
    let status = |bytes: &[u8]| Task::decode(bytes).unwrap().status;
    let merged = status(b"\x1a\x02\x08\x03\x1a\x04\x1a\x02\x08\x01");
    assert_eq!(merged.state, TaskState::Completed);
    assert_eq!(merged.timestamp, Some(Timestamp::from_millis(1_000)));
    // The last number wins; so does the last member of a choice.
    assert_eq!(
        status(b"\x1a\x02\x08\x03\x1a\x02\x08\x04").state,
        TaskState::Failed
    );
    assert_eq!(Part::decode(b"\x0a\x01a\x1a\x01b").unwrap().as_text(), None);
    let twice = StreamResponse::decode(b"\x0a\x03\x0a\x01a\x0a\x03\x12\x01b").unwrap();
    assert!(
        matches!(twice, StreamResponse::Task(task) if task.id == "a" && task.context_id == "b")
    );
}

#[test]
fn the_last_of_equal_keys_counts() {
    let entry = |value: u8| [0x0a, 0x07, 0x0a, 0x01, b'k', 0x12, 0x02, 0x20, value];
    let bytes = [entry(0), entry(1)].concat();
    assert_eq!(Metadata::decode(&bytes).unwrap().as_str(), r#"{"k":true}"#);
}

#[test]
fn what_is_malformed_is_refused() {
    assert_eq!(reason::<GetTaskRequest>(b"\x12\x05t"), "unexpected end");
    assert_eq!(reason::<GetTaskRequest>(b"\x12"), "unexpected end");
    assert_eq!(
        reason::<GetTaskRequest>(b"\x12\x01\xff"),
        "text is not UTF-8"
    );
    assert_eq!(
        reason::<GetTaskRequest>(b"\x10\x01"),
        "field has the wrong wire type"
    );
    assert_eq!(reason::<GetTaskRequest>(b"\x13"), "unknown wire type");
    assert_eq!(
        reason::<GetTaskRequest>(b"\x00"),
        "field number out of range"
    );
    assert_eq!(
        reason::<GetTaskRequest>(&[0xff; 11]),
        "number longer than 64 bits"
    );
    assert_eq!(reason::<TaskStatus>(b"\x1a\x02\x10\xff"), "unexpected end");
}

/// What protobuf can say but the protocol cannot is refused by its path, in the words that JSON gets.
#[test]
fn what_is_invalid_is_named() {
    let time = "time out of range".to_owned();
    let found = invalid::<TaskStatus>(b"\x1a\x06\x10\x80\x94\xeb\xdc\x03");
    assert_eq!(found, ("timestamp".to_owned(), time));
    let cases: [(&[u8], &str); 3] = [
        (b"\x08\x09", r#"{"state":9}"#),
        // A status whose message has a second part without content.
        (
            b"\x12\x07\x2a\x03\x0a\x01x\x2a\x00",
            r#"{"message":{"parts":[{"text":"x"},{}]}}"#,
        ),
        (b"\x12\x02\x20\x07", r#"{"message":{"role":7}}"#),
    ];
    for (bytes, json) in cases {
        assert_eq!(invalid::<TaskStatus>(bytes), refused::<TaskStatus>(json));
    }
    let (field, _) = invalid::<TaskStatus>(b"\x12\x07\x2a\x03\x0a\x01x\x2a\x00");
    assert_eq!(field, "message.parts[1]");
    assert_eq!(
        invalid::<StreamResponse>(b""),
        refused::<StreamResponse>("{}")
    );
}

#[test]
fn nesting_is_bounded() {
    let nested = |depth: usize| {
        // A value holding a list holding a value, and so on, from the inside out.
        (0..depth).fold(vec![0x08, 0x00], |inner, _| {
            let mut list = vec![0x0a];
            length(&mut list, inner.len());
            list.extend(inner);
            let mut value = vec![0x32];
            length(&mut value, list.len());
            value.extend(list);
            value
        })
    };
    assert!(Json::decode(&nested(Json::DEPTH_MAX)).is_ok());
    assert_eq!(
        invalid::<Json>(&nested(Json::DEPTH_MAX + 1)).1,
        "nested too deeply"
    );
    assert!(Json::decode(&nested(3_000)).is_err());
}

fn length(out: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[test]
fn the_odd_one_out_has_its_tenant_last() {
    let request = ListTaskPushNotificationConfigsRequest {
        task_id: "t".to_owned(),
        page_size: 2,
        page_token: "p".to_owned(),
        tenant: "n".to_owned(),
    };
    assert_eq!(
        request.encode_to_vec(),
        b"\x0a\x01t\x10\x02\x1a\x01p\x22\x01n"
    );
}

/// A field of this number with this body.
pub(crate) fn field(number: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    length(&mut out, body.len());
    out.extend(body);
    out
}

/// An entry of a `Struct` without a key, and one of a megabyte.
const TINY_ENTRY: &[u8] = b"\x0a\x00";

fn large_entry() -> Vec<u8> {
    let text = field(3, &vec![b'x'; 1 << 20]);
    field(1, &[field(1, b"large"), field(2, &text)].concat())
}

/// Reading must cost what the bytes are long. If each piece cost what came before it, these would take hours.
#[test]
fn many_pieces_of_a_message_are_read_once() {
    const PIECES: usize = 400_000;
    let pieces = |wrap: &dyn Fn(&[u8]) -> Vec<u8>| {
        let mut bytes = wrap(&large_entry());
        bytes.extend(wrap(TINY_ENTRY).repeat(PIECES));
        bytes
    };
    let expected = |metadata: Option<Metadata>| {
        let map = metadata.unwrap().to_map();
        assert_eq!(map["large"].as_str().unwrap().len(), 1 << 20);
        assert_eq!((map.len(), &map[""]), (2, &serde_json::Value::Null));
    };

    let message = Message::decode(&pieces(&|piece| field(6, piece))).unwrap();
    expected(message.metadata);
    // A part has a reader of its own, and so has a choice.
    let part = [field(1, b"x"), pieces(&|piece| field(5, piece))].concat();
    expected(Part::decode(&part).unwrap().metadata);
    let response = StreamResponse::decode(&pieces(&|piece| field(2, &field(6, piece)))).unwrap();
    let StreamResponse::Message(message) = response else {
        panic!("{response:?}");
    };
    expected(message.metadata);
    // The pieces of pieces.
    let request = pieces(&|piece| field(2, &field(6, piece)));
    let request = SendMessageRequest::decode(&request).unwrap();
    expected(request.message.unwrap().metadata);
}

/// A choice as a field of a message, in pieces: each used to be written again before the next was read.
#[test]
fn many_pieces_of_a_choice_are_read_once() {
    // oauth2_security_scheme.flows.client_credentials.scopes, one entry at a time.
    let scope = |n: u32| {
        let entry = [field(1, n.to_string().as_bytes()), field(2, b"s")].concat();
        field(2, &field(2, &field(3, &entry)))
    };
    let bytes: Vec<u8> = (0..100_000).flat_map(scope).collect();
    let scheme = SecurityScheme::decode(&field(3, &bytes)).unwrap();
    let read = to_json(&scheme);
    assert_eq!(
        read.windows(4).filter(|four| four == br#":"s""#).count(),
        100_000
    );
}
