//! What clients of 0.3 are answered.

use a2ad_proto::v03::{self, Dialect};
use a2ad_proto::{
    ErrorKind, ListTaskPushNotificationConfigsResponse, ListTasksResponse, Part,
    SendMessageResponse, StreamResponse, Task, TaskPushNotificationConfig, TaskState, from_json,
};

use super::{BOTH, text, wrong};

/// A task with a little of everything, in 1.0.
const TASK: &str = r#"{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_INPUT_REQUIRED","message":{"messageId":"m2","role":"ROLE_AGENT","parts":[{"text":"which?"}]},"timestamp":"2026-01-31T09:00:00.000Z"},"artifacts":[{"artifactId":"a1","name":"out","parts":[{"raw":"aGk=","filename":"x","mediaType":"text/plain"},{"url":"https://f.example/x"},{"data":{"n":1}},{"data":[1],"metadata":{"k":2}}]}],"history":[{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"hi","mediaType":"text/plain"}],"referenceTaskIds":["t0"]}],"metadata":{"n":1.0}}"#;

fn task() -> Task {
    from_json(TASK.as_bytes()).unwrap()
}

fn small() -> Task {
    from_json(br#"{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_COMPLETED"}}"#).unwrap()
}

fn event(json: &str) -> StreamResponse {
    from_json(json.as_bytes()).unwrap()
}

#[test]
fn v03_02_v03_03_v03_04_a_task_is_written_bare_with_kinds_and_words() {
    let expected = concat!(
        r#"{"kind":"task","id":"t1","contextId":"c1","status":{"state":"input-required","message":"#,
        r#"{"kind":"message","messageId":"m2","role":"agent","parts":[{"kind":"text","text":"which?"}]},"#,
        r#""timestamp":"2026-01-31T09:00:00.000Z"},"artifacts":[{"artifactId":"a1","name":"out","parts":["#,
        r#"{"kind":"file","file":{"name":"x","mimeType":"text/plain","bytes":"aGk="}},"#,
        r#"{"kind":"file","file":{"uri":"https://f.example/x"}},"#,
        r#"{"kind":"data","data":{"n":1}},"#,
        r#"{"kind":"data","data":{"value":[1]},"metadata":{"k":2,"data_part_compat":true}}]}],"#,
        r#""history":[{"kind":"message","messageId":"m1","role":"user","parts":[{"kind":"text","text":"hi"}],"#,
        r#""referenceTaskIds":["t0"]}],"metadata":{"n":1.0}}"#,
    );
    assert_eq!(text(v03::write_task(&task(), Dialect::Kinds)), expected);
    let sent = SendMessageResponse::Task(task());
    assert_eq!(text(v03::write_sent(&sent, Dialect::Kinds)), expected);
    let opening = StreamResponse::Task(task());
    assert_eq!(
        text(v03::write_event(&opening, false, Dialect::Kinds)),
        expected
    );
}

#[test]
fn v03_14_in_the_schemas_json_it_is_wrapped() {
    let expected = concat!(
        r#"{"task":{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_INPUT_REQUIRED","message":"#,
        r#"{"messageId":"m2","role":"ROLE_AGENT","content":[{"text":"which?"}]},"#,
        r#""timestamp":"2026-01-31T09:00:00.000Z"},"artifacts":[{"artifactId":"a1","name":"out","parts":["#,
        r#"{"file":{"fileWithBytes":"YUdrPQ==","mimeType":"text/plain","name":"x"}},"#,
        r#"{"file":{"fileWithUri":"https://f.example/x"}},"#,
        r#"{"data":{"data":{"n":1}}},"#,
        r#"{"data":{"data":{"value":[1]}},"metadata":{"k":2,"data_part_compat":true}}]}],"#,
        r#""history":[{"messageId":"m1","role":"ROLE_USER","content":[{"text":"hi"}]}],"metadata":{"n":1.0}}}"#,
    );
    let sent = SendMessageResponse::Task(task());
    assert_eq!(text(v03::write_sent(&sent, Dialect::Proto)), expected);
    let inside = &expected[r#"{"task":"#.len()..expected.len() - 1];
    assert_eq!(text(v03::write_task(&task(), Dialect::Proto)), inside);
    let message = SendMessageResponse::Message(task().history.remove(0));
    let written = text(v03::write_sent(&message, Dialect::Proto));
    assert!(
        written.starts_with(r#"{"message":{"messageId":"m1""#),
        "{written}"
    );
}

#[test]
fn v03_04_states_and_roles_have_words_of_their_own() {
    let words = [
        "unknown",
        "submitted",
        "working",
        "completed",
        "failed",
        "canceled",
        "input-required",
        "rejected",
        "auth-required",
    ];
    for (state, word) in TaskState::ALL.iter().zip(words) {
        let mut task = small();
        task.status.state = *state;
        let written = text(v03::write_task(&task, Dialect::Kinds));
        assert!(
            written.contains(&format!(r#""state":"{word}""#)),
            "{written}"
        );
        for dialect in BOTH {
            let written = v03::write_task(&task, dialect);
            assert_eq!(v03::read_task(&written, Dialect::Kinds).unwrap(), task);
        }
        let by_name = format!(r#"{{"id":"t1","contextId":"c1","status":{{"state":"{state}"}}}}"#);
        assert_eq!(
            v03::read_task(by_name.as_bytes(), Dialect::Kinds).unwrap(),
            task
        );
    }
    let mut task = small();
    task.status.state = TaskState::Canceled;
    let written = text(v03::write_task(&task, Dialect::Proto));
    assert!(written.contains("TASK_STATE_CANCELLED"), "{written}");
    let unknown = br#"{"id":"t","status":{"state":"asleep"}}"#;
    assert_eq!(
        wrong(v03::read_task(unknown, Dialect::Kinds)).0,
        "status.state"
    );
}

#[test]
fn v03_06_the_last_status_says_so() {
    let update = event(
        r#"{"statusUpdate":{"taskId":"t1","contextId":"c1","status":{"state":"TASK_STATE_COMPLETED"}}}"#,
    );
    assert_eq!(
        text(v03::write_event(&update, true, Dialect::Kinds)),
        r#"{"kind":"status-update","taskId":"t1","contextId":"c1","status":{"state":"completed"},"final":true}"#
    );
    let written = text(v03::write_event(&update, false, Dialect::Kinds));
    assert!(written.contains(r#""final":false"#), "{written}");
    assert_eq!(
        text(v03::write_event(&update, true, Dialect::Proto)),
        r#"{"statusUpdate":{"taskId":"t1","contextId":"c1","status":{"state":"TASK_STATE_COMPLETED"},"final":true}}"#
    );
    for (last, dialect) in [
        (true, Dialect::Kinds),
        (false, Dialect::Kinds),
        (true, Dialect::Proto),
    ] {
        let written = v03::write_event(&update, last, dialect);
        assert_eq!(
            v03::read_event(&written, dialect).unwrap(),
            (update.clone(), last)
        );
    }
}

/// V03-02: an event without `kind` is known by what it has.
#[test]
fn an_untagged_event_is_recognised() {
    for (json, expected) in [
        (
            r#"{"messageId":"m","role":"agent","parts":[{"text":"x"}],"taskId":"t"}"#,
            r#"{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"x"}],"taskId":"t"}}"#,
        ),
        (
            r#"{"taskId":"t","contextId":"c","artifact":{"artifactId":"a","parts":[{"text":"x"}]},"lastChunk":true}"#,
            r#"{"artifactUpdate":{"taskId":"t","contextId":"c","artifact":{"artifactId":"a","parts":[{"text":"x"}]},"lastChunk":true}}"#,
        ),
        (
            r#"{"taskId":"t","contextId":"c","status":{"state":"working"}}"#,
            r#"{"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}"#,
        ),
        (
            r#"{"id":"t","contextId":"c","status":{"state":"working"}}"#,
            r#"{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}"#,
        ),
        (
            r#"{"msg":{"message_id":"m","role":"ROLE_AGENT","content":[{"text":"x"}]}}"#,
            r#"{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"x"}]}}"#,
        ),
    ] {
        let (read, _) = v03::read_event(json.as_bytes(), Dialect::Kinds).unwrap();
        assert_eq!(read, event(expected), "{json}");
    }
    assert_eq!(wrong(v03::read_event(b"{}", Dialect::Kinds)).0, "kind");
    let update = br#"{"kind":"status-update","taskId":"t","status":{}}"#;
    assert_eq!(wrong(v03::read_sent(update, Dialect::Kinds)).0, "kind");
    let inner = br#"{"task":{"id":5}}"#;
    assert_eq!(wrong(v03::read_event(inner, Dialect::Proto)).0, "task.id");
}

#[test]
fn v03_08_configurations_are_nested_and_listed() {
    let config: TaskPushNotificationConfig = from_json(
        br#"{"tenant":"","id":"c","taskId":"t","url":"u","token":"k","authentication":{"scheme":"Bearer","credentials":"x"}}"#,
    )
    .unwrap();
    let kinds = r#"{"taskId":"t","pushNotificationConfig":{"id":"c","url":"u","token":"k","authentication":{"schemes":["Bearer"],"credentials":"x"}}}"#;
    assert_eq!(text(v03::write_push(&config, Dialect::Kinds)), kinds);
    let proto = r#"{"name":"tasks/t/pushNotificationConfigs/c","pushNotificationConfig":{"id":"c","url":"u","token":"k","authentication":{"schemes":["Bearer"],"credentials":"x"}}}"#;
    assert_eq!(text(v03::write_push(&config, Dialect::Proto)), proto);
    let page = ListTaskPushNotificationConfigsResponse {
        configs: vec![config.clone()],
        next_page_token: String::new(),
    };
    let listed = text(v03::write_push_list(&page, Dialect::Kinds));
    assert_eq!(listed, format!("[{kinds}]"));
    let wrapped = text(v03::write_push_list(&page, Dialect::Proto));
    assert_eq!(wrapped, format!(r#"{{"configs":[{proto}]}}"#));
    for json in [kinds, proto] {
        assert_eq!(v03::read_push(json.as_bytes()).unwrap(), config);
    }
    for json in [listed, wrapped] {
        assert_eq!(v03::read_pushes(json.as_bytes()).unwrap(), page);
    }
}

#[test]
fn v03_01_a_page_of_tasks_is_that_of_1_0_or_a_list() {
    let page = ListTasksResponse {
        tasks: vec![small()],
        next_page_token: "p".to_owned(),
        page_size: 50,
        total_size: 7,
    };
    let written = v03::write_list(&page, Dialect::Kinds);
    assert_eq!(
        text(written.clone()),
        r#"{"tasks":[{"kind":"task","id":"t1","contextId":"c1","status":{"state":"completed"}}],"nextPageToken":"p","pageSize":50,"totalSize":7}"#
    );
    assert_eq!(v03::read_page(&written, Dialect::Kinds).unwrap(), page);
    let written = v03::write_list(&page, Dialect::Proto);
    assert_eq!(
        text(written.clone()),
        r#"[{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_COMPLETED"}}]"#
    );
    let read = v03::read_page(&written, Dialect::Proto).unwrap();
    assert_eq!((read.tasks, read.total_size), (page.tasks, 1));
}

#[test]
fn v03_18_a_notification_is_a_bare_task() {
    let written = text(v03::write_task(&small(), Dialect::Kinds));
    assert_eq!(
        written,
        r#"{"kind":"task","id":"t1","contextId":"c1","status":{"state":"completed"}}"#
    );
}

/// V03-05: data that is no object travels inside one, with a mark that is gone afterwards.
#[test]
fn data_that_is_no_object_is_wrapped() {
    for data in ["null", "1", "[1]", "\"x\"", "true"] {
        for metadata in ["", r#","metadata":{"k":2}"#] {
            let part: Part =
                from_json(format!(r#"{{"data":{data}{metadata}}}"#).as_bytes()).unwrap();
            let mut task = task();
            task.artifacts[0].parts = vec![part];
            task.history.clear();
            for dialect in BOTH {
                let written = v03::write_task(&task, dialect);
                assert_eq!(v03::read_task(&written, dialect).unwrap(), task);
            }
        }
    }
}

#[test]
fn v03_24_errors_have_class_names() {
    for kind in ErrorKind::ALL {
        assert_eq!(v03::kind_of_error_name(v03::error_name(kind)), Some(kind));
    }
    let renamed = v03::error_name(ErrorKind::ExtendedAgentCardNotConfigured);
    assert_eq!(renamed, "AuthenticatedExtendedCardNotConfiguredError");
    assert_eq!(v03::kind_of_error_name("TaskLostError"), None);
}
