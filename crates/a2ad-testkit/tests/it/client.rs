//! The client against the real server: what it puts together is what the server has, also when its connections are cut.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use a2ad_client::dial::Dialer;
use a2ad_client::{Binding, Client, Event, EventStream, REPLAY, text};
use a2ad_proto::{AgentCard, Part, StreamResponse, Task, TaskState};
use a2ad_testkit::client::Driven;
use a2ad_testkit::harness::Harness;
use a2ad_testkit::proxy::{Cuts, Proxy};

crate::scenarios![
    model_07_events_put_together_are_the_task,
    stream_10_twenty_cuts_change_nothing_with_numbers,
    stream_10_twenty_cuts_change_nothing_without_numbers,
    a_stream_outlives_the_server,
    without_streams_the_task_is_asked_for,
    send_17_a_message_cut_off_is_not_done_twice,
    stream_08_a_question_ends_a_message_but_not_a_subscription,
    a_task_is_waited_for,
    list_09_all_pages_are_read,
    the_gated_operations_are_refused_as_such,
];

/// What a reader has who prints chunks as they come, and starts over when told to.
#[derive(Debug, Default, PartialEq)]
struct Printed(BTreeMap<String, String>);

impl Printed {
    fn print(&mut self, response: &StreamResponse) {
        if let StreamResponse::ArtifactUpdate(update) = response {
            let text = self.0.entry(update.artifact.artifact_id.clone());
            let text = text.or_default();
            if !update.append {
                text.clear();
            }
            text.extend(update.artifact.parts.iter().filter_map(Part::as_text));
        }
    }

    fn of(task: &Task) -> Self {
        let one = |artifact: &a2ad_proto::Artifact| {
            let text = artifact.parts.iter().filter_map(Part::as_text);
            (artifact.artifact_id.clone(), text.collect())
        };
        Self(task.artifacts.iter().map(one).collect())
    }
}

/// Reads a stream to its end.
async fn read(mut events: EventStream) -> (Task, Printed) {
    let mut printed = Printed::default();
    while let Some(event) = next(&mut events).await {
        printed.print(&event.response);
    }
    (events.assembly().task().unwrap().clone(), printed)
}

/// The next event, which is never far.
async fn next(events: &mut EventStream) -> Option<Event> {
    let event = tokio::time::timeout(Duration::from_secs(30), events.next()).await;
    event.expect("an event or the end").map(Result::unwrap)
}

/// The server's card, as if the server were elsewhere.
async fn card_at(server: &Harness, to: SocketAddr) -> AgentCard {
    let driven = Driven::connect(server.addr(), server.binding()).await;
    let mut card = (*driven.client.card()).clone();
    for interface in &mut card.supported_interfaces {
        interface.url = interface
            .url
            .replace(&server.addr().to_string(), &to.to_string());
    }
    card
}

fn client_of(card: AgentCard, binding: Binding, to: SocketAddr) -> Client {
    Client::builder(&format!("http://{to}"))
        .dialer(Dialer::unguarded().unwrap())
        .binding(binding)
        .retries(|retries| {
            // As many as there are cuts, should all of them hit in a row.
            (retries.calls, retries.resumes) = (25, 25);
            // Over HTTP/2 a frame comes whole or not at all: what piles up meanwhile must fit between two cuts.
            retries.first = Duration::from_millis(1);
            retries.longest = Duration::from_millis(20);
        })
        .with_card(card)
        .unwrap()
}

fn unnumbered(mut card: AgentCard) -> AgentCard {
    let extensions = &mut card.capabilities.extensions;
    extensions.retain(|extension| extension.uri != REPLAY);
    card
}

/// The client of a server whose connections are cut.
async fn through(server: &Harness, cuts: Cuts, numbers: bool) -> (Client, Proxy) {
    let proxy = Proxy::start(server.addr(), cuts).await;
    let mut card = card_at(server, proxy.addr()).await;
    if !numbers {
        card = unnumbered(card);
    }
    (client_of(card, server.binding(), proxy.addr()), proxy)
}

fn no_cuts() -> Cuts {
    Cuts {
        seed: 0,
        count: 0,
        after: 0..1,
        requests: false,
    }
}

async fn model_07_events_put_together_are_the_task(server: Harness) {
    let client = Driven::connect(server.addr(), server.binding())
        .await
        .client;
    for said in [
        "echo hello",
        "words one two three",
        "pieces",
        "notes",
        "burst 40",
        "long 30",
        "status so far",
        "fail",
        "reject",
        "ask what?",
        "echo",
    ] {
        let (task, printed) = read(client.stream(text(said))).await;
        let stored = client.get(&task.id).await.unwrap();
        assert_eq!(task, stored, "{said}");
        assert_eq!(printed, Printed::of(&stored), "{said}");
    }
    let mut events = client.stream(text("reply hello"));
    while next(&mut events).await.is_some() {}
    assert!(events.assembly().text().is_empty() || events.assembly().text() == "hello");
}

