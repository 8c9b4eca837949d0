//! `/monitor`: tasks across agents, for people and dashboards.

use std::net::SocketAddr;
use std::time::Duration;

use a2ad_testkit::client::{at_once, text, text_in, text_to};
use a2ad_testkit::harness::{Binding, Harness, StoreKind};
use a2ad_testkit::http::{Answer, SseReader, call, open};
use hyper::Method;
use serde_json::{Value, json};

use crate::configured::{Configured, saying};

// The binding does not matter: the monitor has routes of its own.
crate::scenarios!(@run on_a_file JsonRpc Sqlite
    r_01_tasks_are_listed_and_found
    r_01_a_long_list_has_pages
    r_02_a_snapshot_tells_what_was_said_and_why_it_ended
    r_02_a_stream_says_hello_and_what_is_there_and_what_happens
    r_02_nothing_is_lost_between_what_is_there_and_what_happens
    r_02_a_reader_that_reads_nothing_holds_up_nobody
    r_02_streams_end_when_the_server_stops
);
crate::scenarios!(@run on_postgres JsonRpc Postgres
    r_01_tasks_are_listed_and_found
    r_01_a_long_list_has_pages
    r_02_a_stream_says_hello_and_what_is_there_and_what_happens
    r_02_nothing_is_lost_between_what_is_there_and_what_happens
);

const PATIENCE: Duration = Duration::from_secs(30);

async fn get(to: SocketAddr, path: &str) -> Answer {
    call(to, Method::GET, path, &[], "").await.unwrap()
}

/// A stream of the monitor.
struct Watched(SseReader);

impl Watched {
    async fn open(to: SocketAddr, path: &str) -> Self {
        let open = open(to, Method::GET, path, &[], "").await.unwrap();
        assert_eq!(open.response.status(), 200);
        assert_eq!(open.response.headers()["content-type"], "text/event-stream");
        assert_eq!(open.response.headers()["x-accel-buffering"], "no");
        Self(SseReader::new(open))
    }

    async fn next(&mut self) -> Option<Value> {
        let event = tokio::time::timeout(PATIENCE, self.0.next()).await;
        let event = event.expect("in time").unwrap()?;
        Some(serde_json::from_str(&event.data).unwrap())
    }

    /// The next frame that is as wanted.
    async fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let frame = self.next().await.expect("the stream goes on");
            if wanted(&frame) {
                return frame;
            }
        }
    }
}

fn ids(tasks: &Value) -> Vec<&str> {
    let tasks = tasks.as_array().unwrap().iter();
    tasks.map(|task| task["taskId"].as_str().unwrap()).collect()
}

