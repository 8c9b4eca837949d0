//! Turns: one at a time in a context, fenced by their attempt, never lost.

use a2ad_proto::{AgentId, Role, Timestamp};

use super::Harness;
use super::sample::{alice, finish, follow_up, said, say, scope};
use super::world::{World, states};
use crate::keys::{Attempt, Number, TurnRef};
use crate::store::{Change, ChangeError, Claims};
use crate::task::{Broken, Command, Head, Outcome, RetryRule, TurnChange, TurnState};

fn echo() -> AgentId {
    "echo".parse().unwrap()
}

fn broken(head: &Head, reason: Broken, due: Timestamp, tries_max: u32) -> Command {
    Command::Break {
        turn: head.turns[0].number,
        attempt: head.turns[0].attempt,
        reason,
        retry: Some(RetryRule { tries_max, due }),
        failure: said(Role::Agent, "it did not work"),
    }
}

async fn claim(world: &World<'_>, agent: &str, limit: u32) -> Claims {
    let holder = world.store.open_holder().await.unwrap();
    let wanted = vec![(agent.parse().unwrap(), limit)];
    world.store.claim(holder, wanted).await.unwrap()
}

fn turn(head: &Head, number: u64) -> TurnRef {
    TurnRef {
        task: head.identity.key,
        number: Number(number),
    }
}

/// Whoever lost the lease cannot write, even with the newest version in hand.
pub async fn a_write_under_a_lost_lease_is_fenced(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let holder = world.store.open_holder().await.unwrap();
    let zombie = world.begin_leased(&alice(), holder).await;
    let key = zombie.identity.key;
    let number = zombie.turns[0].number;
    let command = broken(&zombie, Broken::Lost, world.now(), 5);
    let requeued = world.commit(world.decide(&zombie, &[command])).await.head;
    let zombie_writes = |head: &Head| -> Change {
        let mut believed = head.clone();
        believed.turns[0].state = TurnState::Leased;
        believed.turns[0].attempt = Attempt::FIRST;
        world.decide(&believed, &[say(number, Attempt::FIRST, "still here")])
    };
    // Nobody holds the turn; then somebody else does; then the turn is over.
    let change = zombie_writes(&requeued);
    assert!(matches!(world.refusal(change).await, ChangeError::Fenced));
    assert_eq!(claim(&world, "echo", 1).await.turns.len(), 1);
    let leased = world.head(key).await;
    let change = zombie_writes(&leased);
    assert!(matches!(world.refusal(change).await, ChangeError::Fenced));
    let holders = world.decide(&leased, &[say(number, Attempt(2), "mine now")]);
    let head = world.commit(holders).await.head;
    let done = world.decide(&head, &[finish(&head, Outcome::InputRequired(None))]);
    let mut change = zombie_writes(&head);
    let head = world.commit(done).await.head;
    change.expected = head.version;
    assert_eq!(head.turns, []);
    let believed = Head {
        turns: leased.turns.clone(),
        ..(*head).clone()
    };
    let change = zombie_writes(&believed);
    assert!(matches!(world.refusal(change).await, ChangeError::Fenced));
    assert_eq!(*world.head(key).await, *head);
}

/// A decision about a turn that was leased meanwhile is made again.
pub async fn a_turn_change_under_an_old_attempt_is_a_conflict(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let ready = world.begin(&alice()).await;
    // Decided while nobody worked on it, so it would end the task at once.
    let cancel = world.decide(&ready, &[Command::Cancel { metadata: None }]);
    assert!(matches!(cancel.turns[..], [TurnChange::End { .. }]));
    assert_eq!(claim(&world, "echo", 1).await.turns.len(), 1);
    assert!(matches!(world.refusal(cancel).await, ChangeError::Conflict));

    let leased = world.head(ready.identity.key).await;
    for attempt in [Attempt::NONE, Attempt(2)] {
        let number = Number(1);
        for change in [
            TurnChange::End { number, attempt },
            TurnChange::Dead { number, attempt },
            TurnChange::Requeue {
                number,
                attempt,
                due: world.now(),
                returned: false,
            },
        ] {
            let mut wrong = world.decide(&leased, &[follow_up("x")]);
            wrong.turns = vec![change];
            assert!(matches!(world.refusal(wrong).await, ChangeError::Conflict));
        }
    }
    let mut missing = world.decide(&leased, &[follow_up("x")]);
    missing.turns = vec![TurnChange::End {
        number: Number(9),
        attempt: Attempt::NONE,
    }];
    assert!(matches!(
        world.refusal(missing).await,
        ChangeError::Conflict
    ));
    assert_eq!(*world.head(ready.identity.key).await, *leased);
}

