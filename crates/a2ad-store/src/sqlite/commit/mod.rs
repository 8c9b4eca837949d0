//! Applying changes and committing them, on whatever thread calls.

mod batch;
mod change;
mod purge;
mod turns;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use a2ad_core::clock::Surroundings;
use a2ad_core::keys::{HolderId, PublicIds, TaskKey};
use a2ad_core::store::{Applied, Change, ChangeError, Claims, StoreError, Wake};
use a2ad_proto::{AgentId, Timestamp};
use metrics::{gauge, histogram};
use rusqlite::Connection;

use crate::metric;
use crate::sqlite::checkpoint::{Mode, checkpoint};
use crate::sqlite::fail::Failure;
use crate::sqlite::lock::FileLock;
use crate::sqlite::names::Names;
use crate::sqlite::once::{Index, Waiting};
use crate::sqlite::open::{OpenError, Opened, execute, open, set_meta};
use crate::sqlite::options::SqliteOptions;
use batch::Batch;

/// Something to be written.
#[derive(Debug)]
pub(crate) enum Work {
    /// A change of a task.
    Change(Box<Change>),
    /// Lease ready turns.
    Claim {
        holder: HolderId,
        wanted: Vec<(AgentId, u32)>,
    },
    /// Register a holder of leases.
    OpenHolder,
    /// Delete old tasks.
    Purge { before: Timestamp, limit: u32 },
    /// Give no key at or above this one to anybody after a restart.
    Reserve { next_key: i64 },
    /// Write anything at all.
    Check,
}

/// What became of a [`Work`].
#[derive(Debug)]
pub(crate) enum Outcome {
    Change(Result<Applied, ChangeError>),
    Claims(Claims),
    Holder(HolderId),
    Purged(Vec<TaskKey>),
    Done,
    /// The transaction it was part of did not come about.
    Refused(StoreError),
}

/// The writing half of a store, without a thread: owns the one connection that writes, and commits
/// when called. [`SqliteStore`](crate::SqliteStore) wraps it in a thread; a simulation may call it
/// directly.
#[derive(Debug)]
pub struct Core {
    db: Connection,
    ids: PublicIds,
    surroundings: Surroundings,
    wake: Arc<dyn Wake>,
    names: Names,
    once: Index,
    /// The place of the next turn in its context's order.
    next_seq: i64,
    /// Open turns by agent, so that a full queue is noticed without counting rows.
    open_turns: BTreeMap<i64, u32>,
    /// Holders below this one belong to an earlier life of the daemon.
    first_holder: i64,
    /// Every task key given before this start is below this one.
    next_key: i64,
    /// No task with a larger key is stored.
    newest: i64,
    wal_pages: Arc<AtomicU32>,
    stopped: Option<Arc<str>>,
    lock: Arc<FileLock>,
    /// The error code with which the next commit fails, for tests.
    #[cfg(test)]
    pub(crate) fail_commit: Option<i32>,
}

