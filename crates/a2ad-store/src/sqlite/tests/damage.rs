//! What was written is not what is read: it is found, and named.

use std::fs;

use a2ad_core::contract::sample::{alice, change, follow_up, submit, unborn};
use a2ad_core::keys::{Number, TaskKey};
use a2ad_core::task::{Command, Fold, apply};

use super::{Rig, commit};
use crate::sqlite::fail::Failure;
use crate::sqlite::{read, snapshots};
use crate::verify;

/// A task with a journal of four runs, one of them in chunks, and a snapshot; the text to look for
/// in the file stands once in each.
fn prepared(rig: &mut Rig) -> TaskKey {
    let mut core = rig.open();
    rig.next_key += 1;
    let head = unborn(core.public_ids(), rig.next_key, &*rig.random, &alice());
    let first = change(&head, &[submit("first-text")], rig.now());
    let mut head = commit(&mut core, first).unwrap().head;
    let spilled = format!("{}spilled-text", "s".repeat(600_000));
    for text in ["second-text", "third-text", &spilled] {
        let next = rig.change(&head, &[follow_up(text)]);
        head = commit(&mut core, next).unwrap().head;
    }
    let key = head.identity.key;
    let mut fold = Fold::default();
    for entry in read::entries(core.db(), key, Number::ZERO, usize::MAX).unwrap() {
        apply(&mut fold, entry.record().unwrap());
    }
    let mut frozen = fold.snapshot();
    frozen.body = String::from_utf8(frozen.body.to_vec())
        .unwrap()
        .replace("second-text", "frozen-text")
        .into();
    frozen.artifacts = "[\"artifact-text\"]".into();
    snapshots::write(core.db(), key, &frozen).unwrap();
    drop(core);
    assert_eq!(verify(&rig.path()).unwrap().problems, []);
    key
}

/// Flips one bit of the file where `text` stands.
fn flip(rig: &Rig, text: &str) {
    let mut bytes = fs::read(rig.path()).unwrap();
    let found: Vec<usize> = bytes
        .windows(text.len())
        .enumerate()
        .filter_map(|(at, window)| (window == text.as_bytes()).then_some(at))
        .collect();
    assert!(!found.is_empty(), "{text} is in the file");
    for at in found {
        bytes[at] ^= 1;
    }
    fs::write(rig.path(), bytes).unwrap();
}

fn problems(rig: &Rig) -> Vec<String> {
    let report = verify(&rig.path()).unwrap();
    assert_eq!(report.problem_count, report.problems.len() as u64);
    assert_eq!(report.is_sound(), report.problems.is_empty());
    report.problems.iter().map(ToString::to_string).collect()
}

#[test]
fn a_flipped_bit_in_a_journal_is_found_on_reading_and_by_verify() {
    for (text, entry) in [("first-text", 1), ("third-text", 3), ("spilled-text", 4)] {
        let mut rig = Rig::new();
        let key = prepared(&mut rig);
        flip(&rig, text);
        let core = rig.open();
        let id = read::head(core.db(), &mut Default::default(), key)
            .unwrap()
            .unwrap()
            .identity
            .id
            .clone();
        let error = read::entries(core.db(), key, Number::ZERO, usize::MAX).unwrap_err();
        assert!(
            matches!(&error, Failure::Damaged(what) if what.contains("do not match their hash")),
            "{error:?}"
        );
        // What stands before the damage can still be read in small pages.
        let page = read::entries(core.db(), key, Number::ZERO, 1);
        assert_eq!(page.is_ok(), entry > 2, "entry {entry}");
        drop(core);
        let found = problems(&rig);
        let named = format!("task {id}: entry {entry}: ");
        assert!(
            found.iter().any(|problem| problem.starts_with(&named)),
            "{found:?}"
        );
    }
}

#[test]
fn a_damaged_snapshot_counts_as_none_and_verify_reports_it() {
    for (text, in_artifacts) in [("frozen-text", false), ("artifact-text", true)] {
        let mut rig = Rig::new();
        let key = prepared(&mut rig);
        flip(&rig, text);
        let core = rig.open();
        assert_eq!(snapshots::find(core.db(), key, true).unwrap(), None);
        // A list that does not read the artifacts does not see that they are damaged.
        let without = snapshots::find(core.db(), key, false).unwrap();
        assert_eq!(without.is_some(), in_artifacts);
        assert!(read::entries(core.db(), key, Number::ZERO, usize::MAX).is_ok());
        drop(core);
        let found = problems(&rig);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].ends_with("its snapshot does not match its hash"));
    }
}