/// The commit that ends a turn makes the next one of its context ready.
pub async fn the_second_turn_of_a_context_waits_for_the_first(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let holder = world.store.open_holder().await.unwrap();
    let mut change = world.submission_in(&alice(), "c").await;
    change.lease_to = Some(holder);
    let first = world.commit(change).await;
    assert_eq!(states(&first.head), [TurnState::Leased]);
    assert_eq!(first.ready, [], "a leased turn is nobody else's");
    // Not even with a free slot may the second task of the context, or a third turn, go ahead.
    let mut change = world.submission_in(&alice(), "c").await;
    change.lease_to = Some(holder);
    let second = world.commit(change).await;
    assert_eq!(states(&second.head), [TurnState::Waiting]);
    assert_eq!(second.ready, []);
    let third = world
        .commit(world.decide(&first.head, &[follow_up("more")]))
        .await;
    assert_eq!(states(&third.head), [TurnState::Leased, TurnState::Waiting]);
    assert!(claim(&world, "echo", 9).await.turns.is_empty());
    assert_eq!(world.store.stats().await.unwrap().turns, [2, 0, 1]);

    let done = finish(&third.head, Outcome::Completed(None));
    let ended = world.commit(world.decide(&third.head, &[done])).await;
    assert_eq!(
        states(&ended.head),
        [TurnState::Waiting],
        "not its turn yet"
    );
    assert_eq!(ended.ready, [echo()]);
    assert_eq!(
        states(&*world.head(second.head.identity.key).await),
        [TurnState::Ready]
    );
    let claims = claim(&world, "echo", 9).await;
    assert_eq!(claims.turns.len(), 1);
    assert_eq!(claims.turns[0].turn, turn(&second.head, 1));

    let head = world.head(second.head.identity.key).await;
    let done = finish(&head, Outcome::Completed(None));
    let ended = world.commit(world.decide(&head, &[done])).await;
    assert_eq!(ended.ready, [echo()]);
    let claims = claim(&world, "echo", 9).await;
    assert_eq!(claims.turns[0].turn, turn(&first.head, 2));
}

/// A turn that ends while it waits leaves the one ahead of it, and the ones behind it, in place.
pub async fn ending_a_waiting_turn_wakes_nobody(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let holder = world.store.open_holder().await.unwrap();
    let mut change = world.submission_in(&alice(), "c").await;
    change.lease_to = Some(holder);
    world.commit(change).await;
    let second = world.begin_in(&alice(), "c").await;
    let third = world.begin_in(&alice(), "c").await;
    let canceled = world
        .commit(world.decide(&second, &[Command::Cancel { metadata: None }]))
        .await;
    assert_eq!(canceled.ready, []);
    assert_eq!(
        states(&*world.head(third.identity.key).await),
        [TurnState::Waiting]
    );
    assert!(claim(&world, "echo", 9).await.turns.is_empty());
}

