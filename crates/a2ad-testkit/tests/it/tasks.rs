//! What a task is to its client: named, answered, settled, ended.

use std::collections::HashSet;
use std::time::Duration;

use a2ad_proto::{
    GetTaskRequest, ListTasksRequest, Message, Metadata, Role, SendMessageRequest, Task, TaskState,
};
use a2ad_testkit::client::{at_once, drain, text, text_in, text_to};
use a2ad_testkit::harness::Harness;

crate::scenarios![
    model_03_an_ended_task_stays_as_it_ended,
    model_07_a_status_adds_its_message_and_metadata_to_the_task,
    model_08_ids_of_ours_are_uuids_and_those_of_others_are_kept,
    ctx_01_the_server_names_its_tasks,
    ctx_11_a_task_that_waits_for_authorisation_takes_messages,
    get_01_a_task_is_answered_whole,
    send_02_an_answer_waits_until_the_task_is_settled,
    send_12_the_agent_sees_the_messages_metadata,
    send_16_what_is_wrong_before_a_task_exists_leaves_none,
    send_18_a_caller_that_hangs_up_leaves_its_task_running,
    hist_01_hist_02_hist_03_history_is_cut_in_every_answer,
    cancel_03_canceling_again_changes_nothing,
];

fn by_id(id: &str) -> GetTaskRequest {
    GetTaskRequest {
        id: id.to_owned(),
        ..GetTaskRequest::default()
    }
}

async fn get(server: &Harness, id: &str) -> Task {
    server.client.get(by_id(id)).await.unwrap()
}

async fn total(server: &Harness) -> i32 {
    let list = server.client.list(ListTasksRequest::default()).await;
    list.unwrap().total_size
}

/// The id of the only task, as soon as there is one.
async fn first(server: &Harness) -> String {
    let look = async {
        loop {
            let list = server.client.list(ListTasksRequest::default()).await;
            if let Some(task) = list.unwrap().tasks.first() {
                return task.id.clone();
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let found = tokio::time::timeout(Duration::from_secs(30), look).await;
    found.expect("a task is made")
}

fn is_uuid(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    let hex = |group: &&str| group.bytes().all(|byte| byte.is_ascii_hexdigit());
    groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12]) && groups.iter().all(hex)
}

/// E-15.
async fn model_03_an_ended_task_stays_as_it_ended(server: Harness) {
    for verb in ["echo x", "fail", "reject", "pieces"] {
        let ended = server.client.send(text(verb)).await.unwrap();
        assert!(ended.status.state.is_terminal(), "{verb}");
        let more = server.client.send(text_to(&ended, "echo more")).await;
        assert_eq!(more.unwrap_err().reason(), "UNSUPPORTED_OPERATION");
        let more = server.client.stream(text_to(&ended, "echo more"), None);
        let Err(refused) = more.await else {
            panic!("an ended task goes on");
        };
        assert_eq!(refused.reason(), "UNSUPPORTED_OPERATION");
        let canceled = server.client.cancel(&ended.id).await;
        assert_eq!(canceled.unwrap_err().reason(), "TASK_NOT_CANCELABLE");
        assert_eq!(get(&server, &ended.id).await, ended);
        // The conversation goes on with another task, which may point back.
        let mut next = text_in(&ended.context_id, "echo more");
        next.message.as_mut().unwrap().reference_task_ids = vec![ended.id.clone()];
        let next = server.client.send(next).await.unwrap();
        assert_ne!(next.id, ended.id);
        assert_eq!(next.context_id, ended.context_id);
        assert_eq!(
            next.history[0].reference_task_ids,
            std::slice::from_ref(&ended.id)
        );
        assert_eq!(get(&server, &ended.id).await, ended);
    }
}

async fn model_07_a_status_adds_its_message_and_metadata_to_the_task(server: Harness) {
    let task = server.client.send(text("notes")).await.unwrap();
    let texts = |messages: &[Message]| -> Vec<String> {
        let text = |said: &Message| said.parts[0].as_text().unwrap().to_owned();
        messages.iter().map(text).collect()
    };
    // The end has no message, so the last one said is history as well.
    assert_eq!(task.status.message, None);
    assert_eq!(texts(&task.history), ["notes", "one", "two"]);
    let metadata = task.metadata.as_ref().unwrap();
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(metadata.as_str()).unwrap(),
        serde_json::json!({"a": "1", "b": "2"})
    );
    assert_eq!(get(&server, &task.id).await, task);
}

