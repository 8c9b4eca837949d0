//! `examples/conformance.yaml` does what the conformance kits ask for, said in either way.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::server::{Message, Scripted, artifact_text, said, state, text};

async fn server() -> Scripted {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/conformance.yaml"
    );
    Scripted::start(&std::fs::read_to_string(path).unwrap()).await
}

/// The public kit says it by the message's id, the newer one by the text.
fn both(word: &str) -> [Message; 2] {
    [
        text("Hello").id(&format!("{word}-4f1c")),
        text(&format!("{word} please")).id("5d1d"),
    ]
}

#[tokio::test]
async fn every_word_has_its_outcome() {
    let server = server().await;
    for (word, expected) in [
        ("tck-complete-task", "COMPLETED"),
        ("tck-artifact-text", "COMPLETED"),
        ("tck-artifact-file", "COMPLETED"),
        ("tck-artifact-file-url", "COMPLETED"),
        ("tck-artifact-data", "COMPLETED"),
        ("tck-input-required", "INPUT_REQUIRED"),
        ("tck-multi-turn", "INPUT_REQUIRED"),
        ("tck-auth-required", "AUTH_REQUIRED"),
        ("tck-reject-task", "REJECTED"),
        ("tck-task-failure", "FAILED"),
        ("tck-stream-001", "COMPLETED"),
        ("tck-stream-002", "COMPLETED"),
        ("tck-stream-003", "COMPLETED"),
        ("tck-stream-ordering-001", "COMPLETED"),
        ("tck-stream-artifact-chunked", "COMPLETED"),
        ("tck-stream-basic", "COMPLETED"),
        ("tck-stream-chunked", "COMPLETED"),
        ("anything-else", "COMPLETED"),
    ] {
        for message in both(word) {
            let task = server.send(message).await;
            assert_eq!(state(&task), expected, "{word}: {task}");
        }
    }
}

#[tokio::test]
async fn the_contents_are_those_that_are_looked_for() {
    let server = server().await;
    for message in both("tck-complete-task") {
        let task = server.send(message).await;
        assert_eq!(said(&task), "Hello from TCK");
        assert_eq!(task.get("artifacts"), None);
    }
    for (word, part) in [
        (
            "tck-artifact-text",
            json!({"text": "Generated text content"}),
        ),
        (
            "tck-artifact-file",
            json!({"raw": "dGNr", "filename": "output.txt", "mediaType": "text/plain"}),
        ),
        (
            "tck-artifact-file-url",
            json!({"url": "https://example.com/output.txt", "filename": "output.txt", "mediaType": "text/plain"}),
        ),
        (
            "tck-artifact-data",
            json!({"data": {"key": "value", "count": 42}}),
        ),
    ] {
        for message in both(word) {
            let task = server.send(message).await;
            assert_eq!(task["artifacts"].as_array().unwrap().len(), 1, "{word}");
            assert_eq!(task["artifacts"][0]["parts"], json!([part]), "{word}");
        }
    }
}

#[tokio::test]
async fn a_message_response_is_a_bare_message() {
    let server = server().await;
    for message in both("tck-message-response") {
        let answer = server.answer(message).await;
        assert_eq!(answer.as_object().unwrap().len(), 1, "{answer}");
        let reply = &answer["message"];
        assert_eq!(reply["role"], "ROLE_AGENT");
        assert_eq!(reply["parts"], json!([{"text": "Direct message response"}]));
        assert!(reply["contextId"].is_string(), "{reply}");
    }
    for message in both("tck-message-response") {
        let events = server.stream(message).await;
        assert_eq!(events.len(), 1, "{events:?}");
        assert_eq!(
            events[0]["message"]["parts"],
            json!([{"text": "Direct message response"}])
        );
    }
}

#[tokio::test]
async fn the_streams_have_the_events_that_are_looked_for() {
    let server = server().await;
    let kinds = |events: &[Value]| -> Vec<String> {
        let kind = |event: &Value| match event.get("statusUpdate") {
            Some(update) => state(update).to_owned(),
            None => event.as_object().unwrap().keys().next().unwrap().clone(),
        };
        events.iter().map(kind).collect()
    };
    for word in [
        "tck-stream-001",
        "tck-stream-003",
        "tck-stream-ordering-001",
        "tck-stream-basic",
    ] {
        for message in both(word) {
            let events = server.stream(message).await;
            let expected = ["task", "WORKING", "WORKING", "artifactUpdate", "COMPLETED"];
            assert_eq!(kinds(&events), expected, "{word}");
        }
    }
    for message in both("tck-stream-002") {
        let events = server.stream(message).await;
        assert_eq!(kinds(&events), ["task", "WORKING", "COMPLETED"]);
    }
    for word in ["tck-stream-artifact-chunked", "tck-stream-chunked"] {
        for message in both(word) {
            let events = server.stream(message).await;
            let expected = [
                "task",
                "WORKING",
                "artifactUpdate",
                "artifactUpdate",
                "artifactUpdate",
                "COMPLETED",
            ];
            assert_eq!(kinds(&events), expected, "{word}");
            let first = &events[2]["artifactUpdate"];
            let last = &events[4]["artifactUpdate"];
            assert_eq!(
                (&first["append"], &last["append"]),
                (&Value::Null, &true.into())
            );
            assert_eq!(last["lastChunk"], true);
            let task = server.get(&events[0]["task"]).await;
            assert_eq!(artifact_text(&task, 0), "chunk 1 chunk 2 chunk 3");
        }
    }
}

#[tokio::test]
async fn a_conversation_goes_on_until_it_is_done() {
    let server = server().await;
    for message in both("tck-multi-turn") {
        let task = server.send(message).await;
        // The kit uses the same message id again and again; others do not.
        for (id, word) in [
            ("m-2", "go on"),
            ("tck-multi-turn-2", "not done"),
            ("m-3", "tck-complete-task"),
        ] {
            let now = server.send(text(word).id(id).to(&task)).await;
            assert_eq!(state(&now), "INPUT_REQUIRED", "{word}");
        }
        let done = text("done, thanks").id("tck-multi-turn-2");
        let done = server.send(done.to(&task)).await;
        assert_eq!(state(&done), "COMPLETED");
    }
}

#[tokio::test]
async fn what_takes_a_while_does() {
    let server = server().await;
    let timed = async |message: Message, seconds: u64| {
        let begun = Instant::now();
        let task = server.send(message).await;
        assert_eq!(state(&task), "COMPLETED");
        assert!(begun.elapsed() >= Duration::from_secs(seconds));
        assert!(begun.elapsed() < Duration::from_secs(seconds + 15));
    };
    let [delayed, delayed_too] = both("tck-delayed-complete");
    let [resubscribed, resubscribed_too] = both("test-resubscribe-message-id");
    let [long, long_too] = both("tck-long-running");
    tokio::join!(
        timed(delayed, 2),
        timed(delayed_too, 2),
        timed(resubscribed, 4),
        timed(resubscribed_too, 4),
        timed(long, 4),
        timed(long_too, 4),
    );
}

#[tokio::test]
async fn one_works_until_it_is_canceled() {
    let server = server().await;
    for message in both("tck-cancel") {
        let task = server.begin(message).await;
        server
            .until(&task, |task| said(task) == "Working until canceled")
            .await;
        assert_eq!(state(&server.cancel(&task).await), "CANCELED");
    }
}
