//! From a file to a database: all of it, once, whatever happens in between.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use a2ad_core::clock::{Clock as _, SystemClock, SystemRandom};
use a2ad_core::contract::Recorder;
use a2ad_core::contract::sample::{
    alice, change, finish, follow_up, once, said, say, scope, submit, unborn, write_artifact,
};
use a2ad_core::keys::{Attempt, Number, Scope};
use a2ad_core::store::{Change, ContextChoice, ListFilter, Store};
use a2ad_core::task::{Broken, Command, Head, Identity, Outcome, RetryRule, Snapshot};
use a2ad_pgkit::Cluster;
use a2ad_proto::Role;
use a2ad_store::copy::{CopyError, CopyProgress, CopyReport, copy};
use a2ad_store::postgres::{self, OpenError};
use a2ad_store::{Durability, PostgresOptions, PostgresStore, SqliteOptions, SqliteStore};
use bytes::Bytes;
use futures_util::future::join_all;
use tempfile::TempDir;
use tokio_util::task::TaskTracker;

use super::rig::Instance;

/// More than go into one transaction.
const MANY: usize = 1_300;

struct File {
    _folder: TempDir,
    path: PathBuf,
}

impl File {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            path: folder.path().join("a2ad.db"),
            _folder: folder,
        }
    }

    fn open(&self) -> SqliteStore {
        let options = SqliteOptions {
            durability: Durability::Os,
            ..SqliteOptions::at(&self.path)
        };
        SqliteStore::open(options, Arc::new(Recorder::default())).unwrap()
    }
}

async fn submission(store: &dyn Store, scope: &Scope, text: &str) -> Change {
    let key = store.allot(1).await.unwrap().start;
    let head = unborn(store.public_ids(), key, &SystemRandom, scope);
    change(&head, &[submit(text)], SystemClock.now())
}

async fn begin(store: &dyn Store, scope: &Scope, text: &str) -> Arc<Head> {
    let change = submission(store, scope, text).await;
    store.commit(change).await.unwrap().head
}

/// A submission in a conversation that the client named.
async fn named(store: &dyn Store, scope: &Scope, name: &str) -> Arc<Head> {
    let key = store.allot(1).await.unwrap().start;
    let head = unborn(store.public_ids(), key, &SystemRandom, scope);
    let head = Head::unborn(Identity {
        context_id: name.parse().unwrap(),
        ..(*head.identity).clone()
    });
    let mut change = change(&head, &[submit("named")], SystemClock.now());
    change.context = ContextChoice::Named(name.parse().unwrap());
    store.commit(change).await.unwrap().head
}

async fn end(store: &dyn Store, head: &Head) {
    let head = store.head(head.identity.key).await.unwrap().unwrap();
    let end = finish(&head, Outcome::Completed(None));
    let change = change(&head, &[end], SystemClock.now());
    store.commit(change).await.unwrap();
}

fn owners() -> Vec<Scope> {
    vec![
        alice(),
        scope("token:bob", "echo"),
        scope("anonymous", "mock"),
        scope("key:Jürgen 'quoted'", "mock"),
    ]
}

