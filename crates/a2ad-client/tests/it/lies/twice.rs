//! No message is sent twice, whatever becomes of the first, and nobody is called without a pause.

use std::time::Duration;

use a2ad_client::{Binding, Error, Event, EventStream, text};
use a2ad_proto::{ErrorKind, TaskState};
use serde_json::json;

use super::{Asked, Liar, Lie, answer, events, replay, soon, task, unchanged};

const BOTH: &[&str] = &["JSONRPC", "HTTP+JSON"];

/// A gateway that gave up may have passed the message on before.
#[tokio::test]
async fn a_message_that_a_gateway_may_have_passed_on_is_not_sent_again() {
    for status in [
        "502 Bad Gateway",
        "503 Service Unavailable",
        "504 Gateway Timeout",
    ] {
        for binding in [Binding::JsonRpc, Binding::HttpJson] {
            let lie = move |_: &Asked| Lie::Say(answer(status, "", "<html>"));
            let liar = Liar::with_card(BOTH, unchanged, lie).await;
            let client = soon(liar.builder().binding(binding).connect());
            let client = client.await.unwrap();
            let error = soon(client.stream(text("x")).next()).await.unwrap();
            let error = error.unwrap_err();
            assert_eq!(error.kind(), Some(ErrorKind::Unavailable), "{error}");
            assert_eq!(liar.calls().len(), 1, "{status}");
        }
    }
    // Who recognises it may get it again, and who was turned away at the door was not let in.
    let busy = |_: &Asked| Lie::Say(answer("429 Too Many Requests", "", ""));
    let gone = |_: &Asked| Lie::Say(answer("503 Service Unavailable", "", ""));
    for liar in [
        Liar::with_card(BOTH, unchanged, busy).await,
        Liar::with_card(BOTH, replay, gone).await,
    ] {
        let client = liar.client().await;
        let first = soon(client.stream(text("x")).next()).await;
        assert!(first.unwrap().is_err());
        assert_eq!(liar.calls().len(), 11);
    }
}

/// Whoever waits for events beside other things asks for the next one again and again.
#[tokio::test]
async fn a_message_is_sent_once_however_often_its_first_event_is_asked_for() {
    for streaming in [true, false] {
        let card = move |card: &mut serde_json::Value| {
            card["capabilities"]["streaming"] = json!(streaming);
        };
        // It takes its time.
        let lie = |_: &Asked| {
            let task = json!({"task": task("t", "TASK_STATE_COMPLETED", &["done"])});
            let answer = answer("200 OK", "", &task.to_string());
            Lie::Later(Duration::from_millis(300), answer)
        };
        let liar = Liar::with_card(&["HTTP+JSON"], card, lie).await;
        let client = liar
            .builder()
            .timeouts(|it| it.silence = Duration::from_secs(5));
        let client = soon(client.connect()).await.unwrap();
        let mut stream = client.stream(text("x"));
        impatient(&mut stream).await.unwrap().unwrap();
        assert_eq!(liar.calls().len(), 1, "streaming: {streaming}");
        assert_eq!(stream.assembly().state(), Some(TaskState::Completed));
    }
}

/// Whatever a stream waits for: it comes to its end, though nobody waits that long at once.
#[tokio::test]
async fn a_stream_gets_on_however_often_its_next_event_is_asked_for() {
    let time = Duration::from_millis(150);
    let working = || task("t", "TASK_STATE_WORKING", &[]);
    let later =
        move |body: serde_json::Value| Lie::Later(time, answer("200 OK", "", &body.to_string()));
    for streaming in [true, false] {
        let card = move |card: &mut serde_json::Value| {
            card["capabilities"]["streaming"] = json!(streaming);
        };
        let count = std::sync::atomic::AtomicU32::new(0);
        let liar = Liar::with_card(&["HTTP+JSON"], card, move |asked| {
            let nth = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            if asked.line.starts_with("GET") {
                return later(match nth < 6 {
                    true => working(),
                    false => task("t", "TASK_STATE_COMPLETED", &["done"]),
                });
            }
            match nth {
                0 => later(json!({ "task": working() })),
                // Not at once, and then not with a snapshot: the task has to be asked for.
                1 | 2 => Lie::Later(time, answer("503 Busy", "", "")),
                _ => {
                    let frames = [(None, super::chunk("done", false))];
                    Lie::Later(time, super::events_text(&frames).into_bytes())
                }
            }
        })
        .await;
        let client = liar
            .builder()
            .timeouts(|it| it.silence = Duration::from_secs(5));
        let client = client.retries(|it| (it.first, it.longest, it.poll) = (time, time, time));
        let client = soon(client.connect()).await.unwrap();
        let mut stream = client.subscribe("t");
        while let Some(event) = impatient(&mut stream).await {
            event.unwrap();
        }
        assert_eq!(stream.assembly().text(), "done", "streaming: {streaming}");
    }
}

/// Asks for the next event beside something else that happens all the time.
async fn impatient(stream: &mut EventStream) -> Option<Result<Event, Error>> {
    let patience = Duration::from_millis(20);
    for _ in 0..400 {
        if let Ok(event) = tokio::time::timeout(patience, stream.next()).await {
            return event;
        }
    }
    panic!("it never came");
}

/// A server that ends every stream after a snapshot that looks new is not called as fast as it answers.
#[tokio::test]
async fn streams_that_end_at_once_are_not_opened_without_a_pause() {
    let count = std::sync::atomic::AtomicU32::new(0);
    let liar = Liar::with_card(&["HTTP+JSON"], unchanged, move |_| {
        let second = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) % 60;
        let mut task = task("t", "TASK_STATE_WORKING", &[]);
        task["status"]["timestamp"] = json!(format!("2026-01-01T00:00:{second:02}Z"));
        events(&[(None, json!({ "task": task }))])
    })
    .await;
    let client = liar
        .builder()
        .retries(|it| it.first = Duration::from_millis(50));
    let client = soon(client.connect()).await.unwrap();
    let mut stream = client.subscribe("t");
    let reading = async { while stream.next().await.is_some() {} };
    let _endless = tokio::time::timeout(Duration::from_millis(500), reading).await;
    let calls = liar.calls().len();
    assert!((2..=12).contains(&calls), "{calls}");
}
