//! What policies mean across crashes, and for callers of another generation.

use a2ad_core::behaviour::{Behaviour, Finished, OnBusy, OnRestart};
use a2ad_core::engine::Frames;
use a2ad_testkit::client::{text_in, text_to};

use super::*;

fn with(behaviour: Behaviour) -> World {
    World::new(AgentPolicy {
        behaviour,
        ..AgentPolicy::default()
    })
}

#[test]
fn cf_27_a_turn_that_a_crash_cut_off_can_be_left_to_the_client() {
    let world = with(Behaviour {
        on_restart: OnRestart::InputRequired,
        ..Behaviour::default()
    });
    let life = world.live();
    let task = life.send(at_once(text("gate")));
    life.until(|| {
        let task = life.get(&task.id).unwrap();
        (!task.artifacts.is_empty()).then_some(())
    });
    life.crash();
    let life = world.live();
    let asks = life.until_state(&task.id, TaskState::InputRequired);
    assert!(said(&asks).contains("interrupted by process exit"));
    assert_eq!(asks.artifacts[0].parts, [Part::text("waiting ")]);
    assert_eq!(world.begun(), 1);
    let done = life.send(text_to(&task, "echo again"));
    assert_eq!(done.status.state, TaskState::Completed);
}

/// Whoever took the second message in did not live to cancel what stood before it.
#[test]
fn cf_09_what_was_to_be_interrupted_does_not_run_again_after_a_crash() {
    let mut world = with(Behaviour::default());
    let life = world.live();
    let first = life.send(at_once(text_in("talk", "stubborn")));
    life.until_state(&first.id, TaskState::Working);
    let other = life.send(at_once(text_in("elsewhere", "stubborn")));
    life.until_state(&other.id, TaskState::Working);
    let next = life.send(at_once(text_in("talk", "echo next")));
    life.crash();
    world.policy.behaviour.on_busy = OnBusy::Interrupt;
    let life = world.live();
    life.until_state(&first.id, TaskState::Canceled);
    life.until_state(&next.id, TaskState::Completed);
    life.until(|| (world.begun() == 4).then_some(()));
    let other = life.get(&other.id).unwrap();
    assert_eq!(
        other.status.state,
        TaskState::Working,
        "nothing came after it"
    );
}

/// All frames of a stream: their numbers and what they say.
fn frames(life: &Life, frames: Result<Frames, EngineError>) -> Vec<(u64, StreamResponse)> {
    let mut frames = frames.unwrap();
    let mut all = Vec::new();
    while let Some(batch) = life.run(frames.next()) {
        for frame in batch.unwrap() {
            let response = serde_json::from_slice(&frame.bytes).unwrap();
            all.push((frame.number.0, response));
        }
    }
    all
}

fn following(task: &Task) -> SubscribeToTaskRequest {
    SubscribeToTaskRequest {
        id: task.id.clone(),
        ..SubscribeToTaskRequest::default()
    }
}

#[test]
fn cf_14_g_04_an_older_generation_gets_the_task_and_its_last_event() {
    let world = with(Behaviour::default());
    let life = world.live();
    for (said, events) in [("echo x", 5), ("fail", 4)] {
        let task = life.send(text(said));
        let refused = life.run(life.engine.subscribe(&caller(), following(&task), None));
        assert!(
            matches!(refused, Err(EngineError::Unsupported(_))),
            "{refused:?}"
        );
        let followed = life.run(life.engine.resubscribe(&caller(), following(&task), None));
        let [
            (shown, StreamResponse::Task(opening)),
            (last, StreamResponse::StatusUpdate(end)),
        ] = &frames(&life, followed)[..]
        else {
            panic!("{task:?}");
        };
        assert_eq!((*shown, *last), (events, events));
        assert_eq!(opening, &task);
        assert_eq!(end.status, task.status);
    }
}

/// What the owner chose goes before what the generation says.
#[test]
fn cf_14_a_policy_is_the_same_for_every_generation() {
    for finished in [Finished::Replay, Finished::NotFound] {
        let world = with(Behaviour {
            finished,
            ..Behaviour::default()
        });
        let life = world.live();
        let task = life.send(text("echo x"));
        let new = life.run(life.engine.subscribe(&caller(), following(&task), None));
        let old = life.run(life.engine.resubscribe(&caller(), following(&task), None));
        if finished == Finished::NotFound {
            for refused in [new, old] {
                let not_found = matches!(refused, Err(EngineError::TaskNotFound { .. }));
                assert!(not_found, "{refused:?}");
            }
            continue;
        }
        let replay = frames(&life, new);
        assert_eq!(replay.len(), 4);
        assert_eq!(frames(&life, old), replay);
    }
}
