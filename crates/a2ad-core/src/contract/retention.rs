//! What goes away and what comes anew: purging, idling, keys.

use std::collections::HashSet;

use a2ad_proto::Timestamp;

use super::Harness;
use super::sample::{alice, finish, follow_up, once, scope};
use super::world::{World, states};
use crate::keys::{Number, TaskKey};
use crate::store::{ListFilter, ListPlace};
use crate::task::{Outcome, TurnState};

fn after(world: &World<'_>, ms: i64) -> Timestamp {
    Timestamp::from_millis(world.now().as_millis() + ms)
}

/// Ended tasks that are old enough go, with everything; all others stay, with everything.
pub async fn purging_removes_all_of_what_ended_before_and_nothing_else(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let holder = world.store.open_holder().await.unwrap();
    let mut change = world.submission_in(&alice(), "c").await;
    change.once = Some(once(1, 1, 1));
    change.lease_to = Some(holder);
    let old = world.commit(change).await.head;
    let mut change = world.decide(&old, &[finish(&old, Outcome::Completed(None))]);
    let mut fold = world.fold(old.identity.key).await;
    crate::task::apply(&mut fold, change.entries[0].record().unwrap());
    change.snapshot = Some(fold.snapshot());
    let old = world.commit(change).await.head;
    let mut others = Vec::new();
    for outcome in [
        Outcome::Failed(None),
        Outcome::Canceled(None),
        Outcome::Rejected(None),
    ] {
        others.push(world.ended(&alice(), outcome).await);
    }
    let waiting = world.ended(&alice(), Outcome::InputRequired(None)).await;
    let running = world.begin(&alice()).await;
    let limit = after(&world, 1);
    world.clock.step(1);
    let mut change = world.submission_in(&alice(), "d").await;
    change.once = Some(once(2, 2, 1));
    change.lease_to = Some(holder);
    let young = world.commit(change).await.head;
    let done = world.decide(&young, &[finish(&young, Outcome::Completed(None))]);
    let young = world.commit(done).await.head;

    assert_eq!(world.store.purge(world.now(), 0).await.unwrap(), []);
    let mut purged: HashSet<_> = world
        .store
        .purge(limit, 3)
        .await
        .unwrap()
        .into_iter()
        .collect();
    assert_eq!(purged.len(), 3, "no more than asked for");
    purged.extend(world.store.purge(limit, 99).await.unwrap());
    let expected: HashSet<_> = others
        .iter()
        .chain([&old])
        .map(|head| head.identity.key)
        .collect();
    assert_eq!(purged, expected);
    assert_eq!(world.store.purge(limit, 99).await.unwrap(), []);

    let world = world.reopen().await;
    for head in others.iter().chain([&old]) {
        let key = head.identity.key;
        let id = &head.identity.id;
        assert_eq!(world.store.find(&alice(), id).await.unwrap(), None);
        assert_eq!(world.store.head(key).await.unwrap(), None);
        assert_eq!(world.store.snapshot(key).await.unwrap(), None);
        assert_eq!(world.store.read(key, Number::ZERO, 9).await.unwrap(), []);
    }
    assert_eq!(world.store.once(&alice(), [1; 16]).await.unwrap(), None);
    for head in [&waiting, &running, &young] {
        assert_eq!(*world.head(head.identity.key).await, **head);
        let journal = world.journal(head.identity.key, 1 << 20).await;
        assert_eq!(journal.len() as u64, head.version.0);
    }
    assert!(world.store.once(&alice(), [2; 16]).await.unwrap().is_some());
    let page = world
        .store
        .list(
            &alice(),
            &ListFilter::default(),
            None,
            99,
            usize::MAX,
            false,
            &mut |_, _| false,
        )
        .await
        .unwrap();
    assert_eq!((page.tasks.len(), page.total), (3, 3));
    // The context went with its last task, the request key with its task: both can be used anew.
    let mut change = world.submission_in(&alice(), "c").await;
    change.once = Some(once(1, 9, 1));
    let anew = world.commit(change).await.head;
    assert_ne!(anew.identity.context, old.identity.context);
    let joined = world.begin_in(&alice(), "d").await;
    assert_eq!(joined.identity.context, young.identity.context);
}

