//! Many agents at one server: mounts and tenants.

use a2ad_server::config::Source;
use hyper::Method;
use serde_json::{Value, json};

use crate::configured::{Configured, answered, for_tenant, grpc_reason, saying, try_start};

const THREE: &str = "
agents:
  - {id: one, script: {otherwise: [complete: I am one]}}
  - {id: two, script: {otherwise: [complete: I am two]}}
  - {id: inside, expose: false, script: {otherwise: [complete: I am inside]}}
";

fn reason(answer: &Value) -> &str {
    let error = &answer["error"];
    let details = error.get("data").unwrap_or(&error["details"]);
    details[0]["reason"]
        .as_str()
        .unwrap_or_else(|| panic!("{answer}"))
}

fn said_over_grpc(answer: &a2ad_testkit::grpc::Answer) -> String {
    let task = crate::grpc::task_of(answer);
    let said = task.status.message.unwrap();
    said.parts[0].as_text().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_agent_answers_at_all_its_addresses() {
    let server = Configured::start(THREE).await;
    for (path, who) in [
        ("/", "I am one"),
        ("/a2a", "I am one"),
        ("/a2a/", "I am one"),
        ("/agents/one", "I am one"),
        ("/agents/two", "I am two"),
        ("/agents/two/", "I am two"),
        ("/a2a/agents/two", "I am two"),
        ("/a2a/agents/two/", "I am two"),
        ("/two", "I am two"),
        ("/two/", "I am two"),
        ("/a2a/two", "I am two"),
        ("/%74wo", "I am two"),
        ("/?tenant=two", "I am two"),
        ("/a2a?tenant=two", "I am two"),
    ] {
        let response = server.rpc(path, "SendMessage", &saying("who?")).await;
        assert_eq!(answered(&response), who, "{path}");
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let path = format!("{}/message:send?{query}", path.trim_end_matches('/'));
        let body = saying("who?").to_string();
        let answer = server.call(Method::POST, &path, &[], body).await.json();
        let said = &answer["task"]["status"]["message"]["parts"][0]["text"];
        assert_eq!(said, who, "{path}");
    }
}

/// TEN-02.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_02_a_tenant_in_the_request_names_the_agent() {
    let server = Configured::start(THREE).await;
    let to_two = for_tenant("two", saying("who?"));
    for path in ["/", "/a2a", "/two", "/agents/two", "/?tenant=two"] {
        let response = server.rpc(path, "SendMessage", &to_two).await;
        assert_eq!(answered(&response), "I am two", "{path}");
    }
    for path in [
        "/one",
        "/agents/one",
        "/a2a/one",
        "/?tenant=one",
        "/agents/two?tenant=one",
    ] {
        let response = server.rpc(path, "SendMessage", &to_two).await;
        assert_eq!(response["error"]["code"], -32602, "{path}: {response}");
        assert_eq!(
            response["error"]["data"][1]["fieldViolations"][0]["field"], "tenant",
            "{path}: {response}"
        );
    }
    let body = to_two.to_string();
    let answer = server
        .call(Method::POST, "/one/message:send", &[], body)
        .await;
    assert_eq!(
        (answer.status.as_u16(), reason(&answer.json())),
        (400, "INVALID_PARAMS")
    );
    let answer = server.grpc("SendMessage", &[], &to_two).await;
    assert_eq!(said_over_grpc(&answer), "I am two");
    let answer = server.grpc("SendMessage", &[], &saying("who?")).await;
    assert_eq!(said_over_grpc(&answer), "I am one");
    // An empty one is none.
    let response = server
        .rpc("/two", "SendMessage", &for_tenant("", saying("who?")))
        .await;
    assert_eq!(answered(&response), "I am two");
}

/// TEN-03: what is hidden and what does not exist cannot be told apart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_03_unknown_and_hidden_tenants_are_answered_alike() {
    let server = Configured::start(THREE).await;
    let mut answers = Vec::new();
    for tenant in ["inside", "nobody"] {
        let mut told = Vec::new();
        for (method, params) in [
            ("SendMessage", saying("who?")),
            ("ListTasks", json!({})),
            ("GetTask", json!({"id": "t"})),
            ("CancelTask", json!({"id": "t"})),
            ("SubscribeToTask", json!({"id": "t"})),
            (
                "GetTaskPushNotificationConfig",
                json!({"taskId": "t", "id": "c"}),
            ),
            ("GetExtendedAgentCard", json!({})),
        ] {
            let params = for_tenant(tenant, params);
            let response = server.rpc("/", method, &params).await;
            told.push(response.to_string());
            let answer = server.grpc(method, &[], &params).await;
            let reason = &response["error"]["data"][0]["reason"];
            assert_eq!(grpc_reason(&answer), *reason, "{method}");
        }
        for (verb, path) in [
            (Method::GET, "/tasks/t"),
            (Method::GET, "/tasks"),
            (Method::POST, "/tasks/t:cancel"),
            (Method::GET, "/extendedAgentCard"),
            (Method::GET, "/.well-known/agent-card.json"),
            (Method::POST, ""),
        ] {
            for prefix in ["", "/a2a", "/agents", "/a2a/agents"] {
                let answer = server
                    .call(verb.clone(), &format!("{prefix}/{tenant}{path}"), &[], "")
                    .await;
                told.push(format!("{verb} {path} {} {:?}", answer.status, answer.body));
            }
        }
        answers.push(told);
    }
    assert_eq!(answers[0], answers[1]);
    assert!(
        answers[0][0].contains("INVALID_PARAMS"),
        "{}",
        answers[0][0]
    );
    assert!(
        answers[0][2].contains("TASK_NOT_FOUND"),
        "{}",
        answers[0][2]
    );
}