/// R-01: one agent, all agents, one conversation, one task; what is not there is 404, and nothing can be changed.
async fn r_01_tasks_are_listed_and_found(server: Harness) {
    let to = server.addr();
    let agents = get(to, "/monitor/agents").await.json();
    let card_url = format!("http://{to}/agents/obedient/.well-known/agent-card.json");
    assert_eq!(
        agents,
        json!({"agents": [{"agentId": "obedient", "name": "obedient", "description": agents["agents"][0]["description"],
            "cardUrl": card_url, "monitoring": true}]})
    );
    assert_eq!(
        get(to, "/agents/obedient/.well-known/agent-card.json")
            .await
            .status,
        200
    );
    assert_eq!(
        get(to, "/monitor/tasks").await.json(),
        json!({"agents": ["obedient"], "contexts": [], "tasks": []})
    );

    let one = server.client.send(text_in("c1", "echo one")).await.unwrap();
    let two = server.client.send(text_in("c2", "echo two")).await.unwrap();
    let all = get(to, "/monitor/tasks").await.json();
    assert_eq!(ids(&all["tasks"]), [two.id.as_str(), one.id.as_str()]);
    assert_eq!(all["tasks"][0]["agentId"], "obedient");
    assert_eq!(all["contexts"], json!(["c1", "c2"]));
    let some = get(to, "/monitor/tasks?agentId=obedient&contextId=c1")
        .await
        .json();
    assert_eq!(ids(&some["tasks"]), [one.id.as_str()]);
    assert_eq!(
        (
            &some["agentId"],
            &some["contextId"],
            &some["agents"],
            &some["contexts"]
        ),
        (
            &json!("obedient"),
            &json!("c1"),
            &json!(["obedient"]),
            &json!(["c1"])
        )
    );
    let within = get(to, "/monitor/agents/obedient/tasks?contextId=c2")
        .await
        .json();
    assert_eq!(ids(&within["tasks"]), [two.id.as_str()]);
    assert_eq!(within["agentId"], "obedient");
    assert!(within.get("agents").is_none() && within["tasks"][0].get("agentId").is_none());

    let found = get(to, &format!("/monitor/tasks/{}", one.id)).await.json();
    assert_eq!(found["agentId"], "obedient");
    assert_eq!(found["snapshot"]["userText"], "echo one");
    let within = get(to, &format!("/monitor/agents/obedient/tasks/{}", one.id)).await;
    assert_eq!(within.json(), found);
    assert_eq!(within.headers["cache-control"], "no-store");

    for path in [
        "/monitor/tasks/nope".to_owned(),
        "/monitor/tasks/0198a5b2-7c1e-8f3a-9d2e-3b1f5c7a9e10".to_owned(),
        format!("/monitor/agents/nobody/tasks/{}", one.id),
        "/monitor/agents/nobody/tasks".to_owned(),
        "/monitor/agents/nobody/events".to_owned(),
        "/monitor/tasks?agentId=nobody".to_owned(),
        "/monitor/events?agentId=nobody".to_owned(),
        "/monitor".to_owned(),
        "/monitor/agents/obedient".to_owned(),
    ] {
        assert_eq!(get(to, &path).await.status, 404, "{path}");
    }
    for (verb, path, allow) in [
        (Method::POST, "/monitor/tasks", "GET, HEAD"),
        (Method::DELETE, "/monitor/tasks/x", "GET, HEAD"),
        (Method::PUT, "/monitor/agents", "GET, HEAD"),
        (Method::POST, "/monitor/events", "GET"),
    ] {
        let answer = call(to, verb, path, &[], "").await.unwrap();
        assert_eq!(
            (
                answer.status.as_u16(),
                answer.headers["allow"].to_str().unwrap()
            ),
            (405, allow)
        );
    }
    for path in [
        "/monitor/tasks?contextId=%00",
        "/monitor/tasks?pageSize=0",
        "/monitor/tasks?pageToken=x",
    ] {
        assert_eq!(get(to, path).await.status, 400, "{path}");
    }
}

async fn r_01_a_long_list_has_pages(server: Harness) {
    let to = server.addr();
    let mut sent = Vec::new();
    for n in 0..7 {
        let task = server
            .client
            .send(text(&format!("echo {n}")))
            .await
            .unwrap();
        sent.insert(0, task.id);
    }
    let mut paged = Vec::new();
    let mut token = String::new();
    loop {
        let path = format!("/monitor/tasks?pageSize=3&pageToken={token}");
        let page = get(to, &path).await.json();
        paged.extend(ids(&page["tasks"]).into_iter().map(str::to_owned));
        match page.get("nextPageToken") {
            Some(next) => next.as_str().unwrap().clone_into(&mut token),
            None => break,
        }
    }
    assert_eq!(paged, sent);
}