/// A context is there for as long as any of its tasks is, under the id that it was given.
pub async fn a_context_outlives_the_task_that_opened_it(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let first = world.ended(&alice(), Outcome::Completed(None)).await;
    let holder = world.store.open_holder().await.unwrap();
    let mut change = world.submission_in(&alice(), "holiday").await;
    change.lease_to = Some(holder);
    let named = world.commit(change).await.head;
    let change = world.decide(&named, &[finish(&named, Outcome::Completed(None))]);
    world.commit(change).await;
    let identity = &first.identity;
    let before = after(&world, 1);
    world.clock.step(1);
    let name = identity.context_id.as_str();
    let second = world.begin_in(&alice(), name).await;
    let in_named = world.begin_in(&alice(), "holiday").await;
    let gone = [identity.key, named.identity.key];
    assert_eq!(world.store.purge(before, 9).await.unwrap(), gone);

    let world = world.reopen().await;
    for head in [&second, &in_named] {
        assert_eq!(*world.head(head.identity.key).await, **head);
    }
    let again = world.begin_in(&alice(), "holiday").await;
    assert_eq!(again.identity.context, named.identity.context);
    let third = world.begin_in(&alice(), name).await;
    for head in [&second, &third] {
        assert_eq!(head.identity.context, identity.context);
        assert_eq!(head.identity.context_id, identity.context_id);
    }
    assert_eq!(states(&third), [TurnState::Waiting]);
    // The same key with other random bits is another id, and somebody else's context is not there.
    let forged = world.store.public_ids().context_id(identity.context, 99);
    let bob = scope("token:bob", "echo");
    for (owner, name) in [(alice(), forged.as_str()), (bob, name)] {
        let elsewhere = world.begin_in(&owner, name).await;
        assert_ne!(elsewhere.identity.context, identity.context);
    }
    let filter = ListFilter {
        context_id: Some(identity.context_id.clone()),
        ..ListFilter::default()
    };
    let page = world
        .store
        .list(
            &alice(),
            &filter,
            None,
            9,
            usize::MAX,
            false,
            &mut |_, _| false,
        )
        .await
        .unwrap();
    let keys: Vec<_> = page.tasks.iter().map(|task| task.place.key).collect();
    assert_eq!(keys, [third.identity.key, second.identity.key]);
    assert_eq!(page.total, 2);
}

/// F-07: of a context that has too many tasks, those go that ended first, in the commit that brought
/// the one too many; those that have not ended stay, and so does everything in other contexts.
pub async fn f_07_a_context_keeps_its_newest_tasks(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let holder = world.store.open_holder().await.unwrap();
    let begin = async |n: u8, context: &str| {
        world.clock.step(1);
        let mut change = world.submission_in(&alice(), context).await;
        change.once = Some(once(n, n, 1));
        change.lease_to = Some(holder);
        change.context_tasks_max = Some(2);
        world.commit(change).await.head
    };
    let end = async |head: &crate::task::Head| {
        world.clock.step(1);
        let mut change = world.decide(head, &[finish(head, Outcome::Completed(None))]);
        change.context_tasks_max = Some(2);
        world.commit(change).await.head
    };
    let there = async |head: &crate::task::Head| {
        let identity = &head.identity;
        let found = world.store.find(&alice(), &identity.id).await.unwrap();
        assert_eq!(
            world.store.head(identity.key).await.unwrap().is_some(),
            found.is_some()
        );
        found.is_some()
    };
    let other = end(&*begin(9, "other").await).await;
    let one = end(&*begin(1, "c").await).await;
    let two = end(&*begin(2, "c").await).await;
    assert!(there(&one).await && there(&two).await, "two may stay");
    let three = begin(3, "c").await;
    assert!(!there(&one).await, "the oldest went when the third came");
    assert!(there(&two).await);
    assert_eq!(world.wake.deleted(), [one.identity.key]);
    assert_eq!(
        world.store.once(&alice(), [1; 16]).await.unwrap(),
        None,
        "its request can be made anew"
    );

    // What waits is not counted against what has not ended: of four, only one has.
    let four = begin(4, "c").await;
    let five = begin(5, "c").await;
    assert!(!there(&two).await);
    for head in [&three, &four, &five, &other] {
        assert!(there(head).await, "what has not ended stays");
    }
    let three = end(&three).await;
    assert!(there(&three).await, "not the one that has just ended");
    let claimed = async |number: &crate::task::Head| {
        let agents = vec![(alice().agent, 9)];
        let claims = world.store.claim(holder, agents).await.unwrap();
        assert_eq!(claims.turns.len(), 1);
        world.head(number.identity.key).await
    };
    let four = end(&*claimed(&four).await).await;
    assert!(!there(&three).await && there(&four).await);

    // The totals are right, nothing is left of what went, and the context is the same.
    let page = world
        .store
        .list(
            &alice(),
            &ListFilter::default(),
            None,
            99,
            usize::MAX,
            false,
            &mut |_, _| false,
        )
        .await
        .unwrap();
    assert_eq!((page.tasks.len(), page.total), (3, 3));
    let world = world.reopen().await;
    for head in [&one, &two, &three] {
        let key = head.identity.key;
        assert_eq!(world.store.read(key, Number::ZERO, 9).await.unwrap(), []);
        assert_eq!(world.store.snapshot(key).await.unwrap(), None);
    }
    let again = world.begin_in(&alice(), "c").await;
    assert_eq!(again.identity.context, one.identity.context);
}

