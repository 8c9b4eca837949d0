//! Commits that fail: nothing of them is told, and what happens next depends on why.

use a2ad_core::contract::sample::{follow_up, once};
use a2ad_core::keys::Number;
use a2ad_core::store::{ChangeError, StoreError};
use rusqlite::ffi;

use super::{Rig, commit};
use crate::sqlite::commit::{Core, Outcome, Work};
use crate::sqlite::read;
use crate::sqlite::verify;

/// A committed task, and three changes whose commit fails with `code`.
fn fail_with(rig: &mut Rig, core: &mut Core, code: i32) -> Vec<ChangeError> {
    let submission = rig.submission(core);
    let head = commit(core, submission).unwrap().head;
    let heard = rig.wake.heard().len();
    let mut keyed = rig.submission(core);
    keyed.once = Some(once(9, 9, 1));
    let batch = vec![
        rig.submission(core),
        rig.change(&head, &[follow_up("lost")]),
        keyed,
    ];
    core.fail_commit = Some(code);
    let results = core.commit(batch);
    assert_eq!(rig.wake.heard().len(), heard, "nothing was told");
    let entries = read::entries(core.db(), head.identity.key, Number::ZERO, 1 << 20).unwrap();
    assert_eq!(entries.len(), 1, "nothing was kept");
    results
        .into_iter()
        .map(|result| result.unwrap_err())
        .collect()
}

#[test]
fn a_commit_that_finds_no_space_publishes_nothing_and_the_next_one_works() {
    let mut rig = Rig::new();
    let mut core = rig.open();
    for error in fail_with(&mut rig, &mut core, ffi::SQLITE_FULL) {
        assert!(
            matches!(error, ChangeError::Store(StoreError::Full(_))),
            "{error:?}"
        );
    }
    let mut keyed = rig.submission(&core);
    keyed.once = Some(once(9, 9, 1));
    commit(&mut core, keyed).unwrap();
    assert!(rig.wake.stopped().is_empty());
    drop(core);
    assert_eq!(verify(&rig.path()).unwrap().problems, []);
}

#[test]
fn a_commit_that_cannot_be_written_for_now_publishes_nothing() {
    let mut rig = Rig::new();
    let mut core = rig.open();
    for code in [ffi::SQLITE_READONLY, ffi::SQLITE_BUSY] {
        for error in fail_with(&mut rig, &mut core, code) {
            assert!(
                matches!(error, ChangeError::Store(StoreError::Unavailable(_))),
                "{error:?}"
            );
        }
    }
    assert!(rig.wake.stopped().is_empty());
}

#[test]
fn a_failed_sync_stops_the_store_for_good() {
    for code in [ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_IOERR_WRITE] {
        let mut rig = Rig::new();
        let mut core = rig.open();
        for error in fail_with(&mut rig, &mut core, code) {
            assert!(
                matches!(error, ChangeError::Store(StoreError::Stopped(_))),
                "{error:?}"
            );
        }
        assert_eq!(rig.wake.stopped().len(), 1);
        // The disk may be well again; the store does not find out.
        let submission = rig.submission(&core);
        let error = commit(&mut core, submission).unwrap_err();
        assert!(matches!(error, ChangeError::Store(StoreError::Stopped(_))));
        let outcome = core.run(vec![Work::Check]).pop().unwrap();
        assert!(matches!(outcome, Outcome::Refused(StoreError::Stopped(_))));
        assert_eq!(rig.wake.stopped().len(), 1, "told once");
    }
}

#[test]
fn names_made_by_a_failed_commit_are_made_again() {
    let mut rig = Rig::new();
    let mut core = rig.open();
    // The very first commit creates the agent and the scope; if they stayed in the cache, the
    // second would refer to rows that are not there.
    let first = rig.submission(&core);
    core.fail_commit = Some(ffi::SQLITE_FULL);
    commit(&mut core, first.clone()).unwrap_err();
    commit(&mut core, first).unwrap();
    drop(core);
    assert_eq!(verify(&rig.path()).unwrap().problems, []);
}

#[test]
fn a_full_disk_refuses_writes_and_keeps_reading_and_recovers() {
    let mut rig = Rig::new();
    let mut core = rig.open();
    let submission = rig.submission(&core);
    let head = commit(&mut core, submission).unwrap().head;
    let pages: i64 = core
        .db()
        .pragma_query_value(None, "page_count", |row| row.get(0))
        .unwrap();
    set_max_pages(&core, pages + 4);

    let large = "x".repeat(20_000);
    let mut committed = vec![head.identity.key];
    let refused = loop {
        let submission = rig.submission(&core);
        let key = submission.head.identity.key;
        let long = rig.change(&submission.head, &[follow_up(&large)]);
        let mut results = core.commit(vec![submission, long]);
        let last = results.pop().unwrap();
        match last {
            Ok(_) => committed.push(key),
            Err(error) => break (key, error),
        }
        assert!(committed.len() < 100, "the disk never fills up");
    };
    assert!(
        matches!(refused.1, ChangeError::Store(StoreError::Full(_))),
        "{:?}",
        refused.1
    );
    for key in &committed {
        let entries = read::entries(core.db(), *key, Number::ZERO, 1 << 20).unwrap();
        assert!(!entries.is_empty(), "what was stored can be read");
    }
    let entries = read::entries(core.db(), refused.0, Number::ZERO, 1 << 20).unwrap();
    assert!(entries.is_empty(), "of the refused one nothing was kept");
    assert!(rig.wake.stopped().is_empty());

    set_max_pages(&core, 1_000_000);
    let submission = rig.submission(&core);
    commit(&mut core, submission).unwrap();
    drop(core);
    assert_eq!(verify(&rig.path()).unwrap().problems, []);
}

fn set_max_pages(core: &Core, pages: i64) {
    core.db()
        .query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))
        .unwrap();
}
