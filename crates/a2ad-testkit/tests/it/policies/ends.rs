//! `end_state` and `continuation`, and what holds whatever is chosen.

use std::sync::atomic::Ordering;

use a2ad_proto::{Task, TaskState};
use a2ad_testkit::client::{Failure, at_once, drain, text, text_in, text_to};
use a2ad_testkit::harness::Harness;

use super::{kinds, made, said, states, unique};

crate::scenarios![
    cf_10_e_07_a_turn_that_went_well_leaves_its_task_open,
    cf_10_other_endings_are_as_ever,
    cf_11_who_names_a_task_is_told_what_to_do_instead,
    e_10_after_a_failure_the_conversation_goes_on_by_its_context,
    e_01_a_task_is_in_one_of_the_states_that_there_are,
    f_10_a_conversation_keeps_its_name_for_the_agent,
    g_13_what_is_wrong_is_told_before_a_stream_opens,
];

async fn cf_10_e_07_a_turn_that_went_well_leaves_its_task_open(mut server: Harness) {
    server.adopt("{end_state: input-required}").await;
    for pure in [false, true] {
        server.agent.pure.store(pure, Ordering::SeqCst);
        let first = server.client.send(text("echo one")).await.unwrap();
        assert_eq!(first.status.state, TaskState::InputRequired);
        assert_eq!(made(&first), "one");
        let second = server.client.send(text_to(&first, "echo two")).await;
        let second = second.unwrap();
        assert_eq!(
            (&second.id, second.status.state),
            (&first.id, TaskState::InputRequired)
        );
        assert_eq!(made(&second), "onetwo");
        // A reply is the end of a turn like any other.
        let third = server.client.send(text_to(&first, "reply three")).await;
        assert_eq!(said(&third.unwrap()), "three");
        let reply = server.client.send(text("reply hi")).await.unwrap();
        assert_eq!(reply.status.state, TaskState::InputRequired);

        let stream = server.client.stream(text("echo x"), None).await.unwrap();
        let events = drain(stream).await.unwrap();
        assert_eq!(kinds(&events), ["task", "status", "artifact", "status"]);
        assert_eq!(states(&events).last(), Some(&TaskState::InputRequired));
        let canceled = server.client.cancel(&first.id).await.unwrap();
        assert_eq!(canceled.status.state, TaskState::Canceled);
    }
}

async fn cf_10_other_endings_are_as_ever(mut server: Harness) {
    server.adopt("{end_state: input-required}").await;
    for (verb, state) in [
        ("fail", TaskState::Failed),
        ("reject", TaskState::Rejected),
        ("auth", TaskState::AuthRequired),
        ("panic", TaskState::Failed),
    ] {
        let task = server.client.send(text(verb)).await.unwrap();
        assert_eq!(task.status.state, state);
    }
}

async fn cf_11_who_names_a_task_is_told_what_to_do_instead(mut server: Harness) {
    let asked = server.client.send(text("ask what?")).await.unwrap();
    let answer = unique(text_to(&asked, "echo this"), 1);
    let done = server.client.send(answer.clone()).await.unwrap();
    let open = server.client.send(text("ask more?")).await.unwrap();
    server.adopt("{continuation: deny}").await;
    let unknown = Task {
        id: "0198a5b2-7c1e-7f3a-9d2e-3b1f5c7a9e10".to_owned(),
        ..Task::default()
    };
    let advice =
        "Use tasks/get to poll an existing task, or omit taskId when sending a new message.";
    for (task, what) in [
        (
            &open,
            format!(
                "Client-supplied taskId \"{}\" is not supported for message/send.",
                open.id
            ),
        ),
        (&unknown, format!("Unknown taskId \"{}\".", unknown.id)),
    ] {
        let refused = server
            .client
            .send(text_to(task, "echo x"))
            .await
            .unwrap_err();
        assert_eq!(refused.reason(), "INVALID_PARAMS");
        let Failure::Refused { message, .. } = refused else {
            panic!("{refused:?}");
        };
        assert!(message.contains(&format!("{what} {advice}")), "{message}");
    }
    // What was taken once is answered also if it would be refused now (SEND-17).
    assert_eq!(server.client.send(answer).await.unwrap(), done);
    let next = server
        .client
        .send(text_in(&open.context_id, "echo next"))
        .await;
    assert_eq!(made(&next.unwrap()), "next");
    assert_eq!(server.agent_begun(), 4);
}

async fn e_10_after_a_failure_the_conversation_goes_on_by_its_context(server: Harness) {
    let failed = server.client.send(text("fail")).await.unwrap();
    let late = server.client.send(text_to(&failed, "echo x")).await;
    assert_eq!(late.unwrap_err().reason(), "UNSUPPORTED_OPERATION");
    let next = server
        .client
        .send(text_in(&failed.context_id, "echo x"))
        .await;
    assert_eq!(next.unwrap().context_id, failed.context_id);
}

async fn e_01_a_task_is_in_one_of_the_states_that_there_are(server: Harness) {
    let held = server.client.send(at_once(text_in("talk", "hold"))).await;
    let held = held.unwrap();
    let working = |task: &Task| task.status.state == TaskState::Working;
    server.until(&held.id, working).await;
    let queued = server.client.send(at_once(text_in("talk", "echo x"))).await;
    let queued = queued.unwrap();
    assert_eq!(queued.status.state, TaskState::Submitted);
    let canceled = server.client.cancel(&held.id).await.unwrap();
    assert_eq!(canceled.status.state, TaskState::Canceled);
    let ended = |task: &Task| task.status.state.is_terminal();
    let done = server.until(&queued.id, ended).await;
    assert_eq!(done.status.state, TaskState::Completed);
    for (verb, state) in [
        ("ask what?", TaskState::InputRequired),
        ("auth", TaskState::AuthRequired),
        ("reject", TaskState::Rejected),
        ("fail", TaskState::Failed),
    ] {
        let task = server.client.send(text(verb)).await.unwrap();
        assert_eq!(task.status.state, state);
    }
}

async fn f_10_a_conversation_keeps_its_name_for_the_agent(mut server: Harness) {
    let first = server.client.send(text_in("talk", "where")).await.unwrap();
    let other = server.client.send(text_in("elsewhere", "where")).await;
    assert_ne!(made(&other.unwrap()), made(&first));
    server.restart().await;
    let later = server.client.send(text_in("talk", "where")).await.unwrap();
    assert_ne!(later.id, first.id);
    assert_eq!(made(&later), made(&first));
}

async fn g_13_what_is_wrong_is_told_before_a_stream_opens(server: Harness) {
    let mut empty = text("x");
    if let Some(message) = &mut empty.message {
        message.parts.clear();
    }
    let mut unknown = text("x");
    if let Some(message) = &mut unknown.message {
        "0198a5b2-7c1e-7f3a-9d2e-3b1f5c7a9e10".clone_into(&mut message.task_id);
    }
    for (request, reason) in [
        (empty, "INVALID_PARAMS"),
        (text_in(&"c".repeat(200), "x"), "INVALID_PARAMS"),
        (unknown, "TASK_NOT_FOUND"),
    ] {
        let Err(refused) = server.client.stream(request, None).await else {
            panic!("a stream opened");
        };
        assert_eq!(refused.reason(), reason);
    }
}
