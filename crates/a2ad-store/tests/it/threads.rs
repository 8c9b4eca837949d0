//! The writer's thread: its queue is bounded, its log too, and closing finishes what waits.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use a2ad_core::clock::{Clock, Surroundings, SystemClock, SystemRandom};
use a2ad_core::contract::Recorder;
use a2ad_core::contract::sample::{alice, change, follow_up, submit, unborn};
use a2ad_core::keys::TaskKey;
use a2ad_core::store::{Change, ChangeError, Store, StoreError};
use a2ad_proto::Timestamp;
use a2ad_store::{Durability, SqliteOptions, SqliteStore, verify};
use futures_util::FutureExt;
use futures_util::future::join_all;

/// Holds the writer up at the beginning of every commit until told to go on.
#[derive(Debug)]
struct Gate {
    /// Not while the store is being opened.
    shut: AtomicBool,
    entered: SyncSender<()>,
    go_on: Mutex<Receiver<()>>,
}

impl Clock for Gate {
    fn now(&self) -> Timestamp {
        if self.shut.load(Ordering::Relaxed) {
            self.entered.send(()).ok();
            self.go_on.lock().unwrap().recv().ok();
        }
        SystemClock.now()
    }
}

/// A store that is held up at every commit; hears when it is, and lets it go on.
fn held_up(options: SqliteOptions) -> (SqliteStore, Receiver<()>, SyncSender<()>) {
    let (entered, has_entered) = sync_channel(64);
    let (go_on, told) = sync_channel(64);
    let gate = Arc::new(Gate {
        shut: AtomicBool::new(false),
        entered,
        go_on: Mutex::new(told),
    });
    let options = SqliteOptions {
        surroundings: Surroundings {
            clock: gate.clone(),
            ..Surroundings::default()
        },
        ..options
    };
    let store = SqliteStore::open(options, Arc::new(Recorder::default())).unwrap();
    gate.shut.store(true, Ordering::Relaxed);
    (store, has_entered, go_on)
}

