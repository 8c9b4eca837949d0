//! SendMessage and GetTask.

use a2ad_proto::{
    GetTaskRequest, Message, Metadata, Part, Role, SendMessageConfiguration, SendMessageRequest,
    Task, TaskPushNotificationConfig, TaskState,
};
use a2ad_testkit::client::{text, text_to};
use a2ad_testkit::harness::{Binding, Harness};

crate::scenarios![
    send_02_a_blocking_send_answers_with_the_finished_task,
    send_03_a_send_that_returns_at_once_leaves_the_work_running,
    send_06_missing_members_are_named,
    send_07_only_the_users_role_is_taken,
    ops_02_an_inline_push_config_is_refused_while_push_is_off,
    send_12_the_agent_sees_the_requests_metadata,
    send_16_failures_after_acceptance_are_tasks,
    send_17_a_repeated_uuid_is_the_same_message,
    send_17_a_used_uuid_with_another_text_is_refused,
    send_17_a_hand_typed_id_is_not_unique,
    get_02_whatever_is_no_task_of_ours_is_not_found,
    hist_01_hist_02_hist_03_hist_04_history_length,
    art_03_output_that_is_invalid_fails_the_task,
    many_artifacts_in_one_go_all_arrive,
    a_flaky_turn_is_tried_again_and_its_text_is_not_doubled,
    a_turn_that_always_fails_dies_after_its_last_try,
];

fn answer(task: &Task) -> String {
    task.artifacts
        .iter()
        .flat_map(|artifact| &artifact.parts)
        .filter_map(Part::as_text)
        .collect()
}

fn said(task: &Task) -> String {
    let message = task.status.message.as_ref();
    message
        .into_iter()
        .flat_map(|message| &message.parts)
        .filter_map(Part::as_text)
        .collect()
}

fn get(id: &str, history_length: Option<i32>) -> GetTaskRequest {
    GetTaskRequest {
        id: id.to_owned(),
        history_length,
        ..GetTaskRequest::default()
    }
}

fn with_id(mut request: SendMessageRequest, id: &str) -> SendMessageRequest {
    if let Some(message) = &mut request.message {
        id.clone_into(&mut message.message_id);
    }
    request
}

async fn send_02_a_blocking_send_answers_with_the_finished_task(server: Harness) {
    let task = server.client.send(text("echo hello there")).await.unwrap();
    assert_eq!(task.status.state, TaskState::Completed);
    assert_eq!(answer(&task), "hello there");
    assert_eq!(task.history[0].parts, [Part::text("echo hello there")]);
    assert_eq!(task.history[0].task_id, task.id);
    assert_eq!(task.history[0].context_id, task.context_id);
    assert!(task.status.timestamp.is_some());
    let again = server.client.get(get(&task.id, None)).await.unwrap();
    assert_eq!(again, task);
}

async fn send_03_a_send_that_returns_at_once_leaves_the_work_running(server: Harness) {
    let mut request = text("gate");
    request.configuration = Some(SendMessageConfiguration {
        return_immediately: true,
        ..SendMessageConfiguration::default()
    });
    let task = server.client.send(request).await.unwrap();
    assert!(!task.status.state.is_terminal());
    let working = server
        .until(&task.id, |task| answer(task) == "waiting ")
        .await;
    assert_eq!(working.status.state, TaskState::Working);
    server.agent.open_gate();
    let done = server
        .until(&task.id, |task| task.status.state.is_terminal())
        .await;
    assert_eq!(answer(&done), "waiting passed");
}

async fn send_06_missing_members_are_named(server: Harness) {
    for (break_it, field) in [
        (
            Box::new(|message: &mut Message| message.message_id.clear())
                as Box<dyn Fn(&mut Message)>,
            "messageId",
        ),
        (Box::new(|message| message.parts.clear()), "parts"),
        (Box::new(|message| message.role = Role::Unspecified), "role"),
    ] {
        let mut request = text("echo x");
        break_it(request.message.as_mut().unwrap());
        let refused = server.client.send(request).await.unwrap_err();
        assert_eq!(refused.reason(), "INVALID_PARAMS");
        assert!(format!("{refused:?}").contains(field), "{refused:?}");
    }
    let refused = server
        .client
        .send(SendMessageRequest::default())
        .await
        .unwrap_err();
    assert_eq!(refused.reason(), "INVALID_PARAMS");
    assert_eq!(server.agent_begun(), 0, "nothing was started");
}

