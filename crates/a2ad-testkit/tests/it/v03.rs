//! Protocol 0.3 beside 1.0: the same server, the same port, the same tasks.

use a2ad_proto::{GetTaskRequest, StreamResponse, SubscribeToTaskRequest, TaskState};
use a2ad_testkit::client::{at_once, drain, text};
use a2ad_testkit::golden::{compare, redact};
use a2ad_testkit::harness::{Binding, Harness, StoreKind};
use a2ad_testkit::http::{Answer, SseReader, call, open};
use hyper::Method;
use serde_json::{Value, json};

use crate::wire::{JSON, V1, golden, request, show};

const EVENTS: (&str, &str) = ("accept", "text/event-stream");
const V03: (&str, &str) = ("a2a-version", "0.3");

crate::scenarios![
    cf_14_a_task_that_has_ended_can_be_followed_in_0_3,
    dual_08_a_task_of_one_generation_is_the_others_too,
    dual_08_a_stream_of_one_generation_shows_what_the_other_makes,
];

async fn server() -> Harness {
    Harness::start(Binding::JsonRpc, StoreKind::Sqlite).await
}

async fn rpc(server: &Harness, headers: &[(&str, &str)], method: &str, params: &Value) -> Answer {
    let body = request(method, &params.to_string());
    let headers = [&[JSON], headers].concat();
    let answer = call(server.addr(), Method::POST, "/", &headers, body).await;
    answer.unwrap()
}

/// A call of 0.3 that succeeds.
async fn ask(server: &Harness, method: &str, params: &Value) -> Value {
    let answer = rpc(server, &[], method, params).await.json();
    assert_eq!(answer["error"], Value::Null, "{method}: {answer}");
    answer["result"].clone()
}

async fn rest(server: &Harness, verb: Method, path: &str, body: &str) -> Answer {
    let headers: &[_] = if body.is_empty() { &[] } else { &[JSON] };
    let answer = call(server.addr(), verb, path, headers, body.to_owned()).await;
    answer.unwrap()
}

/// A message as 0.3 writes it over JSON-RPC.
fn said(text: &str) -> Value {
    json!({"message": {
        "kind": "message", "messageId": "m1", "role": "user",
        "parts": [{"kind": "text", "text": text}],
    }})
}

/// V03-20, D-01, D-03, D-04: the operations over JSON-RPC, byte by byte.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_operations_over_json_rpc() {
    let server = server().await;
    let mut out = String::new();
    let sent = rpc(&server, &[], "message/send", &said("echo hi")).await;
    show(&mut out, "message/send", &sent);
    let id = sent.json()["result"]["id"].as_str().unwrap().to_owned();
    let by_id = json!({"id": id});
    let streamed = rpc(&server, &[EVENTS], "message/stream", &said("pieces")).await;
    show(&mut out, "message/stream", &streamed);
    let asked = rpc(&server, &[EVENTS], "message/sendStream", &said("ask what?")).await;
    show(&mut out, "message/sendStream, to a question", &asked);
    let replied = rpc(&server, &[], "message/send", &said("reply hello")).await;
    show(&mut out, "message/send, a direct reply", &replied);
    let got = rpc(&server, &[], "tasks/get", &by_id).await;
    show(&mut out, "tasks/get", &got);
    let none = rpc(
        &server,
        &[V03],
        "tasks/get",
        &json!({"id": id, "historyLength": 0}),
    )
    .await;
    show(&mut out, "tasks/get, without history", &none);
    let listed = rpc(
        &server,
        &[],
        "tasks/list",
        &json!({"contextId": sent.json()["result"]["contextId"], "historyLength": 0}),
    )
    .await;
    show(&mut out, "tasks/list", &listed);
    let replay = [EVENTS, ("last-event-id", "0")];
    let replayed = rpc(&server, &replay, "tasks/resubscribe", &by_id).await;
    show(&mut out, "tasks/resubscribe after 0", &replayed);
    let mut params = said("hold");
    params["configuration"] = json!({"blocking": false});
    let held = ask(&server, "message/send", &params).await;
    let canceled = rpc(&server, &[V1], "tasks/cancel", &json!({"id": held["id"]})).await;
    show(&mut out, "tasks/cancel, with the header of 1.0", &canceled);
    compare(&golden("v03_operations.txt"), &redact(&out));
}

