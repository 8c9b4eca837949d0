//! What the official Rust clients see of the server, over every binding.
//!
//! The capitals in the comments are the requirements of A2A 1.0 that a scenario is about, as
//! docs/interop.md names them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test, with a runner of its own because its cases are known only when it runs"
)]

mod agent;

use std::collections::BTreeSet;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::process::ExitCode;
use std::time::Duration;

use a2a::error_code::{
    INVALID_PARAMS, PUSH_NOTIFICATION_NOT_SUPPORTED, TASK_NOT_CANCELABLE, TASK_NOT_FOUND,
    UNSUPPORTED_OPERATION,
};
use a2a::{
    DeleteTaskPushNotificationConfigRequest, GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest, ListTasksRequest, Message, PartContent, Role,
    SendMessageResponse, StreamResponse, TaskPushNotificationConfig, TaskState, new_message_id,
};
use agent::{
    Agent, Send, floats, listing, next, opening, refused, refused_stream, rest, shown, words,
};
use serde_json::json;

const DEADLINE: Duration = Duration::from_secs(30);
const NOBODY: &str = "6f1c1a44-5d6a-4d6e-9d0e-0c8f6b5a7e11";

type Run = fn(Agent) -> Pin<Box<dyn Future<Output = ()>>>;

/// Names a scenario after the function that plays it.
macro_rules! scenarios {
    ($($name:ident),* $(,)?) => {
        &[$((stringify!($name), |agent| Box::pin($name(agent)))),*]
    };
}

const SCENARIOS: &[(&str, Run)] = scenarios![
    the_card_lists_the_bindings_that_the_server_has,
    send_answers_with_the_finished_task,
    a_failure_of_the_agent_is_a_task_and_no_error,
    send_can_answer_at_once,
    a_message_sent_again_makes_no_second_task,
    a_stream_opens_with_the_task_and_tells_everything_in_order,
    get_returns_the_task_with_as_much_history_as_wanted,
    list_pages_through_a_context_newest_first,
    list_filters_by_state,
    cancel_ends_the_task_and_its_stream,
    a_subscriber_joins_a_running_task,
    two_subscribers_see_the_same_events,
    a_task_asks_and_goes_on_with_the_answer,
    an_agent_can_answer_with_a_message,
    a_task_that_is_not_there_is_not_found,
    a_task_that_has_ended_takes_nothing_more,
    wrong_parameters_are_refused,
    push_notifications_are_refused,
];

fn setting(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set; run `cargo xtask interop`"))
}

fn main() -> ExitCode {
    let Ok(url) = std::env::var("A2AD_INTEROP_URL") else {
        println!("no server, nothing tested; `cargo xtask interop rust` starts one");
        return ExitCode::SUCCESS;
    };
    // Without, the SDK's HTTP client does not start when it is built together with ours, which
    // brings its own. There is no TLS here.
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    provider.install_default().unwrap();
    let bindings = setting("A2AD_INTEROP_BINDINGS");
    let (mut passed, mut failed) = (0, Vec::new());
    for binding in bindings.split(',') {
        for (name, run) in SCENARIOS {
            let played = catch_unwind(AssertUnwindSafe(|| {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .unwrap();
                let scenario = async { run(Agent::over(&url, binding).await).await };
                let done =
                    runtime.block_on(async { tokio::time::timeout(DEADLINE, scenario).await });
                done.expect("the deadline has passed");
            }));
            if played.is_ok() {
                passed += 1;
            } else {
                println!("FAILED {binding} {name}");
                failed.push(format!("{binding} {name}"));
            }
        }
    }
    println!("{passed} passed, {} failed", failed.len());
    for name in &failed {
        println!("  {name}");
    }
    ExitCode::from(u8::from(!failed.is_empty()))
}

// CARD-01, CARD-02
async fn the_card_lists_the_bindings_that_the_server_has(agent: Agent) {
    let bindings = setting("A2AD_INTEROP_BINDINGS");
    let versions = setting("A2AD_INTEROP_VERSIONS");
    // All of one version come before those of the next.
    let expected: Vec<BTreeSet<_>> = versions
        .split(',')
        .map(|version| bindings.split(',').map(|one| (one, version)).collect())
        .collect();
    let listed: Vec<BTreeSet<_>> = agent
        .card
        .supported_interfaces
        .chunk_by(|one, next| one.protocol_version == next.protocol_version)
        .map(|same| {
            same.iter()
                .map(|one| (one.protocol_binding.as_str(), one.protocol_version.as_str()))
                .collect()
        })
        .collect();
    assert_eq!(listed, expected);
    let all = bindings.split(',').count() * versions.split(',').count();
    assert_eq!(agent.card.supported_interfaces.len(), all);
    assert_eq!(agent.card.name, "Interop");
    assert_eq!(agent.card.skills.len(), 1);
    assert_eq!(agent.card.skills[0].id, "interop");
    assert_eq!(agent.card.capabilities.streaming, Some(true));
    assert_eq!(agent.card.capabilities.push_notifications, Some(false));
}