async fn send_07_only_the_users_role_is_taken(server: Harness) {
    let mut request = text("echo x");
    request.message.as_mut().unwrap().role = Role::Agent;
    let refused = server.client.send(request).await.unwrap_err();
    assert_eq!(refused.reason(), "INVALID_PARAMS");
}

async fn ops_02_an_inline_push_config_is_refused_while_push_is_off(server: Harness) {
    let mut request = text("echo x");
    request.configuration = Some(SendMessageConfiguration {
        task_push_notification_config: Some(TaskPushNotificationConfig {
            url: "https://example.com/hook".to_owned(),
            ..TaskPushNotificationConfig::default()
        }),
        ..SendMessageConfiguration::default()
    });
    let refused = server.client.send(request).await.unwrap_err();
    assert_eq!(refused.reason(), "PUSH_NOTIFICATION_NOT_SUPPORTED");
    assert_eq!(server.agent_begun(), 0, "nothing was started");
}

async fn send_12_the_agent_sees_the_requests_metadata(server: Harness) {
    let mut request = text("whoami");
    request.metadata = Some(Metadata::parse(r#"{"n": 12345678901234567890}"#).unwrap());
    let task = server.client.send(request).await.unwrap();
    // JSON keeps the literal; over gRPC a number is a double (JSON-10).
    let number = match server.binding() {
        Binding::JsonRpc | Binding::HttpJson => "12345678901234567890",
        Binding::Grpc => "1.2345678901234567e+19",
    };
    assert_eq!(answer(&task), format!(r#"anonymous {{"n":{number}}} 0"#));
}

/// E-03.
async fn send_16_failures_after_acceptance_are_tasks(server: Harness) {
    let unexpected = "Task failed: The agent failed unexpectedly (error ae2537d05282)";
    for (verb, state, text_said) in [
        ("fail", TaskState::Failed, "could not"),
        ("reject", TaskState::Rejected, "not for me"),
        ("panic", TaskState::Failed, unexpected),
    ] {
        let task = server.client.send(text(verb)).await.unwrap();
        assert_eq!(task.status.state, state, "{verb}");
        assert_eq!(said(&task), text_said);
    }
}

const UUID: &str = "0198a5b2-7c1e-7f3a-9d2e-3b1f5c7a9e10";
/// CF-16, E-09.
async fn send_17_a_repeated_uuid_is_the_same_message(server: Harness) {
    let request = with_id(text("echo once"), UUID);
    let first = server.client.send(request.clone()).await.unwrap();
    let mut again = request.clone();
    again.configuration = Some(SendMessageConfiguration {
        history_length: Some(0),
        ..SendMessageConfiguration::default()
    });
    assert_eq!(server.client.send(again).await.unwrap().id, first.id);
    assert_eq!(server.agent_begun(), 1);

    let task = server.client.send(text("ask what?")).await.unwrap();
    let reply = with_id(
        text_to(&task, "echo done"),
        "0198a5b2-7c1e-7f3a-9d2e-3b1f5c7a9e11",
    );
    let answered = server.client.send(reply.clone()).await.unwrap();
    assert_eq!(answered.status.state, TaskState::Completed);
    // The task has ended since, and still the repeated answer is the answer.
    assert_eq!(server.client.send(reply).await.unwrap(), answered);
}

/// CF-16.
async fn send_17_a_used_uuid_with_another_text_is_refused(server: Harness) {
    server
        .client
        .send(with_id(text("echo once"), UUID))
        .await
        .unwrap();
    let refused = server
        .client
        .send(with_id(text("echo twice"), UUID))
        .await
        .unwrap_err();
    assert_eq!(refused.reason(), "INVALID_PARAMS");
    assert!(format!("{refused:?}").contains("use a new one"));
    assert_eq!(server.agent_begun(), 1);
}

/// CF-16.
async fn send_17_a_hand_typed_id_is_not_unique(server: Harness) {
    let one = server
        .client
        .send(with_id(text("echo a"), "1"))
        .await
        .unwrap();
    let two = server
        .client
        .send(with_id(text("echo b"), "1"))
        .await
        .unwrap();
    assert_ne!(one.id, two.id);
}

/// CF-13.
async fn get_02_whatever_is_no_task_of_ours_is_not_found(server: Harness) {
    let task = server.client.send(text("echo x")).await.unwrap();
    let mut neighbour = task.id.clone();
    let last = if neighbour.ends_with('0') { "1" } else { "0" };
    neighbour.replace_range(35.., last);
    let long = "x".repeat(5_000);
    for id in [
        "nope",
        "../etc/passwd",
        "00000000-0000-8000-8000-000000000000",
        &neighbour,
        &task.id.to_uppercase(),
        &long,
        "a\u{0}b",
        "ünï",
    ] {
        let refused = server.client.get(get(id, None)).await.unwrap_err();
        assert_eq!(refused.reason(), "TASK_NOT_FOUND", "{id:?}");
    }
    let refused = server.client.get(get("", None)).await.unwrap_err();
    assert_eq!(refused.reason(), "INVALID_PARAMS");
}

async fn hist_01_hist_02_hist_03_hist_04_history_length(server: Harness) {
    let task = server.client.send(text("ask what?")).await.unwrap();
    let task = server
        .client
        .send(text_to(&task, "echo done"))
        .await
        .unwrap();
    let all = server.client.get(get(&task.id, None)).await.unwrap();
    let texts: Vec<_> = all
        .history
        .iter()
        .filter_map(|said| said.parts[0].as_text())
        .collect();
    assert_eq!(texts, ["ask what?", "what?", "echo done"]);
    let none = server.client.get(get(&task.id, Some(0))).await.unwrap();
    assert!(none.history.is_empty());
    let two = server.client.get(get(&task.id, Some(2))).await.unwrap();
    assert_eq!(two.history, all.history[1..]);
    let many = server.client.get(get(&task.id, Some(50))).await.unwrap();
    assert_eq!(many.history, all.history);
    let refused = server
        .client
        .get(get(&task.id, Some(-1)))
        .await
        .unwrap_err();
    assert_eq!(refused.reason(), "INVALID_PARAMS");
}

async fn art_03_output_that_is_invalid_fails_the_task(server: Harness) {
    let task = server.client.send(text("orphan-chunk")).await.unwrap();
    assert_eq!(task.status.state, TaskState::Failed);
    assert!(task.artifacts.is_empty());
}

/// SEND-05.
async fn many_artifacts_in_one_go_all_arrive(server: Harness) {
    let task = server.client.send(text("burst 700")).await.unwrap();
    assert_eq!(task.status.state, TaskState::Completed);
    let ids: Vec<_> = (0..700).map(|n| format!("a{n}")).collect();
    let got: Vec<_> = task
        .artifacts
        .iter()
        .map(|artifact| artifact.artifact_id.clone())
        .collect();
    assert_eq!(got, ids);
}

/// E-12.
async fn a_flaky_turn_is_tried_again_and_its_text_is_not_doubled(server: Harness) {
    let task = server.client.send(text("flaky 3")).await.unwrap();
    assert_eq!(task.status.state, TaskState::Completed);
    assert_eq!(answer(&task), "made it");
    assert_eq!(server.agent_begun(), 3);
}

async fn a_turn_that_always_fails_dies_after_its_last_try(server: Harness) {
    let task = server.client.send(text("flaky 99")).await.unwrap();
    assert_eq!(task.status.state, TaskState::Failed);
    let told = said(&task);
    assert!(
        told.starts_with("Task failed: come back later (error "),
        "{told}"
    );
    assert_eq!(server.agent_begun(), 5);
}
