//! The bindings side by side: the same condition is the same error, and the same task the same bytes.

use a2ad_proto::pb::Message as _;
use a2ad_proto::{
    CancelTaskRequest, GetTaskRequest, ListTasksRequest, ListTasksResponse, SendMessageRequest,
    SendMessageResponse, StreamResponse, SubscribeToTaskRequest, Task, from_json,
};
use a2ad_testkit::client::{text, text_in};
use a2ad_testkit::grpc::{self, Grpc};
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

/// The same parameters as a message; none if protobuf has no way to say it.
fn encoded(method: &str, params: &str) -> Option<Vec<u8>> {
    fn of<T: a2ad_proto::pb::Message + serde::de::DeserializeOwned>(
        params: &str,
    ) -> Option<Vec<u8>> {
        let request: T = from_json(params.as_bytes()).ok()?;
        Some(request.encode_to_vec())
    }
    match method {
        // An enum is a number on the wire, whatever the number.
        "ListTasks" if params == r#"{"status":99}"# => Some(vec![0x18, 99]),
        "SendMessage" | "SendStreamingMessage" => of::<SendMessageRequest>(params),
        "GetTask" => of::<GetTaskRequest>(params),
        "ListTasks" => of::<ListTasksRequest>(params),
        "CancelTask" => of::<CancelTaskRequest>(params),
        "SubscribeToTask" => of::<SubscribeToTaskRequest>(params),
        other => panic!("{other}"),
    }
}

