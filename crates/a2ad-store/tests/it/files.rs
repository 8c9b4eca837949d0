//! Files: whatever is found in the place of the database, the answer is clear.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use a2ad_core::clock::{Clock, SystemClock, SystemRandom};
use a2ad_core::contract::Recorder;
use a2ad_core::contract::sample::{alice, change, submit, unborn};
use a2ad_core::keys::Number;
use a2ad_core::store::{Store, StoreError};
use a2ad_store::{OpenError, SqliteOptions, SqliteStore, verify};
use tempfile::TempDir;

fn open(path: &Path) -> Result<SqliteStore, OpenError> {
    SqliteStore::open(SqliteOptions::at(path), Arc::new(Recorder::default()))
}

async fn begin(store: &SqliteStore) -> a2ad_core::keys::TaskKey {
    let key = store.allot(1).await.unwrap().start;
    let head = unborn(store.public_ids(), key, &SystemRandom, &alice());
    let change = change(&head, &[submit("hello")], SystemClock.now());
    store.commit(change).await.unwrap().head.identity.key
}

fn folder() -> (TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a2ad.db");
    (dir, path)
}

#[tokio::test]
async fn a_missing_or_empty_file_becomes_a_database() {
    for empty in [false, true] {
        let (_dir, path) = folder();
        if empty {
            fs::write(&path, b"").unwrap();
        }
        let store = open(&path).unwrap();
        let key = begin(&store).await;
        drop(store);
        let store = open(&path).unwrap();
        assert!(store.head(key).await.unwrap().is_some());
        store.close();
        let report = verify(&path).unwrap();
        assert_eq!((report.tasks, report.problems), (1, vec![]));
    }
}

#[test]
fn an_empty_file_is_no_database_to_verify() {
    let (_dir, path) = folder();
    fs::write(&path, b"").unwrap();
    assert!(!verify(&path).unwrap().is_sound());
    assert_eq!(fs::metadata(&path).unwrap().len(), 0, "nothing was written");
}

#[test]
fn what_is_not_ours_is_refused_and_left_alone() {
    let (dir, path) = folder();
    let garbage = b"Dear diary, today I learned about databases.\n".repeat(400);
    fs::write(&path, &garbage).unwrap();
    for error in [open(&path).unwrap_err(), verify(&path).unwrap_err()] {
        assert!(matches!(error, OpenError::NotADatabase { .. }), "{error:?}");
        assert!(
            error
                .to_string()
                .contains("a2ad.db is not a database of a2ad")
        );
    }
    assert_eq!(fs::read(&path).unwrap(), garbage);

    let foreign = dir.path().join("browser.db");
    let db = rusqlite::Connection::open(&foreign).unwrap();
    db.execute_batch("CREATE TABLE history (url TEXT)").unwrap();
    drop(db);
    let before = fs::read(&foreign).unwrap();
    for error in [open(&foreign).unwrap_err(), verify(&foreign).unwrap_err()] {
        assert!(matches!(error, OpenError::NotADatabase { .. }), "{error:?}");
    }
    assert_eq!(fs::read(&foreign).unwrap(), before);

    for error in [
        open(dir.path()).unwrap_err(),
        verify(dir.path()).unwrap_err(),
    ] {
        assert!(matches!(error, OpenError::NotADatabase { .. }), "{error:?}");
    }
    let nowhere = dir.path().join("no/such/folder/a2ad.db");
    for error in [open(&nowhere).unwrap_err(), verify(&nowhere).unwrap_err()] {
        assert!(matches!(error, OpenError::Io { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn a_truncated_file_is_refused() {
    let (_dir, path) = folder();
    let store = open(&path).unwrap();
    for _ in 0..200 {
        begin(&store).await;
    }
    drop(store);
    let whole = fs::read(&path).unwrap();
    for length in [whole.len() / 2, 8_192, 4_000, 100] {
        fs::write(&path, &whole[..length]).unwrap();
        let error = open(&path).unwrap_err();
        assert!(
            matches!(
                error,
                OpenError::Corrupt { .. } | OpenError::NotADatabase { .. }
            ),
            "{length}: {error:?}"
        );
        assert_eq!(fs::read(&path).unwrap(), whole[..length], "left as it was");
    }
}

#[test]
fn a_second_daemon_is_kept_out() {
    let (_dir, path) = folder();
    let first = open(&path).unwrap();
    for error in [open(&path).unwrap_err(), verify(&path).unwrap_err()] {
        assert!(matches!(error, OpenError::Locked { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("a2ad.db is in use by another a2ad"), "{text}");
        assert!(!text.contains('\n'));
    }
    first.close();
    let second = open(&path).unwrap();
    drop(second);
    open(&path).unwrap();
}

#[cfg(unix)]
#[test]
fn files_are_for_their_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let (dir, path) = folder();
    let store = open(&path).unwrap();
    let mut seen = 0;
    for file in fs::read_dir(dir.path()).unwrap() {
        let file = file.unwrap();
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{:?}", file.file_name());
        seen += 1;
    }
    assert!(seen >= 3, "the database, its log, its lock");
    drop(store);
}

#[cfg(unix)]
#[test]
fn a_file_that_cannot_be_written_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let (_dir, path) = folder();
    drop(open(&path).unwrap());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
    if fs::OpenOptions::new().write(true).open(&path).is_ok() {
        // Permissions mean nothing to the superuser, so there is nothing to see.
        return;
    }
    let error = open(&path).unwrap_err();
    assert!(matches!(error, OpenError::ReadOnly { .. }), "{error:?}");
}

#[tokio::test]
async fn what_is_acknowledged_is_in_the_files_at_that_moment() {
    // What a crash leaves behind is what the files hold, so a copy of them is opened.
    let (dir, path) = folder();
    let store = open(&path).unwrap();
    let crashed = dir.path().join("crashed.db");
    for round in 1..=20 {
        let key = begin(&store).await;
        if round % 7 != 0 {
            continue;
        }
        fs::copy(&path, &crashed).unwrap();
        fs::copy(
            dir.path().join("a2ad.db-wal"),
            dir.path().join("crashed.db-wal"),
        )
        .unwrap();
        let copy = open(&crashed).unwrap();
        let entries = copy.read(key, Number::ZERO, 1 << 20).await.unwrap();
        assert_eq!(entries.len(), 1);
        drop(copy);
        let report = verify(&crashed).unwrap();
        assert_eq!((report.tasks, report.problems), (round, vec![]));
        fs::remove_file(&crashed).unwrap();
    }
}

#[tokio::test]
async fn a_closed_store_says_so() {
    let (_dir, path) = folder();
    let store = open(&path).unwrap();
    let key = begin(&store).await;
    store.close();
    store.close();
    assert!(matches!(
        store.head(key).await.unwrap_err(),
        StoreError::Stopped(_)
    ));
    assert!(matches!(
        store.check().await.unwrap_err(),
        StoreError::Stopped(_)
    ));
    let log = fs::metadata(path.with_extension("db-wal"));
    assert!(
        log.map_or(0, |log| log.len()) == 0,
        "the log was copied back"
    );
}
