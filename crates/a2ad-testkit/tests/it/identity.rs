//! Who may call: credentials, scopes, and what is open to all.

use std::time::Duration;

use a2ad_server::config::Source;
use a2ad_server::{Scope, Server, StartError, Tokens};
use a2ad_testkit::http::Answer;
use hyper::Method;
use serde_json::{Value, json};

use crate::configured::{Configured, answered, for_tenant, grpc_reason, saying, try_start};

const CLOSED: &str = "
auth:
  tokens:
    - {name: alice, token: s3cret-alice}
    - {name: mallory, token: s3cret-mallory}
    - {name: dash, token: s3cret-dash, scopes: [monitor]}
    - {name: narrow, token: s3cret-narrow, scopes: ['agents:two']}
  basic: [{user: bob, password: 'pass:word'}]
  api_keys: [{name: ci, key: k3y}]
  token_header: X-SB-Token
agents:
  - {id: one, script: {otherwise: [complete: I am one]}}
  - {id: two, script: {otherwise: [complete: I am two]}}
";

const ALICE: (&str, &str) = ("authorization", "Bearer s3cret-alice");
const MALLORY: (&str, &str) = ("authorization", "Bearer s3cret-mallory");
const DASH: (&str, &str) = ("authorization", "Bearer s3cret-dash");
const NARROW: (&str, &str) = ("authorization", "Bearer s3cret-narrow");
const CARD: &str = "/.well-known/agent-card.json";