/// The message and the details of an error over gRPC, which are in the head alone.
async fn told_by_grpc(server: &Harness, method: &str, message: &[u8]) -> (String, String) {
    let answer = Grpc::new(server.addr()).call(method, &[], message).await;
    let answer = answer.unwrap();
    assert!(answer.messages.is_empty() && answer.trailers.is_none());
    let status = answer.status();
    let details = status.details.unwrap();
    assert_eq!(details["code"], status.code);
    assert_eq!(details["message"], status.message.as_str());
    told(&details, "details")
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
        let path = format!("/tasks/{}", a2ad_testkit::http::encode(id));
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
    let mut unspeakable = Vec::new();
    for (method, params, verb, path, body) in cases {
        let one = over_json_rpc(&server, method, &params).await.json();
        let other = over_http_json(&server, verb.clone(), &path, &body).await;
        let shown = format!("{method} {params}\n{verb} {path} {body}");
        let status = other.status.as_u16();
        let other = other.json();
        assert_eq!(other["error"]["code"], status, "{shown}");
        let expected = told(&one["error"], "data");
        assert_eq!(expected, told(&other["error"], "details"), "{shown}");
        match encoded(method, &params) {
            Some(message) => {
                let third = told_by_grpc(&server, method, &message).await;
                assert_eq!(expected, third, "{shown}");
            }
            None => unspeakable.push(params),
        }
    }
    let only_in_text = [
        r#"{"pageSize":"many"}"#,
        r#"{"status":"TASK_STATE_BORED"}"#,
        r#"{"statusTimestampAfter":"now"}"#,
    ];
    assert_eq!(
        unspeakable, only_in_text,
        "protobuf has a word for the others"
    );
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

/// Over gRPC a result is another text, but the same task.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_task_is_the_same_message() {
    let server = Harness::start(Binding::Grpc, StoreKind::Sqlite).await;
    let done = server.client.send(text("burst 3")).await.unwrap();
    server.client.send(text("ask what?")).await.unwrap();
    let ask = async |method: &str, params: &str, metadata: &[(&str, &str)]| {
        let message = encoded(method, params).unwrap();
        let answer = Grpc::new(server.addr())
            .call(method, metadata, &message)
            .await;
        let answer = answer.unwrap();
        assert_eq!(answer.status().code, 0);
        answer.messages
    };
    let by_id = format!(r#"{{"id":"{}"}}"#, done.id);
    let path = format!("/tasks/{}", done.id);
    let json = over_http_json(&server, Method::GET, &path, "").await;
    let one = Task::decode(&ask("GetTask", &by_id, &[]).await[0]).unwrap();
    assert_eq!(one, from_json(&json.body).unwrap());
    for (params, query) in [
        (r#"{"includeArtifacts":true}"#, "includeArtifacts=true"),
        (
            r#"{"status":3,"historyLength":0}"#,
            "status=3&historyLength=0",
        ),
    ] {
        let path = format!("/tasks?{query}");
        let json = over_http_json(&server, Method::GET, &path, "").await;
        let page = ListTasksResponse::decode(&ask("ListTasks", params, &[]).await[0]).unwrap();
        assert_eq!(page, from_json(&json.body).unwrap());
    }
    let path = format!("{path}:subscribe?afterSequence=0");
    let events = over_http_json(&server, Method::GET, &path, "").await;
    let events = String::from_utf8(events.body.to_vec()).unwrap();
    let expected: Vec<(u64, StreamResponse)> = events
        .split_terminator("\n\n")
        .map(|event| {
            let (id, data) = event
                .strip_prefix("id: ")
                .unwrap()
                .split_once("\ndata: ")
                .unwrap();
            (id.parse().unwrap(), from_json(data.as_bytes()).unwrap())
        })
        .collect();
    let metadata = [("last-event-id", "0"), ("a2a-extensions", grpc::REPLAY)];
    let frames = ask("SubscribeToTask", &by_id, &metadata).await;
    let frames: Vec<(u64, StreamResponse)> = frames
        .iter()
        .map(|frame| {
            let mut response = StreamResponse::decode(frame).unwrap();
            (grpc::take_number(&mut response).unwrap(), response)
        })
        .collect();
    assert_eq!(frames, expected);
}

/// SEND-17: whatever the binding of the first and of the second. Over gRPC numbers are doubles, so as doubles they count.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn send_17_a_repeat_is_known_across_bindings() {
    let server = Harness::start(Binding::JsonRpc, StoreKind::Sqlite).await;
    let numbers = r#"{"b":12345678901234567890,"a":1.0,"c":[1e2,-0.0,0.1,-7,123456789012345678901234567890],
        "d":{"z":9007199254740993,"y":0.30000000000000004,"x":1.7976931348623157e308,"w":5e-324},
        "e":"1.0 \\ \u00e9","f":[true,false,null,{}],"g":0.9396908728118811419}"#;
    let params = |id: u8, said: &str| {
        format!(
            r#"{{"message":{{"messageId":"0198a5b2-7c1e-7f3a-9d2e-3b1f5c7a9e1{id}","role":"ROLE_USER",
                "parts":[{{"text":"{said}","metadata":{numbers}}},{{"data":{numbers}}},{{"data":3.0}}],
                "metadata":{numbers}}},"metadata":{numbers}}}"#
        )
    };
    let grpc = Grpc::new(server.addr());
    let over_grpc = async |params: &str| {
        let message = encoded("SendMessage", params).unwrap();
        let answer = grpc.call("SendMessage", &[], &message).await.unwrap();
        assert_eq!(answer.status().code, 0, "{}", answer.status().message);
        let response = SendMessageResponse::decode(&answer.messages[0]).unwrap();
        let SendMessageResponse::Task(task) = response else {
            panic!("{response:?}");
        };
        task.id
    };
    let over_json = async |params: &str| {
        let answer = over_json_rpc(&server, "SendMessage", params).await.json();
        let id = &answer["result"]["task"]["id"];
        id.as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    };
    let one = params(1, "echo one");
    let first = over_json(&one).await;
    assert_eq!(over_grpc(&one).await, first);
    // In another order and spelling, too.
    let spelt = one
        .replace(r#""a":1.0,"#, "")
        .replace(r#"{"b":"#, r#"{"a":1,"b":"#);
    let spelt = spelt
        .replace("1e2", "100")
        .replace("9007199254740993", "9007199254740992");
    assert_ne!(spelt, one);
    assert_eq!(over_json(&spelt).await, first);
    let two = params(2, "echo two");
    let second = over_grpc(&two).await;
    assert_eq!(over_json(&two).await, second);
    assert_eq!(server.agent_begun(), 2);
    // Other numbers are another message.
    for (old, new) in [("0.30000000000000004", "0.3"), ("-0.0", "1"), ("-7,", "7,")] {
        let answer = over_json_rpc(&server, "SendMessage", &one.replace(old, new)).await;
        assert_eq!(answer.json()["error"]["code"], -32602, "{new}");
    }
}
