//! Input that nobody should send: refused in the protocol's own form, and nothing comes of it.

use a2ad_proto::{
    GetTaskRequest, ListTasksRequest, Message, Part, SendMessageRequest, SendMessageResponse,
};
use a2ad_testkit::client::{drain, text, text_in};
use a2ad_testkit::harness::{Binding, Harness, StoreKind};
use a2ad_testkit::http::{Answer, call};
use hyper::Method;
use serde_json::Value;

use crate::wire::{JSON, V1, message, request};

crate::scenarios![
    get_02_an_id_is_a_task_of_ours_or_none,
    ctx_08_a_conversations_name_is_kept_or_refused,
    send_06_a_message_id_is_checked,
    model_09_a_crowd_is_refused_in_the_same_words,
    stream_11_a_stream_that_cannot_start_is_an_error,
    stream_11_a_cursor_beyond_the_end_is_an_error,
];

/// Ids that no task has: encoded, over-long, out of pattern.
fn odd_ids() -> Vec<String> {
    let mut ids: Vec<String> = [
        "nope",
        "%41",
        "%2e%2e%2f",
        "../../etc/passwd",
        "a b",
        "a/b",
        "a:cancel",
        "a?b=c",
        "a#b",
        "'; DROP TABLE tasks; --",
        "\u{0}",
        "\n",
        "\u{202e}x",
        "ü",
        "🎉",
        "null",
        "-1",
        "0",
        "00000000-0000-0000-0000-000000000000",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
    ]
    .map(str::to_owned)
    .to_vec();
    ids.extend([129, 1_000, 30_000].map(|length| "x".repeat(length)));
    ids
}

async fn get_02_an_id_is_a_task_of_ours_or_none(server: Harness) {
    let task = server.client.send(text("echo x")).await.unwrap();
    let mut ids = odd_ids();
    // Spellings of an id are not the id.
    ids.extend([
        task.id.to_uppercase(),
        task.id.replace('-', ""),
        format!("{{{}}}", task.id),
        format!(" {}", task.id),
        format!("{}\u{0}", task.id),
    ]);
    for id in ids {
        let request = GetTaskRequest {
            id: id.clone(),
            ..GetTaskRequest::default()
        };
        let refused = server.client.get(request).await.unwrap_err();
        assert_eq!(refused.reason(), "TASK_NOT_FOUND", "{id:?}");
        let refused = server.client.cancel(&id).await.unwrap_err();
        assert_eq!(refused.reason(), "TASK_NOT_FOUND", "{id:?}");
        let mut request = text("echo x");
        request.message.as_mut().unwrap().task_id = id.clone();
        let refused = server.client.send(request).await.unwrap_err();
        assert_eq!(refused.reason(), "TASK_NOT_FOUND", "{id:?}");
    }
    assert_eq!(server.agent_begun(), 1);
}

async fn ctx_08_a_conversations_name_is_kept_or_refused(server: Harness) {
    let longest = "c".repeat(128);
    for name in ["a b", "a/b", "%41", "🎉", "../x", &longest] {
        let task = server.client.send(text_in(name, "echo x")).await.unwrap();
        assert_eq!(task.context_id, name);
    }
    let too_long = "c".repeat(129);
    for name in [&too_long, "a\u{0}b", "a\nb", ".", ".."] {
        let refused = server.client.send(text_in(name, "echo x")).await;
        let refused = refused.unwrap_err();
        assert_eq!(refused.reason(), "INVALID_PARAMS", "{name:?}");
        assert!(format!("{refused:?}").contains("contextId"), "{refused:?}");
    }
    let list = server.client.list(ListTasksRequest::default()).await;
    assert_eq!(list.unwrap().total_size, 6);
}

async fn send_06_a_message_id_is_checked(server: Harness) {
    for id in [&"m".repeat(5_000), "a\u{0}b", "\u{7f}"] {
        let mut request = text("echo x");
        request.message.as_mut().unwrap().message_id = id.to_owned();
        let refused = server.client.send(request).await.unwrap_err();
        assert_eq!(refused.reason(), "INVALID_PARAMS", "{id:?}");
        assert!(format!("{refused:?}").contains("messageId"), "{refused:?}");
    }
    assert_eq!(server.agent_begun(), 0);
}

