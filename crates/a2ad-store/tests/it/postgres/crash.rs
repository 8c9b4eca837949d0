//! The server is killed in the middle of the work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use a2ad_core::clock::{Clock as _, SystemClock};
use a2ad_core::contract::sample::{change, follow_up};
use a2ad_core::keys::{Number, TaskKey};
use a2ad_core::store::{ChangeError, Store as _, StoreError};
use a2ad_pgkit::{Cluster, Durability};
use tokio::task::JoinSet;

use super::rig::Instance;

/// Adds messages to a task of its own until it is told to stop. Whatever it is told about each is
/// compared with what is there afterwards.
async fn work(instance: Instance, stop: Arc<AtomicBool>) -> (u64, u64) {
    let mut told = 0;
    let mut refused = 0;
    let mut head = instance.begin().await;
    while !stop.load(Ordering::Relaxed) {
        let mut next = change(&head, &[follow_up("go on")], SystemClock.now());
        next.context_turns_max = u32::MAX;
        match instance.store.commit(next).await {
            Ok(applied) => {
                told += 1;
                head = applied.head;
            }
            Err(ChangeError::Store(StoreError::Unavailable(_))) => {
                refused += 1;
                // Not one more, not one less, and the head is as it was.
                let version = answered(&instance, head.identity.key).await;
                assert_eq!(version, Some(head.version));
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    let journal = instance
        .store
        .read(head.identity.key, Number::ZERO, usize::MAX);
    let journal = journal.await.unwrap();
    let numbers: Vec<u64> = journal.iter().map(|entry| entry.number.0).collect();
    assert_eq!(numbers, (1..=head.version.0).collect::<Vec<_>>());
    (told, refused)
}

/// The version of a task, as soon as the server is back.
async fn answered(instance: &Instance, task: TaskKey) -> Option<Number> {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        match instance.store.version(task).await {
            Ok(version) => return version,
            Err(error) => assert!(Instant::now() < until, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[test]
fn a_killed_server_loses_nothing_that_was_acknowledged_and_does_nothing_twice() {
    let mut cluster = Cluster::start(Durability::Full);
    let url = cluster.create();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let instances =
        runtime.block_on(async { [Instance::open(&url).await, Instance::open(&url).await] });
    let mut workers = JoinSet::new();
    for instance in instances.iter().cycle().take(16) {
        workers.spawn_on(work(instance.clone(), Arc::clone(&stop)), runtime.handle());
    }
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(700));
        cluster.kill();
        cluster.restart();
    }
    std::thread::sleep(Duration::from_millis(700));
    stop.store(true, Ordering::Relaxed);
    let sums = runtime.block_on(workers.join_all());
    let told: u64 = sums.iter().map(|(told, _)| told).sum();
    let refused: u64 = sums.iter().map(|(_, refused)| refused).sum();
    assert!(told > 100, "{told} commits");
    assert!(refused > 0, "some were in the middle of it");
    runtime.block_on(async {
        for instance in &instances {
            instance.store.close().await;
        }
    });
}
