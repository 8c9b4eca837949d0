//! Journals: what is acknowledged stays, whole, numbered, and in order.

use std::collections::HashSet;

use futures_util::future::join_all;

use super::Harness;
use super::sample::{alice, finish, follow_up, say, scope, write_artifact};
use super::world::{COMPLETED, World, assert_journal, states};
use crate::keys::{Attempt, Number};
use crate::store::ChangeError;
use crate::task::{Outcome, TurnState};

/// An answered commit survives a restart.
pub async fn what_is_acknowledged_is_there_after_reopening(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let one = world.begin(&alice()).await;
    let two = world.ended(&alice(), Outcome::Completed(None)).await;
    let entries = world.journal(two.identity.key, 1 << 20).await;

    let world = world.reopen().await;
    for head in [&one, &two] {
        let found = world.store.find(&alice(), &head.identity.id).await.unwrap();
        assert_eq!(found, Some(head.identity.key));
        assert_eq!(*world.head(head.identity.key).await, **head);
    }
    assert_eq!(world.journal(two.identity.key, 1 << 20).await, entries);
    assert_eq!(
        world.fold(two.identity.key).await.task.status.state,
        COMPLETED
    );
}

/// The answer to a commit and a later read tell the same.
pub async fn a_head_read_back_is_the_head_that_was_answered(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let holder = world.store.open_holder().await.unwrap();
    let head = world.begin_leased(&alice(), holder).await;
    assert_eq!(*world.head(head.identity.key).await, *head);
    world.clock.step(5);
    let (turn, attempt) = (head.turns[0].number, head.turns[0].attempt);
    let applied = world
        .commit(world.decide(
            &head,
            &[
                write_artifact(turn, attempt, "bericht-ü", "text"),
                write_artifact(turn, attempt, "b", "text"),
                say(turn, attempt, "half way"),
                follow_up("and this"),
            ],
        ))
        .await;
    assert_eq!(applied.head.artifacts.len(), 2);
    assert_eq!(*world.head(head.identity.key).await, *applied.head);
    let applied = world
        .commit(world.decide(
            &applied.head,
            &[crate::task::Command::Cancel { metadata: None }],
        ))
        .await;
    assert!(applied.head.cancel_requested);
    assert_eq!(*world.head(head.identity.key).await, *applied.head);
}

/// Compare-and-set: a decision made on an older version is not applied.
pub async fn a_change_on_an_old_version_is_a_conflict(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let holder = world.store.open_holder().await.unwrap();
    let head = world.begin_leased(&alice(), holder).await;
    let (turn, attempt) = (head.turns[0].number, head.turns[0].attempt);
    // One that touches no turn, so that nothing but the version can tell; and one that opens one.
    let stale = [
        world.decide(&head, &[say(turn, attempt, "too late")]),
        world.decide(&head, &[follow_up("too late")]),
    ];
    world
        .commit(world.decide(&head, &[say(turn, attempt, "in time")]))
        .await;
    let before = world.journal(head.identity.key, 1 << 20).await;
    for stale in stale {
        assert!(matches!(world.refusal(stale).await, ChangeError::Conflict));
    }
    assert_eq!(world.journal(head.identity.key, 1 << 20).await, before);

    let again = world.submission(&alice()).await;
    world.commit(again.clone()).await;
    assert!(
        matches!(world.refusal(again).await, ChangeError::Conflict),
        "a task is created once"
    );
    let mut unknown = world.decide(&head, &[follow_up("to nobody")]);
    let mut identity = (*unknown.head.identity).clone();
    identity.key = crate::keys::TaskKey(1 << 40);
    unknown.head.identity = identity.into();
    assert!(matches!(
        world.refusal(unknown).await,
        ChangeError::Conflict
    ));
}

/// The same race with both on their way at once.
pub async fn of_two_changes_on_one_version_exactly_one_wins(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let holder = world.store.open_holder().await.unwrap();
    let head = world.begin_leased(&alice(), holder).await;
    let (turn, attempt) = (head.turns[0].number, head.turns[0].attempt);
    let racers = (0..8).map(|n| {
        let change = world.decide(&head, &[say(turn, attempt, &n.to_string())]);
        world.store.commit(change)
    });
    let results = join_all(racers).await;
    let won = results.iter().filter(|result| result.is_ok()).count();
    assert_eq!(won, 1);
    for lost in results.into_iter().filter_map(Result::err) {
        assert!(matches!(lost, ChangeError::Conflict), "{lost:?}");
    }
    assert_eq!(world.head(head.identity.key).await.version, Number(2));
}

