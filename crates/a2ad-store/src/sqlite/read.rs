//! Reading tasks and journals, on a few connections beside the writer.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use a2ad_core::keys::{Attempt, ContextKey, Number, PublicIds, Scope, TaskKey, TurnRef};
use a2ad_core::store::{Claimed, SHORT_JOURNAL, StoreStats, Stored};
use a2ad_core::task::{Entry, Head, Identity, TurnHead, TurnState};
use a2ad_proto::{TaskId, TaskState, Timestamp};
use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Row};

use crate::hash::Hash;
use crate::packed::unpack_artifacts;
use crate::run::{self, Run};
use crate::sqlite::fail::Failure;
use crate::sqlite::ids::unpack_id;
use crate::sqlite::names::Names;
use crate::sqlite::open::execute;
use crate::sqlite::{runs, snapshots};

/// Connections that read, each used by one thread at a time. Reads are short and come from the
/// cache of pages, so they run where they are asked for; handing them to another thread would cost
/// more than they do.
#[derive(Debug)]
pub(crate) struct Readers {
    slots: Vec<Mutex<Option<Reader>>>,
}

/// Each thread has a connection that it asks first, because that one has in its cache what the
/// thread read last. Turns would fill all caches with the same pages.
static THREADS: AtomicUsize = AtomicUsize::new(0);
thread_local! {
    static HOME: usize = THREADS.fetch_add(1, Ordering::Relaxed);
}

/// A connection and the names it has looked up.
#[derive(Debug)]
struct Reader {
    db: Connection,
    names: Names,
}

impl Readers {
    pub(crate) fn new(connections: Vec<Connection>) -> Self {
        Self {
            slots: connections
                .into_iter()
                .map(|db| {
                    Mutex::new(Some(Reader {
                        db,
                        names: Names::default(),
                    }))
                })
                .collect(),
        }
    }

    /// Runs `read` in a transaction of its own, so that all its statements see one moment. `None`
    /// after [`close`](Self::close).
    pub(crate) fn read<T>(
        &self,
        read: impl FnOnce(&Connection, &mut Names) -> Result<T, Failure>,
    ) -> Option<Result<T, Failure>> {
        self.read_alone(|db, names| transact(db, |db| read(db, names)))
    }

    /// As [`read`](Self::read), for what runs only one statement, or none after its first has
    /// ended: SQLite itself lets all that runs meanwhile see one moment. (Names do not count, since
    /// they never change.)
    pub(crate) fn read_alone<T>(
        &self,
        read: impl FnOnce(&Connection, &mut Names) -> Result<T, Failure>,
    ) -> Option<Result<T, Failure>> {
        let mut slot = self.acquire();
        let Reader { db, names } = slot.as_mut()?;
        Some(read(db, names))
    }

    /// Closes all connections, waiting for those in use.
    pub(crate) fn close(&self) {
        for slot in &self.slots {
            drop(slot.lock().unwrap_or_else(PoisonError::into_inner).take());
        }
    }

