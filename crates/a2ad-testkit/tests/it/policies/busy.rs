//! `on_busy`.

use a2ad_proto::{Task, TaskState};
use a2ad_testkit::client::{at_once, text_in, text_to};
use a2ad_testkit::harness::{Binding, Harness, StoreKind};
use futures_util::future::join_all;

use super::{made, said, unique};

crate::scenarios![
    cf_09_e_08_a_busy_context_rejects_the_next_message,
    cf_09_of_many_messages_at_once_one_is_worked_on,
    cf_09_a_message_to_a_task_at_work_is_refused_and_harms_nobody,
    cf_09_contexts_reject_each_on_their_own,
    cf_09_e_11_after_a_cancel_the_context_takes_messages_again,
    cf_09_a_message_interrupts_what_is_under_way,
    cf_09_the_last_of_several_messages_is_next,
    cf_09_a_message_to_the_running_task_does_not_interrupt_it,
];

const BUSY: &str = "Task is already working.";

fn ended(task: &Task) -> bool {
    task.status.state.is_terminal()
}

/// A task in the context `talk` that stands at the gate.
async fn at_the_gate(server: &Harness) -> Task {
    let task = server.client.send(at_once(text_in("talk", "gate"))).await;
    let task = task.unwrap();
    server.wait_at_gate(&task.id).await;
    task
}

async fn cf_09_e_08_a_busy_context_rejects_the_next_message(mut server: Harness) {
    server.adopt("{on_busy: reject}").await;
    let first = at_the_gate(&server).await;
    // Nobody waits for it: a rejection is there at once.
    let request = at_once(unique(text_in("talk", "echo no"), 1));
    let rejected = server.client.send(request.clone()).await.unwrap();
    assert_eq!(rejected.status.state, TaskState::Failed);
    assert_eq!(said(&rejected), BUSY);
    assert_eq!(rejected.context_id, "talk");
    assert_eq!(rejected.history.len(), 1, "the message is kept");
    assert_eq!(server.agent_begun(), 1, "the agent did not hear of it");

    server.agent.open_gate();
    let done = server.until(&first.id, ended).await;
    assert_eq!(made(&done), "waiting passed");
    let next = server.client.send(text_in("talk", "echo yes")).await;
    assert_eq!(made(&next.unwrap()), "yes");
    // What was rejected stays so.
    assert_eq!(server.client.send(request).await.unwrap(), rejected);
    assert_eq!(server.agent_begun(), 2);
}

async fn cf_09_of_many_messages_at_once_one_is_worked_on(mut server: Harness) {
    server.adopt("{on_busy: reject}").await;
    let sends = (0..12).map(|_| server.client.send(at_once(text_in("talk", "gate"))));
    let tasks = join_all(sends).await;
    let (rejected, taken): (Vec<Task>, Vec<Task>) = tasks
        .into_iter()
        .map(Result::unwrap)
        .partition(|task| task.status.state == TaskState::Failed);
    assert_eq!((rejected.len(), taken.len()), (11, 1));
    assert!(rejected.iter().all(|task| said(task) == BUSY));
    server.wait_at_gate(&taken[0].id).await;
    server.agent.open_gate();
    let done = server.until(&taken[0].id, ended).await;
    assert_eq!(done.status.state, TaskState::Completed);
    assert_eq!(server.agent_begun(), 1);
}

async fn cf_09_a_message_to_a_task_at_work_is_refused_and_harms_nobody(mut server: Harness) {
    server.adopt("{on_busy: reject}").await;
    let first = at_the_gate(&server).await;
    let refused = server.client.send(at_once(text_to(&first, "echo no")));
    let refused = refused.await;
    assert_eq!(refused.unwrap_err().reason(), "UNSUPPORTED_OPERATION");
    server.agent.open_gate();
    let done = server.until(&first.id, ended).await;
    assert_eq!(done.status.state, TaskState::Completed);
    assert_eq!(done.history.len(), 1);
}

async fn cf_09_contexts_reject_each_on_their_own(mut server: Harness) {
    server.adopt("{on_busy: reject}").await;
    let first = at_the_gate(&server).await;
    for context in ["", "other"] {
        let other = server.client.send(text_in(context, "echo x")).await;
        assert_eq!(other.unwrap().status.state, TaskState::Completed);
    }
    server.agent.open_gate();
    server.until(&first.id, ended).await;
}