/// A turn that is tried again later still comes before everything behind it.
pub async fn a_requeued_turn_keeps_its_place(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let holder = world.store.open_holder().await.unwrap();
    let mut change = world.submission_in(&alice(), "c").await;
    change.lease_to = Some(holder);
    let first = world.commit(change).await.head;
    let second = world.begin_in(&alice(), "c").await;
    let due = Timestamp::from_millis(world.now().as_millis() + 1_000);
    let command = broken(&first, Broken::Released, due, 5);
    let requeued = world.commit(world.decide(&first, &[command])).await;
    assert_eq!(requeued.ready, [echo()]);
    assert_eq!(requeued.head.turns[0].state, TurnState::Ready);
    assert_eq!(requeued.head.turns[0].attempt, Attempt::FIRST);
    assert_eq!(
        requeued.head.turns[0].tries(),
        0,
        "handed back in good order"
    );
    assert_eq!(*world.head(first.identity.key).await, *requeued.head);

    let claims = claim(&world, "echo", 9).await;
    assert!(claims.turns.is_empty(), "it is not due, and it blocks");
    assert_eq!(claims.next_due, Some(due));
    assert_eq!(
        states(&*world.head(second.identity.key).await),
        [TurnState::Waiting]
    );
    world.clock.step(1_000);
    let claims = claim(&world, "echo", 9).await;
    assert_eq!(claims.turns.len(), 1);
    assert_eq!(claims.turns[0].turn, turn(&first, 1));
    assert_eq!(claims.turns[0].attempt, Attempt(2));
}

/// Order is kept within a context, not across contexts.
pub async fn contexts_do_not_wait_for_each_other(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let holder = world.store.open_holder().await.unwrap();
    let mut change = world.submission_in(&alice(), "one").await;
    change.lease_to = Some(holder);
    world.commit(change).await;
    let mut change = world.submission_in(&alice(), "two").await;
    change.lease_to = Some(holder);
    let two = world.commit(change).await.head;
    assert_eq!(states(&two), [TurnState::Leased]);
    let three = world.begin(&alice()).await;
    assert_eq!(states(&three), [TurnState::Ready]);
    let done = finish(&two, Outcome::Completed(None));
    let ended = world.commit(world.decide(&two, &[done])).await;
    assert_eq!(ended.ready, []);
}

/// The queue of an agent is bounded, over all contexts and owners, also after reopening.
pub async fn a_full_agent_takes_no_more_messages(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let bounded = |mut change: Change| {
        change.agent_turns_max = 2;
        change
    };
    let first = world.begin_in(&alice(), "c").await;
    world.begin_in(&alice(), "d").await;
    let third = world.submission_in(&alice(), "e").await;
    assert!(matches!(
        world.refusal(bounded(third)).await,
        ChangeError::AgentFull
    ));
    let world = world.reopen().await;
    let third = world.submission_in(&alice(), "e").await;
    assert!(matches!(
        world.refusal(bounded(third)).await,
        ChangeError::AgentFull
    ));
    world
        .commit(world.decide(&first, &[Command::Cancel { metadata: None }]))
        .await;
    let again = world.submission_in(&alice(), "e").await;
    world.commit(bounded(again)).await;
}

/// The queue of a context is bounded.
pub async fn a_full_context_takes_no_more_messages(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let bounded = |mut change: Change| {
        change.context_turns_max = 2;
        change
    };
    let first = world.begin_in(&alice(), "c").await;
    let more = world.decide(&first, &[follow_up("two")]);
    let first = world.commit(bounded(more)).await.head;
    let more = world.decide(&first, &[follow_up("three")]);
    assert!(matches!(
        world.refusal(bounded(more)).await,
        ChangeError::ContextFull
    ));
    let other = world.submission_in(&alice(), "c").await;
    let key = other.head.identity.key;
    assert!(matches!(
        world.refusal(bounded(other)).await,
        ChangeError::ContextFull
    ));
    assert_eq!(world.store.head(key).await.unwrap(), None);
    let elsewhere = world.submission_in(&alice(), "d").await;
    world.commit(bounded(elsewhere)).await;
    // There is room again as soon as a turn has ended.
    world
        .commit(world.decide(&first, &[Command::Cancel { metadata: None }]))
        .await;
    let again = world.submission_in(&alice(), "c").await;
    world.commit(bounded(again)).await;
}