/// TEN-04.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_04_tasks_and_conversations_belong_to_their_agent() {
    let server = Configured::start(THREE).await;
    let mut mine = saying("mine");
    mine["message"]["contextId"] = "shared".into();
    let task = server.rpc("/one", "SendMessage", &mine).await["result"]["task"].clone();
    let by_id = json!({"id": task["id"]});
    for path in ["/", "/one", "/agents/one"] {
        let found = server.rpc(path, "GetTask", &by_id).await;
        assert_eq!(found["result"]["id"], task["id"], "{path}");
    }
    for method in ["GetTask", "CancelTask", "SubscribeToTask"] {
        let response = server.rpc("/two", method, &by_id).await;
        assert_eq!(reason(&response), "TASK_NOT_FOUND", "{method}");
    }
    let listed = server
        .rpc("/two", "ListTasks", &json!({"contextId": "shared"}))
        .await;
    assert_eq!(listed["result"]["totalSize"], 0);
    let listed = server
        .rpc("/", "ListTasks", &json!({"tenant": "one"}))
        .await;
    assert_eq!(listed["result"]["totalSize"], 1);
    let listed = server.get("/tasks?tenant=one", &[]).await.json();
    assert_eq!(listed["totalSize"], 1);
}

/// B-09.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn paths_that_lead_nowhere_are_404_and_wrong_verbs_405() {
    let server = Configured::start(THREE).await;
    for path in [
        "/agents",
        "/agents/",
        "/agents/nobody",
        "/agents/nobody/tasks",
        "/nobody",
        "/nobody/",
        "/one/two",
        "/one/two/tasks",
        "/agents/one/two/tasks",
        "/a2a/a2a/tasks",
        "/one/livez",
        "/agents/one/.well-known/other.json",
        "/v1",
        "/v1/other",
    ] {
        let answer = server.get(path, &[]).await;
        assert_eq!(answer.status, 404, "{path}");
        assert_eq!(reason(&answer.json()), "METHOD_NOT_FOUND", "{path}");
    }
    for path in ["/", "/agents/two/", "/two", "/a2a/jsonrpc"] {
        let answer = server.get(path, &[]).await;
        assert_eq!(answer.status, 405, "{path}");
        assert_eq!(answer.headers["allow"], "POST", "{path}");
    }
    let answer = server.call(Method::PUT, "/a2a", &[], "").await;
    assert_eq!(answer.status, 405);
    assert_eq!(answer.headers["allow"], "GET, HEAD, OPTIONS, POST");
}

/// TEN-04: page tokens and repeats are an agent's own as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_04_tokens_and_repeats_belong_to_their_agent() {
    let server = Configured::start(THREE).await;
    let mut once = saying("once");
    once["message"]["messageId"] = "0198a5b2-7c1e-7f3a-9d2e-3b1f5c7a9e10".into();
    let mut ids = Vec::new();
    for (path, who) in [("/one", "I am one"), ("/two", "I am two")] {
        for _ in 0..2 {
            let sent = server.rpc(path, "SendMessage", &once).await;
            assert_eq!(answered(&sent), who);
            ids.push(sent["result"]["task"]["id"].clone());
        }
        server.rpc(path, "SendMessage", &saying("more")).await;
    }
    assert_eq!((&ids[0], &ids[2]), (&ids[1], &ids[3]));
    assert_ne!(ids[0], ids[2]);
    let page = |token: &Value| json!({"pageSize": 1, "pageToken": token});
    let first = server.rpc("/one", "ListTasks", &page(&"".into())).await;
    let token = &first["result"]["nextPageToken"];
    assert_ne!(token, "");
    let told = server.rpc("/two", "ListTasks", &page(token)).await;
    assert_eq!(reason(&told), "INVALID_PARAMS");
    let next = server.rpc("/one", "ListTasks", &page(token)).await;
    assert_eq!(next["result"]["tasks"][0]["id"], ids[0]);
}

/// TEN-05.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_05_words_of_the_paths_are_no_tenants() {
    for word in [
        "tasks",
        "extendedAgentCard",
        "v1",
        "agents",
        "Tasks",
        "livez",
    ] {
        let yaml = format!("agents: [{{id: {word}, echo: }}]");
        let refused = try_start(&yaml, tempfile::tempdir().unwrap()).await;
        let error = refused.err().unwrap().to_string();
        assert!(
            error.contains(word) && error.contains("reserved"),
            "{error}"
        );
    }
    // And what looks like an action or a hidden folder is no id at all.
    for word in ["message:send", "message:stream", ".well-known"] {
        let yaml = format!("agents: [{{id: '{word}', echo: }}]");
        let read = Source::yaml("test.yaml", &yaml).read(&|_| None);
        assert!(read.is_err(), "{word}");
    }
}
