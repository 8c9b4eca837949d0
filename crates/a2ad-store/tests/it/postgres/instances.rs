//! Several instances on one database.

use std::collections::HashSet;
use std::sync::Arc;

use a2ad_core::clock::{Clock as _, SystemClock};
use a2ad_core::contract::sample::{alice, change, follow_up, once};
use a2ad_core::keys::{HolderId, Number};
use a2ad_core::store::{ChangeError, ListFilter, Store as _, StoreError};
use a2ad_core::task::{Command, TurnState};
use a2ad_pgkit::Cluster;
use futures_util::future::join_all;
use tokio::task::JoinSet;

use super::rig::{Instance, end, eventually};

async fn two() -> [Instance; 2] {
    let url = Cluster::shared().create();
    [Instance::open(&url).await, Instance::open(&url).await]
}

async fn holder(instance: &Instance) -> HolderId {
    instance.store.open_holder().await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_turn_is_claimed_twice() {
    let instances = two().await;
    for _ in 0..60 {
        instances[0].begin().await;
    }
    let mut claimers = JoinSet::new();
    for instance in instances.iter().cycle().take(6).cloned() {
        claimers.spawn(async move {
            let holder = holder(&instance).await;
            let mut mine = Vec::new();
            for _ in 0..30 {
                let wanted = vec![(alice().agent, 3)];
                let claims = instance.store.claim(holder, wanted).await.unwrap();
                mine.extend(claims.turns.iter().map(|claimed| claimed.turn));
            }
            mine
        });
    }
    let claimed: Vec<_> = claimers.join_all().await.into_iter().flatten().collect();
    let different: HashSet<_> = claimed.iter().collect();
    assert_eq!((claimed.len(), different.len()), (60, 60));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_shared_context_one_works_and_nothing_is_stuck() {
    let instances = two().await;
    let mut workers = JoinSet::new();
    for (n, instance) in instances.iter().cycle().take(4).cloned().enumerate() {
        workers.spawn(async move {
            let holder = holder(&instance).await;
            for _ in 0..25 {
                let mut change = instance.submission(Some("talk")).await;
                change.lease_to = (n % 2 == 0).then_some(holder);
                let head = instance.store.commit(change).await.unwrap().head;
                if head.turns[0].state == TurnState::Leased {
                    instance.store.commit(end(&head)).await.unwrap();
                }
                let wanted = vec![(alice().agent, 9)];
                let claims = instance.store.claim(holder, wanted).await.unwrap();
                assert!(claims.turns.len() <= 1, "one works at a time");
                for claimed in claims.turns {
                    let head = instance.store.head(claimed.turn.task).await.unwrap();
                    instance.store.commit(end(&head.unwrap())).await.unwrap();
                }
            }
        });
    }
    workers.join_all().await;
    // What still waits is worked off, one after the other, in the order in which it came.
    let holder = holder(&instances[1]).await;
    let mut keys = Vec::new();
    loop {
        let wanted = vec![(alice().agent, 9)];
        let claims = instances[1].store.claim(holder, wanted).await.unwrap();
        let Some(claimed) = claims.turns.first() else {
            break;
        };
        assert_eq!(claims.turns.len(), 1);
        let head = instances[1].store.head(claimed.turn.task).await.unwrap();
        instances[1]
            .store
            .commit(end(&head.unwrap()))
            .await
            .unwrap();
        keys.push(claimed.turn.task);
    }
    assert_eq!(instances[0].store.stats().await.unwrap().turns, [0, 0, 0]);
    let filter = ListFilter::default();
    let page = instances[0]
        .store
        .list(
            &alice(),
            &filter,
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_that_meet_in_a_context_do_not_miss_each_other() {
    let instances = two().await;
    let holder = holder(&instances[0]).await;
    for round in 0..50 {
        let context = format!("c{round}");
        // Both open it: one is first, the other waits.
        let mut first = Vec::new();
        for instance in &instances {
            let mut change = instance.submission(Some(&context)).await;
            change.lease_to = Some(holder);
            first.push(instance.store.commit(change));
        }
        let heads = join_all(first).await.into_iter().map(|it| it.unwrap().head);
        let (working, waiting): (Vec<_>, Vec<_>) =
            heads.partition(|head| head.turns[0].state == TurnState::Leased);
        assert_eq!((working.len(), waiting.len()), (1, 1));
        assert_eq!(waiting[0].turns[0].state, TurnState::Waiting);
        // One ends while another comes: somebody goes ahead, and nobody is left waiting alone.
        let third = instances[1].submission(Some(&context)).await;
        let (ended, third) = tokio::join!(
            instances[0].store.commit(end(&working[0])),
            instances[1].store.commit(third),
        );
        ended.unwrap();
        let second = instances[0].store.head(waiting[0].identity.key).await;
        let second = second.unwrap().unwrap();
        assert_eq!(second.turns[0].state, TurnState::Ready);
        assert_eq!(third.unwrap().head.turns[0].state, TurnState::Waiting);
        // The last one ends at the moment in which another one comes.
        let wanted = vec![(alice().agent, 1)];
        for _ in 0..2 {
            let claims = instances[0].store.claim(holder, wanted.clone()).await;
            let task = claims.unwrap().turns[0].turn.task;
            let head = instances[0].store.head(task).await.unwrap().unwrap();
            let fourth = instances[1].submission(Some(&context)).await;
            let (ended, came) = tokio::join!(
                instances[0].store.commit(end(&head)),
                instances[1].store.commit(fourth),
            );
            ended.unwrap();
            came.unwrap();
        }
        for left in 0..3 {
            let claims = instances[0].store.claim(holder, wanted.clone()).await;
            let Some(claimed) = claims.unwrap().turns.pop() else {
                assert_eq!(left, 2, "somebody waits for nobody");
                break;
            };
            let head = instances[0].store.head(claimed.turn.task).await;
            instances[0]
                .store
                .commit(end(&head.unwrap().unwrap()))
                .await
                .unwrap();
        }
    }
    assert_eq!(instances[0].store.stats().await.unwrap().turns, [0, 0, 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_carried_out_once_wherever_it_comes_in() {
    let instances = two().await;
    for round in 0..20 {
        let mut racers = Vec::new();
        for instance in instances.iter().cycle().take(8) {
            let mut change = instance.submission(None).await;
            change.once = Some(once(round, round, 1));
            racers.push(instance.store.commit(change));
        }
        let results = join_all(racers).await;
        let winners: Vec<_> = results.iter().flatten().collect();
        assert_eq!(winners.len(), 1);
        let key = winners[0].head.identity.key;
        for lost in results.iter().filter_map(|result| result.as_ref().err()) {
            assert!(
                matches!(lost, ChangeError::Repeated(hit) if hit.task == key),
                "{lost:?}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_instances_that_change_a_task_one_wins() {
    let instances = two().await;
    let mut head = instances[0].begin().await;
    for _ in 0..20 {
        let change = change(&head, &[follow_up("and then?")], SystemClock.now());
        let racers = instances.iter().map(|it| it.store.commit(change.clone()));
        let results = join_all(racers).await;
        let won: Vec<_> = results.iter().flatten().collect();
        assert_eq!(won.len(), 1, "{results:?}");
        head = Arc::clone(&won[0].head);
        let lost = results.iter().find_map(|result| result.as_ref().err());
        assert!(matches!(lost, Some(ChangeError::Conflict)), "{lost:?}");
    }
    let journal = instances[1]
        .store
        .read(head.identity.key, Number::ZERO, usize::MAX);
    assert_eq!(journal.await.unwrap().len() as u64, head.version.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agents_queue_has_one_bound_for_all() {
    let instances = two().await;
    let mut submissions = Vec::new();
    for instance in instances.iter().cycle().take(40) {
        let mut change = instance.submission(None).await;
        change.agent_turns_max = 15;
        submissions.push(instance.store.commit(change));
    }
    let results = join_all(submissions).await;
    let taken = results.iter().filter(|result| result.is_ok()).count();
    assert_eq!(taken, 15);
    for refused in results.into_iter().filter_map(Result::err) {
        assert!(matches!(refused, ChangeError::AgentFull), "{refused:?}");
    }
    let stats = instances[0].store.stats().await.unwrap();
    assert_eq!(stats.turns, [0, 15, 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_commits_the_other_hears_of() {
    let [one, other] = two().await;
    let head = one.begin().await;
    let news = (head.identity.key, head.version);
    eventually("the change is told", || {
        other.ears.changed.lock().unwrap().contains(&news)
    })
    .await;
    eventually("the agent is told", || {
        other.ears.ready.lock().unwrap().contains(&alice().agent)
    })
    .await;
    assert_eq!(*one.ears.changed.lock().unwrap(), [], "not to oneself");
    assert_eq!(*one.ears.committed.lock().unwrap(), [news]);
    assert!(other.ears.committed.lock().unwrap().is_empty());
}

#[tokio::test]
async fn what_nobody_told_is_found_by_looking() {
    let cluster = Cluster::shared();
    let database = cluster.create_database();
    let instance = Instance::open(&cluster.url(&database)).await;
    let head = instance.begin().await;
    let key = head.identity.key;
    *instance.ears.watched.lock().unwrap() = vec![(key, head.version)];
    // Without a notification, as if it were lost.
    let silently = format!("UPDATE a2ad.tasks SET version = 2 WHERE key = {}", key.0);
    cluster.sql(&database, &silently);
    eventually("the change is found", || {
        instance
            .ears
            .changed
            .lock()
            .unwrap()
            .contains(&(key, Number(2)))
    })
    .await;
    assert_eq!(instance.store.version(key).await.unwrap(), Some(Number(2)));
    eventually("its ready turn is found", || {
        instance.ears.ready.lock().unwrap().contains(&alice().agent)
    })
    .await;
    assert!(!instance.store.exclusive());
}

#[tokio::test]
async fn a_closed_store_refuses_everything() {
    let [one, other] = two().await;
    one.store.close().await;
    let change = other.submission(None).await;
    assert!(matches!(
        one.store.commit(change).await.unwrap_err(),
        ChangeError::Store(StoreError::Stopped(_))
    ));
    one.store.check().await.unwrap_err();
    other.store.check().await.unwrap();
}

/// F-07: whoever commits, a context keeps as many tasks as it may, and no fewer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f_07_instances_do_not_delete_more_than_is_too_much() {
    let instances = two().await;
    let mut workers = JoinSet::new();
    for instance in instances.iter().cycle().take(4).cloned() {
        workers.spawn(async move {
            for _ in 0..25 {
                // Submitted and canceled at once, so that nobody has to wait for a turn.
                let mut begin = instance.submission(Some("talk")).await;
                begin.context_tasks_max = Some(5);
                let head = instance.store.commit(begin).await.unwrap().head;
                let key = head.identity.key;
                loop {
                    let head = instance.store.head(key).await.unwrap();
                    let head = head.expect("what has not ended is not deleted");
                    let cancel = Command::Cancel { metadata: None };
                    let mut over = change(&head, &[cancel], SystemClock.now());
                    over.context_tasks_max = Some(5);
                    match instance.store.commit(over).await {
                        Ok(_) => break,
                        Err(ChangeError::Conflict) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            }
        });
    }
    workers.join_all().await;
    let filter = ListFilter {
        context_id: Some("talk".parse().unwrap()),
        ..ListFilter::default()
    };
    for instance in &instances {
        let page = instance
            .store
            .list(
                &alice(),
                &filter,
                None,
                99,
                usize::MAX,
                false,
                &mut |_, _| false,
            )
            .await
            .unwrap();
        assert_eq!((page.tasks.len(), page.total), (5, 5));
        let all = ListFilter::default();
        let page = instance
            .store
            .list(&alice(), &all, None, 99, usize::MAX, false, &mut |_, _| {
                false
            })
            .await
            .unwrap();
        assert_eq!(page.total, 5, "the counters agree");
    }
}
