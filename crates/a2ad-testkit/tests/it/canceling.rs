//! CancelTask.

use std::sync::Arc;

use a2ad_proto::TaskState;
use a2ad_testkit::client::{at_once, drain, text, text_in, text_to};
use a2ad_testkit::harness::Harness;

crate::scenarios![
    cancel_01_a_running_task_is_stopped,
    cancel_02_an_ended_task_cannot_be_canceled,
    cancel_04_streams_see_the_end,
    a_waiting_task_is_canceled_at_once_and_never_runs,
    an_interrupted_task_can_be_canceled,
    an_agent_that_does_not_listen_is_cut_off,
    cancel_ends_the_messages_in_line,
    cancel_against_completion_has_one_winner,
];

/// E-11.
async fn cancel_01_a_running_task_is_stopped(server: Harness) {
    let task = server.client.send(at_once(text("hold"))).await.unwrap();
    server
        .until(&task.id, |task| task.status.state == TaskState::Working)
        .await;
    let canceled = server.client.cancel(&task.id).await.unwrap();
    assert_eq!(canceled.status.state, TaskState::Canceled);
    // What the agent said on its way out is kept.
    assert_eq!(canceled.artifacts[0].parts[0].as_text(), Some("stopped"));
    let later = server.client.send(text("echo next")).await.unwrap();
    assert_eq!(later.status.state, TaskState::Completed);
}

/// E-11.
async fn cancel_02_an_ended_task_cannot_be_canceled(server: Harness) {
    let task = server.client.send(text("echo x")).await.unwrap();
    let refused = server.client.cancel(&task.id).await.unwrap_err();
    assert_eq!(refused.reason(), "TASK_NOT_CANCELABLE");
    let task = server.client.send(at_once(text("hold"))).await.unwrap();
    server.client.cancel(&task.id).await.unwrap();
    let refused = server.client.cancel(&task.id).await.unwrap_err();
    assert_eq!(refused.reason(), "TASK_NOT_CANCELABLE");
    let refused = server.client.cancel("nobody").await.unwrap_err();
    assert_eq!(refused.reason(), "TASK_NOT_FOUND");
}

async fn cancel_04_streams_see_the_end(server: Harness) {
    let task = server.client.send(at_once(text("hold"))).await.unwrap();
    let stream = server.client.subscribe(&task.id, None).await.unwrap();
    server.client.cancel(&task.id).await.unwrap();
    let events = drain(stream).await.unwrap();
    let last = events.last().unwrap();
    assert!(
        matches!(&last.response, a2ad_proto::StreamResponse::StatusUpdate(update)
            if update.status.state == TaskState::Canceled),
        "{last:?}"
    );
}

async fn a_waiting_task_is_canceled_at_once_and_never_runs(server: Harness) {
    let first = server
        .client
        .send(at_once(text_in("talk", "hold")))
        .await
        .unwrap();
    let second = server
        .client
        .send(at_once(text_in("talk", "echo never")))
        .await
        .unwrap();
    let canceled = server.client.cancel(&second.id).await.unwrap();
    assert_eq!(canceled.status.state, TaskState::Canceled);
    server.client.cancel(&first.id).await.unwrap();
    let after = server
        .client
        .send(text_in("talk", "echo after"))
        .await
        .unwrap();
    assert_eq!(after.status.state, TaskState::Completed);
    assert_eq!(server.agent_begun(), 2);
}

/// E-11.
async fn an_interrupted_task_can_be_canceled(server: Harness) {
    let task = server.client.send(text("ask what?")).await.unwrap();
    let canceled = server.client.cancel(&task.id).await.unwrap();
    assert_eq!(canceled.status.state, TaskState::Canceled);
}

async fn an_agent_that_does_not_listen_is_cut_off(server: Harness) {
    let task = server.client.send(at_once(text("stubborn"))).await.unwrap();
    server
        .until(&task.id, |task| task.status.state == TaskState::Working)
        .await;
    server.client.cancel(&task.id).await.unwrap();
    let done = server
        .until(&task.id, |task| task.status.state.is_terminal())
        .await;
    assert_eq!(done.status.state, TaskState::Canceled);
}

async fn cancel_ends_the_messages_in_line(server: Harness) {
    let task = server.client.send(at_once(text("hold"))).await.unwrap();
    server
        .client
        .send(at_once(text_to(&task, "echo never")))
        .await
        .unwrap();
    let canceled = server.client.cancel(&task.id).await.unwrap();
    assert_eq!(canceled.status.state, TaskState::Canceled);
    assert_eq!(server.agent_begun(), 1);
}

/// CANCEL-04.
async fn cancel_against_completion_has_one_winner(server: Harness) {
    let server = Arc::new(server);
    for round in 0..40 {
        let words = format!("words a b {round}");
        let task = server.client.send(at_once(text(&words))).await.unwrap();
        let stream = server.client.subscribe(&task.id, Some(0)).await.unwrap();
        let canceled = server.client.cancel(&task.id).await;
        let events = drain(stream).await.unwrap();
        let ends: Vec<TaskState> = events
            .iter()
            .filter_map(|event| match &event.response {
                a2ad_proto::StreamResponse::StatusUpdate(update) => Some(update.status.state),
                _ => None,
            })
            .filter(|state| state.is_terminal())
            .collect();
        assert_eq!(ends.len(), 1);
        match canceled {
            Ok(task) => assert_eq!(
                (task.status.state, ends[0]),
                (TaskState::Canceled, TaskState::Canceled)
            ),
            Err(refused) => {
                assert_eq!(refused.reason(), "TASK_NOT_CANCELABLE");
                assert_eq!(ends[0], TaskState::Completed);
            }
        }
    }
}
