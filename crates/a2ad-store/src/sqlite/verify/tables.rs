//! What has to hold between tables.

use std::collections::BTreeMap;

use a2ad_proto::TaskState;
use rusqlite::Connection;

use super::name_of;
use crate::run::unpack_run_id;
use crate::sqlite::fail::Failure;
use crate::sqlite::open::meta;
use crate::walk::VerifyReport;

/// What SQLite itself can see: pages, indexes, constraints.
pub(super) fn integrity(db: &Connection, report: &mut VerifyReport) -> Result<(), Failure> {
    let mut statement = db.prepare("PRAGMA integrity_check(100)")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let text: String = row.get(0)?;
        if text != "ok" {
            report.report_all(format!("SQLite finds: {text}"));
        }
    }
    Ok(())
}

/// Rows that belong to nothing.
pub(super) fn strays(db: &Connection, report: &mut VerifyReport) -> Result<(), Failure> {
    // The task's key is in the upper bits of the ids of runs.
    const OF_TASK: [(&str, &str); 6] = [
        (
            "SELECT DISTINCT runs.id >> 22 FROM runs
             WHERE NOT EXISTS (SELECT 1 FROM tasks WHERE tasks.key = runs.id >> 22)",
            "entries of a task that is not there",
        ),
        (
            "SELECT task FROM snapshots WHERE NOT EXISTS (SELECT 1 FROM tasks WHERE key = task)",
            "a snapshot of a task that is not there",
        ),
        (
            "SELECT task FROM dead_turns WHERE NOT EXISTS (SELECT 1 FROM tasks WHERE key = task)",
            "a dead turn of a task that is not there",
        ),
        (
            "SELECT t.key FROM tasks t LEFT JOIN contexts c ON c.key = t.context
             WHERE t.context_id IS NULL AND (c.key IS NULL OR c.scope <> t.scope)",
            "its context is missing or another owner's",
        ),
        (
            "SELECT t.key FROM tasks t JOIN tasks o ON o.key = t.context
             WHERE t.context <> t.key
                 AND (t.scope <> o.scope OR t.context_id IS NOT o.context_id)",
            "its context is not that of the task that opened it",
        ),
        (
            "SELECT t.key FROM tasks t LEFT JOIN scopes s ON s.key = t.scope
                 LEFT JOIN agents a ON a.key = s.agent WHERE a.key IS NULL",
            "its owner or agent is missing",
        ),
    ];
    for (sql, what) in OF_TASK {
        let mut statement = db.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            report.report_of(&name_of(db, row.get(0)?), None, what);
        }
    }
    let mut statement = db.prepare(
        "SELECT DISTINCT run FROM chunks
         WHERE NOT EXISTS (SELECT 1 FROM runs WHERE id = run AND spilled > 0)",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (task, first) = unpack_run_id(row.get(0)?);
        let what = "chunks of a run that is not there";
        report.report_of(&name_of(db, task), Some(first), what);
    }
    Ok(())
}

/// Turns belong to living tasks; in each context the oldest may be worked on and the others wait.
pub(super) fn turns(db: &Connection, report: &mut VerifyReport) -> Result<(), Failure> {
    let mut statement = db.prepare(
        "SELECT u.task, u.number, u.state, u.attempt, u.holder IS NOT NULL, t.state,
             u.context = t.context, u.number <= t.version,
             u.seq = (SELECT min(seq) FROM turns WHERE context = u.context)
         FROM turns u LEFT JOIN tasks t ON t.key = u.task ORDER BY u.seq",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        report.turns += 1;
        let name = name_of(db, row.get(0)?);
        let number = row.get::<_, i64>(1)?.unsigned_abs();
        let mut complain = |what: &str| report.report_of(&name, Some(number), what);
        let (state, attempt): (u8, u32) = (row.get(2)?, row.get(3)?);
        let held: bool = row.get(4)?;
        let Some(task_state) = row.get::<_, Option<u8>>(5)? else {
            complain("a turn of a task that is not there");
            continue;
        };
        let ended =
            TaskState::from_number(i32::from(task_state)).is_some_and(TaskState::is_terminal);
        if ended {
            complain("an open turn of a task that has ended");
        }
        if !row.get::<_, bool>(6)? {
            complain("its turn is in another context than the task");
        }
        if !row.get::<_, bool>(7)? {
            complain("its turn is of an entry that is not there");
        }
        match (row.get::<_, bool>(8)?, state) {
            (true, 0) => complain("its turn waits although nothing is before it"),
            (false, 1 | 2) => complain("its turn has overtaken another"),
            (_, 0..=2) => {}
            _ => complain("its turn is in an unknown state"),
        }
        if (state == 2) != held || (state == 2 && attempt == 0) {
            complain("its turn's lease has no holder, or the holder no lease");
        }
    }
    Ok(())
}

/// Counters say how many tasks there are.
pub(super) fn counters(db: &Connection, report: &mut VerifyReport) -> Result<(), Failure> {
    let mut counts: BTreeMap<(i64, i64), (i64, i64)> = BTreeMap::new();
    let mut statement =
        db.prepare("SELECT scope, state, count(*) FROM tasks GROUP BY scope, state")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        counts.entry((row.get(0)?, row.get(1)?)).or_default().0 = row.get(2)?;
    }
    let mut statement = db.prepare("SELECT id >> 4, id & 15, n FROM counters")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        counts.entry((row.get(0)?, row.get(1)?)).or_default().1 = row.get(2)?;
    }
    for ((scope, state), (counted, stored)) in counts {
        if counted != stored {
            report.report_all(format!(
                "scope {scope} has {counted} tasks in state {state}, its counter says {stored}"
            ));
        }
    }
    Ok(())
}

/// The next key is above all that were given.
pub(super) fn keys(db: &Connection, report: &mut VerifyReport) -> Result<(), Failure> {
    let newest: i64 = db.query_row("SELECT coalesce(max(key), 0) FROM tasks", [], |row| {
        row.get(0)
    })?;
    match meta::<i64>(db, "next_key")? {
        Some(next) if next > newest => {}
        Some(next) => report.report_all(format!("the next key is {next}, but {newest} is used")),
        None => report.report_all("the next key is missing"),
    }
    Ok(())
}
