//! What goes over the wire, byte by byte, kept in golden files beside this one.

use std::fmt::Write as _;
use std::path::Path;

use a2ad_proto::ListTasksRequest;
use a2ad_testkit::golden::{compare, redact};
use a2ad_testkit::harness::{Binding, Harness, StoreKind};
use a2ad_testkit::http::{Answer, call};
use hyper::Method;

async fn server() -> Harness {
    Harness::start(Binding::JsonRpc, StoreKind::Sqlite).await
}

pub(crate) fn golden(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/it/golden")
        .join(name)
}

/// Headers that say something; the others (date, lengths) are the HTTP library's business.
const HEADERS: [&str; 10] = [
    "content-type",
    "cache-control",
    "connection",
    "x-accel-buffering",
    "allow",
    "retry-after",
    "access-control-allow-origin",
    "etag",
    "last-modified",
    "vary",
];

pub(crate) fn show(out: &mut String, title: &str, answer: &Answer) {
    let _infallible = writeln!(out, "## {title}\n{}", answer.status);
    for name in HEADERS {
        if let Some(value) = answer.headers.get(name) {
            let _infallible = writeln!(out, "{name}: {}", value.to_str().unwrap());
        }
    }
    let body = String::from_utf8(answer.body.to_vec()).unwrap();
    let _infallible = writeln!(out, "\n{}\n", body.trim_end());
}

pub(crate) const JSON: (&str, &str) = ("content-type", "application/json");
pub(crate) const V1: (&str, &str) = ("a2a-version", "1.0");

async fn post(server: &Harness, headers: &[(&str, &str)], body: impl Into<bytes::Bytes>) -> Answer {
    call(server.addr(), Method::POST, "/", headers, body)
        .await
        .unwrap()
}

pub(crate) fn request(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{params}}}"#)
}

pub(crate) fn message(text: &str) -> String {
    format!(
        r#"{{"message":{{"messageId":"m1","role":"ROLE_USER","parts":[{{"text":"{text}"}}]}}}}"#
    )
}