/// Waiting for the client means: asked something, and nothing of the client's is in line.
pub async fn only_tasks_that_wait_for_their_client_are_idle(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let asked = world.ended(&alice(), Outcome::InputRequired(None)).await;
    world.clock.step(1);
    let auth = world.ended(&alice(), Outcome::AuthRequired(None)).await;
    let answered = world.ended(&alice(), Outcome::InputRequired(None)).await;
    let answered = world
        .commit(world.decide(&answered, &[follow_up("here")]))
        .await
        .head;
    assert_eq!(states(&answered), [TurnState::Ready]);
    world.begin(&alice()).await;
    world.ended(&alice(), Outcome::Completed(None)).await;
    let before = after(&world, 1);
    world.clock.step(1);
    world.ended(&alice(), Outcome::InputRequired(None)).await;
    let both = [asked.identity.key, auth.identity.key];
    assert_eq!(world.store.idle(before, 9).await.unwrap(), both);
    assert_eq!(world.store.idle(before, 1).await.unwrap(), both[..1]);
    assert_eq!(world.store.idle(asked.status_at, 9).await.unwrap(), []);
}

/// Whoever's they are, and in pages of any size.
pub async fn what_rests_is_found_in_the_order_in_which_it_came_to_rest(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let bob = scope("token:bob", "echo");
    let mut resting = Vec::new();
    for outcome in [
        Outcome::Completed(None),
        Outcome::InputRequired(None),
        Outcome::Failed(None),
        Outcome::AuthRequired(None),
        Outcome::Canceled(None),
        Outcome::Rejected(None),
    ] {
        for owner in [alice(), bob.clone()] {
            let head = world.ended(&owner, outcome.clone()).await;
            resting.push((head.status_at.as_millis(), head.identity.key, head.version));
        }
        world.begin(&alice()).await;
        world.clock.step(1);
    }
    for size in [1, 5, 99] {
        let mut found = Vec::new();
        let mut after = ListPlace {
            status_at: i64::MIN,
            key: TaskKey(i64::MIN),
        };
        loop {
            let page = world.store.rested(after, size).await.unwrap();
            assert!(page.len() <= size);
            let Some((last, _)) = page.last() else { break };
            after = *last;
            found.extend(page.iter().map(|(at, it)| (at.status_at, at.key, *it)));
        }
        assert_eq!(found, resting);
    }
    let from = ListPlace {
        status_at: resting[4].0,
        key: TaskKey(i64::MIN),
    };
    assert_eq!(world.store.rested(from, 99).await.unwrap().len(), 8);
}

/// No key is given twice, whatever became of those given before.
pub async fn keys_grow_across_reopening(harness: &dyn Harness) {
    let mut world = World::open(harness).await;
    let mut last = 0;
    for count in [1, 5, 70_000, 1, 200_000] {
        let keys = world.store.allot(count).await.unwrap();
        assert_eq!(keys.end - keys.start, i64::from(count));
        assert!(keys.start > last, "{keys:?} after {last}");
        last = keys.end - 1;
        world = world.reopen().await;
    }
    let store = &world.store;
    let many = futures_util::future::join_all((0..50).map(|_| store.allot(3_000))).await;
    let mut starts: Vec<_> = many.into_iter().map(|keys| keys.unwrap().start).collect();
    starts.sort_unstable();
    assert!(starts[0] > last);
    assert!(starts.windows(2).all(|pair| pair[1] - pair[0] >= 3_000));
}

/// Readiness asks whether writing works.
pub async fn a_working_store_says_so(harness: &dyn Harness) {
    let world = World::open(harness).await;
    world.store.check().await.unwrap();
    let world = world.reopen().await;
    world.store.check().await.unwrap();
    assert!(world.wake.stopped().is_empty());
}