async fn model_08_ids_of_ours_are_uuids_and_those_of_others_are_kept(server: Harness) {
    let task = server.client.send(text("ask what?")).await.unwrap();
    let question = task.status.message.as_ref().unwrap();
    for id in [&task.id, &task.context_id, &question.message_id] {
        assert!(is_uuid(id), "{id}");
    }
    for id in [
        "1",
        "Überraschung 🎉",
        "a/b?c#d%41",
        "  x  ",
        &"m".repeat(100),
    ] {
        let mut request = text_in(id, "echo x");
        request.message.as_mut().unwrap().message_id = id.to_owned();
        let task = server.client.send(request).await.unwrap();
        assert_eq!(task.history[0].message_id, id);
        assert_eq!(task.context_id, id);
        let listed = ListTasksRequest {
            context_id: id.to_owned(),
            ..ListTasksRequest::default()
        };
        let listed = server.client.list(listed).await.unwrap();
        assert_eq!(listed.total_size, 1, "{id}");
    }
}

async fn ctx_01_the_server_names_its_tasks(server: Harness) {
    let mut ids = HashSet::new();
    for _ in 0..20 {
        let task = server.client.send(text("echo x")).await.unwrap();
        assert!(ids.insert(task.id));
    }
    // A name that is free is no name that a client may choose.
    for id in ["mine", "0198a5b2-7c1e-7f3a-9d2e-3b1f5c7a9e10"] {
        let mut request = text("echo x");
        request.message.as_mut().unwrap().task_id = id.to_owned();
        let refused = server.client.send(request).await.unwrap_err();
        assert_eq!(refused.reason(), "TASK_NOT_FOUND");
        let refused = server.client.get(by_id(id)).await.unwrap_err();
        assert_eq!(refused.reason(), "TASK_NOT_FOUND");
    }
    assert_eq!(total(&server).await, 20);
}

async fn ctx_11_a_task_that_waits_for_authorisation_takes_messages(server: Harness) {
    let task = server.client.send(text("auth")).await.unwrap();
    assert_eq!(task.status.state, TaskState::AuthRequired);
    let done = server.client.send(text_to(&task, "echo me")).await.unwrap();
    assert_eq!(done.id, task.id);
    assert_eq!(done.status.state, TaskState::Completed);
}

/// E-13.
async fn get_01_a_task_is_answered_whole(server: Harness) {
    let sent = server.client.send(text("pieces")).await.unwrap();
    let got = get(&server, &sent.id).await;
    assert_eq!(got.id, sent.id);
    assert_eq!(got.context_id, sent.context_id);
    assert_eq!(got.status.state, TaskState::Completed);
    assert!(got.status.timestamp.is_some());
    assert_eq!(got.artifacts.len(), 2);
    assert_eq!(got.history.len(), 1);
    assert_eq!(got.history[0].role, Role::User);
}

async fn send_02_an_answer_waits_until_the_task_is_settled(server: Harness) {
    let mut waiting = server.client.send(text("gate"));
    let id = tokio::select! {
        answered = &mut waiting => panic!("answered while working: {answered:?}"),
        id = first(&server) => id,
    };
    let open = async {
        server.wait_at_gate(&id).await;
        server.agent.open_gate();
    };
    let ((), answered) = tokio::join!(open, waiting);
    assert_eq!(answered.unwrap().status.state, TaskState::Completed);
    for (verb, state) in [
        ("ask what?", TaskState::InputRequired),
        ("auth", TaskState::AuthRequired),
        ("fail", TaskState::Failed),
        ("reject", TaskState::Rejected),
    ] {
        let task = server.client.send(text(verb)).await.unwrap();
        assert_eq!(task.status.state, state);
    }
}

