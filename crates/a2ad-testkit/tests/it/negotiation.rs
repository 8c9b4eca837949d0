//! What an agent offers, requires and takes.

use hyper::Method;
use serde_json::{Value, json};

use crate::configured::{Configured, answered, for_tenant, grpc_reason, saying};

/// All there are, as a test of the gRPC descriptors holds.
pub(crate) const METHODS: [(&str, &str); 11] = [
    (
        "SendMessage",
        r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]}}"#,
    ),
    (
        "SendStreamingMessage",
        r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]}}"#,
    ),
    ("GetTask", r#"{"id":"t"}"#),
    ("ListTasks", "{}"),
    ("CancelTask", r#"{"id":"t"}"#),
    ("SubscribeToTask", r#"{"id":"t"}"#),
    (
        "CreateTaskPushNotificationConfig",
        r#"{"taskId":"t","url":"http://x.test/"}"#,
    ),
    (
        "GetTaskPushNotificationConfig",
        r#"{"taskId":"t","id":"c"}"#,
    ),
    ("ListTaskPushNotificationConfigs", r#"{"taskId":"t"}"#),
    (
        "DeleteTaskPushNotificationConfig",
        r#"{"taskId":"t","id":"c"}"#,
    ),
    ("GetExtendedAgentCard", "{}"),
];

pub(crate) const PATHS: [(Method, &str, &str); 11] = [
    (Method::POST, "/message:send", METHODS[0].1),
    (Method::POST, "/message:stream", METHODS[1].1),
    (Method::GET, "/tasks/t", ""),
    (Method::GET, "/tasks", ""),
    (Method::POST, "/tasks/t:cancel", ""),
    (Method::GET, "/tasks/t:subscribe", ""),
    (
        Method::POST,
        "/tasks/t/pushNotificationConfigs",
        METHODS[6].1,
    ),
    (Method::GET, "/tasks/t/pushNotificationConfigs/c", ""),
    (Method::GET, "/tasks/t/pushNotificationConfigs", ""),
    (Method::DELETE, "/tasks/t/pushNotificationConfigs/c", ""),
    (Method::GET, "/extendedAgentCard", ""),
];

const REQUIRING: &str = "
agents:
  - id: strict
    echo:
    card:
      capabilities:
        extensions:
          - {uri: 'urn:x:must', required: true}
          - {uri: 'urn:x:may'}
";

/// EXT-04: every operation, on every binding; the card apart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ext_04_required_extensions_are_required_of_every_operation() {
    let server = Configured::start(REQUIRING).await;
    assert_eq!(
        server.get("/.well-known/agent-card.json", &[]).await.status,
        200
    );
    for (method, params) in METHODS {
        let params: Value = serde_json::from_str(params).unwrap();
        for headers in [&[][..], &[("a2a-extensions", "urn:x:may")]] {
            let error =
                server.rpc_with("/", headers, method, &params).await.json()["error"].clone();
            assert_eq!(error["code"], -32008, "{method}");
            assert_eq!(error["data"][0]["reason"], "EXTENSION_SUPPORT_REQUIRED");
            assert_eq!(
                error["data"][0]["metadata"]["requiredExtensions"],
                "urn:x:must"
            );
        }
        let may = [("a2a-extensions", "urn:x:may")];
        let answer = server.grpc(method, &may, &params).await;
        assert_eq!(
            grpc_reason(&answer),
            "EXTENSION_SUPPORT_REQUIRED",
            "{method}"
        );
        let headers = [("a2a-extensions", "urn:x:must")];
        let answer = server.grpc(method, &headers, &params).await;
        if answer.status().code != 0 {
            assert_ne!(grpc_reason(&answer), "EXTENSION_SUPPORT_REQUIRED");
        }
        let answer = server.rpc_with("/", &headers, method, &params).await;
        let text = String::from_utf8_lossy(&answer.body);
        assert!(!text.contains("-32008"), "{method}: {text}");
    }
    for (verb, path, body) in PATHS {
        let answer = server.call(verb, path, &[], body).await;
        assert_eq!(answer.status, 400, "{path}");
        let error = &answer.json()["error"];
        assert_eq!(
            error["details"][0]["reason"], "EXTENSION_SUPPORT_REQUIRED",
            "{path}"
        );
        assert_eq!(error["status"], "FAILED_PRECONDITION");
    }
    // Also of a request that is wrong otherwise (OPS-04).
    let error = server.rpc("/", "GetTask", &json!({"id": 5})).await["error"].clone();
    assert_eq!(error["code"], -32008);
}

/// EXT-05.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ext_05_what_was_switched_on_is_echoed() {
    let server = Configured::start(REQUIRING).await;
    let asked = [
        ("a2a-extensions", "urn:x:other,urn:x:may"),
        ("a2a-extensions", "urn:x:must"),
    ];
    for (method, params) in [METHODS[0], METHODS[1], METHODS[3]] {
        let params: Value = serde_json::from_str(params).unwrap();
        let answer = server.rpc_with("/", &asked, method, &params).await;
        let over_grpc = server.grpc(method, &asked, &params).await;
        for headers in [answer.headers, over_grpc.headers] {
            assert_eq!(
                headers["a2a-extensions"], "urn:x:must, urn:x:may",
                "{method}"
            );
        }
    }
    for (verb, path, body) in [&PATHS[0], &PATHS[1], &PATHS[3]] {
        let answer = server.call(verb.clone(), path, &asked, *body).await;
        assert_eq!(
            answer.headers["a2a-extensions"], "urn:x:must, urn:x:may",
            "{path}"
        );
    }
    let plain = Configured::start("agents: [{id: a, echo: }]").await;
    let answer = plain.rpc_with("/", &asked, "ListTasks", &json!({})).await;
    assert!(answer.headers.get("a2a-extensions").is_none());
    let replay = [("a2a-extensions", "urn:a2ad:replay:v1")];
    let answer = plain.rpc_with("/", &replay, "ListTasks", &json!({})).await;
    assert_eq!(answer.headers["a2a-extensions"], "urn:a2ad:replay:v1");
}

/// OPS-02: the gates, and what the card says of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ops_02_what_is_switched_off_is_refused_as_the_card_says() {
    let server = Configured::start(
        "agents: [{id: off, streaming: false, push: false, extended_card: false, echo: }, \
         {id: on, streaming: true, extended_card: true, echo: }]",
    )
    .await;
    for (agent, streaming, extended) in [("off", false, false), ("on", true, true)] {
        let card = server
            .get(&format!("/{agent}/.well-known/agent-card.json"), &[])
            .await
            .json();
        let flags = &card["capabilities"];
        assert_eq!(flags["streaming"], streaming);
        assert_eq!(flags["extendedAgentCard"], extended);
        assert_eq!(flags["pushNotifications"], false);
    }
    let gates = [
        ("off", 1, "UNSUPPORTED_OPERATION"),
        ("off", 5, "UNSUPPORTED_OPERATION"),
        ("off", 10, "UNSUPPORTED_OPERATION"),
        ("on", 10, "EXTENDED_AGENT_CARD_NOT_CONFIGURED"),
    ];
    let push = (6..10)
        .flat_map(|at| ["off", "on"].map(|agent| (agent, at, "PUSH_NOTIFICATION_NOT_SUPPORTED")));
    for (agent, at, reason) in gates.into_iter().chain(push) {
        let (method, params) = METHODS[at];
        let params: Value = serde_json::from_str(params).unwrap();
        let told = server.rpc(&format!("/{agent}"), method, &params).await;
        assert_eq!(
            told["error"]["data"][0]["reason"], reason,
            "{agent} {method}"
        );
        let answer = server.grpc(method, &[], &for_tenant(agent, params)).await;
        assert_eq!(grpc_reason(&answer), reason, "{agent} {method}");
        let (verb, path, body) = &PATHS[at];
        let answer = server
            .call(verb.clone(), &format!("/{agent}{path}"), &[], *body)
            .await;
        assert_eq!(
            answer.json()["error"]["details"][0]["reason"],
            reason,
            "{agent} {path}"
        );
    }
    let told = server.rpc("/off", "SendMessage", &saying("hi")).await;
    assert_eq!(
        told["result"]["task"]["status"]["state"],
        "TASK_STATE_COMPLETED"
    );
}