// SEND-01, SEND-02, SEND-05, CTX-01, CTX-07
async fn send_answers_with_the_finished_task(agent: Agent) {
    let id = new_message_id();
    let task = agent
        .send(Send::text("parts please").message_id(&id))
        .await
        .unwrap();
    assert!(!task.id.is_empty() && !task.context_id.is_empty());
    assert_eq!(task.status.state, TaskState::Completed);
    assert!(task.status.timestamp.is_some());
    let message = task.status.message.as_ref().unwrap();
    assert_eq!(message.role, Role::Agent);
    assert_eq!(message.text(), Some(format!("That was {id}").as_str()));
    let artifacts = task.artifacts.unwrap();
    assert_eq!(artifacts.len(), 1);
    assert_eq!(artifacts[0].artifact_id, "parts");
    assert_eq!(artifacts[0].name.as_deref(), Some("all kinds"));
    let [text, raw, url, data] = artifacts[0].parts.as_slice() else {
        panic!("{:?}", artifacts[0].parts);
    };
    assert_eq!(text.as_text(), Some("Grüße, parts please"));
    assert_eq!(raw.content, PartContent::Raw(vec![0, 1, 254, 255]));
    assert_eq!(raw.media_type.as_deref(), Some("application/octet-stream"));
    assert_eq!(raw.filename.as_deref(), Some("bytes.bin"));
    assert_eq!(
        url.content,
        PartContent::Url("https://example.com/a.png".into())
    );
    assert_eq!(url.media_type.as_deref(), Some("image/png"));
    let PartContent::Data(data) = &data.content else {
        panic!("{data:?}");
    };
    let expected = json!({
        "pages": 3, "price": 1.5, "tags": ["a", "b"], "nested": {"none": null, "yes": true}
    });
    // Over gRPC every number is a floating one.
    assert_eq!(floats(data), floats(&expected));
    let history = task.history.unwrap();
    assert_eq!(history[0].message_id, id);
    assert_eq!(history[0].role, Role::User);
    assert_eq!(history[0].text(), Some("parts please"));
}

// SEND-16
async fn a_failure_of_the_agent_is_a_task_and_no_error(agent: Agent) {
    let task = agent.send(Send::text("fail")).await.unwrap();
    assert_eq!(task.status.state, TaskState::Failed);
    assert_eq!(task.status.message.unwrap().text(), Some("It broke"));
    let task = agent.send(Send::text("reject")).await.unwrap();
    assert_eq!(task.status.state, TaskState::Rejected);
    assert_eq!(task.status.message.unwrap().text(), Some("Not for me"));
    let task = agent
        .send(Send::text("something no rule fits"))
        .await
        .unwrap();
    assert_eq!(task.status.state, TaskState::Rejected);
}

// SEND-03, CANCEL-01
async fn send_can_answer_at_once(agent: Agent) {
    let task = agent.send(Send::text("hold on").at_once()).await.unwrap();
    assert!(matches!(
        task.status.state,
        TaskState::Submitted | TaskState::Working
    ));
    let task = agent.cancel(&task.id).await.unwrap();
    assert_eq!(task.status.state, TaskState::Canceled);
}

// SEND-17
async fn a_message_sent_again_makes_no_second_task(agent: Agent) {
    let id = new_message_id();
    let first = agent
        .send(Send::text("short").message_id(&id))
        .await
        .unwrap();
    let again = agent
        .send(Send::text("short").message_id(&id))
        .await
        .unwrap();
    let other = agent.send(Send::text("short")).await.unwrap();
    assert_eq!(again.id, first.id);
    assert_ne!(other.id, first.id);
}