/// Cuts a stream twenty times; `cargo xtask soak` asks for more such streams.
async fn twenty_cuts(server: Harness, numbers: bool, after: std::ops::Range<u64>) {
    let runs = std::env::var("A2AD_CUT_STREAMS").map_or(1, |runs| runs.parse().unwrap());
    for seed in 1..=runs {
        let begun = server.agent_begun();
        twenty_cuts_from(&server, numbers, after.clone(), seed).await;
        assert_eq!(server.agent_begun(), begun + 1, "seed {seed}");
    }
}

async fn twenty_cuts_from(server: &Harness, numbers: bool, after: std::ops::Range<u64>, seed: u64) {
    let cuts = Cuts {
        seed,
        count: 20,
        after,
        requests: numbers,
    };
    let (client, proxy) = through(server, cuts, numbers).await;
    let (task, printed) = read(client.stream(text("long 300"))).await;
    assert_eq!(task.status.state, TaskState::Completed);
    let direct = Driven::connect(server.addr(), server.binding())
        .await
        .client;
    let stored = direct.get(&task.id).await.unwrap();
    assert_eq!(task, stored, "seed {seed}");
    assert_eq!(printed, Printed::of(&stored), "seed {seed}");
    assert_eq!(proxy.made(), 20, "seed {seed}");
}

async fn stream_10_twenty_cuts_change_nothing_with_numbers(server: Harness) {
    twenty_cuts(server, true, 300..4_000).await;
}

/// GetTask and SubscribeToTask instead of numbers. Snapshots grow, so cuts come later, or none would get through.
async fn stream_10_twenty_cuts_change_nothing_without_numbers(server: Harness) {
    twenty_cuts(server, false, 2_500..9_000).await;
}

