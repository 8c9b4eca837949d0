//! Lists: in order, in pages, counted, filtered, and without what was not asked for.

use std::collections::HashSet;
use std::sync::Arc;

use a2ad_proto::TaskState;

use super::Harness;
use super::sample::{alice, finish, follow_up, scope, write_artifact};
use super::world::{COMPLETED, DAWN, World, states};
use crate::keys::{Attempt, Number, TaskKey};
use crate::store::{ListFilter, ListPlace};
use crate::task::{Fold, Head, Outcome, TurnState, apply};

async fn all(world: &World<'_>, filter: &ListFilter, limit: usize) -> (Vec<TaskKey>, u64) {
    let mut keys = Vec::new();
    let mut after: Option<ListPlace> = None;
    loop {
        let page = world
            .store
            .list(
                &alice(),
                filter,
                after,
                limit,
                usize::MAX,
                false,
                &mut |_, _| false,
            )
            .await
            .unwrap();
        assert!(page.tasks.len() <= limit);
        keys.extend(page.tasks.iter().map(|task| task.place.key));
        if !page.more {
            return (keys, page.total);
        }
        after = Some(page.tasks.last().expect("more comes after some").place);
    }
}

/// Ten tasks of different states and times, some at the same millisecond.
async fn ten(world: &World<'_>) -> Vec<Arc<Head>> {
    let mut heads = Vec::new();
    for n in 0..10 {
        let head = match n % 5 {
            0 => world.begin(&alice()).await,
            1 => world.ended(&alice(), Outcome::Completed(None)).await,
            2 => world.ended(&alice(), Outcome::Failed(None)).await,
            3 => world.ended(&alice(), Outcome::InputRequired(None)).await,
            _ => world.begin_in(&alice(), "shared").await,
        };
        heads.push(head);
        if n % 3 == 0 {
            world.clock.step(10);
        }
    }
    heads
}

fn in_order(heads: &[Arc<Head>]) -> Vec<TaskKey> {
    let mut places: Vec<_> = heads
        .iter()
        .map(|head| (head.status_at.as_millis(), head.identity.key))
        .collect();
    places.sort_unstable_by(|a, b| b.cmp(a));
    places.into_iter().map(|(_, key)| key).collect()
}

/// Newest status first, then the larger key, over all states, in pages of any size.
pub async fn a_list_is_ordered_by_status_then_key(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let heads = ten(&world).await;
    world.begin(&scope("token:bob", "echo")).await;
    for limit in [1, 2, 3, 9, 10, 50] {
        let (keys, total) = all(&world, &ListFilter::default(), limit).await;
        assert_eq!(keys, in_order(&heads), "pages of {limit}");
        assert_eq!(total, 10);
    }
    let page = world
        .store
        .list(
            &alice(),
            &ListFilter::default(),
            None,
            0,
            usize::MAX,
            false,
            &mut |_, _| false,
        )
        .await
        .unwrap();
    assert_eq!((page.tasks.len(), page.more, page.total), (0, true, 10));
    let page = world
        .store
        .list(
            &alice(),
            &ListFilter::default(),
            None,
            10,
            usize::MAX,
            false,
            &mut |_, _| false,
        )
        .await
        .unwrap();
    assert!(!page.more);
    for listed in page.tasks {
        let head = world.head(listed.place.key).await;
        assert_eq!(listed.version, head.version);
        assert_eq!(listed.place.status_at, head.status_at.as_millis());
    }
}

/// A task that moves while somebody pages moves to the front; the others are seen exactly once.
pub async fn pages_of_a_list_stay_in_order_while_tasks_change(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let heads = ten(&world).await;
    let order = in_order(&heads);
    let filter = ListFilter::default();
    let first = world
        .store
        .list(
            &alice(),
            &filter,
            None,
            4,
            usize::MAX,
            false,
            &mut |_, _| false,
        )
        .await
        .unwrap();
    let mut seen: Vec<_> = first.tasks.iter().map(|task| task.place.key).collect();
    let after = first.tasks.last().unwrap().place;

    world.clock.step(1_000);
    let newcomer = world.begin(&alice()).await;
    // Moves one that was seen and one that was not, and only by changing their status.
    let holder = world.store.open_holder().await.unwrap();
    world
        .store
        .claim(holder, vec![("echo".parse().unwrap(), 99)])
        .await
        .unwrap();
    let mut moved = HashSet::new();
    for key in [order[0], order[1], order[8], order[9]] {
        let head = world.head(key).await;
        if states(&head) != [TurnState::Leased] {
            continue;
        }
        let change = world.decide(&head, &[finish(&head, Outcome::InputRequired(None))]);
        world.commit(change).await;
        moved.insert(key);
    }
    assert!(!moved.is_empty());
    let mut place = after;
    loop {
        let page = world
            .store
            .list(
                &alice(),
                &filter,
                Some(place),
                3,
                usize::MAX,
                false,
                &mut |_, _| false,
            )
            .await
            .unwrap();
        seen.extend(page.tasks.iter().map(|task| task.place.key));
        if !page.more {
            break;
        }
        place = page.tasks.last().unwrap().place;
    }
    let unique: HashSet<_> = seen.iter().copied().collect();
    assert_eq!(unique.len(), seen.len(), "no task is seen twice");
    assert!(!unique.contains(&newcomer.identity.key));
    for key in order.iter().filter(|key| !moved.contains(key)) {
        assert!(unique.contains(key), "{key:?} was passed over");
    }
    let (_, total) = all(&world, &filter, 5).await;
    assert_eq!(total, 11);
}