    fn acquire(&self) -> MutexGuard<'_, Option<Reader>> {
        let count = self.slots.len();
        let from = HOME.with(|home| *home);
        for at in 0..count {
            match self.slots[(from + at) % count].try_lock() {
                Ok(slot) => return slot,
                Err(TryLockError::Poisoned(broken)) => return broken.into_inner(),
                Err(TryLockError::WouldBlock) => {}
            }
        }
        self.slots[from % count]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Not `unchecked_transaction`, which has `BEGIN` and `COMMIT` parsed every time: that took longer
/// than most reads.
fn transact<T>(
    db: &Connection,
    read: impl FnOnce(&Connection) -> Result<T, Failure>,
) -> Result<T, Failure> {
    execute(db, "BEGIN")?;
    let result = read(db);
    // Nothing was written, so there is nothing to be kept or undone.
    let ended = execute(db, "COMMIT");
    let value = result?;
    ended?;
    Ok(value)
}

/// The key of the scope's task with this id. The key inside the id only says where to look.
pub(crate) fn find(
    db: &Connection,
    names: &mut Names,
    ids: &PublicIds,
    scope: &Scope,
    id: &TaskId,
) -> Result<Option<TaskKey>, Failure> {
    let (Some(key), Some(scope)) = (ids.key_of(id.as_str()), names.find(db, scope)?) else {
        return Ok(None);
    };
    let stored = db
        .prepare_cached("SELECT id FROM tasks WHERE key = ?1 AND scope = ?2")?
        .query_row((key, scope.scope), |row| Ok(unpack_id(row.get_ref(0)?)))
        .optional()?
        .flatten();
    Ok((stored.as_deref() == Some(id.as_str())).then_some(TaskKey(key)))
}

/// The columns of a head, which [`head_in`] expects after so many others.
macro_rules! head_columns {
    () => {
        "t.scope, t.context, t.state, t.version, t.status_at, t.bytes, t.cancel, t.id,
             coalesce(t.context_id, (SELECT id FROM contexts WHERE key = t.context)), t.artifacts"
    };
}

/// The scope's task with this id, its newest snapshot and the entries after that. To be read
/// [alone](Readers::read_alone).
pub(crate) fn load(
    db: &Connection,
    names: &mut Names,
    ids: &PublicIds,
    scope: &Scope,
    id: &TaskId,
    bytes_max: usize,
) -> Result<Option<Stored>, Failure> {
    let Some(key) = ids.key_of(id.as_str()).map(TaskKey) else {
        return Ok(None);
    };
    // A task that has no snapshot comes together with its runs, the head in every row.
    let mut statement = db.prepare_cached(concat!(
        "SELECT r.id, r.count, r.format, r.spilled, r.prev, r.hash, r.once, r.bytes, ",
        head_columns!(),
        " FROM tasks t LEFT JOIN runs r ON t.bytes <= ?2 AND r.id BETWEEN ?3 AND ?4
         WHERE t.key = ?1 ORDER BY r.id"
    ))?;
    let (first, last) = run::task_runs(key.0);
    let mut rows = statement.query((key.0, SHORT_JOURNAL as i64, first, last))?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    let head = head_in(db, names, key, row, runs::COLUMNS)?;
    if head.identity.id != *id || head.identity.scope != *scope {
        return Ok(None);
    }
    if head.bytes <= SHORT_JOURNAL {
        let mut wanted = Wanted::after(key, Number::ZERO, bytes_max);
        let mut row = Some(row).filter(|row| row.get_ref(0).is_ok_and(|id| id != ValueRef::Null));
        while let Some(run) = row
            && wanted.take(runs::read(db, run)?)?
        {
            row = rows.next()?;
        }
        return Ok(Some(Stored {
            head,
            snapshot: None,
            entries: wanted.entries,
        }));
    }
    let snapshot = snapshots::find(db, key, true)?;
    let after = snapshot.as_ref().map_or(Number::ZERO, |it| it.version);
    let entries = if after < head.version {
        entries(db, key, after, bytes_max)?
    } else {
        Vec::new()
    };
    Ok(Some(Stored {
        head,
        snapshot,
        entries,
    }))
}

/// The head of a task with its open turns. May be read [alone](Readers::read_alone).
pub(crate) fn head(
    db: &Connection,
    names: &mut Names,
    task: TaskKey,
) -> Result<Option<Arc<Head>>, Failure> {
    let mut statement = db.prepare_cached(concat!(
        "SELECT ",
        head_columns!(),
        " FROM tasks t WHERE t.key = ?1"
    ))?;
    let mut rows = statement.query([task.0])?;
    match rows.next()? {
        Some(row) => head_in(db, names, task, row, 0).map(Some),
        None => Ok(None),
    }
}

/// The head in the columns of a row from `at` on.
fn head_in(
    db: &Connection,
    names: &mut Names,
    task: TaskKey,
    row: &Row<'_>,
    at: usize,
) -> Result<Arc<Head>, Failure> {
    let damaged = |what: &str| Failure::Damaged(format!("task key {}: {what}", task.0));
    let id = unpack_id(row.get_ref(at + 7)?)
        .and_then(|id| id.parse().ok())
        .ok_or_else(|| damaged("its id is malformed"))?;
    let context_id = unpack_id(row.get_ref(at + 8)?)
        .and_then(|id| id.parse().ok())
        .ok_or_else(|| damaged("its context is missing"))?;
    let artifacts = unpack_artifacts(row.get_ref(at + 9)?.as_blob().unwrap_or_default())
        .ok_or_else(|| damaged("its list of artifacts is malformed"))?;
    let state = task_state(row.get(at + 2)?)?;
    // What has ended has no open turn, and most of what is read has ended.
    let turns = if state.is_terminal() {
        Vec::new()
    } else {
        turns(db, task)?
    };
    Ok(Arc::new(Head {
        identity: Arc::new(Identity {
            key: task,
            id,
            context: ContextKey(row.get(at + 1)?),
            context_id,
            scope: names.scope(db, row.get(at)?)?,
        }),
        version: Number(row.get::<_, i64>(at + 3)?.unsigned_abs()),
        state,
        status_at: Timestamp::from_millis(row.get(at + 4)?),
        cancel_requested: row.get(at + 6)?,
        turns,
        artifacts: Arc::new(artifacts),
        bytes: row.get::<_, i64>(at + 5)?.unsigned_abs(),
    }))
}

fn turns(db: &Connection, task: TaskKey) -> Result<Vec<TurnHead>, Failure> {
    let mut statement = db.prepare_cached(
        "SELECT number, state, attempt, returned FROM turns WHERE task = ?1 ORDER BY seq",
    )?;
    let mut rows = statement.query([task.0])?;
    let mut turns = Vec::new();
    while let Some(row) = rows.next()? {
        turns.push(TurnHead {
            number: Number(row.get::<_, i64>(0)?.unsigned_abs()),
            state: turn_state(row.get(1)?)?,
            attempt: Attempt(row.get(2)?),
            returned: row.get(3)?,
        });
    }
    Ok(turns)
}

/// Entries after `after`: at least one if there is one, then up to `bytes_max`.
pub(crate) fn entries(
    db: &Connection,
    task: TaskKey,
    after: Number,
    bytes_max: usize,
) -> Result<Vec<Entry>, Failure> {
    Journals::new(db)?.entries(task, after, bytes_max)
}

/// Reads journals, many with one statement.
pub(crate) struct Journals<'db> {
    db: &'db Connection,
    runs: CachedStatement<'db>,
}