// STREAM-01, STREAM-03, STREAM-04, STREAM-06, STREAM-07, ART-01, ART-02, ART-04
async fn a_stream_opens_with_the_task_and_tells_everything_in_order(agent: Agent) {
    let mut frames = agent.stream(Send::text("stream please")).await.unwrap();
    let task = opening(&mut frames).await;
    assert_eq!(task.status.state, TaskState::Submitted);
    assert_eq!(
        task.history.as_ref().unwrap()[0].text(),
        Some("stream please")
    );
    assert_eq!(
        rest(frames, &task).await,
        [
            "status Working",
            "status Working: Working on it",
            "artifact numbers new: one",
            "artifact numbers append: two",
            "artifact numbers append last: three",
            "status Completed: Counted",
        ]
    );
    let kept = agent.get(&task.id, None).await.unwrap().artifacts.unwrap();
    assert_eq!(kept.len(), 1);
    assert_eq!(words(&kept[0].parts), "one|two|three");
}

// GET-01, HIST-01, HIST-02, HIST-03
async fn get_returns_the_task_with_as_much_history_as_wanted(agent: Agent) {
    let asks = agent.send(Send::text("ask me")).await.unwrap();
    let sent = agent.send(Send::text("blue").in_task(&asks)).await.unwrap();
    assert_eq!(agent.get(&sent.id, None).await.unwrap(), sent);
    let none = agent.get(&sent.id, Some(0)).await.unwrap();
    assert!(none.history.unwrap_or_default().is_empty());
    assert_eq!(none.artifacts, sent.artifacts);
    let one = agent.get(&sent.id, Some(1)).await.unwrap().history.unwrap();
    let whole = sent.history.unwrap();
    assert!(whole.len() >= 2);
    assert_eq!(one, whole[whole.len() - 1..]);
}

// LIST-02, LIST-03, LIST-04, LIST-05, LIST-06, CTX-06, CTX-08
async fn list_pages_through_a_context_newest_first(agent: Agent) {
    let mut made = vec![agent.send(Send::text("short 0")).await.unwrap()];
    let context = made[0].context_id.clone();
    for number in 1..5 {
        let send = Send::text(&format!("short {number}")).in_context(&context);
        made.push(agent.send(send).await.unwrap());
    }
    assert!(made.iter().all(|task| task.context_id == context));

    let (mut seen, mut sizes, mut token) = (Vec::new(), Vec::new(), None);
    for _ in 0..=made.len() {
        let asked = ListTasksRequest {
            page_size: Some(2),
            page_token: token.clone(),
            ..listing(&context)
        };
        let page = agent.client.list_tasks(&asked).await.unwrap();
        assert_eq!((page.page_size, page.total_size), (2, 5));
        let artifacts = page.tasks.iter().flat_map(|task| &task.artifacts);
        assert_eq!(artifacts.flatten().count(), 0);
        sizes.push(page.tasks.len());
        seen.extend(page.tasks.into_iter().map(|task| task.id));
        if page.next_page_token.is_empty() {
            break;
        }
        token = Some(page.next_page_token);
    }
    let newest_first: Vec<_> = made.iter().rev().map(|task| task.id.clone()).collect();
    assert_eq!(seen, newest_first);
    assert_eq!(sizes, [2, 2, 1]);

    let asked = ListTasksRequest {
        include_artifacts: Some(true),
        history_length: Some(0),
        ..listing(&context)
    };
    let page = agent.client.list_tasks(&asked).await.unwrap();
    assert_eq!((page.page_size, page.total_size), (50, 5));
    assert_eq!(page.next_page_token, "");
    let texts = page
        .tasks
        .iter()
        .map(|task| words(&task.artifacts.as_ref().unwrap()[0].parts));
    let texts: Vec<_> = texts.collect();
    assert_eq!(
        texts,
        ["short 4", "short 3", "short 2", "short 1", "short 0"]
    );
    let histories = page.tasks.iter().flat_map(|task| &task.history);
    assert_eq!(histories.flatten().count(), 0);
}

// LIST-01, LIST-06
async fn list_filters_by_state(agent: Agent) {
    let done = agent.send(Send::text("short")).await.unwrap();
    let waits = Send::text("ask me").in_context(&done.context_id);
    let waits = agent.send(waits).await.unwrap();
    for (state, expected) in [
        (TaskState::Completed, vec![&done.id]),
        (TaskState::InputRequired, vec![&waits.id]),
        (TaskState::Failed, vec![]),
    ] {
        let asked = ListTasksRequest {
            status: Some(state),
            ..listing(&done.context_id)
        };
        let page = agent.client.list_tasks(&asked).await.unwrap();
        let found: Vec<_> = page.tasks.iter().map(|task| &task.id).collect();
        assert_eq!(found, expected);
        assert_eq!(usize::try_from(page.total_size), Ok(expected.len()));
    }
}

