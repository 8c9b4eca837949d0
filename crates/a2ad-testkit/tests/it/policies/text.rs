//! `granularity` and `surface`.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use a2ad_proto::{Part, Role, StreamResponse, TaskState};
use a2ad_testkit::client::{Event, drain, text};
use a2ad_testkit::harness::Harness;

use super::{kinds, made, pieces, said, states, status_messages, words};

crate::scenarios![
    cf_18_g_01_e_14_a_pass_is_a_status_and_the_last_one_is_repeated,
    cf_18_e_14_the_history_has_a_message_for_each_pass,
    cf_18_g_02_deltas_can_be_statuses,
    cf_18_both_say_the_whole_text_at_the_end,
    cf_18_artifacts_of_the_agent_are_artifacts_on_every_surface,
    cf_17_text_can_come_pass_by_pass,
    cf_17_text_can_come_at_the_end,
    g_12_what_is_said_together_is_told_together,
    e_04_e_05_e_06_events_come_in_order_and_only_the_last_ends_the_task,
];

use TaskState::{Completed, Submitted, Working};

async fn events(server: &Harness, said: &str) -> Vec<Event> {
    let stream = server.client.stream(text(said), None).await.unwrap();
    drain(stream).await.unwrap()
}

/// Lectic's stream: the task, working, the pass, the end with the pass again.
async fn cf_18_g_01_e_14_a_pass_is_a_status_and_the_last_one_is_repeated(mut server: Harness) {
    server.adopt("{granularity: pass, surface: status}").await;
    for pure in [false, true] {
        server.agent.pure.store(pure, Ordering::SeqCst);
        for verb in ["words", "echo"] {
            let events = events(&server, &format!("{verb} one two three \n")).await;
            assert_eq!(kinds(&events), ["task", "status", "status", "status"]);
            assert_eq!(states(&events), [Submitted, Working, Working, Completed]);
            let said = status_messages(&events);
            assert_eq!(said.len(), 2);
            for message in &said {
                assert_eq!(message.parts, [Part::text("one two three")]);
            }
            assert_ne!(said[0].message_id, said[1].message_id);
        }
    }
}

async fn cf_18_e_14_the_history_has_a_message_for_each_pass(mut server: Harness) {
    server.adopt("{granularity: pass, surface: status}").await;
    let task = server
        .client
        .send(text("passes one two|three|  |four"))
        .await;
    let task = task.unwrap();
    assert_eq!(said(&task), "four", "the end repeats the last pass");
    let history: Vec<(Role, String)> = task
        .history
        .iter()
        .map(|it| (it.role, words(&it.parts)))
        .collect();
    let agent = |text: &str| (Role::Agent, text.to_owned());
    assert_eq!(history[0].0, Role::User);
    assert_eq!(
        history[1..],
        [agent("one two"), agent("three"), agent("four")]
    );
    let ids: HashSet<&str> = task
        .history
        .iter()
        .map(|it| it.message_id.as_str())
        .collect();
    assert_eq!(ids.len(), task.history.len());
    assert_eq!(made(&task), "");
}

async fn cf_18_g_02_deltas_can_be_statuses(mut server: Harness) {
    server.adopt("{surface: status}").await;
    let events = events(&server, "words one two three").await;
    let said = status_messages(&events);
    let (last, deltas) = said.split_last().unwrap();
    assert!(deltas.len() >= 2, "{deltas:?}");
    let joined: String = deltas.iter().map(|it| words(&it.parts)).collect();
    assert_eq!(joined, "one two three");
    assert_eq!(words(&last.parts), "one two three");
    assert!(pieces(&events).is_empty());
}

async fn cf_18_both_say_the_whole_text_at_the_end(mut server: Harness) {
    server.adopt("{surface: both}").await;
    for pure in [false, true] {
        server.agent.pure.store(pure, Ordering::SeqCst);
        let task = server.client.send(text("passes one |two ")).await.unwrap();
        assert_eq!(
            (said(&task).as_str(), made(&task).as_str()),
            ("one two", "one two ")
        );
        let asked = server.client.send(text("ask what?")).await.unwrap();
        assert_eq!(said(&asked), "what?");
    }
}

async fn cf_18_artifacts_of_the_agent_are_artifacts_on_every_surface(mut server: Harness) {
    server.adopt("{surface: status}").await;
    let task = server.client.send(text("burst 2")).await.unwrap();
    assert_eq!(task.artifacts.len(), 2);
    assert_eq!(said(&task), "");
}

async fn cf_17_text_can_come_pass_by_pass(mut server: Harness) {
    server.adopt("{granularity: pass}").await;
    let streamed = events(&server, "words one two three").await;
    assert_eq!(pieces(&streamed), ["one two three"]);
    let streamed = events(&server, "passes one two |three ").await;
    assert_eq!(pieces(&streamed), ["one two ", "three "]);
    let last = streamed
        .iter()
        .rev()
        .find_map(|event| match &event.response {
            StreamResponse::ArtifactUpdate(update) => Some(update.append),
            _ => None,
        });
    assert_eq!(last, Some(true));
}

async fn cf_17_text_can_come_at_the_end(mut server: Harness) {
    server.adopt("{granularity: final}").await;
    // The agent waits after each pass until it is written, which must not be for ever.
    let streamed = events(&server, "passes one two |three ").await;
    assert_eq!(kinds(&streamed), ["task", "status", "artifact", "status"]);
    assert_eq!(pieces(&streamed), ["one two three "]);
    // What a status says is told when it is said.
    let streamed = events(&server, "status-reply hi").await;
    assert_eq!(kinds(&streamed), ["task", "status", "status", "status"]);
}

async fn g_12_what_is_said_together_is_told_together(server: Harness) {
    let streamed = pieces(&events(&server, "chatter 1000").await);
    assert!(streamed.len() < 100, "{} events", streamed.len());
    let all: String = (0..1000).map(|n| format!("{n} ")).collect();
    assert_eq!(streamed.concat(), all);
}

/// Whatever the agent says on the way, only the end changes what becomes of the task.
async fn e_04_e_05_e_06_events_come_in_order_and_only_the_last_ends_the_task(server: Harness) {
    for pure in [false, true] {
        server.agent.pure.store(pure, Ordering::SeqCst);
        let streamed = events(&server, "notes").await;
        assert_eq!(
            states(&streamed),
            [Submitted, Working, Working, Working, Completed]
        );
        let streamed = events(&server, "echo x").await;
        assert_eq!(kinds(&streamed), ["task", "status", "artifact", "status"]);
        let StreamResponse::ArtifactUpdate(piece) = &streamed[2].response else {
            panic!("{streamed:?}");
        };
        assert!(piece.last_chunk);
        let failed = events(&server, "fail").await;
        assert_eq!(states(&failed), [Submitted, Working, TaskState::Failed]);
    }
}
