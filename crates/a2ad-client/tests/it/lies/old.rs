//! Agents that know protocol 0.3 only, over HTTP: the client speaks it, and its users do not notice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use a2ad_client::{Binding, CallOptions, Client, text};
use a2ad_proto::{
    AuthenticationInfo, ErrorKind, GetTaskRequest, ListTaskPushNotificationConfigsRequest,
    ListTasksRequest, PartContent, SendMessageConfiguration, SendMessageResponse, StreamResponse,
    TaskPushNotificationConfig, TaskState,
};
use serde_json::{Value, json};

use super::{Asked, Liar, Lie, answer, events, ok, rpc, soon};

/// An agent of 0.3 at these transports, the first of which it prefers.
async fn agent(
    transports: &'static [&'static str],
    lie: impl Fn(&Asked) -> Lie + Send + Sync + 'static,
) -> Liar {
    Liar::start(move |asked, to| {
        if !asked.is_card() {
            return lie(asked);
        }
        let place = |name: &&str| json!({"url": format!("http://{to}/at"), "transport": name});
        let others: Vec<Value> = transports.iter().map(place).collect();
        ok(
            &json!({"name": "old", "description": "", "version": "1", "protocolVersion": "0.3.0",
            "url": format!("http://{to}/at"), "preferredTransport": transports[0],
            "additionalInterfaces": others, "capabilities": {"streaming": true}, "skills": [],
            "defaultInputModes": [], "defaultOutputModes": []}),
        )
    })
    .await
}

/// The finished task as JSON-RPC has it.
fn done() -> Value {
    json!({"kind": "task", "id": "t", "contextId": "c", "status": {"state": "completed"},
        "artifacts": [{"artifactId": "a", "parts": [
            {"kind": "text", "text": "hi"}, {"kind": "file", "file": {"bytes": "aGk=", "name": "x"}}]}]})
}

/// The same as HTTP+JSON has it.
fn done_proto() -> Value {
    json!({"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"},
        "artifacts": [{"artifactId": "a", "parts": [
            {"text": "hi"}, {"file": {"fileWithBytes": "YUdrPQ==", "name": "x"}}]}]})
}

fn is_done(task: &a2ad_proto::Task) {
    assert_eq!(task.status.state, TaskState::Completed);
    let parts = &task.artifacts[0].parts;
    assert_eq!(parts[0].as_text(), Some("hi"));
    assert_eq!(parts[1].content, PartContent::Raw(b"hi".as_slice().into()));
}

fn config() -> TaskPushNotificationConfig {
    TaskPushNotificationConfig {
        id: "c1".to_owned(),
        task_id: "t".to_owned(),
        url: "https://h.example/".to_owned(),
        authentication: Some(AuthenticationInfo {
            scheme: "Bearer".to_owned(),
            credentials: String::new(),
        }),
        ..Default::default()
    }
}

fn config_json() -> Value {
    json!({"taskId": "t", "pushNotificationConfig": {"id": "c1", "url": "https://h.example/",
        "authentication": {"schemes": ["Bearer"]}}})
}

/// Calls every operation that has one answer.
async fn everything(client: &Client) {
    let mut request = text("x");
    request.configuration = Some(SendMessageConfiguration {
        history_length: Some(3),
        ..Default::default()
    });
    match soon(client.send(request)).await.unwrap() {
        SendMessageResponse::Task(task) => is_done(&task),
        SendMessageResponse::Message(message) => panic!("{message:?}"),
    }
    let get = GetTaskRequest {
        id: "t".to_owned(),
        history_length: Some(2),
        ..Default::default()
    };
    is_done(&soon(client.get_with(get)).await.unwrap());
    is_done(&soon(client.cancel("t")).await.unwrap());
    let page = soon(client.list(ListTasksRequest::default())).await;
    is_done(&page.unwrap().tasks[0]);
    let created = soon(client.create_push_config(config())).await.unwrap();
    assert_eq!(created, config());
    let read = soon(client.get_push_config("t", "c1")).await.unwrap();
    assert_eq!(read, config());
    let list = ListTaskPushNotificationConfigsRequest {
        task_id: "t".to_owned(),
        ..Default::default()
    };
    let list = soon(client.list_push_configs(list)).await.unwrap();
    assert_eq!(list.configs, [config()]);
    soon(client.delete_push_config("t", "c1")).await.unwrap();
    let card = soon(client.extended_card()).await.unwrap();
    assert_eq!(card.name, "more");
    assert_eq!(card.supported_interfaces[0].protocol_version, "0.3");
}

