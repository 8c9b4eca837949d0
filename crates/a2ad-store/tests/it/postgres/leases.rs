//! Leases that run out, and those who do not know it yet.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use a2ad_core::clock::{Clock as _, SystemClock};
use a2ad_core::contract::sample::{alice, change, said, say};
use a2ad_core::keys::Attempt;
use a2ad_core::store::{ChangeError, Store as _};
use a2ad_core::task::{Broken, Command, Head, RetryRule, TurnState};
use a2ad_pgkit::Cluster;
use a2ad_pgkit::proxy::Proxy;
use a2ad_proto::Role;
use a2ad_store::PostgresOptions;

use super::rig::{Instance, end, eventually, eventually_asked};

const LEASE: Duration = Duration::from_millis(600);

fn short(url: &str) -> PostgresOptions {
    PostgresOptions {
        lease: LEASE,
        ..PostgresOptions::at(url)
    }
}

fn lost(head: &Head) -> Command {
    Command::Break {
        turn: head.turns[0].number,
        attempt: head.turns[0].attempt,
        reason: Broken::Lost,
        retry: Some(RetryRule {
            tries_max: 5,
            due: SystemClock.now(),
        }),
        failure: said(Role::Agent, "it was lost"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_is_kept_for_as_long_as_its_instance_lives() {
    let url = Cluster::shared().create();
    let one = Instance::open_with(short(&url)).await;
    let other = Instance::open_with(short(&url)).await;
    let holder = one.store.open_holder().await.unwrap();
    let head = one.begin_leased(holder).await;
    tokio::time::sleep(LEASE * 3).await;
    assert_eq!(other.store.orphans(9).await.unwrap(), []);
    assert!(one.ears.lost.lock().unwrap().is_empty());
    one.store.commit(end(&head)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_turns_of_an_instance_that_is_cut_off_go_to_another() {
    let cluster = Cluster::shared();
    let database = cluster.create_database();
    let proxy = Proxy::start(cluster.port()).await;
    let cut_off = Instance::open_with(short(&proxy.url(&database))).await;
    let other = Instance::open_with(short(&cluster.url(&database))).await;
    let third = Instance::open_with(short(&cluster.url(&database))).await;
    let holder = cut_off.store.open_holder().await.unwrap();
    let head = cut_off.begin_leased(holder).await;
    proxy.close();
    eventually("the instance notices it", || {
        cut_off.ears.lost.lock().unwrap().contains(&holder)
    })
    .await;
    eventually_asked("the turn is found", || async {
        !other.store.orphans(9).await.unwrap().is_empty()
    })
    .await;
    assert_eq!(third.store.orphans(9).await.unwrap(), [], "one rescues it");
    let rescue = change(&head, &[lost(&head)], SystemClock.now());
    let head = other.store.commit(rescue).await.unwrap().head;
    assert_eq!(head.turns[0].state, TurnState::Ready);
    let new_holder = other.store.open_holder().await.unwrap();
    let wanted = vec![(alice().agent, 1)];
    let claims = other.store.claim(new_holder, wanted.clone()).await.unwrap();
    assert_eq!(claims.turns[0].attempt, Attempt(2));

    // Back again, it believes that nothing has happened, and has even read the newest version.
    proxy.reopen();
    eventually_asked("the instance is back", || async {
        cut_off.store.check().await.is_ok()
    })
    .await;
    let mut believed = (*head).clone();
    believed.turns[0].state = TurnState::Leased;
    believed.turns[0].attempt = Attempt::FIRST;
    let number = believed.turns[0].number;
    let word = say(number, Attempt::FIRST, "still here");
    let late = change(&believed, &[word], SystemClock.now());
    let refused = cut_off.store.commit(late).await.unwrap_err();
    assert!(matches!(refused, ChangeError::Fenced), "{refused:?}");
    // Its old holder leases nothing any more, neither by claiming nor by birth.
    other.begin().await;
    cut_off.store.claim(holder, wanted).await.unwrap_err();
    let born = cut_off.begin_leased(holder).await;
    assert_eq!(born.turns[0].state, TurnState::Ready);
    // The new one does.
    let holder = cut_off.store.open_holder().await.unwrap();
    let born = cut_off.begin_leased(holder).await;
    assert_eq!(born.turns[0].state, TurnState::Leased);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_falls_silent_is_noticed_and_then_forgotten_about() {
    let cluster = Cluster::shared();
    let database = cluster.create_database();
    let proxy = Proxy::start(cluster.port()).await;
    let options = PostgresOptions {
        connect_timeout: Duration::from_millis(300),
        ..short(&proxy.url(&database))
    };
    let instance = Instance::open_with(options).await;
    let holder = instance.store.open_holder().await.unwrap();
    instance.store.check().await.unwrap();
    proxy.behaviour.stalled.store(true, Ordering::Relaxed);
    let begin = Instant::now();
    instance.store.check().await.unwrap_err();
    eventually("the lease is over", || {
        instance.ears.lost.lock().unwrap().contains(&holder)
    })
    .await;
    assert!(begin.elapsed() < LEASE * 5);
    proxy.behaviour.stalled.store(false, Ordering::Relaxed);
    eventually_asked("it is ready again", || async {
        instance.store.check().await.is_ok()
    })
    .await;
    instance.store.open_holder().await.unwrap();
}

/// A runtime of its own, so that it can be brought to a standstill.
fn frozen_runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(1).enable_all().build().unwrap()
}

#[test]
fn an_instance_that_was_frozen_is_refused_and_learns_of_it() {
    let url = Cluster::shared().create();
    let [its, ours] = [frozen_runtime(), frozen_runtime()];
    let (frozen, holder, head) = its.block_on(async {
        let instance = Instance::open_with(short(&url)).await;
        let holder = instance.store.open_holder().await.unwrap();
        let head = instance.begin_leased(holder).await;
        (instance, holder, head)
    });
    // For three leases, nothing of it moves: no beat, no answer, no timer.
    its.spawn(async { std::thread::sleep(LEASE * 3) });
    let rescued = ours.block_on(async {
        let other = Instance::open_with(short(&url)).await;
        eventually_asked("the turn is found", || async {
            !other.store.orphans(9).await.unwrap().is_empty()
        })
        .await;
        let rescue = change(&head, &[lost(&head)], SystemClock.now());
        let head = other.store.commit(rescue).await.unwrap().head;
        let holder = other.store.open_holder().await.unwrap();
        let wanted = vec![(alice().agent, 1)];
        assert_eq!(
            other.store.claim(holder, wanted).await.unwrap().turns.len(),
            1
        );
        head
    });
    its.block_on(async {
        // What it was about to say when it froze, and what it says with the newest version in hand.
        let late = frozen.store.commit(end(&head)).await.unwrap_err();
        assert!(matches!(late, ChangeError::Fenced), "{late:?}");
        let mut believed = (*rescued).clone();
        believed.turns.clone_from(&head.turns);
        let late = frozen.store.commit(end(&believed)).await.unwrap_err();
        assert!(matches!(late, ChangeError::Fenced), "{late:?}");
        eventually("it learns of it", || {
            frozen.ears.lost.lock().unwrap().contains(&holder)
        })
        .await;
    });
}

#[tokio::test]
async fn whoever_closes_gives_his_leases_up_at_once() {
    let url = Cluster::shared().create();
    let one = Instance::open(&url).await;
    let other = Instance::open(&url).await;
    let holder = one.store.open_holder().await.unwrap();
    one.begin_leased(holder).await;
    assert_eq!(other.store.orphans(9).await.unwrap(), []);
    one.store.close().await;
    assert_eq!(other.store.orphans(9).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn holders_that_are_long_gone_are_forgotten() {
    let cluster = Cluster::shared();
    let database = cluster.create_database();
    let _instance = Instance::open_with(PostgresOptions {
        // It looks after every hundredth beat.
        lease: Duration::from_millis(30),
        ..PostgresOptions::at(cluster.url(&database))
    })
    .await;
    let gone = "INSERT INTO a2ad.holders (opened_at, beat_at, lease_until, instance, name)
        VALUES (0, 0, 0, false, 'gone'), (0, 0, 0, true, 'gone')";
    cluster.sql(&database, gone);
    let forgotten = "NOT EXISTS (SELECT 1 FROM a2ad.holders WHERE name = 'gone')";
    eventually("forgotten", || cluster.holds(&database, forgotten)).await;
}