/// A claim brings what is due, for the agents asked for, as many as asked for, oldest first.
pub async fn a_claim_respects_time_and_limit_and_agent(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let holder = world.store.open_holder().await.unwrap();
    let other = scope("token:alice", "other");
    let mut echoes = Vec::new();
    for _ in 0..5 {
        echoes.push(world.begin(&alice()).await);
        world.begin(&other).await;
        world.clock.step(1);
    }
    assert!(claim(&world, "nobody", 9).await.turns.is_empty());
    assert!(claim(&world, "echo", 0).await.turns.is_empty());
    let wanted = vec![(echo(), 2), ("other".parse().unwrap(), 1)];
    let claims = world.store.claim(holder, wanted).await.unwrap();
    let claimed: Vec<_> = claims
        .turns
        .iter()
        .map(|claimed| (claimed.agent.as_str(), claimed.turn.task))
        .collect();
    assert_eq!(claimed.len(), 3);
    assert_eq!(claimed[0], ("echo", echoes[0].identity.key));
    assert_eq!(claimed[1], ("echo", echoes[1].identity.key));
    assert_eq!(claimed[2].0, "other");
    let head = world.head(echoes[0].identity.key).await;
    assert_eq!(states(&head), [TurnState::Leased]);
    assert_eq!(head.version, echoes[0].version, "leasing is no entry");

    let claims = claim(&world, "echo", 9).await;
    assert_eq!(claims.turns.len(), 3);
    assert_eq!(claims.next_due, None);
    assert!(claim(&world, "echo", 9).await.turns.is_empty());
    // Of several that come due later, the first tells when to ask again.
    let mut dues = Vec::new();
    for (n, head) in echoes.iter().take(3).enumerate() {
        let head = world.head(head.identity.key).await;
        let due = Timestamp::from_millis(world.now().as_millis() + 500 - 100 * n as i64);
        let command = broken(&head, Broken::Failed, due, 5);
        world.commit(world.decide(&head, &[command])).await;
        dues.push(due);
    }
    assert_eq!(claim(&world, "echo", 9).await.next_due, Some(dues[2]));
    world.clock.step(400);
    let claims = claim(&world, "echo", 9).await;
    let keys: Vec<_> = claims
        .turns
        .iter()
        .map(|claimed| claimed.turn.task)
        .collect();
    assert_eq!(keys, [echoes[2].identity.key, echoes[1].identity.key]);
    assert_eq!(claims.next_due, Some(dues[0]));
}

/// Every lease of a turn has a higher attempt than all before it, across restarts too.
pub async fn attempts_rise_and_are_never_used_again(harness: &dyn Harness) {
    let mut world = World::open(harness).await;
    let key = world.begin(&alice()).await.identity.key;
    for round in 1..=6 {
        let claims = claim(&world, "echo", 9).await;
        assert_eq!(claims.turns.len(), 1);
        assert_eq!(claims.turns[0].attempt, Attempt(round));
        let head = world.head(key).await;
        assert_eq!(head.turns[0].attempt, Attempt(round));
        let command = broken(&head, Broken::Released, world.now(), 1);
        world.commit(world.decide(&head, &[command])).await;
        if round % 2 == 0 {
            world = world.reopen().await;
        }
    }
    assert_eq!(world.head(key).await.turns[0].returned, 6);
}

/// Who stands in line is told in order, for one context at a time.
pub async fn a_line_is_of_one_context_and_in_order(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let one = world.begin_in(&alice(), "talk").await;
    let other = world.begin_in(&alice(), "elsewhere").await;
    let two = world.begin_in(&alice(), "talk").await;
    let more = world.decide(&one, &[follow_up("more")]);
    let one = world.commit(more).await.head;
    let number = one.turns[1].number.0;
    let line = [turn(&one, 1), turn(&two, 1), turn(&one, number)];
    for head in [&one, &two] {
        let key = head.identity.key;
        assert_eq!(world.store.line(key).await.unwrap(), line);
    }
    let key = other.identity.key;
    assert_eq!(world.store.line(key).await.unwrap(), [turn(&other, 1)]);
    let canceled = world.decide(&two, &[Command::Cancel { metadata: None }]);
    world.commit(canceled).await;
    let key = two.identity.key;
    assert_eq!(world.store.line(key).await.unwrap(), []);
    let key = one.identity.key;
    assert_eq!(world.store.line(key).await.unwrap(), [line[0], line[2]]);
}