impl<'db> Journals<'db> {
    pub(crate) fn new(db: &'db Connection) -> Result<Self, Failure> {
        let runs = db.prepare_cached(runs::SELECT)?;
        Ok(Self { db, runs })
    }

    /// As [`entries`].
    pub(crate) fn entries(
        &mut self,
        task: TaskKey,
        after: Number,
        bytes_max: usize,
    ) -> Result<Vec<Entry>, Failure> {
        let mut wanted = Wanted::after(task, after, bytes_max);
        if after.0 >= run::NUMBER_MAX {
            return Ok(wanted.entries);
        }
        let (first_id, last_id) = run::task_runs(task.0);
        // The newest run that starts at or before the wanted entry holds it, if any does.
        let from: i64 = if after == Number::ZERO {
            first_id
        } else {
            let next = run::run_id(task.0, after.0 + 1);
            self.db
                .prepare_cached(
                    "SELECT coalesce(max(id), ?1) FROM runs WHERE id BETWEEN ?1 AND ?2",
                )?
                .query_row((first_id, next), |row| row.get(0))?
        };
        let mut rows = self.runs.query((from, last_id))?;
        while let Some(row) = rows.next()?
            && wanted.take(runs::read(self.db, row)?)?
        {}
        Ok(wanted.entries)
    }
}

/// Entries that somebody wants, as far as they were read.
struct Wanted {
    task: TaskKey,
    after: Number,
    bytes_max: usize,
    size: usize,
    /// The number and the hash that the run before ended with.
    before: Option<(u64, Hash)>,
    entries: Vec<Entry>,
}

impl Wanted {
    fn after(task: TaskKey, after: Number, bytes_max: usize) -> Self {
        Self {
            task,
            after,
            bytes_max,
            size: 0,
            before: None,
            entries: Vec::new(),
        }
    }

    /// Takes what is wanted of the next run. Says whether more is wanted.
    fn take(&mut self, run: Run) -> Result<bool, Failure> {
        let follows = match self.before {
            Some((last, hash)) => run.first == last + 1 && run.prev == hash,
            None => run.first <= self.after.0 + 1,
        };
        if !follows {
            return Err(Failure::Damaged(format!(
                "task key {}, entry {}: what stands before it is missing or changed",
                self.task.0, run.first
            )));
        }
        self.before = Some((run.last(), run.hash));
        let whole = self.entries.is_empty() && run.first == self.after.0 + 1;
        let size: usize = run.entries.iter().map(|entry| entry.bytes.len()).sum();
        if whole && size <= self.bytes_max {
            self.size = size;
            self.entries = run.entries;
            return Ok(true);
        }
        for entry in run.entries {
            if entry.number <= self.after {
                continue;
            }
            if !self.entries.is_empty() && self.size + entry.bytes.len() > self.bytes_max {
                return Ok(false);
            }
            self.size += entry.bytes.len();
            self.entries.push(entry);
        }
        Ok(true)
    }
}

