//! What a stop and a start leave standing.

use a2ad_proto::{GetTaskRequest, ListTasksRequest, TaskState};
use a2ad_testkit::client::{at_once, drain, text, text_in, text_to};
use a2ad_testkit::harness::Harness;

crate::scenarios![
    tasks_streams_and_repeats_survive_a_restart,
    a_turn_that_ran_is_handed_back_and_runs_again,
    waiting_turns_run_after_a_restart,
    open_streams_end_after_a_whole_frame,
];

crate::scenarios![sqlite:
    the_database_is_sound_afterwards,
    a_damaged_task_does_not_hide_the_others,
];

/// G-05.
async fn tasks_streams_and_repeats_survive_a_restart(mut server: Harness) {
    let mut request = text("words one two");
    request.message.as_mut().unwrap().message_id =
        "0198a5b2-7c1e-7f3a-9d2e-3b1f5c7a9e10".to_owned();
    let events = drain(server.client.stream(request.clone(), None).await.unwrap())
        .await
        .unwrap();
    let asked = server
        .client
        .send(text_in("talk", "ask what?"))
        .await
        .unwrap();
    let listed = server
        .client
        .list(ListTasksRequest::default())
        .await
        .unwrap();
    server.restart().await;
    let again = server.client.stream(request, None).await.unwrap();
    assert_eq!(drain(again).await.unwrap(), events);
    let relisted = server
        .client
        .list(ListTasksRequest::default())
        .await
        .unwrap();
    assert_eq!(relisted.tasks, listed.tasks);
    let answered = server
        .client
        .send(text_to(&asked, "echo three"))
        .await
        .unwrap();
    assert_eq!(answered.status.state, TaskState::Completed);
    let same = server.client.send(text_in("talk", "echo x")).await.unwrap();
    assert_eq!(same.context_id, "talk");
}

async fn a_turn_that_ran_is_handed_back_and_runs_again(mut server: Harness) {
    let task = server.client.send(at_once(text("gate"))).await.unwrap();
    server.wait_at_gate(&task.id).await;
    server.restart().await;
    let stream = server.client.subscribe(&task.id, Some(0)).await.unwrap();
    // It stands at the gate again, in its second attempt.
    while server.agent_begun() < 2 {
        tokio::task::yield_now().await;
    }
    let pass = async {
        loop {
            server.agent.open_gate();
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    let events = tokio::select! {
        events = drain(stream) => events.unwrap(),
        () = pass => unreachable!(),
    };
    assert!(events.is_sorted_by(|a, b| a.number < b.number));
    let done = server
        .client
        .get(GetTaskRequest {
            id: task.id,
            ..GetTaskRequest::default()
        })
        .await
        .unwrap();
    assert_eq!(done.status.state, TaskState::Completed);
    let said: String = done.artifacts[0]
        .parts
        .iter()
        .filter_map(a2ad_proto::Part::as_text)
        .collect();
    assert_eq!(said, "waiting passed", "said once, although begun twice");
}

async fn waiting_turns_run_after_a_restart(mut server: Harness) {
    let mut first = at_once(text("hold"));
    first.message.as_mut().unwrap().context_id = "talk".to_owned();
    let held = server.client.send(first).await.unwrap();
    let mut second = at_once(text("echo second"));
    second.message.as_mut().unwrap().context_id = "talk".to_owned();
    let waiting = server.client.send(second).await.unwrap();
    server.restart().await;
    server.client.cancel(&held.id).await.unwrap();
    let done = server
        .until(&waiting.id, |task| task.status.state.is_terminal())
        .await;
    assert_eq!(done.status.state, TaskState::Completed);
}

async fn open_streams_end_after_a_whole_frame(server: Harness) {
    let task = server.client.send(at_once(text("hold"))).await.unwrap();
    let stream = server.client.subscribe(&task.id, None).await.unwrap();
    let blocked = server.client.send(text_to(&task, "echo later"));
    let (events, answered, _) = tokio::join!(drain(stream), blocked, async {
        server.until(&task.id, |task| task.history.len() == 2).await;
        server.handle_stop();
    });
    assert!(!events.unwrap().is_empty());
    let answered = answered.unwrap();
    assert!(!answered.status.state.is_terminal(), "{answered:?}");
}

async fn the_database_is_sound_afterwards(server: Harness) {
    for n in 0..20 {
        server
            .client
            .send(text(&format!("burst {}", n * 3)))
            .await
            .unwrap();
    }
    server.client.send(at_once(text("hold"))).await.unwrap();
    server.client.send(text("ask what?")).await.unwrap();
    let folder = server.stop().await;
    let report = a2ad_store::verify(&folder.path().join("data").join("a2ad.db")).unwrap();
    assert!(report.problems.is_empty(), "{report:?}");
}

async fn a_damaged_task_does_not_hide_the_others(mut server: Harness) {
    let mut ids = Vec::new();
    for n in 0..5 {
        let task = server.client.send(text(&format!("echo needle-{n}"))).await;
        ids.push(task.unwrap().id);
    }
    server
        .restart_after(|database| {
            let mut bytes = std::fs::read(database).unwrap();
            let needle = b"needle-2";
            let found: Vec<usize> = bytes
                .windows(needle.len())
                .enumerate()
                .filter_map(|(at, window)| (window == needle).then_some(at))
                .collect();
            assert!(!found.is_empty());
            for at in found {
                bytes[at] ^= 1;
            }
            std::fs::write(database, bytes).unwrap();
        })
        .await;
    let list = server
        .client
        .list(ListTasksRequest::default())
        .await
        .unwrap();
    let listed: Vec<_> = list.tasks.iter().map(|task| task.id.as_str()).collect();
    assert_eq!(listed, [&ids[4], &ids[3], &ids[1], &ids[0]]);
    for (n, id) in ids.iter().enumerate() {
        let got = server
            .client
            .get(GetTaskRequest {
                id: id.clone(),
                ..GetTaskRequest::default()
            })
            .await;
        match got {
            Ok(_) => assert_ne!(n, 2, "damage was served"),
            Err(error) => assert_eq!((n, error.reason()), (2, "INTERNAL_ERROR")),
        }
    }
}