fn extended() -> Value {
    json!({"name": "more", "url": "https://h.example/", "protocolVersion": "0.3.0", "skills": []})
}

#[tokio::test]
async fn v03_07_v03_08_json_rpc_has_the_methods_and_objects_of_0_3() {
    let liar = agent(&["JSONRPC"], |asked| {
        let asked = asked.json();
        let result = match asked["method"].as_str().unwrap() {
            "message/send" | "tasks/get" | "tasks/cancel" => done(),
            "tasks/list" => {
                json!({"tasks": [done()], "nextPageToken": "", "pageSize": 50, "totalSize": 1})
            }
            "tasks/pushNotificationConfig/set" | "tasks/pushNotificationConfig/get" => {
                config_json()
            }
            "tasks/pushNotificationConfig/list" => json!([config_json()]),
            "tasks/pushNotificationConfig/delete" => Value::Null,
            "agent/getAuthenticatedExtendedCard" => extended(),
            other => panic!("{other}"),
        };
        ok(&rpc(&result))
    })
    .await;
    let client = liar.client().await;
    assert_eq!(client.interface().binding, Binding::JsonRpc);
    everything(&client).await;
    let calls = liar.calls();
    let params: Vec<Value> = calls.iter().map(|it| it.json()["params"].clone()).collect();
    let message = &params[0]["message"];
    assert_eq!(message["kind"], "message");
    assert_eq!(message["role"], "user");
    assert_eq!(message["parts"], json!([{"kind": "text", "text": "x"}]));
    let configuration = &params[0]["configuration"];
    assert_eq!(
        configuration,
        &json!({"historyLength": 3, "blocking": true})
    );
    assert_eq!(params[1], json!({"id": "t", "historyLength": 2}));
    assert_eq!(params[2], json!({"id": "t"}));
    assert_eq!(params[4], config_json());
    let named = json!({"id": "t", "pushNotificationConfigId": "c1"});
    assert_eq!(params[5], named);
    assert_eq!(params[6], json!({"id": "t"}));
    assert_eq!(params[7], named);
    assert_eq!(calls[8].json().get("params"), None);
    for asked in calls {
        assert_eq!(asked.header("a2a-version"), Some("0.3"));
    }
}

#[tokio::test]
async fn v03_14_http_json_has_the_paths_and_the_schema_of_0_3() {
    let named = json!({"name": "tasks/t/pushNotificationConfigs/c1",
        "pushNotificationConfig": config_json()["pushNotificationConfig"]});
    let configs = json!({ "configs": [named] });
    let liar = agent(&["HTTP+JSON"], move |asked| {
        let (verb, rest) = asked.line.split_once(' ').unwrap();
        let path = rest.split(' ').next().unwrap();
        ok(&match (verb, path) {
            ("POST", "/at/v1/message:send") => json!({ "task": done_proto() }),
            ("GET", "/at/v1/tasks/t?historyLength=2") | ("POST", "/at/v1/tasks/t:cancel") => {
                done_proto()
            }
            ("GET", "/at/v1/tasks") => json!([done_proto()]),
            ("POST", "/at/v1/tasks/t/pushNotificationConfigs")
            | ("GET", "/at/v1/tasks/t/pushNotificationConfigs/c1") => named.clone(),
            ("GET", "/at/v1/tasks/t/pushNotificationConfigs") => configs.clone(),
            ("DELETE", "/at/v1/tasks/t/pushNotificationConfigs/c1") => json!({}),
            ("GET", "/at/v1/card") => extended(),
            other => panic!("{other:?}"),
        })
    })
    .await;
    everything(&liar.client().await).await;
    let calls = liar.calls();
    let sent = calls[0].json();
    assert_eq!(sent["message"]["role"], "ROLE_USER");
    assert_eq!(sent["message"]["content"], json!([{"text": "x"}]));
    assert_eq!(
        sent["configuration"],
        json!({"historyLength": 3, "blocking": true})
    );
    assert_eq!(calls[0].header("content-type"), Some("application/json"));
    let created = calls[4].json();
    assert_eq!(created["parent"], "tasks/t");
    assert_eq!(created["configId"], "c1");
}