/// Some of everything that a file can hold.
async fn fill(store: &dyn Store) {
    let holder = store.open_holder().await.unwrap();
    for (at, owner) in owners().iter().enumerate() {
        // Recognisable when it is repeated, and ended.
        let mut request = submission(store, owner, "once").await;
        request.once = Some(once(at as u8, 7, 1));
        request.lease_to = Some(holder);
        let head = store.commit(request).await.unwrap().head;
        end(store, &head).await;
        // Given up.
        let mut request = submission(store, owner, "hopeless").await;
        request.lease_to = Some(holder);
        let head = store.commit(request).await.unwrap().head;
        let now = SystemClock.now();
        let failed = Command::Break {
            turn: head.turns[0].number,
            attempt: head.turns[0].attempt,
            reason: Broken::Failed,
            retry: Some(RetryRule {
                tries_max: 1,
                due: now,
            }),
            failure: said(Role::Agent, "it did not work"),
        };
        store.commit(change(&head, &[failed], now)).await.unwrap();
        // Ready, with two that wait behind it, all in one conversation.
        for _ in 0..3 {
            named(store, owner, "a holiday").await;
        }
        // A name that looks like one of ours.
        named(store, owner, "0197a1b2-c3d4-8e5f-a071-829304a5b6c7").await;
        // At work, with a long journal, one huge entry and a snapshot.
        let mut request = submission(store, owner, "long").await;
        request.lease_to = Some(holder);
        let head = store.commit(request).await.unwrap().head;
        let (turn, attempt) = (Number(1), Attempt(1));
        let mut commands = vec![write_artifact(turn, attempt, "a", &"x".repeat(700_000))];
        commands.extend((0..40).map(|n| say(turn, attempt, &format!("step {n}"))));
        let mut change = change(&head, &commands, SystemClock.now());
        change.snapshot = Some(Snapshot {
            version: change.head.version,
            marks: Bytes::from_static(b"marks"),
            body: Bytes::from_static(b"{}"),
            artifacts: Bytes::from(format!("[\"{}\"]", "x".repeat(700_000))),
        });
        store.commit(change).await.unwrap();
        // A message in line behind the one that is worked on.
        let head = store.head(head.identity.key).await.unwrap().unwrap();
        let more = a2ad_core::contract::sample::change(
            &head,
            &[follow_up("and then?")],
            SystemClock.now(),
        );
        store.commit(more).await.unwrap();
    }
}

/// All that callers can learn of every task, as text.
async fn told(store: &dyn Store) -> Vec<String> {
    let mut told = Vec::new();
    for (at, owner) in owners().iter().enumerate() {
        let mut place = None;
        loop {
            let filter = ListFilter::default();
            let page = store
                .list(owner, &filter, place, 100, usize::MAX, true, &mut |_, _| {
                    false
                })
                .await
                .unwrap();
            told.push(format!("{} in all", page.total));
            for listed in &page.tasks {
                told.push(format!("{listed:?}"));
            }
            for key in page.tasks.iter().map(|it| it.place.key) {
                let head = store.head(key).await.unwrap().unwrap();
                let id = head.identity.id.clone();
                let stored = store.load(owner, &id, usize::MAX).await.unwrap().unwrap();
                told.push(format!("{stored:?}"));
                assert_eq!(store.find(owner, &id).await.unwrap(), Some(key));
                let entries = store.read(key, Number::ZERO, usize::MAX).await.unwrap();
                told.push(format!("{entries:?}"));
                told.push(format!("{:?}", store.snapshot(key).await.unwrap()));
            }
            place = page.tasks.last().map(|it| it.place);
            if !page.more {
                break;
            }
        }
        let hit = store.once(owner, [at as u8; 16]).await.unwrap();
        told.push(format!("{hit:?}"));
        assert!(store.once(owner, [99; 16]).await.unwrap().is_none());
    }
    told.push(format!("{:?}", store.stats().await.unwrap()));
    told
}

fn quietly(_: CopyProgress) {}

/// Copies. A lock that is let go of can stay for a moment: whoever is just being started by another test has it, too.
async fn copied(path: &Path, url: &str) -> Result<CopyReport, CopyError> {
    let mut tries = 50;
    loop {
        tries -= 1;
        match copy(path, PostgresOptions::at(url), &quietly).await {
            Err(CopyError::Source(a2ad_store::OpenError::Locked { .. })) if tries > 0 => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            ended => return ended,
        }
    }
}