/// Every combination of filters gives exactly the tasks that match, and their number.
pub async fn filters_combine_and_totals_agree(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let mut heads = ten(&world).await;
    // A few moves, so that counters have been counted down as well.
    let holder = world.store.open_holder().await.unwrap();
    world
        .store
        .claim(holder, vec![("echo".parse().unwrap(), 99)])
        .await
        .unwrap();
    for head in &mut heads {
        let now = world.head(head.identity.key).await;
        if now
            .turns
            .first()
            .is_some_and(|turn| turn.attempt > Attempt::NONE)
        {
            world.clock.step(7);
            let change = world.decide(&now, &[finish(&now, Outcome::Rejected(None))]);
            world.commit(change).await;
        }
        *head = world.head(head.identity.key).await;
    }
    let world = world.reopen().await;
    let states = (0..9).map(TaskState::from_number);
    let contexts = [
        None,
        Some("shared".parse().unwrap()),
        Some("unknown".parse().unwrap()),
        Some(heads[0].identity.context_id.clone()),
    ];
    let times = [
        None,
        Some(DAWN),
        Some(DAWN + 10),
        Some(DAWN + 21),
        Some(DAWN + 9_999),
    ];
    for state in [None].into_iter().chain(states) {
        for context_id in &contexts {
            for status_at_least in times {
                let filter = ListFilter {
                    context_id: context_id.clone(),
                    state,
                    status_at_least,
                };
                let matching: Vec<_> = heads
                    .iter()
                    .filter(|head| state.is_none_or(|state| head.state == state))
                    .filter(|head| {
                        let id = &head.identity.context_id;
                        context_id.as_ref().is_none_or(|wanted| wanted == id)
                    })
                    .filter(|head| {
                        status_at_least.is_none_or(|at| head.status_at.as_millis() >= at)
                    })
                    .cloned()
                    .collect();
                let (keys, total) = all(&world, &filter, 2).await;
                assert_eq!(keys, in_order(&matching), "{filter:?}");
                assert_eq!(total, matching.len() as u64, "{filter:?}");
            }
        }
    }
}

/// Lists carry snapshots; their artifacts come along only on request.
pub async fn artifacts_are_listed_only_when_asked_for(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let holder = world.store.open_holder().await.unwrap();
    let head = world.begin_leased(&alice(), holder).await;
    let none = world
        .store
        .list(
            &alice(),
            &ListFilter::default(),
            None,
            9,
            usize::MAX,
            true,
            &mut |_, _| false,
        )
        .await
        .unwrap();
    assert_eq!(none.tasks[0].snapshot, None);

    let text = "x".repeat(100_000);
    let mut change = world.decide(
        &head,
        &[
            write_artifact(Number(1), Attempt::FIRST, "big", &text),
            follow_up("thanks"),
            finish(&head, Outcome::Completed(None)),
        ],
    );
    let mut fold: Fold = world.fold(head.identity.key).await;
    for entry in &change.entries {
        apply(&mut fold, entry.record().unwrap());
    }
    change.snapshot = Some(fold.snapshot());
    world.commit(change).await;
    for (asked, artifacts) in [(true, fold.snapshot().artifacts), (false, "[]".into())] {
        let page = world
            .store
            .list(
                &alice(),
                &ListFilter::default(),
                None,
                9,
                usize::MAX,
                asked,
                &mut |_, _| false,
            )
            .await
            .unwrap();
        let snapshot = page.tasks[0].snapshot.clone().unwrap();
        assert_eq!(snapshot.artifacts, artifacts);
        assert_eq!(snapshot.body, fold.snapshot().body);
        assert_eq!(snapshot.version, fold.version);
        assert_eq!(page.tasks[0].version, fold.version);
    }
    assert_ne!(world.head(head.identity.key).await.state, COMPLETED);
}