/// V03-14, V03-15, D-01, D-04: the operations over HTTP+JSON, byte by byte.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_operations_over_http_json() {
    let server = server().await;
    let mut out = String::new();
    let body = |text: &str| {
        format!(
            r#"{{"message":{{"messageId":"m1","role":"ROLE_USER","content":[{{"text":"{text}"}}]}}}}"#
        )
    };
    let sent = rest(&server, Method::POST, "/v1/message:send", &body("echo hi")).await;
    show(&mut out, "POST /v1/message:send", &sent);
    let id = sent.json()["task"]["id"].as_str().unwrap().to_owned();
    let streamed = rest(&server, Method::POST, "/v1/message:stream", &body("pieces")).await;
    show(&mut out, "POST /v1/message:stream", &streamed);
    let got = rest(&server, Method::GET, &format!("/v1/tasks/{id}"), "").await;
    show(&mut out, "GET /v1/tasks/{id}", &got);
    let path = format!("/v1/tasks/{id}?historyLength=0");
    let same = rest(&server, Method::GET, &path, "").await;
    assert_eq!(same.body, got.body, "V03-10: nought is nothing said");
    let listed = rest(&server, Method::GET, "/v1/tasks?pageSize=1", "").await;
    show(&mut out, "GET /v1/tasks", &listed);
    for verb in [Method::GET, Method::POST] {
        let path = format!("/v1/tasks/{id}:subscribe?afterSequence=0");
        let replayed = rest(&server, verb.clone(), &path, "").await;
        show(
            &mut out,
            &format!("{verb} /v1/tasks/{{id}}:subscribe after 0"),
            &replayed,
        );
    }
    // With the other dialect in the body, and nothing said of blocking: V03-09, V03-15.
    let held = r#"{"request":{"message_id":"m2","role":"user","parts":[{"kind":"text","text":"hold"}]},"configuration":{}}"#;
    let held = rest(&server, Method::POST, "/v1/message:send", held).await;
    let held = held.json()["task"]["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/tasks/{held}:cancel");
    let canceled = rest(&server, Method::POST, &path, "").await;
    show(&mut out, "POST /v1/tasks/{id}:cancel", &canceled);
    compare(&golden("v03_http_json_operations.txt"), &redact(&out));
}

/// V03-12, V03-13, V03-25, DUAL-09, C-02: what goes wrong, in the words of 0.3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_errors() {
    let server = server().await;
    let mut out = String::new();
    let ended = ask(&server, "message/send", &said("echo hi")).await;
    let mut more = said("echo more");
    more["message"]["taskId"] = ended["id"].clone();
    let nobody = json!({"id": "nobody"});
    for (title, method, params) in [
        ("a task that is not there", "tasks/get", nobody.clone()),
        (
            "a cancel that comes too late",
            "tasks/cancel",
            json!({"id": ended["id"]}),
        ),
        (
            "a message to a task that has ended",
            "message/send",
            more.clone(),
        ),
        (
            "no parts",
            "message/send",
            json!({"message": {"messageId": "m", "role": "user", "parts": []}}),
        ),
        (
            "a file with nothing in it",
            "message/send",
            json!({"message": {
                "messageId": "m", "role": "user", "parts": [{"kind": "file", "file": {"name": "x"}}],
            }}),
        ),
        (
            "a request of 1.0",
            "message/send",
            json!({
                "message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]},
                "configuration": {"returnImmediately": true},
            }),
        ),
        (
            "webhooks",
            "tasks/pushNotificationConfig/list",
            json!({"id": ended["id"]}),
        ),
        (
            "the extended card",
            "agent/getAuthenticatedExtendedCard",
            json!({}),
        ),
        (
            "the same by its older name",
            "agent/authenticatedExtendedCard",
            json!({}),
        ),
        ("a method that nobody knows", "tasks/forget", json!({})),
    ] {
        let answer = rpc(&server, &[], method, &params).await;
        show(&mut out, &format!("{title}: {method}"), &answer);
    }
    // RPC-08: a stream that cannot start.
    for (method, params) in [("message/stream", more), ("tasks/resubscribe", nobody)] {
        let answer = rpc(&server, &[EVENTS], method, &params).await;
        show(
            &mut out,
            &format!("a stream that cannot start: {method}"),
            &answer,
        );
    }
    let answer = rpc(&server, &[V1], "SendMessage", &said("echo hi")).await;
    show(&mut out, "a request of 0.3: SendMessage", &answer);
    for (verb, path, body) in [
        (Method::GET, "/v1/tasks/nobody", ""),
        (Method::POST, "/v1/tasks/nobody:cancel", ""),
        (Method::POST, "/v1/tasks/nobody:subscribe", ""),
        (Method::POST, "/v1/message:send", "{"),
        (
            Method::POST,
            "/v1/message:send",
            r#"{"message":{"messageId":"m","role":"ROLE_USER"}}"#,
        ),
        (Method::POST, "/v1/message:stream", "[]"),
        (Method::GET, "/v1/message:send", ""),
        (Method::GET, "/v1/card", ""),
        (Method::GET, "/agent/authenticatedExtendedCard", ""),
        (Method::GET, "/v1/nothing", ""),
        (Method::GET, "/v1/tasks?A2A-Version=2.0", ""),
    ] {
        let answer = rest(&server, verb.clone(), path, body).await;
        show(&mut out, &format!("{verb} {path} {body}"), &answer);
    }
    compare(&golden("v03_errors.txt"), &redact(&out));
}

