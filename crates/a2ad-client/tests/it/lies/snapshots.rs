//! Servers that are not sure when a snapshot was taken, as those of the official SDKs.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use a2ad_client::{Client, EventStream, text};
use a2ad_proto::{Part, StreamResponse, TaskState};
use serde_json::{Value, json};

use super::{Liar, Lie, answer, chunk, events, events_text, ok, soon, status, task, unchanged};

const WORKING: &str = "TASK_STATE_WORKING";
const COMPLETED: &str = "TASK_STATE_COMPLETED";

/// One that gives this stream to whoever follows the task, and each of these when asked for it.
async fn server(frames: Vec<Value>, tasks: Vec<Value>) -> Liar {
    let frames: Vec<_> = frames.into_iter().map(|frame| (None, frame)).collect();
    following(move || events(&frames), tasks).await
}

async fn following(followed: impl Fn() -> Lie + Send + Sync + 'static, tasks: Vec<Value>) -> Liar {
    let tasks = Mutex::new(VecDeque::from(tasks));
    Liar::with_card(&["HTTP+JSON"], unchanged, move |asked| {
        if asked.line.contains(":subscribe") {
            return followed();
        }
        let next = tasks.lock().unwrap().pop_front();
        next.map_or(Lie::Hang(Vec::new()), |task| ok(&task))
    })
    .await
}

/// A client that does not mind silence.
async fn patient(liar: &Liar) -> Client {
    let client = liar.builder();
    let client = client.timeouts(|timeouts| timeouts.silence = Duration::from_secs(60));
    client.connect().await.unwrap()
}

/// Every chunk that comes, in its order.
async fn chunks(stream: &mut EventStream) -> Vec<String> {
    let mut seen = Vec::new();
    while let Some(event) = soon(stream.next()).await {
        if let StreamResponse::ArtifactUpdate(update) = event.unwrap().response {
            let texts = update.artifact.parts.iter().filter_map(Part::as_text);
            seen.extend(texts.map(str::to_owned));
        }
    }
    seen
}

fn snapshot(text: &[&str]) -> Value {
    json!({"task": task("t", WORKING, text)})
}

#[tokio::test]
async fn what_a_snapshot_has_already_does_not_come_again() {
    let frames = vec![
        snapshot(&["one", "two", "three"]),
        // The server began to listen before it looked.
        status(WORKING),
        chunk("one", false),
        chunk("two", true),
        chunk("three", true),
        chunk("four", true),
        chunk("two", true),
        status(COMPLETED),
    ];
    let three = || task("t", WORKING, &["one", "two", "three"]);
    let four = || task("t", WORKING, &["one", "two", "three", "four"]);
    let five = |state| task("t", state, &["one", "two", "three", "four", "two"]);
    // For each chunk that may be known, of which the fourth is there before it comes; and for the
    // end, since there was doubt.
    let tasks = vec![
        three(),
        three(),
        four(),
        four(),
        five(WORKING),
        five(COMPLETED),
    ];
    let asked = tasks.len();
    let liar = server(frames, tasks).await;
    let mut stream = liar.client().await.subscribe("t");
    assert_eq!(chunks(&mut stream).await, ["four", "two"]);
    assert_eq!(stream.assembly().text(), "onetwothreefourtwo");
    assert_eq!(stream.assembly().state(), Some(TaskState::Completed));
    assert_eq!(liar.calls().len(), 1 + asked);
}

/// Agents repeat their status to show that they live.
#[tokio::test]
async fn a_status_that_says_nothing_new_is_not_asked_about() {
    let mut frames = vec![snapshot(&["one"])];
    frames.extend((0..200).map(|_| status(WORKING)));
    frames.extend([chunk("two", true), status(COMPLETED)]);
    let two = |state| task("t", state, &["one", "two"]);
    let liar = server(frames, vec![two(WORKING), two(COMPLETED)]).await;
    let mut stream = liar.client().await.subscribe("t");
    assert_eq!(chunks(&mut stream).await, ["two"]);
    assert_eq!(stream.assembly().state(), Some(TaskState::Completed));
    assert_eq!(liar.calls().len(), 3);
}