/// V03-16: a file's base64 text stands where its bytes should, unless the user says otherwise.
#[tokio::test]
async fn v03_16_files_are_packed_as_the_agent_has_them() {
    let mut request = text("x");
    let parts = &mut request.message.as_mut().unwrap().parts;
    parts[0] = PartContent::Raw(b"hi".as_slice().into()).into();
    for (plain, sent) in [(false, "YUdrPQ=="), (true, "aGk=")] {
        let liar = agent(&["HTTP+JSON"], |_| ok(&json!({ "task": done_proto() }))).await;
        let mut builder = liar.builder();
        if plain {
            builder = builder.plain_v03_files();
        }
        let client = soon(builder.connect()).await.unwrap();
        soon(client.send(request.clone())).await.unwrap();
        let part = &liar.calls()[0].json()["message"]["content"][0];
        assert_eq!(part["file"]["fileWithBytes"], sent);
    }
}

#[tokio::test]
async fn v03_03_streams_are_bare_events_and_go_on_after_a_cut() {
    let update = |state: &str, last: bool| {
        json!({"kind": "status-update", "taskId": "t", "contextId": "c",
            "status": {"state": state}, "final": last})
    };
    let chunk = |text: &str, append: bool| {
        json!({"kind": "artifact-update", "taskId": "t", "contextId": "c", "append": append,
            "artifact": {"artifactId": "a", "parts": [{"kind": "text", "text": text}]}})
    };
    let subscribed = AtomicBool::new(false);
    let liar = agent(&["JSONRPC"], move |asked| {
        let frames = match asked.json()["method"].as_str().unwrap() {
            "message/stream" => vec![
                json!({"kind": "task", "id": "t", "contextId": "c", "status": {"state": "working"}}),
                chunk("one ", false),
            ],
            // No snapshot: 0.3 promises none.
            "tasks/resubscribe" => {
                subscribed.store(true, Ordering::Relaxed);
                vec![chunk("two", true), update("completed", true)]
            }
            "tasks/get" => {
                let task = kept(subscribed.load(Ordering::Relaxed));
                return ok(&rpc(&task));
            }
            other => panic!("{other}"),
        };
        let frames: Vec<_> = frames.iter().map(|it| (None, rpc(it))).collect();
        events(&frames)
    })
    .await;
    let client = liar.client().await;
    let assembly = soon(client.stream(text("x")).finish()).await.unwrap();
    assert_eq!(assembly.text(), "one two");
    let task = assembly.task().unwrap();
    assert_eq!(task.status.state, TaskState::Completed);
    let mut methods: Vec<Value> = liar
        .calls()
        .iter()
        .map(|it| it.json()["method"].clone())
        .collect();
    methods.retain(|it| it != "tasks/get");
    assert_eq!(methods, ["message/stream", "tasks/resubscribe"]);
}