// CANCEL-01, CANCEL-02, CANCEL-04, STREAM-03
async fn cancel_ends_the_task_and_its_stream(agent: Agent) {
    let mut frames = agent.stream(Send::text("hold on")).await.unwrap();
    let task = opening(&mut frames).await;
    assert_eq!(shown(next(&mut frames).await, &task), "status Working");
    assert_eq!(
        shown(next(&mut frames).await, &task),
        "status Working: Holding"
    );
    let canceled = agent.cancel(&task.id).await.unwrap();
    assert_eq!(canceled.id, task.id);
    assert_eq!(canceled.status.state, TaskState::Canceled);
    let end = rest(frames, &task).await;
    assert_eq!(end.len(), 1);
    assert!(end[0].starts_with("status Canceled"), "{end:?}");
    refused(TASK_NOT_CANCELABLE, agent.cancel(&task.id).await);
}

// SUB-01, SUB-04, STREAM-05
async fn a_subscriber_joins_a_running_task(agent: Agent) {
    let mut sender = agent.stream(Send::text("hold on")).await.unwrap();
    let task = opening(&mut sender).await;
    assert_eq!(shown(next(&mut sender).await, &task), "status Working");
    assert_eq!(
        shown(next(&mut sender).await, &task),
        "status Working: Holding"
    );
    let mut frames = agent.subscribe(&task.id).await.unwrap();
    assert_eq!(shown(next(&mut frames).await, &task), "task Working");
    agent.cancel(&task.id).await.unwrap();
    let end = rest(sender, &task).await;
    assert_eq!(end, rest(frames, &task).await);
    assert_eq!(end.len(), 1);
    assert!(end[0].starts_with("status Canceled"), "{end:?}");
}

// SUB-01, SUB-03, SUB-04, STREAM-05, CTX-03, CTX-11
async fn two_subscribers_see_the_same_events(agent: Agent) {
    let task = agent.send(Send::text("ask me")).await.unwrap();
    assert_eq!(task.status.state, TaskState::InputRequired);
    let mut first = agent.subscribe(&task.id).await.unwrap();
    let mut second = agent.subscribe(&task.id).await.unwrap();
    assert_eq!(shown(next(&mut first).await, &task), "task InputRequired");
    assert_eq!(shown(next(&mut second).await, &task), "task InputRequired");
    // Without the context: the task has it.
    let answered = agent
        .send(Send::text("blue").for_task(&task.id))
        .await
        .unwrap();
    assert_eq!(
        (&answered.id, &answered.context_id),
        (&task.id, &task.context_id)
    );
    let seen = rest(first, &task).await;
    assert_eq!(seen, rest(second, &task).await);
    assert_eq!(
        seen,
        [
            "status Working",
            "status Working: Mixing blue",
            "artifact paint new last: A bucket of blue",
            "status Completed: It is blue",
        ]
    );
}

// CTX-11, SEND-15, STREAM-02, STREAM-08
async fn a_task_asks_and_goes_on_with_the_answer(agent: Agent) {
    let task = agent.send(Send::text("ask me")).await.unwrap();
    assert_eq!(task.status.state, TaskState::InputRequired);
    let question = task.status.message.as_ref().and_then(Message::text);
    assert_eq!(question, Some("Which colour?"));

    // The stream of a message ends when the agent asks again.
    let mut frames = agent
        .stream(Send::text("red").in_task(&task))
        .await
        .unwrap();
    assert_eq!(opening(&mut frames).await.id, task.id);
    let end = rest(frames, &task).await;
    assert_eq!(end.last().unwrap(), "status InputRequired: Which colour?");

    let done = agent.send(Send::text("blue").in_task(&task)).await.unwrap();
    assert_eq!((&done.id, &done.context_id), (&task.id, &task.context_id));
    assert_eq!(done.status.state, TaskState::Completed);
    assert_eq!(done.status.message.unwrap().text(), Some("It is blue"));
    let history = done.history.unwrap();
    let said = history.iter().filter(|message| message.role == Role::User);
    let said: Vec<_> = said.filter_map(Message::text).collect();
    assert_eq!(said, ["ask me", "red", "blue"]);
}

