use serde_json::{Value, json};

use super::wire::{call, post, rpc};
use super::*;

const SEND: &str = r#"{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"hi"}]}}"#;

fn code(reply: &wire::Reply) -> i64 {
    reply.json()["error"]["code"]
        .as_i64()
        .unwrap_or_else(|| panic!("{}", reply.text()))
}

/// C-01, RPC-01, RPC-02.
#[tokio::test]
async fn results_come_back_under_the_requests_id() {
    let server = Server::start(Limits::default()).await;
    let mut wire = server.connect().await;
    for (body, expected) in [
        (
            call("GetTask", r#"{"id":"t1"}"#),
            r#"{"jsonrpc":"2.0","id":1,"result":{"id":"t1"}}"#,
        ),
        (
            call("CancelTask", r#"{"id":"t1"}"#),
            r#"{"jsonrpc":"2.0","id":1,"result":{"id":"t1"}}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":"\u00e4","method":"ListTasks"}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":"\u00e4","result":{"tasks":[]}}"#,
        ),
        (
            call("SendMessage", SEND),
            r#"{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"t1"}}}"#,
        ),
    ] {
        // All on one connection.
        wire.send(rpc(&body)).await;
        let reply = wire.reply().await;
        assert_eq!((reply.status, reply.text()), (200, expected));
        assert_eq!(reply.header("content-type"), Some("application/json"));
    }
}

/// C-01, RPC-02, RPC-04.
#[tokio::test]
async fn what_goes_wrong_inside_json_rpc_is_http_200() {
    let server = Server::start(Limits::default()).await;
    for (body, expected) in [
        (String::new(), -32700),
        ("[]".to_owned(), -32600),
        (r#"{"jsonrpc":"2.0","method":"GetTask"}"#.to_owned(), -32600),
        (call("message/forget", SEND), -32601),
        (call("getTask", "{}"), -32601),
        (call("GetTask", "[]"), -32602),
        (call("GetTask", r#"{"id":5}"#), -32602),
        (call("SendMessage", "{}"), -32602),
        (call("GetTask", r#"{"id":"none"}"#), -32001),
        (call("CancelTask", r#"{"id":"ended"}"#), -32002),
        (call("CreateTaskPushNotificationConfig", "{}"), -32003),
        (call("GetTaskPushNotificationConfig", "{}"), -32003),
        (call("ListTaskPushNotificationConfigs", "{}"), -32003),
        (call("DeleteTaskPushNotificationConfig", "{}"), -32003),
        (call("GetExtendedAgentCard", "{}"), -32004),
        (call("GetTask", r#"{"id":"broken"}"#), -32603),
        (
            call(
                "CancelTask",
                &format!(
                    r#"{{"id":"t1","metadata":{{"x":{}{}}}}}"#,
                    "[".repeat(200),
                    "]".repeat(200)
                ),
            ),
            -32602,
        ),
    ] {
        let reply = server.ask(rpc(&body)).await;
        assert_eq!((reply.status, code(&reply)), (200, expected), "{body}");
        assert_eq!(
            reply.json()["error"]["data"][0]["domain"],
            "a2a-protocol.org"
        );
    }
}

/// ERR-01, ERR-02, ERR-03.
#[tokio::test]
async fn an_error_says_which_task_and_which_field() {
    let server = Server::start(Limits::default()).await;
    let reply = server.ask(rpc(&call("GetTask", r#"{"id":"none"}"#))).await;
    let expected = json!({"jsonrpc": "2.0", "id": 1, "error": {
        "code": -32001, "message": "Unknown taskId \"none\" (expired or never existed).", "data": [{
            "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "TASK_NOT_FOUND",
            "domain": "a2a-protocol.org", "metadata": {"taskId": "none"}}]}});
    assert_eq!(reply.json(), expected);

    let reply = server.ask(rpc(&call("SendMessage", "{}"))).await;
    let details = &reply.json()["error"]["data"];
    assert_eq!(
        details[1]["@type"],
        "type.googleapis.com/google.rpc.BadRequest"
    );
    assert_eq!(details[1]["fieldViolations"][0]["field"], "message");
}

/// ERR-06.
#[tokio::test]
async fn an_internal_error_has_an_id_and_keeps_its_cause() {
    let server = Server::start(Limits::default()).await;
    let reply = server
        .ask(rpc(&call("GetTask", r#"{"id":"broken"}"#)))
        .await;
    assert!(!reply.text().contains("secret"), "{}", reply.text());
    let id = reply.json()["error"]["data"][0]["metadata"]["errorId"].clone();
    let Value::String(id) = id else {
        panic!("{}", reply.text())
    };
    assert!(id.len() == 8 && id.bytes().all(|byte| byte.is_ascii_hexdigit()));
}

/// ERR-06.
#[tokio::test]
async fn overload_shows_in_the_status_and_says_when_to_return() {
    let server = Server::start(Limits::default()).await;
    for (id, status, reason) in [
        ("busy", 429, "RESOURCE_EXHAUSTED"),
        ("down", 503, "UNAVAILABLE"),
    ] {
        let reply = server
            .ask(rpc(&call("GetTask", &format!(r#"{{"id":"{id}"}}"#))))
            .await;
        assert_eq!((reply.status, code(&reply)), (status, -32603));
        assert_eq!(reply.header("retry-after"), Some("1"));
        assert_eq!(reply.json()["error"]["data"][0]["reason"], reason);
        assert_eq!(reply.json()["id"], 1);
    }
}

/// VER-02, VER-03, RPC-09.
#[tokio::test]
async fn a_request_without_a_version_is_told_to_send_one() {
    let server = Server::start(Limits::default()).await;
    let body = call("GetTask", r#"{"id":"t1"}"#);
    let reply = server.ask(post("", &body)).await;
    assert_eq!((reply.status, code(&reply)), (200, -32009));
    let error = &reply.json()["error"];
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("A2A-Version: 1.0")
    );
    assert_eq!(
        error["data"][0]["metadata"]["supportedVersions"],
        "1.0, 0.3"
    );

    let by_query = post("", &body).replace("POST / ", "POST /?A2A-Version=1.0 ");
    assert_eq!(server.ask(by_query).await.json()["result"]["id"], "t1");
}

#[tokio::test]
async fn only_plain_json_is_read() {
    let server = Server::start(Limits::default()).await;
    let body = call("GetTask", r#"{"id":"t1"}"#);
    let ask = |header: &str| server.ask(post(&format!("A2A-Version: 1.0\r\n{header}"), &body));
    for header in [
        "",
        "Content-Type: application/json; charset=utf-8\r\n",
        "Content-Type: Application/JSON\r\n",
        "Content-Encoding: identity\r\n",
    ] {
        assert_eq!(ask(header).await.json()["result"]["id"], "t1", "{header}");
    }
    for header in [
        "Content-Type: text/plain\r\n",
        "Content-Type: application/jsonp\r\n",
        "Content-Type: application/a2a+json\r\n",
        "Content-Type: application/json\r\nContent-Type: text/plain\r\n",
        "Content-Type: \r\n",
        "Content-Encoding: gzip\r\n",
        "Content-Encoding: identity, br\r\n",
    ] {
        let reply = ask(header).await;
        assert_eq!((reply.status, code(&reply)), (200, -32005), "{header}");
        assert_eq!(reply.json()["id"], Value::Null);
    }
}

#[tokio::test]
async fn an_idempotency_key_reaches_the_engine() {
    let server = Server::start(Limits::default()).await;
    let body = call("SendMessage", SEND);
    let ask = |key: &str| {
        server.ask(post(
            &format!("A2A-Version: 1.0\r\nIdempotency-Key: {key}\r\n"),
            &body,
        ))
    };
    assert_eq!(ask("order-7").await.status, 200);
    let caller = server.engine.callers.lock().unwrap().pop().unwrap();
    assert_eq!(caller.idempotency_key.as_deref(), Some("order-7"));
    assert_eq!(caller.scope.owner.as_str(), "anonymous");
    assert_eq!(caller.scope.agent.as_str(), "echo");

    let reply = ask(&"k".repeat(257)).await;
    assert_eq!((reply.status, code(&reply)), (200, -32600));
    assert!(server.engine.callers.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_body_over_the_limit_is_a_413_with_and_without_a_length() {
    let limits = Limits {
        body_bytes_max: 1000,
        ..Limits::default()
    };
    let server = Server::start(limits).await;
    let exact = format!("{:<1000}", call("GetTask", r#"{"id":"t1"}"#));
    assert_eq!(server.ask(rpc(&exact)).await.status, 200);

    let over = format!("{exact} ");
    let chunked = format!(
        "POST / HTTP/1.1\r\nHost: a\r\nA2A-Version: 1.0\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{over}\r\n0\r\n\r\n",
        over.len()
    );
    let lone =
        "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 99999999999\r\n\r\n";
    for request in [rpc(&over), chunked, lone.to_owned()] {
        let mut wire = server.connect().await;
        wire.send(request).await;
        let reply = wire.reply().await;
        assert_eq!((reply.status, code(&reply)), (413, -32600));
        assert!(reply.closes());
        assert_eq!(wire.rest().await, "", "closed afterwards");
    }
}

#[tokio::test]
async fn a_large_body_that_is_refused_still_gets_its_answer() {
    let limits = Limits {
        body_bytes_max: 4 << 20,
        ..Limits::default()
    };
    let server = Server::start(limits).await;
    let mut wire = server.connect().await;
    let body = "x".repeat((4 << 20) + 1_000_000);
    wire.send(rpc(&body)).await;
    assert_eq!(wire.reply().await.status, 413);
}

#[tokio::test]
async fn a_chunked_body_in_many_pieces_is_one_body() {
    let server = Server::start(Limits::default()).await;
    let mut wire = server.connect().await;
    wire.send(
        "POST / HTTP/1.1\r\nHost: a\r\nA2A-Version: 1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
    )
    .await;
    for piece in call("GetTask", r#"{"id":"t1"}"#).as_bytes().chunks(7) {
        wire.send(format!(
            "{:x}\r\n{}\r\n",
            piece.len(),
            str::from_utf8(piece).unwrap()
        ))
        .await;
    }
    wire.send("0\r\n\r\n").await;
    let reply = wire.reply().await;
    assert_eq!(reply.json()["result"]["id"], "t1");
    assert!(reply.closes(), "nothing after a chunked request is trusted");
}

/// TEN-02.
#[tokio::test]
async fn a_query_names_one_tenant() {
    let server = Server::start(Limits::default()).await;
    let ask = async |query: &str| {
        let request = rpc(&call("GetTask", r#"{"id":"t1"}"#));
        let request = request.replacen("POST /", &format!("POST /?{query}"), 1);
        server.ask(request).await
    };
    let same = ask("tenant=echo&Tenant=%65cho").await;
    assert_eq!(same.json()["result"]["id"], "t1");
    for query in ["tenant=echo&tenant=nope", "tenant=echo&TENANT="] {
        let reply = ask(query).await;
        assert_eq!(code(&reply), -32602, "{query}");
        let blamed = &reply.json()["error"]["data"][1]["fieldViolations"][0];
        assert_eq!(blamed["field"], "tenant");
    }
}
