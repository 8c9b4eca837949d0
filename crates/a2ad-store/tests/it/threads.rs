//! The writer's thread: its queue is bounded, its log too, and closing finishes what waits.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use a2ad_core::clock::{Clock, SystemClock, SystemRandom};
use a2ad_core::contract::Recorder;
use a2ad_core::contract::sample::{alice, change, follow_up, submit, unborn};
use a2ad_core::store::{Change, ChangeError, Committed, Store, StoreError, Wake};
use a2ad_store::{Durability, SqliteOptions, SqliteStore, verify};
use futures_util::FutureExt;
use futures_util::future::join_all;

/// Holds the writer up in its first commit until told to go on.
#[derive(Debug)]
struct Gate {
    entered: SyncSender<()>,
    go_on: Mutex<Receiver<()>>,
}

impl Wake for Gate {
    fn committed(&self, _: Vec<Committed>) {
        self.entered.send(()).ok();
        self.go_on.lock().unwrap().recv().ok();
    }

    fn stopped(&self, reason: &str) {
        panic!("{reason}");
    }
}

fn submission(store: &SqliteStore, key: i64, text: &str) -> Change {
    let head = unborn(store.public_ids(), key, &SystemRandom, &alice());
    change(&head, &[submit(text)], SystemClock.now())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_refuses_at_once_and_takes_more_when_it_is_shorter() {
    let dir = tempfile::tempdir().unwrap();
    let (entered, has_entered) = sync_channel(64);
    let (go_on, told) = sync_channel(64);
    let wake = Arc::new(Gate {
        entered,
        go_on: Mutex::new(told),
    });
    let options = SqliteOptions {
        queue_max: 3,
        queue_bytes_max: 10_000,
        ..SqliteOptions::at(dir.path().join("a2ad.db"))
    };
    let store = SqliteStore::open(options, wake).unwrap();
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
    let (entered, has_entered) = sync_channel(64);
    let (go_on, told) = sync_channel(64);
    let wake = Arc::new(Gate {
        entered,
        go_on: Mutex::new(told),
    });
    let options = SqliteOptions {
        queue_bytes_max: 10_000,
        ..SqliteOptions::at(dir.path().join("a2ad.db"))
    };
    let store = SqliteStore::open(options, wake).unwrap();
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
