//! What one transaction gathers before it writes: each task's row, run and snapshot is written
//! once, however many changes of it came together.

use std::collections::BTreeMap;
use std::sync::Arc;

use a2ad_core::keys::{Number, TaskKey};
use a2ad_core::store::{Committed, Once, OnceHit, SHORT_JOURNAL};
use a2ad_core::task::{self, Head, Snapshot};
use a2ad_proto::{ContextId, TaskState, Timestamp};
use rusqlite::{Connection, OptionalExtension};

use crate::hash::Hash;
use crate::packed::pack_artifacts;
use crate::run::{NO_HASH, NewRun};
use crate::sqlite::fail::Failure;
use crate::sqlite::ids::PackedId;
use crate::sqlite::names::Context;
use crate::sqlite::once::{self, Pair};
use crate::sqlite::runs::{self, hash_column};
use crate::sqlite::snapshots;

/// A task that the batch has touched or looked at.
#[derive(Debug)]
pub(super) struct TaskInBatch {
    pub(super) scope: i64,
    pub(super) context: Context,
    pub(super) version: Number,
    /// The state in the table, which its counter counts; `None` for a task that has no row yet.
    stored_state: Option<u8>,
    /// The hash of its newest run in the table.
    chain: Hash,
    /// Its newest head; `None` if it was only looked at.
    head: Option<Arc<Head>>,
    run: NewRun,
    snapshot: Option<Snapshot>,
}

impl TaskInBatch {
    /// A task that is about to get its first entries.
    pub(super) fn unborn(scope: i64, context: Context) -> Self {
        Self {
            scope,
            context,
            version: Number::ZERO,
            stored_state: None,
            chain: NO_HASH,
            head: None,
            run: NewRun::default(),
            snapshot: None,
        }
    }

    /// Adds what a change brings.
    fn advance(
        &mut self,
        head: Arc<Head>,
        entries: &[task::Entry],
        once: Option<&Once>,
        snapshot: Option<Snapshot>,
    ) {
        self.version = head.version;
        self.run.extend(entries);
        if let Some(once) = once {
            self.run.request(once);
        }
        if snapshot.is_some() && head.bytes > SHORT_JOURNAL {
            self.snapshot = snapshot;
        }
        self.head = Some(head);
    }
}

/// The work of one transaction.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(super) now_ms: i64,
    /// What to tell once it is durable.
    pub(super) committed: Vec<Committed>,
    /// Tasks that were deleted because their contexts have too many; to be told, too.
    pub(super) deleted: Vec<TaskKey>,
    tasks: Vec<(TaskKey, TaskInBatch)>,
    /// Where each task stands among them.
    places: BTreeMap<TaskKey, usize>,
    /// No task with a larger key is in the table.
    pub(super) newest: i64,
    /// By how much each counter moves.
    counters: BTreeMap<i64, i64>,
    /// The requests carried out so far: scope, task and what makes them recognisable.
    requests: Vec<(i64, TaskKey, Once)>,
}

impl Batch {
    /// A batch that begins at `now`, when no key above `newest` is in the table; `size` changes
    /// are about to come.
    pub(super) fn new(now: Timestamp, newest: i64, size: usize) -> Self {
        Self {
            now_ms: now.as_millis(),
            committed: Vec::with_capacity(size),
            deleted: Vec::new(),
            tasks: Vec::with_capacity(size),
            places: BTreeMap::new(),
            newest,
            counters: BTreeMap::new(),
            requests: Vec::new(),
        }
    }

    /// The request of this batch that has this key in this scope.
    pub(super) fn request(
        &mut self,
        db: &Connection,
        scope: i64,
        key: &[u8; 16],
    ) -> Result<Option<OnceHit>, Failure> {
        let found = self
            .requests
            .iter()
            .find(|(in_scope, _, once)| once.key == *key && *in_scope == scope);
        let Some((_, task, once)) = found.copied() else {
            return Ok(None);
        };
        // A purge in the same batch may have taken the task away again.
        let hit = self.task(db, task)?.map(|_| OnceHit {
            task,
            number: once.number,
            body: once.body,
        });
        Ok(hit)
    }

    /// Where the requests of this batch are found.
    pub(super) fn pairs(&self) -> Vec<Pair> {
        let requests = self.requests.iter();
        requests
            .map(|(_, task, once)| once::pair(*task, once))
            .collect()
    }

    /// The task as it is after everything so far in this batch.
    pub(super) fn task(
        &mut self,
        db: &Connection,
        key: TaskKey,
    ) -> Result<Option<&TaskInBatch>, Failure> {
        let place = match self.places.get(&key) {
            Some(place) => *place,
            None if key.0 > self.newest => return Ok(None),
            None => match load(db, key)? {
                Some(task) => self.add(key, task),
                None => return Ok(None),
            },
        };
        Ok(self.tasks.get(place).map(|(_, task)| task))
    }

    /// Whether this task of the batch opened the context with this id, which we minted.
    pub(super) fn has_minted(&self, key: TaskKey, scope: i64, id: &ContextId) -> bool {
        let place = self.places.get(&key);
        let task = place.and_then(|place| self.tasks.get(*place));
        task.is_some_and(|(_, task)| {
            let opened = Context {
                key: key.0,
                minted: true,
            };
            let head = task.head.as_ref();
            task.scope == scope
                && task.context == opened
                && head.is_some_and(|head| head.identity.context_id == *id)
        })
    }

    /// Adds a task, and says where it stands.
    pub(super) fn add(&mut self, key: TaskKey, task: TaskInBatch) -> usize {
        let place = self.tasks.len();
        self.tasks.push((key, task));
        self.places.insert(key, place);
        place
    }