/// VER-02, DUAL-02, B-11: the name comes first, then the header or the query.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dual_02_the_name_decides_then_the_header() {
    let server = server().await;
    let v10 =
        json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "echo x"}]}});
    for (method, header, generation) in [
        ("message/send", None, "0.3"),
        ("message/send", Some(""), "0.3"),
        ("message/send", Some("0.3"), "0.3"),
        ("message/send", Some("0.3.0"), "0.3"),
        ("message/send", Some("1.0"), "0.3"),
        ("message/send", Some("2.0"), ""),
        ("SendMessage", Some("1.0"), "1.0"),
        ("SendMessage", Some("1.0.2"), "1.0"),
        ("SendMessage", None, ""),
        ("SendMessage", Some("0.3"), ""),
        ("SendMessage", Some("0.2"), ""),
    ] {
        let headers: Vec<_> = header
            .map(|value| ("a2a-version", value))
            .into_iter()
            .collect();
        let params = if method == "SendMessage" {
            &v10
        } else {
            &said("echo x")
        };
        let answer = rpc(&server, &headers, method, params).await.json();
        let result = &answer["result"];
        let found = match (&result["kind"], &result["task"]["id"]) {
            (Value::String(_), _) => "0.3",
            (_, Value::String(_)) => "1.0",
            _ => "",
        };
        assert_eq!(found, generation, "{method} {header:?}: {answer}");
        if generation.is_empty() {
            assert_eq!(answer["error"]["code"], -32009, "{answer}");
            let says = answer["error"]["message"].as_str().unwrap();
            assert!(says.contains("A2A-Version: 1.0"), "{says}");
        }
    }
    // The query stands in for the header (DUAL-03 over HTTP+JSON).
    for (path, status) in [
        ("/tasks", 400),
        ("/tasks?A2A-Version=1.0", 200),
        ("/tasks?A2A-Version=0.3", 400),
        ("/v1/tasks", 200),
        ("/v1/tasks?A2A-Version=0.3", 200),
        ("/v1/tasks?A2A-Version=1.0", 200),
        ("/v1/tasks?A2A-Version=3.0", 400),
    ] {
        let answer = rest(&server, Method::GET, path, "").await;
        assert_eq!(answer.status, status, "{path}");
    }
    // A name from between the generations goes by the header.
    for (headers, params, member) in [
        (&[EVENTS][..], said("echo x"), "kind"),
        (&[EVENTS, V1], v10, "task"),
    ] {
        let answer = rpc(&server, headers, "StreamMessage", &params).await;
        let body = String::from_utf8(answer.body.to_vec()).unwrap();
        let first = body.lines().find_map(|line| line.strip_prefix("data: "));
        let first: Value = serde_json::from_str(first.unwrap()).unwrap();
        assert_ne!(first["result"][member], Value::Null, "{first}");
    }
}

