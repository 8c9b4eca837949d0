//! Every path of the five systems that we stand in for: their routes lead to the same tasks.

use hyper::Method;
use serde_json::{Value, json};

use crate::configured::{Configured, answered, saying};

const TWO: &str = "
agents:
  - {id: one, script: {rules: [{when: {text: wait}, steps: [{ask: What?}]}], otherwise: [complete: I am one]}}
  - {id: two, script: {rules: [{when: {text: wait}, steps: [{ask: What?}]}], otherwise: [complete: I am two]}}
";

/// Where JSON-RPC is, and who answers there.
const JSON_RPC: [(&str, &str); 12] = [
    ("/", "one"),
    ("/jsonrpc", "one"),
    ("/a2a", "one"),
    ("/a2a/jsonrpc", "one"),
    ("/agents/one/a2a/jsonrpc", "one"),
    ("/agents/two", "two"),
    ("/agents/two/a2a/jsonrpc", "two"),
    ("/a2a/agents/two", "two"),
    ("/a2a/agents/two/jsonrpc", "two"),
    ("/two", "two"),
    ("/two/jsonrpc", "two"),
    ("/a2a/jsonrpc?tenant=two", "two"),
];

/// B-01, B-02, B-03, B-04, B-05, B-10: JSON-RPC of both generations.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn json_rpc_is_at_every_address_in_both_generations() {
    let server = Configured::start(TWO).await;
    for (path, who) in JSON_RPC {
        let response = server.rpc(path, "SendMessage", &saying("who?")).await;
        assert_eq!(answered(&response), format!("I am {who}"), "{path}");
        let message = json!({"message": {
            "kind": "message", "messageId": "m", "role": "user",
            "parts": [{"kind": "text", "text": "who?"}],
        }});
        let response = server.rpc(path, "message/send", &message).await;
        let said = &response["result"]["status"]["message"]["parts"][0];
        let expected = json!({"kind": "text", "text": format!("I am {who}")});
        assert_eq!(said, &expected, "{path}: {response}");
    }
}

/// Where HTTP+JSON begins, and who answers there.
const BASES: [(&str, &str); 6] = [
    ("", "one"),
    ("/a2a", "one"),
    ("/agents/two", "two"),
    ("/a2a/agents/two", "two"),
    ("/two", "two"),
    ("/a2a/two", "two"),
];

/// B-02, B-03, B-04, CF-06: HTTP+JSON of both generations, every operation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http_json_is_at_every_address_in_both_generations() {
    let server = Configured::start(TWO).await;
    for (base, who) in BASES {
        for (prefix, card) in [("", "extendedAgentCard"), ("/v1", "card")] {
            let at = |rest: &str| format!("{base}{prefix}{rest}");
            let ask = async |verb: Method, path: String, body: &str| {
                let answer = server.call(verb.clone(), &path, &[], body).await;
                (answer.status.as_u16(), answer, format!("{verb} {path}"))
            };
            let wait = saying("wait").to_string();
            let (status, answer, what) = ask(Method::POST, at("/message:send"), &wait).await;
            assert_eq!(status, 200, "{what}");
            let task = answer.json()["task"].clone();
            let id = task["id"].as_str().unwrap();
            let (status, answer, what) = ask(
                Method::POST,
                at("/message:stream"),
                &saying("who?").to_string(),
            )
            .await;
            assert_eq!(status, 200, "{what}");
            let said = String::from_utf8(answer.body.to_vec()).unwrap();
            assert!(said.contains(&format!("I am {who}")), "{what}: {said}");
            for (verb, rest, expected) in [
                (Method::GET, "/tasks".to_owned(), 200),
                (Method::GET, format!("/tasks/{id}"), 200),
                (
                    Method::GET,
                    format!("/tasks/{id}:subscribe?afterSequence=9"),
                    200,
                ),
                (Method::POST, format!("/tasks/{id}:cancel"), 200),
                (
                    Method::POST,
                    format!("/tasks/{id}:subscribe?afterSequence=0"),
                    200,
                ),
                (
                    Method::GET,
                    format!("/tasks/{id}/pushNotificationConfigs"),
                    400,
                ),
                (
                    Method::GET,
                    format!("/tasks/{id}/pushNotificationConfigs/c"),
                    400,
                ),
                (
                    Method::DELETE,
                    format!("/tasks/{id}/pushNotificationConfigs/c"),
                    400,
                ),
                (Method::GET, format!("/{card}"), 400),
                (Method::PUT, "/tasks".to_owned(), 405),
                (Method::DELETE, format!("/tasks/{id}"), 405),
                (Method::GET, "/message:send".to_owned(), 405),
                (Method::GET, "/nothing".to_owned(), 404),
            ] {
                // A subscription that waits for more is cut off by what cancels the task.
                if rest.contains("afterSequence=9") {
                    continue;
                }
                let (status, answer, what) = ask(verb, at(&rest), "").await;
                assert_eq!(status, expected, "{what}: {:?}", answer.body);
                if expected >= 400 {
                    let body = answer.json();
                    assert_eq!(body["error"]["code"], expected, "{what}");
                    assert_ne!(body["error"]["details"][0]["reason"], Value::Null, "{what}");
                    // V03-25: clients of 0.3 find it at the top as well.
                    assert_eq!(body["type"].is_string(), prefix == "/v1", "{what}");
                }
                if expected == 405 {
                    assert!(answer.headers.contains_key("allow"), "{what}");
                }
            }
        }
    }
}

