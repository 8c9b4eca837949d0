//! The data model and the worked shapes of the checklist.

use a2ad_proto::{
    AuthenticationInfo, ListTasksResponse, ListedTask, Part, SendMessageRequest,
    SendMessageResponse, StreamResponse, Task, TaskPushNotificationConfig, TaskState, from_json,
    to_json,
};

use super::{refused, unchanged};

#[test]
fn model_01_a_task_without_a_context_is_read() {
    unchanged::<Task>(r#"{"id":"t","status":{"state":"TASK_STATE_COMPLETED"}}"#);
}

#[test]
fn model_03_four_states_are_terminal_and_two_interrupted() {
    let named = |want: fn(TaskState) -> bool| {
        let found = TaskState::ALL.iter().filter(|state| want(**state));
        found.map(|state| state.number()).collect::<Vec<_>>()
    };
    assert_eq!(named(TaskState::is_terminal), [3, 4, 5, 7]);
    assert_eq!(named(TaskState::is_interrupted), [6, 8]);
}

#[test]
fn model_04_a_part_without_content_is_refused() {
    for text in [
        "{}",
        r#"{"filename":"x"}"#,
        r#"{"text":null}"#,
        r#"{"kind":"text"}"#,
    ] {
        let (field, description) = refused::<Part>(text);
        assert_eq!(field, "");
        assert!(description.contains("text raw url data"), "{description}");
    }
    assert_eq!(
        refused::<SendMessageRequest>(r#"{"message":{"parts":[{"text":"a"},{}]}}"#).0,
        "message.parts[1]"
    );
}

#[test]
fn model_04_empty_content_is_content() {
    for text in [
        r#"{"text":""}"#,
        r#"{"raw":""}"#,
        r#"{"url":""}"#,
        r#"{"data":null}"#,
        r#"{"data":{}}"#,
        r#"{"data":""}"#,
    ] {
        unchanged::<Part>(text);
    }
}

#[test]
fn model_01_every_kind_of_part_takes_a_name_and_a_type() {
    for content in [
        r#""text":"x""#,
        r#""raw":"AA==""#,
        r#""url":"u""#,
        r#""data":[1]"#,
    ] {
        unchanged::<Part>(&format!(
            r#"{{{content},"metadata":{{"k":1}},"filename":"f","mediaType":"a/b"}}"#
        ));
    }
}

#[test]
fn send_01_a_reply_is_wrapped() {
    unchanged::<SendMessageResponse>(
        r#"{"task":{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_COMPLETED","timestamp":"2026-01-31T09:00:02.125Z"},"artifacts":[{"artifactId":"a1","name":"out.png","parts":[{"url":"https://files.example/t1/out.png","mediaType":"image/png"}]}]}}"#,
    );
    let (field, _) =
        refused::<SendMessageResponse>(r#"{"id":"t1","status":{"state":"TASK_STATE_COMPLETED"}}"#);
    assert_eq!(field, "");
}

#[test]
fn send_01_the_worked_request_is_read() {
    unchanged::<SendMessageRequest>(
        r#"{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"resize to 200px"},{"raw":"iVBORw0KGgo=","filename":"in.png","mediaType":"image/png"}]},"configuration":{"acceptedOutputModes":["image/png"],"historyLength":0}}"#,
    );
}

#[test]
fn stream_frames_of_the_specification_are_read_and_written() {
    for text in [
        r#"{"task":{"id":"t2","contextId":"c1","status":{"state":"TASK_STATE_SUBMITTED"}}}"#,
        r#"{"artifactUpdate":{"taskId":"t2","contextId":"c1","artifact":{"artifactId":"a1","parts":[{"text":"Hel"}]}}}"#,
        r#"{"artifactUpdate":{"taskId":"t2","contextId":"c1","artifact":{"artifactId":"a1","parts":[{"text":"lo"}]},"append":true,"lastChunk":true}}"#,
        r#"{"statusUpdate":{"taskId":"t2","contextId":"c1","status":{"state":"TASK_STATE_COMPLETED"}}}"#,
    ] {
        unchanged::<StreamResponse>(text);
    }
}

#[test]
fn a_frame_never_spans_lines() {
    let text = "{\"task\":{\"metadata\":{\"a\" :\r\n [ 1 ,\t2 ]},\"history\":[{\"parts\":[{\"data\":\n{\"x\"\n:\"\\n\"}}]}]}}";
    let frame = to_json(&from_json::<StreamResponse>(text.as_bytes()).unwrap());
    assert!(!frame.contains(&b'\n') && !frame.contains(&b'\r'));
}

#[test]
fn list_05_artifacts_are_written_even_if_empty_when_asked_for() {
    let task: Task = from_json(
        br#"{"id":"t","contextId":"c","status":{"state":3},"history":[{}],"metadata":{}}"#,
    )
    .unwrap();
    let page = ListTasksResponse {
        tasks: vec![task.clone()],
        page_size: 50,
        total_size: 1,
        ..ListTasksResponse::default()
    };
    let without = String::from_utf8(to_json(&page)).unwrap();
    let with = String::from_utf8(to_json(&page.with_artifacts())).unwrap();
    assert!(!without.contains("artifacts"));
    assert_eq!(with.replace(r#""artifacts":[],"#, ""), without);
    assert!(with.contains(r#""artifacts":[],"history""#));

    let listed = to_json(&ListedTask(&task));
    assert_eq!(from_json::<Task>(&listed).unwrap(), task);
}

#[test]
fn list_07_all_members_of_a_page_are_written() {
    unchanged::<ListTasksResponse>(
        r#"{"tasks":[],"nextPageToken":"","pageSize":50,"totalSize":0}"#,
    );
}

#[test]
fn push_15_secrets_do_not_show_in_debug_output() {
    let config = TaskPushNotificationConfig {
        token: "hunter2".to_owned(),
        authentication: Some(AuthenticationInfo {
            scheme: "Bearer".to_owned(),
            credentials: "hunter3".to_owned(),
        }),
        ..TaskPushNotificationConfig::default()
    };
    let shown = format!("{config:?}");
    assert!(!shown.contains("hunter"), "{shown}");
    assert_eq!(shown.matches("***").count(), 2);
    let written = String::from_utf8(to_json(&config)).unwrap();
    assert!(written.contains("hunter2") && written.contains("hunter3"));
}