/// C-03, B-13: what is of the other generation is refused with a word about it, also where it would be passed over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_of_the_other_generation_is_said_to_be() {
    let server = server().await;
    let message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "echo x"}]});
    let older = json!({"messageId": "m", "role": "ROLE_USER", "content": [{"text": "echo x"}]});
    for (body, word) in [
        (
            json!({"message": message, "configuration": {"blocking": false}}),
            "returnImmediately",
        ),
        (json!({"message": older}), "`parts`"),
        (json!({"request": older}), "`message`"),
    ] {
        let answer = rpc(&server, &[V1], "SendMessage", &body).await.json();
        let says = answer["error"]["message"].as_str().unwrap();
        assert!(
            says.contains("protocol 1.0") && says.contains(word),
            "{says}"
        );
        let headers = [JSON, V1];
        let to = server.addr();
        let answer = call(
            to,
            Method::POST,
            "/message:send",
            &headers,
            body.to_string(),
        )
        .await;
        let answer = answer.unwrap();
        assert_eq!(answer.status, 400);
        let says = answer.json()["error"]["message"].to_string();
        assert!(
            says.contains("protocol 1.0") && says.contains(word),
            "{says}"
        );
    }
}

/// V03-06: `final` is true on the last event and on no other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v03_06_the_last_event_says_that_it_is() {
    let server = server().await;
    for (text, last) in [
        ("words one two", "completed"),
        ("fail", "failed"),
        ("reject", "rejected"),
        ("ask what?", "input-required"),
    ] {
        let answer = rpc(&server, &[EVENTS], "message/stream", &said(text)).await;
        let body = String::from_utf8(answer.body.to_vec()).unwrap();
        let events = body.lines().filter_map(|line| line.strip_prefix("data: "));
        let events: Vec<Value> = events
            .map(|data| serde_json::from_str::<Value>(data).unwrap()["result"].clone())
            .collect();
        let (end, before) = events.split_last().unwrap();
        assert_eq!(end["status"]["state"], last, "{text}");
        assert_eq!(end["final"], true, "{text}");
        for event in before {
            let expected = if event["kind"] == "status-update" {
                json!(false)
            } else {
                Value::Null
            };
            assert_eq!(event["final"], expected, "{text}: {event}");
        }
    }
}

/// V03-09, C-03: over JSON-RPC a send blocks unless it is told not to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v03_09_a_send_that_shall_not_block_does_not() {
    let server = server().await;
    for (configuration, state) in [
        (json!({"blocking": false}), "submitted working"),
        (json!({"blocking": true}), "input-required"),
        (json!({}), "input-required"),
        (Value::Null, "input-required"),
    ] {
        let text = if state == "input-required" {
            "ask what?"
        } else {
            "hold"
        };
        let mut params = said(text);
        params["configuration"].clone_from(&configuration);
        let task = ask(&server, "message/send", &params).await;
        let found = task["status"]["state"].as_str().unwrap();
        assert!(state.contains(found), "{configuration}: {found}");
    }
}

/// D-02: parts as other systems write them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d_02_a_part_says_what_it_is_in_three_ways() {
    let server = server().await;
    for part in [
        json!({"kind": "text", "text": "echo hi"}),
        json!({"type": "text", "text": "echo hi"}),
        json!({"text": "echo hi"}),
    ] {
        let params = json!({"message": {"messageId": "m", "role": "user", "parts": [part]}});
        let task = ask(&server, "message/send", &params).await;
        assert_eq!(task["status"]["state"], "completed", "{part}");
        assert_eq!(
            task["artifacts"][0]["parts"][0]["text"], "hi",
            "{part}: {task}"
        );
        assert_eq!(task["history"][0]["parts"][0]["kind"], "text");
    }
}

/// V03-19, N-02: extensions go by either name of the header, and are answered by the generation's own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v03_19_extensions_have_a_header_of_their_own() {
    let server = server().await;
    let replay = a2ad_proto::REPLAY;
    for name in ["a2a-extensions", "x-a2a-extensions"] {
        let answer = rpc(&server, &[(name, replay)], "message/send", &said("echo x")).await;
        assert_eq!(answer.headers["x-a2a-extensions"], replay, "{name}");
        assert!(!answer.headers.contains_key("a2a-extensions"), "{name}");
        let answer = rpc(&server, &[V1, (name, replay)], "ListTasks", &json!({})).await;
        assert_eq!(answer.headers["a2a-extensions"], replay, "{name}");
        assert!(!answer.headers.contains_key("x-a2a-extensions"), "{name}");
    }
}

