use std::time::Duration;

use a2ad_client::assemble::Assembly;
use a2ad_client::{Binding, Error, text};
use a2ad_proto::{ErrorKind, Part, StreamResponse, TaskState};
use serde_json::{Value, json};

use super::{
    Asked, EVENTS, Liar, Lie, answer, chunk, events, events_text, ok, replay, rpc, soon, status,
    task, unchanged,
};

const REST: &[&str] = &["HTTP+JSON"];

fn begun() -> Value {
    json!({"task": task("t", "TASK_STATE_WORKING", &[])})
}

fn is_send(asked: &Asked) -> bool {
    asked.line.contains("message:stream")
}

fn is_subscribe(asked: &Asked) -> bool {
    asked.line.contains(":subscribe")
}

/// What a stream with a message comes to.
async fn finish(liar: &Liar) -> Result<Assembly, Error> {
    let client = liar
        .builder()
        .timeouts(|timeouts| timeouts.follow = Duration::from_secs(3))
        .sizes(|sizes| (sizes.event_bytes, sizes.task_bytes) = (1 << 20, 4 << 20))
        .retries(|retries| retries.resumes = 3);
    let client = soon(client.connect()).await.unwrap();
    soon(client.stream(text("x")).finish()).await
}

async fn fails(lie: impl Fn(&Asked) -> Lie + Send + Sync + 'static) -> Error {
    let liar = Liar::with_card(REST, replay, lie).await;
    finish(&liar).await.unwrap_err()
}

#[tokio::test]
async fn events_that_are_none_are_errors() {
    for data in [
        "hello",
        "{}",
        "[]",
        "{\"task\":7}",
        "{\"task\":{},\"message\":{}}",
        "null",
    ] {
        let stream = format!("{EVENTS}data: {data}\n\n");
        let error = fails(move |_| Lie::Say(stream.clone().into())).await;
        assert!(matches!(error, Error::NotA2a { .. }), "{data}: {error:?}");
    }
    let html = |_: &Asked| Lie::Say(answer("200 OK", "content-type: text/html\r\n", "<html>"));
    assert!(matches!(fails(html).await, Error::NotA2a { .. }));
}

#[tokio::test]
async fn an_event_of_another_task_is_not_taken() {
    let other = json!({"artifactUpdate": {"taskId": "other", "contextId": "c",
        "artifact": {"artifactId": "a", "parts": [{"text": "evil"}]}}});
    let error = fails(move |_| events(&[(Some(1), begun()), (Some(2), other.clone())])).await;
    assert!(error.to_string().contains("another task"), "{error}");
    // Nor is another task in place of ours.
    let error = fails(|asked| match is_send(asked) {
        true => events(&[(None, begun())]),
        false => events(&[(
            None,
            json!({"task": task("other", "TASK_STATE_WORKING", &[])}),
        )]),
    })
    .await;
    assert!(error.to_string().contains("another task"), "{error}");
}

#[tokio::test]
async fn repetitions_are_dropped_and_have_an_end() {
    let liar = Liar::with_card(REST, replay, |_| {
        let mut frames = vec![(Some(1), begun()), (Some(2), chunk("once ", false))];
        frames.extend([(Some(2), chunk("once ", true)), (Some(1), begun())]);
        frames.extend([
            (Some(3), chunk("more", true)),
            (Some(4), status("TASK_STATE_COMPLETED")),
        ]);
        events(&frames)
    })
    .await;
    assert_eq!(finish(&liar).await.unwrap().text(), "once more");

    let again = format!("id: 1\ndata: {}\n\n", begun());
    let error = fails(move |_| Lie::Forever(EVENTS.into(), again.clone().into())).await;
    assert!(error.to_string().contains("repeats itself"), "{error}");
}

