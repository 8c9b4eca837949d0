//! HTTP+JSON on the wire.

use serde_json::{Value, json};

use super::wire::{Reply, call, plain, rpc};
use super::*;

const SEND: &str = r#"{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"hi"}]}}"#;
const V1: &str = "A2A-Version: 1.0\r\n";

fn get(path: &str) -> String {
    plain("GET", path, V1)
}

fn with_body(verb: &str, path: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    plain(
        verb,
        path,
        &format!("{V1}{headers}Content-Length: {length}\r\n"),
    ) + body
}

fn post(path: &str, body: &str) -> String {
    with_body("POST", path, "Content-Type: application/a2a+json\r\n", body)
}

/// The status and the reason of an error, after checking its form.
fn refused(reply: &Reply) -> (u16, String) {
    let error = &reply.json()["error"];
    assert_eq!(error["code"], reply.status, "{}", reply.text());
    assert!(error["status"].is_string() && error["message"].is_string());
    let info = &error["details"][0];
    assert_eq!(info["@type"], "type.googleapis.com/google.rpc.ErrorInfo");
    assert_eq!(info["domain"], "a2a-protocol.org");
    (reply.status, info["reason"].as_str().unwrap().to_owned())
}

fn fields(reply: &Reply) -> Vec<String> {
    let details = &reply.json()["error"]["details"][1];
    assert_eq!(
        details["@type"],
        "type.googleapis.com/google.rpc.BadRequest"
    );
    let violations = details["fieldViolations"].as_array().unwrap();
    let field = |violation: &Value| violation["field"].as_str().unwrap().to_owned();
    violations.iter().map(field).collect()
}