// SEND-14, STREAM-01
async fn an_agent_can_answer_with_a_message(agent: Agent) {
    let request = Send::text("message me").request();
    let SendMessageResponse::Message(sent) = agent.client.send_message(&request).await.unwrap()
    else {
        panic!("a task came");
    };
    let mut frames = agent.stream(Send::text("message me")).await.unwrap();
    let StreamResponse::Message(streamed) = next(&mut frames).await else {
        panic!("no message came");
    };
    agent::ended(frames).await;
    for message in [sent, streamed] {
        assert_eq!(message.role, Role::Agent);
        assert_eq!(message.text(), Some("Just this: message me"));
        assert!(!message.message_id.is_empty());
        let context = message.context_id.unwrap_or_default();
        assert!(!context.is_empty());
        let id = message.task_id.unwrap_or_default();
        let task = agent.get(&id, None).await.unwrap();
        assert_eq!(task.context_id, context);
        assert_eq!(task.status.state, TaskState::Completed);
    }
}

// GET-02, CTX-02, SUB-02
async fn a_task_that_is_not_there_is_not_found(agent: Agent) {
    refused(TASK_NOT_FOUND, agent.get(NOBODY, None).await);
    refused(TASK_NOT_FOUND, agent.cancel(NOBODY).await);
    let send = || Send::text("short").for_task(NOBODY);
    refused(TASK_NOT_FOUND, agent.send(send()).await);
    refused_stream(TASK_NOT_FOUND, agent.stream(send()).await).await;
    refused_stream(TASK_NOT_FOUND, agent.subscribe(NOBODY).await).await;
}

// CTX-05, CANCEL-02, SUB-02
async fn a_task_that_has_ended_takes_nothing_more(agent: Agent) {
    let task = agent.send(Send::text("short")).await.unwrap();
    let send = || Send::text("short").for_task(&task.id);
    refused(UNSUPPORTED_OPERATION, agent.send(send()).await);
    refused_stream(UNSUPPORTED_OPERATION, agent.stream(send()).await).await;
    refused_stream(UNSUPPORTED_OPERATION, agent.subscribe(&task.id).await).await;
    refused(TASK_NOT_CANCELABLE, agent.cancel(&task.id).await);
    assert_eq!(agent.get(&task.id, None).await.unwrap(), task);
}

// SEND-06, CTX-04, LIST (pageSize, pageToken), ERR-03
async fn wrong_parameters_are_refused(agent: Agent) {
    refused(INVALID_PARAMS, agent.send(Send::nothing()).await);
    refused_stream(INVALID_PARAMS, agent.stream(Send::nothing()).await).await;

    let task = agent.send(Send::text("ask me")).await.unwrap();
    let elsewhere = || Send::text("blue").for_task(&task.id).in_context(NOBODY);
    refused(INVALID_PARAMS, agent.send(elsewhere()).await);
    refused_stream(INVALID_PARAMS, agent.stream(elsewhere()).await).await;

    for (page_size, page_token) in [(Some(0), None), (Some(101), None), (None, Some("nonsense"))] {
        let asked = ListTasksRequest {
            page_size,
            page_token: page_token.map(str::to_owned),
            ..listing(&task.context_id)
        };
        refused(INVALID_PARAMS, agent.client.list_tasks(&asked).await);
    }
    refused(INVALID_PARAMS, agent.get(&task.id, Some(-1)).await);
}

// OPS-02, SEND-10
async fn push_notifications_are_refused(agent: Agent) {
    let task = agent.send(Send::text("short")).await.unwrap();
    let config = TaskPushNotificationConfig {
        url: "https://example.com/hook".into(),
        id: None,
        task_id: task.id.clone(),
        token: None,
        authentication: None,
        tenant: None,
    };
    let get = GetTaskPushNotificationConfigRequest {
        task_id: task.id.clone(),
        id: "one".into(),
        tenant: None,
    };
    let list = ListTaskPushNotificationConfigsRequest {
        task_id: task.id.clone(),
        page_size: None,
        page_token: None,
        tenant: None,
    };
    let delete = DeleteTaskPushNotificationConfigRequest {
        task_id: task.id,
        id: "one".into(),
        tenant: None,
    };
    let client = &agent.client;
    let code = PUSH_NOTIFICATION_NOT_SUPPORTED;
    refused(code, client.create_push_config(&config).await);
    refused(code, client.get_push_config(&get).await);
    refused(code, client.list_push_configs(&list).await);
    refused(code, client.delete_push_config(&delete).await);
    let send = || Send::text("short").push(&config.url);
    refused(code, agent.send(send()).await);
    refused_stream(code, agent.stream(send()).await).await;
}
