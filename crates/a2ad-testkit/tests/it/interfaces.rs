//! The interfaces in a card, and that they are as it says.

use a2ad_testkit::http::call;
use hyper::{Method, Uri};
use serde_json::{Value, json};

use crate::configured::{Configured, saying};

const CARD: &str = "/.well-known/agent-card.json";

const TWO: &str = "
agents:
  - {id: one, streaming: true, script: {otherwise: [complete: I am one]}}
  - {id: two, streaming: true, script: {otherwise: [complete: I am two]}}
  - {id: inside, name: Hidden one, expose: false, script: {otherwise: [complete: Nothing]}}
";

const OPERATIONS: [&str; 11] = [
    "SendMessage",
    "SendStreamingMessage",
    "GetTask",
    "ListTasks",
    "CancelTask",
    "SubscribeToTask",
    "CreateTaskPushNotificationConfig",
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "DeleteTaskPushNotificationConfig",
    "GetExtendedAgentCard",
];

fn route(operation: &str, id: &str) -> (Method, String) {
    let configs = format!("/tasks/{id}/pushNotificationConfigs");
    match operation {
        "SendMessage" => (Method::POST, "/message:send".to_owned()),
        "SendStreamingMessage" => (Method::POST, "/message:stream".to_owned()),
        "GetTask" => (Method::GET, format!("/tasks/{id}")),
        "ListTasks" => (Method::GET, "/tasks".to_owned()),
        "CancelTask" => (Method::POST, format!("/tasks/{id}:cancel")),
        "SubscribeToTask" => (Method::POST, format!("/tasks/{id}:subscribe")),
        "CreateTaskPushNotificationConfig" => (Method::POST, configs),
        "ListTaskPushNotificationConfigs" => (Method::GET, configs),
        "GetTaskPushNotificationConfig" => (Method::GET, format!("{configs}/c")),
        "DeleteTaskPushNotificationConfig" => (Method::DELETE, format!("{configs}/c")),
        _ => (Method::GET, "/extendedAgentCard".to_owned()),
    }
}

/// Calls an operation at the interface with this URL: the answer's text.
async fn at(binding: &str, url: &str, operation: &str, params: &Value) -> String {
    let uri: Uri = url.parse().unwrap();
    let addr = uri.authority().unwrap().as_str().parse().unwrap();
    let headers = [("a2a-version", "1.0"), ("content-type", "application/json")];
    let id = params["id"].as_str().or(params["taskId"].as_str());
    let (verb, path, body) = if binding == "JSONRPC" {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": operation, "params": params});
        (Method::POST, uri.path().to_owned(), body.to_string())
    } else {
        let (verb, path) = route(operation, id.unwrap_or_default());
        let body = if verb == Method::POST {
            params.to_string()
        } else {
            String::new()
        };
        (
            verb,
            format!("{}{path}", uri.path().trim_end_matches('/')),
            body,
        )
    };
    let answer = call(addr, verb, &path, &headers, body).await.unwrap();
    String::from_utf8(answer.body.to_vec()).unwrap()
}

/// OPS-01, CARD-02: whatever interface the card lists has all operations, and they mean the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ops_01_card_02_every_interface_listed_has_all_operations() {
    let server = Configured::start(TWO).await;
    for agent in ["one", "two"] {
        let card = server
            .get(&format!("/agents/{agent}{CARD}"), &[])
            .await
            .json();
        let interfaces = card["supportedInterfaces"].as_array().unwrap();
        assert_eq!(
            interfaces[0]["protocolBinding"], "JSONRPC",
            "the preferred one"
        );
        // gRPC does not speak JSON; it is met in tests of its own.
        let over_json: Vec<_> = interfaces
            .iter()
            .map(|it| {
                (
                    it["protocolBinding"].as_str().unwrap(),
                    it["url"].as_str().unwrap(),
                )
            })
            .filter(|(binding, _)| *binding != "GRPC")
            .collect();
        assert!(over_json.iter().any(|(binding, _)| *binding == "HTTP+JSON"));
        let sent = server
            .rpc(&format!("/{agent}"), "SendMessage", &saying("x"))
            .await;
        let id = &sent["result"]["task"]["id"];
        for operation in OPERATIONS {
            let params = match operation {
                "SendMessage" | "SendStreamingMessage" => saying("x"),
                "ListTasks" | "GetExtendedAgentCard" => json!({}),
                "CreateTaskPushNotificationConfig" => {
                    json!({"taskId": id, "url": "https://x.test/"})
                }
                _ if operation.contains("Push") => json!({"taskId": id, "id": "c"}),
                _ => json!({"id": id}),
            };
            let expected = match operation {
                "SendMessage" | "SendStreamingMessage" => format!("I am {agent}"),
                "GetTask" | "ListTasks" => id.as_str().unwrap().to_owned(),
                "CancelTask" => "TASK_NOT_CANCELABLE".to_owned(),
                "SubscribeToTask" | "GetExtendedAgentCard" => "UNSUPPORTED_OPERATION".to_owned(),
                _ => "PUSH_NOTIFICATION_NOT_SUPPORTED".to_owned(),
            };
            for (binding, url) in &over_json {
                let told = at(binding, url, operation, &params).await;
                assert!(told.contains(&expected), "{binding} {operation}: {told}");
            }
        }
    }
}

/// CARD-04: absolute, and with the scheme and host that clients use.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn card_04_urls_are_absolute_and_as_the_operator_says() {
    for (setting, start) in [
        ("", "http://127.0.0.1:"),
        (
            "public_url: https://agents.example\n",
            "https://agents.example/",
        ),
        (
            "public_url: https://agents.example/a/\n",
            "https://agents.example/a/",
        ),
    ] {
        let server = Configured::start(&format!("{setting}{TWO}")).await;
        for agent in ["one", "two"] {
            let card = server
                .get(&format!("/agents/{agent}{CARD}"), &[])
                .await
                .json();
            for interface in card["supportedInterfaces"].as_array().unwrap() {
                let url = interface["url"].as_str().unwrap();
                if interface["protocolBinding"] == "GRPC" {
                    assert!(!url.contains("://") && url.contains(':'), "{url}");
                    continue;
                }
                assert!(format!("{url}/").starts_with(start), "{url}");
                let uri: Uri = url.parse().unwrap();
                assert!(uri.scheme().is_some() && uri.host().is_some(), "{url}");
            }
        }
    }
}

/// CARD-07: neither other agents nor what is behind this one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn card_07_a_card_gives_nothing_away() {
    let server = Configured::start(TWO).await;
    for path in [CARD, "/agents/two/.well-known/agent-card.json"] {
        let card = server.get(path, &[]).await;
        let text = String::from_utf8(card.body.to_vec()).unwrap();
        for secret in ["inside", "Hidden", "I am", "otherwise", "/tmp"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
}
