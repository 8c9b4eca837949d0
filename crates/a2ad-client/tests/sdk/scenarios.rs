//! Everything that needs no cut connection.

use std::collections::BTreeSet;

use a2ad_client::{Binding, Client, text};
use a2ad_proto::{
    ErrorKind, GetTaskRequest, ListTasksRequest, Role, SendMessageResponse, Task,
    TaskPushNotificationConfig, TaskState,
};

use crate::BINDINGS;
use crate::agent::{
    Agent, at_once, for_task, in_context, in_task, lines, listing, next, refused, refused_stream,
    rest, shown, up_to, words,
};

pub(crate) const NOBODY: &str = "6f1c1a44-5d6a-4d6e-9d0e-0c8f6b5a7e11";

/// How the stream of a new task begins. The Rust SDK leaves it to the agent, and its own agents
/// begin with a status.
fn opening(agent: &Agent) -> Vec<String> {
    match agent.server.as_str() {
        "rust" => vec!["status Working".to_owned()],
        _ => vec!["task Submitted".to_owned(), "status Working".to_owned()],
    }
}

fn after_opening(agent: &Agent, lines: &[&str]) -> Vec<String> {
    let mut all = opening(agent);
    all.extend(lines.iter().map(|&line| line.to_owned()));
    all
}

/// What can be known of a task from its events alone: everything but the history.
pub(crate) fn without_history(task: &Task) -> Task {
    Task {
        history: Vec::new(),
        ..task.clone()
    }
}

// CARD-01 to CARD-04, CARD-06
pub(crate) async fn the_card_is_found_and_its_order_kept(agent: Agent) {
    let card = &agent.card;
    assert_eq!(card.name, "Words");
    assert_eq!(card.skills[0].id, "words");
    assert!(card.capabilities.streaming.unwrap_or_default());
    let listed = card.supported_interfaces.iter();
    let listed: Vec<_> = listed
        .map(|one| (&*one.protocol_binding, &*one.protocol_version))
        .collect();
    let version = if agent.is_old() { "0.3" } else { "1.0" };
    assert_eq!(listed, BINDINGS.map(|binding| (binding.name(), version)));
    assert_eq!(agent.client.interface().binding, agent.binding);

    // The same card by the address of the agent, and the interface that it lists first.
    let (base, _) = agent.card_url.split_once("/.well-known/").unwrap();
    let client = Client::connect(base).await.unwrap();
    assert_eq!(*client.card(), *card);
    assert_eq!(client.interface().binding, Binding::JsonRpc);
    let task = client.send(text("echo found")).await.unwrap();
    assert!(matches!(task, SendMessageResponse::Task(_)), "{task:?}");
    assert_eq!(*client.refresh().await.unwrap(), *card);
}

// SEND-01, SEND-02, SEND-05
pub(crate) async fn send_answers_with_the_finished_task(agent: Agent) {
    let request = text("echo Grüße, world");
    let id = request.message.as_ref().unwrap().message_id.clone();
    let task = agent.send(request).await.unwrap();
    assert!(!task.id.is_empty() && !task.context_id.is_empty());
    assert_eq!(task.status.state, TaskState::Completed);
    // The Python SDK of 0.3 leaves times out of its protobuf.
    let timeless = agent.server == "python03" && agent.binding != Binding::JsonRpc;
    assert!(timeless || task.status.timestamp.is_some());
    let [artifact] = task.artifacts.as_slice() else {
        panic!("{:?}", task.artifacts);
    };
    assert_eq!((&*artifact.artifact_id, &*artifact.name), ("echo", "Echo"));
    assert_eq!(words(&artifact.parts), "Grüße, world");
    assert_eq!(task.history[0].message_id, id);
    assert_eq!(task.history[0].role, Role::User);
    assert_eq!(words(&task.history[0].parts), "echo Grüße, world");
}

// SEND-16
pub(crate) async fn a_failure_of_the_agent_is_a_task_and_no_error(agent: Agent) {
    for (asked, state, said) in [
        ("fail", TaskState::Failed, "It broke"),
        ("dance", TaskState::Rejected, "No such word: dance"),
    ] {
        let task = agent.send(text(asked)).await.unwrap();
        assert_eq!(task.status.state, state);
        assert_eq!(words(&task.status.message.unwrap().parts), said);
        let mut events = agent.client.stream(text(asked));
        let seen = lines(&rest(&mut events).await);
        assert_eq!(
            seen,
            after_opening(&agent, &[&format!("status {state:?}: {said}")])
        );
    }
}