/// Conflicts are reported per change, never per batch.
pub async fn a_refused_change_leaves_its_neighbours_alone(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let holder = world.store.open_holder().await.unwrap();
    let leased = world.begin_leased(&alice(), holder).await;
    let stale = world.begin(&alice()).await;
    let stale_change = world.decide(&stale, &[follow_up("stale")]);
    world
        .commit(world.decide(&stale, &[follow_up("newer")]))
        .await;
    let mut repeated = world.submission(&alice()).await;
    repeated.once = Some(super::sample::once(1, 1, 1));
    world.commit(repeated).await;
    let mut again = world.submission(&alice()).await;
    again.once = Some(super::sample::once(1, 1, 1));
    let mut full = world.submission_in(&alice(), "narrow").await;
    full.context_turns_max = 0;
    let mut fenced = world.decide(&leased, &[finish(&leased, Outcome::Completed(None))]);
    fenced.fence = Some((Number(1), Attempt(9)));
    let good = [
        world.submission(&alice()).await,
        world.submission(&alice()).await,
        world.decide(&leased, &[follow_up("more")]),
    ];

    let [first, second, third] = good;
    let results = join_all(
        [
            first.clone(),
            stale_change,
            again,
            second.clone(),
            full,
            fenced,
            third,
        ]
        .map(|change| world.store.commit(change)),
    )
    .await;
    let mut results = results.into_iter();
    assert!(results.next().unwrap().is_ok());
    assert!(matches!(
        results.next().unwrap(),
        Err(ChangeError::Conflict)
    ));
    assert!(matches!(
        results.next().unwrap(),
        Err(ChangeError::Repeated(_))
    ));
    assert!(results.next().unwrap().is_ok());
    assert!(matches!(
        results.next().unwrap(),
        Err(ChangeError::ContextFull)
    ));
    assert!(matches!(results.next().unwrap(), Err(ChangeError::Fenced)));
    assert!(results.next().unwrap().is_ok());
    for change in [first, second] {
        assert_eq!(
            world.journal(change.head.identity.key, 1 << 20).await,
            change.entries
        );
    }
}

/// The second of two changes to one task sees what the first one made, however they are grouped.
pub async fn changes_of_one_task_in_a_row_build_on_each_other(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let holder = world.store.open_holder().await.unwrap();
    let mut first = world.submission(&alice()).await;
    first.lease_to = Some(holder);
    // As the store will have it, so that the next decision can be made before the first commit.
    let mut head = first.head.clone();
    head.turns[0].state = TurnState::Leased;
    head.turns[0].attempt = Attempt::FIRST;
    let second = world.decide(&head, &[say(Number(1), Attempt::FIRST, "on it")]);
    let mut head = second.head.clone();
    head.turns[0].state = TurnState::Leased;
    let third = world.decide(&head, &[finish(&head, Outcome::Completed(None))]);

    let key = first.head.identity.key;
    let all: Vec<_> = [&first, &second, &third]
        .iter()
        .flat_map(|change| change.entries.clone())
        .collect();
    let results = join_all([first, second, third].map(|change| world.store.commit(change))).await;
    for result in &results {
        assert!(result.is_ok(), "{result:?}");
    }
    assert_eq!(world.journal(key, 1 << 20).await, all);
    let head = world.head(key).await;
    assert_eq!((head.state, head.version), (COMPLETED, Number(3)));
    let page = world
        .store
        .list(
            &alice(),
            &Default::default(),
            None,
            10,
            usize::MAX,
            false,
            &mut |_, _| false,
        )
        .await
        .unwrap();
    assert_eq!((page.tasks.len(), page.total), (1, 1));
}