#[tokio::test]
async fn v03_14_streams_of_http_json_are_wrapped_and_may_be_subscribed_to_by_get() {
    let liar = agent(&["HTTP+JSON"], |asked| {
        if asked.line.starts_with("POST") {
            let refused = r#"{"detail":"Method Not Allowed"}"#;
            return Lie::Say(answer("405 Method Not Allowed", "", refused));
        }
        if asked.line.starts_with("GET /at/v1/tasks/t ") {
            return ok(&done_working());
        }
        assert!(
            asked.line.starts_with("GET /at/v1/tasks/t:subscribe "),
            "{}",
            asked.line
        );
        let update = json!({"statusUpdate": {"taskId": "t", "contextId": "c",
            "status": {"state": "TASK_STATE_CANCELLED"}, "final": true}});
        events(&[(None, json!({ "task": done_working() })), (None, update)])
    })
    .await;
    let client = liar.client().await;
    let mut events = client.subscribe("t");
    let first = soon(events.next()).await.unwrap().unwrap();
    assert!(matches!(first.response, StreamResponse::Task(_)));
    let last = soon(events.next()).await.unwrap().unwrap();
    let StreamResponse::StatusUpdate(update) = last.response else {
        panic!("{last:?}");
    };
    assert_eq!(update.status.state, TaskState::Canceled);
    assert!(soon(events.next()).await.is_none());
}

/// The task as it is kept, when its first chunk has come or at its end.
fn kept(ended: bool) -> Value {
    let part = |text: &str| json!({"kind": "text", "text": text});
    let (state, parts) = match ended {
        false => ("working", vec![part("one ")]),
        true => ("completed", vec![part("one "), part("two")]),
    };
    json!({"kind": "task", "id": "t", "contextId": "c", "status": {"state": state},
        "artifacts": [{"artifactId": "a", "parts": parts}]})
}

/// A subscription begins with the task, although 0.3 promises none: it is asked for. What comes twice is told once.
#[tokio::test]
async fn a_subscription_begins_with_the_task() {
    for with_task in [false, true] {
        let subscribed = AtomicBool::new(false);
        let liar = agent(&["JSONRPC"], move |asked| {
            if asked.json()["method"] == "tasks/get" {
                return ok(&rpc(&kept(subscribed.load(Ordering::Relaxed))));
            }
            subscribed.store(true, Ordering::Relaxed);
            let mut frames = vec![
                json!({"kind": "artifact-update", "taskId": "t", "contextId": "c", "append": true,
                    "artifact": {"artifactId": "a", "parts": [{"kind": "text", "text": "two"}]}}),
                json!({"kind": "status-update", "taskId": "t", "contextId": "c",
                    "status": {"state": "completed"}, "final": true}),
            ];
            if with_task {
                frames.insert(0, kept(false));
            }
            let frames: Vec<_> = frames.iter().map(|it| (None, rpc(it))).collect();
            events(&frames)
        })
        .await;
        let client = liar.client().await;
        let mut events = client.subscribe("t");
        let mut tasks = 0;
        let first = soon(events.next()).await.unwrap().unwrap();
        assert!(
            matches!(first.response, StreamResponse::Task(_)),
            "{first:?}"
        );
        while let Some(event) = soon(events.next()).await {
            tasks += usize::from(matches!(event.unwrap().response, StreamResponse::Task(_)));
        }
        assert_eq!(tasks, 0);
        assert_eq!(events.assembly().text(), "one two");
    }
}