async fn send_12_the_agent_sees_the_messages_metadata(server: Harness) {
    let metadata = Metadata::parse(r#"{"urn:x:tone":"warm"}"#).unwrap();
    let mut request = text("heard");
    request.message.as_mut().unwrap().metadata = Some(metadata.clone());
    let task = server.client.send(request).await.unwrap();
    let heard = task.artifacts[0].parts[0].as_text();
    assert_eq!(heard, Some(metadata.as_str()));
    assert_eq!(task.history[0].metadata, Some(metadata));
    assert_eq!(task.metadata, None, "it is the message's, not the task's");
}

async fn send_16_what_is_wrong_before_a_task_exists_leaves_none(server: Harness) {
    let unknown = {
        let mut request = text("echo x");
        request.message.as_mut().unwrap().task_id = "nope".to_owned();
        request
    };
    let nameless = {
        let mut request = text("echo x");
        request.message.as_mut().unwrap().message_id.clear();
        request
    };
    for request in [unknown, nameless, SendMessageRequest::default()] {
        assert!(server.client.send(request.clone()).await.is_err());
        assert!(server.client.stream(request, None).await.is_err());
    }
    assert_eq!(total(&server).await, 0);
    assert_eq!(server.agent_begun(), 0);
}

/// CF-30.
async fn send_18_a_caller_that_hangs_up_leaves_its_task_running(server: Harness) {
    let waiting = server.client.send(text("gate"));
    // What is not chosen is dropped, and its connection with it.
    let id = tokio::select! {
        answered = waiting => panic!("answered while working: {answered:?}"),
        id = first(&server) => id,
    };
    server.wait_at_gate(&id).await;
    server.agent.open_gate();
    let ended = |task: &Task| task.status.state.is_terminal();
    let done = server.until(&id, ended).await;
    assert_eq!(done.status.state, TaskState::Completed);
}

/// C-05.
async fn hist_01_hist_02_hist_03_history_is_cut_in_every_answer(server: Harness) {
    let asked = server.client.send(text("ask one")).await.unwrap();
    for (length, most) in [
        (None, usize::MAX),
        (Some(0), 0),
        (Some(1), 1),
        (Some(2), 2),
        (Some(i32::MAX), usize::MAX),
    ] {
        let mut request = text_to(&asked, "ask more");
        request.configuration.get_or_insert_default().history_length = length;
        let sent = server.client.send(request).await.unwrap();
        let all = get(&server, &asked.id).await.history;
        assert_eq!(sent.history, all[all.len().saturating_sub(most)..]);
        let got = GetTaskRequest {
            history_length: length,
            ..by_id(&asked.id)
        };
        assert_eq!(server.client.get(got).await.unwrap().history, sent.history);
        let listed = ListTasksRequest {
            history_length: length,
            ..ListTasksRequest::default()
        };
        let listed = server.client.list(listed).await.unwrap();
        assert_eq!(listed.tasks[0].history, sent.history);
    }
}

async fn cancel_03_canceling_again_changes_nothing(server: Harness) {
    let task = server.client.send(at_once(text("hold"))).await.unwrap();
    let working = |task: &Task| task.status.state == TaskState::Working;
    server.until(&task.id, working).await;
    let canceled = server.client.cancel(&task.id).await.unwrap();
    let stream = server.client.subscribe(&task.id, Some(0)).await.unwrap();
    let journal = drain(stream).await.unwrap();
    for _ in 0..3 {
        let again = server.client.cancel(&task.id).await.unwrap_err();
        assert_eq!(again.reason(), "TASK_NOT_CANCELABLE");
    }
    assert_eq!(get(&server, &task.id).await, canceled);
    let stream = server.client.subscribe(&task.id, Some(0)).await.unwrap();
    assert_eq!(drain(stream).await.unwrap(), journal);
}
