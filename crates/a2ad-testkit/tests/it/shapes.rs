//! Shapes that a typed client cannot see: which members are there, and which are not.

use a2ad_testkit::harness::{Binding, Harness, StoreKind};
use a2ad_testkit::http::{Answer, call};
use hyper::Method;
use serde_json::{Value, json};

use crate::wire::{JSON, V1, message, request};

async fn server() -> Harness {
    Harness::start(Binding::JsonRpc, StoreKind::Sqlite).await
}

async fn rpc(server: &Harness, method: &str, params: &str) -> Answer {
    let body = request(method, params);
    let answer = call(server.addr(), Method::POST, "/", &[JSON, V1], body).await;
    answer.unwrap()
}

async fn rest(server: &Harness, verb: Method, path: &str, body: &str) -> Answer {
    let answer = call(server.addr(), verb, path, &[JSON, V1], body.to_owned()).await;
    answer.unwrap()
}

/// The same result over both bindings, as JSON.
async fn both(server: &Harness, method: &str, params: &str, path: &str) -> [Value; 2] {
    let one = rpc(server, method, params).await.json();
    let other = rest(server, Method::GET, path, "").await.json();
    [one["result"].clone(), other]
}

fn data(answer: &Answer) -> Vec<Value> {
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    let lines = text.lines().filter_map(|line| line.strip_prefix("data: "));
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn names(value: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    names.sort_unstable();
    names
}

/// SEND-01, REST-02: over JSON-RPC and HTTP+JSON alike.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn send_01_an_answer_has_one_member() {
    let server = server().await;
    for (said, member) in [
        ("echo x", "task"),
        ("ask what?", "task"),
        ("reply x", "message"),
    ] {
        let one = rpc(&server, "SendMessage", &message(said)).await.json();
        assert_eq!(names(&one["result"]), [member]);
        let other = rest(&server, Method::POST, "/message:send", &message(said)).await;
        assert_eq!(names(&other.json()), [member]);
    }
}

/// STREAM-06: one member per frame, and nothing that tells the last one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stream_06_a_frame_has_one_member() {
    let server = server().await;
    for said in ["pieces", "notes", "echo x", "reply x", "ask what?", "fail"] {
        let one = rpc(&server, "SendStreamingMessage", &message(said)).await;
        let other = rest(&server, Method::POST, "/message:stream", &message(said)).await;
        let wrapped = data(&one).into_iter().map(|event| event["result"].clone());
        let frames: Vec<Value> = wrapped.chain(data(&other)).collect();
        assert!(!frames.is_empty());
        for frame in frames {
            let [kind] = names(&frame)[..] else {
                panic!("{frame}");
            };
            let known: &[&str] = match kind {
                "statusUpdate" => &["contextId", "metadata", "status", "taskId"],
                "artifactUpdate" => &["append", "artifact", "contextId", "lastChunk", "taskId"],
                "task" => &[
                    "artifacts",
                    "contextId",
                    "history",
                    "id",
                    "metadata",
                    "status",
                ],
                "message" => &["contextId", "messageId", "parts", "role", "taskId"],
                other => panic!("{other}"),
            };
            for name in names(&frame[kind]) {
                assert!(known.contains(&name), "{name} in {frame}");
            }
        }
    }
}

/// LIST-07, LIST-04: also of an empty list.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn list_07_an_empty_page_has_all_its_members() {
    let server = server().await;
    let none = json!({"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0});
    for page in both(&server, "ListTasks", "{}", "/tasks").await {
        assert_eq!(page, none);
    }
}

/// LIST-05: absent is absent, and asked for is there, if only as an empty list.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn list_05_artifacts_are_a_member_only_when_asked_for() {
    let server = server().await;
    rpc(&server, "SendMessage", &message("ask what?")).await;
    rpc(&server, "SendMessage", &message("echo x")).await;
    for (params, path) in [
        ("{}", "/tasks"),
        (
            r#"{"includeArtifacts":false}"#,
            "/tasks?includeArtifacts=false",
        ),
    ] {
        for page in both(&server, "ListTasks", params, path).await {
            for task in page["tasks"].as_array().unwrap() {
                assert!(task.get("artifacts").is_none(), "{task}");
            }
        }
    }
    let path = "/tasks?includeArtifacts=true";
    for page in both(&server, "ListTasks", r#"{"includeArtifacts":true}"#, path).await {
        assert_eq!(
            page["tasks"][0]["artifacts"][0]["parts"],
            json!([{"text": "x"}])
        );
        assert_eq!(page["tasks"][1]["artifacts"], json!([]));
    }
}

/// LIST-10: metadata in a request for a list is a member like any unknown one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn list_10_a_list_takes_no_metadata() {
    let server = server().await;
    rpc(&server, "SendMessage", &message("echo x")).await;
    let plain = rpc(&server, "ListTasks", "{}").await;
    for params in [r#"{"metadata":{"a":1}}"#, r#"{"metadata":"no object"}"#] {
        assert_eq!(rpc(&server, "ListTasks", params).await.body, plain.body);
    }
    let page = rest(&server, Method::GET, "/tasks?metadata=%7B%7D", "").await;
    assert_eq!(page.json(), plain.json()["result"]);
    assert_eq!(
        names(&page.json()),
        ["nextPageToken", "pageSize", "tasks", "totalSize"]
    );
}

/// HIST-02, HIST-04: asked for none, the member is missing; not asked, it is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hist_02_hist_04_no_history_is_no_member() {
    let server = server().await;
    let sent = rpc(&server, "SendMessage", &message("echo x")).await.json();
    let id = sent["result"]["task"]["id"].as_str().unwrap();
    let none = format!(r#"{{"id":"{id}","historyLength":0}}"#);
    let all = format!(r#"{{"id":"{id}"}}"#);
    for task in both(
        &server,
        "GetTask",
        &none,
        &format!("/tasks/{id}?historyLength=0"),
    )
    .await
    {
        assert!(task.get("history").is_none(), "{task}");
    }
    for task in both(&server, "GetTask", &all, &format!("/tasks/{id}")).await {
        assert_eq!(task["history"].as_array().unwrap().len(), 1);
    }
    for page in both(
        &server,
        "ListTasks",
        r#"{"historyLength":0}"#,
        "/tasks?historyLength=0",
    )
    .await
    {
        assert!(page["tasks"][0].get("history").is_none(), "{page}");
    }
    let body = message("echo x").replacen('{', r#"{"configuration":{"historyLength":0},"#, 1);
    let sent = rpc(&server, "SendMessage", &body).await.json();
    assert!(sent["result"]["task"].get("history").is_none(), "{sent}");
    let streamed = rest(&server, Method::POST, "/message:stream", &body).await;
    assert!(data(&streamed)[0]["task"].get("history").is_none());
}