fn submission(store: &SqliteStore, key: i64, text: &str) -> Change {
    let head = unborn(store.public_ids(), key, &SystemRandom, &alice());
    change(&head, &[submit(text)], SystemClock.now())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_refuses_at_once_and_takes_more_when_it_is_shorter() {
    let dir = tempfile::tempdir().unwrap();
    let options = SqliteOptions {
        queue_max: 3,
        queue_bytes_max: 10_000,
        ..SqliteOptions::at(dir.path().join("a2ad.db"))
    };
    let (store, has_entered, go_on) = held_up(options);
    // Goes before the store does, which would wait for its writer for ever if the test fails.
    let go_on = go_on;
    let keys = store.allot(20).await.unwrap().start;
    let first = store.commit(submission(&store, keys, "held up"));
    has_entered.recv().unwrap();
    let waiting: Vec<_> = (1..=3)
        .map(|n| store.commit(submission(&store, keys + n, "waits")))
        .collect();
    // "At once" is part of the fact: with the writer held up, an answer that waits never comes.
    let refused = store
        .commit(submission(&store, keys + 4, "one too many"))
        .now_or_never()
        .expect("an answer at once");
    assert!(matches!(
        refused,
        Err(ChangeError::Store(StoreError::Full(_)))
    ));
    let check = store.check().now_or_never().expect("an answer at once");
    assert!(matches!(check, Err(StoreError::Full(_))));
    go_on.send(()).unwrap();
    go_on.send(()).unwrap();
    first.await.unwrap();
    for result in join_all(waiting).await {
        result.unwrap();
    }
    // The other bound: few writes, but large ones.
    for _ in 0..9 {
        go_on.send(()).unwrap();
    }
    store
        .commit(submission(&store, keys + 5, "there is room"))
        .await
        .unwrap();
    let long = "x".repeat(50_000);
    store
        .commit(submission(&store, keys + 6, &long))
        .await
        .expect("a large one goes through when nothing waits");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_queue_is_bounded_by_bytes_too() {
    let dir = tempfile::tempdir().unwrap();
    let options = SqliteOptions {
        queue_bytes_max: 10_000,
        ..SqliteOptions::at(dir.path().join("a2ad.db"))
    };
    let (store, has_entered, go_on) = held_up(options);
    // Goes before the store does, which would wait for its writer for ever if the test fails.
    let go_on = go_on;
    let keys = store.allot(20).await.unwrap().start;
    let first = store.commit(submission(&store, keys, "held up"));
    has_entered.recv().unwrap();
    let long = "x".repeat(6_000);
    let second = store.commit(submission(&store, keys + 1, &long));
    let third = store
        .commit(submission(&store, keys + 2, &long))
        .now_or_never()
        .expect("an answer at once");
    assert!(matches!(
        third,
        Err(ChangeError::Store(StoreError::Full(_)))
    ));
    for _ in 0..2 {
        go_on.send(()).unwrap();
    }
    first.await.unwrap();
    second.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_finishes_what_waits() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a2ad.db");
    let store = SqliteStore::open(SqliteOptions::at(&path), Arc::new(Recorder::default())).unwrap();
    let keys = store.allot(100).await.unwrap();
    let waiting: Vec<_> = keys
        .map(|key| store.commit(submission(&store, key, "waits")))
        .collect();
    store.close();
    for result in join_all(waiting).await {
        result.unwrap();
    }
    assert_eq!(verify(&path).unwrap().tasks, 100);
}

#[tokio::test]
async fn closing_answers_whom_the_only_thread_of_the_runtime_could_not_answer() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a2ad.db");
    let wake = Arc::new(Recorder::default());
    let store = SqliteStore::open(SqliteOptions::at(&path), wake.clone()).unwrap();
    let keys = store.allot(10).await.unwrap();
    let waiting: Vec<_> = keys
        .map(|key| store.commit(submission(&store, key, "waits")))
        .collect();
    store.close();
    assert_eq!(wake.heard().len(), 10, "all was told");
    for result in waiting {
        result.now_or_never().expect("an answer is there").unwrap();
    }
}

#[test]
fn callers_are_answered_without_a_runtime_and_when_it_is_gone() {
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_time().build().unwrap()
    };
    let dir = tempfile::tempdir().unwrap();
    let options = SqliteOptions::at(dir.path().join("a2ad.db"));
    let begin = |store: &SqliteStore| {
        runtime().block_on(async {
            let key = store.allot(1).await.unwrap().start;
            let submission = submission(store, key, "hello");
            store.commit(submission).await.unwrap().head.identity.key
        })
    };
    let wake = Arc::new(Recorder::default());
    let store = SqliteStore::open(options.clone(), wake.clone()).unwrap();
    let mut keys = vec![begin(&store), begin(&store)];
    drop(store);
    let first = runtime();
    let store = first.block_on(async { SqliteStore::open(options, wake.clone()).unwrap() });
    // The runtime is there but nobody drives it; then it is gone.
    let key = store.allot(1).now_or_never().unwrap().unwrap().start;
    let unanswered = store.commit(submission(&store, key, "hello"));
    keys.push(TaskKey(key));
    drop(first);
    runtime()
        .block_on(async { tokio::time::timeout(Duration::from_secs(9), unanswered).await })
        .expect("an answer in time")
        .unwrap();
    keys.push(begin(&store));
    let heard: Vec<_> = wake
        .heard()
        .iter()
        .map(|told| told.head.identity.key)
        .collect();
    assert_eq!(heard, keys, "the engine heard of all, in order");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_goes_away_does_not_undo_its_write() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a2ad.db");
    let store = SqliteStore::open(SqliteOptions::at(&path), Arc::new(Recorder::default())).unwrap();
    let key = store.allot(1).await.unwrap().start;
    drop(store.commit(submission(&store, key, "fire and forget")));
    store.close();
    assert_eq!(verify(&path).unwrap().tasks, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_does_not_outgrow_what_a_restart_can_replay() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a2ad.db");
    let options = SqliteOptions {
        durability: Durability::Os,
        ..SqliteOptions::at(&path)
    };
    let store = SqliteStore::open(options, Arc::new(Recorder::default())).unwrap();
    let key = store.allot(1).await.unwrap().start;
    let first = store
        .commit(submission(&store, key, "begin"))
        .await
        .unwrap();
    let mut head = first.head;
    let text = "x".repeat(1 << 20);
    for _ in 0..90 {
        let next = change(&head, &[follow_up(&text)], SystemClock.now());
        head = store.commit(next).await.unwrap().head;
    }
    let log = std::fs::metadata(path.with_extension("db-wal"))
        .unwrap()
        .len();
    assert!(
        log < 40 << 20,
        "the log has {log} bytes after writing 90 MiB"
    );
    store.close();
    let report = verify(&path).unwrap();
    assert_eq!((report.entries, report.problems), (91, vec![]));
}
