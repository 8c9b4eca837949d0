//! ProtoJSON, section 2 of the checklist, and the mistakes seen in published crates.

use a2ad_proto::{
    AgentCapabilities, Artifact, GetTaskRequest, ListTasksRequest, ListTasksResponse, Message,
    Metadata, Part, PartContent, Role, SecurityScheme, SendMessageConfiguration, StreamResponse,
    Task, TaskArtifactUpdateEvent, TaskState, TaskStatus, from_json,
};

use super::{refused, rewrite, unchanged};

#[test]
fn json_01_names_are_camel_case() {
    unchanged::<Message>(
        r#"{"messageId":"m","contextId":"c","taskId":"t","role":"ROLE_USER","parts":[{"text":"x","mediaType":"text/plain"}],"extensions":["e"],"referenceTaskIds":["r"]}"#,
    );
}

#[test]
fn json_01_irregular_names() {
    unchanged::<SecurityScheme>(
        r#"{"oauth2SecurityScheme":{"flows":{"authorizationCode":{"authorizationUrl":"a","tokenUrl":"t","scopes":{},"pkceRequired":true}},"oauth2MetadataUrl":"m"}}"#,
    );
    unchanged::<SecurityScheme>(r#"{"mtlsSecurityScheme":{}}"#);
    unchanged::<SecurityScheme>(r#"{"openIdConnectSecurityScheme":{"openIdConnectUrl":"u"}}"#);
    let card: a2ad_proto::AgentCard = from_json(br#"{"icon_url":"i"}"#).unwrap();
    assert_eq!(card.icon_url.as_deref(), Some("i"));
}

#[test]
fn json_02_enums_are_written_by_full_name() {
    for state in TaskState::ALL {
        let status = TaskStatus {
            state: *state,
            ..TaskStatus::default()
        };
        let text = format!(r#"{{"state":"{}"}}"#, state.as_str());
        assert_eq!(a2ad_proto::to_json(&status), text.as_bytes());
        unchanged::<TaskStatus>(&text);
        assert_eq!(TaskState::from_number(state.number()), Some(*state));
        assert!(state.as_str().starts_with("TASK_STATE_"));
    }
    assert_eq!(Role::ALL.len(), 3);
}

#[test]
fn json_03_raw_is_written_in_standard_padded_base64() {
    let part = Part::from(PartContent::Raw(vec![0xfb, 0xff, 0xfe, 0x01].into()));
    assert_eq!(a2ad_proto::to_json(&part), br#"{"raw":"+//+AQ=="}"#);
}

#[test]
fn json_03_raw_is_read_in_either_alphabet_padded_or_not() {
    for text in ["+//+AQ==", "+//+AQ", "-__-AQ==", "-__-AQ"] {
        assert_eq!(
            rewrite::<Part>(&format!(r#"{{"raw":"{text}"}}"#)),
            r#"{"raw":"+//+AQ=="}"#
        );
    }
    unchanged::<Part>(r#"{"raw":""}"#);
    for text in ["+//+A", "a b=", "+__+AQ==", "*"] {
        let (field, _) = refused::<Part>(&format!(r#"{{"raw":"{text}"}}"#));
        assert_eq!(field, "raw");
    }
}

#[test]
fn json_04_timestamps_are_written_in_utc_with_milliseconds() {
    let written = rewrite::<TaskStatus>(
        r#"{"state":"TASK_STATE_WORKING","timestamp":"2026-01-31T10:00:00+01:00"}"#,
    );
    assert_eq!(
        written,
        r#"{"state":"TASK_STATE_WORKING","timestamp":"2026-01-31T09:00:00.000Z"}"#
    );
    let (field, _) = refused::<TaskStatus>(r#"{"timestamp":"yesterday"}"#);
    assert_eq!(field, "timestamp");
    assert_eq!(refused::<TaskStatus>(r#"{"timestamp":5}"#).0, "timestamp");
}

#[test]
fn json_05_unknown_members_are_ignored_and_not_written() {
    let text = r#"{"id":"t","kind":"task","x":{"y":[1,{"z":null}]},"status":{"state":"TASK_STATE_WORKING","x":1}}"#;
    assert_eq!(
        rewrite::<Task>(text),
        r#"{"id":"t","status":{"state":"TASK_STATE_WORKING"}}"#
    );
    unchanged::<Part>(r#"{"text":"x"}"#);
    assert_eq!(
        rewrite::<Part>(r#"{"kind":"text","text":"x"}"#),
        r#"{"text":"x"}"#
    );
}

#[test]
fn json_06_snake_case_is_read() {
    let text = r#"{"message_id":"m","context_id":"c","task_id":"t","role":"ROLE_USER","parts":[{"text":"x","media_type":"a/b"}],"reference_task_ids":["r"]}"#;
    assert_eq!(
        rewrite::<Message>(text),
        r#"{"messageId":"m","contextId":"c","taskId":"t","role":"ROLE_USER","parts":[{"text":"x","mediaType":"a/b"}],"referenceTaskIds":["r"]}"#
    );
    let text = r#"{"artifact_update":{"task_id":"t","context_id":"c","artifact":{"artifact_id":"a","parts":[]},"last_chunk":true}}"#;
    assert_eq!(
        rewrite::<StreamResponse>(text),
        r#"{"artifactUpdate":{"taskId":"t","contextId":"c","artifact":{"artifactId":"a","parts":[]},"lastChunk":true}}"#
    );
}

#[test]
fn json_06_enum_numbers_are_read() {
    assert_eq!(
        rewrite::<TaskStatus>(r#"{"state":6}"#),
        r#"{"state":"TASK_STATE_INPUT_REQUIRED"}"#
    );
    let message: Message = from_json(br#"{"role":2}"#).unwrap();
    assert_eq!(message.role, Role::Agent);
}

#[test]
fn json_06_unknown_enum_values_are_refused_by_member() {
    for text in [
        r#"{"status":{"state":"TASK_STATE_DONE"}}"#,
        r#"{"status":{"state":"working"}}"#,
        r#"{"status":{"state":9}}"#,
        r#"{"status":{"state":-1}}"#,
        r#"{"status":{"state":4294967298}}"#,
        r#"{"status":{"state":true}}"#,
    ] {
        let (field, description) = refused::<Task>(text);
        assert_eq!(field, "status.state");
        assert!(description.contains("TaskState"), "{description}");
    }
}

#[test]
fn json_06_integers_are_read_as_strings_and_integral_floats() {
    for (text, number) in [
        ("3", 3),
        ("\"3\"", 3),
        ("3.0", 3),
        ("1e2", 100),
        ("\"1e2\"", 100),
        ("\"-3\"", -3),
        ("-2147483648", i32::MIN),
        ("2147483647.0", i32::MAX),
    ] {
        let request: GetTaskRequest =
            from_json(format!(r#"{{"historyLength":{text}}}"#).as_bytes()).unwrap();
        assert_eq!(request.history_length, Some(number), "{text}");
    }
    for text in [
        "3.5",
        "\"3.5\"",
        "2147483648",
        "-2147483649",
        "\"\"",
        "\"+3\"",
        "\" 3\"",
        "\"inf\"",
        "1e400",
        "{}",
        "true",
        "[]",
    ] {
        let (field, description) =
            refused::<GetTaskRequest>(&format!(r#"{{"historyLength":{text}}}"#));
        assert_eq!(field, "historyLength", "{text}");
        assert!(description.contains("32-bit integer"), "{description}");
    }
}

#[test]
fn json_06_null_is_unset() {
    let text = r#"{"id":null,"contextId":null,"status":null,"artifacts":null,"history":null,"metadata":null}"#;
    assert_eq!(from_json::<Task>(text.as_bytes()).unwrap(), Task::default());
    let text = r#"{"state":null,"message":null,"timestamp":null}"#;
    assert_eq!(
        from_json::<TaskStatus>(text.as_bytes()).unwrap(),
        TaskStatus::default()
    );
    let text = r#"{"status":null,"pageSize":null,"includeArtifacts":null}"#;
    assert_eq!(
        from_json::<ListTasksRequest>(text.as_bytes()).unwrap(),
        ListTasksRequest::default()
    );
    let text = r#"{"append":null,"lastChunk":null}"#;
    assert_eq!(
        from_json::<TaskArtifactUpdateEvent>(text.as_bytes()).unwrap(),
        TaskArtifactUpdateEvent::default()
    );
    assert_eq!(
        rewrite::<Part>(r#"{"text":"x","raw":null,"url":null,"filename":null,"metadata":null}"#),
        r#"{"text":"x"}"#
    );
    assert_eq!(
        rewrite::<StreamResponse>(r#"{"task":null,"message":{}}"#),
        r#"{"message":{"messageId":"","role":"ROLE_UNSPECIFIED","parts":[]}}"#
    );
}

#[test]
fn json_06_null_is_no_list_element() {
    assert_eq!(
        refused::<Message>(r#"{"parts":[{"text":"x"},null]}"#).0,
        "parts[1]"
    );
    assert_eq!(
        refused::<Message>(r#"{"extensions":[null]}"#).0,
        "extensions[0]"
    );
}

#[test]
fn json_07_data_null_is_a_value() {
    unchanged::<Part>(r#"{"data":null}"#);
    let part: Part = from_json(br#"{"data":null}"#).unwrap();
    assert_eq!(part, Part::data(a2ad_proto::Json::null()));
    let (field, _) = refused::<Part>(r#"{"text":"x","data":null}"#);
    assert_eq!(field, "data");
}

#[test]
fn json_08_implicit_defaults_are_left_out() {
    assert_eq!(
        rewrite::<Task>(
            r#"{"id":"t","contextId":"","status":{"state":"TASK_STATE_WORKING"},"artifacts":[],"history":[]}"#
        ),
        r#"{"id":"t","status":{"state":"TASK_STATE_WORKING"}}"#
    );
    assert_eq!(
        rewrite::<ListTasksRequest>(r#"{"status":0,"pageToken":""}"#),
        "{}"
    );
    assert_eq!(
        rewrite::<SendMessageConfiguration>(
            r#"{"returnImmediately":false,"acceptedOutputModes":[]}"#
        ),
        "{}"
    );
}

#[test]
fn json_08_optional_fields_are_written_when_set_to_the_default() {
    unchanged::<SendMessageConfiguration>(r#"{"historyLength":0}"#);
    unchanged::<ListTasksRequest>(r#"{"pageSize":0,"historyLength":0,"includeArtifacts":false}"#);
    unchanged::<AgentCapabilities>(r#"{"streaming":false}"#);
    unchanged::<Task>(
        r#"{"id":"t","status":{"state":"TASK_STATE_WORKING","message":{"messageId":"","role":"ROLE_UNSPECIFIED","parts":[]}},"metadata":{}}"#,
    );
}

#[test]
fn json_08_required_fields_are_always_written() {
    assert_eq!(
        rewrite::<Task>("{}"),
        r#"{"id":"","status":{"state":"TASK_STATE_UNSPECIFIED"}}"#
    );
    assert_eq!(rewrite::<Artifact>("{}"), r#"{"artifactId":"","parts":[]}"#);
    assert_eq!(
        rewrite::<ListTasksResponse>("{}"),
        r#"{"tasks":[],"nextPageToken":"","pageSize":0,"totalSize":0}"#
    );
}

#[test]
fn json_09_two_members_of_a_choice_are_refused() {
    assert_eq!(refused::<Part>(r#"{"text":"x","url":"y"}"#).0, "url");
    assert_eq!(refused::<Part>(r#"{"text":"x","text":"y"}"#).0, "text");
    assert_eq!(
        refused::<StreamResponse>(r#"{"task":{},"message":{}}"#).0,
        "message"
    );
    assert_eq!(
        refused::<StreamResponse>(r#"{"statusUpdate":{},"status_update":{}}"#).0,
        "statusUpdate"
    );
    assert_eq!(
        refused::<SecurityScheme>(r#"{"mtlsSecurityScheme":{},"api_key_security_scheme":{}}"#).0,
        "apiKeySecurityScheme"
    );
}

#[test]
fn json_09_a_member_given_twice_is_refused() {
    assert_eq!(refused::<Task>(r#"{"id":"a","id":"b"}"#).0, "id");
    assert_eq!(
        refused::<Task>(r#"{"contextId":"a","context_id":"a"}"#).0,
        "contextId"
    );
    assert_eq!(refused::<Task>(r#"{"id":null,"id":"b"}"#).0, "id");
    assert_eq!(
        refused::<Part>(r#"{"text":"","filename":"a","filename":"b"}"#).0,
        "filename"
    );
    // Unknown members may repeat: they mean nothing here.
    assert!(from_json::<Task>(br#"{"x":1,"x":2}"#).is_ok());
}

#[test]
fn json_09_a_choice_without_a_member_is_refused() {
    for text in ["{}", r#"{"task":null}"#, r#"{"other":{}}"#] {
        let (field, description) = refused::<StreamResponse>(text);
        assert_eq!(field, "");
        assert!(description.contains("statusUpdate"), "{description}");
    }
}

#[test]
fn json_10_number_literals_survive() {
    for literal in [
        "5",
        "5.0",
        "-0",
        "0.1",
        "9007199254740993",
        "123456789012345678901234567890",
        "1e400000",
        "1E+2",
        "0.30000000000000004",
    ] {
        let text = format!(
            r#"{{"id":"t","status":{{"state":"TASK_STATE_WORKING"}},"metadata":{{"n":{literal}}}}}"#
        );
        if literal == "1e400000" {
            assert_eq!(refused::<Task>(&text).0, "metadata");
        } else {
            unchanged::<Task>(&text);
            unchanged::<Part>(&format!(r#"{{"data":[{literal}]}}"#));
        }
    }
}

#[test]
fn json_11_only_utf_8_is_read() {
    let Err(found) = from_json::<Part>(b"{\"text\":\"\xff\"}") else {
        panic!("accepted")
    };
    assert_eq!(found.0[0].field, "");
    assert!(!a2ad_proto::is_json(b"\"\xff\""));
    assert_eq!(refused::<Part>(r#"{"text":"\ud800"}"#).0, "text");
    assert_eq!(refused::<Part>(r#"{"data":"\ud800"}"#).0, "data");
    assert_eq!(
        rewrite::<Part>(r#"{"text":"\u00e9\ud83d\ude00"}"#),
        r#"{"text":"é😀"}"#
    );
}

#[test]
fn json_12_metadata_is_an_object() {
    for value in ["[]", "5", "\"x\"", "true"] {
        let (field, description) = refused::<Task>(&format!(r#"{{"metadata":{value}}}"#));
        assert_eq!(field, "metadata");
        assert!(description.contains("object"), "{description}");
    }
    let task: Task = from_json(br#"{"metadata":{ "https://e/x" : { "a" : null } }}"#).unwrap();
    assert_eq!(
        task.metadata,
        Some(Metadata::parse(r#"{"https://e/x":{"a":null}}"#).unwrap())
    );
}
