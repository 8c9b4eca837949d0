//! Following all tasks at once.

use std::collections::HashSet;

use a2ad_core::engine::{Sight, Sighting};

use super::*;

fn sight() -> Sight {
    let Scope { owner, agent } = caller().scope;
    Sight {
        owner,
        agents: vec![agent],
        context_id: None,
    }
}

/// far more happens than a feed remembers while nobody reads it. What it has forgotten is found in the list.
#[test]
fn r_02_a_monitor_that_was_away_for_long_is_told_of_all() {
    const TASKS: usize = 4500;
    let world = World::new(AgentPolicy::default());
    world.agent.pure.store(true, Ordering::SeqCst);
    let life = world.live();
    let before = life.send(text("echo before"));
    let mut sightings = life.engine.follow_all(sight());
    let mut next = || {
        let next = async { tokio::time::timeout(Duration::from_secs(60), sightings.next()).await };
        life.run(next).expect("in time").unwrap().unwrap()
    };
    let there = next();
    assert!(matches!(&there[..], [Sighting::There(seen)] if seen.task.id == before.id));
    let caller = caller();
    let sending = async {
        let engine = &life.engine;
        let caller = &caller;
        for _ in 0..TASKS / 100 {
            let send = |n| engine.send(caller, text(&format!("echo {n}")));
            let sent = futures_util::future::join_all((0..100).map(send)).await;
            assert!(sent.iter().all(Result::is_ok));
        }
    };
    life.run(sending);
    let mut told = HashSet::new();
    while told.len() < TASKS {
        for sighting in next() {
            let Sighting::Created(seen) = sighting else {
                panic!("{sighting:?}")
            };
            assert!(told.insert(seen.task.id), "told twice");
        }
    }
}

/// A future that is given up loses nothing.
#[test]
fn r_02_an_impatient_monitor_is_told_of_all() {
    let world = World::new(AgentPolicy::default());
    let life = world.live();
    life.send(text("echo before"));
    let mut sightings = life.engine.follow_all(sight());
    // Once what was there has been told, all comes by the feed.
    let there = life.run(sightings.next()).unwrap().unwrap();
    assert!(matches!(&there[..], [Sighting::There(_)]));
    let mut left: HashSet<String> = (0..200)
        .map(|n| life.send(text(&format!("echo {n}"))).id)
        .collect();
    let give_up = std::time::Instant::now() + Duration::from_secs(20);
    while !left.is_empty() {
        assert!(
            std::time::Instant::now() < give_up,
            "{} are not told",
            left.len()
        );
        let next =
            async { tokio::time::timeout(Duration::from_micros(300), sightings.next()).await };
        if let Ok(Some(batch)) = life.run(next) {
            for sighting in batch.unwrap() {
                left.remove(&sighting.seen().task.id);
            }
        }
    }
}
