//! Output as it comes and as it is kept: artifacts in pieces, and the frames that carry them.

use a2ad_proto::{Artifact, Part, StreamResponse, Task, TaskArtifactUpdateEvent, TaskState};
use a2ad_testkit::client::{Event, at_once, drain, text, text_to};
use a2ad_testkit::harness::Harness;
use serde_json::{Value, json};

crate::scenarios![
    art_01_an_artifact_that_is_not_appended_to_replaces_its_namesake,
    art_02_what_is_appended_is_added,
    art_04_the_last_piece_is_marked,
    art_05_pieces_of_text_stay_apart,
    stream_04_what_was_said_comes_in_order,
    stream_05_one_who_leaves_takes_nothing_from_the_others,
    sub_01_a_subscriber_misses_nothing_and_sees_nothing_twice,
    sub_04_the_stream_ends_with_the_task,
    send_04_not_waiting_makes_no_difference_to_a_stream,
];

async fn events(server: &Harness, said: &str) -> Vec<Event> {
    let stream = server.client.stream(text(said), None).await.unwrap();
    drain(stream).await.unwrap()
}

fn updates(events: &[Event]) -> Vec<TaskArtifactUpdateEvent> {
    let update = |event: &Event| match &event.response {
        StreamResponse::ArtifactUpdate(update) => Some(update.clone()),
        _ => None,
    };
    events.iter().filter_map(update).collect()
}

fn opening(events: &[Event]) -> &Task {
    match &events[0].response {
        StreamResponse::Task(task) => task,
        other => panic!("{other:?}"),
    }
}

fn end(events: &[Event]) -> TaskState {
    match &events.last().unwrap().response {
        StreamResponse::StatusUpdate(update) => update.status.state,
        other => panic!("{other:?}"),
    }
}

fn texts(artifact: &Artifact) -> Vec<&str> {
    artifact.parts.iter().filter_map(Part::as_text).collect()
}

fn metadata(artifact: &Artifact) -> Value {
    serde_json::from_str(artifact.metadata.as_ref().unwrap().as_str()).unwrap()
}

async fn art_01_an_artifact_that_is_not_appended_to_replaces_its_namesake(server: Harness) {
    let task = server.client.send(text("pieces")).await.unwrap();
    assert_eq!(task.artifacts.len(), 2, "an id is one artifact");
    let other = &task.artifacts[1];
    assert_eq!(other.artifact_id, "other");
    assert_eq!(texts(other), ["piece 5"]);
    assert_eq!(other.name, "name 5");
    assert_eq!(other.extensions, ["urn:x:all", "urn:x:5"]);
    assert_eq!(metadata(other), json!({"last": "5", "5": true}));
}

async fn art_02_what_is_appended_is_added(server: Harness) {
    let task = server.client.send(text("pieces")).await.unwrap();
    let whole = &task.artifacts[0];
    assert_eq!(whole.artifact_id, "whole");
    assert_eq!(texts(whole), ["piece 1", "piece 2", "piece 3"]);
    assert_eq!(
        (whole.name.as_str(), whole.description.as_str()),
        ("name 1", "description 1")
    );
    assert_eq!(
        whole.extensions,
        ["urn:x:all", "urn:x:1", "urn:x:2", "urn:x:3"]
    );
    let all = json!({"last": "3", "1": true, "2": true, "3": true});
    assert_eq!(metadata(whole), all);
}

async fn art_04_the_last_piece_is_marked(server: Harness) {
    let flags: Vec<_> = updates(&events(&server, "pieces").await)
        .iter()
        .map(|update| (update.append, update.last_chunk))
        .collect();
    let expected = [
        (false, false),
        (true, false),
        (true, true),
        (false, true),
        (false, true),
    ];
    assert_eq!(flags, expected);
    // Text that is said word by word is marked at the end of the answer or not at all.
    let said = updates(&events(&server, "words one two three four").await);
    let (_, before) = said.split_last().unwrap();
    assert!(before.iter().all(|update| !update.last_chunk));
}