#[tokio::test]
async fn a_stream_without_events_is_given_up() {
    // Comments show that it lives; only the time for the whole ends it.
    let error = fails(|_| Lie::Forever(EVENTS.into(), b": ping\n\n".to_vec())).await;
    assert!(
        matches!(
            error,
            Error::Timeout {
                what: "following the task",
                ..
            }
        ),
        "{error:?}"
    );
    // Silence is a cut.
    let error = fails(|_| Lie::Hang(EVENTS.into())).await;
    assert!(matches!(error, Error::Timeout { .. }), "{error:?}");
    // So is an end without an event, again and again.
    let error = fails(|_| Lie::Say(EVENTS.into())).await;
    assert!(matches!(error, Error::NotA2a { .. }), "{error:?}");
    // And one after it.
    let error = fails(|asked| match is_send(asked) {
        true => events(&[(Some(1), begun())]),
        false => Lie::Say(EVENTS.into()),
    })
    .await;
    assert!(matches!(error, Error::Cut { attempts: 3, .. }), "{error:?}");
}

/// The status says most of it; nobody is kept waiting for the rest.
#[tokio::test]
async fn an_error_in_place_of_a_stream_that_never_comes_to_its_point_is_one_all_the_same() {
    let head = "HTTP/1.1 500 Oops\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let liar = Liar::with_card(REST, unchanged, move |_| {
        Lie::Forever(head.into(), b": ping\n\n".repeat(1000))
    })
    .await;
    let options = a2ad_client::CallOptions::default();
    let client = liar.client().await;
    let error = soon(client.subscribe_once("t", None, &options)).await;
    assert_eq!(error.unwrap_err().kind(), Some(ErrorKind::Internal));
}

#[tokio::test]
async fn an_event_or_a_task_without_end_is_refused() {
    let error = fails(|_| Lie::Forever(format!("{EVENTS}data: ").into(), vec![b'x'; 65_536])).await;
    assert!(
        matches!(
            error,
            Error::TooLarge {
                what: "an event",
                ..
            }
        ),
        "{error:?}"
    );
    let text = format!("data: {}\n\n", chunk(&"x".repeat(60_000), true));
    let first = events_text(&[(None, begun()), (None, chunk("", false))]);
    let error = fails(move |_| Lie::Forever(first.clone().into(), text.clone().into())).await;
    assert!(
        matches!(
            error,
            Error::TooLarge {
                what: "the task",
                ..
            }
        ),
        "{error:?}"
    );
}

#[tokio::test]
async fn rest_10_rpc_08_an_error_after_events_is_the_end() {
    let error =
        json!({"error": {"code": 500, "status": "INTERNAL", "message": "oops", "details": []}});
    let frames = [(Some(1), begun()), (None, error)];
    let refused = fails(move |_| events(&frames)).await;
    assert_eq!(refused.kind(), Some(ErrorKind::Internal));

    for stream in [
        // As an event of any name, as plain JSON, with any status.
        format!("{EVENTS}event: error\ndata: {}\n\n", rpc_error()).into_bytes(),
        answer("200 OK", "content-type: application/json\r\n", &rpc_error()),
        answer(
            "400 Bad",
            "content-type: text/event-stream\r\n",
            &format!("data: {}\n\n", rpc_error()),
        ),
    ] {
        let liar =
            Liar::with_card(&["JSONRPC"], unchanged, move |_| Lie::Say(stream.clone())).await;
        assert_eq!(
            finish(&liar).await.unwrap_err().kind(),
            Some(ErrorKind::TaskNotFound)
        );
    }
}

fn rpc_error() -> String {
    json!({"jsonrpc": "2.0", "id": "1", "error": {"code": -32001, "message": "gone"}}).to_string()
}

#[tokio::test]
async fn one_object_in_place_of_a_stream_will_do() {
    let done = json!({"task": task("t", "TASK_STATE_COMPLETED", &["all"])});
    let plain = done.clone();
    let liar = Liar::with_card(REST, unchanged, move |_| ok(&plain)).await;
    assert_eq!(finish(&liar).await.unwrap().text(), "all");
    let liar = Liar::with_card(&["JSONRPC"], unchanged, move |_| ok(&rpc(&done))).await;
    assert_eq!(finish(&liar).await.unwrap().text(), "all");
}