/// Over every binding: the members that have a longest length, and what is said of one that is longer.
async fn model_09_a_crowd_is_refused_in_the_same_words(server: Harness) {
    let mut parts = text("echo x");
    let mut extensions = text("echo x");
    let mut references = text("echo x");
    let mut modes = text("echo x");
    let message = |request: &mut SendMessageRequest, fill: fn(&mut Message)| {
        fill(request.message.as_mut().unwrap());
    };
    message(&mut parts, |it| it.parts = vec![Part::text(""); 10_001]);
    message(&mut extensions, |it| {
        it.extensions = vec![String::new(); 1_001]
    });
    message(&mut references, |it| {
        it.reference_task_ids = vec![String::new(); 1_001]
    });
    let configuration = modes.configuration.get_or_insert_default();
    configuration.accepted_output_modes = vec!["*/*".to_owned(); 1_001];
    for (request, blamed) in [
        (parts, "message.parts: has more than 10000 elements"),
        (
            extensions,
            "message.extensions: has more than 1000 elements",
        ),
        (
            references,
            "message.referenceTaskIds: has more than 1000 elements",
        ),
        (
            modes,
            "configuration.acceptedOutputModes: has more than 1000 elements",
        ),
    ] {
        let refused = server.client.send(request).await.unwrap_err();
        assert_eq!(refused.reason(), "INVALID_PARAMS");
        assert!(format!("{refused:?}").contains(blamed), "{refused:?}");
    }
    assert_eq!(server.agent_begun(), 0);
}

async fn stream_11_a_stream_that_cannot_start_is_an_error(server: Harness) {
    let ended = server.client.send(text("echo x")).await.unwrap();
    for (id, after, reason) in [
        ("nope", None, "TASK_NOT_FOUND"),
        ("nope", Some(0), "TASK_NOT_FOUND"),
        (&ended.id, None, "UNSUPPORTED_OPERATION"),
        (&ended.id, Some(u64::MAX), "INVALID_PARAMS"),
    ] {
        let Err(refused) = server.client.subscribe(id, after).await else {
            panic!("{id} is followed after {after:?}");
        };
        assert_eq!(refused.reason(), reason, "{id} {after:?}");
    }
    let mut to_nobody = text("echo x");
    to_nobody.message.as_mut().unwrap().task_id = "nope".to_owned();
    let mut nameless = text("echo x");
    nameless.message.as_mut().unwrap().message_id.clear();
    for (request, reason) in [(to_nobody, "TASK_NOT_FOUND"), (nameless, "INVALID_PARAMS")] {
        let Err(refused) = server.client.stream(request, None).await else {
            panic!("a stream begins");
        };
        assert_eq!(refused.reason(), reason);
    }
}

/// Whether the task has ended or not, and whichever way the stream is asked for again.
async fn stream_11_a_cursor_beyond_the_end_is_an_error(server: Harness) {
    for (said, id) in [
        ("echo x", "0198a5b2-7c1e-7f3a-9d2e-3b1f5c7a9e10"),
        ("ask what?", "0198a5b2-7c1e-7f3a-9d2e-3b1f5c7a9e11"),
        ("reply x", "0198a5b2-7c1e-7f3a-9d2e-3b1f5c7a9e12"),
    ] {
        let mut request = text(said);
        id.clone_into(&mut request.message.as_mut().unwrap().message_id);
        let first = server.client.stream(request.clone(), None).await.unwrap();
        let first = drain(first).await.unwrap();
        let end = first.last().unwrap().number;
        let id = match server.client.send_any(request.clone()).await.unwrap() {
            SendMessageResponse::Task(task) => task.id,
            SendMessageResponse::Message(reply) => reply.task_id,
        };
        for beyond in [end + 1, end + 1_000_000] {
            let subscribed = server.client.subscribe(&id, Some(beyond)).await;
            let again = server.client.stream(request.clone(), Some(beyond)).await;
            for stream in [subscribed, again] {
                let Err(refused) = stream else {
                    panic!("{said}: a stream begins after {beyond}");
                };
                assert_eq!(refused.reason(), "INVALID_PARAMS", "{said}");
                let told = format!("cursor: The task has only {end} entries");
                assert!(format!("{refused:?}").contains(&told), "{refused:?}");
            }
        }
    }
}

async fn ask(server: &Harness, verb: Method, path: &str, body: &str) -> Answer {
    let answer = call(server.addr(), verb, path, &[JSON, V1], body.to_owned()).await;
    answer.unwrap_or_else(|broken| panic!("{path}: {broken}"))
}

fn fields(error: &Value, details: &str) -> Vec<String> {
    let violations = error[details][1]["fieldViolations"].as_array();
    let violations = violations.unwrap_or_else(|| panic!("{error}"));
    let field = |it: &Value| it["field"].as_str().unwrap().to_owned();
    violations.iter().map(field).collect()
}

