//! Reading tasks and journals. Each question is one statement, so that its answer is of one moment.

use std::sync::Arc;

use a2ad_core::keys::{Attempt, ContextKey, Number, PublicIds, Scope, TaskKey, TurnRef, uuid_text};
use a2ad_core::store::{OnceHit, SHORT_JOURNAL, StoreStats, Stored};
use a2ad_core::task::{Entry, Head, Identity, Snapshot, TurnHead, TurnState};
use a2ad_proto::{TaskId, TaskState, Timestamp};
use tokio_postgres::Row;

use super::fail::Failure;
use super::journal::{Journal, run_of, runs_of, snapshot_of};
use super::migrate::COPYING;
use super::names::Names;
use super::session::Sixteen;
use super::sessions::Sessions;
use crate::packed::unpack_artifacts;
use crate::run;

/// So many runs are read at a time.
const RUNS_MAX: i64 = 256;

/// Where things are read from.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) sessions: Sessions,
    pub(crate) names: Arc<Names>,
    pub(crate) ids: PublicIds,
}

/// The columns of a head, and of its open turns; twelve in all.
macro_rules! head_columns {
    () => {
        "t.scope, t.context, t.state, t.version, t.status_at, t.bytes, t.cancel, t.id,
         coalesce(c.minted::text, c.name), t.artifacts,
         ARRAY(SELECT u.number FROM turns u WHERE u.task = t.key ORDER BY u.seq),
         ARRAY(SELECT (u.state::int8 << 48) | (u.attempt::int8 << 24) | u.returned
               FROM turns u WHERE u.task = t.key ORDER BY u.seq)"
    };
}

const HEAD: &str = concat!(
    "SELECT ",
    head_columns!(),
    " FROM tasks t JOIN contexts c ON c.key = t.context WHERE t.key = $1"
);

/// Of the runs after the snapshot, those that begin within the bytes asked for. The newest run that
/// starts at or before the wanted entry holds it, if any does.
const LOAD: &str = concat!(
    "SELECT ",
    head_columns!(),
    ", s.version, s.hash, s.artifacts_hash, s.marks, s.body, s.artifacts, r.ids, r.counts,
        r.formats, r.prevs, r.hashes, r.once, r.bytes
     FROM tasks t JOIN contexts c ON c.key = t.context
     LEFT JOIN snapshots s ON s.task = t.key AND t.bytes > $2
     LEFT JOIN LATERAL (
         SELECT array_agg(id ORDER BY id) AS ids, array_agg(count ORDER BY id) AS counts,
             array_agg(format ORDER BY id) AS formats, array_agg(prev ORDER BY id) AS prevs,
             array_agg(hash ORDER BY id) AS hashes, array_agg(once ORDER BY id) AS once,
             array_agg(bytes ORDER BY id) AS bytes
         FROM (
             SELECT *, sum(octet_length(bytes)) OVER (ORDER BY id) - octet_length(bytes) AS before
             FROM (
                 SELECT * FROM runs
                 WHERE id >= (SELECT max(id) FROM runs WHERE id BETWEEN t.key << 22
                         AND (t.key << 22) | (coalesce(s.version, 0) + 1))
                     AND id < (t.key + 1) << 22
                 ORDER BY id LIMIT $3) AS page
         ) AS sized WHERE before < $4
     ) r ON coalesce(s.version, 0) < t.version
     WHERE t.key = $1"
);

const RUNS: &str = "
    SELECT id, count, format, prev, hash, once, bytes FROM (
        SELECT *, sum(octet_length(bytes)) OVER (ORDER BY id) - octet_length(bytes) AS before
        FROM (
            SELECT * FROM runs
            WHERE id >= (SELECT max(id) FROM runs WHERE id BETWEEN $1 AND $2) AND id <= $3
            ORDER BY id LIMIT $4) AS page
    ) AS sized WHERE before < $5 ORDER BY id";

const SNAPSHOT: &str = "SELECT version, hash, artifacts_hash, marks, body, artifacts
     FROM snapshots WHERE task = $1";

impl Reader {
    /// The key of the scope's task with this id. The key inside the id only says where to look.
    pub(crate) async fn find(
        &self,
        scope: &Scope,
        id: &TaskId,
    ) -> Result<Option<TaskKey>, Failure> {
        let Some(key) = self.ids.key_of(id.as_str()) else {
            return Ok(None);
        };
        let Some(scope) = self.names.find(&self.sessions, scope).await? else {
            return Ok(None);
        };
        let rows = self
            .sessions
            .read(
                "SELECT id FROM tasks WHERE key = $1 AND scope = $2",
                &[&key, &scope.scope],
            )
            .await?;
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        let stored: Sixteen = row.try_get(0)?;
        let stored = uuid_text(u128::from_be_bytes(stored.0));
        Ok((stored == id.as_str()).then_some(TaskKey(key)))
    }