#[tokio::test]
async fn what_is_new_after_a_snapshot_is_not_asked_for() {
    let frames = vec![
        snapshot(&["one"]),
        chunk("two", true),
        chunk("one", true),
        status(COMPLETED),
    ];
    let liar = server(frames, Vec::new()).await;
    let mut stream = liar.client().await.subscribe("t");
    assert_eq!(chunks(&mut stream).await, ["two", "one"]);
    assert_eq!(stream.assembly().text(), "onetwoone");
    assert_eq!(liar.calls().len(), 1);
}

#[tokio::test]
async fn an_agent_that_repeats_itself_is_heard() {
    // It writes things down a little late.
    let frames = vec![snapshot(&["ha"]), chunk("ha", true), status(COMPLETED)];
    let late = task("t", WORKING, &["ha"]);
    let liar = server(frames, vec![late, task("t", COMPLETED, &["ha", "ha"])]).await;
    let mut stream = liar.client().await.subscribe("t");
    assert_eq!(chunks(&mut stream).await, ["ha"]);
    assert_eq!(stream.assembly().text(), "haha");
    assert_eq!(stream.assembly().state(), Some(TaskState::Completed));
}

#[tokio::test]
async fn waiting_for_a_task_that_ends_meanwhile_is_no_error() {
    for (code, reason) in [
        ("400 Bad Request", "UNSUPPORTED_OPERATION"),
        ("404 Not Found", "TASK_NOT_FOUND"),
    ] {
        let info = json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "domain": "a2a-protocol.org", "reason": reason}]);
        let body = json!({"error": {"message": "no", "details": info}}).to_string();
        let refuse = move || Lie::Say(answer(code, "content-type: application/json\r\n", &body));
        let tasks = vec![task("t", WORKING, &[]), task("t", COMPLETED, &["x"])];
        let liar = following(refuse, tasks).await;
        let client = liar.client().await;
        let waited = soon(client.wait("t")).await.unwrap();
        assert_eq!(waited.status.state, TaskState::Completed);
        // To follow an ended task is an error still.
        assert!(soon(client.subscribe("t").next()).await.unwrap().is_err());
    }
}

#[tokio::test]
async fn a_question_that_the_snapshot_shows_ends_the_wait() {
    // The stream stays open, as it may.
    let asks = json!({"task": task("t", "TASK_STATE_INPUT_REQUIRED", &[])});
    let stream = events_text(&[(None, asks)]);
    let tasks = vec![task("t", WORKING, &[])];
    let liar = following(move || Lie::Hang(stream.clone().into()), tasks).await;
    let waited = soon(patient(&liar).await.wait("t")).await.unwrap();
    assert_eq!(waited.status.state, TaskState::InputRequired);
}

#[tokio::test]
async fn a_question_that_opens_the_stream_of_a_message_ends_it_unless_it_is_the_old_one() {
    let asks = json!({"task": task("t", "TASK_STATE_INPUT_REQUIRED", &[])});
    for (continued, more, expected) in [
        (false, "", TaskState::InputRequired),
        (true, COMPLETED, TaskState::Completed),
    ] {
        let mut stream = events_text(&[(None, asks.clone())]);
        if !more.is_empty() {
            stream += &format!("data: {}\n\n", status(more));
        }
        let liar = Liar::with_card(&["HTTP+JSON"], unchanged, move |_| {
            Lie::Hang(stream.clone().into())
        })
        .await;
        let mut request = text("x");
        if continued {
            request.message.as_mut().unwrap().task_id = "t".to_owned();
        }
        let client = patient(&liar).await;
        let assembly = soon(client.stream(request).finish()).await.unwrap();
        assert_eq!(assembly.state(), Some(expected));
    }
}
