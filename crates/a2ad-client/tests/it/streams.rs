//! Streams of servers that do as the official SDKs do, with every answer written by hand.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use a2ad_client::{Client, EventStream};
use a2ad_proto::{AgentCard, AgentInterface, StreamResponse, TaskState};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

enum Answer {
    Json(u16, Value),
    /// A stream that ends in good order.
    Frames(Vec<Value>),
}

/// An agent that answers each request with the next of its answers, which has to be asked for.
struct Agent {
    client: Client,
    left: Arc<Mutex<VecDeque<(&'static str, Answer)>>>,
    _serving: JoinSet<()>,
}

impl Agent {
    async fn new(answers: Vec<(&'static str, Answer)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let left = Arc::new(Mutex::new(VecDeque::from(answers)));
        let answers = Arc::clone(&left);
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                serve(stream, &answers).await;
            }
        });
        let mut card = AgentCard {
            supported_interfaces: vec![AgentInterface {
                url: url.clone(),
                protocol_binding: "HTTP+JSON".to_owned(),
                protocol_version: "1.0".to_owned(),
                ..AgentInterface::default()
            }],
            ..AgentCard::default()
        };
        card.capabilities.streaming = Some(true);
        let client = Client::builder(&url).with_card(card).unwrap();
        Self {
            client,
            left,
            _serving: serving,
        }
    }

    fn done(self) {
        let left = self.left.lock().unwrap();
        let left: Vec<_> = left.iter().map(|(asked, _)| *asked).collect();
        assert!(left.is_empty(), "nobody asked for {left:?}");
    }
}

async fn serve(mut stream: TcpStream, answers: &Mutex<VecDeque<(&'static str, Answer)>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let length = head.split("content-length: ").nth(1);
    let length = length.map_or(0, |rest| rest.split('\r').next().unwrap().parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();

    let next = answers.lock().unwrap().pop_front();
    let (asked, answer) = next.unwrap_or_else(|| panic!("a request too many: {head}"));
    let came = head.lines().next().unwrap();
    assert!(
        came.starts_with(&asked.to_lowercase()),
        "{came}, not {asked}"
    );
    let (status, kind, body) = match answer {
        Answer::Json(status, body) => (status, "application/json", body.to_string()),
        Answer::Frames(frames) => {
            let frames = frames.iter().map(|frame| format!("data: {frame}\n\n"));
            (200, "text/event-stream", frames.collect())
        }
    };
    let answer = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
}

fn status(state: &str, second: u32) -> Value {
    json!({"state": state, "timestamp": format!("2026-01-01T00:00:0{second}Z")})
}

fn task(status: Value, chunks: &[&str]) -> Value {
    let parts: Vec<_> = chunks.iter().map(|chunk| json!({"text": chunk})).collect();
    let artifacts = match chunks {
        [] => json!([]),
        _ => json!([{"artifactId": "a", "parts": parts}]),
    };
    json!({"id": "t", "contextId": "c", "status": status, "artifacts": artifacts})
}

fn chunk(text: &str, append: bool) -> Value {
    json!({"artifactUpdate": {"taskId": "t", "contextId": "c", "append": append,
        "artifact": {"artifactId": "a", "parts": [{"text": text}]}}})
}

fn told(status: Value) -> Value {
    json!({"statusUpdate": {"taskId": "t", "contextId": "c", "status": status}})
}

/// Every chunk that comes, in its order.
async fn chunks(events: &mut EventStream) -> Vec<String> {
    let mut seen = Vec::new();
    while let Some(event) = events.next().await {
        if let StreamResponse::ArtifactUpdate(update) = event.unwrap().response {
            let texts = update
                .artifact
                .parts
                .iter()
                .filter_map(|part| part.as_text());
            seen.extend(texts.map(str::to_owned));
        }
    }
    seen
}

const WORKING: &str = "TASK_STATE_WORKING";
const COMPLETED: &str = "TASK_STATE_COMPLETED";

#[tokio::test]
async fn waiting_for_a_task_that_ends_meanwhile_is_no_error() {
    for refusal in [
        json!({"error": {"code": 400, "details": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "domain": "a2a-protocol.org", "reason": "UNSUPPORTED_OPERATION"}]}}),
        json!({"error": {"code": 404, "status": "NOT_FOUND"}}),
    ] {
        let agent = Agent::new(vec![
            (
                "GET /tasks/t ",
                Answer::Json(200, task(status(WORKING, 1), &[])),
            ),
            ("POST /tasks/t:subscribe ", Answer::Json(400, refusal)),
            (
                "GET /tasks/t ",
                Answer::Json(200, task(status(COMPLETED, 2), &["x"])),
            ),
        ])
        .await;
        let waited = agent.client.wait("t").await.unwrap();
        assert_eq!(waited.status.state, TaskState::Completed);
        agent.done();
    }
}