#[test]
fn verify_names_everything_that_does_not_hold() {
    let cases: [(&str, &str); 19] = [
        (
            "DELETE FROM runs WHERE id & 4194303 = 2",
            "entry 3: it follows entry 1",
        ),
        (
            "DELETE FROM runs WHERE id & 4194303 = 4",
            "ends at entry 3, its head says 4",
        ),
        ("DELETE FROM chunks WHERE n = 1", "of 3 chunks are there"),
        (
            "UPDATE runs SET prev = zeroblob(16)",
            "do not match their hash",
        ),
        (
            "UPDATE runs SET count = 2 WHERE id & 4194303 = 1",
            "do not match their hash",
        ),
        ("UPDATE tasks SET version = 9", "its head says 9"),
        (
            "UPDATE tasks SET chain = zeroblob(16)",
            "has not the hash of its last run",
        ),
        ("UPDATE tasks SET state = 3", "not in its journal's state"),
        (
            "UPDATE tasks SET context = 77",
            "its context's id does not lead there",
        ),
        (
            "UPDATE tasks SET context_id = NULL",
            "its context is missing",
        ),
        (
            "INSERT INTO tasks SELECT 2, scope, context, state, version, status_at, bytes, cancel,
                 id, zeroblob(16), chain, artifacts FROM tasks",
            "its context is not that of the task that opened it",
        ),
        (
            "UPDATE tasks SET scope = 77",
            "its owner or agent is missing",
        ),
        (
            "UPDATE snapshots SET task = 77",
            "key 77: a snapshot of a task that is not there",
        ),
        (
            "UPDATE counters SET n = 5",
            "has 1 tasks in state 1, its counter says 5",
        ),
        (
            "UPDATE turns SET task = 77 WHERE seq = 1",
            "a turn of a task that is not there",
        ),
        (
            "UPDATE turns SET state = 1",
            "entry 2: its turn has overtaken another",
        ),
        (
            "UPDATE turns SET state = 0",
            "entry 1: its turn waits although nothing is before it",
        ),
        ("UPDATE turns SET state = 2 WHERE seq = 1", "no holder"),
        (
            "UPDATE meta SET value = 1 WHERE key = 'next_key'",
            "the next key is 1, but 1 is used",
        ),
    ];
    for (sql, expected) in cases {
        let mut rig = Rig::new();
        prepared(&mut rig);
        let db = rig.surgery();
        assert!(db.execute(sql, []).unwrap() > 0, "{sql}");
        drop(db);
        let found = problems(&rig);
        assert!(
            found.iter().any(|problem| problem.contains(expected)),
            "{sql}: {found:?}"
        );
    }
}

#[test]
fn verify_finds_entries_after_the_end_and_turns_of_ended_tasks() {
    let mut rig = Rig::new();
    let mut core = rig.open();
    let submission = rig.submission(&core);
    let head = commit(&mut core, submission).unwrap().head;
    let mut end = rig.change(&head, &[Command::Cancel { metadata: None }]);
    end.turns.clear();
    let ended = commit(&mut core, end).unwrap().head;
    // No decision would allow this, so it is put together by hand.
    let mut again = rig.change(&head, &[Command::Cancel { metadata: None }]);
    again.expected = ended.version;
    for entry in &mut again.entries {
        entry.number = Number(entry.number.0 + 3);
    }
    again.head.version = Number(7);
    again.turns.clear();
    commit(&mut core, again).unwrap();
    drop(core);
    let found = problems(&rig);
    assert!(
        found
            .iter()
            .any(|problem| problem.contains("entry 7: it comes after the task ended at entry 4")),
        "{found:?}"
    );
    assert!(
        found
            .iter()
            .any(|problem| problem.contains("an open turn of a task that has ended")),
        "{found:?}"
    );
}

#[test]
fn a_broken_page_is_reported_and_does_not_stop_the_report() {
    let mut rig = Rig::new();
    prepared(&mut rig);
    let mut bytes = fs::read(rig.path()).unwrap();
    let last = bytes.len() - 8_192;
    bytes[last..last + 64].fill(0xff);
    fs::write(rig.path(), bytes).unwrap();
    let report = verify(&rig.path()).unwrap();
    assert!(!report.is_sound());
}

#[test]
fn a_secret_that_changed_is_found() {
    let mut rig = Rig::new();
    prepared(&mut rig);
    let db = rusqlite::Connection::open(rig.path()).unwrap();
    db.execute(
        "UPDATE meta SET value = zeroblob(16) WHERE key = 'secret'",
        [],
    )
    .unwrap();
    assert!(problems(&rig)[0].contains("does not lead to it"));
    db.execute("DELETE FROM meta WHERE key = 'secret'", [])
        .unwrap();
    assert!(problems(&rig)[0].contains("the secret of its ids is missing"));
}