/// CF-14: in 0.3 whoever follows a task that has ended gets it and its last event.
async fn cf_14_a_task_that_has_ended_can_be_followed_in_0_3(server: Harness) {
    let ended = server.client.send(text("words one two")).await.unwrap();
    let by_id = json!({"id": ended.id});
    let answer = rpc(&server, &[EVENTS], "tasks/resubscribe", &by_id).await;
    let body = String::from_utf8(answer.body.to_vec()).unwrap();
    let events = body.lines().filter_map(|line| line.strip_prefix("data: "));
    let events: Vec<Value> = events
        .map(|data| serde_json::from_str::<Value>(data).unwrap()["result"].clone())
        .collect();
    let [task, end] = &events[..] else {
        panic!("a task and its end: {body}");
    };
    assert_eq!(
        (&task["kind"], &task["id"]),
        (&json!("task"), &json!(ended.id))
    );
    assert_eq!(task["status"]["state"], "completed");
    assert_eq!(
        (&end["kind"], &end["final"]),
        (&json!("status-update"), &json!(true))
    );
    assert_eq!(end["status"]["state"], "completed");
}

async fn dual_08_a_task_of_one_generation_is_the_others_too(server: Harness) {
    let older = ask(&server, "message/send", &said("ask what?")).await;
    assert_eq!(older["status"]["state"], "input-required");
    let id = older["id"].as_str().unwrap();
    let newer = server.client.get(GetTaskRequest {
        id: id.to_owned(),
        ..GetTaskRequest::default()
    });
    let newer = newer.await.unwrap();
    assert_eq!(newer.status.state, TaskState::InputRequired);
    assert_eq!(newer.context_id, older["contextId"].as_str().unwrap());
    assert_eq!(newer.history[0].parts[0].as_text(), Some("ask what?"));
    let canceled = server.client.cancel(id).await.unwrap();
    assert_eq!(canceled.status.state, TaskState::Canceled);
    let again = ask(&server, "tasks/get", &json!({"id": id})).await;
    assert_eq!(again["status"]["state"], "canceled");

    let newer = server.client.send(text("ask what?")).await.unwrap();
    let older = ask(&server, "tasks/cancel", &json!({"id": newer.id})).await;
    assert_eq!(older["status"]["state"], "canceled");
    assert_eq!(older["contextId"], newer.context_id);
}

/// G-10.
async fn dual_08_a_stream_of_one_generation_shows_what_the_other_makes(server: Harness) {
    let held = server.client.send(at_once(text("hold"))).await.unwrap();
    let body = request("tasks/resubscribe", &json!({"id": held.id}).to_string());
    let opened = open(server.addr(), Method::POST, "/", &[JSON, EVENTS], body).await;
    let mut older = SseReader::new(opened.unwrap());
    let subscribe = SubscribeToTaskRequest {
        id: held.id.clone(),
        ..SubscribeToTaskRequest::default()
    };
    let newer = server.client.subscribe(&subscribe.id, None).await.unwrap();
    let canceled = ask(&server, "tasks/cancel", &json!({"id": held.id})).await;
    assert_eq!(canceled["status"]["state"], "canceled");
    let mut events = Vec::new();
    while let Some(event) = older.next().await.unwrap() {
        events.push(serde_json::from_str::<Value>(&event.data).unwrap()["result"].clone());
    }
    assert_eq!(events[0]["kind"], "task");
    let last = events.last().unwrap();
    assert_eq!(
        (&last["status"]["state"], &last["final"]),
        (&json!("canceled"), &json!(true))
    );
    let newer = drain(newer).await.unwrap();
    let Some(StreamResponse::StatusUpdate(end)) = newer.last().map(|event| &event.response) else {
        panic!("a status ends a stream: {newer:?}");
    };
    assert_eq!(end.status.state, TaskState::Canceled);
}