/// 1, 2, 3 …, whatever was refused in between, after a restart too.
pub async fn numbers_have_no_gap(harness: &dyn Harness) {
    let mut world = World::open(harness).await;
    let key = world.begin(&alice()).await.identity.key;
    for round in 0..12 {
        let head = world.head(key).await;
        let change = world.decide(&head, &[follow_up("a"), follow_up("b")]);
        if round % 3 == 0 {
            let loser = world.decide(&head, &[follow_up("x")]);
            world.commit(change).await;
            world.refusal(loser).await;
        } else {
            world.commit(change).await;
        }
        if round % 5 == 4 {
            world = world.reopen().await;
        }
    }
    let head = world.head(key).await;
    assert_eq!(head.version, Number(25));
    assert_journal(&world.journal(key, 1).await, head.version);
}

/// When a caller has its answer, the engine has heard; and it hears entries in their order.
pub async fn the_engine_hears_of_commits_first_and_in_order(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let head = world.begin(&alice()).await;
    let mut version = head.version;
    for n in 0..5 {
        let head = world.head(head.identity.key).await;
        let change = world.decide(&head, &[follow_up(&n.to_string())]);
        let entries = change.entries.clone();
        let applied = world.commit(change).await;
        let heard = world.wake.heard();
        let last = heard.last().expect("it was told before the answer");
        assert_eq!(last.head, applied.head);
        assert_eq!(last.entries, entries);
        assert_eq!(last.ready, applied.ready);
    }
    for told in world.wake.heard().into_iter().skip(1) {
        for entry in told.entries {
            version = version.next();
            assert_eq!(entry.number, version);
        }
    }
    let stale = world.decide(&head, &[follow_up("no")]);
    let before = world.wake.heard().len();
    world.refusal(stale).await;
    assert_eq!(
        world.wake.heard().len(),
        before,
        "nothing is told of a refused change"
    );
}

/// Reading in pages of any size gives the journal, from any place.
pub async fn pages_of_a_journal_join_without_a_seam(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let key = world.begin(&alice()).await.identity.key;
    for round in 1..20_usize {
        let head = world.head(key).await;
        let commands: Vec<_> = (0..round % 4 + 1)
            .map(|n| follow_up(&"x".repeat(n * 37)))
            .collect();
        world.commit(world.decide(&head, &commands)).await;
    }
    let whole = world.journal(key, usize::MAX).await;
    assert_journal(&whole, world.head(key).await.version);
    for bytes_max in [0, 1, 150, 500, 4_096] {
        assert_eq!(world.journal(key, bytes_max).await, whole);
    }
    for after in 0..=whole.len() {
        let page = world
            .store
            .read(key, Number(after as u64), 700)
            .await
            .unwrap();
        assert_eq!(page, whole[after..after + page.len()]);
        assert_eq!(page.is_empty(), after == whole.len());
        let size: usize = page.iter().map(|entry| entry.bytes.len()).sum();
        assert!(page.len() <= 1 || size <= 700, "pages keep to their size");
    }
    let beyond = world.store.read(key, Number(1_000), 700).await.unwrap();
    assert!(beyond.is_empty());
}

/// Entries of a quarter megabyte and of several come back byte for byte.
pub async fn large_entries_come_back_whole(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let holder = world.store.open_holder().await.unwrap();
    let head = world.begin_leased(&alice(), holder).await;
    let key = head.identity.key;
    let mut written = world.journal(key, usize::MAX).await;
    for size in [262_000, 262_144, 300_000, 1 << 20, 5 << 20] {
        let head = world.head(key).await;
        let text: String = (0..size)
            .map(|n| char::from(b'a' + (n % 23) as u8))
            .collect();
        let change = world.decide(
            &head,
            &[
                say(Number(1), Attempt::FIRST, "small"),
                say(Number(1), Attempt::FIRST, &text),
                say(Number(1), Attempt::FIRST, "small again"),
            ],
        );
        written.extend(change.entries.clone());
        world.commit(change).await;
    }
    let world = world.reopen().await;
    assert_eq!(world.journal(key, 100).await, written);
    assert_eq!(world.journal(key, usize::MAX).await, written);
    let from_the_middle = world.store.read(key, Number(12), 10).await.unwrap();
    assert_eq!(from_the_middle, written[12..13]);
}