#[tokio::test]
async fn what_a_snapshot_has_already_does_not_come_again() {
    let agent = Agent::new(vec![
        // The server began to listen before it looked.
        (
            "POST /tasks/t:subscribe ",
            Answer::Frames(vec![
                json!({"task": task(status(WORKING, 1), &["one", "two", "three"])}),
                told(status(WORKING, 1)),
                chunk("one", false),
                chunk("two", true),
                chunk("three", true),
                chunk("four", true),
                chunk("two", true),
                told(status(COMPLETED, 2)),
            ]),
        ),
        (
            "GET /tasks/t ",
            Answer::Json(200, task(status(WORKING, 1), &["one", "two", "three"])),
        ),
        (
            "GET /tasks/t ",
            Answer::Json(200, task(status(WORKING, 1), &["one", "two", "three"])),
        ),
        (
            "GET /tasks/t ",
            Answer::Json(200, task(status(WORKING, 1), &["one", "two", "three"])),
        ),
        // By now it has a chunk that is still to come.
        (
            "GET /tasks/t ",
            Answer::Json(
                200,
                task(status(WORKING, 1), &["one", "two", "three", "four"]),
            ),
        ),
        (
            "GET /tasks/t ",
            Answer::Json(
                200,
                task(status(WORKING, 1), &["one", "two", "three", "four"]),
            ),
        ),
        (
            "GET /tasks/t ",
            Answer::Json(
                200,
                task(status(WORKING, 1), &["one", "two", "three", "four", "two"]),
            ),
        ),
    ])
    .await;
    let mut events = agent.client.subscribe("t");
    assert_eq!(chunks(&mut events).await, ["four", "two"]);
    assert_eq!(events.assembly().text(), "onetwothreefourtwo");
    assert_eq!(events.assembly().state(), Some(TaskState::Completed));
    agent.done();
}

#[tokio::test]
async fn what_is_new_after_a_snapshot_is_not_asked_for() {
    let agent = Agent::new(vec![(
        "POST /tasks/t:subscribe ",
        Answer::Frames(vec![
            json!({"task": task(status(WORKING, 1), &["one"])}),
            chunk("two", true),
            chunk("one", true),
            told(status(COMPLETED, 2)),
        ]),
    )])
    .await;
    let mut events = agent.client.subscribe("t");
    assert_eq!(chunks(&mut events).await, ["two", "one"]);
    assert_eq!(events.assembly().text(), "onetwoone");
    agent.done();
}

#[tokio::test]
async fn an_agent_that_repeats_itself_is_heard() {
    // The same text again, and the end of it: the task shows whether it is new.
    let agent = Agent::new(vec![
        (
            "POST /tasks/t:subscribe ",
            Answer::Frames(vec![
                json!({"task": task(status(WORKING, 1), &["ha"])}),
                chunk("ha", true),
                told(status(COMPLETED, 2)),
            ]),
        ),
        (
            "GET /tasks/t ",
            Answer::Json(200, task(status(WORKING, 1), &["ha"])),
        ),
        (
            "GET /tasks/t ",
            Answer::Json(200, task(status(COMPLETED, 2), &["ha", "ha"])),
        ),
    ])
    .await;
    let mut events = agent.client.subscribe("t");
    assert_eq!(chunks(&mut events).await, ["ha"]);
    assert_eq!(events.assembly().text(), "haha");
    assert_eq!(events.assembly().state(), Some(TaskState::Completed));
    agent.done();
}