/// After a restart, turns that an earlier life had leased are found, and nobody else's are.
pub async fn leases_of_a_holder_that_is_gone_are_orphans(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let holder = world.store.open_holder().await.unwrap();
    let one = world.begin_leased(&alice(), holder).await;
    let two = world.begin(&alice()).await;
    assert_eq!(claim(&world, "echo", 9).await.turns.len(), 1);
    let ready = world.begin(&alice()).await;
    assert_eq!(world.store.orphans(9).await.unwrap(), []);

    let world = world.reopen().await;
    let new_holder = world.store.open_holder().await.unwrap();
    assert_ne!(new_holder, holder);
    let three = world.begin_leased(&alice(), new_holder).await;
    let orphans = world.store.orphans(9).await.unwrap();
    let turns: Vec<_> = orphans
        .iter()
        .map(|orphan| (orphan.turn, orphan.agent.clone(), orphan.attempt))
        .collect();
    assert_eq!(
        turns,
        [
            (turn(&one, 1), echo(), Attempt::FIRST),
            (turn(&two, 1), echo(), Attempt::FIRST)
        ]
    );
    assert_eq!(world.store.orphans(1).await.unwrap().len(), 1);
    // An orphan is requeued under the attempt it was lost with, and then it is none any more.
    let head = world.head(one.identity.key).await;
    let command = broken(&head, Broken::Lost, world.now(), 5);
    world.commit(world.decide(&head, &[command])).await;
    assert_eq!(world.store.orphans(9).await.unwrap().len(), 1);
    assert_eq!(
        states(&*world.head(ready.identity.key).await),
        [TurnState::Ready]
    );
    assert_eq!(
        states(&*world.head(three.identity.key).await),
        [TurnState::Leased]
    );
}

/// When the first poll ends the work, accept and finish are one commit, and nothing is left open.
pub async fn a_turn_may_open_and_end_in_one_change(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let holder = world.store.open_holder().await.unwrap();
    let fused = |submission: Change| {
        let mut head = submission.head.clone();
        head.turns[0].state = TurnState::Leased;
        head.turns[0].attempt = Attempt::FIRST;
        let end = world.decide(&head, &[finish(&head, Outcome::Completed(None))]);
        let mut change = submission;
        change.lease_to = Some(holder);
        change.entries.extend(end.entries);
        change.turns.extend(end.turns);
        change.fence = end.fence;
        change.head = end.head;
        change
    };
    let free = world.submission_in(&alice(), "c").await;
    let head = world.commit(fused(free)).await.head;
    assert_eq!(head.turns, []);
    assert_eq!(*world.head(head.identity.key).await, *head);
    assert_eq!(world.store.stats().await.unwrap().turns, [0, 0, 0]);

    // Behind somebody else's turn it could not have been leased, so it cannot have ended.
    world.begin_in(&alice(), "c").await;
    let busy = world.submission_in(&alice(), "c").await;
    let key = busy.head.identity.key;
    assert!(matches!(
        world.refusal(fused(busy)).await,
        ChangeError::Fenced | ChangeError::Conflict
    ));
    assert_eq!(world.store.head(key).await.unwrap(), None);
}

/// A turn that ran out of tries is counted apart and does not block its context.
pub async fn a_dead_turn_is_kept_and_lets_the_next_one_go(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let holder = world.store.open_holder().await.unwrap();
    let mut change = world.submission_in(&alice(), "c").await;
    change.lease_to = Some(holder);
    let first = world.commit(change).await.head;
    let second = world.begin_in(&alice(), "c").await;
    let change = world.decide(&first, &[broken(&first, Broken::Failed, world.now(), 1)]);
    assert!(
        change
            .turns
            .iter()
            .any(|turn| matches!(turn, TurnChange::Dead { .. }))
    );
    let dead = world.commit(change).await;
    assert_eq!(dead.head.turns, []);
    assert_eq!(dead.ready, [echo()]);
    let stats = world.store.stats().await.unwrap();
    assert_eq!((stats.turns, stats.dead), ([0, 1, 0], 1));
    assert_eq!(
        states(&*world.head(second.identity.key).await),
        [TurnState::Ready]
    );
    let world = world.reopen().await;
    assert_eq!(world.store.stats().await.unwrap().dead, 1);
}