async fn art_05_pieces_of_text_stay_apart(server: Harness) {
    let events = events(&server, "words one two three four").await;
    let streamed: Vec<Part> = updates(&events)
        .into_iter()
        .flat_map(|update| update.artifact.parts)
        .collect();
    assert!(streamed.len() > 1, "{streamed:?}");
    let kept = server.until(&opening(&events).id, |_| true).await;
    let kept: Vec<Part> = kept.artifacts[0].parts.clone();
    assert_eq!(kept, streamed);
}

async fn stream_04_what_was_said_comes_in_order(server: Harness) {
    let events = events(&server, "burst 300").await;
    let got: Vec<_> = updates(&events)
        .into_iter()
        .map(|update| update.artifact.artifact_id)
        .collect();
    let said: Vec<_> = (0..300).map(|n| format!("a{n}")).collect();
    assert_eq!(got, said);
    assert!(events.is_sorted_by(|a, b| a.number < b.number));
    let replay = server.client.subscribe(&opening(&events).id, Some(0)).await;
    assert_eq!(drain(replay.unwrap()).await.unwrap(), events);
}

/// G-09.
async fn stream_05_one_who_leaves_takes_nothing_from_the_others(server: Harness) {
    let mut sender = server.client.stream(text("gate"), None).await.unwrap();
    let first = sender.next().await.unwrap().unwrap();
    let StreamResponse::Task(task) = first.response else {
        panic!("{first:?}");
    };
    let stays = server.client.subscribe(&task.id, Some(0)).await.unwrap();
    let leaves = server.client.subscribe(&task.id, Some(0)).await.unwrap();
    server.wait_at_gate(&task.id).await;
    // The one who sent the message leaves, and one who only watched.
    drop(sender);
    drop(leaves);
    server.agent.open_gate();
    let seen = drain(stays).await.unwrap();
    assert_eq!(end(&seen), TaskState::Completed);
}

async fn sub_01_a_subscriber_misses_nothing_and_sees_nothing_twice(server: Harness) {
    let shown = |seen: &[Event]| -> String {
        let opened = opening(seen).artifacts.iter().flat_map(|it| &it.parts);
        let updates = updates(seen);
        let later = updates.iter().flat_map(|it| &it.artifact.parts);
        opened.chain(later).filter_map(Part::as_text).collect()
    };
    // The last entry is output when the stream opens.
    let task = server.client.send(at_once(text("gate"))).await.unwrap();
    server.wait_at_gate(&task.id).await;
    let stream = server.client.subscribe(&task.id, None).await.unwrap();
    server.agent.open_gate();
    assert_eq!(shown(&drain(stream).await.unwrap()), "waiting passed");
    // Output goes on while the stream opens; the task may even end before.
    for _ in 0..10 {
        let said = "words a b c d e f g h i j";
        let task = server.client.send(at_once(text(said))).await.unwrap();
        let Ok(stream) = server.client.subscribe(&task.id, None).await else {
            continue;
        };
        let seen = drain(stream).await.unwrap();
        assert_eq!(shown(&seen), "a b c d e f g h i j");
    }
}

async fn sub_04_the_stream_ends_with_the_task(server: Harness) {
    for (verb, state) in [
        ("echo x", TaskState::Completed),
        ("fail", TaskState::Failed),
        ("reject", TaskState::Rejected),
    ] {
        let task = server.client.send(text("ask what?")).await.unwrap();
        let stream = server.client.subscribe(&task.id, None).await.unwrap();
        server.client.send(text_to(&task, verb)).await.unwrap();
        // Ends by itself, and there is one end only.
        let seen = drain(stream).await.unwrap();
        assert_eq!(end(&seen), state);
        let ends = seen.iter().filter(|event| match &event.response {
            StreamResponse::StatusUpdate(update) => update.status.state.is_terminal(),
            _ => false,
        });
        assert_eq!(ends.count(), 1);
    }
}

async fn send_04_not_waiting_makes_no_difference_to_a_stream(server: Harness) {
    let request = at_once(text("words one two"));
    let stream = server.client.stream(request, None).await.unwrap();
    let seen = drain(stream).await.unwrap();
    assert_eq!(end(&seen), TaskState::Completed);
    assert!(!updates(&seen).is_empty());
}