    /// Adds what a change brings to a task that was loaded or added.
    pub(super) fn advance(
        &mut self,
        head: &Arc<Head>,
        entries: &[task::Entry],
        once: Option<Once>,
        snapshot: Option<Snapshot>,
    ) {
        let key = head.identity.key;
        let place = self.places.get(&key);
        if let Some((_, task)) = place.and_then(|place| self.tasks.get_mut(*place)) {
            task.advance(Arc::clone(head), entries, once.as_ref(), snapshot);
            let scope = task.scope;
            self.requests.extend(once.map(|once| (scope, key, once)));
        }
    }

    /// Moves the counter of a scope's tasks in a state.
    pub(super) fn count(&mut self, scope: i64, state: u8, by: i64) {
        *self.counters.entry(counter_id(scope, state)).or_default() += by;
    }

    /// Writes everything gathered so far, table by table in the order of keys. The batch can be
    /// used further.
    pub(super) fn flush(&mut self, db: &Connection) -> Result<(), Failure> {
        let mut tasks = std::mem::take(&mut self.tasks);
        self.places.clear();
        tasks.retain(|(_, task)| task.head.is_some());
        tasks.sort_unstable_by_key(|(key, _)| *key);
        if let Some((TaskKey(last), _)) = tasks.last() {
            self.newest = self.newest.max(*last);
        }
        write_runs(db, &mut tasks)?;
        write_tasks(db, &tasks)?;
        for (key, task) in &tasks {
            if let Some(snapshot) = &task.snapshot {
                snapshots::write(db, *key, snapshot)?;
            }
            let state = task.head.as_ref().map(|head| head.state as u8);
            if let Some(state) = state.filter(|state| task.stored_state != Some(*state)) {
                self.count(task.scope, state, 1);
                if let Some(before) = task.stored_state {
                    self.count(task.scope, before, -1);
                }
            }
        }
        for (id, by) in std::mem::take(&mut self.counters) {
            if by != 0 {
                db.prepare_cached(
                    "INSERT INTO counters (id, n) VALUES (?1, ?2)
                     ON CONFLICT (id) DO UPDATE SET n = n + excluded.n",
                )?
                .execute((id, by))?;
            }
        }
        Ok(())
    }
}

/// The row id of a counter.
pub(crate) fn counter_id(scope: i64, state: u8) -> i64 {
    (scope << 4) | i64::from(state)
}

fn load(db: &Connection, key: TaskKey) -> Result<Option<TaskInBatch>, Failure> {
    let row = db
        .prepare_cached(
            "SELECT scope, context, context_id IS NOT NULL, version, state, chain
             FROM tasks WHERE key = ?1",
        )?
        .query_row([key.0], |row| {
            Ok((
                TaskInBatch {
                    version: Number(row.get::<_, i64>(3)?.unsigned_abs()),
                    stored_state: Some(row.get(4)?),
                    ..TaskInBatch::unborn(
                        row.get(0)?,
                        Context {
                            key: row.get(1)?,
                            minted: row.get(2)?,
                        },
                    )
                },
                hash_column(row, 5),
            ))
        })
        .optional()?;
    let Some((mut task, chain)) = row else {
        return Ok(None);
    };
    task.chain = chain
        .ok_or_else(|| Failure::Damaged(format!("task key {}: its chain is malformed", key.0)))?;
    Ok(Some(task))
}

/// Writes the new entries of all tasks, whose chains then include them.
fn write_runs(db: &Connection, tasks: &mut [(TaskKey, TaskInBatch)]) -> Result<(), Failure> {
    let mut runs = runs::Writer::new(db)?;
    for (key, task) in tasks {
        task.chain = runs.write(*key, &task.run, task.chain)?;
    }
    Ok(())
}

fn write_tasks(db: &Connection, tasks: &[(TaskKey, TaskInBatch)]) -> Result<(), Failure> {
    let mut update = db.prepare_cached(
        "UPDATE tasks SET state = ?2, version = ?3, status_at = ?4, bytes = ?5, cancel = ?6,
             chain = ?7, artifacts = ?8
         WHERE key = ?1",
    )?;
    let mut insert = db.prepare_cached(
        "INSERT INTO tasks (key, state, version, status_at, bytes, cancel, chain, artifacts,
             scope, context, id, context_id)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    )?;
    for (TaskKey(key), task) in tasks {
        let Some(head) = &task.head else { continue };
        let state = head.state as u8;
        let version = head.version.0 as i64;
        let status_at = head.status_at.as_millis();
        let bytes = i64::try_from(head.bytes).unwrap_or(i64::MAX);
        let cancel = head.cancel_requested;
        let artifacts = pack_artifacts(&head.artifacts);
        if task.stored_state.is_some() {
            update.execute((
                key, state, version, status_at, bytes, cancel, task.chain, artifacts,
            ))?;
        } else {
            let minted = task.context.minted;
            insert.execute((
                key,
                state,
                version,
                status_at,
                bytes,
                cancel,
                task.chain,
                artifacts,
                task.scope,
                task.context.key,
                PackedId(head.identity.id.as_str()),
                minted.then_some(PackedId(head.identity.context_id.as_str())),
            ))?;
        }
    }
    Ok(())
}

/// Ended tasks never move; their state says so.
pub(super) const ENDED: [TaskState; 4] = [
    TaskState::Completed,
    TaskState::Failed,
    TaskState::Canceled,
    TaskState::Rejected,
];