async fn opened(url: &str) -> Result<PostgresStore, OpenError> {
    PostgresStore::open(PostgresOptions::at(url), Arc::new(Recorder::default())).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_goes_along_and_is_told_as_before() {
    let file = File::new();
    let store = file.open();
    fill(&store).await;
    let before = told(&store).await;
    let tasks = before.len();
    let next = store.allot(1).await.unwrap().start;
    store.close();
    drop(store);
    // Nobody makes these yet.
    let db = rusqlite::Connection::open(&file.path).unwrap();
    let webhook =
        "INSERT INTO push_configs (task, id, url, sealed, events, cursor, attempt, due, state)
         VALUES (1, 'hook', 'https://a.example/', x'0102', 3, 1, 2, 5, 1)";
    db.execute(webhook, []).unwrap();
    drop(db);

    let cluster = Cluster::shared();
    let database = cluster.create_database();
    let url = cluster.url(&database);
    let report = copied(&file.path, &url).await.unwrap();
    assert_eq!((report.tasks, report.tasks_before), (28, 0), "{report:?}");
    assert_eq!(report.dead_turns, 4, "{report:?}");
    let verified = a2ad_store::postgres::verify(PostgresOptions::at(&url)).await;
    let verified = verified.unwrap();
    assert!(verified.is_sound(), "{verified:?}");
    assert_eq!(verified.tasks, 28);
    cluster.sql(
        &database,
        "DO $$ BEGIN
             ASSERT (SELECT count(*) FROM a2ad.push_configs WHERE task = 1 AND id = 'hook'
                 AND url = 'https://a.example/' AND sealed = '\\x0102' AND events = 3
                 AND cursor = 1 AND attempt = 2 AND state = 1) = 1, 'webhooks';
             ASSERT (SELECT count(*) FROM a2ad.dead_turns WHERE attempt = 1) = 4, 'dead turns';
             ASSERT (SELECT sum(n) FROM a2ad.open_turns)
                 = (SELECT count(*) FROM a2ad.turns), 'open turns';
             ASSERT NOT EXISTS (SELECT 1 FROM a2ad.meta WHERE key = 'copying'), 'the note';
         END $$",
    );
    assert_eq!((report.snapshots, report.requests), (4, 4), "{report:?}");
    assert_eq!((report.turns, report.turns_leased), (24, 4), "{report:?}");
    let store = opened(&url).await.unwrap();
    let after = told(&store).await;
    assert_eq!(after.len(), tasks);
    for (one, other) in before.iter().zip(&after) {
        assert_eq!(one, other);
    }

    // New tasks have keys of their own.
    assert!(store.allot(1).await.unwrap().start >= next);
    // What was worked on is found as after a crash; what was ready can be had.
    let lost = store.orphans(100).await.unwrap();
    assert_eq!(lost.len(), 4, "{lost:?}");
    let holder = store.open_holder().await.unwrap();
    let wanted = vec![(alice().agent, 100), ("mock".parse().unwrap(), 100)];
    let claims = store.claim(holder, wanted).await.unwrap();
    assert_eq!(claims.turns.len(), 8, "{claims:?}");
    for claimed in claims.turns {
        let head = store.head(claimed.turn.task).await.unwrap().unwrap();
        end(&store, &head).await;
    }
    // The next in line comes after the one before it.
    let wanted = vec![(alice().agent, 100), ("mock".parse().unwrap(), 100)];
    let claims = store.claim(holder, wanted).await.unwrap();
    assert_eq!(claims.turns.len(), 4, "{claims:?}");
    // A repeat is still one, and another conversation of that name is the same one.
    let mut again = submission(&store, &alice(), "once").await;
    again.once = Some(once(0, 7, 1));
    store.commit(again).await.unwrap_err();
    let fifth = named(&store, &alice(), "a holiday").await;
    let list = told(&store).await;
    let context = fifth.identity.context;
    assert!(list.iter().any(|it| it.contains(&format!("{context:?}"))));
    assert_ne!(context.0, fifth.identity.key.0);
    store.close().await;

    let error = copied(&file.path, &url).await.unwrap_err();
    assert!(matches!(error, CopyError::HasTasks { .. }), "{error:?}");
    assert!(!format!("{error} {error:?}").contains("a2ad@"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_was_interrupted_goes_on_and_doubles_nothing() {
    let file = File::new();
    let store = file.open();
    let begun = (0..MANY).map(|n| {
        let store = &store;
        async move { begin(store, &owners()[n % 4], &format!("task {n}")).await }
    });
    join_all(begun).await;
    fill(&store).await;
    let before = told(&store).await;
    store.close();
    drop(store);

    let url = Cluster::shared().create();
    let (path, to) = (file.path.clone(), PostgresOptions::at(&url));
    let (tell, mut heard) = tokio::sync::mpsc::channel(64);
    let copying = TaskTracker::new().spawn(async move {
        let progress = move |it: CopyProgress| {
            let _full = tell.try_send(it);
        };
        copy(&path, to, &progress).await
    });
    while let Some(progress) = heard.recv().await {
        if progress.tasks > 0 {
            break;
        }
    }
    copying.abort();
    assert!(copying.await.is_err(), "it was interrupted");

    // Nobody serves from half a copy.
    let error = opened(&url).await.unwrap_err();
    assert!(matches!(error, OpenError::HalfCopied { .. }), "{error:?}");
    let status = postgres::status(PostgresOptions::at(&url)).await.unwrap();
    assert!(status.half_copied && !status.is_usable());
    assert!(status.instances.is_empty(), "who was refused has gone");

    let report = copied(&file.path, &url).await.unwrap();
    assert!(report.tasks_before > 0, "{report:?}");
    assert_eq!(report.tasks as usize, MANY + 28);
    let store = opened(&url).await.unwrap();
    let after = told(&store).await;
    assert!(before == after, "something is not as before");
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_was_used_meanwhile_is_noticed() {
    let file = File::new();
    let store = file.open();
    let begun = (0..MANY).map(|n| {
        let store = &store;
        async move { begin(store, &alice(), &format!("task {n}")).await }
    });
    let heads = join_all(begun).await;
    store.close();
    drop(store);
    let url = Cluster::shared().create();
    let (path, to) = (file.path.clone(), PostgresOptions::at(&url));
    let seen = Arc::new(AtomicU64::new(0));
    let seen_too = Arc::clone(&seen);
    let copying = TaskTracker::new().spawn(async move {
        copy(&path, to, &move |it: CopyProgress| {
            seen_too.store(it.tasks, Ordering::Relaxed);
        })
        .await
    });
    super::rig::eventually("some were copied", || seen.load(Ordering::Relaxed) > 0).await;
    copying.abort();
    let _ended = copying.await;
    let store = loop {
        let options = SqliteOptions::at(&file.path);
        match SqliteStore::open(options, Arc::new(Recorder::default())) {
            Ok(store) => break store,
            Err(a2ad_store::OpenError::Locked { .. }) => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(error) => panic!("{error}"),
        }
    };
    // Of a task that was copied already.
    let holder = store.open_holder().await.unwrap();
    store.claim(holder, vec![(alice().agent, 1)]).await.unwrap();
    end(&store, &heads[0]).await;
    store.close();
    drop(store);
    let error = copied(&file.path, &url).await.unwrap_err();
    assert!(matches!(error, CopyError::Different { .. }), "{error:?}");
    let error = opened(&url).await.unwrap_err();
    assert!(matches!(error, OpenError::HalfCopied { .. }), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_must_not_be_copied_or_filled_is_not() {
    let file = File::new();
    let store = file.open();
    let head = begin(&store, &alice(), "hello").await;
    // A server has the file.
    let cluster = Cluster::shared();
    let database = cluster.create_database();
    let url = cluster.url(&database);
    let error = copied(&file.path, &url).await.unwrap_err();
    let told = error.to_string();
    assert!(told.contains("is in use by another a2ad"), "{told}");
    store.close();
    drop(store);

    // An instance serves from the database.
    let instance = Instance::open(&url).await;
    let error = copied(&file.path, &url).await.unwrap_err();
    assert!(
        matches!(error, CopyError::InUse { count: 1, .. }),
        "{error:?}"
    );
    // It has not noticed, and one more can come.
    let other = Instance::open(&url).await;
    other.begin().await;
    other.store.close().await;
    instance.store.close().await;
    // There are tasks.
    let error = copied(&file.path, &url).await.unwrap_err();
    assert!(
        matches!(error, CopyError::HasTasks { count: 1, .. }),
        "{error:?}"
    );

    // Half a copy of another file.
    let database = cluster.create_database();
    let url = cluster.url(&database);
    postgres::migrate(PostgresOptions::at(&url)).await.unwrap();
    cluster.sql(
        &database,
        "INSERT INTO a2ad.meta (key, number, bytes) VALUES ('copying', 5, 'another secret..')",
    );
    let error = copied(&file.path, &url).await.unwrap_err();
    assert!(matches!(error, CopyError::OtherFile { .. }), "{error:?}");

    // Nothing there, and something else there.
    let url = cluster.create();
    let nowhere = file.path.with_file_name("nowhere.db");
    let error = copied(&nowhere, &url).await.unwrap_err();
    assert!(matches!(error, CopyError::Source(_)), "{error:?}");
    assert!(!nowhere.exists(), "nothing was made");
    std::fs::write(&nowhere, "").unwrap();
    let error = copied(&nowhere, &url).await.unwrap_err();
    assert!(matches!(error, CopyError::Empty(_)), "{error:?}");

    // Damage is found while it is read.
    let bytes = std::fs::read(&file.path).unwrap();
    let at = bytes.windows(5).rposition(|word| word == b"hello").unwrap();
    let mut changed = bytes.clone();
    changed[at] = b'H';
    std::fs::write(&file.path, &changed).unwrap();
    let error = copied(&file.path, &url).await.unwrap_err();
    assert!(matches!(error, CopyError::Damaged { .. }), "{error:?}");
    std::fs::write(&file.path, &bytes).unwrap();
    // And put right, it goes on.
    copied(&file.path, &url).await.unwrap();
    let store = opened(&url).await.unwrap();
    let found = store.head(head.identity.key).await.unwrap().unwrap();
    assert_eq!(found.identity, head.identity);
    store.close().await;
}

#[tokio::test]
async fn a_database_says_what_it_holds_and_how_it_does() {
    let url = Cluster::shared().create();
    let options = || PostgresOptions::at(&url);
    let status = postgres::status(options()).await.unwrap();
    assert_eq!((status.schema, status.task_count()), (0, 0));
    let probe = postgres::probe(options()).await.unwrap();
    assert!(probe.may_create && probe.commit.is_none());
    let migrated = postgres::migrate(options()).await.unwrap();
    assert_eq!((migrated.from, migrated.to), (0, 1));
    let migrated = postgres::migrate(options()).await.unwrap();
    assert_eq!((migrated.from, migrated.to), (1, 1));

    let instance = Instance::open(&url).await;
    instance.begin().await;
    instance.begin().await;
    let probe = postgres::probe(options()).await.unwrap();
    let status = &probe.status;
    assert!(status.server.starts_with("PostgreSQL 1"), "{status:?}");
    assert_eq!((status.schema, status.oldest_compatible), (1, 1));
    assert_eq!((status.task_count(), status.turns), (2, [0, 2, 0]));
    assert!(status.bytes > 0 && status.in_use && status.is_usable());
    assert_eq!(status.instances.len(), 1);
    assert!(status.instances[0].alive);
    assert!(probe.commit.is_some() && probe.private);
    assert!(probe.ahead_ms.abs() < 1_000, "{probe:?}");
    assert_eq!(probe.connections_needed, 13);
    assert!(probe.connections.0 >= 100 && probe.connections.1 >= 1);
    // The tests' server forgets everything if it crashes.
    let settings = [("fsync", "off"), ("full_page_writes", "off")];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(probe.unsafe_settings, settings);
    instance.store.close().await;
    let status = postgres::status(options()).await.unwrap();
    assert!(!status.in_use && status.instances.is_empty());
}
