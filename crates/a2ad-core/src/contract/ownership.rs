//! Whose is what: not yours is not there.

use super::Harness;
use super::sample::{alice, follow_up, once, scope};
use super::world::{World, states};
use crate::keys::{Number, Scope};
use crate::store::{ChangeError, ListFilter, OnceHit};
use crate::task::TurnState;

fn strangers() -> [Scope; 3] {
    [
        scope("token:bob", "echo"),
        scope("token:alice", "other"),
        scope("token:nobody-yet", "never-seen"),
    ]
}

/// A task is found by its owner with its agent, and by nobody else.
pub async fn not_yours_is_not_there(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let mut change = world.submission_in(&alice(), "holiday").await;
    change.once = Some(once(1, 1, 1));
    let head = world.commit(change).await.head;
    // Bob and the other agent exist, so that only the comparison keeps them out.
    world.begin(&strangers()[0]).await;
    world.begin(&strangers()[1]).await;

    let id = &head.identity.id;
    let in_context = ListFilter {
        context_id: Some("holiday".parse().unwrap()),
        ..ListFilter::default()
    };
    assert!(world.store.find(&alice(), id).await.unwrap().is_some());
    let mine = world
        .store
        .list(
            &alice(),
            &in_context,
            None,
            10,
            usize::MAX,
            true,
            &mut |_, _| false,
        )
        .await;
    assert_eq!(mine.unwrap().total, 1);
    for stranger in strangers() {
        assert_eq!(world.store.find(&stranger, id).await.unwrap(), None);
        assert_eq!(world.store.once(&stranger, [1; 16]).await.unwrap(), None);
        let page = world
            .store
            .list(
                &stranger,
                &in_context,
                None,
                10,
                usize::MAX,
                true,
                &mut |_, _| false,
            )
            .await;
        let page = page.unwrap();
        assert_eq!((page.tasks.len(), page.total, page.more), (0, 0, false));
        let page = world
            .store
            .list(
                &stranger,
                &ListFilter::default(),
                None,
                10,
                usize::MAX,
                true,
                &mut |_, _| false,
            )
            .await
            .unwrap();
        assert!(
            page.tasks
                .iter()
                .all(|task| task.place.key != head.identity.key)
        );
    }
    for odd in ["nonsense", "00000000-0000-8000-8000-000000000000"] {
        let id = odd.parse().unwrap();
        assert_eq!(world.store.find(&alice(), &id).await.unwrap(), None);
    }
    // The right key with other random bits is another id.
    let forged = world.store.public_ids().task_id(head.identity.key, 99);
    assert_eq!(world.store.find(&alice(), &forged).await.unwrap(), None);
}

/// A change that claims another scope's task is refused.
pub async fn another_owners_task_cannot_be_changed(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let head = world.begin(&alice()).await;
    for stranger in strangers() {
        let mut change = world.decide(&head, &[follow_up("mine now")]);
        let mut identity = (*change.head.identity).clone();
        identity.scope = stranger;
        change.head.identity = identity.into();
        assert!(matches!(world.refusal(change).await, ChangeError::Conflict));
    }
    assert_eq!(*world.head(head.identity.key).await, *head);
}

