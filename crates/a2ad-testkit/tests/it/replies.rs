//! Direct replies: a message instead of a task.

use std::path::Path;
use std::sync::atomic::Ordering;

use a2ad_proto::{
    GetTaskRequest, ListTasksRequest, Message, Part, Role, SendMessageRequest, SendMessageResponse,
    StreamResponse, Task, TaskState,
};
use a2ad_testkit::client::{Event, at_once, drain, text, text_in, text_to};
use a2ad_testkit::harness::Harness;

crate::scenarios![
    send_01_a_direct_reply_is_a_message_and_nothing_else,
    send_04_a_reply_that_is_there_at_once_is_a_message_also_without_waiting,
    send_04_a_reply_that_takes_longer_leaves_the_task_to_ask_for,
    send_14_a_reply_carries_the_context_and_the_task,
    send_15_a_reply_to_a_later_message_is_a_task,
    send_15_a_reply_while_messages_are_in_line_is_not_the_end,
    stream_13_a_reply_after_another_word_is_a_plain_completion,
    stream_13_a_word_in_an_earlier_commit_counts_too,
    send_17_a_repeat_gets_the_same_reply,
    stream_01_a_reply_that_is_there_at_once_is_the_whole_stream,
    stream_01_a_stream_that_has_shown_the_task_stays_a_task_stream,
    stream_01_a_resumed_task_stream_shows_no_bare_message,
    a_cursor_from_before_the_message_counts_as_none,
    a_task_that_ended_in_a_reply_is_a_task_like_any_other,
    a_reply_survives_a_restart,
    a_canceled_task_is_no_reply,
];

const UUID: &str = "0198a5b2-7c1e-7f3a-9d2e-3b1f5c7a9e10";

fn unique(mut request: SendMessageRequest) -> SendMessageRequest {
    if let Some(message) = &mut request.message {
        UUID.clone_into(&mut message.message_id);
    }
    request
}

/// From here on the agent's turns may be one commit.
fn at_first_poll(server: &Harness) {
    server.agent.pure.store(true, Ordering::SeqCst);
}

async fn reply(server: &Harness, request: SendMessageRequest) -> Message {
    match server.client.send_any(request).await.unwrap() {
        SendMessageResponse::Message(reply) => reply,
        SendMessageResponse::Task(task) => panic!("a message was expected: {task:?}"),
    }
}

async fn events(server: &Harness, request: SendMessageRequest, after: Option<u64>) -> Vec<Event> {
    let stream = server.client.stream(request, after).await.unwrap();
    drain(stream).await.unwrap()
}

async fn task(server: &Harness, id: &str) -> Task {
    let request = GetTaskRequest {
        id: id.to_owned(),
        ..GetTaskRequest::default()
    };
    server.client.get(request).await.unwrap()
}

/// The messages of a stream that shows nothing else.
fn messages(events: &[Event]) -> Vec<&Message> {
    let message = |event| match event {
        &Event {
            response: StreamResponse::Message(ref message),
            ..
        } => message,
        other => panic!("{other:?}"),
    };
    events.iter().map(message).collect()
}

/// The kinds of a stream's frames.
fn kinds(events: &[Event]) -> Vec<&'static str> {
    let kind = |event: &Event| match event.response {
        StreamResponse::Task(_) => "task",
        StreamResponse::Message(_) => "message",
        StreamResponse::StatusUpdate(_) => "status",
        StreamResponse::ArtifactUpdate(_) => "artifact",
    };
    events.iter().map(kind).collect()
}

async fn send_01_a_direct_reply_is_a_message_and_nothing_else(server: Harness) {
    for pure in [false, true] {
        server.agent.pure.store(pure, Ordering::SeqCst);
        let reply = reply(&server, text("reply hi there")).await;
        assert_eq!(reply.role, Role::Agent);
        assert_eq!(reply.parts, [Part::text("hi there")]);
        assert!(!reply.message_id.is_empty());
    }
}