async fn cf_09_e_11_after_a_cancel_the_context_takes_messages_again(mut server: Harness) {
    server.adopt("{on_busy: reject}").await;
    let first = server.client.send(at_once(text_in("talk", "hold"))).await;
    let first = first.unwrap();
    let working = |task: &Task| task.status.state == TaskState::Working;
    server.until(&first.id, working).await;
    let rejected = server.client.send(at_once(text_in("talk", "echo no")));
    assert_eq!(said(&rejected.await.unwrap()), BUSY);
    // The context is busy, and the cancel goes through all the same.
    let canceled = server.client.cancel(&first.id).await.unwrap();
    assert_eq!(canceled.status.state, TaskState::Canceled);
    let next = server.client.send(text_in("talk", "echo yes")).await;
    assert_eq!(made(&next.unwrap()), "yes");
}

async fn cf_09_a_message_interrupts_what_is_under_way(mut server: Harness) {
    server.adopt("{on_busy: interrupt}").await;
    for verb in ["hold", "stubborn"] {
        let first = server.client.send(at_once(text_in("talk", verb))).await;
        let first = first.unwrap();
        let working = |task: &Task| task.status.state == TaskState::Working;
        server.until(&first.id, working).await;
        let next = server.client.send(at_once(text_in("talk", "echo next")));
        let next = server.until(&next.await.unwrap().id, ended).await;
        assert_eq!(made(&next), "next");
        let first = server.until(&first.id, ended).await;
        assert_eq!(first.status.state, TaskState::Canceled, "{verb}");
    }
    assert_eq!(server.agent_most(), 1);
}

async fn cf_09_the_last_of_several_messages_is_next(mut server: Harness) {
    server.adopt("{on_busy: interrupt}").await;
    let first = at_the_gate(&server).await;
    let sends = (0..8).map(|n| {
        let words = format!("hold {n}");
        server.client.send(at_once(text_in("talk", &words)))
    });
    let sends = sends.collect::<Vec<_>>();
    let mut others: Vec<Task> = join_all(sends)
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();
    let last = server.client.send(at_once(text_in("talk", "echo last")));
    let last = server.until(&last.await.unwrap().id, ended).await;
    assert_eq!(made(&last), "last");
    others.push(first);
    for other in others {
        let other = server.until(&other.id, ended).await;
        assert_eq!(other.status.state, TaskState::Canceled);
    }
    assert_eq!(server.agent_most(), 1);
}

async fn cf_09_a_message_to_the_running_task_does_not_interrupt_it(mut server: Harness) {
    server.adopt("{on_busy: interrupt}").await;
    let first = at_the_gate(&server).await;
    let next = server
        .client
        .send(at_once(text_to(&first, "echo more")))
        .await;
    assert_eq!(next.unwrap().status.state, TaskState::Working);
    server.agent.open_gate();
    let done = server.until(&first.id, ended).await;
    assert_eq!(done.status.state, TaskState::Completed);
    assert_eq!(made(&done), "waiting passedmore");
}

async fn two(policy: &str) -> (Harness, Harness) {
    let mut one = Harness::start(Binding::JsonRpc, StoreKind::Postgres).await;
    one.adopt(policy).await;
    let other = one.another(Binding::HttpJson).await;
    (one, other)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cf_09_a_context_is_busy_wherever_its_agent_works() {
    let (one, other) = two("{on_busy: reject}").await;
    let sends = (0..10).map(|n| {
        let server = if n % 2 == 0 { &one } else { &other };
        server.client.send(at_once(text_in("talk", "gate")))
    });
    let sends = sends.collect::<Vec<_>>();
    let tasks: Vec<Task> = join_all(sends)
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();
    let taken: Vec<&Task> = tasks.iter().filter(|task| !ended(task)).collect();
    assert_eq!(taken.len(), 1, "{tasks:?}");
    assert!(
        tasks
            .iter()
            .filter(|task| ended(task))
            .all(|task| said(task) == BUSY)
    );
    let done = one
        .until(&taken[0].id, |task| {
            one.agent.open_gate();
            other.agent.open_gate();
            ended(task)
        })
        .await;
    assert_eq!(done.status.state, TaskState::Completed);
    assert_eq!(one.agent_begun() + other.agent_begun(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cf_09_a_message_interrupts_an_agent_at_another_instance() {
    let (one, other) = two("{on_busy: interrupt}").await;
    let first = one
        .client
        .send(at_once(text_in("talk", "hold")))
        .await
        .unwrap();
    let working = |task: &Task| task.status.state == TaskState::Working;
    other.until(&first.id, working).await;
    let next = other.client.send(at_once(text_in("talk", "echo next")));
    let next = other.until(&next.await.unwrap().id, ended).await;
    assert_eq!(made(&next), "next");
    let first = other.until(&first.id, ended).await;
    assert_eq!(first.status.state, TaskState::Canceled);
}