const PICKY: &str = "
agents:
  - id: picky
    script:
      otherwise: [complete: Taken]
    card:
      default_input_modes: [text/plain]
      default_output_modes: [text/plain]
      skills:
        - {id: see, inputModes: [image/*], outputModes: [image/png]}
";

/// SEND-09: of the card or of a skill; before anything is stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn send_09_only_the_media_types_of_the_card_and_its_skills_are_taken() {
    let server = Configured::start(PICKY).await;
    for (part, taken) in [
        (json!({"text": "x"}), true),
        (
            json!({"text": "x", "mediaType": "Text/Plain; charset=utf-8"}),
            true,
        ),
        (json!({"raw": "AA==", "mediaType": "image/webp"}), true),
        (
            json!({"url": "https://x.test/a.png", "mediaType": "image/png"}),
            true,
        ),
        (json!({"text": "x", "mediaType": "text/html"}), false),
        (json!({"data": {"a": 1}}), false),
        (json!({"raw": "AA=="}), false),
        (json!({"url": "https://x.test/a"}), false),
        // What a part is of is one type, not a range.
        (json!({"raw": "AA==", "mediaType": "image/*"}), false),
        (json!({"text": "x", "mediaType": "text/*"}), false),
        (json!({"text": "x", "mediaType": "text"}), false),
        (json!({"text": "x", "mediaType": " */* ;q=1"}), false),
        (json!({"text": "x", "mediaType": "*"}), false),
    ] {
        let mut params = saying("x");
        params["message"]["parts"] = json!([{"text": "first"}, part]);
        for (method, path) in [
            ("SendMessage", "/message:send"),
            ("SendStreamingMessage", "/message:stream"),
        ] {
            let told = server.rpc_with("/", &[], method, &params).await;
            let body = params.to_string();
            let rest = server.call(Method::POST, path, &[], body).await;
            if taken {
                assert_eq!(rest.status, 200, "{part}");
                assert!(
                    !String::from_utf8_lossy(&told.body).contains("error"),
                    "{part}"
                );
                continue;
            }
            let answer = server.grpc(method, &[], &params).await;
            assert_eq!(grpc_reason(&answer), "CONTENT_TYPE_NOT_SUPPORTED", "{part}");
            let (told, rest) = (told.json(), rest.json());
            assert_eq!(told["error"]["code"], -32005, "{part}");
            let blamed = &told["error"]["data"][1]["fieldViolations"][0];
            assert_eq!(blamed["field"], "message.parts[1].mediaType", "{told}");
            assert_eq!(rest["error"]["details"], told["error"]["data"]);
        }
    }
    let listed = server.rpc("/", "ListTasks", &json!({})).await;
    assert_eq!(
        listed["result"]["totalSize"], 16,
        "nothing of what was refused"
    );
}

/// SEND-08: nothing acceptable is an error before work starts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn send_08_a_client_that_takes_nothing_of_ours_is_told_before_work_starts() {
    let server = Configured::start(PICKY).await;
    for (modes, met) in [
        (json!([]), true),
        (json!(["text/plain"]), true),
        (json!(["application/pdf", "IMAGE/PNG"]), true),
        (json!(["image/*"]), true),
        (json!(["text"]), true),
        (json!(["application/pdf"]), false),
        (json!(["image/webp", "text/html"]), false),
    ] {
        let mut params = saying("x");
        params["configuration"] = json!({"acceptedOutputModes": modes});
        let told = server.rpc("/", "SendMessage", &params).await;
        if met {
            assert_eq!(answered(&told), "Taken", "{modes}");
        } else {
            assert_eq!(told["error"]["code"], -32005, "{modes}");
            let blamed = &told["error"]["data"][1]["fieldViolations"][0]["field"];
            assert_eq!(blamed, "configuration.acceptedOutputModes");
        }
    }
    let listed = server.rpc("/", "ListTasks", &json!({})).await;
    assert_eq!(listed["result"]["totalSize"], 5);
}