/// B-05, B-06: what is beside the operations.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_gateway_has_the_card_and_its_health() {
    let server = Configured::start(TWO).await;
    let card = server.get("/.well-known/agent-card.json", &[]).await;
    for path in [
        "/a2a",
        "/.well-known/agent.json",
        "/a2a/.well-known/agent-card.json",
    ] {
        let same = server.get(path, &[]).await;
        assert_eq!(
            (same.status, &same.body),
            (card.status, &card.body),
            "{path}"
        );
        assert_eq!(same.headers["etag"], card.headers["etag"], "{path}");
    }
    for path in ["/health", "/a2a/health"] {
        let health = server.get(path, &[]).await.json();
        assert_eq!(health["status"], "healthy", "{path}");
        for member in ["service", "version", "a2a_sdk_version", "timestamp"] {
            assert!(health[member].is_string(), "{path}: {member}");
        }
    }
}

/// B-08, CF-03: the extended card by all its names, which no agent has yet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b_08_the_extended_card_is_asked_for_in_many_ways() {
    let server = Configured::start(TWO).await;
    for path in [
        "/agent/authenticatedExtendedCard",
        "/agents/two/agent/authenticatedExtendedCard",
        "/v1/card",
        "/extendedAgentCard",
        "/a2a/extendedAgentCard",
        "/a2a/agents/two/extendedAgentCard",
    ] {
        let answer = server.get(path, &[]).await.json();
        let reason = &answer["error"]["details"][0]["reason"];
        assert_eq!(reason, "UNSUPPORTED_OPERATION", "{path}");
    }
    for method in [
        "GetExtendedAgentCard",
        "agent/getAuthenticatedExtendedCard",
        "agent/authenticatedExtendedCard",
    ] {
        let answer = server.rpc("/", method, &json!({})).await;
        assert_eq!(answer["error"]["code"], -32004, "{method}");
    }
}

/// B-11, CF-01: whoever forgets the header is served where the operator says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b_11_a_lenient_server_needs_no_header() {
    let strict = Configured::start(TWO).await;
    let lenient = Configured::start(&format!("protocol: {{lenient: true}}\n{TWO}")).await;
    for (server, status) in [(&strict, 400), (&lenient, 200)] {
        let to = server.handle.addr();
        let ask = async |path: &str, headers: &[(&str, &str)]| {
            let answer = a2ad_testkit::http::call(to, Method::GET, path, headers, "").await;
            answer.unwrap().status.as_u16()
        };
        assert_eq!(ask("/tasks", &[]).await, status);
        assert_eq!(ask("/tasks", &[("a2a-version", "0.3")]).await, status);
        assert_eq!(ask("/tasks", &[("a2a-version", "2.0")]).await, 400);
        assert_eq!(ask("/v1/tasks", &[]).await, 200);
    }
}