/// Who has tasks already is asked about each of the page, in order, and spared those.
pub async fn what_the_caller_has_is_not_brought(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let heads = ten(&world).await;
    let mut asked = Vec::new();
    let mut known = |task: TaskKey, version| {
        asked.push((task, version));
        task.0 % 2 == 0
    };
    let filter = ListFilter::default();
    let page = world
        .store
        .list(&alice(), &filter, None, 9, usize::MAX, false, &mut known)
        .await
        .unwrap();
    let tasks = page.tasks.iter();
    let listed: Vec<_> = tasks.map(|task| (task.place.key, task.version)).collect();
    assert_eq!(asked, listed);
    let keys: Vec<_> = listed.iter().map(|(key, _)| *key).collect();
    assert_eq!(keys, in_order(&heads)[..9]);
    for task in page.tasks {
        let bare = task.snapshot.is_none() && task.entries.is_empty();
        assert_eq!(bare, task.place.key.0 % 2 == 0, "{task:?}");
    }
}

/// Who renders a list need not ask for each task again, unless there is much to read.
pub async fn a_listed_task_comes_with_a_new_snapshot_or_with_the_entries_after_it(
    harness: &dyn Harness,
) {
    let world = World::open(harness).await;
    let key = world.begin(&alice()).await.identity.key;
    let long = "long".repeat(5_000);
    for (text, freeze) in [("short", false), (&long, true), ("after that", false)] {
        let head = world.head(key).await;
        let mut change = world.decide(&head, &[follow_up(text)]);
        if freeze {
            let mut fold = world.fold(key).await;
            apply(&mut fold, change.entries[0].record().unwrap());
            change.snapshot = Some(fold.snapshot());
        }
        world.commit(change).await;
        let page = world
            .store
            .list(
                &alice(),
                &ListFilter::default(),
                None,
                9,
                usize::MAX,
                true,
                &mut |_, _| false,
            )
            .await
            .unwrap();
        let listed = &page.tasks[0];
        let mut fold = match &listed.snapshot {
            Some(frozen) => Fold::thaw(frozen).unwrap(),
            None => Fold::default(),
        };
        for entry in &listed.entries {
            assert_eq!(entry.number, fold.version.next());
            apply(&mut fold, entry.record().unwrap());
        }
        assert_eq!(fold, world.fold(key).await);
    }
    // Much to read and no snapshot: neither comes.
    let large = world.begin(&alice()).await;
    let change = world.decide(&large, &[follow_up(&"x".repeat(100_000))]);
    world.commit(change).await;
    let page = world
        .store
        .list(
            &alice(),
            &ListFilter::default(),
            None,
            1,
            usize::MAX,
            true,
            &mut |_, _| false,
        )
        .await
        .unwrap();
    assert_eq!(page.tasks[0].place.key, large.identity.key);
    assert_eq!(page.tasks[0].entries, []);
}

/// A page ends before its snapshots and entries come to more than was asked for, and the next one goes on from there.
pub async fn a_page_ends_at_a_bound_of_bytes(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let holder = world.store.open_holder().await.unwrap();
    let mut keys = Vec::new();
    for kilobytes in [10, 10, 90, 10, 10, 10] {
        let head = world.begin_leased(&alice(), holder).await;
        let text = "x".repeat(kilobytes << 10);
        let mut change = world.decide(
            &head,
            &[
                write_artifact(Number(1), Attempt::FIRST, "a", &text),
                finish(&head, Outcome::Completed(None)),
            ],
        );
        let mut fold: Fold = world.fold(head.identity.key).await;
        for entry in &change.entries {
            apply(&mut fold, entry.record().unwrap());
        }
        change.snapshot = Some(fold.snapshot());
        world.commit(change).await;
        world.clock.step(1);
        keys.insert(0, head.identity.key);
    }
    // Its few entries count, but they are small.
    keys.insert(0, world.begin(&alice()).await.identity.key);
    for (artifacts, bytes_max, pages) in [
        (true, usize::MAX, &[7][..]),
        (true, 30 << 10, &[3, 1, 1, 2]),
        (true, 0, &[1; 7]),
        (false, 30 << 10, &[7]),
    ] {
        let mut seen = Vec::new();
        let mut lengths = Vec::new();
        let mut after = None;
        loop {
            let filter = ListFilter::default();
            let page = world
                .store
                .list(
                    &alice(),
                    &filter,
                    after,
                    100,
                    bytes_max,
                    artifacts,
                    &mut |_, _| false,
                )
                .await
                .unwrap();
            assert_eq!(page.total, 7);
            lengths.push(page.tasks.len());
            seen.extend(page.tasks.iter().map(|task| task.place.key));
            after = page.tasks.last().map(|task| task.place);
            if !page.more {
                break;
            }
        }
        assert_eq!(seen, keys, "{bytes_max} bytes");
        assert_eq!(lengths, pages, "{bytes_max} bytes");
    }
}
