//! Connections that are lost in the middle of a commit.

use std::sync::atomic::Ordering;
use std::time::Duration;

use a2ad_core::contract::sample::{alice, once};
use a2ad_core::store::{ChangeError, Store as _, StoreError};
use a2ad_pgkit::Cluster;
use a2ad_pgkit::proxy::{Fault, Proxy};
use a2ad_store::PostgresOptions;
use futures_util::future::join_all;

use super::rig::{Instance, end, eventually, eventually_asked};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_told_of_a_cut_commit_is_told_the_truth() {
    let cluster = Cluster::shared();
    let database = cluster.create_database();
    let proxy = Proxy::start(cluster.port()).await;
    let instance = Instance::open(&proxy.url(&database)).await;
    let witness = Instance::open(&cluster.url(&database)).await;
    let mut applied = 0;
    for round in 0..24_u8 {
        let fault = [Fault::Question, Fault::Answer][usize::from(round % 2)];
        let mut changes = Vec::new();
        for n in 0..6 {
            let mut change = instance.submission(None).await;
            change.once = Some(once(round, n, 1));
            change.once.as_mut().unwrap().key[1] = n;
            changes.push(change);
        }
        *proxy.behaviour.fault.lock().unwrap() = Some(fault);
        let keys: Vec<_> = changes.iter().map(|it| it.head.identity.key).collect();
        let commits = changes.into_iter().map(|it| instance.store.commit(it));
        let results = join_all(commits).await;
        for (key, result) in keys.into_iter().zip(results) {
            let stored = witness.store.version(key).await.unwrap();
            match result {
                Ok(committed) => {
                    assert_eq!(stored, Some(committed.head.version));
                    applied += 1;
                }
                Err(ChangeError::Store(StoreError::Unavailable(_))) => assert_eq!(stored, None),
                Err(other) => panic!("{other:?}"),
            }
        }
        eventually_asked("it is back", || async {
            instance.store.check().await.is_ok()
        })
        .await;
    }
    assert_eq!(*proxy.behaviour.cuts.lock().unwrap(), 24);
    let page = witness
        .store
        .list(
            &alice(),
            &<_>::default(),
            None,
            999,
            usize::MAX,
            false,
            &mut |_, _| false,
        )
        .await
        .unwrap();
    assert_eq!((page.tasks.len(), page.total), (applied, applied as u64));
    assert!(applied > 0, "some commits came through");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_turn_is_leased_by_a_claim_that_nobody_was_told_of() {
    let cluster = Cluster::shared();
    let database = cluster.create_database();
    let proxy = Proxy::start(cluster.port()).await;
    let instance = Instance::open(&proxy.url(&database)).await;
    let holder = instance.store.open_holder().await.unwrap();
    let mut claimed = 0;
    for round in 0..12 {
        instance.begin().await;
        let fault = [Fault::Question, Fault::Answer][round % 2];
        *proxy.behaviour.fault.lock().unwrap() = Some(fault);
        let wanted = vec![(alice().agent, 9)];
        if let Ok(claims) = instance.store.claim(holder, wanted).await {
            claimed += claims.turns.len() as u64;
        }
        *proxy.behaviour.fault.lock().unwrap() = None;
        let stats = instance.store.stats().await.unwrap();
        assert_eq!(stats.turns[2], claimed);
    }
    assert!(claimed > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_server_is_away_calls_fail_at_once_and_then_work_again() {
    let cluster = Cluster::shared();
    let database = cluster.create_database();
    let proxy = Proxy::start(cluster.port()).await;
    let instance = Instance::open(&proxy.url(&database)).await;
    let head = instance.begin().await;
    let key = head.identity.key;
    let change = instance.submission(None).await;
    proxy.close();
    let begin = std::time::Instant::now();
    let refused = instance.store.commit(change.clone()).await.unwrap_err();
    assert!(
        matches!(refused, ChangeError::Store(StoreError::Unavailable(_))),
        "{refused:?}"
    );
    // The first of these finds out, the others are told what it found: once, not within itself.
    for _ in 0..3 {
        let refused = instance.store.head(key).await.unwrap_err();
        assert!(matches!(refused, StoreError::Unavailable(_)), "{refused:?}");
        let told = refused.to_string();
        assert_eq!(told.matches("not available").count(), 1, "{told}");
    }
    instance.store.check().await.unwrap_err();
    assert!(begin.elapsed() < Duration::from_secs(5));
    proxy.reopen();
    eventually_asked("it is ready again", || async {
        instance.store.check().await.is_ok()
    })
    .await;
    eventually_asked("it reads again", || async {
        instance.store.head(key).await.is_ok()
    })
    .await;
    eventually_asked("it commits again", || async {
        instance.store.commit(change.clone()).await.is_ok()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_waits_behind_a_cut_commit_does_not_wait_for_the_server() {
    let cluster = Cluster::shared();
    let database = cluster.create_database();
    let proxy = Proxy::start(cluster.port()).await;
    let options = PostgresOptions {
        lanes: 1,
        ..PostgresOptions::at(proxy.url(&database))
    };
    let instance = Instance::open_with(options).await;
    let first = instance.submission(None).await;
    let second = instance.submission(None).await;
    let key = first.head.identity.key;
    *proxy.behaviour.fault.lock().unwrap() = Some(Fault::Answer);
    proxy.behaviour.then_close.store(true, Ordering::Relaxed);
    let mut cut = Box::pin(instance.store.commit(first));
    eventually_polled(&mut cut, || *proxy.behaviour.cuts.lock().unwrap() == 1).await;
    let refused = instance.store.commit(second).await.unwrap_err();
    assert!(
        matches!(refused, ChangeError::Store(StoreError::Unavailable(_))),
        "{refused:?}"
    );
    // Whoever was in the middle of it is told the truth, as soon as there is one.
    proxy.reopen();
    let told = cut.await;
    let witness = Instance::open(&cluster.url(&database)).await;
    let stored = witness.store.version(key).await.unwrap();
    assert_eq!(told.is_ok(), stored.is_some());
}

/// An instance that is frozen or cut off in mid-transaction has locked a context. Others who want
/// it wait for a moment, not until they have to give up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_falls_silent_in_mid_transaction_does_not_keep_its_locks() {
    let cluster = Cluster::shared();
    let database = cluster.create_database();
    let proxy = Proxy::start(cluster.port()).await;
    let options = PostgresOptions {
        lock_timeout: Duration::from_secs(4),
        ..PostgresOptions::at(proxy.url(&database))
    };
    let silent = Instance::open_with(options.clone()).await;
    let options = PostgresOptions {
        url: cluster.url(&database),
        ..options
    };
    let other = Instance::open_with(options).await;
    let holder = silent.store.open_holder().await.unwrap();
    let head = silent.begin_leased(holder).await;
    let key = head.identity.key;
    proxy.behaviour.stalled.store(true, Ordering::Relaxed);
    let mut held = Box::pin(silent.store.commit(end(&head)));
    let is_held = || {
        cluster.holds(
            &database,
            "EXISTS (SELECT 1 FROM pg_stat_activity
                WHERE state = 'idle in transaction' AND datname = current_database())",
        )
    };
    eventually_polled(&mut held, is_held).await;
    let begin = std::time::Instant::now();
    let ended = other.store.commit(end(&head)).await.unwrap().head;
    let waited = begin.elapsed();
    assert!(waited < Duration::from_secs(3), "{waited:?}");
    proxy.behaviour.stalled.store(false, Ordering::Relaxed);
    let refused = held.await.unwrap_err();
    assert!(
        matches!(refused, ChangeError::Store(StoreError::Unavailable(_))),
        "{refused:?}"
    );
    let stored = other.store.version(key).await.unwrap();
    assert_eq!(stored, Some(ended.version));
}

/// Waits for something that has to happen before `future` is done.
async fn eventually_polled<T: std::fmt::Debug>(
    future: &mut (impl Future<Output = T> + Unpin),
    is_so: impl FnMut() -> bool,
) {
    tokio::select! {
        early = future => panic!("{early:?}"),
        () = eventually("the commit is cut", is_so) => {}
    }
}