async fn send_04_a_reply_that_is_there_at_once_is_a_message_also_without_waiting(server: Harness) {
    at_first_poll(&server);
    let reply = reply(&server, at_once(text("reply hi"))).await;
    assert_eq!(reply.parts, [Part::text("hi")]);
}

async fn send_04_a_reply_that_takes_longer_leaves_the_task_to_ask_for(server: Harness) {
    let request = unique(at_once(text("gate-reply hi")));
    let begun = server.client.send(request.clone()).await.unwrap();
    assert!(!begun.status.state.is_terminal());
    let done = server
        .until(&begun.id, |task| {
            server.agent.open_gate();
            task.status.state.is_terminal()
        })
        .await;
    assert_eq!(done.status.state, TaskState::Completed);
    // Now that it is there, the same request gets it, with or without waiting.
    let reply = reply(&server, request).await;
    assert_eq!(Some(reply), done.status.message);
}

async fn send_14_a_reply_carries_the_context_and_the_task(server: Harness) {
    let minted = reply(&server, text("reply hi")).await;
    assert!(!minted.context_id.is_empty());
    let stored = task(&server, &minted.task_id).await;
    assert_eq!(stored.context_id, minted.context_id);
    let named = reply(&server, text_in("talk", "reply hi")).await;
    assert_eq!(named.context_id, "talk");
    assert_ne!(named.task_id, minted.task_id);
}

async fn send_15_a_reply_to_a_later_message_is_a_task(server: Harness) {
    for pure in [false, true] {
        server.agent.pure.store(pure, Ordering::SeqCst);
        let asked = server.client.send(text("ask what?")).await.unwrap();
        let done = server.client.send(text_to(&asked, "reply this")).await;
        let done = done.unwrap();
        assert_eq!(done.id, asked.id);
        assert_eq!(done.status.state, TaskState::Completed);
        let said = done.status.message.unwrap();
        assert_eq!(said.parts, [Part::text("this")]);

        let asked = server.client.send(text("ask what?")).await.unwrap();
        let events = events(&server, text_to(&asked, "reply this"), None).await;
        assert_eq!(kinds(&events), ["task", "status", "status"]);
    }
}

async fn send_15_a_reply_while_messages_are_in_line_is_not_the_end(server: Harness) {
    let begun = server.client.send(at_once(text("gate-reply one"))).await;
    let begun = begun.unwrap();
    let next = server.client.send(at_once(text_to(&begun, "echo two")));
    next.await.unwrap();
    let done = server
        .until(&begun.id, |task| {
            server.agent.open_gate();
            task.status.state.is_terminal()
        })
        .await;
    let said: Vec<_> = done.history.iter().flat_map(|said| &said.parts).collect();
    assert!(said.contains(&&Part::text("one")), "{done:?}");
    assert_eq!(done.artifacts[0].parts, [Part::text("two")]);
}

async fn stream_13_a_reply_after_another_word_is_a_plain_completion(server: Harness) {
    for pure in [false, true] {
        server.agent.pure.store(pure, Ordering::SeqCst);
        let done = server.client.send(text("status-reply hi")).await.unwrap();
        assert_eq!(done.status.state, TaskState::Completed);
        let said = done.status.message.unwrap();
        assert_eq!(said.parts, [Part::text("hi")]);
        let thought = done.history.last().unwrap();
        assert_eq!(thought.parts, [Part::text("thinking")]);
        let events = events(&server, text("status-reply hi"), None).await;
        assert_eq!(kinds(&events), ["task", "status", "status", "status"]);
    }
}

async fn stream_13_a_word_in_an_earlier_commit_counts_too(server: Harness) {
    let request = unique(text("status-gate-reply hi"));
    let begun = server.client.send(at_once(request.clone())).await.unwrap();
    // What was said is on record before the reply comes.
    let thinking = |task: &Task| {
        let said = task.status.message.as_ref();
        said.is_some_and(|said| said.parts == [Part::text("thinking")])
    };
    server.until(&begun.id, thinking).await;
    let ended = |task: &Task| {
        server.agent.open_gate();
        task.status.state.is_terminal()
    };
    let done = server.until(&begun.id, ended).await;
    assert_eq!(server.client.send(request).await.unwrap(), done);
}

