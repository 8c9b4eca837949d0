//! How long the lists of a request may be.

use a2ad_proto::{
    Artifact, Message, SendMessageConfiguration, SendMessageRequest, Task, from_json,
};

use super::refused;

/// A list of a request: where it is, how an element is written, and how many there may be.
struct List {
    path: &'static str,
    max: usize,
    json: (&'static str, &'static str, &'static str),
    #[cfg(feature = "protobuf")]
    protobuf: (u8, u8, &'static [u8]),
}

const LISTS: [List; 4] = [
    List {
        path: "message.parts",
        max: Message::PARTS_MAX,
        json: (r#"{"message":{"parts":["#, r#"{"text":""}"#, "]}}"),
        #[cfg(feature = "protobuf")]
        protobuf: (2, 5, b"\x0a\x00"),
    },
    List {
        path: "message.extensions",
        max: Message::EXTENSIONS_MAX,
        json: (r#"{"message":{"extensions":["#, r#""""#, "]}}"),
        #[cfg(feature = "protobuf")]
        protobuf: (2, 7, b""),
    },
    List {
        path: "message.referenceTaskIds",
        max: Message::REFERENCES_MAX,
        json: (r#"{"message":{"reference_task_ids":["#, r#""""#, "]}}"),
        #[cfg(feature = "protobuf")]
        protobuf: (2, 8, b""),
    },
    List {
        path: "configuration.acceptedOutputModes",
        max: SendMessageConfiguration::OUTPUT_MODES_MAX,
        json: (
            r#"{"configuration":{"acceptedOutputModes":["#,
            r#""""#,
            "]}}",
        ),
        #[cfg(feature = "protobuf")]
        protobuf: (3, 1, b""),
    },
];

/// The request with these elements.
fn json(list: &List, elements: &[&str]) -> String {
    let (before, _, after) = list.json;
    format!("{before}{}{after}", elements.join(","))
}

#[test]
fn model_09_a_list_in_a_request_has_a_longest_length() {
    for list in &LISTS {
        let mut elements = vec![list.json.1; list.max];
        from_json::<SendMessageRequest>(json(list, &elements).as_bytes()).unwrap();
        elements.push(list.json.1);
        let (field, description) = refused::<SendMessageRequest>(&json(list, &elements));
        assert_eq!(field, list.path);
        assert_eq!(description, format!("has more than {} elements", list.max));
        // Nothing beyond is read: an element of the wrong type goes unnoticed.
        elements.pop();
        elements.extend([list.json.1, "[true]"]);
        let (field, _) = refused::<SendMessageRequest>(&json(list, &elements));
        assert_eq!(field, list.path);
    }
}

#[cfg(feature = "protobuf")]
#[test]
fn model_09_a_list_has_the_same_bounds_in_protobuf() {
    use a2ad_proto::pb::{DecodeError, Message as _};

    use super::protobuf::field;

    for list in &LISTS {
        let (outer, inner, element) = list.protobuf;
        let request = |elements: &[&[u8]]| {
            let elements = elements.iter().flat_map(|body| field(inner, body));
            field(outer, &elements.collect::<Vec<u8>>())
        };
        let mut elements = vec![element; list.max];
        SendMessageRequest::decode(&request(&elements)).unwrap();
        // The last one is no text and no part, but nothing beyond the bound is read.
        elements.extend([element, b"\xff"]);
        let refused_as =
            refused::<SendMessageRequest>(&json(list, &vec![list.json.1; list.max + 1]));
        let Err(DecodeError::Invalid(found)) = SendMessageRequest::decode(&request(&elements))
        else {
            panic!("{} is not bounded", list.path);
        };
        assert_eq!(
            (&*found.0[0].field, &*found.0[0].description),
            (&*refused_as.0, &*refused_as.1)
        );
        // Pieces of the message do not get around it.
        let half = request(&vec![element; list.max / 2 + 1]);
        let Err(DecodeError::Invalid(found)) = SendMessageRequest::decode(&half.repeat(2)) else {
            panic!("{} is bounded by the piece", list.path);
        };
        assert_eq!(found.0[0].field, list.path);
    }
}

/// What is kept is read again, however long it has become: an artifact grows by parts (ART-05).
#[test]
fn only_requests_are_bounded() {
    let parts = vec![r#"{"text":""}"#; Message::PARTS_MAX + 1].join(",");
    let message = format!(r#"{{"parts":[{parts}]}}"#);
    let read: Message = from_json(message.as_bytes()).unwrap();
    assert_eq!(read.parts.len(), Message::PARTS_MAX + 1);
    from_json::<Artifact>(message.as_bytes()).unwrap();
    let task = format!(r#"{{"history":[{message}],"artifacts":[{message}]}}"#);
    let task: Task = from_json(task.as_bytes()).unwrap();
    #[cfg(feature = "protobuf")]
    {
        use a2ad_proto::pb::Message as _;
        assert_eq!(Task::decode(&task.encode_to_vec()).unwrap(), task);
    }
    assert_eq!(task.history[0], read);
}