async fn r_02_a_snapshot_tells_what_was_said_and_why_it_ended(server: Harness) {
    let to = server.addr();
    let see =
        async |id: &str| get(to, &format!("/monitor/tasks/{id}")).await.json()["snapshot"].clone();
    let told = server.client.send(text("words one two")).await.unwrap();
    let seen = see(&told.id).await;
    let members: Vec<&str> = seen
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let mut expected = [
        "taskId",
        "contextId",
        "state",
        "createdAt",
        "updatedAt",
        "startedAt",
        "endedAt",
        "userText",
        "userMessageId",
        "messageChunks",
        "agentMessageIds",
        "finalMessage",
    ];
    expected.sort_unstable();
    assert_eq!(members, expected);
    assert_eq!(seen["contextId"], told.context_id.as_str());
    assert_eq!(seen["state"], "completed");
    assert_eq!(seen["userText"], "words one two");
    assert_eq!(seen["userMessageId"], told.history[0].message_id.as_str());
    assert_eq!(seen["finalMessage"], "one two");
    assert_eq!(seen["messageChunks"], json!(["one two"]));
    assert_eq!(
        seen["agentMessageIds"],
        json!([told.artifacts[0].artifact_id])
    );
    let time = |name: &str| seen[name].as_str().unwrap().to_owned();
    assert!(time("createdAt") <= time("startedAt") && time("startedAt") <= time("endedAt"));
    assert_eq!(time("endedAt"), time("updatedAt"));

    let failed = server.client.send(text("fail")).await.unwrap();
    let seen = see(&failed.id).await;
    assert_eq!(
        (&seen["state"], &seen["error"]),
        (&json!("failed"), &json!("could not"))
    );
    assert_eq!(
        (&seen["finalMessage"], &seen["messageChunks"]),
        (&json!(""), &json!([]))
    );

    let asked = server.client.send(text("ask what?")).await.unwrap();
    let seen = see(&asked.id).await;
    assert_eq!(
        (&seen["state"], &seen["messageChunks"]),
        (&json!("input-required"), &json!(["what?"]))
    );
    assert!(seen.get("endedAt").is_none() && seen.get("error").is_none());

    // The first waits for the second.
    let busy = server
        .client
        .send(at_once(text_in("busy", "gate")))
        .await
        .unwrap();
    server.wait_at_gate(&busy.id).await;
    let queued = server
        .client
        .send(at_once(text_in("busy", "echo later")))
        .await
        .unwrap();
    let seen = see(&queued.id).await;
    assert_eq!(seen["state"], "submitted");
    assert!(seen.get("startedAt").is_none());
    server.agent.open_gate();
}

/// R-02.
async fn r_02_a_stream_says_hello_and_what_is_there_and_what_happens(server: Harness) {
    let to = server.addr();
    let before = server
        .client
        .send(text_in("c", "echo before"))
        .await
        .unwrap();
    let mut all = Watched::open(to, "/monitor/events").await;
    assert_eq!(
        all.next().await.unwrap(),
        json!({"kind": "hello", "agents": ["obedient"]})
    );
    let there = all.next().await.unwrap();
    assert_eq!(
        (&there["kind"], &there["agentId"]),
        (&json!("snapshot"), &json!("obedient"))
    );
    assert_eq!(there["snapshot"]["taskId"], before.id.as_str());

    let mut other = Watched::open(to, "/monitor/agents/obedient/events?contextId=d").await;
    let hello = other.next().await.unwrap();
    assert_eq!(
        hello,
        json!({"kind": "hello", "agents": ["obedient"], "agentId": "obedient", "contextId": "d"})
    );

    let task = server
        .client
        .send(at_once(text_in("c", "gate")))
        .await
        .unwrap();
    let created = all.next().await.unwrap();
    assert_eq!(
        (&created["kind"], &created["event"]["kind"]),
        (&json!("event"), &json!("created"))
    );
    assert_eq!(created["event"]["snapshot"]["taskId"], task.id.as_str());
    assert!(created["event"].get("prevState").is_none());
    server.wait_at_gate(&task.id).await;
    let is_waiting =
        |frame: &Value| frame["event"]["snapshot"]["messageChunks"] == json!(["waiting"]);
    let mut seen = created;
    while !is_waiting(&seen) {
        seen = all.next().await.unwrap();
    }
    assert_eq!(seen["event"]["snapshot"]["state"], "working");
    server.agent.open_gate();
    let ended = all
        .until(|frame| frame["event"]["snapshot"]["state"] == "completed")
        .await;
    assert_eq!(
        (
            &ended["event"]["kind"],
            &ended["event"]["prevState"],
            &ended["event"]["stateChanged"]
        ),
        (&json!("updated"), &json!("working"), &json!(true))
    );
    assert_eq!(ended["event"]["snapshot"]["finalMessage"], "waiting passed");

    // A task that was there and changes is no new one.
    let asked = server.client.send(text_in("d", "ask what?")).await.unwrap();
    other
        .until(|frame| frame["event"]["snapshot"]["state"] == "input-required")
        .await;
    server
        .client
        .send(text_to(&asked, "echo that"))
        .await
        .unwrap();
    let frame = other
        .until(|frame| frame["event"]["snapshot"]["state"] == "completed")
        .await;
    assert_eq!(frame["event"]["kind"], "updated");
    assert_eq!(
        frame["event"]["snapshot"]["contextId"], "d",
        "and no other conversation"
    );
}

