//! Deleting old tasks with all that belongs to them.

use std::collections::BTreeMap;

use a2ad_core::keys::TaskKey;
use a2ad_proto::{TaskState, Timestamp};
use tokio_postgres::Row;

use super::fail::Failure;
use super::session::{Session, Sixteen};
use crate::request;

/// Ended tasks never move; their state says so.
const ENDED: [i16; 4] = [
    TaskState::Completed as i16,
    TaskState::Failed as i16,
    TaskState::Canceled as i16,
    TaskState::Rejected as i16,
];

/// `status_at` is when the task ended, since nothing moves it afterwards.
const FIND: &str = "
    SELECT p.key, p.context FROM unnest($1::int2[]) AS s (state) CROSS JOIN LATERAL (
        SELECT status_at, key, context FROM tasks t
        WHERE state = s.state AND state >= 3 AND status_at < $2
            AND NOT EXISTS (SELECT 1 FROM turns u WHERE u.task = t.key)
        ORDER BY status_at, key LIMIT $3) p
    ORDER BY p.status_at, p.key LIMIT $3";

const LOCK: &str = "SELECT key FROM contexts WHERE key = ANY($1::int8[]) ORDER BY key FOR UPDATE";

/// Another instance may have been here first: what is gone is not deleted, nor counted, again.
const DELETE_TASKS: &str =
    "DELETE FROM tasks WHERE key = ANY($1::int8[]) RETURNING key, scope, state";

const DELETE_RUNS: &str = "
    DELETE FROM runs r USING unnest($1::int8[]) AS w (task)
    WHERE r.id >= w.task << 22 AND r.id < (w.task + 1) << 22
    RETURNING r.id, r.once";

const DELETE_SNAPSHOTS: &str = "DELETE FROM snapshots WHERE task = ANY($1::int8[])";
const DELETE_DEAD: &str = "DELETE FROM dead_turns WHERE task = ANY($1::int8[])";
const DELETE_PUSH: &str = "DELETE FROM push_configs WHERE task = ANY($1::int8[])";

const DELETE_REQUESTS: &str = "
    DELETE FROM requests r USING unnest($1::int8[], $2::uuid[], $3::int8[]) AS w (scope, key, task)
    WHERE r.scope = w.scope AND r.key = w.key AND r.task = w.task";

const DELETE_CONTEXTS: &str = "
    DELETE FROM contexts c WHERE key = ANY($1::int8[])
        AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.key = c.key AND t.context = c.key)
        AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.context = c.key AND t.context <> t.key)";

const COUNT: &str = "
    INSERT INTO counters (scope, state, shard, n)
    SELECT scope, state, 64, -count(*) FROM unnest($1::int8[], $2::int2[]) AS w (scope, state)
    GROUP BY scope, state ORDER BY scope, state
    ON CONFLICT (scope, state, shard) DO UPDATE SET n = counters.n + excluded.n";

/// What contexts have too much of: of each, those that ended first, but for one task. The task that
/// opened the context is not in the index of contexts.
const SURPLUS: &str = "
    WITH wanted AS (
        SELECT * FROM unnest($1::int8[], $2::int8[], $3::int8[]) AS w (context, keep, stays)
    ), present AS (
        SELECT w.*, t.key, t.status_at, t.state FROM wanted w
        JOIN tasks t ON t.key = w.context AND t.context = w.context
        UNION ALL
        SELECT w.*, t.key, t.status_at, t.state FROM wanted w
        JOIN tasks t ON t.context = w.context AND t.context <> t.key
    ), counted AS (
        SELECT *, count(*) OVER (PARTITION BY context) - keep AS surplus FROM present
    ), ended AS (
        SELECT *, row_number() OVER (PARTITION BY context ORDER BY status_at, key) AS place
        FROM counted WHERE state = ANY($4::int2[]) AND key <> stays
            AND NOT EXISTS (SELECT 1 FROM turns u WHERE u.task = counted.key)
    )
    SELECT key, context FROM ended WHERE place <= surplus";