    /// The scope's task with this id, its newest snapshot and the entries after that.
    pub(crate) async fn load(
        &self,
        scope: &Scope,
        id: &TaskId,
        bytes_max: usize,
    ) -> Result<Option<Stored>, Failure> {
        let Some(key) = self.ids.key_of(id.as_str()).map(TaskKey) else {
            return Ok(None);
        };
        let bytes = i64::try_from(bytes_max).unwrap_or(i64::MAX).max(1);
        let folded = SHORT_JOURNAL.cast_signed();
        let rows = self
            .sessions
            .read(LOAD, &[&key.0, &folded, &RUNS_MAX, &bytes])
            .await?;
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        let head = self.head_of(key, row).await?;
        if head.identity.id != *id || head.identity.scope != *scope {
            return Ok(None);
        }
        let has_snapshot = row.try_get::<_, Option<i64>>(12)?.is_some();
        let snapshot = snapshot_of(key, row, 12, true)?;
        let entries = if has_snapshot && snapshot.is_none() {
            // A damaged snapshot counts as none; what was added meanwhile is not of this moment.
            let mut entries = self.entries(key, Number::ZERO, bytes_max).await?;
            entries.retain(|entry| entry.number <= head.version);
            entries
        } else {
            let after = snapshot.as_ref().map_or(Number::ZERO, |it| it.version);
            let mut journal = Journal::new(key, after, bytes_max);
            for run in runs_of(key, row, 18)? {
                if !journal.add(run)? {
                    break;
                }
            }
            journal.entries
        };
        Ok(Some(Stored {
            head,
            snapshot,
            entries,
        }))
    }

    /// The head of a task with its open turns.
    pub(crate) async fn head(&self, task: TaskKey) -> Result<Option<Arc<Head>>, Failure> {
        let rows = self.sessions.read(HEAD, &[&task.0]).await?;
        match rows.first() {
            Some(row) => Ok(Some(self.head_of(task, row).await?)),
            None => Ok(None),
        }
    }

    /// The version of a task.
    pub(crate) async fn version(&self, task: TaskKey) -> Result<Option<Number>, Failure> {
        let rows = self
            .sessions
            .read("SELECT version FROM tasks WHERE key = $1", &[&task.0])
            .await?;
        match rows.first() {
            Some(row) => Ok(Some(Number(row.try_get::<_, i64>(0)?.unsigned_abs()))),
            None => Ok(None),
        }
    }

    async fn head_of(&self, task: TaskKey, row: &Row) -> Result<Arc<Head>, Failure> {
        let damaged = |what: &str| Failure::Damaged(format!("task key {}: {what}", task.0));
        let id: Sixteen = row.try_get(7)?;
        let id = uuid_text(u128::from_be_bytes(id.0));
        let id = id.parse().map_err(|_| damaged("its id is malformed"))?;
        let context_id: Option<&str> = row.try_get(8)?;
        let context_id = context_id
            .and_then(|id| id.parse().ok())
            .ok_or_else(|| damaged("its context is missing"))?;
        let artifacts = unpack_artifacts(row.try_get(9)?)
            .ok_or_else(|| damaged("its list of artifacts is malformed"))?;
        let numbers: Vec<i64> = row.try_get(10)?;
        let rest: Vec<i64> = row.try_get(11)?;
        let turns = numbers
            .into_iter()
            .zip(rest)
            .map(|(number, rest)| {
                Ok(TurnHead {
                    number: Number(number.unsigned_abs()),
                    state: turn_state((rest >> 48) as i16)?,
                    attempt: Attempt((rest >> 24) as u32 & 0xff_ffff),
                    returned: rest as u32 & 0xff_ffff,
                })
            })
            .collect::<Result<_, Failure>>()?;
        Ok(Arc::new(Head {
            identity: Arc::new(Identity {
                key: task,
                id,
                context: ContextKey(row.try_get(1)?),
                context_id,
                scope: self.names.scope(&self.sessions, row.try_get(0)?).await?,
            }),
            version: Number(row.try_get::<_, i64>(3)?.unsigned_abs()),
            state: task_state(row.try_get(2)?)?,
            status_at: Timestamp::from_millis(row.try_get(4)?),
            cancel_requested: row.try_get(6)?,
            turns,
            artifacts: Arc::new(artifacts),
            bytes: row.try_get::<_, i64>(5)?.unsigned_abs(),
        }))
    }

    /// Entries after `after`: at least one if there is one, then up to `bytes_max`.
    pub(crate) async fn entries(
        &self,
        task: TaskKey,
        after: Number,
        bytes_max: usize,
    ) -> Result<Vec<Entry>, Failure> {
        let mut journal = Journal::new(task, after, bytes_max);
        if after.0 >= run::NUMBER_MAX {
            return Ok(journal.entries);
        }
        let (first_id, last_id) = run::task_runs(task.0);
        let bytes = i64::try_from(bytes_max).unwrap_or(i64::MAX).max(1);
        loop {
            let wanted = run::run_id(task.0, journal.next());
            let rows = self
                .sessions
                .read(RUNS, &[&first_id, &wanted, &last_id, &RUNS_MAX, &bytes])
                .await?;
            // The last run of a page comes again at the head of the next one.
            let mut more = false;
            let mut read = 0;
            for row in &rows {
                let run = run_of(task, row)?;
                more |= run.last() >= journal.next();
                read += row.try_get::<_, &[u8]>(6)?.len();
                if !journal.add(run)? {
                    return Ok(journal.entries);
                }
            }
            let cut = rows.len() as i64 == RUNS_MAX || read >= bytes_max;
            if !more || !cut {
                return Ok(journal.entries);
            }
        }
    }