/// A task has one snapshot, and it is that of the highest version. (A short journal may have none.)
pub async fn the_newest_snapshot_wins(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let head = world.begin(&alice()).await;
    let key = head.identity.key;
    assert_eq!(world.store.snapshot(key).await.unwrap(), None);
    let early = world.fold(key).await.snapshot();
    let mut change = world.decide(&head, &[follow_up(&"more".repeat(5_000))]);
    let mut fold = world.fold(key).await;
    crate::task::apply(&mut fold, change.entries[0].record().unwrap());
    change.snapshot = Some(fold.snapshot());
    let head = world.commit(change).await.head;
    assert_eq!(
        world.store.snapshot(key).await.unwrap(),
        Some(fold.snapshot())
    );
    // A fold that was made from an older page arrives late.
    let mut change = world.decide(&head, &[follow_up("yet more")]);
    change.snapshot = Some(early);
    world.commit(change).await;
    let world = world.reopen().await;
    assert_eq!(
        world.store.snapshot(key).await.unwrap(),
        Some(fold.snapshot())
    );
}

/// One question brings all that it takes to fold a task, whether it has a snapshot or not.
pub async fn a_task_is_loaded_with_all_that_it_takes_to_fold_it(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let head = world.begin(&alice()).await;
    let identity = &head.identity;
    for text in [
        "short".to_owned(),
        "long".repeat(5_000),
        "after that".to_owned(),
    ] {
        let head = world.head(identity.key).await;
        let mut change = world.decide(&head, &[follow_up(&text)]);
        if text.len() > 100 {
            let mut fold = world.fold(identity.key).await;
            crate::task::apply(&mut fold, change.entries[0].record().unwrap());
            change.snapshot = Some(fold.snapshot());
        }
        world.commit(change).await;
        for bytes_max in [0, 1 << 20] {
            let stored = world.store.load(&alice(), &identity.id, bytes_max).await;
            let stored = stored.unwrap().expect("it is there");
            assert_eq!(*stored.head, *world.head(identity.key).await);
            let snapshot = world.store.snapshot(identity.key).await.unwrap();
            assert_eq!(stored.snapshot, snapshot);
            let after = snapshot.map_or(Number::ZERO, |frozen| frozen.version);
            let rest = world.store.read(identity.key, after, bytes_max).await;
            assert_eq!(stored.entries, rest.unwrap());
        }
    }
    let stored = world.store.load(&alice(), &identity.id, 1 << 20).await;
    let stored = stored.unwrap().expect("it is there");
    assert_eq!(stored.entries.len(), 1, "the snapshot saves reading");
    for stranger in [scope("token:bob", "echo"), scope("token:alice", "other")] {
        world.begin(&stranger).await;
        let found = world.store.load(&stranger, &identity.id, 9).await.unwrap();
        assert!(found.is_none());
    }
    let forged = world.store.public_ids().task_id(identity.key, 99);
    let found = world.store.load(&alice(), &forged, 9).await.unwrap();
    assert!(found.is_none());
}

/// Many callers at once: every answer is true, none is missing.
pub async fn many_committers_at_once_lose_nothing(harness: &dyn Harness) {
    let world = World::open(harness).await;
    let agents: Vec<_> = (0..4)
        .map(|n| scope("token:alice", &format!("a{n}")))
        .collect();
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..40 {
        let mut changes = Vec::new();
        for _ in 0..10 {
            changes.push(world.submission(&agents[n % 4]).await);
        }
        let store = world.store.clone();
        tasks.spawn(async move {
            let mut heads = Vec::new();
            for change in changes {
                heads.push(store.commit(change).await.expect("committed").head);
            }
            heads
        });
    }
    let heads: Vec<_> = tasks.join_all().await.into_iter().flatten().collect();
    let keys: HashSet<_> = heads.iter().map(|head| head.identity.key).collect();
    assert_eq!(keys.len(), 400);
    assert_eq!(world.wake.heard().len(), 400);
    let world = world.reopen().await;
    for head in heads {
        assert_eq!(*world.head(head.identity.key).await, *head);
        assert_eq!(states(&head), [TurnState::Ready]);
    }
    for agent in &agents {
        let page = world
            .store
            .list(
                agent,
                &Default::default(),
                None,
                1_000,
                usize::MAX,
                false,
                &mut |_, _| false,
            )
            .await
            .unwrap();
        assert_eq!((page.tasks.len(), page.total), (100, 100));
    }
}