/// Tasks are made while streams are opened: each stream tells each task, and tells how it ended.
async fn r_02_nothing_is_lost_between_what_is_there_and_what_happens(server: Harness) {
    let to = server.addr();
    let sending = async {
        let mut sent = Vec::new();
        for n in 0..60 {
            let task = server
                .client
                .send(text(&format!("words a {n}")))
                .await
                .unwrap();
            sent.push(task.id);
        }
        sent
    };
    let opening = async {
        let mut streams = Vec::new();
        for _ in 0..8 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            streams.push(Watched::open(to, "/monitor/events").await);
        }
        streams
    };
    let (sent, streams) = tokio::join!(sending, opening);
    for mut stream in streams {
        let mut left: std::collections::BTreeSet<_> = sent.iter().map(String::as_str).collect();
        let mut told = std::collections::HashMap::new();
        while !left.is_empty() {
            let frame = stream.next().await.unwrap();
            let (kind, snapshot) = match frame["kind"].as_str().unwrap() {
                "hello" => continue,
                "snapshot" => ("snapshot", &frame["snapshot"]),
                _ => (
                    frame["event"]["kind"].as_str().unwrap(),
                    &frame["event"]["snapshot"],
                ),
            };
            let id = snapshot["taskId"].as_str().unwrap().to_owned();
            let state = snapshot["state"].as_str().unwrap().to_owned();
            if state == "completed" {
                assert!(left.remove(id.as_str()), "told twice");
            }
            let known = told.insert(id, state);
            match kind {
                "updated" => {
                    let before = frame["event"].get("prevState").and_then(Value::as_str);
                    assert_eq!(before, known.as_deref(), "{frame}");
                }
                _ => assert_eq!(known, None, "{frame}"),
            }
        }
    }
}

async fn r_02_a_reader_that_reads_nothing_holds_up_nobody(server: Harness) {
    let to = server.addr();
    let mut idle = Watched::open(to, "/monitor/events").await;
    let long = "x".repeat(200_000);
    // Far more than all buffers between here and there hold.
    let mut last = None;
    for _ in 0..100 {
        last = Some(
            server
                .client
                .send(text(&format!("echo {long}")))
                .await
                .unwrap(),
        );
    }
    let last = last.unwrap().id;
    // What it has not read it can read now.
    idle.until(|frame| {
        let snapshot = [&frame["snapshot"], &frame["event"]["snapshot"]];
        snapshot
            .iter()
            .any(|it| it["taskId"] == last.as_str() && it["state"] == "completed")
    })
    .await;
}

async fn r_02_streams_end_when_the_server_stops(server: Harness) {
    let mut stream = Watched::open(server.addr(), "/monitor/events").await;
    assert_eq!(stream.next().await.unwrap()["kind"], "hello");
    server.handle_stop();
    assert_eq!(stream.next().await, None, "in good order");
    server.stop().await;
}

/// R-01, R-02: any instance shows and tells of all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_02_an_instance_tells_of_tasks_that_run_elsewhere() {
    let one = Harness::start(Binding::JsonRpc, StoreKind::Postgres).await;
    let other = one.another(Binding::JsonRpc).await;
    let before = one.client.send(text("echo before")).await.unwrap();
    let path = format!("/monitor/tasks/{}", before.id);
    assert_eq!(get(other.addr(), &path).await.status, 200);
    let mut stream = Watched::open(other.addr(), "/monitor/events").await;
    stream
        .until(|frame| frame["snapshot"]["taskId"] == before.id.as_str())
        .await;
    let task = one.client.send(at_once(text("gate"))).await.unwrap();
    let frame = stream
        .until(|frame| frame["event"]["snapshot"]["taskId"] == task.id.as_str())
        .await;
    assert_eq!(frame["event"]["kind"], "created");
    one.wait_at_gate(&task.id).await;
    one.agent.open_gate();
    let ended = |frame: &Value| frame["event"]["snapshot"]["state"] == "completed";
    let frame = stream.until(ended).await;
    assert_eq!(frame["event"]["snapshot"]["finalMessage"], "waiting passed");
}

