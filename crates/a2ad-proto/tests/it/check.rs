//! What requests must hold, and how violations are named.

use a2ad_proto::{
    Artifact, CancelTaskRequest, DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest, GetTaskRequest, ListTaskPushNotificationConfigsRequest,
    ListTasksRequest, SendMessageRequest, SubscribeToTaskRequest, TaskPushNotificationConfig,
    Violations, from_json, is_json,
};

use super::refused;

/// Reads `text` and gives the paths that `check` complains about.
macro_rules! fields {
    ($request:ty, $text:expr) => {
        match from_json::<$request>($text.as_bytes()).unwrap().check() {
            Ok(()) => Vec::new(),
            Err(Violations(found)) => found.into_iter().map(|v| v.field).collect::<Vec<_>>(),
        }
    };
}

const NONE: [&str; 0] = [];

#[test]
fn send_06_a_message_needs_id_role_and_parts() {
    assert_eq!(fields!(SendMessageRequest, "{}"), ["message"]);
    assert_eq!(
        fields!(SendMessageRequest, r#"{"message":null}"#),
        ["message"]
    );
    assert_eq!(
        fields!(SendMessageRequest, r#"{"message":{}}"#),
        ["message.messageId", "message.role", "message.parts"]
    );
    let right = r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":""}]}}"#;
    assert_eq!(fields!(SendMessageRequest, right), NONE);
}

#[test]
fn send_06_ids_must_be_usable() {
    let text = format!(
        r#"{{"message":{{"messageId":"{}","contextId":"a\nb","role":1,"parts":[{{"text":""}}]}}}}"#,
        "x".repeat(300)
    );
    assert_eq!(
        fields!(SendMessageRequest, text),
        ["message.messageId", "message.contextId"]
    );
}

#[test]
fn send_07_only_users_send() {
    let text = r#"{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":""}]}}"#;
    assert_eq!(fields!(SendMessageRequest, text), ["message.role"]);
    let message = from_json::<SendMessageRequest>(text.as_bytes())
        .unwrap()
        .message
        .unwrap();
    assert!(message.check().is_ok(), "agents may speak elsewhere");
}

#[test]
fn hist_04_a_negative_history_length_is_refused() {
    let text = r#"{"message":{"messageId":"m","role":1,"parts":[{"text":""}]},"configuration":{"historyLength":-1}}"#;
    assert_eq!(
        fields!(SendMessageRequest, text),
        ["configuration.historyLength"]
    );
    assert_eq!(
        fields!(GetTaskRequest, r#"{"id":"t","historyLength":-1}"#),
        ["historyLength"]
    );
    assert_eq!(
        fields!(GetTaskRequest, r#"{"id":"t","historyLength":0}"#),
        NONE
    );
    assert_eq!(
        fields!(ListTasksRequest, r#"{"historyLength":-1}"#),
        ["historyLength"]
    );
}

#[test]
fn list_page_sizes_are_refused_not_clamped() {
    for (size, right) in [
        ("0", false),
        ("1", true),
        ("100", true),
        ("101", false),
        ("-1", false),
        ("null", true),
    ] {
        let found = fields!(ListTasksRequest, format!(r#"{{"pageSize":{size}}}"#));
        assert_eq!(found.is_empty(), right, "{size}");
    }
}

#[test]
fn model_02_requests_name_what_they_are_about() {
    assert_eq!(fields!(GetTaskRequest, "{}"), ["id"]);
    assert_eq!(fields!(CancelTaskRequest, "{}"), ["id"]);
    assert_eq!(fields!(SubscribeToTaskRequest, "{}"), ["id"]);
    assert_eq!(
        fields!(GetTaskPushNotificationConfigRequest, "{}"),
        ["taskId", "id"]
    );
    assert_eq!(
        fields!(DeleteTaskPushNotificationConfigRequest, "{}"),
        ["taskId", "id"]
    );
    assert_eq!(
        fields!(ListTaskPushNotificationConfigsRequest, r#"{"pageSize":-1}"#),
        ["taskId", "pageSize"]
    );
    assert_eq!(fields!(Artifact, "{}"), ["artifactId", "parts"]);
}

#[test]
fn model_02_a_webhook_needs_a_url_and_a_scheme() {
    assert_eq!(
        fields!(TaskPushNotificationConfig, r#"{"authentication":{}}"#),
        ["taskId", "url", "authentication.scheme"]
    );
    let text = r#"{"message":{"messageId":"m","role":1,"parts":[{"text":""}]},"configuration":{"taskPushNotificationConfig":{}}}"#;
    assert_eq!(
        fields!(SendMessageRequest, text),
        ["configuration.taskPushNotificationConfig.url"]
    );
}

#[test]
fn err_03_a_wrong_type_names_its_member() {
    for (text, field, expected) in [
        (
            r#"{"message":{"parts":[{"text":"a"},{"text":5}]}}"#,
            "message.parts[1].text",
            "string",
        ),
        (r#"{"message":{"parts":{}}}"#, "message.parts", "list"),
        (
            r#"{"message":{"parts":["x"]}}"#,
            "message.parts[0]",
            "object",
        ),
        (r#"{"message":[]}"#, "message", "object"),
        (r#"{"message":{"role":"user"}}"#, "message.role", "Role"),
        (
            r#"{"configuration":{"returnImmediately":"yes"}}"#,
            "configuration.returnImmediately",
            "boolean",
        ),
        (
            r#"{"configuration":{"history_length":"x"}}"#,
            "configuration.historyLength",
            "integer",
        ),
        (r#"{"message":{"metadata":{"a":[}}}"#, "", "not JSON"),
        ("[]", "", "object"),
        ("", "", "not JSON"),
        (r#"{"tenant":"t"} x"#, "", "not JSON"),
    ] {
        let (found, description) = refused::<SendMessageRequest>(text);
        assert_eq!(found, field, "{text}");
        assert!(description.contains(expected), "{description}");
    }
    assert!(is_json(b"[]") && !is_json(b"") && !is_json(b"{} x"));
}

#[test]
fn err_06_descriptions_stay_short() {
    let text = format!(r#"{{"message":{{"role":"{}"}}}}"#, "é`: ".repeat(100_000));
    let (field, description) = refused::<SendMessageRequest>(&text);
    assert_eq!(field, "message.role");
    assert!(
        description.len() < 300 && description.contains("Role"),
        "{description}"
    );
}

#[test]
fn violations_read_as_a_sentence() {
    let found = from_json::<GetTaskRequest>(br#"{"historyLength":-1}"#)
        .unwrap()
        .check();
    assert_eq!(
        found.unwrap_err().to_string(),
        "id: is required; historyLength: must not be negative"
    );
}