/// A repeat is recognised before anything else is looked at, for as long as the task is kept.
pub async fn a_repeated_request_is_found_and_changes_nothing(harness: &dyn Harness) {
    let mut world = World::open(harness).await;
    let mut change = world.submission(&alice()).await;
    change.once = Some(once(7, 1, 1));
    let head = world.commit(change.clone()).await.head;
    let key = head.identity.key;
    let mut more = world.decide(&head, &[follow_up("more")]);
    more.once = Some(once(8, 2, 2));
    world.commit(more.clone()).await;
    for _ in 0..2 {
        let first = OnceHit {
            task: key,
            number: Number(1),
            body: [1; 16],
        };
        let second = OnceHit {
            task: key,
            number: Number(2),
            body: [2; 16],
        };
        assert_eq!(
            world.store.once(&alice(), [7; 16]).await.unwrap(),
            Some(first)
        );
        assert_eq!(
            world.store.once(&alice(), [8; 16]).await.unwrap(),
            Some(second)
        );
        assert_eq!(world.store.once(&alice(), [9; 16]).await.unwrap(), None);
        // The very same changes again: they would conflict, too, but they are repeats first.
        for (again, hit) in [(&change, first), (&more, second)] {
            let refused = world.refusal(again.clone()).await;
            assert!(matches!(refused, ChangeError::Repeated(found) if found == hit));
        }
        // The same key for another body in another new task.
        let mut other = world.submission(&alice()).await;
        other.once = Some(once(7, 3, 1));
        let other_key = other.head.identity.key;
        let refused = world.refusal(other).await;
        assert!(matches!(refused, ChangeError::Repeated(found) if found == first));
        assert_eq!(world.store.head(other_key).await.unwrap(), None);
        assert_eq!(world.head(key).await.version, Number(2));
        world = world.reopen().await;
    }
}

/// The same key of another owner, or for another agent, is another request.
pub async fn request_keys_belong_to_owner_and_agent(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let mut keys = Vec::new();
    for (n, owner) in [alice()].into_iter().chain(strangers()).enumerate() {
        let mut change = world.submission(&owner).await;
        change.once = Some(once(7, u8::try_from(n).unwrap(), 1));
        keys.push((owner, world.commit(change).await.head.identity.key));
    }
    for (n, (owner, key)) in keys.into_iter().enumerate() {
        let hit = world.store.once(&owner, [7; 16]).await.unwrap().unwrap();
        assert_eq!((hit.task, hit.body), (key, [u8::try_from(n).unwrap(); 16]));
    }
}

/// Tasks of one owner that name one context are in one context; another owner's are not.
pub async fn a_named_context_is_shared_by_its_owners_tasks_only(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let first = world.begin_in(&alice(), "holiday").await;
    assert_eq!(first.identity.context.0, first.identity.key.0);
    assert_eq!(first.identity.context_id.as_str(), "holiday");
    let world = world.reopen().await;
    let second = world.begin_in(&alice(), "holiday").await;
    assert_eq!(second.identity.context, first.identity.context);
    assert_eq!(states(&second), [TurnState::Waiting]);
    let elsewhere = world.begin_in(&alice(), "Holiday").await;
    assert_ne!(elsewhere.identity.context, first.identity.context);
    for stranger in strangers() {
        let head = world.begin_in(&stranger, "holiday").await;
        assert_ne!(head.identity.context, first.identity.context);
        assert_eq!(states(&head), [TurnState::Ready]);
    }
}

/// A client that names a context which we minted means that context, if it is the client's.
pub async fn a_minted_context_is_found_by_its_id(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let first = world.begin(&alice()).await;
    let name = first.identity.context_id.as_str();
    let second = world.begin_in(&alice(), name).await;
    assert_eq!(second.identity.context, first.identity.context);
    assert_eq!(second.identity.context_id, first.identity.context_id);
    assert_eq!(states(&second), [TurnState::Waiting]);
    let third = world.begin_in(&strangers()[0], name).await;
    assert_ne!(third.identity.context, first.identity.context);
    assert_eq!(states(&third), [TurnState::Ready]);
    // Bob's context of that name is his from now on, also by that name.
    let fourth = world.begin_in(&strangers()[0], name).await;
    assert_eq!(fourth.identity.context, third.identity.context);
    for (owner, count) in [(alice(), 2), (strangers()[0].clone(), 2)] {
        let filter = ListFilter {
            context_id: Some(name.parse().unwrap()),
            ..ListFilter::default()
        };
        let page = world
            .store
            .list(&owner, &filter, None, 10, usize::MAX, false, &mut |_, _| {
                false
            })
            .await;
        assert_eq!(page.unwrap().total, count);
    }
}