/// The open turns of a task and of all others in its context, in order.
pub(crate) fn line(db: &Connection, task: TaskKey) -> Result<Vec<TurnRef>, Failure> {
    let mut statement = db.prepare_cached(
        "SELECT task, number FROM turns
         WHERE context = (SELECT context FROM turns WHERE task = ?1 LIMIT 1) ORDER BY seq",
    )?;
    let mut rows = statement.query([task.0])?;
    let mut line = Vec::new();
    while let Some(row) = rows.next()? {
        line.push(TurnRef {
            task: TaskKey(row.get(0)?),
            number: Number(row.get::<_, i64>(1)?.unsigned_abs()),
        });
    }
    Ok(line)
}

/// Leased turns of holders below `first_holder`, oldest first.
pub(crate) fn orphans(
    db: &Connection,
    names: &mut Names,
    first_holder: i64,
    limit: u32,
) -> Result<Vec<Claimed>, Failure> {
    let mut statement = db.prepare_cached(
        "SELECT task, number, agent, attempt FROM turns
         WHERE state = 2 AND holder < ?1 ORDER BY seq LIMIT ?2",
    )?;
    let mut rows = statement.query((first_holder, limit))?;
    let mut orphans = Vec::new();
    while let Some(row) = rows.next()? {
        orphans.push(Claimed {
            turn: TurnRef {
                task: TaskKey(row.get(0)?),
                number: Number(row.get::<_, i64>(1)?.unsigned_abs()),
            },
            agent: names.agent(db, row.get(2)?)?,
            attempt: Attempt(row.get(3)?),
        });
    }
    Ok(orphans)
}

/// Tasks that wait for their client, those that wait longest first. A task with a message still
/// in line does not wait.
pub(crate) fn idle(
    db: &Connection,
    before: Timestamp,
    limit: u32,
) -> Result<Vec<TaskKey>, Failure> {
    let mut idle: Vec<(i64, i64)> = Vec::new();
    for state in [TaskState::InputRequired, TaskState::AuthRequired] {
        // The constant lets the planner see that the partial index covers the question.
        let mut statement = db.prepare_cached(
            "SELECT status_at, key FROM tasks INDEXED BY tasks_at_rest
             WHERE state = ?1 AND state >= 3 AND status_at < ?2
                 AND NOT EXISTS (SELECT 1 FROM turns WHERE task = tasks.key)
             ORDER BY status_at, key LIMIT ?3",
        )?;
        let rows = statement.query_map((state as u8, before.as_millis(), limit), |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
        for row in rows {
            idle.push(row?);
        }
    }
    idle.sort_unstable();
    idle.truncate(limit as usize);
    Ok(idle.into_iter().map(|(_, key)| TaskKey(key)).collect())
}

/// Counts for gauges.
pub(crate) fn stats(db: &Connection) -> Result<StoreStats, Failure> {
    let mut stats = StoreStats::default();
    let mut statement = db.prepare_cached("SELECT state, count(*) FROM turns GROUP BY state")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let state: u8 = row.get(0)?;
        if let Some(count) = stats.turns.get_mut(usize::from(state)) {
            *count = row.get::<_, i64>(1)?.unsigned_abs();
        }
    }
    let dead: i64 = db
        .prepare_cached("SELECT count(*) FROM dead_turns")?
        .query_row([], |row| row.get(0))?;
    stats.dead = dead.unsigned_abs();
    Ok(stats)
}

/// The state of a turn in a column.
pub(crate) fn turn_state(number: u8) -> Result<TurnState, Failure> {
    match number {
        0 => Ok(TurnState::Waiting),
        1 => Ok(TurnState::Ready),
        2 => Ok(TurnState::Leased),
        _ => Err(Failure::Damaged(format!("{number} is no state of a turn"))),
    }
}

/// The reverse of [`turn_state`].
pub(crate) const fn turn_state_number(state: TurnState) -> u8 {
    match state {
        TurnState::Waiting => 0,
        TurnState::Ready => 1,
        TurnState::Leased => 2,
    }
}

/// The state of a task in a column.
pub(crate) fn task_state(number: u8) -> Result<TaskState, Failure> {
    TaskState::from_number(i32::from(number))
        .ok_or_else(|| Failure::Damaged(format!("{number} is no state of a task")))
}