/// A task that has ended is told, and one that cannot be followed is asked for now and then.
#[tokio::test]
async fn a_task_that_cannot_be_followed_is_looked_at() {
    let liar = agent(&["JSONRPC"], |asked| {
        match asked.json()["method"] == "tasks/get" {
            true => ok(&rpc(&done())),
            false => panic!("it has ended"),
        }
    })
    .await;
    let assembly = soon(liar.client().await.subscribe("t").finish()).await;
    is_done(assembly.unwrap().task().unwrap());

    let asked_for = AtomicUsize::new(0);
    let liar = agent(&["JSONRPC"], move |asked| {
        if asked.json()["method"] != "tasks/get" {
            let error = json!({"code": -32001, "message": "Task not found"});
            return ok(&json!({"jsonrpc": "2.0", "id": "1", "error": error}));
        }
        let task = match asked_for.fetch_add(1, Ordering::Relaxed) {
            0..3 => json!({"kind": "task", "id": "t", "contextId": "c", "status": {"state": "input-required"}}),
            _ => done(),
        };
        ok(&rpc(&task))
    })
    .await;
    let assembly = soon(liar.client().await.subscribe("t").finish()).await;
    is_done(assembly.unwrap().task().unwrap());
}

fn done_working() -> Value {
    json!({"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}})
}

#[tokio::test]
async fn v03_19_extensions_go_under_both_names() {
    let liar = agent(&["JSONRPC"], |_| ok(&rpc(&done()))).await;
    let builder = liar.builder().extension("urn:x:one");
    let client = soon(builder.connect()).await.unwrap();
    let mut options = CallOptions::default();
    options.extensions.push("urn:x:two".to_owned());
    soon(client.send_with(text("x"), &options)).await.unwrap();
    for name in ["x-a2a-extensions", "a2a-extensions"] {
        assert_eq!(liar.calls()[0].header(name), Some("urn:x:one,urn:x:two"));
    }
}

#[tokio::test]
async fn v03_22_the_preferred_transport_is_used_and_then_the_others() {
    let liar = agent(&["HTTP+JSON", "JSONRPC"], |asked| {
        match asked.line.contains("/v1/") {
            true => ok(&done_proto()),
            false => ok(&rpc(&done())),
        }
    })
    .await;
    let client = liar.client().await;
    assert_eq!(client.interface().binding, Binding::HttpJson);
    is_done(&soon(client.get("t")).await.unwrap());
    let pinned = liar.builder().binding(Binding::JsonRpc);
    let client = soon(pinned.connect()).await.unwrap();
    is_done(&soon(client.get("t")).await.unwrap());
}

#[tokio::test]
async fn v03_23_the_card_of_an_older_agent_is_found_at_its_old_place() {
    let liar = Liar::start(|asked, to| {
        if asked.line.contains("/agent.json") {
            return ok(&json!({"name": "older", "url": format!("http://{to}/"), "skills": []}));
        }
        match asked.is_card() {
            true => Lie::Say(answer("404 Not Found", "", "")),
            false => ok(&rpc(&done())),
        }
    })
    .await;
    let client = liar.client().await;
    assert!(client.interface().is_v03());
    is_done(&soon(client.get("t")).await.unwrap());
}

/// A card of both versions, 0.3 first.
fn hybrid(to: std::net::SocketAddr) -> Value {
    let interface = |version: &str, path: &str| json!({"url": format!("http://{to}{path}"), "protocolBinding": "JSONRPC", "protocolVersion": version});
    json!({"name": "both", "description": "", "version": "1", "skills": [], "capabilities": {},
        "supportedInterfaces": [interface("0.3", "/old"), interface("1.0", "/new")],
        "protocolVersion": "0.3.0", "url": "http://127.0.0.1:1/nowhere", "preferredTransport": "GRPC"})
}

#[tokio::test]
async fn dual_07_of_a_hybrid_card_the_listed_interfaces_count_and_1_0_is_preferred() {
    let modern = json!({"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}});
    let liar = Liar::start(move |asked, to| match asked.is_card() {
        true => ok(&hybrid(to)),
        false => ok(&rpc(&modern)),
    })
    .await;
    let client = liar.client().await;
    assert_eq!(client.interface().version, "1.0");
    soon(client.get("t")).await.unwrap();
    let asked = &liar.calls()[0];
    assert!(asked.line.contains("/new"), "{}", asked.line);
    assert_eq!(asked.json()["method"], "GetTask");
    let pinned = soon(liar.builder().version("0.3").connect()).await.unwrap();
    assert!(pinned.interface().is_v03());
}

/// DUAL-10: what 1.0 was refused as a version is asked again in 0.3, also a message; nothing else is.
#[tokio::test]
async fn dual_10_a_refused_version_falls_back_to_0_3_and_shows() {
    let refuse =
        |code: i64| json!({"jsonrpc": "2.0", "id": "1", "error": {"code": code, "message": "x"}});
    for (code, falls_back) in [(-32009, true), (-32603, false), (-32004, false)] {
        let liar = Liar::start(move |asked, to| {
            if asked.is_card() {
                return ok(&hybrid(to));
            }
            match asked.line.contains("/new") {
                true => ok(&refuse(code)),
                false => ok(&rpc(&done())),
            }
        })
        .await;
        let client = liar.client().await;
        let sent = soon(client.send(text("x"))).await;
        assert_eq!(sent.is_ok(), falls_back, "{code}: {sent:?}");
        assert_eq!(client.interface().is_v03(), falls_back);
        assert_eq!(liar.calls().len(), 1 + usize::from(falls_back));

        let strict = soon(liar.builder().without_v03().connect()).await.unwrap();
        let refused = soon(strict.send(text("x"))).await.unwrap_err();
        assert!(refused.kind().is_some(), "{refused}");
        assert_eq!(strict.interface().version, "1.0");
    }
}

#[tokio::test]
async fn v03_24_errors_of_0_3_servers_are_told() {
    let liar = agent(&["HTTP+JSON"], |_| {
        Lie::Say(answer(
            "404 Not Found",
            "",
            r#"{"message":"Task not found"}"#,
        ))
    })
    .await;
    let client = liar.client().await;
    let error = soon(client.get("t")).await.unwrap_err();
    assert_eq!(error.kind(), Some(ErrorKind::TaskNotFound));

    let liar = agent(&["JSONRPC"], |_| {
        ok(&json!({"jsonrpc": "2.0", "id": "1",
            "error": {"code": -32007, "message": "Authenticated Extended Card is not configured"}}))
    })
    .await;
    let client = liar.client().await;
    let error = soon(client.extended_card()).await.unwrap_err();
    assert_eq!(
        error.kind(),
        Some(ErrorKind::ExtendedAgentCardNotConfigured)
    );
}

/// A tenant cannot be said in 0.3: saying nothing would ask somebody else.
#[tokio::test]
async fn a_tenant_is_not_dropped_silently() {
    let liar = agent(&["JSONRPC"], |_| ok(&rpc(&done()))).await;
    let client = liar.client().await;
    let request = GetTaskRequest {
        id: "t".to_owned(),
        tenant: "other".to_owned(),
        ..Default::default()
    };
    let error = soon(client.get_with(request)).await.unwrap_err();
    assert!(error.to_string().contains("tenant"), "{error}");
    assert!(liar.calls().is_empty());
}

/// What is no 0.3 either is an error that shows it.
#[tokio::test]
async fn answers_that_are_not_of_0_3_are_errors() {
    let count = Arc::new(AtomicUsize::new(0));
    let lies = [
        json!({"kind": "task", "id": 5}),
        json!({"kind": "dance"}),
        json!({"kind": "task", "id": "t", "status": {"state": "asleep"}}),
        json!([1]),
        json!("x"),
    ];
    let all = lies.len();
    let counted = Arc::clone(&count);
    let liar = agent(&["JSONRPC"], move |_| {
        let at = counted.fetch_add(1, Ordering::Relaxed);
        ok(&rpc(&lies[at % lies.len()]))
    })
    .await;
    let client = liar.client().await;
    for _ in 0..all {
        let error = soon(client.send(text("x"))).await.unwrap_err();
        assert!(error.to_string().contains("not A2A"), "{error}");
    }
}