/// REST-04, ERR-03: what is unknown is ignored, what is malformed is named.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rest_04_unknown_parameters_are_ignored_and_malformed_ones_named() {
    let server = Harness::start(Binding::HttpJson, StoreKind::Sqlite).await;
    let task = server.client.send(text("echo x")).await.unwrap();
    let id = &task.id;
    let plain = ask(&server, Method::GET, "/tasks", "").await;
    for query in [
        "colour=red",
        "page_size=x",
        "PAGESIZE=x",
        "%zz=%zz",
        "&&&",
        "=",
        "pageSizes=0",
    ] {
        let answer = ask(&server, Method::GET, &format!("/tasks?{query}"), "").await;
        assert_eq!(
            (answer.status.as_u16(), &answer.body),
            (200, &plain.body),
            "{query}"
        );
        let answer = ask(&server, Method::GET, &format!("/tasks/{id}?{query}"), "").await;
        assert_eq!(answer.status, 200, "{query}");
    }
    let by_id = format!("/tasks/{id}");
    for (path, expected) in [
        ("/tasks?pageSize=x", &["pageSize"][..]),
        ("/tasks?pageSize=0", &["pageSize"]),
        ("/tasks?pageSize=99999999999999999999", &["pageSize"]),
        ("/tasks?pageSize=1&pageSize=2", &["pageSize"]),
        ("/tasks?historyLength=-1", &["historyLength"]),
        (
            "/tasks?status=bored&includeArtifacts=perhaps",
            &["status", "includeArtifacts"],
        ),
        (
            "/tasks?statusTimestampAfter=yesterday",
            &["statusTimestampAfter"],
        ),
        ("/tasks?contextId=%ff", &["contextId"]),
        ("/tasks?pageToken=forged", &["pageToken"]),
        (&format!("{by_id}?historyLength=many"), &["historyLength"]),
        (&format!("{by_id}?historyLength=-1"), &["historyLength"]),
        ("/tasks/%ff", &["id"]),
        ("/tasks/%", &["id"]),
        (
            &format!("{by_id}:subscribe?afterSequence=x"),
            &["afterSequence"],
        ),
    ] {
        let answer = ask(&server, Method::GET, path, "").await;
        assert_eq!(answer.status, 400, "{path}");
        let error = &answer.json()["error"];
        assert_eq!(error["status"], "INVALID_ARGUMENT", "{path}");
        assert_eq!(fields(error, "details"), expected, "{path}");
    }
}

/// REST-05: an id is one segment, decoded once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rest_05_ids_are_decoded_once() {
    let server = Harness::start(Binding::HttpJson, StoreKind::Sqlite).await;
    let task = server.client.send(text("ask what?")).await.unwrap();
    let encoded: String = task.id.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let answer = ask(&server, Method::GET, &format!("/tasks/{encoded}"), "").await;
    assert_eq!(answer.json()["id"], task.id);
    let twice = encoded.replace('%', "%25");
    let answer = ask(&server, Method::GET, &format!("/tasks/{twice}"), "").await;
    assert_eq!(answer.status, 404);
    let told = answer.json()["error"]["details"][0]["metadata"]["taskId"].clone();
    assert_eq!(told, encoded, "what was asked for, decoded once");
    let answer = ask(
        &server,
        Method::GET,
        &format!("/tasks/{encoded}%3Acancel"),
        "",
    )
    .await;
    assert_eq!(answer.status, 404, "an encoded colon is part of the id");
    let answer = ask(
        &server,
        Method::POST,
        &format!("/tasks/{encoded}:cancel"),
        "",
    )
    .await;
    assert_eq!(answer.json()["status"]["state"], "TASK_STATE_CANCELED");
}

/// REST-03, RPC-02, ERR-03: every member that is wrong is named, and the same over both bindings.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn err_03_members_that_are_wrong_are_named() {
    let server = Harness::start(Binding::JsonRpc, StoreKind::Sqlite).await;
    let sent = |from: &str, to: &str| message("x").replace(from, to);
    for (body, expected) in [
        ("{}".to_owned(), &["message"][..]),
        (
            r#"{"message":{}}"#.to_owned(),
            &["message.messageId", "message.role", "message.parts"],
        ),
        (sent(r#""text":"x""#, ""), &["message.parts[0]"]),
        (
            sent(r#""text":"x""#, r#""text":5"#),
            &["message.parts[0].text"],
        ),
        (
            sent(r#""text":"x""#, r#""raw":"~""#),
            &["message.parts[0].raw"],
        ),
        (sent("ROLE_USER", "ROLE_BOSS"), &["message.role"]),
        (sent("ROLE_USER", "ROLE_AGENT"), &["message.role"]),
        (sent(r#""m1""#, "null"), &["message.messageId"]),
        (
            sent(r#""m1""#, r#""m1","metadata":[]"#),
            &["message.metadata"],
        ),
        (
            sent(
                r#"{"message""#,
                r#"{"configuration":{"historyLength":-1},"message""#,
            ),
            &["configuration.historyLength"],
        ),
    ] {
        for (method, path) in [
            ("SendMessage", "/message:send"),
            ("SendStreamingMessage", "/message:stream"),
        ] {
            let one = ask(&server, Method::POST, "/", &request(method, &body))
                .await
                .json();
            assert_eq!(one["error"]["code"], -32602, "{body}");
            assert_eq!(fields(&one["error"], "data"), expected, "{body}");
            let other = ask(&server, Method::POST, path, &body).await.json();
            assert_eq!(other["error"]["details"], one["error"]["data"], "{body}");
        }
    }
    assert_eq!(server.agent_begun(), 0);
}