fn challenges(answer: &Answer) -> Vec<&str> {
    let all = answer.headers.get_all("www-authenticate").iter();
    all.map(|line| line.to_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_good_credential_opens_the_door() {
    let server = Configured::start(CLOSED).await;
    for credential in [
        ALICE,
        ("x-sb-token", "s3cret-alice"),
        ("authorization", "Basic Ym9iOnBhc3M6d29yZA=="),
        ("x-api-key", "k3y"),
    ] {
        let answer = server
            .rpc_with("/", &[credential], "SendMessage", &saying("x"))
            .await;
        assert_eq!(answered(&answer.json()), "I am one", "{credential:?}");
        let answer = server.get("/tasks", &[credential]).await;
        assert_eq!(answer.status, 200, "{credential:?}");
        let answer = server.grpc("ListTasks", &[credential], &json!({})).await;
        assert_eq!(answer.status().code, 0, "{credential:?}");
    }
}

/// AUTH-02, AUTH-03, AUTH-05: the same wherever it is asked, and before it is said whether anything is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn auth_03_without_a_good_credential_everything_is_401() {
    let server = Configured::start(CLOSED).await;
    let bad: [&[(&str, &str)]; 9] = [
        &[],
        &[("authorization", "")],
        &[("authorization", "Bearer ")],
        &[("authorization", "Bearer wrong")],
        &[
            ("authorization", "Bearer s3cret-alice"),
            ("authorization", "Bearer s3cret-alice"),
        ],
        &[("authorization", "Digest s3cret-alice")],
        &[("authorization", "Basic Ym9i")],
        &[("x-api-key", "s3cret-alice")],
        &[("cookie", "token=s3cret-alice")],
    ];
    let paths = [
        (Method::POST, "/"),
        (Method::GET, "/"),
        (Method::POST, "/agents/one"),
        (Method::POST, "/agents/nobody"),
        (Method::GET, "/nobody"),
        (Method::GET, "/metrics"),
        (Method::DELETE, "/metrics"),
        (Method::GET, "/?token=s3cret-alice"),
        (Method::POST, "/a2a/agents/two/"),
    ];
    for credentials in bad {
        for (verb, path) in &paths {
            let answer = server.call(verb.clone(), path, credentials, "{}").await;
            assert_eq!(answer.status, 401, "{verb} {path} {credentials:?}");
            assert_eq!(answer.body, r#"{"error":"Unauthorized"}"#, "{verb} {path}");
            assert_eq!(answer.headers["content-type"], "application/json");
            assert_eq!(
                challenges(&answer),
                [
                    r#"Bearer realm="a2ad""#,
                    r#"Basic realm="a2ad", charset="UTF-8""#,
                    r#"ApiKey realm="a2ad", header="X-Api-Key""#,
                ]
            );
        }
        for path in [
            "/tasks",
            "/agents/nobody/tasks/t",
            "/message:send",
            "/one/tasks/t:cancel",
        ] {
            let answer = server.get(path, credentials).await;
            assert_eq!(answer.status, 401, "{path}");
            let error = answer.json()["error"].clone();
            assert_eq!(
                (&error["code"], &error["status"]),
                (&json!(401), &json!("UNAUTHENTICATED"))
            );
            assert!(!challenges(&answer).is_empty());
        }
        for method in ["SendMessage", "ListTasks", "GetExtendedAgentCard"] {
            let params = if method == "SendMessage" {
                saying("x")
            } else {
                json!({})
            };
            let answer = server.grpc(method, credentials, &params).await;
            assert_eq!(answer.status().code, 16, "{method} {credentials:?}");
            assert_eq!(grpc_reason(&answer), "UNAUTHENTICATED");
            assert_eq!(answer.headers["www-authenticate"], r#"Bearer realm="a2ad""#);
            assert_eq!(answer.headers["x-sb-token"], "required");
        }
    }
    // Nothing of all that was done.
    let listed = server
        .rpc_with("/", &[ALICE], "ListTasks", &json!({}))
        .await
        .json();
    assert_eq!(listed["result"]["totalSize"], 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cards_and_health_are_open_unless_they_are_closed() {
    let health = ["/livez", "/readyz", "/healthz", "/health"];
    let server = Configured::start(CLOSED).await;
    for path in health
        .iter()
        .chain(&[CARD, "/agents/two/.well-known/agent.json"])
    {
        for credentials in [&[][..], &[("authorization", "Bearer wrong")], &[NARROW]] {
            assert_eq!(server.get(path, credentials).await.status, 200, "{path}");
        }
    }
    let protected = CLOSED.replace(
        "auth:",
        "auth:\n  card: protected\n  health: protected\n  challenge: none",
    );
    let server = Configured::start(&protected).await;
    for path in health.iter().chain(&[CARD]) {
        let answer = server.get(path, &[]).await;
        assert_eq!(answer.status, 401, "{path}");
        assert!(challenges(&answer).is_empty(), "challenge: none");
        assert_eq!(server.get(path, &[ALICE]).await.status, 200, "{path}");
    }
    let card = server.get(CARD, &[ALICE]).await;
    assert_eq!(card.headers["cache-control"], "private, max-age=60");
    assert_eq!(card.headers["vary"], "Authorization");
    // Whom one may not call one does not see.
    let answer = server.get(CARD, &[NARROW]).await;
    assert_eq!(answer.status, 403);
    let info = &answer.json()["error"]["details"][0];
    assert_eq!(info["metadata"]["requiredScope"], "agents");
    let second = "/agents/two/.well-known/agent-card.json";
    assert_eq!(server.get(second, &[NARROW]).await.status, 200);
    let first = server
        .get("/agents/one/.well-known/agent-card.json", &[NARROW])
        .await;
    assert_eq!(first.status, 404);
}

/// A-13, A-16.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cards_say_exactly_what_is_on() {
    let server = Configured::start(CLOSED).await;
    let card = server.get(CARD, &[]).await.json();
    assert_eq!(
        card["securitySchemes"],
        json!({
            "bearerAuth": {
                "httpAuthSecurityScheme": {"scheme": "bearer"},
                "type": "http", "scheme": "bearer",
            },
            "tokenAuth": {
                "apiKeySecurityScheme": {"location": "header", "name": "X-SB-Token"},
                "type": "apiKey", "in": "header", "name": "X-SB-Token",
            },
            "basicAuth": {
                "httpAuthSecurityScheme": {"scheme": "basic"},
                "type": "http", "scheme": "basic",
            },
            "apiKeyAuth": {
                "apiKeySecurityScheme": {"location": "header", "name": "X-API-Key"},
                "type": "apiKey", "in": "header", "name": "X-API-Key",
            },
        })
    );
    let older = ["bearerAuth", "tokenAuth", "basicAuth", "apiKeyAuth"];
    let older: Vec<Value> = older.map(|name| json!({name: []})).to_vec();
    assert_eq!(card["security"], Value::Array(older));
    let any_one: Vec<Value> = ["bearerAuth", "tokenAuth", "basicAuth", "apiKeyAuth"]
        .map(|name| json!({"schemes": {name: {}}}))
        .to_vec();
    assert_eq!(card["securityRequirements"], Value::Array(any_one));
    let named = CLOSED.replace("auth:", "auth:\n  scheme_names: {bearer: lecticBearer}");
    let card = Configured::start(&named).await.get(CARD, &[]).await.json();
    assert!(card["securitySchemes"]["lecticBearer"].is_object());
    let open = Configured::start("agents: [{id: a, echo: }]").await;
    let card = open.get(CARD, &[]).await.json();
    assert!(card.get("securitySchemes").is_none() && card.get("securityRequirements").is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scopes_limit_what_a_credential_is_good_for() {
    let server = Configured::start(CLOSED).await;
    // To one agent: the other is not there.
    let answer = server
        .rpc_with("/two", &[NARROW], "SendMessage", &saying("x"))
        .await;
    assert_eq!(answered(&answer.json()), "I am two");
    let mut told = Vec::new();
    for agent in ["one", "nobody"] {
        for (verb, path) in [
            (Method::POST, format!("/agents/{agent}")),
            (Method::GET, format!("/{agent}/tasks/t")),
            (Method::POST, format!("/{agent}")),
        ] {
            let answer = server.call(verb, &path, &[NARROW], "{}").await;
            told.push(format!("{} {:?}", answer.status, answer.body));
        }
        let params = for_tenant(agent, json!({"id": "t"}));
        let answer = server.rpc_with("/", &[NARROW], "GetTask", &params).await;
        told.push(answer.json().to_string());
        let answer = server.grpc("GetTask", &[NARROW], &params).await;
        told.push(format!("{:?}", answer.status()));
    }
    let (one, nobody) = told.split_at(told.len() / 2);
    assert_eq!(one, nobody);
    // That there is an agent at `/` is no secret, but it is not theirs.
    let answer = server
        .rpc_with("/", &[NARROW], "SendMessage", &saying("x"))
        .await;
    assert_eq!(answer.status, 403);
    let info = &answer.json()["error"]["data"][0];
    assert_eq!(info["reason"], "PERMISSION_DENIED");
    assert_eq!(info["metadata"]["requiredScope"], "agents");
    let answer = server.grpc("SendMessage", &[NARROW], &saying("x")).await;
    assert_eq!(
        (answer.status().code, grpc_reason(&answer).as_str()),
        (7, "PERMISSION_DENIED")
    );
    // To metrics alone.
    assert_eq!(server.get("/metrics", &[DASH]).await.status, 200);
    let answer = server.get("/metrics", &[ALICE]).await;
    assert_eq!(answer.status, 403);
    assert_eq!(
        answer.json()["error"]["details"][0]["metadata"]["requiredScope"],
        "monitor"
    );
    let answer = server.rpc_with("/", &[DASH], "ListTasks", &json!({})).await;
    assert_eq!(answer.status, 403);
}

/// SCOPE-01, SCOPE-02, GET-02: somebody else's is not there, in the same bytes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scope_01_what_is_somebody_elses_is_not_there() {
    let yaml = CLOSED.replace("otherwise: [complete: I am one]", "otherwise: [ask: What?]");
    let server = Configured::start(&yaml).await;
    let mut first = saying("mine");
    first["message"]["contextId"] = "shared".into();
    first["message"]["messageId"] = "0198a5b2-7c1e-7f3a-9d2e-3b1f5c7a9e10".into();
    let task = server
        .rpc_with("/", &[ALICE], "SendMessage", &first)
        .await
        .json();
    let id = task["result"]["task"]["id"].as_str().unwrap().to_owned();
    // An id of the same make that nobody has.
    let nobody: String = id
        .chars()
        .rev()
        .map(|c| if c == '0' { '1' } else { c })
        .collect();
    let nobody: String = nobody.chars().rev().collect();
    let follow_up = |id: &str| {
        let mut params = saying("yours");
        params["message"]["taskId"] = id.into();
        params
    };
    let in_context = |id: &str| {
        let mut params = saying("x");
        params["message"]["referenceTaskIds"] = json!([id]);
        params["message"]["taskId"] = id.into();
        params
    };
    type Params<'a> = Box<dyn Fn(&str) -> Value + 'a>;
    let operations: Vec<(&str, Params<'_>)> = vec![
        ("GetTask", Box::new(|id| json!({ "id": id }))),
        ("CancelTask", Box::new(|id| json!({ "id": id }))),
        ("SubscribeToTask", Box::new(|id| json!({ "id": id }))),
        ("SendMessage", Box::new(follow_up)),
        ("SendStreamingMessage", Box::new(follow_up)),
        ("SendMessage", Box::new(in_context)),
        (
            "CreateTaskPushNotificationConfig",
            Box::new(|id| json!({"taskId": id, "url": "http://x.test/"})),
        ),
        (
            "GetTaskPushNotificationConfig",
            Box::new(|id| json!({"taskId": id, "id": "c"})),
        ),
        (
            "ListTaskPushNotificationConfigs",
            Box::new(|id| json!({"taskId": id})),
        ),
        (
            "DeleteTaskPushNotificationConfig",
            Box::new(|id| json!({"taskId": id, "id": "c"})),
        ),
    ];
    // Every operation has its row, but for those that are about no task.
    let mut covered: Vec<&str> = operations.iter().map(|(method, _)| *method).collect();
    covered.extend(["ListTasks", "GetExtendedAgentCard"]);
    for (method, _) in crate::negotiation::METHODS {
        assert!(covered.contains(&method), "{method} has no row here");
    }
    // The same for paths.
    let tails = [
        (Method::GET, ""),
        (Method::POST, ":cancel"),
        (Method::GET, ":subscribe"),
        (Method::POST, "/pushNotificationConfigs"),
        (Method::GET, "/pushNotificationConfigs"),
        (Method::GET, "/pushNotificationConfigs/c"),
        (Method::DELETE, "/pushNotificationConfigs/c"),
    ];
    for (verb, path, _) in &crate::negotiation::PATHS {
        if let Some(tail) = path.strip_prefix("/tasks/t") {
            assert!(
                tails.contains(&(verb.clone(), tail)),
                "{verb} {path} has no row here"
            );
        }
    }
    // The agent is the second's: other owner, and other agent of the same owner.
    let stranger = ("x-nothing", "x");
    for (path, who) in [
        ("/", MALLORY),
        ("/two", ALICE),
        ("/two", MALLORY),
        ("/", stranger),
    ] {
        for (method, params) in &operations {
            let theirs = server.rpc_with(path, &[who], method, &params(&id)).await;
            let none = server
                .rpc_with(path, &[who], method, &params(&nobody))
                .await;
            let same = |answer: &Answer, id: &str| {
                String::from_utf8(answer.body.to_vec())
                    .unwrap()
                    .replace(id, "ID")
            };
            assert_eq!(
                same(&theirs, &id),
                same(&none, &nobody),
                "{method} at {path} by {who:?}"
            );
            assert_eq!(theirs.status, none.status);
            let tenant = if path == "/" { "one" } else { "two" };
            let over_grpc = async |id: &str| {
                let params = for_tenant(tenant, params(id));
                let answer = server.grpc(method, &[who], &params).await;
                format!("{:?}", answer.status()).replace(id, "ID")
            };
            assert_eq!(
                over_grpc(&id).await,
                over_grpc(&nobody).await,
                "{method} {who:?}"
            );
        }
        for (verb, rest) in &tails {
            let ask = async |id: &str| {
                let path = format!("{}/tasks/{id}{rest}", path.trim_end_matches('/'));
                let body = if rest.starts_with("/push") {
                    r#"{"url":"http://x.test/"}"#
                } else {
                    ""
                };
                let answer = server.call(verb.clone(), &path, &[who], body).await;
                let body = String::from_utf8(answer.body.to_vec()).unwrap();
                (answer.status, body.replace(id, "ID"))
            };
            assert_eq!(ask(&id).await, ask(&nobody).await, "{verb} {rest} {who:?}");
        }
        if who == stranger {
            continue; // has no lists either: auth_03
        }
        for query in [
            "",
            "?contextId=shared",
            "?includeArtifacts=true&status=TASK_STATE_INPUT_REQUIRED",
        ] {
            let path = format!("{}/tasks{query}", path.trim_end_matches('/'));
            let listed = server.get(&path, &[who]).await.json();
            assert_eq!(listed["totalSize"], 0, "{path} {who:?}");
            assert_eq!(listed["tasks"], json!([]));
        }
    }
    // The same conversation and message id of another owner are their own (CTX-10, SEND-17).
    let other = server
        .rpc_with("/", &[MALLORY], "SendMessage", &first)
        .await
        .json();
    assert_ne!(other["result"]["task"]["id"], id.as_str());
    assert_eq!(
        other["result"]["task"]["history"].as_array().unwrap().len(),
        1
    );
    let after = server
        .rpc_with("/", &[ALICE], "GetTask", &json!({ "id": id }))
        .await
        .json();
    assert_eq!(
        after["result"], task["result"]["task"],
        "nothing was changed"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_are_made_and_taken_back_while_the_server_runs() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = Tokens::in_folder(&folder.path().join("data"));
    let scopes = || vec![a2ad_server::config::ScopeText(Scope::Agents)];
    let first = tokens.create(&"first".parse().unwrap(), scopes()).unwrap();
    let server = try_start("agents: [{id: a, echo: }]", folder)
        .await
        .unwrap();
    assert!(server.handle.authenticates());
    let status = async |token: &str| {
        let header = format!("Bearer {token}");
        server
            .get("/tasks", &[("authorization", &header)])
            .await
            .status
    };
    assert_eq!(status(&first).await, 200);
    let until = async |token: &str, wanted: u16| {
        let waiting = async {
            while status(token).await != wanted {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let done = tokio::time::timeout(Duration::from_secs(30), waiting).await;
        done.unwrap_or_else(|_| panic!("never {wanted}"));
    };
    let second = tokens.create(&"second".parse().unwrap(), scopes()).unwrap();
    until(&second, 200).await;
    tokens.revoke("first").unwrap();
    until(&first, 401).await;
    assert_eq!(status(&second).await, 200);
    // The last one gone does not open the door.
    tokens.revoke("second").unwrap();
    until(&second, 401).await;
    assert_eq!(server.get("/tasks", &[]).await.status, 401);
}

/// S2: decided before anything is listened on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_for_others_needs_authentication() {
    let start = async |yaml: &str| {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Source::yaml("test.yaml", yaml).read(&|_| None).unwrap();
        config.data_dir = folder.path().join("data");
        let started = Server::start(config).await;
        (started, folder)
    };
    let agents = "agents: [{id: a, echo: }]";
    // Port 1 could not be listened on without privileges: that it is not even tried shows in the error.
    for listen in [
        "listen: 0.0.0.0:1",
        "listen: '[::]:1'",
        "listen: 127.0.0.1:0\ngrpc_listen: 0.0.0.0:1",
    ] {
        let (started, folder) = start(&format!("{listen}\n{agents}")).await;
        assert!(
            matches!(started, Err(StartError::Unauthenticated(_))),
            "{listen}"
        );
        assert!(!folder.path().join("data").exists(), "nothing was begun");
    }
    // An address for documents, which no machine has: that it cannot be listened on shows that it was tried.
    for auth in [
        "{allow_unauthenticated: true}",
        "{tokens: [{name: a, token: s}]}",
    ] {
        let yaml = format!("listen: 192.0.2.1:0\nauth: {auth}\n{agents}");
        let (started, _folder) = start(&yaml).await;
        assert!(matches!(started, Err(StartError::Bind { .. })), "{auth}");
    }
    for listen in ["localhost:0", "'[::1]:0'", "127.0.0.2:0"] {
        let (started, _folder) = start(&format!("listen: {listen}\n{agents}")).await;
        let mut handle = started.unwrap();
        handle.stop();
        handle.wait().await.unwrap();
    }
}

#[test]
fn mistakes_in_credentials_are_named_without_showing_them() {
    let refused = |auth: &str| {
        let yaml = format!("auth: {auth}\nagents: [{{id: a, echo: }}]");
        let error = Source::yaml("test.yaml", yaml).read(&|_| None).unwrap_err();
        error.to_string()
    };
    for (auth, word) in [
        ("{tokens: [{name: a, token: ''}]}", "empty"),
        ("{tokens: [{name: a b, token: hush}]}", "is no name"),
        (
            "{tokens: [{name: a, token: hush, scopes: [root]}]}",
            "is no scope",
        ),
        ("{tokens: [{name: a}]}", "token"),
        ("{basic: [{user: 'a:b', password: hush}]}", "is no name"),
        ("{api_key_header: Authorization}", "cannot be the header"),
        ("{api_key_header: 'X Y'}", "cannot be the header"),
        ("{token_header: ''}", "cannot be the header"),
        ("{challenge: sometimes}", "challenge"),
        ("{tokens: hush}", "expected a list"),
        ("{tokens: [hush]}", "expected a mapping"),
    ] {
        let error = refused(auth);
        assert!(error.contains(word), "{auth}: {error}");
        assert!(!error.contains("hush"), "{error}");
    }
    let config = Source::yaml(
        "t",
        "auth: {tokens: [{name: a, token: hush}]}\nagents: [{id: a, echo: }]",
    );
    let config = config.read(&|_| None).unwrap();
    assert!(!format!("{config:?}").contains("hush"));
    assert!(!serde_json::to_string(&config).unwrap().contains("hush"));
}
