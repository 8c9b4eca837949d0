//! What goes away and what comes anew: purging, idling, keys.

use std::collections::HashSet;

use a2ad_proto::Timestamp;

use super::Harness;
use super::sample::{alice, finish, follow_up, once, scope};
use super::world::{World, states};
use crate::keys::Number;
use crate::store::ListFilter;
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
