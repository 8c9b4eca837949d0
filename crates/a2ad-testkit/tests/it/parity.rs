//! The bindings side by side: the same condition is the same error, and the same task the same bytes.

use a2ad_proto::Task;
use a2ad_testkit::client::{text, text_in};
use a2ad_testkit::harness::{Binding, Harness, StoreKind};
use a2ad_testkit::http::{Answer, call};
use hyper::Method;
use serde_json::Value;

use crate::wire::{JSON, V1, message, request};

async fn over_json_rpc(server: &Harness, method: &str, params: &str) -> Answer {
    let body = request(method, params);
    let answer = call(server.addr(), Method::POST, "/", &[JSON, V1], body).await;
    answer.unwrap()
}

async fn over_http_json(server: &Harness, verb: Method, path: &str, body: &str) -> Answer {
    let answer = call(server.addr(), verb, path, &[V1], body.to_owned()).await;
    answer.unwrap()
}

/// The message and the details of an error, where the bindings have to agree.
fn told(error: &Value, details: &str) -> (String, String) {
    let reason = &error[details][0]["reason"];
    assert!(reason.is_string(), "{error}");
    (error["message"].to_string(), error[details].to_string())
}

/// ERR-08.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_condition_is_the_same_error() {
    let server = Harness::start(Binding::JsonRpc, StoreKind::Sqlite).await;
    let done: Task = server.client.send(text("echo hi")).await.unwrap();
    let open: Task = server
        .client
        .send(text_in("c1", "ask what?"))
        .await
        .unwrap();
    let (done, open) = (done.id, open.id);
    let with =
        |fields: &str| message("hi").replace(r#""messageId""#, &format!(r#"{fields},"messageId""#));
    let to_done = with(&format!(r#""taskId":"{done}""#));
    let to_nobody = with(r#""taskId":"nope""#);
    let elsewhere = with(&format!(r#""taskId":"{open}","contextId":"c2""#));
    let from_agent = message("hi").replace("ROLE_USER", "ROLE_AGENT");
    let negative = message("hi").replacen('{', r#"{"configuration":{"historyLength":-1},"#, 1);
    let webhook = message("hi").replacen(
        '{',
        r#"{"configuration":{"taskPushNotificationConfig":{"url":"http://x.test/"}},"#,
        1,
    );
    let long = "x".repeat(300);
    let mut cases: Vec<(&str, String, Method, String, String)> = Vec::new();
    for body in [
        &to_done,
        &to_nobody,
        &elsewhere,
        &from_agent,
        &negative,
        &webhook,
    ] {
        for (method, path) in [
            ("SendMessage", "/message:send"),
            ("SendStreamingMessage", "/message:stream"),
        ] {
            cases.push((
                method,
                body.clone(),
                Method::POST,
                path.to_owned(),
                body.clone(),
            ));
        }
    }
    for id in ["nope", &done, &long, "%41", "a b/c:cancel", "\u{e4}\u{7f}"] {
        let params = serde_json::json!({ "id": id }).to_string();
        let path = format!("/tasks/{}", a2ad_testkit::http_json::encode(id));
        let none = String::new;
        let (cancel, subscribe) = (format!("{path}:cancel"), format!("{path}:subscribe"));
        if id != done {
            cases.push(("GetTask", params.clone(), Method::GET, path, none()));
        }
        cases.push(("CancelTask", params.clone(), Method::POST, cancel, none()));
        for verb in [Method::GET, Method::POST] {
            let subscribe = subscribe.clone();
            cases.push(("SubscribeToTask", params.clone(), verb, subscribe, none()));
        }
    }
    for (params, query) in [
        (r#"{"pageSize":0}"#, "pageSize=0"),
        (r#"{"pageSize":101}"#, "pageSize=101"),
        (r#"{"pageSize":"many"}"#, "pageSize=many"),
        (r#"{"pageToken":"abc"}"#, "pageToken=abc"),
        (r#"{"historyLength":-1}"#, "historyLength=-1"),
        (
            r#"{"status":"TASK_STATE_BORED"}"#,
            "status=TASK_STATE_BORED",
        ),
        (r#"{"status":99}"#, "status=99"),
        (r#"{"statusTimestampAfter":"now"}"#, "lastUpdatedAfter=now"),
        (
            r#"{"pageSize":0,"historyLength":-1}"#,
            "historyLength=-1&pageSize=0",
        ),
    ] {
        let path = format!("/tasks?{query}");
        cases.push((
            "ListTasks",
            params.to_owned(),
            Method::GET,
            path,
            String::new(),
        ));
    }
    cases.push((
        "GetTask",
        "{}".to_owned(),
        Method::GET,
        "/tasks/".to_owned(),
        String::new(),
    ));
    for (method, params, verb, path, body) in cases {
        let one = over_json_rpc(&server, method, &params).await.json();
        let other = over_http_json(&server, verb.clone(), &path, &body).await;
        let shown = format!("{method} {params}\n{verb} {path} {body}");
        let status = other.status.as_u16();
        let other = other.json();
        assert_eq!(other["error"]["code"], status, "{shown}");
        assert_eq!(
            told(&one["error"], "data"),
            told(&other["error"], "details"),
            "{shown}"
        );
    }
}

/// RPC-01, REST-02: a result is the same text on every binding; JSON-RPC only puts its envelope around it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_task_is_the_same_bytes() {
    let server = Harness::start(Binding::JsonRpc, StoreKind::Sqlite).await;
    let done = server.client.send(text("burst 3")).await.unwrap();
    server.client.send(text("ask what?")).await.unwrap();
    let by_id = format!(r#"{{"id":"{}"}}"#, done.id);
    let path = format!("/tasks/{}", done.id);
    for (method, params, path) in [
        ("GetTask", by_id.as_str(), path.as_str()),
        (
            "ListTasks",
            r#"{"includeArtifacts":true}"#,
            "/tasks?includeArtifacts=true",
        ),
        (
            "ListTasks",
            r#"{"status":3,"historyLength":0}"#,
            "/tasks?status=3&historyLength=0",
        ),
    ] {
        let one = over_json_rpc(&server, method, params).await;
        let other = over_http_json(&server, Method::GET, path, "").await;
        let wrapped = [
            b"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":",
            &other.body[..],
            b"}",
        ]
        .concat();
        assert_eq!(str::from_utf8(&one.body), str::from_utf8(&wrapped));
    }
    let replay = [JSON, V1, ("last-event-id", "0")];
    let body = request("SubscribeToTask", &by_id);
    let one = call(server.addr(), Method::POST, "/", &replay, body)
        .await
        .unwrap();
    let path = format!("{path}:subscribe?afterSequence=0");
    let other = over_http_json(&server, Method::GET, &path, "").await;
    let one = String::from_utf8(one.body.to_vec()).unwrap();
    let unwrapped = one
        .replace(r#"data: {"jsonrpc":"2.0","id":7,"result":"#, "data: ")
        .replace("}\n\n", "\n\n");
    assert_eq!(unwrapped.as_bytes(), other.body);
}