/// Deletes what these contexts have too much of: each may keep so many tasks, this one among them.
/// They are locked; the caller counts, and commits.
pub(super) async fn trim(
    session: &Session,
    contexts: &BTreeMap<i64, (u32, TaskKey)>,
) -> Result<Deleted, Failure> {
    let of: Vec<i64> = contexts.keys().copied().collect();
    let keep: Vec<i64> = contexts.values().map(|(keep, _)| (*keep).into()).collect();
    let stay: Vec<i64> = contexts.values().map(|(_, task)| task.0).collect();
    let rows = session
        .query(SURPLUS, &[&of, &keep, &stay, &&ENDED[..]])
        .await?;
    if rows.is_empty() {
        return Ok(Deleted::default());
    }
    delete(session, &column(&rows, 0)?, &column(&rows, 1)?).await
}

/// Tasks that were deleted, and what they were counted as.
#[derive(Debug, Default)]
pub(super) struct Deleted {
    pub(super) tasks: Vec<TaskKey>,
    scopes: Vec<i64>,
    states: Vec<i16>,
}

impl Deleted {
    /// The counters that they were counted in, one for each.
    pub(super) fn counters(&self) -> impl Iterator<Item = (i64, i16)> {
        let scopes = self.scopes.iter().copied();
        scopes.zip(self.states.iter().copied())
    }
}

/// Deletes up to `limit` tasks that ended before `before`, those that ended first going first.
pub(super) async fn purge(
    session: &Session,
    before: Timestamp,
    limit: u32,
) -> Result<Vec<TaskKey>, Failure> {
    let rows = session
        .query(FIND, &[&&ENDED[..], &before.as_millis(), &i64::from(limit)])
        .await?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let keys = column(&rows, 0)?;
    let contexts = column(&rows, 1)?;
    session.run("BEGIN").await?;
    let deleted = async {
        let deleted = delete(session, &keys, &contexts).await?;
        let Deleted { scopes, states, .. } = &deleted;
        session.query(COUNT, &[scopes, states]).await?;
        Ok::<_, Failure>(deleted.tasks)
    };
    match deleted.await {
        Ok(gone) => {
            session.run("COMMIT").await?;
            let keys = keys.into_iter().map(TaskKey);
            Ok(keys.filter(|key| gone.contains(key)).collect())
        }
        Err(failure) => {
            if !failure.is_lost() {
                session.run("ROLLBACK").await?;
            }
            Err(failure)
        }
    }
}

fn column(rows: &[Row], at: usize) -> Result<Vec<i64>, Failure> {
    rows.iter().map(|row| Ok(row.try_get(at)?)).collect()
}

async fn delete(session: &Session, keys: &[i64], contexts: &[i64]) -> Result<Deleted, Failure> {
    session.query(LOCK, &[&contexts]).await?;
    let tasks = session.query(DELETE_TASKS, &[&keys]).await?;
    let gone = column(&tasks, 0)?;
    let scopes = column(&tasks, 1)?;
    let states: Vec<i16> = tasks
        .iter()
        .map(|row| Ok(row.try_get(2)?))
        .collect::<Result<_, Failure>>()?;
    let runs = session.query(DELETE_RUNS, &[&gone]).await?;
    let mut requests: (Vec<i64>, Vec<Sixteen>, Vec<i64>) = Default::default();
    for run in &runs {
        let (task, _) = crate::run::unpack_run_id(run.try_get(0)?);
        let Some(scope) = gone.iter().position(|it| *it == task).map(|at| scopes[at]) else {
            continue;
        };
        let packed: Option<&[u8]> = run.try_get(1)?;
        for once in request::unpack(packed.unwrap_or_default()) {
            requests.0.push(scope);
            requests.1.push(Sixteen(once.key));
            requests.2.push(task);
        }
    }
    session.query(DELETE_SNAPSHOTS, &[&gone]).await?;
    session.query(DELETE_DEAD, &[&gone]).await?;
    session.query(DELETE_PUSH, &[&gone]).await?;
    session
        .query(DELETE_REQUESTS, &[&requests.0, &requests.1, &requests.2])
        .await?;
    session.query(DELETE_CONTEXTS, &[&contexts]).await?;
    Ok(Deleted {
        tasks: gone.into_iter().map(TaskKey).collect(),
        scopes,
        states,
    })
}