/// V03-16: a file whose content could be base64 text is what the operator says it is, or what its sender does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v03_16_the_operator_says_how_files_have_their_bytes() {
    let body = json!({"message": {
        "messageId": "m", "role": "ROLE_USER",
        "content": [{"text": "who?"}, {"file": {"fileWithBytes": "YWJjZA==", "name": "x"}}],
    }});
    for (files, agent, kept) in [
        ("plain", "curl", "YWJjZA=="),
        ("base64", "node", "abcd"),
        ("auto", "node", "YWJjZA=="),
        ("auto", "python-httpx/0.28", "abcd"),
    ] {
        let yaml = format!("protocol: {{v03_files: {files}}}\n{TWO}");
        let server = Configured::start(&yaml).await;
        let headers = [("user-agent", agent)];
        let sent = server.call(Method::POST, "/v1/message:send", &headers, body.to_string());
        let sent = sent.await.json();
        let id = sent["task"]["id"].as_str().unwrap();
        let task = server.get(&format!("/tasks/{id}"), &[]).await.json();
        assert_eq!(
            task["history"][0]["parts"][1]["raw"], kept,
            "{files} {agent}"
        );
        // It comes back as it was sent.
        let part = &sent["task"]["history"][0]["content"][1];
        assert_eq!(part["file"]["fileWithBytes"], "YWJjZA==", "{files} {agent}");
    }
}

/// B-13: a body of 0.3 may repeat what the path says, but neither contradict it nor be anything else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b_13_a_body_of_0_3_cannot_contradict_its_path() {
    let server = Configured::start(TWO).await;
    let wait = saying("wait").to_string();
    let sent = server.call(Method::POST, "/message:send", &[], wait).await;
    let id = sent.json()["task"]["id"].as_str().unwrap().to_owned();
    for action in ["cancel", "subscribe?afterSequence=0"] {
        let path = format!("/v1/tasks/{id}:{action}");
        for body in [
            "x[",
            "[]",
            r#"{"name":"tasks/other"}"#,
            r#"{"name":5}"#,
            r#"{"metadata":5}"#,
        ] {
            let answer = server.call(Method::POST, &path, &[], body).await;
            assert_eq!(answer.status, 400, "{action} {body}");
        }
    }
    let path = format!("/v1/tasks/{id}:cancel");
    let body = json!({"name": format!("tasks/{id}"), "metadata": {"why": "enough"}});
    let answer = server
        .call(Method::POST, &path, &[], body.to_string())
        .await;
    assert_eq!(answer.status, 200);
}

/// B-12, B-13: bodies of other types, and broken ones, are answered in A2A's own shapes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b_12_media_types_and_broken_bodies_are_answered_in_the_protocols_shapes() {
    let server = Configured::start(TWO).await;
    let body = saying("who?").to_string();
    for (path, content_type, expected) in [
        ("/message:send", "application/json", 200),
        ("/message:send", "application/a2a+json; charset=utf-8", 200),
        ("/message:send", "text/plain", 415),
        ("/v1/message:send", "application/json; charset=utf-8", 200),
        ("/v1/message:send", "application/xml", 415),
    ] {
        let headers = [("a2a-version", "1.0"), ("content-type", content_type)];
        let to = server.handle.addr();
        let answer = a2ad_testkit::http::call(to, Method::POST, path, &headers, body.clone());
        let answer = answer.await.unwrap();
        let what = format!("{path} {content_type}");
        // The protocol has its own status for it (ERR-04).
        let refused = answer.status != 200;
        assert_eq!(refused, expected != 200, "{what}");
        if refused {
            let reason = &answer.json()["error"]["details"][0]["reason"];
            assert_eq!(reason, "CONTENT_TYPE_NOT_SUPPORTED", "{what}");
        }
    }
    for path in ["/message:send", "/v1/message:send"] {
        for (body, reason) in [
            ("", "PARSE"),
            ("{", "PARSE"),
            ("[]", "INVALID_REQUEST"),
            (r#"{"message":5}"#, "INVALID_PARAMS"),
        ] {
            let answer = server.call(Method::POST, path, &[], body).await.json();
            let details = &answer["error"]["details"];
            let found = details[0]["reason"].as_str().unwrap();
            assert!(found.contains(reason), "{path} {body}: {found}");
            if reason == "INVALID_PARAMS" {
                let field = &details[1]["fieldViolations"][0]["field"];
                assert_eq!(field, "message", "{path} {body}");
            }
        }
    }
}