async fn a_stream_outlives_the_server(mut server: Harness) {
    for numbers in [true, false] {
        let (client, proxy) = through(&server, no_cuts(), numbers).await;
        let mut events = client.stream(text("gate"));
        let mut printed = Printed::default();
        while !events.assembly().text().ends_with("waiting ") {
            let event = next(&mut events).await.unwrap();
            printed.print(&event.response);
        }
        server.restart().await;
        proxy.retarget(server.addr());
        let rest = async {
            while let Some(event) = next(&mut events).await {
                printed.print(&event.response);
            }
        };
        let gate = async {
            // The second attempt comes to the gate in its own time.
            loop {
                server.agent.open_gate();
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            () = rest => {}
            () = gate => {}
        }
        let task = events.assembly().task().unwrap();
        let stored = client.get(&task.id).await.unwrap();
        assert_eq!(task.status, stored.status);
        assert_eq!(task.artifacts, stored.artifacts);
        assert_eq!(printed, Printed::of(&stored));
        assert_eq!(events.assembly().text(), "waiting passed");
    }
}

async fn without_streams_the_task_is_asked_for(server: Harness) {
    let mut card = card_at(&server, server.addr()).await;
    card.capabilities.streaming = None;
    let client = client_of(card, server.binding(), server.addr());
    let (task, printed) = read(client.stream(text("long 60"))).await;
    let stored = client.get(&task.id).await.unwrap();
    assert_eq!(task, stored);
    // What was there at the first look came with the task.
    assert!(printed.0.len() <= 2);
    let mut events = client.stream(text("reply hello"));
    while next(&mut events).await.is_some() {}
    let (task, _) = read(client.stream(text("ask what?"))).await;
    assert_eq!(task.status.state, TaskState::InputRequired);
}

async fn send_17_a_message_cut_off_is_not_done_twice(server: Harness) {
    // The answer is cut off, again and again; the message is recognised each time.
    let cuts = Cuts {
        seed: 3,
        count: 3,
        after: 0..80,
        requests: false,
    };
    let (client, proxy) = through(&server, cuts, true).await;
    let sent = client.send(text("echo hello")).await.unwrap();
    let a2ad_proto::SendMessageResponse::Task(task) = sent else {
        panic!("{sent:?}");
    };
    assert_eq!(task.status.state, TaskState::Completed);
    assert_eq!(proxy.made(), 3);
    assert_eq!(server.agent_begun(), 1);
    // An agent that does not say that it recognises messages gets it once.
    let cuts = Cuts {
        seed: 4,
        count: 1,
        after: 0..80,
        requests: false,
    };
    let (client, proxy) = through(&server, cuts, false).await;
    let error = client.send(text("echo hello")).await.unwrap_err();
    assert!(!error.is_unsent(), "{error}");
    let mut events = client.stream(text("echo hello"));
    let first = events.next().await.unwrap();
    assert_eq!(proxy.made(), 1);
    assert!(first.is_ok(), "the cuts are used up: {first:?}");
}

async fn stream_08_a_question_ends_a_message_but_not_a_subscription(server: Harness) {
    let client = Driven::connect(server.addr(), server.binding())
        .await
        .client;
    let (task, _) = read(client.stream(text("ask what?"))).await;
    assert_eq!(task.status.state, TaskState::InputRequired);
    let mut following = client.subscribe(&task.id);
    let first = following.next().await.unwrap().unwrap();
    assert!(matches!(first.response, StreamResponse::Task(_)));
    for said in ["ask again?", "echo this"] {
        let mut request = text(said);
        let message = request.message.as_mut().unwrap();
        message.task_id.clone_from(&task.id);
        message.context_id.clone_from(&task.context_id);
        let (task, _) = read(client.stream(request)).await;
        let expected = match said {
            "ask again?" => TaskState::InputRequired,
            _ => TaskState::Completed,
        };
        assert_eq!(task.status.state, expected);
    }
    let (task, _) = read(following).await;
    assert_eq!(task.status.state, TaskState::Completed);
    // With numbers, an ended task can be followed from anywhere.
    let mut replay = client.subscribe_after(&task.id, 1);
    let mut last = 1;
    while let Some(event) = next(&mut replay).await {
        let number = event.number.unwrap();
        assert!(number > last);
        last = number;
    }
    assert_eq!(replay.assembly().state(), Some(TaskState::Completed));
    // Without, it cannot be followed at all.
    let error = client
        .subscribe(&task.id)
        .next()
        .await
        .unwrap()
        .unwrap_err();
    let kind = a2ad_proto::ErrorKind::UnsupportedOperation;
    assert_eq!(error.kind(), Some(kind));
}

async fn a_task_is_waited_for(server: Harness) {
    let client = Driven::connect(server.addr(), server.binding())
        .await
        .client;
    let mut request = text("gate");
    let configuration = request.configuration.get_or_insert_default();
    configuration.return_immediately = true;
    let a2ad_proto::SendMessageResponse::Task(task) = client.send(request).await.unwrap() else {
        panic!("a task was expected");
    };
    server.wait_at_gate(&task.id).await;
    let opened = async {
        // The gate opens once somebody waits, and stays closed for those who come later.
        tokio::time::sleep(Duration::from_millis(20)).await;
        server.agent.open_gate();
    };
    let (waited, ()) = tokio::join!(client.wait(&task.id), opened);
    assert_eq!(waited.unwrap().status.state, TaskState::Completed);
    let again = client.wait(&task.id).await.unwrap();
    assert_eq!(again.status.state, TaskState::Completed);
}

async fn list_09_all_pages_are_read(server: Harness) {
    let client = Driven::connect(server.addr(), server.binding())
        .await
        .client;
    for n in 0..7 {
        client.send(text(&format!("echo {n}"))).await.unwrap();
    }
    let mut tasks = client.list_all(a2ad_proto::ListTasksRequest {
        page_size: Some(3),
        ..Default::default()
    });
    let mut ids = Vec::new();
    while let Some(task) = tasks.next().await {
        ids.push(task.unwrap().id);
    }
    let mut unique = ids.clone();
    unique.sort();
    unique.dedup();
    assert_eq!((ids.len(), unique.len()), (7, 7));
}

async fn the_gated_operations_are_refused_as_such(server: Harness) {
    use a2ad_proto::ErrorKind::{
        PushNotificationNotSupported, TaskNotCancelable, UnsupportedOperation,
    };
    let client = Driven::connect(server.addr(), server.binding())
        .await
        .client;
    let task = client.stream(text("echo x")).finish().await.unwrap();
    let id = &task.task().unwrap().id;
    let config = a2ad_proto::TaskPushNotificationConfig {
        task_id: id.clone(),
        url: "https://x.example/".to_owned(),
        ..Default::default()
    };
    let list = a2ad_proto::ListTaskPushNotificationConfigsRequest {
        task_id: id.clone(),
        ..Default::default()
    };
    let push = Some(PushNotificationNotSupported);
    assert_eq!(
        client.create_push_config(config).await.unwrap_err().kind(),
        push
    );
    assert_eq!(
        client.get_push_config(id, "c").await.unwrap_err().kind(),
        push
    );
    assert_eq!(
        client.list_push_configs(list).await.unwrap_err().kind(),
        push
    );
    assert_eq!(
        client.delete_push_config(id, "c").await.unwrap_err().kind(),
        push
    );
    let refused = client.extended_card().await.unwrap_err();
    assert_eq!(refused.kind(), Some(UnsupportedOperation));
    let refused = client.cancel(id).await.unwrap_err();
    assert_eq!(refused.kind(), Some(TaskNotCancelable));
}
