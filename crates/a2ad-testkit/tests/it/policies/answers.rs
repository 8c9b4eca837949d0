//! `reply` and `fast_path`.

use std::sync::atomic::Ordering;
use std::time::Duration;

use a2ad_proto::{
    GetTaskRequest, Message, Part, SendMessageRequest, SendMessageResponse, Task, TaskState,
};
use a2ad_testkit::client::{at_once, drain, text, text_in, text_to};
use a2ad_testkit::harness::Harness;
use tokio::time::Instant;

use super::{kinds, made, unique};

crate::scenarios![
    cf_12_what_is_done_in_time_is_answered_with_its_message,
    cf_12_what_takes_longer_is_answered_with_the_task,
    cf_12_what_waits_in_line_is_answered_with_the_task_at_once,
    cf_12_what_is_not_completed_or_more_than_text_is_a_task,
    cf_12_a_repeat_is_answered_the_same_way,
    cf_12_a_message_can_be_waited_for,
    cf_12_who_does_not_wait_gets_the_task,
    cf_12_streams_are_of_the_task,
];

async fn message(server: &Harness, request: SendMessageRequest) -> Message {
    match server.client.send_any(request).await.unwrap() {
        SendMessageResponse::Message(message) => message,
        SendMessageResponse::Task(task) => panic!("a message was expected: {task:?}"),
    }
}

async fn task(server: &Harness, id: &str) -> Task {
    let request = GetTaskRequest {
        id: id.to_owned(),
        ..GetTaskRequest::default()
    };
    server.client.get(request).await.unwrap()
}

async fn cf_12_what_is_done_in_time_is_answered_with_its_message(mut server: Harness) {
    server.adopt("{fast_path: 30s}").await;
    for pure in [false, true] {
        server.agent.pure.store(pure, Ordering::SeqCst);
        let reply = message(&server, text("echo  Hello \n")).await;
        assert_eq!(reply.parts, [Part::text(" Hello")]);
        let kept = task(&server, &reply.task_id).await;
        assert_eq!(kept.status.state, TaskState::Completed);
        assert_eq!(kept.context_id, reply.context_id);
        assert_eq!(made(&kept), " Hello \n");
    }
}

async fn cf_12_what_takes_longer_is_answered_with_the_task(mut server: Harness) {
    server.adopt("{fast_path: 40ms}").await;
    let begun = Instant::now();
    let request = unique(text("gate"), 1);
    let running = server.client.send(request.clone()).await.unwrap();
    assert!(!running.status.state.is_terminal(), "{running:?}");
    // The time that the task takes is the condition here.
    tokio::time::sleep_until(begun + Duration::from_millis(100)).await;
    let done = server
        .until(&running.id, |task| {
            server.agent.open_gate();
            task.status.state.is_terminal()
        })
        .await;
    let again = server.client.send(request).await.unwrap();
    assert_eq!(again, done);
}

async fn cf_12_what_waits_in_line_is_answered_with_the_task_at_once(mut server: Harness) {
    // The window is longer than this test may take.
    server.adopt("{fast_path: 1h}").await;
    let first = server.client.send(at_once(text_in("talk", "gate"))).await;
    let first = first.unwrap();
    server.wait_at_gate(&first.id).await;
    let queued = server.client.send(text_in("talk", "echo x")).await.unwrap();
    assert_eq!(queued.status.state, TaskState::Submitted);
    server.agent.open_gate();
    let ended = |task: &Task| task.status.state.is_terminal();
    assert_eq!(made(&server.until(&queued.id, ended).await), "x");
}

async fn cf_12_what_is_not_completed_or_more_than_text_is_a_task(mut server: Harness) {
    for policy in ["{fast_path: 30s}", "{reply: message}"] {
        server.adopt(policy).await;
        for (verb, state) in [
            ("fail", TaskState::Failed),
            ("reject", TaskState::Rejected),
            ("ask what?", TaskState::InputRequired),
            ("burst 1", TaskState::Completed),
        ] {
            let task = server.client.send(text(verb)).await.unwrap();
            assert_eq!(task.status.state, state, "{verb}");
        }
    }
}

async fn cf_12_a_repeat_is_answered_the_same_way(mut server: Harness) {
    server.adopt("{fast_path: 30s}").await;
    let request = unique(text("echo once"), 2);
    let first = message(&server, request.clone()).await;
    assert_eq!(message(&server, request.clone()).await, first);
    server.restart().await;
    assert_eq!(message(&server, request).await, first);
    assert_eq!(server.agent_begun(), 1);
}

async fn cf_12_a_message_can_be_waited_for(mut server: Harness) {
    server.adopt("{reply: message}").await;
    let request = unique(text("gate"), 3);
    let begun = server.client.send(at_once(request.clone())).await.unwrap();
    let waiting = message(&server, request.clone());
    let open = async {
        server.wait_at_gate(&begun.id).await;
        server.agent.open_gate();
    };
    let (reply, ()) = tokio::join!(waiting, open);
    assert_eq!(reply.parts, [Part::text("waiting passed")]);
    assert_eq!(reply.task_id, begun.id);
    assert_eq!(message(&server, request).await, reply);

    // Who has written to a task once more knows it as a task (SEND-15).
    let asked = server.client.send(text("ask what?")).await.unwrap();
    let done = server.client.send(text_to(&asked, "echo this")).await;
    assert_eq!(done.unwrap().status.state, TaskState::Completed);
}

async fn cf_12_who_does_not_wait_gets_the_task(mut server: Harness) {
    server.adopt("{reply: message}").await;
    server.agent.pure.store(true, Ordering::SeqCst);
    let request = unique(text("echo x"), 4);
    let done = server.client.send(at_once(request.clone())).await.unwrap();
    assert_eq!(done.status.state, TaskState::Completed);
    assert_eq!(message(&server, request).await.task_id, done.id);
}

async fn cf_12_streams_are_of_the_task(mut server: Harness) {
    server.adopt("{reply: message, fast_path: 30s}").await;
    for pure in [false, true] {
        server.agent.pure.store(pure, Ordering::SeqCst);
        let request = unique(text("echo x"), 5 + u8::from(pure));
        for _ in 0..2 {
            let stream = server.client.stream(request.clone(), None).await.unwrap();
            let events = drain(stream).await.unwrap();
            assert_eq!(kinds(&events), ["task", "status", "artifact", "status"]);
        }
    }
}