#[tokio::test]
async fn stream_10_without_numbers_a_snapshot_fills_the_gap() {
    let liar = Liar::with_card(REST, unchanged, |asked| match is_send(asked) {
        true => events(&[
            (None, begun()),
            (None, chunk("a", false)),
            (None, chunk("b", true)),
        ]),
        false => events(&[
            (
                None,
                json!({"task": task("t", "TASK_STATE_WORKING", &["a", "b", "c"])}),
            ),
            (None, chunk("d", true)),
            (None, status("TASK_STATE_COMPLETED")),
        ]),
    })
    .await;
    let client = liar.client().await;
    let mut events = client.stream(text("x"));
    let mut printed = String::new();
    while let Some(event) = soon(events.next()).await {
        if let StreamResponse::ArtifactUpdate(update) = event.unwrap().response {
            assert!(update.append || printed.is_empty());
            printed.extend(update.artifact.parts.iter().filter_map(Part::as_text));
        }
    }
    assert_eq!(printed, "abcd");
    assert_eq!(events.assembly().text(), "abcd");
    assert!(liar.calls()[1].header("last-event-id").is_none());
}

/// A subscription that does not say where it begins. The task does.
#[tokio::test]
async fn stream_10_without_a_snapshot_the_task_is_asked() {
    let looks = std::sync::atomic::AtomicUsize::new(0);
    let liar = Liar::with_card(REST, unchanged, move |asked| {
        if is_send(asked) {
            return events(&[(None, begun()), (None, chunk("a", false))]);
        }
        if is_subscribe(asked) {
            let frames = [
                (None, chunk("same", true)),
                (None, chunk("same", true)),
                (None, status("TASK_STATE_COMPLETED")),
            ];
            return events(&frames);
        }
        // The first look already has both, so that taking the events as they are would repeat one.
        match looks.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => ok(&task(
                "t",
                "TASK_STATE_WORKING",
                &["a", "missed", "same", "same"],
            )),
            1 => ok(&task(
                "t",
                "TASK_STATE_WORKING",
                &["a", "missed", "same", "same"],
            )),
            // The end can be read a little later than it was announced.
            2 => ok(&task(
                "t",
                "TASK_STATE_WORKING",
                &["a", "missed", "same", "same"],
            )),
            _ => ok(&task(
                "t",
                "TASK_STATE_COMPLETED",
                &["a", "missed", "same", "same", "."],
            )),
        }
    })
    .await;
    let client = liar.client().await;
    let mut events = client.stream(text("x"));
    let mut printed = String::new();
    while let Some(event) = soon(events.next()).await {
        if let StreamResponse::ArtifactUpdate(update) = event.unwrap().response {
            printed.extend(update.artifact.parts.iter().filter_map(Part::as_text));
        }
    }
    assert_eq!(printed, "amissedsamesame.");
    assert_eq!(events.assembly().state(), Some(TaskState::Completed));
}