async fn send_17_a_repeat_gets_the_same_reply(server: Harness) {
    let request = unique(text("reply once"));
    let first = reply(&server, request.clone()).await;
    assert_eq!(reply(&server, request.clone()).await, first);
    assert_eq!(reply(&server, at_once(request.clone())).await, first);
    let streamed = events(&server, request, None).await;
    assert_eq!(messages(&streamed), [&first]);
    assert_eq!(server.agent_begun(), 1);
}

async fn stream_01_a_reply_that_is_there_at_once_is_the_whole_stream(server: Harness) {
    at_first_poll(&server);
    let request = unique(text("reply hi"));
    let first = events(&server, request.clone(), None).await;
    let [said] = messages(&first)[..] else {
        panic!("{first:?}");
    };
    assert_eq!(said.parts, [Part::text("hi")]);
    assert_eq!(events(&server, request.clone(), None).await, first);
    assert_eq!(reply(&server, request.clone()).await, *said);

    // Its number is that of the entry that ended the task, so nothing comes after it.
    let number = first[0].number;
    assert!(events(&server, request, Some(number)).await.is_empty());
    let journal = server.client.subscribe(&said.task_id, Some(0)).await;
    let journal = drain(journal.unwrap()).await.unwrap();
    assert_eq!(kinds(&journal), ["task", "status", "status"]);
    assert_eq!(journal[2].number, number);
}

async fn stream_01_a_stream_that_has_shown_the_task_stays_a_task_stream(server: Harness) {
    let request = text("gate-reply hi");
    let mut stream = server.client.stream(request, None).await.unwrap();
    let mut shown = vec![stream.next().await.unwrap().unwrap()];
    let StreamResponse::Task(task) = &shown[0].response else {
        panic!("{:?}", shown[0]);
    };
    let id = task.id.clone();
    let ended = |task: &Task| {
        server.agent.open_gate();
        task.status.state.is_terminal()
    };
    let done = server.until(&id, ended).await;
    shown.extend(drain(stream).await.unwrap());
    assert_eq!(kinds(&shown), ["task", "status", "status"]);
    let StreamResponse::StatusUpdate(end) = &shown[2].response else {
        panic!("{:?}", shown[2]);
    };
    assert_eq!(end.status.state, TaskState::Completed);
    assert_eq!(end.status.message, done.status.message);
}

async fn stream_01_a_resumed_task_stream_shows_no_bare_message(server: Harness) {
    let request = unique(text("reply hi"));
    let first = events(&server, request.clone(), None).await;
    assert_eq!(kinds(&first), ["task", "status", "status"]);
    // Who names an entry goes on reading the stream it stands in.
    for seen in 0..first.len() {
        let after = Some(first[seen].number);
        let rest = events(&server, request.clone(), after).await;
        assert_eq!(rest, first[seen + 1..]);
    }
    // Who names none opens a new stream, and by now there is a reply to open it with.
    for after in [None, Some(0)] {
        let again = events(&server, request.clone(), after).await;
        assert_eq!(kinds(&again), ["message"]);
        assert_eq!(again[0].number, first[2].number);
    }
    assert_eq!(server.agent_begun(), 1);
}

/// What a repeated message brings begins with the message, wherever the cursor comes from.
async fn a_cursor_from_before_the_message_counts_as_none(server: Harness) {
    let asked = server.client.send(text("ask what?")).await.unwrap();
    let request = unique(text_to(&asked, "echo this"));
    let first = events(&server, request.clone(), None).await;
    let [opening, rest @ ..] = &first[..] else {
        panic!("{first:?}");
    };
    assert!(opening.number > 2, "the task was there before");
    for after in [None, Some(0), Some(1), Some(opening.number - 1)] {
        assert_eq!(events(&server, request.clone(), after).await, first);
    }
    let after = Some(opening.number);
    assert_eq!(events(&server, request, after).await, rest);
    assert_eq!(server.agent_begun(), 2);
}

