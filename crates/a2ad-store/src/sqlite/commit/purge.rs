//! Deleting old tasks with all that belongs to them.

use a2ad_core::keys::TaskKey;
use a2ad_proto::Timestamp;
use rusqlite::Connection;

use super::Core;
use super::batch::{Batch, ENDED};
use crate::run::task_runs;
use crate::sqlite::fail::Failure;

struct Old {
    status_at: i64,
    key: i64,
    scope: i64,
    /// The context, if it has a row that goes with its last task.
    named_context: Option<i64>,
    state: u8,
}

impl Core {
    /// Deletes tasks that ended before `before`, those that ended first going first.
    pub(super) fn purge(
        &mut self,
        batch: &mut Batch,
        before: Timestamp,
        limit: u32,
    ) -> Result<Vec<TaskKey>, Failure> {
        // Deletes work on the tables, so the tables have to hold what the batch has gathered.
        batch.flush(&self.db)?;
        let mut old = Vec::new();
        for state in ENDED {
            find_ended(&self.db, state as u8, before.as_millis(), limit, &mut old)?;
        }
        old.sort_unstable_by_key(|task| (task.status_at, task.key));
        old.truncate(limit as usize);
        self.delete(batch, &old)
    }

    /// Deletes the tasks of a context that ended first, until it has `keep`, or none but `newest`
    /// that has ended.
    pub(super) fn trim(
        &mut self,
        batch: &mut Batch,
        context: i64,
        keep: u32,
        newest: TaskKey,
    ) -> Result<(), Failure> {
        batch.flush(&self.db)?;
        let surplus = count_in_context(&self.db, context)?.saturating_sub(i64::from(keep));
        if surplus <= 0 {
            return Ok(());
        }
        let old = ended_in_context(&self.db, context, newest, surplus)?;
        let deleted = self.delete(batch, &old)?;
        batch.deleted.extend(deleted);
        Ok(())
    }

    fn delete(&mut self, batch: &mut Batch, old: &[Old]) -> Result<Vec<TaskKey>, Failure> {
        for task in old {
            delete(&self.db, task)?;
            batch.count(task.scope, task.state, -1);
        }
        self.once.sweep(&self.db, old.len())?;
        Ok(old.iter().map(|task| TaskKey(task.key)).collect())
    }
}

/// The task that opened the context is not in the index.
fn count_in_context(db: &Connection, context: i64) -> Result<i64, Failure> {
    let mut statement = db.prepare_cached(
        "SELECT (SELECT count(*) FROM tasks INDEXED BY tasks_in_context
                 WHERE context = ?1 AND context <> key)
              + (SELECT count(*) FROM tasks WHERE key = ?1 AND context = ?1)",
    )?;
    Ok(statement.query_row([context], |row| row.get(0))?)
}

/// The tasks of a context that have ended, but for one, those that ended first coming first.
fn ended_in_context(
    db: &Connection,
    context: i64,
    but: TaskKey,
    limit: i64,
) -> Result<Vec<Old>, Failure> {
    let mut statement = db.prepare_cached(
        "SELECT status_at, key, scope, iif(context_id IS NULL, context, NULL), state FROM (
             SELECT * FROM tasks WHERE key = ?1 AND context = ?1
             UNION ALL
             SELECT * FROM tasks INDEXED BY tasks_in_context WHERE context = ?1 AND context <> key)
         WHERE state IN (3, 4, 5, 7) AND key <> ?2
             AND NOT EXISTS (SELECT 1 FROM turns WHERE task = key)
         ORDER BY status_at, key LIMIT ?3",
    )?;
    let mut rows = statement.query((context, but.0, limit))?;
    let mut old = Vec::new();
    while let Some(row) = rows.next()? {
        old.push(Old {
            status_at: row.get(0)?,
            key: row.get(1)?,
            scope: row.get(2)?,
            named_context: row.get(3)?,
            state: row.get(4)?,
        });
    }
    Ok(old)
}

/// `status_at` is when the task ended, since nothing moves it afterwards. A task with an open turn
/// would not be ended; should there be one, it is left for `verify` to report.
fn find_ended(
    db: &Connection,
    state: u8,
    before_ms: i64,
    limit: u32,
    old: &mut Vec<Old>,
) -> Result<(), Failure> {
    // The constant lets the planner see that the partial index covers the question.
    let mut statement = db.prepare_cached(
        "SELECT status_at, key, scope, iif(context_id IS NULL, context, NULL)
         FROM tasks INDEXED BY tasks_at_rest
         WHERE state = ?1 AND state >= 3 AND status_at < ?2
             AND NOT EXISTS (SELECT 1 FROM turns WHERE task = tasks.key)
         ORDER BY status_at, key LIMIT ?3",
    )?;
    let mut rows = statement.query((state, before_ms, limit))?;
    while let Some(row) = rows.next()? {
        old.push(Old {
            status_at: row.get(0)?,
            key: row.get(1)?,
            scope: row.get(2)?,
            named_context: row.get(3)?,
            state,
        });
    }
    Ok(())
}

fn delete(db: &Connection, task: &Old) -> Result<(), Failure> {
    let runs = task_runs(task.key);
    db.prepare_cached("DELETE FROM chunks WHERE run BETWEEN ?1 AND ?2")?
        .execute(runs)?;
    db.prepare_cached("DELETE FROM runs WHERE id BETWEEN ?1 AND ?2")?
        .execute(runs)?;
    db.prepare_cached("DELETE FROM snapshots WHERE task = ?1")?
        .execute([task.key])?;
    db.prepare_cached("DELETE FROM dead_turns WHERE task = ?1")?
        .execute([task.key])?;
    db.prepare_cached("DELETE FROM push_configs WHERE task = ?1")?
        .execute([task.key])?;
    db.prepare_cached("DELETE FROM tasks WHERE key = ?1")?
        .execute([task.key])?;
    if let Some(context) = task.named_context {
        db.prepare_cached(
            "DELETE FROM contexts WHERE key = ?1
                 AND NOT EXISTS (SELECT 1 FROM tasks WHERE key = ?1 AND context = ?1)
                 AND NOT EXISTS (SELECT 1 FROM tasks INDEXED BY tasks_in_context
                     WHERE context = ?1 AND context <> key)",
        )?
        .execute([context])?;
    }
    Ok(())
}