    /// The task's newest snapshot, if there is a sound one.
    pub(crate) async fn snapshot(&self, task: TaskKey) -> Result<Option<Snapshot>, Failure> {
        let rows = self.sessions.read(SNAPSHOT, &[&task.0]).await?;
        match rows.first() {
            Some(row) => snapshot_of(task, row, 0, true),
            None => Ok(None),
        }
    }

    /// The request that had this key in this scope.
    pub(crate) async fn once(
        &self,
        scope: &Scope,
        key: [u8; 16],
    ) -> Result<Option<OnceHit>, Failure> {
        let Some(scope) = self.names.find(&self.sessions, scope).await? else {
            return Ok(None);
        };
        let rows = self
            .sessions
            .read(
                "SELECT task, number, body FROM requests WHERE scope = $1 AND key = $2",
                &[&scope.scope, &Sixteen(key)],
            )
            .await?;
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        let body: Sixteen = row.try_get(2)?;
        Ok(Some(OnceHit {
            task: TaskKey(row.try_get(0)?),
            number: Number(row.try_get::<_, i64>(1)?.unsigned_abs()),
            body: body.0,
        }))
    }

    /// The open turns of a task and of all others in its context, in order.
    pub(crate) async fn line(&self, task: TaskKey) -> Result<Vec<TurnRef>, Failure> {
        const LINE: &str = "
            SELECT task, number FROM turns
            WHERE context = (SELECT context FROM turns WHERE task = $1 LIMIT 1) ORDER BY seq";
        let rows = self.sessions.read(LINE, &[&task.0]).await?;
        let turn = |row: &Row| {
            Ok(TurnRef {
                task: TaskKey(row.try_get(0)?),
                number: Number(row.try_get::<_, i64>(1)?.unsigned_abs()),
            })
        };
        rows.iter().map(turn).collect()
    }

    /// Tasks that wait for their client, those that wait longest first. A task with a message still
    /// in line does not wait.
    pub(crate) async fn idle(
        &self,
        before: Timestamp,
        limit: u32,
    ) -> Result<Vec<TaskKey>, Failure> {
        const IDLE: &str = "
            SELECT p.key FROM unnest($1::int2[]) AS s (state) CROSS JOIN LATERAL (
                SELECT status_at, key FROM tasks t
                WHERE state = s.state AND state >= 3 AND status_at < $2
                    AND NOT EXISTS (SELECT 1 FROM turns u WHERE u.task = t.key)
                ORDER BY status_at, key LIMIT $3) p
            ORDER BY p.status_at, p.key LIMIT $3";
        let states = [
            TaskState::InputRequired as i16,
            TaskState::AuthRequired as i16,
        ];
        let rows = self
            .sessions
            .read(
                IDLE,
                &[&&states[..], &before.as_millis(), &i64::from(limit)],
            )
            .await?;
        rows.iter()
            .map(|row| Ok(TaskKey(row.try_get(0)?)))
            .collect()
    }

    /// Whether a copy into the database has begun and not come to its end.
    pub(crate) async fn is_half_copied(&self) -> Result<bool, Failure> {
        let rows = self
            .sessions
            .read("SELECT 1 FROM meta WHERE key = $1", &[&COPYING])
            .await?;
        Ok(!rows.is_empty())
    }

    /// Counts for gauges.
    pub(crate) async fn stats(&self) -> Result<StoreStats, Failure> {
        const STATS: &str = "
            SELECT count(*) FILTER (WHERE state = 0), count(*) FILTER (WHERE state = 1),
                count(*) FILTER (WHERE state = 2), (SELECT count(*) FROM dead_turns)
            FROM turns";
        let mut stats = StoreStats::default();
        let rows = self.sessions.read(STATS, &[]).await?;
        if let Some(row) = rows.first() {
            for (at, count) in stats.turns.iter_mut().enumerate() {
                *count = row.try_get::<_, i64>(at)?.unsigned_abs();
            }
            stats.dead = row.try_get::<_, i64>(3)?.unsigned_abs();
        }
        Ok(stats)
    }
}

/// The state of a turn in a column.
pub(super) fn turn_state(number: i16) -> Result<TurnState, Failure> {
    match number {
        0 => Ok(TurnState::Waiting),
        1 => Ok(TurnState::Ready),
        2 => Ok(TurnState::Leased),
        _ => Err(Failure::Damaged(format!("{number} is no state of a turn"))),
    }
}

/// The state of a task in a column.
fn task_state(number: i16) -> Result<TaskState, Failure> {
    TaskState::from_number(i32::from(number))
        .ok_or_else(|| Failure::Damaged(format!("{number} is no state of a task")))
}
