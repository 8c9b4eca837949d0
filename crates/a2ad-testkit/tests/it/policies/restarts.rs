//! `on_restart`, where the server stops in good order. Crashes are among the engine's tests.

use a2ad_proto::{Task, TaskState};
use a2ad_testkit::client::{at_once, text, text_to};
use a2ad_testkit::harness::Harness;

use super::{made, said};

crate::scenarios![
    cf_27_a_turn_that_a_stop_cut_off_can_fail,
    cf_27_a_turn_that_a_stop_cut_off_can_be_left_to_the_client,
];

/// A task that stands at the gate when the server is stopped and started again.
async fn cut_off(server: &mut Harness) -> Task {
    let task = server.client.send(at_once(text("gate"))).await.unwrap();
    server.wait_at_gate(&task.id).await;
    server.restart().await;
    task
}

async fn cf_27_a_turn_that_a_stop_cut_off_can_fail(mut server: Harness) {
    server.adopt("{on_restart: fail}").await;
    let task = cut_off(&mut server).await;
    let ended = |task: &Task| task.status.state.is_terminal();
    let failed = server.until(&task.id, ended).await;
    assert_eq!(failed.status.state, TaskState::Failed);
    let told = "Task was interrupted by process exit and cannot be revived automatically.";
    assert_eq!(said(&failed), told);
    assert_eq!(server.agent_begun(), 1);
}

async fn cf_27_a_turn_that_a_stop_cut_off_can_be_left_to_the_client(mut server: Harness) {
    server.adopt("{on_restart: input-required}").await;
    let task = cut_off(&mut server).await;
    let waits = |task: &Task| task.status.state == TaskState::InputRequired;
    let asks = server.until(&task.id, waits).await;
    assert!(said(&asks).contains("interrupted by process exit"));
    assert_eq!(made(&asks), "waiting ");
    assert_eq!(server.agent_begun(), 1);
    let done = server.client.send(text_to(&task, "echo again")).await;
    assert_eq!(made(&done.unwrap()), "waiting again");
}