// SEND-03
pub(crate) async fn send_can_answer_at_once(agent: Agent) {
    let task = agent.send(at_once("hold")).await.unwrap();
    assert!(
        matches!(task.status.state, TaskState::Submitted | TaskState::Working),
        "{task:?}"
    );
    let task = agent.send(at_once("chunks stepwise")).await.unwrap();
    assert!(!task.status.state.is_terminal(), "{task:?}");
    agent.go_on(&task.id, 3).await;
    let task = agent.until(&task.id, |task| task.status.state.is_terminal());
    assert_eq!(words(&task.await.artifacts[0].parts), "one |two |three");
}

// STREAM-01, STREAM-03, STREAM-06, STREAM-07, ART-01, ART-02, ART-04
pub(crate) async fn a_stream_tells_everything_in_order(agent: Agent) {
    let expected = [
        "artifact numbers new: one ",
        "artifact numbers append: two ",
        "artifact numbers append last: three",
        "status Completed",
    ];
    for stepwise in [false, true] {
        let mut events;
        let mut seen;
        if stepwise {
            events = agent.client.stream(text("chunks stepwise"));
            seen = up_to(&mut events, expected[0]).await;
            let id = events.assembly().task().unwrap().id.clone();
            for line in &expected[1..] {
                agent.go_on(&id, 1).await;
                seen.extend(up_to(&mut events, line).await);
            }
            assert!(events.next().await.is_none());
        } else {
            events = agent.client.stream(text("chunks"));
            seen = rest(&mut events).await;
        }
        assert_eq!(lines(&seen), after_opening(&agent, &expected));
        let assembly = events.assembly();
        assert_eq!(assembly.text(), "one two three");
        assert!(assembly.is_whole("numbers"));
        let task = assembly.task().unwrap();
        // The SDKs write the end down before or after they tell it.
        let kept = agent.until(&task.id, |kept| kept.status.state.is_terminal());
        let kept = kept.await;
        assert_eq!(without_history(task), without_history(&kept));
        if !["rust", "js03"].contains(&&*agent.server) {
            assert_eq!(task.history, kept.history);
        }
    }
}

// GET-01, HIST-01 to HIST-03
pub(crate) async fn get_returns_the_task_with_as_much_history_as_wanted(agent: Agent) {
    let asks = agent.send(text("ask")).await.unwrap();
    let sent = agent.send(in_task(text("blue"), &asks)).await.unwrap();
    let get = |history_length| {
        agent.client.get_with(GetTaskRequest {
            id: sent.id.clone(),
            history_length,
            ..GetTaskRequest::default()
        })
    };
    // The JavaScript SDK of 0.3 shows the history only to those who say how much of it.
    let all = get(Some(100).filter(|_| agent.server == "js03")).await;
    assert_eq!(all.unwrap(), sent);
    // On two bindings of 0.3 zero is no limit, and to its Python SDK on none.
    if !agent.is_old() {
        let none = get(Some(0)).await.unwrap();
        assert_eq!(none, without_history(&sent));
    }
    let one = get(Some(1)).await.unwrap().history;
    assert!(sent.history.len() >= 2, "{:?}", sent.history);
    assert_eq!(one, sent.history[sent.history.len() - 1..]);
}

// LIST-02 to LIST-06
pub(crate) async fn list_pages_through_a_context(agent: Agent) {
    let mut made = vec![agent.send(text("echo 0")).await.unwrap()];
    let context = made[0].context_id.clone();
    for number in 1..5 {
        let request = in_context(text(&format!("echo {number}")), &context);
        made.push(agent.send(request).await.unwrap());
    }
    assert!(made.iter().all(|task| task.context_id == context));
    let ids: BTreeSet<_> = made.iter().map(|task| task.id.clone()).collect();

    let asked = || ListTasksRequest {
        page_size: Some(2),
        ..listing(&context)
    };
    let first = agent.client.list(asked()).await.unwrap();
    assert_eq!((first.tasks.len(), first.total_size), (2, 5));
    assert!(!first.next_page_token.is_empty());
    let mut all = agent.client.list_all(asked());
    let mut seen = Vec::new();
    while let Some(task) = all.next().await {
        seen.push(task.unwrap().id);
    }
    assert_eq!(seen.len(), 5, "{seen:?}");
    assert_eq!(seen.iter().cloned().collect::<BTreeSet<_>>(), ids);

    let whole = ListTasksRequest {
        include_artifacts: Some(true),
        ..listing(&context)
    };
    let page = agent.client.list(whole).await.unwrap();
    assert_eq!(page.next_page_token, "");
    let texts = page
        .tasks
        .iter()
        .map(|task| words(&task.artifacts[0].parts));
    let texts: BTreeSet<_> = texts.collect();
    assert_eq!(texts, ["0", "1", "2", "3", "4"].map(String::from).into());

    let failed = ListTasksRequest {
        status: TaskState::Failed,
        ..listing(&context)
    };
    let page = agent.client.list(failed).await.unwrap();
    assert!(page.tasks.is_empty(), "{page:?}");
}