impl Core {
    /// Opens or creates the database and locks it. `wake` hears of every commit.
    pub fn open(options: &SqliteOptions, wake: Arc<dyn Wake>) -> Result<Self, OpenError> {
        let Opened {
            mut db,
            lock,
            secret,
            next_key,
        } = open(options)?;
        let sql = |source: rusqlite::Error| OpenError::from_sql(&options.path, &source);
        let next_seq: i64 = db
            .query_row("SELECT coalesce(max(seq), 0) + 1 FROM turns", [], |row| {
                row.get(0)
            })
            .map_err(sql)?;
        let first_holder: i64 = db
            .query_row(
                "SELECT coalesce(max(seq), 0) + 1 FROM sqlite_sequence WHERE name = 'holders'",
                [],
                |row| row.get(0),
            )
            .map_err(sql)?;
        // We hold the file's lock, so whoever registered before is gone.
        db.execute("DELETE FROM holders WHERE id < ?1", [first_holder])
            .map_err(sql)?;
        let newest: i64 = db
            .query_row("SELECT coalesce(max(key), 0) FROM tasks", [], |row| {
                row.get(0)
            })
            .map_err(sql)?;
        let open_turns = turns::count_by_agent(&db).map_err(sql)?;
        let once = Index::open(&db).map_err(|failure| match failure {
            Failure::Sql(source) => sql(source),
            Failure::Damaged(detail) => OpenError::Corrupt {
                path: options.path.clone(),
                detail,
            },
        })?;
        let wal_pages = Arc::new(AtomicU32::new(0));
        let seen = Arc::clone(&wal_pages);
        db.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages: i32| {
            seen.store(pages.unsigned_abs(), Ordering::Relaxed);
            Ok(())
        }))
        .map_err(sql)?;
        Ok(Self {
            db,
            ids: PublicIds::new(secret),
            surroundings: options.surroundings.clone(),
            wake,
            names: Names::default(),
            once,
            next_seq,
            open_turns,
            first_holder,
            next_key,
            newest,
            wal_pages,
            stopped: None,
            lock,
            #[cfg(test)]
            fail_commit: None,
        })
    }

    /// Applies all changes that can be applied and commits them together. Answers per change, in
    /// order, when all is durable and [`Wake`] has been told.
    pub fn commit(&mut self, batch: Vec<Change>) -> Vec<Result<Applied, ChangeError>> {
        let work = batch
            .into_iter()
            .map(|change| Work::Change(Box::new(change)))
            .collect();
        let outcomes = self.run(work).into_iter();
        outcomes
            .map(|outcome| match outcome {
                Outcome::Change(result) => result,
                Outcome::Refused(error) => Err(error.into()),
                Outcome::Claims(_) | Outcome::Holder(_) | Outcome::Purged(_) | Outcome::Done => {
                    Err(mismatch().into())
                }
            })
            .collect()
    }

    /// Does all of `work` in one transaction.
    pub(crate) fn run(&mut self, work: Vec<Work>) -> Vec<Outcome> {
        let count = work.len();
        if let Some(reason) = &self.stopped {
            let error = StoreError::Stopped(Arc::clone(reason));
            return refuse_all(count, &error);
        }
        let began = Instant::now();
        match self.transact(work) {
            Ok((outcomes, batch)) => {
                histogram!(metric::COMMIT_SECONDS).record(began.elapsed().as_secs_f64());
                histogram!(metric::COMMIT_BATCH_SIZE).record(count as f64);
                gauge!(metric::WAL_PAGES).set(f64::from(self.wal_pages()));
                if !batch.committed.is_empty() {
                    self.wake.committed(batch.committed);
                }
                if !batch.deleted.is_empty() {
                    self.wake.deleted(&batch.deleted);
                }
                outcomes
            }
            Err(failure) => refuse_all(count, &self.fail(&failure)),
        }
    }

    fn transact(&mut self, work: Vec<Work>) -> Result<(Vec<Outcome>, Batch), Failure> {
        execute(&self.db, "BEGIN IMMEDIATE")?;
        let now = self.surroundings.clock.now();
        let mut batch = Batch::new(now, self.newest, work.len());
        let mut outcomes = Vec::with_capacity(work.len());
        for one in work {
            outcomes.push(self.perform(&mut batch, one)?);
        }
        batch.flush(&self.db)?;
        // It may stay if the transaction fails: what is too large is only looked up in vain.
        self.newest = batch.newest;
        let moved = self.once.write(&self.db, batch.pairs())?;
        #[cfg(test)]
        if let Some(code) = self.fail_commit.take() {
            let error = rusqlite::ffi::Error::new(code);
            return Err(rusqlite::Error::SqliteFailure(error, None).into());
        }
        execute(&self.db, "COMMIT")?;
        self.once.committed(moved);
        Ok((outcomes, batch))
    }

    fn perform(&mut self, batch: &mut Batch, work: Work) -> Result<Outcome, Failure> {
        Ok(match work {
            Work::Change(change) => Outcome::Change(self.apply(batch, *change)?),
            Work::Claim { holder, wanted } => Outcome::Claims(self.claim(batch, holder, &wanted)?),
            Work::OpenHolder => Outcome::Holder(self.open_holder(batch)?),
            Work::Purge { before, limit } => Outcome::Purged(self.purge(batch, before, limit)?),
            Work::Reserve { next_key } => {
                // Never back: requests may come in another order than they were made.
                self.db
                    .prepare_cached(
                        "UPDATE meta SET value = max(value, ?1) WHERE key = 'next_key'",
                    )?
                    .execute([next_key])?;
                Outcome::Done
            }
            Work::Check => {
                set_meta(&self.db, "checked_at", batch.now_ms)?;
                Outcome::Done
            }
        })
    }

    fn open_holder(&mut self, batch: &Batch) -> Result<HolderId, Failure> {
        self.db
            .prepare_cached("INSERT INTO holders (opened_at, beat_at) VALUES (?1, ?1)")?
            .execute([batch.now_ms])?;
        Ok(HolderId(self.db.last_insert_rowid()))
    }

    /// Undoes the transaction and says what to tell its callers.
    fn fail(&mut self, failure: &Failure) -> StoreError {
        if !self.db.is_autocommit()
            && let Err(error) = execute(&self.db, "ROLLBACK")
        {
            tracing::error!(%error, "a transaction could not be rolled back");
        }
        // What the transaction had added to the caches is not there any more.
        self.names = Names::default();
        self.once.rolled_back();
        match turns::count_by_agent(&self.db) {
            Ok(counted) => self.open_turns = counted,
            Err(error) => tracing::error!(%error, "open turns could not be counted"),
        }
        let error = failure.store_error();
        if !failure.is_fatal() {
            tracing::warn!(%error, "a commit failed; nothing of it was kept");
            return error;
        }
        let reason: Arc<str> = Arc::from(error.to_string());
        self.stop(&reason);
        StoreError::Stopped(reason)
    }

    /// Refuses everything from now on.
    pub(crate) fn stop(&mut self, reason: &Arc<str>) {
        if self.stopped.is_none() {
            tracing::error!(%reason, "the store has stopped");
            self.stopped = Some(Arc::clone(reason));
            self.wake.stopped(reason);
        }
    }

    /// Why it refuses everything, if it does.
    pub(crate) fn stopped(&self) -> Option<&Arc<str>> {
        self.stopped.as_ref()
    }

    /// How many pages the log had after the last commit.
    pub(crate) fn wal_pages(&self) -> u32 {
        self.wal_pages.load(Ordering::Relaxed)
    }

    /// Copies the log into the database. A failed sync stops the store, as everywhere.
    pub(crate) fn checkpoint(&mut self, mode: Mode) {
        if let Err(failure) = checkpoint(&self.db, mode) {
            let error = failure.store_error();
            tracing::warn!(%error, "a checkpoint failed");
            if failure.is_fatal() {
                self.stop(&Arc::from(error.to_string()));
            }
        }
    }

    /// Mints and reads the public ids of this database.
    #[must_use]
    pub const fn public_ids(&self) -> &PublicIds {
        &self.ids
    }

    /// Request keys that readers would not find in the tables.
    pub(crate) fn waiting(&self) -> Waiting {
        self.once.waiting()
    }

    pub(crate) const fn first_holder(&self) -> i64 {
        self.first_holder
    }

    pub(crate) const fn next_key(&self) -> i64 {
        self.next_key
    }

    pub(crate) fn lock(&self) -> Arc<FileLock> {
        Arc::clone(&self.lock)
    }

    #[cfg(test)]
    pub(crate) const fn db(&self) -> &Connection {
        &self.db
    }

    #[cfg(test)]
    pub(crate) const fn once_mut(&mut self) -> &mut Index {
        &mut self.once
    }

    #[cfg(test)]
    pub(crate) const fn db_mut(&mut self) -> &mut Connection {
        &mut self.db
    }
}

fn refuse_all(count: usize, error: &StoreError) -> Vec<Outcome> {
    (0..count)
        .map(|_| Outcome::Refused(error.clone()))
        .collect()
}

/// An answer of the wrong kind, which would be a bug of ours.
pub(crate) fn mismatch() -> StoreError {
    StoreError::Stopped(Arc::from("the writer gave an answer of the wrong kind"))
}
