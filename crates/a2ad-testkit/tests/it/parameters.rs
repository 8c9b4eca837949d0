//! Service parameters: what they switch on, and what they do not.

use a2ad_testkit::http::{Answer, call};
use hyper::Method;
use serde_json::{Value, json};

use crate::configured::{Configured, saying};

const STRICT: &str = "
agents:
  - {id: lenient, streaming: false, script: {otherwise: [complete: Yes]}}
  - id: strict
    script: {otherwise: [complete: Yes]}
    card:
      capabilities:
        extensions: [{uri: 'urn:x:must', required: true}, {uri: 'urn:x:may'}]
";

async fn plain(server: &Configured, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
    let mut all = vec![("content-type", "application/json")];
    all.extend_from_slice(headers);
    let body = body.to_string();
    let answer = call(server.handle.addr(), Method::POST, path, &all, body).await;
    answer.unwrap()
}

fn rpc(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

/// PARAM-01: of the names, not of the values.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn param_01_names_are_the_same_in_any_case() {
    let server = Configured::start(STRICT).await;
    for (version, extensions) in [
        ("a2a-version", "a2a-extensions"),
        ("A2A-Version", "A2A-Extensions"),
        ("A2A-VERSION", "A2A-EXTENSIONS"),
    ] {
        for (path, body) in [
            ("/strict", rpc("SendMessage", &saying("x"))),
            ("/strict/message:send", saying("x")),
        ] {
            let ask = async |uri| {
                plain(&server, path, &[(version, "1.0"), (extensions, uri)], &body).await
            };
            let answer = ask("urn:x:must").await;
            assert_eq!(answer.status, 200, "{version}");
            assert!(answer.json().get("error").is_none(), "{}", answer.json());
            let told = ask("URN:X:MUST").await.json()["error"].to_string();
            assert!(told.contains("EXTENSION_SUPPORT_REQUIRED"), "{told}");
        }
    }
    for query in ["A2A-Version=1.0", "a2a-version=1.0", "A2A-VERSION=1.0"] {
        let answer = plain(
            &server,
            &format!("/message:send?{query}"),
            &[],
            &saying("x"),
        )
        .await;
        assert_eq!(answer.status, 200, "{query}");
    }
}

/// RPC-09, REST-08: in headers, and nowhere in a body.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parameters_in_a_body_are_none() {
    let server = Configured::start(STRICT).await;
    let mut params = saying("x");
    params["A2A-Version"] = "1.0".into();
    params["a2a-version"] = "1.0".into();
    params["A2A-Extensions"] = "urn:x:must".into();
    let told = plain(&server, "/", &[], &rpc("SendMessage", &params)).await;
    assert_eq!(told.json()["error"]["code"], -32009);
    let told = plain(&server, "/message:send", &[], &params).await;
    assert_eq!(told.status, 400);
    let headers = [("a2a-version", "1.0")];
    let told = plain(&server, "/strict", &headers, &rpc("SendMessage", &params)).await;
    assert_eq!(told.json()["error"]["code"], -32008);
}

/// SEND-13: what a message says of its extensions is kept, and switches nothing on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn send_13_the_extensions_of_a_message_switch_nothing_on() {
    let server = Configured::start(STRICT).await;
    let mut params = saying("x");
    params["message"]["extensions"] = json!(["urn:x:must", "urn:x:may"]);
    for (path, body) in [
        ("/strict", rpc("SendMessage", &params)),
        ("/strict/message:send", params.clone()),
    ] {
        let told = server.call(Method::POST, path, &[], body.to_string()).await;
        let told = told.json()["error"].to_string();
        assert!(told.contains("EXTENSION_SUPPORT_REQUIRED"), "{told}");
        let asked = [("a2a-extensions", "urn:x:must")];
        let answer = server
            .call(Method::POST, path, &asked, body.to_string())
            .await;
        assert_eq!(answer.headers["a2a-extensions"], "urn:x:must");
        let answer = answer.json();
        let task = &answer.get("result").unwrap_or(&answer)["task"];
        assert_eq!(
            task["history"][0]["extensions"],
            params["message"]["extensions"]
        );
    }
}