// CANCEL-01, CANCEL-02, AMB-07
pub(crate) async fn cancel_ends_the_task(agent: Agent) {
    let task = agent.running("hold").await;
    let canceled = agent.client.cancel(&task.id).await.unwrap();
    assert_eq!(canceled.status.state, TaskState::Canceled);
    let kept = agent.client.get(&task.id).await.unwrap();
    assert_eq!(kept.status.state, TaskState::Canceled);
    match agent.client.cancel(&task.id).await {
        Ok(again) => assert_eq!(again.status.state, TaskState::Canceled),
        again => refused(&[ErrorKind::TaskNotCancelable], again),
    }
    let done = agent.send(text("echo done")).await.unwrap();
    let late = agent.client.cancel(&done.id).await;
    refused(&[ErrorKind::TaskNotCancelable], late);
}

// CANCEL-04, STREAM-03
pub(crate) async fn cancel_ends_the_stream(agent: Agent) {
    let mut events = agent.client.stream(text("hold"));
    up_to(&mut events, "status Working").await;
    let id = events.assembly().task().unwrap().id.clone();
    agent
        .until(&id, |task| task.status.state == TaskState::Working)
        .await;
    agent.client.cancel(&id).await.unwrap();
    let seen = lines(&rest(&mut events).await);
    assert_eq!(seen, ["status Canceled"]);
}

// SUB-01, SUB-04
pub(crate) async fn a_subscriber_joins_a_running_task(agent: Agent) {
    let mut events = agent.client.stream(text("chunks stepwise"));
    let one = "artifact numbers new: one ";
    up_to(&mut events, one).await;
    let id = events.assembly().task().unwrap().id.clone();
    agent.until(&id, |task| !task.artifacts.is_empty()).await;
    let mut joined = agent.client.subscribe(&id);
    let snapshot = next(&mut joined).await;
    assert_eq!(shown(&snapshot), "task Working");
    let expected = [
        "artifact numbers append: two ",
        "artifact numbers append last: three",
        "status Completed",
    ];
    agent.go_on(&id, 3).await;
    let (theirs, ours) = tokio::join!(rest(&mut events), rest(&mut joined));
    assert_eq!(lines(&theirs), expected);
    // Streams of 0.3 need not begin with the task; then events only show that something happened.
    if !agent.is_old() {
        assert_eq!(lines(&ours), expected);
    }
    let (theirs, ours) = (events.assembly(), joined.assembly());
    assert_eq!(ours.text(), "one two three");
    let (theirs, ours) = (theirs.task().unwrap(), ours.task().unwrap());
    assert_eq!(without_history(theirs), without_history(ours));
}

// SUB-01, AMB-06
pub(crate) async fn a_subscriber_joins_a_task_that_asks(agent: Agent) {
    let asks = agent.send(text("ask")).await.unwrap();
    let mut joined = agent.client.subscribe(&asks.id);
    assert_eq!(shown(&next(&mut joined).await), "task InputRequired");
    let answered = agent.send(in_task(text("blue"), &asks)).await.unwrap();
    assert_eq!(answered.status.state, TaskState::Completed);
    rest(&mut joined).await;
    let seen = joined.assembly().task().unwrap();
    assert_eq!(seen.status, answered.status);
    assert_eq!(seen.artifacts, answered.artifacts);
}

pub(crate) async fn waiting_ends_with_the_task_or_its_question(agent: Agent) {
    let running = agent.send(at_once("chunks stepwise")).await.unwrap();
    // The end may come before, while or after the client looks.
    let (task, ()) = tokio::join!(agent.client.wait(&running.id), agent.go_on(&running.id, 3));
    let task = task.unwrap();
    assert_eq!(task.status.state, TaskState::Completed);
    assert_eq!(words(&task.artifacts[0].parts), "one |two |three");
    let asks = agent.send(at_once("ask")).await.unwrap();
    let task = agent.client.wait(&asks.id).await.unwrap();
    assert_eq!(task.status.state, TaskState::InputRequired);
}

