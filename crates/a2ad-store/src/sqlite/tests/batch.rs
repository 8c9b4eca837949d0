//! Several changes in one transaction.

use a2ad_core::contract::sample::{follow_up, once};
use a2ad_core::keys::{Attempt, Number};
use a2ad_core::store::{ChangeError, ContextChoice};
use a2ad_core::task::{Command, Fold, apply};
use a2ad_proto::Timestamp;

use super::{Rig, commit};
use crate::sqlite::commit::{Outcome, Work};
use crate::sqlite::verify;

#[test]
fn in_one_transaction_each_change_succeeds_or_fails_by_itself() {
    let mut rig = Rig::new();
    let mut core = rig.open();
    let submission = rig.submission(&core);
    let head = commit(&mut core, submission).unwrap().head;
    let good = rig.submission(&core);
    let stale = {
        let mut stale = rig.change(&head, &[follow_up("stale")]);
        stale.expected = Number(7);
        stale.entries[0].number = Number(8);
        stale.head.version = Number(8);
        stale
    };
    let mut fenced = rig.change(&head, &[follow_up("fenced")]);
    fenced.fence = Some((Number(1), Attempt(3)));
    let mut first_time = rig.submission(&core);
    first_time.once = Some(once(1, 1, 1));
    let mut second_time = rig.submission(&core);
    second_time.once = Some(once(1, 1, 1));
    let mut full = rig.submission(&core);
    full.context_turns_max = 0;
    let mut malformed = rig.submission(&core);
    malformed.entries[0].number = Number(2);
    let next = rig.change(&head, &[follow_up("next")]);
    let same_version = rig.change(&head, &[follow_up("too late")]);

    let results = core.commit(vec![
        good,
        stale,
        fenced,
        first_time.clone(),
        second_time,
        full,
        malformed,
        next,
        same_version,
    ]);
    let said: Vec<String> = results
        .iter()
        .map(|result| match result {
            Ok(applied) => format!("version {}", applied.head.version),
            Err(ChangeError::Store(_)) => "store".to_owned(),
            Err(ChangeError::Repeated(hit)) => {
                assert_eq!(hit.task, first_time.head.identity.key);
                "repeated".to_owned()
            }
            Err(error) => format!("{error:?}"),
        })
        .collect();
    assert_eq!(
        said,
        [
            "version 1",
            "Conflict",
            "Fenced",
            "version 1",
            "repeated",
            "ContextFull",
            "store",
            "version 2",
            "Conflict"
        ]
    );
    assert_eq!(rig.wake.heard().len(), 4);
    let tasks: i64 = core
        .db()
        .query_row("SELECT count(*) FROM tasks", [], |row| row.get(0))
        .unwrap();
    assert_eq!(tasks, 3);
    drop(core);
    assert_eq!(verify(&rig.path()).unwrap().problems, []);
}

#[test]
fn the_changes_of_a_task_in_one_transaction_share_a_run_and_a_row() {
    let mut rig = Rig::new();
    let mut core = rig.open();
    let submission = rig.submission(&core);
    let mut head = submission.head.clone();
    let mut changes = vec![submission];
    for n in 0..5 {
        let change = rig.change(&head, &[follow_up(&n.to_string())]);
        head = change.head.clone();
        changes.push(change);
    }
    let results = core.commit(changes);
    for (n, result) in results.iter().enumerate() {
        let head = &result.as_ref().unwrap().head;
        assert_eq!(head.version, Number(n as u64 + 1));
        assert_eq!(head.turns.len(), n + 1);
    }
    let runs: (i64, i64) = core
        .db()
        .query_row("SELECT count(*), sum(count) FROM runs", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap();
    assert_eq!(runs, (1, 6));
    drop(core);
    let report = verify(&rig.path()).unwrap();
    assert_eq!((report.entries, report.runs, report.turns), (6, 1, 6));
    assert_eq!(report.problems, []);
}

#[test]
fn a_context_can_be_joined_in_the_transaction_that_opens_it() {
    let mut rig = Rig::new();
    let mut core = rig.open();
    let first = rig.submission(&core);
    let mut second = rig.submission(&core);
    second.context = ContextChoice::Named(first.head.identity.context_id.clone());
    let results = core.commit(vec![first.clone(), second]);
    let joined = &results[1].as_ref().unwrap().head.identity;
    assert_eq!(joined.context, first.head.identity.context);
    assert_eq!(joined.context_id, first.head.identity.context_id);
    drop(core);
    assert_eq!(verify(&rig.path()).unwrap().problems, []);
}

#[test]
fn a_purge_sees_what_came_before_it_in_the_same_transaction() {
    let mut rig = Rig::new();
    let mut core = rig.open();
    let submission = rig.submission(&core);
    let head = submission.head.clone();
    let cancel = rig.change(&head, &[Command::Cancel { metadata: None }]);
    let before = Timestamp::from_millis(rig.now().as_millis() + 1);
    let kept = rig.submission(&core);
    let more = rig.change(&kept.head, &[follow_up("more")]);
    let outcomes = core.run(vec![
        Work::Change(Box::new(submission)),
        Work::Change(Box::new(cancel.clone())),
        Work::Change(Box::new(kept)),
        Work::Purge { before, limit: 10 },
        Work::Change(Box::new(cancel)),
        Work::Change(Box::new(more)),
    ]);
    let [one, two, _, purged, gone, other] = outcomes.try_into().unwrap();
    assert!(matches!(one, Outcome::Change(Ok(_))));
    assert!(matches!(two, Outcome::Change(Ok(_))));
    assert!(matches!(purged, Outcome::Purged(keys) if keys == [head.identity.key]));
    assert!(matches!(gone, Outcome::Change(Err(ChangeError::Conflict))));
    assert!(matches!(other, Outcome::Change(Ok(_))));
    drop(core);
    let report = verify(&rig.path()).unwrap();
    assert_eq!((report.tasks, report.problems), (1, vec![]));
}

#[test]
fn only_a_long_journal_has_a_snapshot() {
    let mut rig = Rig::new();
    let mut core = rig.open();
    for (text, rows) in [("short".to_owned(), 0), ("long".repeat(5_000), 1)] {
        let submission = rig.submission(&core);
        let mut change = rig.change(&submission.head, &[follow_up(&text)]);
        let mut fold = Fold::default();
        for entry in submission.entries.iter().chain(&change.entries) {
            apply(&mut fold, entry.record().unwrap());
        }
        change.snapshot = Some(fold.snapshot());
        for result in core.commit(vec![submission, change]) {
            result.unwrap();
        }
        let snapshots: i64 = core
            .db()
            .query_row("SELECT count(*) FROM snapshots", [], |row| row.get(0))
            .unwrap();
        assert_eq!(snapshots, rows);
    }
}