/// An ended task cannot be followed, and servers say so in many ways.
#[tokio::test]
async fn a_task_that_ended_meanwhile_is_read() {
    for code in ["-32004", "-32602", "-32001"] {
        let liar = Liar::with_card(&["JSONRPC"], unchanged, move |asked| {
            let method = asked.json()["method"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            match &*method {
                "SendStreamingMessage" => events(&[(None, rpc(&begun()))]),
                "SubscribeToTask" => events(&[(
                    None,
                    json!({"error": {"code": code.parse::<i32>().unwrap(), "message": "no"}}),
                )]),
                _ => ok(&rpc(&task("t", "TASK_STATE_COMPLETED", &["all"]))),
            }
        })
        .await;
        assert_eq!(finish(&liar).await.unwrap().text(), "all", "{code}");
    }
}

#[tokio::test]
async fn a_cursor_that_means_nothing_is_let_go() {
    let liar = Liar::with_card(REST, replay, |asked| {
        if is_send(asked) {
            return events(&[(Some(7), begun()), (Some(8), chunk("a", false))]);
        }
        match asked.header("last-event-id") {
            Some(number) => {
                assert_eq!(number, "8");
                let error =
                    json!({"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "no"}});
                Lie::Say(answer("400 Bad", "", &error.to_string()))
            }
            None => events(&[(
                Some(3),
                json!({"task": task("t", "TASK_STATE_COMPLETED", &["a", "b"])}),
            )]),
        }
    })
    .await;
    assert_eq!(finish(&liar).await.unwrap().text(), "ab");
}

#[tokio::test]
async fn art_03_a_chunk_of_an_unknown_artifact_makes_us_look() {
    let liar = Liar::with_card(REST, unchanged, |asked| match is_send(asked) {
        true => events(&[(None, chunk("late", true))]),
        false => events(&[(
            None,
            json!({"task": task("t", "TASK_STATE_COMPLETED", &["early", "late"])}),
        )]),
    })
    .await;
    assert_eq!(finish(&liar).await.unwrap().text(), "earlylate");
}

#[tokio::test]
async fn an_agent_that_streams_only_on_its_card_is_asked_for_the_task() {
    let looks = std::sync::atomic::AtomicUsize::new(0);
    let liar = Liar::with_card(REST, unchanged, move |asked| {
        if is_send(asked) {
            let error = json!({"error": {"code": 400, "message": "no streams", "details": [
                {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "UNSUPPORTED_OPERATION"}]}});
            return Lie::Say(answer("400 Bad", "", &error.to_string()));
        }
        if asked.line.contains("message:send") {
            assert_eq!(asked.json()["configuration"]["returnImmediately"], true);
            return ok(&begun());
        }
        match looks.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 | 1 => ok(&task("t", "TASK_STATE_WORKING", &["a"])),
            _ => ok(&task("t", "TASK_STATE_COMPLETED", &["a", "b"])),
        }
    })
    .await;
    assert_eq!(finish(&liar).await.unwrap().text(), "ab");
}

#[tokio::test]
async fn a_direct_reply_is_all_there_is() {
    let reply =
        json!({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "hi"}]}});
    let liar = Liar::with_card(REST, unchanged, move |_| {
        Lie::Hang(events_text(&[(None, reply.clone())]).into())
    })
    .await;
    let assembly = finish(&liar).await.unwrap();
    assert_eq!(assembly.text(), "hi");
    assert_eq!(liar.calls().len(), 1);
}

#[tokio::test]
async fn a_terminal_state_ends_a_stream_that_nobody_closes() {
    let frames = [(None, begun()), (None, status("TASK_STATE_FAILED"))];
    for binding in [Binding::HttpJson] {
        let text_of = events_text(&frames);
        let liar =
            Liar::with_card(REST, unchanged, move |_| Lie::Hang(text_of.clone().into())).await;
        let assembly = finish(&liar).await.unwrap();
        assert_eq!(assembly.state(), Some(TaskState::Failed), "{binding}");
        assert_eq!(liar.calls().len(), 1);
    }
}

/// What a task comes to is not said by a message, and a task that goes on is not taken for one that has ended.
#[tokio::test]
async fn a_reply_in_the_stream_of_a_task_is_not_its_end() {
    let reply =
        json!({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "hi"}]}});
    let liar = Liar::with_card(REST, unchanged, move |asked| {
        if asked.line.starts_with("GET") {
            return ok(&task("t", "TASK_STATE_WORKING", &[]));
        }
        events(&[(None, begun()), (None, reply.clone())])
    })
    .await;
    let client = liar.client().await;
    let waited = soon(client.wait("t")).await;
    assert!(matches!(waited, Err(Error::NotA2a { .. })), "{waited:?}");
    let error = finish(&liar).await.unwrap_err();
    assert!(error.to_string().contains("a reply"), "{error}");
}

/// What replaces is no more than what it replaces, however long it goes on.
#[tokio::test]
async fn a_task_is_as_large_as_it_is_and_not_as_all_that_was_said_of_it() {
    let big = "x".repeat(500_000);
    let mut frames = vec![(Some(1), begun())];
    frames.extend((2..30).map(|number| (Some(number), chunk(&big, false))));
    frames.push((Some(30), status("TASK_STATE_COMPLETED")));
    let told = events_text(&frames).into_bytes();
    let liar = Liar::with_card(REST, replay, move |_| Lie::Say(told.clone())).await;
    assert_eq!(finish(&liar).await.unwrap().text().len(), 500_000);
}