// CTX-11, STREAM-08
pub(crate) async fn a_task_asks_and_goes_on_with_the_answer(agent: Agent) {
    let asks = agent.send(text("ask")).await.unwrap();
    assert_eq!(asks.status.state, TaskState::InputRequired);
    let question = asks.status.message.clone().unwrap();
    assert_eq!(words(&question.parts), "Which colour?");
    let answered = agent.send(in_task(text("blue"), &asks)).await.unwrap();
    assert_eq!(answered.id, asks.id);
    assert_eq!(answered.status.state, TaskState::Completed);
    assert_eq!(words(&answered.artifacts[0].parts), "A bucket of blue");

    // The same as streams. Each ends by itself.
    let mut events = agent.client.stream(text("ask"));
    let seen = lines(&rest(&mut events).await);
    let question = "status InputRequired: Which colour?";
    assert_eq!(seen, after_opening(&agent, &[question]));
    let asks = events.assembly().task().unwrap().clone();
    let mut events = agent.client.stream(for_task(text("red"), &asks.id));
    let seen = lines(&rest(&mut events).await);
    let answer = [
        "status Working",
        "artifact paint new: A bucket of red",
        "status Completed: Done",
    ];
    // The task may come first, as it was.
    let seen = match seen.first().map(String::as_str) {
        Some("task InputRequired") => &seen[1..],
        _ => &seen[..],
    };
    assert_eq!(seen, answer);
    let kept = agent.client.get(&asks.id).await.unwrap();
    let task = events.assembly().task().unwrap();
    assert_eq!(task.artifacts, kept.artifacts);
    assert_eq!(task.status, kept.status);
}

// SEND-14, STREAM-01
pub(crate) async fn an_agent_can_answer_with_a_message(agent: Agent) {
    let reply = agent.client.send(text("message")).await.unwrap();
    let SendMessageResponse::Message(reply) = reply else {
        panic!("a task came: {reply:?}");
    };
    assert_eq!(reply.role, Role::Agent);
    assert_eq!(words(&reply.parts), "Just this");
    let mut events = agent.client.stream(text("message"));
    assert_eq!(lines(&rest(&mut events).await), ["message: Just this"]);
    assert_eq!(events.assembly().text(), "Just this");
    assert_eq!(events.assembly().task(), None);
}

// GET-02, CTX-02, SUB-02
pub(crate) async fn a_task_that_is_not_there_is_not_found(agent: Agent) {
    const NOT_FOUND: &[ErrorKind] = &[ErrorKind::TaskNotFound];
    let client = &agent.client;
    refused(NOT_FOUND, client.get(NOBODY).await);
    refused(NOT_FOUND, client.cancel(NOBODY).await);
    refused(NOT_FOUND, client.wait(NOBODY).await);
    refused(NOT_FOUND, agent.send(for_task(text("echo"), NOBODY)).await);
    refused_stream(NOT_FOUND, client.stream(for_task(text("echo"), NOBODY))).await;
    refused_stream(NOT_FOUND, client.subscribe(NOBODY)).await;
}

// CTX-05, CANCEL-02, SUB-02; AMB-04, AMB-05
pub(crate) async fn a_task_that_has_ended_takes_nothing_more(agent: Agent) {
    // The last is what the JavaScript SDK of 0.3 says.
    const ENDED: &[ErrorKind] = &[
        ErrorKind::UnsupportedOperation,
        ErrorKind::InvalidParams,
        ErrorKind::InvalidRequest,
    ];
    let task = agent.send(text("echo done")).await.unwrap();
    let more = || in_task(text("echo more"), &task);
    refused(ENDED, agent.send(more()).await);
    refused_stream(ENDED, agent.client.stream(more())).await;
    if agent.is_old() {
        // Streams of 0.3 need not begin with the task, so it is asked for, and there is nothing more to come.
        let mut ended = agent.client.subscribe(&task.id);
        assert_eq!(lines(&rest(&mut ended).await), ["task Completed"]);
    } else {
        refused_stream(ENDED, agent.client.subscribe(&task.id)).await;
    }
    let canceled = agent.client.cancel(&task.id).await;
    refused(&[ErrorKind::TaskNotCancelable], canceled);
    // It is as it was.
    let kept = agent.client.get(&task.id).await.unwrap();
    assert_eq!(kept.status, task.status);
    assert_eq!(kept.artifacts, task.artifacts);
}

// OPS-02
pub(crate) async fn what_is_not_offered_is_refused(agent: Agent) {
    const NO_PUSH: &[ErrorKind] = &[ErrorKind::PushNotificationNotSupported];
    let task = agent.send(text("echo done")).await.unwrap();
    let config = TaskPushNotificationConfig {
        task_id: task.id.clone(),
        url: "https://example.com/".to_owned(),
        ..TaskPushNotificationConfig::default()
    };
    refused(NO_PUSH, agent.client.create_push_config(config).await);
    refused(NO_PUSH, agent.client.get_push_config(&task.id, "c").await);
    refused(
        &[
            ErrorKind::UnsupportedOperation,
            ErrorKind::ExtendedAgentCardNotConfigured,
        ],
        agent.client.extended_card().await,
    );
}
