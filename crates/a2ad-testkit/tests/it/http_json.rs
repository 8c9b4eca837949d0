//! HTTP+JSON byte by byte, kept in golden files beside this one.

use a2ad_proto::ListTasksRequest;
use a2ad_testkit::golden::{compare, redact};
use a2ad_testkit::harness::{Binding, Harness, StoreKind};
use a2ad_testkit::http::{Answer, call};
use hyper::Method;

use crate::wire::{V1, golden, message, show};

const A2A: (&str, &str) = ("content-type", "application/a2a+json");
const ACCEPT: (&str, &str) = ("accept", "application/a2a+json");
const EVENTS: (&str, &str) = ("accept", "text/event-stream");

async fn server() -> Harness {
    Harness::start(Binding::HttpJson, StoreKind::Sqlite).await
}

async fn post(
    server: &Harness,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<bytes::Bytes>,
) -> Answer {
    let answer = call(server.addr(), Method::POST, path, headers, body).await;
    answer.unwrap()
}

async fn get(server: &Harness, path: &str, headers: &[(&str, &str)]) -> Answer {
    let answer = call(server.addr(), Method::GET, path, headers, "").await;
    answer.unwrap()
}

/// The id of the task that a message makes.
async fn task(server: &Harness, text: &str) -> String {
    let sent = post(server, "/message:send", &[A2A, V1], message(text)).await;
    sent.json()["task"]["id"].as_str().unwrap().to_owned()
}

