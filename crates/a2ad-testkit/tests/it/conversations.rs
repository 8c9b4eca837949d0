//! Several messages: contexts, follow-ups, order.

use a2ad_proto::TaskState;
use a2ad_testkit::client::{at_once, text, text_in, text_to};
use a2ad_testkit::harness::Harness;

crate::scenarios![
    ctx_02_a_message_to_an_unknown_task_is_refused,
    ctx_03_ctx_04_the_context_of_a_task_is_its_own,
    ctx_05_a_message_to_an_ended_task_is_refused,
    ctx_07_ctx_08_a_context_is_made_or_kept,
    ctx_11_a_question_is_answered_in_the_same_task,
    ctx_11_a_message_to_a_working_task_waits_its_turn,
    messages_of_one_context_run_one_at_a_time_and_in_order,
    contexts_do_not_wait_for_each_other,
    a_full_context_takes_no_more,
];

/// E-10.
async fn ctx_02_a_message_to_an_unknown_task_is_refused(server: Harness) {
    let mut request = text("echo x");
    request.message.as_mut().unwrap().task_id = "11111111-1111-8111-8111-111111111111".to_owned();
    let refused = server.client.send(request).await.unwrap_err();
    assert_eq!(refused.reason(), "TASK_NOT_FOUND");
    assert_eq!(server.agent_begun(), 0);
}

/// E-10.
async fn ctx_03_ctx_04_the_context_of_a_task_is_its_own(server: Harness) {
    let task = server.client.send(text("ask a")).await.unwrap();
    let mut elsewhere = text_to(&task, "ask b");
    elsewhere.message.as_mut().unwrap().context_id = "another".to_owned();
    let refused = server.client.send(elsewhere).await.unwrap_err();
    assert_eq!(refused.reason(), "INVALID_PARAMS");

    let mut without = text_to(&task, "ask c");
    without.message.as_mut().unwrap().context_id.clear();
    let again = server.client.send(without).await.unwrap();
    assert_eq!(again.id, task.id);
    assert_eq!(again.context_id, task.context_id);
}

/// E-10.
async fn ctx_05_a_message_to_an_ended_task_is_refused(server: Harness) {
    let task = server.client.send(text("echo x")).await.unwrap();
    let refused = server
        .client
        .send(text_to(&task, "echo y"))
        .await
        .unwrap_err();
    assert_eq!(refused.reason(), "UNSUPPORTED_OPERATION");
    assert_eq!(server.agent_begun(), 1);
}

/// F-01, F-02.
async fn ctx_07_ctx_08_a_context_is_made_or_kept(server: Harness) {
    let made = server.client.send(text("echo x")).await.unwrap();
    assert!(!made.context_id.is_empty());
    let same = server
        .client
        .send(text_in(&made.context_id, "echo y"))
        .await
        .unwrap();
    assert_eq!(same.context_id, made.context_id);
    assert_ne!(same.id, made.id);
    let kept = server
        .client
        .send(text_in("my talk", "echo z"))
        .await
        .unwrap();
    assert_eq!(kept.context_id, "my talk");
    let too_long = "c".repeat(200);
    let refused = server
        .client
        .send(text_in(&too_long, "echo z"))
        .await
        .unwrap_err();
    assert_eq!(refused.reason(), "INVALID_PARAMS");
}

async fn ctx_11_a_question_is_answered_in_the_same_task(server: Harness) {
    let asked = server.client.send(text("ask how many?")).await.unwrap();
    assert_eq!(asked.status.state, TaskState::InputRequired);
    let question = asked.status.message.as_ref().unwrap();
    assert_eq!(question.parts[0].as_text(), Some("how many?"));
    let done = server
        .client
        .send(text_to(&asked, "echo three"))
        .await
        .unwrap();
    assert_eq!(done.id, asked.id);
    assert_eq!(done.status.state, TaskState::Completed);
    assert_eq!(done.artifacts[0].parts[0].as_text(), Some("three"));
}

async fn ctx_11_a_message_to_a_working_task_waits_its_turn(server: Harness) {
    let task = server.client.send(at_once(text("gate"))).await.unwrap();
    server
        .until(&task.id, |task| task.status.state == TaskState::Working)
        .await;
    let queued = server
        .client
        .send(at_once(text_to(&task, "echo later")))
        .await
        .unwrap();
    assert_eq!(queued.status.state, TaskState::Working);
    assert_eq!(queued.history.len(), 2);
    server.wait_at_gate(&task.id).await;
    server.agent.open_gate();
    let done = server
        .until(&task.id, |task| task.status.state.is_terminal())
        .await;
    assert_eq!(done.status.state, TaskState::Completed);
    let texts: Vec<String> = done
        .artifacts
        .iter()
        .map(|artifact| {
            let parts = artifact.parts.iter();
            parts.filter_map(a2ad_proto::Part::as_text).collect()
        })
        .collect();
    assert_eq!(texts, ["waiting passed", "later"]);
    assert_eq!(server.agent_most(), 1);
}

/// F-04.
async fn messages_of_one_context_run_one_at_a_time_and_in_order(server: Harness) {
    let first = server
        .client
        .send(at_once(text_in("talk", "gate")))
        .await
        .unwrap();
    let mut ids = vec![first.id.clone()];
    for n in 0..8 {
        let task = server
            .client
            .send(at_once(text_in("talk", &format!("words {n} and more"))))
            .await
            .unwrap();
        assert_eq!(task.status.state, TaskState::Submitted);
        ids.push(task.id);
    }
    server.wait_at_gate(&first.id).await;
    server.agent.open_gate();
    let mut ends = Vec::new();
    for id in &ids {
        let task = server
            .until(id, |task| task.status.state.is_terminal())
            .await;
        ends.push(task.status.timestamp);
    }
    assert!(ends.is_sorted(), "{ends:?}");
    assert_eq!(
        server.agent_most(),
        1,
        "two turns of one context ran at once"
    );
}

/// F-04.
async fn contexts_do_not_wait_for_each_other(server: Harness) {
    let held = server
        .client
        .send(at_once(text_in("one", "gate")))
        .await
        .unwrap();
    let free = server
        .client
        .send(text_in("two", "echo free"))
        .await
        .unwrap();
    assert_eq!(free.status.state, TaskState::Completed);
    server.wait_at_gate(&held.id).await;
    server.agent.open_gate();
    server
        .until(&held.id, |task| task.status.state.is_terminal())
        .await;
}

async fn a_full_context_takes_no_more(server: Harness) {
    let held = server
        .client
        .send(at_once(text_in("full", "hold")))
        .await
        .unwrap();
    for _ in 1..100 {
        server
            .client
            .send(at_once(text_in("full", "echo x")))
            .await
            .unwrap();
    }
    let refused = server
        .client
        .send(at_once(text_in("full", "echo x")))
        .await
        .unwrap_err();
    assert_eq!(refused.reason(), "RESOURCE_EXHAUSTED");
    server.client.cancel(&held.id).await.unwrap();
}