/// REST-02, REST-05, REST-07, CANCEL-05.
#[tokio::test]
async fn results_come_bare() {
    let server = Server::start(Limits::default()).await;
    let mut wire = server.connect().await;
    for (request, expected) in [
        (post("/message:send", SEND), r#"{"task":{"id":"t1"}}"#),
        (get("/tasks/t1"), r#"{"id":"t1"}"#),
        (get("/tasks/%741?historyLength=0&x=%zz"), r#"{"id":"t1"}"#),
        (
            get("/tasks?pageSize=5&status=TASK_STATE_WORKING"),
            r#"{"tasks":[]}"#,
        ),
        (post("/tasks/t1:cancel", ""), r#"{"id":"t1"}"#),
        (post("/tasks/t1:cancel", "{}"), r#"{"id":"t1"}"#),
        (
            post("/tasks/t1:cancel", r#"{"metadata":{"why":1}}"#),
            r#"{"id":"t1"}"#,
        ),
        (
            post("/tasks/%741:cancel", r#"{"id":"t1"}"#),
            r#"{"id":"t1"}"#,
        ),
    ] {
        // All on one connection.
        wire.send(&request).await;
        let reply = wire.reply().await;
        assert_eq!((reply.status, reply.text()), (200, expected), "{request}");
        assert_eq!(reply.header("content-type"), Some("application/json"));
        assert_eq!(reply.header("cache-control"), Some("no-store"));
    }
}

/// REST-11, ERR-02, ERR-05.
#[tokio::test]
async fn what_goes_wrong_has_its_status_and_reason() {
    let server = Server::start(Limits::default()).await;
    let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for (request, status, reason) in [
        (get("/tasks/none"), 404, "TASK_NOT_FOUND"),
        (get("/tasks/t1%2F"), 404, "TASK_NOT_FOUND"),
        (get("/tasks/a:b"), 404, "TASK_NOT_FOUND"),
        (get("/tasks/t1%3Asubscribe"), 404, "TASK_NOT_FOUND"),
        (get("/tasks/broken"), 500, "INTERNAL_ERROR"),
        (post("/tasks/ended:cancel", ""), 400, "TASK_NOT_CANCELABLE"),
        (get("/tasks/%zz"), 400, "INVALID_PARAMS"),
        (get("/tasks/%ff"), 400, "INVALID_PARAMS"),
        (post("/message:send", ""), 400, "PARSE_ERROR"),
        (post("/message:send", "{nope"), 400, "PARSE_ERROR"),
        (post("/message:send", "[]"), 400, "INVALID_REQUEST"),
        (post("/message:send", &nested), 400, "INVALID_REQUEST"),
        (post("/message:send", "{}"), 400, "INVALID_PARAMS"),
        (post("/message:stream", "{}"), 400, "INVALID_PARAMS"),
        (post("/tasks/t1:cancel", "null"), 400, "INVALID_REQUEST"),
        (
            post("/tasks/t1:cancel", r#"{"id":"t2"}"#),
            400,
            "INVALID_PARAMS",
        ),
        (
            post("/tasks/three:subscribe", r#"{"id":"t2"}"#),
            400,
            "INVALID_PARAMS",
        ),
        (
            get("/tasks/t/pushNotificationConfigs"),
            400,
            "PUSH_NOTIFICATION_NOT_SUPPORTED",
        ),
        (
            post("/tasks/t/pushNotificationConfigs", "{}"),
            400,
            "PUSH_NOTIFICATION_NOT_SUPPORTED",
        ),
        (
            get("/tasks/t/pushNotificationConfigs/c"),
            400,
            "PUSH_NOTIFICATION_NOT_SUPPORTED",
        ),
        (
            plain("DELETE", "/tasks/t/pushNotificationConfigs/c", V1),
            400,
            "PUSH_NOTIFICATION_NOT_SUPPORTED",
        ),
        (get("/extendedAgentCard"), 400, "UNSUPPORTED_OPERATION"),
        (get("/tasks/t1/"), 404, "METHOD_NOT_FOUND"),
        (get("/v1/other"), 404, "METHOD_NOT_FOUND"),
    ] {
        let reply = server.ask(&request).await;
        assert_eq!(refused(&reply), (status, reason.to_owned()), "{request}");
        assert!(!reply.text().contains("secret"));
    }
}

/// REST-04, ERR-01, ERR-03, ERR-05.
#[tokio::test]
async fn an_error_says_which_task_and_which_fields() {
    let server = Server::start(Limits::default()).await;
    let expected = json!({"error": {
        "code": 404, "status": "NOT_FOUND", "message": "Unknown taskId \"no ne\" (expired or never existed).", "details": [{
            "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "TASK_NOT_FOUND",
            "domain": "a2a-protocol.org", "metadata": {"taskId": "no ne"}}]}});
    assert_eq!(server.ask(get("/tasks/no%20ne")).await.json(), expected);
    for (request, expected) in [
        (post("/message:send", "{}"), vec!["message"]),
        (
            get("/tasks?pageSize=x&status=y&z=1"),
            vec!["status", "pageSize"],
        ),
        (get("/tasks/t1?historyLength=x"), vec!["historyLength"]),
        (get("/tasks/%"), vec!["id"]),
        (post("/tasks/t1:cancel", r#"{"id":"t2"}"#), vec!["id"]),
        (
            get("/tasks/three:subscribe?afterSequence=x"),
            vec!["afterSequence"],
        ),
    ] {
        let reply = server.ask(&request).await;
        assert_eq!(refused(&reply).1, "INVALID_PARAMS", "{request}");
        assert_eq!(reply.json()["error"]["status"], "INVALID_ARGUMENT");
        assert_eq!(fields(&reply), expected, "{request}");
    }
}

#[tokio::test]
async fn the_wrong_verb_is_a_405_that_names_the_right_ones() {
    let server = Server::start(Limits::default()).await;
    for (verb, path, allow) in [
        ("GET", "/message:send", "POST"),
        ("PUT", "/message:stream", "POST"),
        ("POST", "/tasks", "GET"),
        ("DELETE", "/tasks/t1", "GET"),
        ("POST", "/tasks/t1", "GET"),
        ("GET", "/tasks/t1:cancel", "POST"),
        ("DELETE", "/tasks/t1:subscribe", "GET, POST"),
        ("DELETE", "/tasks/t1/pushNotificationConfigs", "GET, POST"),
        ("POST", "/tasks/t1/pushNotificationConfigs/c", "GET, DELETE"),
        ("OPTIONS", "/extendedAgentCard", "GET"),
    ] {
        let request = plain(verb, path, "Accept: application/a2a+json\r\n");
        let reply = server.ask(request).await;
        assert_eq!(refused(&reply), (405, "METHOD_NOT_FOUND".to_owned()));
        assert_eq!(reply.header("allow"), Some(allow), "{verb} {path}");
        assert_eq!(reply.header("content-type"), Some("application/a2a+json"));
    }
}

/// REST-01.
#[tokio::test]
async fn answers_have_the_type_that_is_asked_for() {
    let server = Server::start(Limits::default()).await;
    let (plain_json, a2a) = (Some("application/json"), Some("application/a2a+json"));
    for (accept, result, error) in [
        ("Accept: application/a2a+json\r\n", a2a, a2a),
        ("Accept: */*\r\n", a2a, a2a),
        ("Accept: application/json\r\n", plain_json, plain_json),
        (
            "Accept: application/a2a+json, application/json\r\n",
            a2a,
            plain_json,
        ),
        ("", plain_json, plain_json),
    ] {
        for (path, expected) in [
            ("/tasks/t1", result),
            ("/tasks/none", error),
            ("/no", error),
        ] {
            let reply = server
                .ask(plain("GET", path, &format!("{V1}{accept}")))
                .await;
            assert_eq!(reply.header("content-type"), expected, "{path} {accept}");
        }
    }
}

/// REST-01.
#[tokio::test]
async fn only_plain_json_is_read() {
    let server = Server::start(Limits::default()).await;
    let ask = |header: &str| server.ask(with_body("POST", "/message:send", header, SEND));
    for header in [
        "",
        "Content-Type: application/json; charset=utf-8\r\n",
        "Content-Type: Application/A2A+JSON\r\n",
        "Content-Encoding: identity\r\n",
    ] {
        assert_eq!(ask(header).await.status, 200, "{header}");
    }
    let callers = server.engine.callers.lock().unwrap().len();
    for header in [
        "Content-Type: text/plain\r\n",
        "Content-Type: application/x-www-form-urlencoded\r\n",
        "Content-Type: application/json\r\nContent-Type: application/json\r\n",
        "Content-Encoding: gzip\r\n",
    ] {
        let reply = ask(header).await;
        let expected = (400, "CONTENT_TYPE_NOT_SUPPORTED".to_owned());
        assert_eq!(refused(&reply), expected, "{header}");
    }
    assert_eq!(server.engine.callers.lock().unwrap().len(), callers);
}

/// REST-08, VER-02, VER-03.
#[tokio::test]
async fn the_version_is_in_the_header_or_the_query() {
    let server = Server::start(Limits::default()).await;
    let ask = |path: &str, headers: &str| server.ask(plain("GET", path, headers));
    assert_eq!(ask("/tasks/t1?A2A-Version=1.0", "").await.status, 200);
    assert_eq!(ask("/tasks/t1", "A2A-Version: 1.0.3\r\n").await.status, 200);
    for (path, headers) in [
        ("/tasks/t1", ""),
        ("/tasks/t1?A2A-Version=0.3", ""),
        ("/tasks/t1?A2A-Version=1.0", "A2A-Version: 0.3\r\n"),
        ("/tasks?pageSize=x", ""),
        ("/extendedAgentCard", ""),
        ("/tasks/three:subscribe", "Accept: text/event-stream\r\n"),
    ] {
        let reply = ask(path, headers).await;
        assert_eq!(refused(&reply), (400, "VERSION_NOT_SUPPORTED".to_owned()));
        assert_eq!(reply.json()["error"]["status"], "FAILED_PRECONDITION");
        let info = &reply.json()["error"]["details"][0];
        assert_eq!(info["metadata"]["supportedVersions"], "1.0, 0.3");
    }
}

/// ERR-06.
#[tokio::test]
async fn overload_says_when_to_return_and_a_large_body_closes() {
    let server = Server::start(Limits {
        body_bytes_max: 1000,
        ..Limits::default()
    })
    .await;
    for (id, status) in [("busy", 429), ("down", 503)] {
        let reply = server.ask(get(&format!("/tasks/{id}"))).await;
        assert_eq!(refused(&reply).0, status);
        assert_eq!(reply.header("retry-after"), Some("1"));
    }
    let reply = server.ask(post("/message:send", &" ".repeat(1001))).await;
    assert_eq!(refused(&reply), (413, "INVALID_REQUEST".to_owned()));
    assert!(reply.closes());
}

#[tokio::test]
async fn an_idempotency_key_reaches_the_engine() {
    let server = Server::start(Limits::default()).await;
    let ask = |key: &str| {
        let header = format!("Idempotency-Key: {key}\r\n");
        server.ask(with_body("POST", "/message:send", &header, SEND))
    };
    assert_eq!(ask("order-7").await.status, 200);
    let caller = server.engine.callers.lock().unwrap().pop().unwrap();
    assert_eq!(caller.idempotency_key.as_deref(), Some("order-7"));
    assert_eq!(caller.scope.agent.as_str(), "echo");
    let reply = ask(&"k".repeat(257)).await;
    assert_eq!(refused(&reply), (400, "INVALID_REQUEST".to_owned()));
}

fn event(number: u64) -> String {
    format!("id: {number}\ndata: {{\"n\":{number}}}\n\n")
}

/// REST-09, SSE-01.
#[tokio::test]
async fn a_stream_is_frames_without_an_envelope() {
    let server = Server::start(Limits::default()).await;
    let message = SEND.replace("m1", "three");
    for request in [
        post("/message:stream", &message),
        get("/tasks/three:subscribe"),
        post("/tasks/three:subscribe", ""),
        post("/tasks/three:subscribe", "{}"),
        post("/tasks/%74hree:subscribe", r#"{"id":"three"}"#),
    ] {
        let mut wire = server.connect().await;
        wire.send(request).await;
        let head = wire.until("\r\n\r\n").await;
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        for line in [
            "content-type: text/event-stream",
            "cache-control: no-cache",
            "connection: keep-alive",
            "x-accel-buffering: no",
        ] {
            assert!(head.contains(&format!("{line}\r\n")), "{line} in {head}");
        }
        assert_eq!(wire.chunk().await, [event(1), event(2), event(3)].concat());
        assert_eq!(wire.chunk().await, "", "the end");
    }
}

#[tokio::test]
async fn a_stream_resumes_after_what_the_caller_has() {
    let server = Server::start(Limits::default()).await;
    let header = format!("{V1}Last-Event-ID: 1\r\n");
    for request in [
        plain("GET", "/tasks/three:subscribe", &header),
        get("/tasks/three:subscribe?afterSequence=1"),
        post("/tasks/three:subscribe?afterSequence=1", ""),
    ] {
        let mut wire = server.connect().await;
        wire.send(request).await;
        wire.until("\r\n\r\n").await;
        assert_eq!(wire.chunk().await, [event(2), event(3)].concat());
    }
}

/// STREAM-11.
#[tokio::test]
async fn a_stream_that_cannot_start_is_an_error_with_its_status() {
    let server = Server::start(Limits::default()).await;
    // One fails when opened, the other at its first frame: the caller cannot tell.
    for id in ["gone", "early"] {
        for verb in ["GET", "POST"] {
            let path = format!("/tasks/{id}:subscribe");
            let headers = format!("{V1}Accept: text/event-stream\r\n");
            let reply = server.ask(plain(verb, &path, &headers)).await;
            assert_eq!(refused(&reply), (404, "TASK_NOT_FOUND".to_owned()));
            assert_eq!(reply.header("content-type"), Some("application/json"));
        }
    }
    let server = Server::with_streaming(Limits::default(), false).await;
    for request in [
        get("/tasks/three:subscribe"),
        post("/message:stream", &SEND.replace("m1", "three")),
    ] {
        let reply = server.ask(request).await;
        assert_eq!(refused(&reply), (400, "UNSUPPORTED_OPERATION".to_owned()));
    }
}

/// REST-10, STREAM-11.
#[tokio::test]
async fn a_late_error_is_the_last_event() {
    let server = Server::start(Limits::default()).await;
    let mut wire = server.connect().await;
    wire.send(get("/tasks/late:subscribe")).await;
    wire.until("\r\n\r\n").await;
    assert_eq!(wire.chunk().await, event(1));
    let last = wire.chunk().await;
    let start = "event: error\ndata: {\"error\":{\"code\":500,\"status\":\"INTERNAL\",";
    assert!(last.starts_with(start), "{last}");
    assert!(!last.contains("secret") && !last.contains("id: "));
    assert_eq!(wire.chunk().await, "");
}

/// SSE-01.
#[tokio::test]
async fn a_quiet_stream_opens_and_shows_that_it_lives() {
    let limits = Limits {
        first_frame: Duration::from_millis(20),
        sse_keep_alive: Duration::from_millis(20),
        ..Limits::default()
    };
    let server = Server::start(limits).await;
    let mut wire = server.connect().await;
    wire.send(get("/tasks/silent:subscribe?afterSequence=7"))
        .await;
    wire.until("\r\n\r\n").await;
    assert_eq!(wire.chunk().await, ": keep-alive\n\n");
    assert_eq!(wire.chunk().await, ": keep-alive\n\n");
}

/// ERR-08: one table for both bindings: for the same condition they give the same message and the same details.
#[tokio::test]
async fn the_same_condition_is_the_same_error_on_every_binding() {
    let server = Server::start(Limits::default()).await;
    let bad_role = SEND.replace("ROLE_USER", "ROLE_BOSS");
    let lone = SEND.replace("hi", r"\ud800");
    for (over_json_rpc, over_http_json) in [
        (call("GetTask", r#"{"id":"none"}"#), get("/tasks/none")),
        (
            call("GetTask", r#"{"id":"a/b:c \u0000"}"#),
            get("/tasks/a%2Fb:c%20%00"),
        ),
        (
            call("CancelTask", r#"{"id":"ended"}"#),
            post("/tasks/ended:cancel", ""),
        ),
        (call("GetTask", r#"{"id":"busy"}"#), get("/tasks/busy")),
        (call("GetTask", r#"{"id":"down"}"#), get("/tasks/down")),
        (
            call("SubscribeToTask", r#"{"id":"early"}"#),
            get("/tasks/early:subscribe"),
        ),
        (call("SendMessage", "{}"), post("/message:send", "{}")),
        (
            call("SendMessage", &bad_role),
            post("/message:send", &bad_role),
        ),
        (call("SendMessage", &lone), post("/message:send", &lone)),
        (
            call("SendMessage", r#"{"message":{"parts":[{"text":5}]}}"#),
            post("/message:send", r#"{"message":{"parts":[{"text":5}]}}"#),
        ),
        ("{nope".to_owned(), post("/message:send", "{nope")),
        (
            call("ListTasks", r#"{"pageSize":"x"}"#),
            get("/tasks?pageSize=x"),
        ),
        (
            call("ListTasks", r#"{"status":"NO"}"#),
            get("/tasks?status=NO"),
        ),
        (
            call("ListTasks", r#"{"statusTimestampAfter":"x"}"#),
            get("/tasks?statusTimestampAfter=x"),
        ),
        (
            call("GetTaskPushNotificationConfig", "{}"),
            get("/tasks/t/pushNotificationConfigs/c"),
        ),
        (
            call("GetExtendedAgentCard", "{}"),
            get("/extendedAgentCard"),
        ),
    ] {
        let one = server.ask(rpc(&over_json_rpc)).await.json();
        let other = server.ask(&over_http_json).await;
        refused(&other);
        let other = other.json();
        assert_eq!(
            (&one["error"]["message"], &one["error"]["data"]),
            (&other["error"]["message"], &other["error"]["details"]),
            "{over_json_rpc}\n{over_http_json}"
        );
    }
}