/// REST-02, CANCEL-05.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_operations() {
    let server = server().await;
    let mut out = String::new();
    let headers = [A2A, V1, ACCEPT];
    let sent = post(&server, "/message:send", &headers, message("echo hi")).await;
    show(&mut out, "POST /message:send", &sent);
    let id = sent.json()["task"]["id"].as_str().unwrap().to_owned();
    let headers = [A2A, V1, EVENTS];
    let streamed = post(&server, "/message:stream", &headers, message("burst 2")).await;
    show(&mut out, "POST /message:stream", &streamed);
    let got = get(&server, &format!("/tasks/{id}?historyLength=0"), &[V1]).await;
    show(&mut out, "GET /tasks/{id}, without history", &got);
    let path =
        "/tasks?includeArtifacts=true&historyLength=0&status=TASK_STATE_COMPLETED&colour=red";
    let listed = get(&server, path, &[V1, ACCEPT]).await;
    show(&mut out, "GET /tasks", &listed);
    let path = format!("/tasks/{id}:subscribe");
    let replayed = get(&server, &path, &[V1, EVENTS, ("last-event-id", "0")]).await;
    show(&mut out, "GET /tasks/{id}:subscribe after 0", &replayed);
    let path = format!("/tasks/{id}:subscribe?afterSequence=0");
    let again = post(&server, &path, &[V1, EVENTS], "").await;
    assert_eq!(again.body, replayed.body, "the verb makes no difference");
    for (title, body) in [
        ("nothing", ""),
        ("an empty object", "{}"),
        ("metadata", r#"{"metadata":{"why":"changed my mind"}}"#),
    ] {
        let path = format!("/tasks/{}:cancel", task(&server, "ask what?").await);
        let canceled = post(&server, &path, &[V1, ("accept", "*/*")], body).await;
        show(
            &mut out,
            &format!("POST /tasks/{{id}}:cancel with {title}"),
            &canceled,
        );
    }
    compare(&golden("http_json_operations.txt"), &redact(&out));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_errors_of_operations() {
    let server = server().await;
    let mut out = String::new();
    let id = task(&server, "echo hi").await;
    let by_id = format!("/tasks/{id}");
    for (title, path) in [
        ("unknown task", "/tasks/nope"),
        ("an id with a slash and a colon", "/tasks/a%2Fb%3Acancel"),
        ("no id", "/tasks/"),
        ("an unknown task followed", "/tasks/nope:subscribe"),
        ("page too large", "/tasks?pageSize=101"),
        ("negative history", "/tasks?historyLength=-1"),
        ("a foreign page token", "/tasks?pageToken=abc"),
        ("push configs", "/tasks/t/pushNotificationConfigs"),
        ("no extended card", "/extendedAgentCard"),
    ] {
        show(&mut out, title, &get(&server, path, &[V1]).await);
    }
    let answer = get(&server, &format!("{by_id}:subscribe"), &[V1, EVENTS]).await;
    show(&mut out, "ended task followed", &answer);
    let answer = post(&server, &format!("{by_id}:cancel"), &[V1], "").await;
    show(&mut out, "ended task canceled", &answer);
    let body = r#"{"message":{"messageId":"m","role":"ROLE_USER"}}"#;
    let answer = post(&server, "/message:send", &[A2A, V1], body).await;
    show(&mut out, "no parts", &answer);
    let body = message("hi").replace(r#""messageId""#, &format!(r#""taskId":"{id}","messageId""#));
    let answer = post(&server, "/message:stream", &[A2A, V1, EVENTS], body).await;
    show(&mut out, "a message to an ended task, streamed", &answer);
    show(&mut out, "no version", &get(&server, &by_id, &[]).await);
    for version in ["0.3", "99.0", "one"] {
        let answer = get(&server, &by_id, &[("a2a-version", version)]).await;
        show(&mut out, &format!("version {version}"), &answer);
    }
    let path = format!("{by_id}?A2A-Version=1.0");
    assert_eq!(get(&server, &path, &[]).await.status, 200);
    for (title, accept) in [
        (
            "for a client of the protocol's type",
            "application/a2a+json",
        ),
        ("for a client of plain JSON", "application/json"),
    ] {
        let answer = get(&server, "/tasks/nope", &[V1, ("accept", accept)]).await;
        show(&mut out, &format!("unknown task, {title}"), &answer);
    }
    compare(&golden("http_json_errors.txt"), &redact(&out));
}

/// Whatever is sent, the server answers in A2A's shape, stays up, and writes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_input() {
    let server = server().await;
    let mut out = String::new();
    let send = message("echo hi");
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("empty body", b"".to_vec()),
        ("not JSON", b"{nope".to_vec()),
        ("trailing text", [send.as_bytes(), b" x"].concat()),
        (
            "bad UTF-8",
            [&send.as_bytes()[..60], b"\xff\xfe", &send.as_bytes()[60..]].concat(),
        ),
        ("lone surrogate", send.replace("hi", r"\ud800").into_bytes()),
        ("an array", format!("[{send}]").into_bytes()),
        ("a string", b"\"hello\"".to_vec()),
        ("null", b"null".to_vec()),
        ("a hundred thousand brackets", deep.into_bytes()),
        ("message twice", br#"{"message":{},"message":{}}"#.to_vec()),
        (
            "an unknown role",
            send.replace("ROLE_USER", "ROLE_BOSS").into_bytes(),
        ),
    ];
    for (title, body) in cases {
        let answer = post(&server, "/message:send", &[A2A, V1], body).await;
        show(&mut out, title, &answer);
    }
    for (title, header) in [
        ("text/plain", ("content-type", "text/plain")),
        ("compressed", ("content-encoding", "gzip")),
        ("an empty Idempotency-Key", ("idempotency-key", "")),
    ] {
        let answer = post(&server, "/message:send", &[V1, header], send.clone()).await;
        show(&mut out, title, &answer);
    }
    let body = r#"{"id":"other"}"#;
    for path in ["/tasks/one:cancel", "/tasks/one:subscribe"] {
        let answer = post(&server, path, &[V1], body).await;
        show(&mut out, &format!("POST {path} with {body}"), &answer);
    }
    for path in [
        "/tasks/%zz",
        "/tasks/%ff",
        "/tasks/%00",
        "/tasks?pageSize=",
        "/tasks?pageSize=1.5",
        "/tasks?pageSize=1&pageSize=2",
        "/tasks?status=TASK_STATE_BORED",
        "/tasks?status=99",
        "/tasks?includeArtifacts=yes",
        "/tasks?statusTimestampAfter=yesterday",
        "/tasks?lastUpdatedAfter=yesterday",
        "/tasks?contextId=%ff",
        "/tasks?pageSize=a&historyLength=b&status=c",
        "/tasks/nope:subscribe?afterSequence=-1",
        "/message:send",
        "/tasks/t:cancel",
        "/tasks/t/",
        "/tasks/t/pushNotificationConfigs/c/d",
        "/message:explode",
    ] {
        let answer = get(&server, path, &[V1]).await;
        show(&mut out, &format!("GET {path}"), &answer);
    }
    compare(&golden("http_json_bad_input.txt"), &redact(&out));

    let long = "x".repeat(5_000);
    let answer = get(&server, &format!("/tasks/{long}"), &[V1]).await;
    assert_eq!(answer.status, 404, "a task of an endless name is no task");
    let huge = send.replace("hi", &"x".repeat(16 << 20));
    let answer = post(&server, "/message:send", &[A2A, V1], huge).await;
    assert_eq!(answer.status, 413);
    assert_eq!(answer.json()["error"]["code"], 413);

    let list = server.client.list(ListTasksRequest::default()).await;
    assert_eq!(list.unwrap().total_size, 0, "nothing was written");
    assert_eq!(server.agent_begun(), 0, "nothing was started");
}

/// SEND-17: whoever sends a message twice under the same key gets the same task.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_makes_a_message_count_once() {
    let server = server().await;
    let headers = [A2A, V1, ("idempotency-key", "order-7")];
    let mut ids = Vec::new();
    for _ in 0..2 {
        let sent = post(&server, "/message:send", &headers, message("echo hi")).await;
        ids.push(sent.json()["task"]["id"].as_str().unwrap().to_owned());
    }
    assert_eq!(ids[0], ids[1]);
    assert_eq!(server.agent_begun(), 1);
}
