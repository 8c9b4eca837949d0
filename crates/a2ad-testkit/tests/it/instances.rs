//! Two instances on one database: any of them answers any call about any task.

use std::time::Duration;

use a2ad_pgkit::{Cluster, Durability};
use a2ad_proto::{GetTaskRequest, ListTasksRequest, StreamResponse, Task, TaskState};
use a2ad_testkit::client::{at_once, drain, text, text_in, text_to};
use a2ad_testkit::harness::{Binding, Harness, StoreKind};
use a2ad_testkit::http::call;
use futures_util::future::join_all;
use hyper::Method;

async fn two() -> (Harness, Harness) {
    let one = Harness::start(Binding::JsonRpc, StoreKind::Postgres).await;
    let other = one.another(Binding::HttpJson).await;
    (one, other)
}

fn of(task: &Task) -> GetTaskRequest {
    GetTaskRequest {
        id: task.id.clone(),
        ..GetTaskRequest::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_has_answered_the_other_shows() {
    let (one, other) = two().await;
    for n in 0..20 {
        let task = one
            .client
            .send(text(&format!("words a {n}")))
            .await
            .unwrap();
        assert_eq!(other.client.get(of(&task)).await.unwrap(), task);
        let list = other
            .client
            .list(ListTasksRequest::default())
            .await
            .unwrap();
        assert_eq!(list.tasks[0].id, task.id);
        assert_eq!(list.total_size, n + 1);
    }
    // And nothing that was read before is shown again once it has changed.
    let asked = one.client.send(text("ask what?")).await.unwrap();
    assert_eq!(other.client.get(of(&asked)).await.unwrap(), asked);
    let answered = one.client.send(text_to(&asked, "echo that")).await.unwrap();
    assert_eq!(other.client.get(of(&asked)).await.unwrap(), answered);
    let again = other.client.send(text("ask more?")).await.unwrap();
    assert_eq!(one.client.get(of(&again)).await.unwrap(), again);
    let answered = one.client.send(text_to(&again, "echo this")).await.unwrap();
    assert_eq!(answered.status.state, TaskState::Completed);
    assert_eq!(other.client.get(of(&again)).await.unwrap(), answered);
}

/// G-05.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_follows_a_task_that_runs_elsewhere() {
    let (one, other) = two().await;
    let task = one.client.send(at_once(text("gate"))).await.unwrap();
    one.wait_at_gate(&task.id).await;
    let live = other.client.subscribe(&task.id, None).await.unwrap();
    let replayed = other.client.subscribe(&task.id, Some(0)).await.unwrap();
    one.agent.open_gate();
    let live = drain(live).await.unwrap();
    let replayed = drain(replayed).await.unwrap();
    assert!(matches!(&live[0].response, StreamResponse::Task(opening)
        if opening.status.state == TaskState::Working));
    assert!(
        matches!(&live.last().unwrap().response, StreamResponse::StatusUpdate(update)
        if update.status.state == TaskState::Completed)
    );
    let at_home = one.client.subscribe(&task.id, Some(0)).await.unwrap();
    assert_eq!(drain(at_home).await.unwrap(), replayed);
    assert!(replayed.ends_with(&live[1..]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_carried_out_once_and_its_repeat_waits_for_the_result() {
    let (one, other) = two().await;
    let mut request = text("gate");
    request.message.as_mut().unwrap().message_id =
        "0198a5b2-7c1e-7f3a-9d2e-3b1f5c7a9e10".to_owned();
    let first = one.client.send(at_once(request.clone())).await.unwrap();
    one.wait_at_gate(&first.id).await;
    let blocked = other.client.send(request.clone());
    let opening = async {
        // The repeat is on its way; whether it waits yet does not matter.
        tokio::time::sleep(Duration::from_millis(50)).await;
        one.agent.open_gate();
    };
    let (again, ()) = tokio::join!(blocked, opening);
    let again = again.unwrap();
    assert_eq!(again.id, first.id);
    assert_eq!(again.status.state, TaskState::Completed);
    assert_eq!((one.agent_begun(), other.agent_begun()), (1, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_reaches_the_agent_wherever_it_works() {
    let (one, other) = two().await;
    let task = one.client.send(at_once(text("hold"))).await.unwrap();
    one.until(&task.id, |task| task.status.state == TaskState::Working)
        .await;
    let canceled = other.client.cancel(&task.id).await.unwrap();
    assert_eq!(canceled.status.state, TaskState::Canceled);
    // What the agent said on its way out is kept.
    assert_eq!(canceled.artifacts[0].parts[0].as_text(), Some("stopped"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_of_one_context_run_one_at_a_time_wherever_they_came_in() {
    let (one, other) = two().await;
    let first = one
        .client
        .send(at_once(text_in("talk", "gate")))
        .await
        .unwrap();
    one.wait_at_gate(&first.id).await;
    let mut later = Vec::new();
    for n in 0..6 {
        let server = if n % 2 == 0 { &other } else { &one };
        let request = at_once(text_in("talk", &format!("echo {n}")));
        later.push(server.client.send(request).await.unwrap());
    }
    for task in &later {
        let task = other.client.get(of(task)).await.unwrap();
        assert_eq!(task.status.state, TaskState::Submitted);
    }
    one.agent.open_gate();
    let mut ends = Vec::new();
    for task in &later {
        let ended = one
            .until(&task.id, |task| task.status.state.is_terminal())
            .await;
        assert_eq!(ended.status.state, TaskState::Completed);
        ends.push(ended.status.timestamp);
    }
    assert!(
        ends.is_sorted(),
        "in the order in which they came: {ends:?}"
    );
    assert_eq!(one.agent_begun() + other.agent_begun(), 7);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_that_stops_leaves_its_work_to_the_other() {
    let (one, other) = two().await;
    let task = one.client.send(at_once(text("gate"))).await.unwrap();
    one.wait_at_gate(&task.id).await;
    let stream = other.client.subscribe(&task.id, None).await.unwrap();
    one.stop().await;
    // It stands at the other's gate now.
    let begun = async {
        while other.agent_begun() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // Until it waits there.
        loop {
            other.agent.open_gate();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let events = tokio::select! {
        events = drain(stream) => events.unwrap(),
        () = begun => unreachable!("it goes on"),
    };
    assert!(
        matches!(&events.last().unwrap().response, StreamResponse::StatusUpdate(update)
        if update.status.state == TaskState::Completed)
    );
    assert_eq!(other.agent_begun(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_that_stops_still_takes_messages_for_the_other() {
    let other = Harness::start(Binding::JsonRpc, StoreKind::Postgres).await;
    let drain = Duration::from_secs(20);
    let one = other.another_with(Binding::HttpJson, drain).await;
    let task = one.client.send(at_once(text("gate"))).await.unwrap();
    one.wait_at_gate(&task.id).await;
    // It stays for as long as the turn at its gate may take.
    one.handle_stop();
    for n in 0..5 {
        let said = one.client.send(text(&format!("words a {n}"))).await;
        assert_eq!(said.unwrap().status.state, TaskState::Completed);
    }
    assert_eq!((one.agent_begun(), other.agent_begun()), (1, 5));
    one.agent.open_gate();
    let ended = other
        .until(&task.id, |task| task.status.state.is_terminal())
        .await;
    assert_eq!(ended.status.state, TaskState::Completed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_callers_at_both_lose_nothing() {
    let (one, other) = two().await;
    let sends = (0..200).map(|n| {
        let server = if n % 2 == 0 { &one } else { &other };
        server
            .client
            .send(text_in(&format!("talk {}", n % 7), &format!("echo {n}")))
    });
    for (n, task) in join_all(sends).await.into_iter().enumerate() {
        let task = task.unwrap();
        assert_eq!(task.status.state, TaskState::Completed);
        assert_eq!(
            task.artifacts[0].parts[0].as_text(),
            Some(format!("{n}").as_str())
        );
    }
    for server in [&one, &other] {
        let list = server
            .client
            .list(ListTasksRequest::default())
            .await
            .unwrap();
        assert_eq!(list.total_size, 200);
    }
    assert_eq!(one.agent_begun() + other.agent_begun(), 200);
}

/// Asks for readiness until it is as wanted.
async fn until_ready(server: &Harness, wanted: bool) {
    loop {
        let answer = call(server.addr(), Method::GET, "/readyz", &[], "").await;
        if answer.unwrap().status.is_success() == wanted {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_its_database_says_so_and_comes_back_by_itself() {
    let cluster = || Cluster::start(Durability::Full);
    let mut cluster = tokio::task::spawn_blocking(cluster).await.unwrap();
    let database = cluster.create();
    let server = Harness::start_on(Binding::HttpJson, Some(&database)).await;
    let kept = server.client.send(text("words one two")).await.unwrap();

    cluster.kill();
    until_ready(&server, false).await;
    let body = r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"echo x"}]}}"#;
    let json = [("content-type", "application/json"), ("a2a-version", "1.0")];
    let get = format!("/tasks/{}", kept.id);
    for (method, path, body) in [
        (Method::POST, "/message:send", body),
        (Method::GET, get.as_str(), ""),
        (Method::GET, "/tasks", ""),
    ] {
        let answer = call(server.addr(), method, path, &json, body)
            .await
            .unwrap();
        assert_eq!(answer.status, 503, "{path}: {answer:?}");
        assert!(answer.headers.contains_key("retry-after"), "{path}");
        let shown = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(!shown.contains("postgres"), "{shown}");
    }

    let restarted = tokio::task::spawn_blocking(move || {
        cluster.restart();
        cluster
    });
    let _cluster = restarted.await.unwrap();
    until_ready(&server, true).await;
    assert_eq!(server.client.get(of(&kept)).await.unwrap(), kept);
    let next = server.client.send(text("echo again")).await.unwrap();
    assert_eq!(next.status.state, TaskState::Completed);
}
