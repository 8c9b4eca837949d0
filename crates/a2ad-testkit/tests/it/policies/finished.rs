//! `finished`.

use a2ad_proto::TaskState;
use a2ad_testkit::client::{drain, text};
use a2ad_testkit::harness::Harness;

use super::kinds;

crate::scenarios![
    cf_14_an_ended_task_can_be_replayed_without_a_cursor,
    cf_14_g_07_a_task_that_nobody_works_on_can_count_as_not_there,
];

async fn refusal(server: &Harness, id: &str) -> String {
    match server.client.subscribe(id, None).await {
        Ok(_) => panic!("it can be followed"),
        Err(refused) => refused.reason().to_owned(),
    }
}

async fn cf_14_an_ended_task_can_be_replayed_without_a_cursor(mut server: Harness) {
    let stream = server.client.stream(text("echo x"), None).await.unwrap();
    let first = drain(stream).await.unwrap();
    let a2ad_proto::StreamResponse::Task(task) = &first[0].response else {
        panic!("{first:?}");
    };
    assert_eq!(refusal(&server, &task.id).await, "UNSUPPORTED_OPERATION");
    server.adopt("{finished: replay}").await;
    for after in [None, Some(0)] {
        let replay = server.client.subscribe(&task.id, after).await.unwrap();
        assert_eq!(drain(replay).await.unwrap(), first);
    }
    // A task that goes on is shown as it is.
    let asked = server.client.send(text("ask what?")).await.unwrap();
    let mut stream = server.client.subscribe(&asked.id, None).await.unwrap();
    let opening = stream.next().await.unwrap().unwrap();
    assert_eq!(kinds(std::slice::from_ref(&opening)), ["task"]);
    let canceled = server.client.cancel(&asked.id).await.unwrap();
    assert_eq!(canceled.status.state, TaskState::Canceled);
    assert_eq!(kinds(&drain(stream).await.unwrap()), ["status"]);
}

async fn cf_14_g_07_a_task_that_nobody_works_on_can_count_as_not_there(mut server: Harness) {
    server.adopt("{finished: not-found}").await;
    for said in ["echo x", "fail", "ask what?", "auth"] {
        let task = server.client.send(text(said)).await.unwrap();
        assert_eq!(refusal(&server, &task.id).await, "TASK_NOT_FOUND", "{said}");
    }
    let task = server.client.send(text("echo x")).await.unwrap();
    // Who names what it has seen gets the rest.
    let rest = server.client.subscribe(&task.id, Some(1)).await.unwrap();
    assert_eq!(
        kinds(&drain(rest).await.unwrap()),
        ["status", "artifact", "status"]
    );
}