/// EXT-01, EXT-06: each is in the card, and ours says which version of it we mean.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ext_01_ext_06_what_can_be_switched_on_is_declared() {
    let server = Configured::start(STRICT).await;
    for agent in ["lenient", "strict"] {
        let path = format!("/{agent}/.well-known/agent-card.json");
        let card = server.get(&path, &[]).await.json();
        let declared = card["capabilities"]["extensions"].as_array().unwrap();
        let uris: Vec<&str> = declared
            .iter()
            .map(|it| it["uri"].as_str().unwrap())
            .collect();
        let asked = format!(
            "urn:x:must,urn:x:may,urn:x:hidden,urn:a2ad:replay:v1,urn:a2ad:replay:v2,{}",
            uris.join(",")
        );
        let headers = [("a2a-extensions", asked.as_str())];
        let path = format!("/{agent}");
        let answer = server
            .rpc_with(&path, &headers, "ListTasks", &json!({}))
            .await;
        let on = answer.headers["a2a-extensions"].to_str().unwrap();
        assert_eq!(
            on.split(", ").collect::<Vec<_>>(),
            uris,
            "all of them and no others"
        );
        for ours in uris.iter().filter(|uri| uri.starts_with("urn:a2ad:")) {
            let version = ours.rsplit(':').next().unwrap();
            assert!(
                version.starts_with('v') && version[1..].parse::<u32>().is_ok(),
                "{ours}"
            );
        }
    }
}

/// EXT-07: with or without our extension, the same bytes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ext_07_an_extension_adds_nothing_to_the_protocols_objects() {
    let server = Configured::start("agents: [{id: a, echo: }]").await;
    let sent = server.rpc("/", "SendMessage", &saying("x")).await;
    let by_id = json!({"id": sent["result"]["task"]["id"]});
    let ours = ("a2a-extensions", "urn:a2ad:replay:v1");
    for (method, params, more) in [
        ("GetTask", &by_id, ("x", "x")),
        ("ListTasks", &json!({"includeArtifacts": true}), ("x", "x")),
        ("SubscribeToTask", &by_id, ("last-event-id", "0")),
    ] {
        let without = server.rpc_with("/", &[more], method, params).await;
        let with = server.rpc_with("/", &[more, ours], method, params).await;
        assert_eq!(with.headers["a2a-extensions"], "urn:a2ad:replay:v1");
        assert_eq!(with.body, without.body, "{method}");
    }
}

/// OPS-04: each request has everything wrong from some point on, and is told the first of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ops_04_of_several_things_wrong_the_first_is_told() {
    let server = Configured::start(STRICT).await;
    let version = ("a2a-version", "1.0");
    let must = ("a2a-extensions", "urn:x:must");
    let reason = |answer: &Answer| {
        let error = answer.json()["error"].clone();
        let details = error.get("data").unwrap_or(&error["details"]).clone();
        details[0]["reason"].as_str().unwrap().to_owned()
    };
    let bad = json!({"tenant": "strict", "message": {"parts": [{}]}});
    let elsewhere = json!({"tenant": "nobody", "message": {"taskId": "nope"}});
    for (headers, path, params, expected) in [
        (&[][..], "/lenient", &elsewhere, "VERSION_NOT_SUPPORTED"),
        (&[version], "/lenient", &elsewhere, "INVALID_PARAMS"),
        (&[version], "/strict", &bad, "EXTENSION_SUPPORT_REQUIRED"),
        (&[version, must], "/strict", &bad, "INVALID_PARAMS"),
    ] {
        let body = rpc("SendStreamingMessage", params);
        let told = plain(&server, path, headers, &body).await;
        assert_eq!(reason(&told), expected, "{params}");
        let told = plain(&server, &format!("{path}/message:stream"), headers, params).await;
        assert_eq!(reason(&told), expected, "{params}");
    }
    // A malformed request is told so before what the agent lacks, and that before what is not there.
    let ended = server.rpc("/lenient", "SendMessage", &saying("x")).await;
    let ended = &ended["result"]["task"]["id"];
    for (method, params, expected) in [
        ("SubscribeToTask", json!({"id": 5}), "INVALID_PARAMS"),
        (
            "SubscribeToTask",
            json!({"id": "nope"}),
            "UNSUPPORTED_OPERATION",
        ),
        ("CancelTask", json!({"id": "nope"}), "TASK_NOT_FOUND"),
        ("CancelTask", json!({"id": ended}), "TASK_NOT_CANCELABLE"),
    ] {
        let told = server.rpc_with("/lenient", &[], method, &params).await;
        assert_eq!(reason(&told), expected, "{method} {params}");
    }
    let path = "/lenient/tasks/nope:subscribe?afterSequence=x";
    let told = server.get(path, &[]).await;
    assert_eq!(reason(&told), "UNSUPPORTED_OPERATION");
}