/// B-07, R-01: not yours is not there, nor is an agent that you may not call; and `monitor` is the right to look at how the
/// server is doing, not at what others say.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_01_each_sees_its_own_tasks_of_the_agents_it_may_call() {
    const ALICE: (&str, &str) = ("authorization", "Bearer s3cret-alice");
    const MALLORY: (&str, &str) = ("authorization", "Bearer s3cret-mallory");
    const DASH: (&str, &str) = ("authorization", "Bearer s3cret-dash");
    const NARROW: (&str, &str) = ("authorization", "Bearer s3cret-narrow");
    let server = Configured::start(
        "
auth:
  tokens:
    - {name: alice, token: s3cret-alice}
    - {name: mallory, token: s3cret-mallory}
    - {name: dash, token: s3cret-dash, scopes: [monitor]}
    - {name: narrow, token: s3cret-narrow, scopes: ['agents:two']}
agents:
  - {id: one, script: {otherwise: [complete: I am one]}}
  - {id: two, script: {otherwise: [complete: I am two]}}
",
    )
    .await;
    let to = server.handle.addr();
    let mut mine = open(to, Method::GET, "/monitor/events", &[ALICE], "")
        .await
        .map(SseReader::new)
        .unwrap();
    let mut theirs = open(to, Method::GET, "/monitor/events", &[MALLORY], "")
        .await
        .map(SseReader::new)
        .unwrap();
    let send = async |path: &str, who| {
        let answer = server
            .rpc_with(path, &[who], "SendMessage", &saying("x"))
            .await
            .json();
        answer["result"]["task"]["id"].as_str().unwrap().to_owned()
    };
    let one = send("/agents/one", ALICE).await;
    let two = send("/agents/two", ALICE).await;
    let sees = async |who| {
        let answer = server.get("/monitor/tasks", &[who]).await.json();
        ids(&answer["tasks"])
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(sees(ALICE).await, [two.clone(), one.clone()]);
    for who in [MALLORY, DASH, NARROW] {
        assert_eq!(sees(who).await, Vec::<String>::new());
        for path in [
            format!("/monitor/tasks/{one}"),
            format!("/monitor/agents/two/tasks/{two}"),
        ] {
            assert_eq!(
                server.get(&path, &[who]).await.status,
                404,
                "{who:?} {path}"
            );
        }
    }
    let hidden = server.get("/monitor/agents/one/tasks", &[NARROW]).await;
    let absent = server.get("/monitor/agents/nobody/tasks", &[NARROW]).await;
    assert_eq!((hidden.status.as_u16(), &hidden.body), (404, &absent.body));
    let agents = server.get("/monitor/agents", &[NARROW]).await.json();
    assert_eq!(agents["agents"].as_array().unwrap().len(), 1);
    assert_eq!(
        server.get("/monitor/agents", &[DASH]).await.json(),
        json!({"agents": []})
    );

    // Mallory's own is the first that Mallory hears of.
    let own = send("/agents/one", MALLORY).await;
    let mut heard = Vec::new();
    for reader in [&mut mine, &mut theirs] {
        let hello = reader.next().await.unwrap().unwrap();
        assert_eq!(hello.data, r#"{"kind":"hello","agents":["one","two"]}"#);
        let event = tokio::time::timeout(PATIENCE, reader.next())
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        let event: Value = serde_json::from_str(&event.data).unwrap();
        heard.push(
            event["event"]["snapshot"]["taskId"]
                .as_str()
                .unwrap()
                .to_owned(),
        );
    }
    assert_eq!(heard, [one, own]);

    // Before it is said whether anything is there.
    for path in [
        "/monitor/agents",
        "/monitor/tasks/x",
        "/monitor/nope",
        "/monitor/events",
    ] {
        assert_eq!(server.get(path, &[]).await.status, 401, "{path}");
    }
}
