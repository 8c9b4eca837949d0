//! Connections that break in the middle. These servers cannot go on after a number: what was
//! missed is found by comparing the task with what has come.

use std::time::Duration;

use a2ad_client::{Client, Error, Event, EventStream, text};
use a2ad_proto::{Part, StreamResponse, Task, TaskState};

use crate::agent::{Agent, in_context, lines, listing, rest, up_to, words};
use crate::scenarios::without_history;

const ONE: &str = "artifact numbers new: one ";

/// The parts of all chunks that came, in their order: a chunk that was lost or came twice shows.
fn chunks(events: &[Event]) -> Vec<&str> {
    let updates = events.iter().filter_map(|event| match &event.response {
        StreamResponse::ArtifactUpdate(update) => Some(&update.artifact.parts),
        _ => None,
    });
    updates.flatten().filter_map(Part::as_text).collect()
}

/// Everything came once, and the task put together is the one that the server has.
async fn healed(agent: &Agent, events: &EventStream, seen: &[Event]) {
    assert_eq!(chunks(seen), ["one ", "two ", "three"], "{:?}", lines(seen));
    let task = events.assembly().task().unwrap();
    assert_eq!(task.status.state, TaskState::Completed);
    assert_eq!(events.assembly().text(), "one two three");
    let kept = agent.client.get(&task.id).await.unwrap();
    assert_eq!(without_history(task), without_history(&kept));
}

/// A stream of chunks of which the first has come, and is written down.
async fn begun(agent: &Agent, client: &Client) -> (EventStream, Vec<Event>, String) {
    let mut events = client.stream(text("chunks stepwise"));
    let seen = up_to(&mut events, ONE).await;
    let id = events.assembly().task().unwrap().id.clone();
    agent.until(&id, |task| !task.artifacts.is_empty()).await;
    (events, seen, id)
}

pub(crate) async fn a_stream_that_is_cut_goes_on(agent: Agent) {
    let (client, proxy) = agent.behind(usize::MAX).await;
    let (mut events, mut seen, id) = begun(&agent, &client).await;
    let before = proxy.connections();
    proxy.cut();
    let go_on = async {
        while proxy.connections() == before {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        agent.go_on(&id, 3).await;
    };
    let (more, ()) = tokio::join!(rest(&mut events), go_on);
    seen.extend(more);
    healed(&agent, &events, &seen).await;
}

pub(crate) async fn what_happened_meanwhile_is_made_up_for(agent: Agent) {
    let (client, proxy) = agent.behind(usize::MAX).await;
    let (mut events, mut seen, id) = begun(&agent, &client).await;
    proxy.close();
    let back = async {
        agent.go_on(&id, 1).await;
        let two = |task: &Task| task.artifacts[0].parts.len() >= 2;
        agent.until(&id, two).await;
        proxy.open();
        agent.go_on(&id, 2).await;
    };
    let (more, ()) = tokio::join!(rest(&mut events), back);
    seen.extend(more);
    healed(&agent, &events, &seen).await;
}

pub(crate) async fn a_task_that_ended_meanwhile_is_read(agent: Agent) {
    let (client, proxy) = agent.behind(usize::MAX).await;
    let (mut events, mut seen, id) = begun(&agent, &client).await;
    proxy.close();
    let back = async {
        agent.go_on(&id, 3).await;
        agent
            .until(&id, |task| task.status.state.is_terminal())
            .await;
        proxy.open();
    };
    let (more, ()) = tokio::join!(rest(&mut events), back);
    seen.extend(more);
    healed(&agent, &events, &seen).await;
}

pub(crate) async fn a_subscription_that_is_cut_goes_on(agent: Agent) {
    let (_left_open, _, id) = begun(&agent, &agent.client).await;
    let (client, proxy) = agent.behind(usize::MAX).await;
    let mut events = client.subscribe(&id);
    let first = events.next().await.unwrap().unwrap();
    let StreamResponse::Task(snapshot) = &first.response else {
        panic!("{first:?}");
    };
    assert_eq!(words(&snapshot.artifacts[0].parts), "one ");
    proxy.cut();
    let go_on = async {
        while proxy.connections() == 1 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        agent.go_on(&id, 3).await;
    };
    let (seen, ()) = tokio::join!(rest(&mut events), go_on);
    assert_eq!(chunks(&seen), ["two ", "three"], "{:?}", lines(&seen));
    assert_eq!(events.assembly().text(), "one two three");
}

/// In the head of the answer, between events, and inside of them.
pub(crate) async fn a_stream_heals_wherever_it_is_cut(agent: Agent) {
    const STEPS: usize = 24;
    let (client, proxy) = agent.behind(usize::MAX).await;
    rest(&mut client.stream(text("chunks"))).await;
    let bytes = proxy.bytes();
    let mut lost = 0;
    for step in 0..STEPS {
        // From nothing at all to all but the last byte.
        let (client, _proxy) = agent.behind((bytes - 1) * step / (STEPS - 1)).await;
        let mut events = client.stream(text("chunks"));
        let mut seen = Vec::new();
        let error = loop {
            match events.next().await {
                Some(Ok(event)) => seen.push(event),
                Some(Err(error)) => break Some(error),
                None => break None,
            }
        };
        match error {
            // Before the first event nothing is known that could be asked for.
            Some(error) => {
                assert!(seen.is_empty(), "{error:?} after {:?}", lines(&seen));
                lost += 1;
            }
            None => healed(&agent, &events, &seen).await,
        }
    }
    assert!((1..STEPS).contains(&lost), "{lost} of {STEPS} lost");
}

pub(crate) async fn a_message_that_may_have_arrived_is_not_sent_again(agent: Agent) {
    for streamed in [false, true] {
        let context = text("").message.unwrap().message_id;
        let (client, proxy) = agent.behind(usize::MAX).await;
        proxy.mute();
        let request = in_context(text("echo once"), &context);
        let send = async {
            match streamed {
                true => client.stream(request).finish().await.map(drop),
                false => client.send(request).await.map(drop),
            }
        };
        let arrived = async {
            let listed = || async { agent.client.list(listing(&context)).await.unwrap().tasks };
            while listed().await.is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            proxy.cut();
        };
        let (sent, ()) = tokio::join!(send, arrived);
        let error = sent.unwrap_err();
        assert!(matches!(error, Error::Network(_)), "{error:?}");
        assert!(!error.is_unsent(), "{error:?}");
        assert_eq!(proxy.connections(), 1);
    }
}