async fn a_task_that_ended_in_a_reply_is_a_task_like_any_other(server: Harness) {
    for pure in [false, true] {
        server.agent.pure.store(pure, Ordering::SeqCst);
        let reply = reply(&server, text("reply hi")).await;
        let stored = task(&server, &reply.task_id).await;
        assert_eq!(stored.status.state, TaskState::Completed);
        assert_eq!(stored.history.len(), 1);
        assert!(stored.artifacts.is_empty());

        let listed = ListTasksRequest {
            context_id: reply.context_id.clone(),
            ..ListTasksRequest::default()
        };
        let listed = server.client.list(listed).await.unwrap();
        assert_eq!(listed.tasks, std::slice::from_ref(&stored));
        assert_eq!(stored.status.message.as_ref(), Some(&reply));

        let late = server.client.send_any(text_to(&stored, "echo more")).await;
        assert_eq!(late.unwrap_err().reason(), "UNSUPPORTED_OPERATION");
        let canceled = server.client.cancel(&stored.id).await;
        assert_eq!(canceled.unwrap_err().reason(), "TASK_NOT_CANCELABLE");
        let Err(followed) = server.client.subscribe(&stored.id, None).await else {
            panic!("an ended task is followed");
        };
        assert_eq!(followed.reason(), "UNSUPPORTED_OPERATION");
        let replay = server.client.subscribe(&stored.id, Some(1)).await.unwrap();
        let replay = drain(replay).await.unwrap();
        assert_eq!(kinds(&replay), ["status", "status"]);
        // The conversation goes on with further tasks.
        let next = server.client.send(text_in(&reply.context_id, "echo more"));
        assert_ne!(next.await.unwrap().id, stored.id);
    }
}

async fn a_reply_survives_a_restart(mut server: Harness) {
    for (pure, last) in [(false, "0"), (true, "1")] {
        server.agent.pure.store(pure, Ordering::SeqCst);
        // Long enough to have a snapshot.
        let mut request = unique(text(&format!("reply {}", "hi ".repeat(3_000))));
        if let Some(message) = &mut request.message {
            message.message_id.replace_range(35.., last);
        }
        let first = reply(&server, request.clone()).await;
        server.restart().await;
        assert_eq!(reply(&server, request.clone()).await, first);
        // The journal is the truth: a snapshot that is damaged is passed over.
        server.restart_after(damage_snapshots).await;
        assert_eq!(reply(&server, request.clone()).await, first);
        let streamed = events(&server, request, None).await;
        assert_eq!(messages(&streamed), [&first]);
    }
    let kept = server.client.list(ListTasksRequest::default()).await;
    assert_eq!(kept.unwrap().total_size, 2);
}

/// Takes back, in every snapshot, that the task came to a reply.
fn damage_snapshots(database: &Path) {
    let mut bytes = std::fs::read(database).unwrap();
    let needle = br#""replied":true"#;
    let found: Vec<usize> = bytes
        .windows(needle.len())
        .enumerate()
        .filter_map(|(at, window)| (window == needle).then_some(at))
        .collect();
    assert!(!found.is_empty());
    for at in found {
        bytes[at + 1] ^= 1;
    }
    std::fs::write(database, bytes).unwrap();
}

async fn a_canceled_task_is_no_reply(server: Harness) {
    let request = unique(at_once(text("gate-reply hi")));
    let begun = server.client.send(request.clone()).await.unwrap();
    let canceled = server.client.cancel(&begun.id).await.unwrap();
    assert_eq!(canceled.status.state, TaskState::Canceled);
    assert_eq!(server.client.send(request).await.unwrap(), canceled);
}