/// RPC-01, RPC-07.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_operations() {
    let server = server().await;
    let mut out = String::new();
    let sent = post(
        &server,
        &[JSON, V1],
        request("SendMessage", &message("echo hi")),
    )
    .await;
    show(&mut out, "SendMessage", &sent);
    let id = sent.json()["result"]["task"]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let by_id = format!(r#"{{"id":"{id}"}}"#);

    let accept = ("accept", "text/event-stream");
    let streamed = request("SendStreamingMessage", &message("burst 2"));
    let streamed = post(&server, &[JSON, V1, accept], streamed).await;
    show(&mut out, "SendStreamingMessage", &streamed);
    let got = post(&server, &[JSON, V1], request("GetTask", &by_id)).await;
    show(&mut out, "GetTask", &got);
    let listed = request(
        "ListTasks",
        r#"{"includeArtifacts":true,"historyLength":0}"#,
    );
    show(
        &mut out,
        "ListTasks",
        &post(&server, &[JSON, V1], listed).await,
    );
    let replay = ("last-event-id", "0");
    let replayed = request("SubscribeToTask", &by_id);
    let replayed = post(&server, &[JSON, V1, accept, replay], replayed).await;
    show(&mut out, "SubscribeToTask after 0", &replayed);
    let asked = post(
        &server,
        &[JSON, V1],
        request("SendMessage", &message("ask what?")),
    )
    .await;
    let asked = asked.json()["result"]["task"]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let canceled = request("CancelTask", &format!(r#"{{"id":"{asked}"}}"#));
    show(
        &mut out,
        "CancelTask",
        &post(&server, &[JSON, V1], canceled).await,
    );
    compare(&golden("operations.txt"), &redact(&out));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_errors_of_operations() {
    let server = server().await;
    let mut out = String::new();
    let done = post(
        &server,
        &[JSON, V1],
        request("SendMessage", &message("echo hi")),
    )
    .await;
    let id = done.json()["result"]["task"]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let by_id = format!(r#"{{"id":"{id}"}}"#);
    let accept = ("accept", "text/event-stream");
    let cases = [
        ("unknown task", request("GetTask", r#"{"id":"nope"}"#)),
        ("no id", request("GetTask", "{}")),
        ("ended task canceled", request("CancelTask", &by_id)),
        ("ended task followed", request("SubscribeToTask", &by_id)),
        (
            "no parts",
            request(
                "SendMessage",
                r#"{"message":{"messageId":"m","role":"ROLE_USER"}}"#,
            ),
        ),
        (
            "wrong type",
            request("SendMessage", r#"{"message":{"messageId":5}}"#),
        ),
        (
            "page too large",
            request("ListTasks", r#"{"pageSize":101}"#),
        ),
        (
            "push is off",
            request("CreateTaskPushNotificationConfig", "{}"),
        ),
        ("no extended card", request("GetExtendedAgentCard", "{}")),
        ("unknown method", request("DoSomething", "{}")),
    ];
    for (title, body) in &cases {
        show(
            &mut out,
            title,
            &post(&server, &[JSON, V1], body.clone()).await,
        );
    }
    let body = request("SubscribeToTask", &by_id);
    show(
        &mut out,
        "ended task followed, by a client that reads streams",
        &post(&server, &[JSON, V1, accept], body).await,
    );
    let get = || request("GetTask", &by_id);
    show(&mut out, "no version", &post(&server, &[JSON], get()).await);
    for version in ["0.3", "99.0", "one"] {
        let headers = [JSON, ("a2a-version", version)];
        show(
            &mut out,
            &format!("version {version}"),
            &post(&server, &headers, get()).await,
        );
    }
    compare(&golden("errors.txt"), &redact(&out));
}

/// RPC-02, RPC-03: whatever is sent, the server answers in A2A's shape, stays up, and writes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_input() {
    let server = server().await;
    let mut out = String::new();
    let send = request("SendMessage", &message("echo hi"));
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{}{}}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    let deep_metadata = request(
        "SendMessage",
        &format!(
            r#"{{"message":{{"messageId":"m","role":"ROLE_USER","parts":[{{"text":"x"}}],"metadata":{{"a":{}1{}}}}}}}"#,
            "[".repeat(2_000),
            "]".repeat(2_000)
        ),
    );
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("empty body", b"".to_vec()),
        ("not JSON", b"{nope".to_vec()),
        ("trailing text", [send.as_bytes(), b" x"].concat()),
        (
            "bad UTF-8",
            [&send.as_bytes()[..60], b"\xff\xfe", &send.as_bytes()[60..]].concat(),
        ),
        ("lone surrogate", send.replace("hi", r"\ud800").into_bytes()),
        ("a batch", format!("[{send}]").into_bytes()),
        ("a string", b"\"hello\"".to_vec()),
        (
            "no jsonrpc",
            br#"{"id":1,"method":"GetTask","params":{}}"#.to_vec(),
        ),
        (
            "jsonrpc 1.0",
            br#"{"jsonrpc":"1.0","id":1,"method":"GetTask"}"#.to_vec(),
        ),
        (
            "method is a number",
            br#"{"jsonrpc":"2.0","id":1,"method":5}"#.to_vec(),
        ),
        ("no method", br#"{"jsonrpc":"2.0","id":1}"#.to_vec()),
        (
            "id is an object",
            br#"{"jsonrpc":"2.0","id":{},"method":"GetTask"}"#.to_vec(),
        ),
        (
            "id is a fraction",
            br#"{"jsonrpc":"2.0","id":1.5,"method":"GetTask"}"#.to_vec(),
        ),
        (
            "no id",
            br#"{"jsonrpc":"2.0","method":"ListTasks"}"#.to_vec(),
        ),
        (
            "method twice",
            br#"{"jsonrpc":"2.0","id":1,"method":"GetTask","method":"ListTasks"}"#.to_vec(),
        ),
        (
            "params is an array",
            br#"{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":[]}"#.to_vec(),
        ),
        (
            "params is a number",
            br#"{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":3}"#.to_vec(),
        ),
        ("a hundred thousand brackets", deep.into_bytes()),
        ("deep metadata", deep_metadata.into_bytes()),
        (
            "two contents in a part",
            send.replace(r#""text":"echo hi""#, r#""text":"x","url":"y""#)
                .into_bytes(),
        ),
        (
            "a part without content",
            send.replace(r#""text":"echo hi""#, "").into_bytes(),
        ),
        (
            "an unknown role",
            send.replace("ROLE_USER", "ROLE_BOSS").into_bytes(),
        ),
    ];
    for (title, body) in cases {
        show(&mut out, title, &post(&server, &[JSON, V1], body).await);
    }
    for (title, kind) in [
        ("text/plain", "text/plain"),
        ("a form", "application/x-www-form-urlencoded"),
    ] {
        let answer = post(&server, &[("content-type", kind), V1], send.clone()).await;
        show(&mut out, title, &answer);
    }
    let gzip = ("content-encoding", "gzip");
    show(
        &mut out,
        "compressed",
        &post(&server, &[JSON, V1, gzip], send.clone()).await,
    );
    let long_key = "k".repeat(5_000);
    let headers = [JSON, V1, ("idempotency-key", long_key.as_str())];
    show(
        &mut out,
        "an endless Idempotency-Key",
        &post(&server, &headers, send.clone()).await,
    );
    let headers = [JSON, V1, ("last-event-id", "abc")];
    let subscribe = request("SubscribeToTask", r#"{"id":"nope"}"#);
    show(
        &mut out,
        "Last-Event-ID is no number",
        &post(&server, &headers, subscribe).await,
    );
    for (method, path) in [
        (Method::GET, "/"),
        (Method::DELETE, "/"),
        (Method::POST, "/livez"),
        (Method::GET, "/nowhere"),
    ] {
        let answer = call(server.addr(), method.clone(), path, &[], "")
            .await
            .unwrap();
        show(&mut out, &format!("{method} {path}"), &answer);
    }
    compare(&golden("bad_input.txt"), &redact(&out));

    // 16 MiB and a little more, with and without a length.
    let huge = send.replace("hi", &"x".repeat(16 << 20));
    let answer = post(&server, &[JSON, V1], huge).await;
    assert_eq!(answer.status, 413);
    assert_eq!(answer.json()["error"]["code"], -32600);

    let list = server
        .client
        .list(ListTasksRequest::default())
        .await
        .unwrap();
    assert_eq!(list.total_size, 0, "nothing was written");
    assert_eq!(server.agent_begun(), 0, "nothing was started");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn card_health_and_metrics() {
    let server = server().await;
    let mut out = String::new();
    let get = async |path: &str, headers: &[(&str, &str)]| {
        call(server.addr(), Method::GET, path, headers, "")
            .await
            .unwrap()
    };
    let card = get("/.well-known/agent-card.json", &[]).await;
    let etag = card.headers["etag"].to_str().unwrap().to_owned();
    let port = server.addr().port().to_string();
    show(&mut out, "the card", &card);
    let known = get("/.well-known/agent-card.json", &[("if-none-match", &etag)]).await;
    assert!(known.body.is_empty());
    show(&mut out, "the card again", &known);
    for path in ["/livez", "/readyz", "/healthz", "/health"] {
        show(&mut out, path, &get(path, &[]).await);
    }
    let etag_hash = etag.trim_start_matches("W/").trim_matches('"');
    let since = card.headers["last-modified"].to_str().unwrap();
    let out = out
        .replace(&port, "<port>")
        .replace(etag_hash, "<hash>")
        .replace(since, "<start>");
    compare(&golden("card_and_health.txt"), &redact(&out));

    post(
        &server,
        &[JSON, V1],
        request("SendMessage", &message("echo hi")),
    )
    .await;
    get("/tasks", &[V1]).await;
    get("/tasks?pageSize=x", &[V1]).await;
    let metrics = get("/metrics", &[]).await;
    let metrics = String::from_utf8(metrics.body.to_vec()).unwrap();
    for name in [
        "a2ad_requests_total",
        "a2ad_request_seconds",
        "a2ad_open_streams",
        "a2ad_open_connections",
        "a2ad_tasks_ended_total",
        "a2ad_turns",
        "a2ad_commit_batch_size",
        "a2ad_commit_seconds",
        r#"a2ad_requests_total{binding="jsonrpc",method="SendMessage",outcome="ok"} "#,
        r#"a2ad_requests_total{binding="http_json",method="ListTasks",outcome="ok"} "#,
        r#"a2ad_requests_total{binding="http_json",method="ListTasks",outcome="INVALID_PARAMS"} "#,
    ] {
        assert!(metrics.contains(name), "{name} is missing in\n{metrics}");
    }
}
