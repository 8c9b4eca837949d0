//! Request keys: found wherever they are on their way from the log to their buckets.

use a2ad_core::keys::TaskKey;
use a2ad_core::store::{Change, ChangeError, Once};
use a2ad_core::task::Command;
use a2ad_proto::Timestamp;
use rusqlite::ffi;

use super::{Rig, commit};
use crate::sqlite::commit::{Core, Outcome, Work};
use crate::sqlite::once::{self, Bucket};
use crate::sqlite::verify;

/// A task whose request has this key.
fn keyed(rig: &mut Rig, core: &Core, key: u128) -> Change {
    let mut change = rig.submission(core);
    change.once = Some(Once {
        key: key.to_le_bytes(),
        body: [7; 16],
        number: change.head.version,
    });
    change
}

/// Tags all over the range, in no order.
fn scattered(n: u128) -> u128 {
    (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
}

/// Which task the writer finds for a key, and that a reader finds the same.
fn find(rig: &mut Rig, core: &mut Core, key: u128) -> Option<TaskKey> {
    let again = keyed(rig, core, key);
    // Refused for another reason if it is no repeat, so that asking changes nothing.
    let asked = Change {
        context_turns_max: 0,
        context_tasks_max: None,
        ..again
    };
    let found = match commit(core, asked).unwrap_err() {
        ChangeError::Repeated(hit) => Some(hit.task),
        ChangeError::ContextFull => None,
        other => panic!("{other:?}"),
    };
    let bytes = key.to_le_bytes();
    let waiting = once::waiting_places(&core.waiting(), &bytes);
    let read = once::find(core.db(), &waiting, 1, &bytes).unwrap();
    assert_eq!(read.map(|hit| hit.task), found);
    found
}

fn open(rig: &mut Rig) -> Core {
    let mut core = rig.open();
    core.once_mut().waiting_min = 40;
    core
}

fn count(core: &Core, sql: &str) -> i64 {
    core.db().query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn a_request_is_found_at_every_step_of_its_way_and_after_a_crash_at_any() {
    let mut rig = Rig::new();
    let mut core = open(&mut rig);
    let mut known = Vec::new();
    for round in 0..60 {
        let keys: Vec<u128> = (0..round % 40 + 1)
            .map(|n| scattered(known.len() as u128 + n))
            .collect();
        let changes: Vec<Change> = keys
            .iter()
            .map(|key| keyed(&mut rig, &core, *key))
            .collect();
        let tasks = changes.iter().map(|change| change.head.identity.key);
        let tasks: Vec<TaskKey> = tasks.collect();
        if round % 7 == 3 {
            // What was moved in a transaction that did not come about was not moved.
            core.fail_commit = Some(ffi::SQLITE_FULL);
            for result in core.commit(changes.clone()) {
                result.unwrap_err();
            }
            assert_eq!(find(&mut rig, &mut core, keys[0]), None);
        }
        for result in core.commit(changes) {
            result.unwrap();
        }
        known.extend(keys.into_iter().zip(tasks));
        if round % 11 == 5 {
            // Nothing is written at the end, so this is what a crash leaves.
            drop(core);
            assert_eq!(verify(&rig.path()).unwrap().problems, []);
            core = open(&mut rig);
        }
        for at in [0, known.len() / 3, known.len() / 2, known.len() - 1] {
            let (key, task) = known[at];
            assert_eq!(find(&mut rig, &mut core, key), Some(task));
        }
    }
    for (key, task) in &known {
        assert_eq!(find(&mut rig, &mut core, *key), Some(*task));
    }
    assert_eq!(find(&mut rig, &mut core, scattered(1 << 40)), None);
    assert!(
        count(&core, "SELECT count(*) FROM once") > 1,
        "it was split"
    );
    let rows = count(&core, "SELECT count(*) FROM once_log");
    assert!(rows < 30, "{rows} rows of 60 are left in the log");
    drop(core);
    assert_eq!(verify(&rig.path()).unwrap().problems, []);
}

#[test]
fn keys_with_the_same_tag_are_told_apart() {
    let mut rig = Rig::new();
    let mut core = open(&mut rig);
    // The tag is the lower half of the key.
    let alike: Vec<u128> = (0..30).map(|n| (n << 64) | 5).collect();
    let mut tasks = Vec::new();
    for key in &alike {
        let change = keyed(&mut rig, &core, *key);
        tasks.push(change.head.identity.key);
        commit(&mut core, change).unwrap();
    }
    for n in 0..100 {
        let change = keyed(&mut rig, &core, scattered(n));
        commit(&mut core, change).unwrap();
    }
    let moved = Bucket::read(core.db(), 5).unwrap().places(5).count();
    assert_eq!(moved, alike.len());
    for (key, task) in alike.iter().zip(tasks) {
        assert_eq!(find(&mut rig, &mut core, *key), Some(task));
    }
    assert_eq!(find(&mut rig, &mut core, (99 << 64) | 5), None);
}

#[test]
fn keys_of_tasks_that_are_gone_count_no_more_and_are_swept_away() {
    let mut rig = Rig::new();
    let mut core = open(&mut rig);
    let keys: Vec<u128> = (0..2_000).map(scattered).collect();
    for some in keys.chunks(100) {
        let mut changes = Vec::new();
        for key in some {
            let change = keyed(&mut rig, &core, *key);
            let cancel = rig.change(&change.head, &[Command::Cancel { metadata: None }]);
            changes.extend([change, cancel]);
        }
        for result in core.commit(changes) {
            result.unwrap();
        }
    }
    let kept = keyed(&mut rig, &core, scattered(1 << 50));
    let kept_task = kept.head.identity.key;
    commit(&mut core, kept).unwrap();
    let pairs = |core: &Core| {
        count(
            core,
            "SELECT coalesce(sum(length(pairs)), 0) / 16 FROM once",
        )
    };
    let moved = pairs(&core);
    assert!(moved > 1_800, "{moved} are in buckets");
    // A key may be used again as soon as its task is gone, whether its pair is still there or not.
    let before = Timestamp::from_millis(rig.now().as_millis() + 1);
    let mut gone = 0;
    while let Outcome::Purged(tasks) = core.run(vec![Work::Purge { before, limit: 250 }]).remove(0)
        && !tasks.is_empty()
    {
        gone += tasks.len();
        assert_eq!(find(&mut rig, &mut core, keys[gone - 1]), None);
    }
    assert_eq!(gone, keys.len());
    let left = pairs(&core);
    assert!(left < moved / 3, "{left} of {moved} pairs are left");
    let mut again = Vec::new();
    for n in [0, 999, 1_999] {
        let change = keyed(&mut rig, &core, keys[n]);
        again.push((keys[n], change.head.identity.key));
        commit(&mut core, change).unwrap();
    }
    for (key, task) in again {
        assert_eq!(find(&mut rig, &mut core, key), Some(task));
    }
    assert_eq!(
        find(&mut rig, &mut core, scattered(1 << 50)),
        Some(kept_task)
    );
    drop(core);
    assert_eq!(verify(&rig.path()).unwrap().problems, []);
}

#[test]
fn a_purge_that_does_not_come_about_forgets_no_request() {
    let mut rig = Rig::new();
    let mut core = open(&mut rig);
    let keys: Vec<u128> = (0..300).map(scattered).collect();
    for key in &keys {
        let change = keyed(&mut rig, &core, *key);
        let cancel = rig.change(&change.head, &[Command::Cancel { metadata: None }]);
        for result in core.commit(vec![change, cancel]) {
            result.unwrap();
        }
    }
    // In one transaction: tasks go, their pairs with them, and others take their place. Nothing is
    // known of the buckets before.
    drop(core);
    let mut core = open(&mut rig);
    core.once_mut().waiting_min = 0;
    let before = Timestamp::from_millis(rig.now().as_millis() + 1);
    let mut work = vec![Work::Purge { before, limit: 999 }];
    for n in 300..400 {
        let change = keyed(&mut rig, &core, scattered(n));
        work.push(Work::Change(Box::new(change)));
    }
    core.fail_commit = Some(ffi::SQLITE_FULL);
    for outcome in core.run(work) {
        assert!(matches!(outcome, Outcome::Refused(_)));
    }
    for key in keys {
        assert!(find(&mut rig, &mut core, key).is_some());
    }
}

#[test]
fn verify_finds_requests_that_would_not_be_recognised() {
    for (sql, expected) in [
        ("DELETE FROM once", "would not be recognised"),
        (
            "UPDATE once SET first = first + (1 << 61) WHERE first < 0",
            "are not in order",
        ),
        (
            "UPDATE once SET pairs = substr(pairs, 17, 4)",
            "are not in order",
        ),
        (
            "UPDATE once_log SET pairs = zeroblob(3)",
            "request keys is cut short",
        ),
    ] {
        let mut rig = Rig::new();
        let mut core = open(&mut rig);
        for n in 0..200 {
            let change = keyed(&mut rig, &core, scattered(n));
            commit(&mut core, change).unwrap();
        }
        drop(core);
        let db = rig.surgery();
        assert!(db.execute(sql, []).unwrap() > 0, "{sql}");
        drop(db);
        let found = verify(&rig.path()).unwrap().problems;
        assert!(
            found.iter().any(|problem| problem.what.contains(expected)),
            "{sql}: {found:?}"
        );
    }
}
