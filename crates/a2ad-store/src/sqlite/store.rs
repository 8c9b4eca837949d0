//! The store as the engine sees it.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use a2ad_core::keys::{HolderId, Number, PublicIds, Scope, TaskKey, TurnRef};
use a2ad_core::store::{
    Applied, Change, ChangeError, Claimed, Claims, Known, ListFilter, ListPage, ListPlace, OnceHit,
    Store, StoreError, StoreStats, Stored, Wake,
};
use a2ad_core::task::{Entry, Head, Snapshot};
use a2ad_proto::{AgentId, TaskId, Timestamp};
use futures_util::future::BoxFuture;
use rusqlite::Connection;

use crate::sqlite::answers::Answers;
use crate::sqlite::commit::{Core, Outcome, Work, mismatch};
use crate::sqlite::fail::Failure;
use crate::sqlite::list;
use crate::sqlite::lock::FileLock;
use crate::sqlite::names::Names;
use crate::sqlite::once::{self, Waiting};
use crate::sqlite::open::{OpenError, reader};
use crate::sqlite::options::SqliteOptions;
use crate::sqlite::read::{self, Readers};
use crate::sqlite::rested;
use crate::sqlite::snapshots;
use crate::sqlite::writer::{Halt, Writer};

/// How many keys are set aside on the disk at a time. Those that are left at a crash are lost,
/// which costs nothing: there are 2^41.
const KEYS_AHEAD: i64 = 1 << 16;

/// Tasks, journals and turns in one SQLite file.
///
/// One thread commits everything that waits in one transaction; reads run at once, on the calling
/// thread. Only one process can have the file open.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    ids: PublicIds,
    writer: Writer,
    readers: Readers,
    waiting: Waiting,
    keys: Mutex<Keys>,
    first_holder: i64,
    halt: Halt,
    lock: Mutex<Option<Arc<FileLock>>>,
}

/// Task keys that can be given without writing anything.
#[derive(Debug)]
struct Keys {
    next: i64,
    end: i64,
}

impl SqliteStore {
    /// Opens or creates the database. `wake` hears of every commit before its caller does.
    ///
    /// # Errors
    /// If the file is in use, cannot be written, or is not ours; see [`OpenError`].
    pub fn open(options: SqliteOptions, wake: Arc<dyn Wake>) -> Result<Self, OpenError> {
        let answers = Answers::new(wake);
        let mut core = Core::open(&options, Arc::clone(&answers) as _)?;
        let next = core.next_key();
        let end = next + KEYS_AHEAD;
        if let Some(Outcome::Refused(error)) = core.run(vec![Work::Reserve { next_key: end }]).pop()
        {
            return Err(match error {
                StoreError::Full(_) => OpenError::NoSpace { path: options.path },
                StoreError::Unavailable(_) | StoreError::Corrupt(_) | StoreError::Stopped(_) => {
                    OpenError::Io {
                        path: options.path,
                        detail: error.to_string(),
                    }
                }
            });
        }
        let connections = (0..options.readers.max(1))
            .map(|_| reader(&options.path))
            .collect::<Result<_, _>>()?;
        let ids = core.public_ids().clone();
        let first_holder = core.first_holder();
        let lock = core.lock();
        let waiting = core.waiting();
        let halt: Halt = Arc::new(OnceLock::new());
        let writer = Writer::start(core, &options, Arc::clone(&halt), Arc::clone(&answers))?;
        answers.start();
        Ok(Self {
            path: options.path,
            ids,
            writer,
            readers: Readers::new(connections),
            waiting,
            keys: Mutex::new(Keys { next, end }),
            first_holder,
            halt,
            lock: Mutex::new(Some(lock)),
        })
    }

    /// Takes no more writes, commits those that wait, copies the log into the database and lets go
    /// of the file. Blocks for as long as that takes; everything afterwards is answered with
    /// [`StoreError::Stopped`]. Dropping the store does the same.
    pub fn close(&self) {
        self.readers.close();
        self.writer.close();
        self.halt.get_or_init(|| Arc::from("it was closed"));
        drop(lock(&self.lock).take());
    }

    /// Reads in a transaction.
    fn read<T>(
        &self,
        read: impl FnOnce(&Connection, &mut Names) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        self.unless_halted(|readers| readers.read(read))
    }

    /// Reads what needs no transaction; see [`Readers::read_alone`].
    fn read_alone<T>(
        &self,
        read: impl FnOnce(&Connection, &mut Names) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        self.unless_halted(|readers| readers.read_alone(read))
    }

    fn unless_halted<T>(
        &self,
        read: impl FnOnce(&Readers) -> Option<Result<T, Failure>>,
    ) -> Result<T, StoreError> {
        if let Some(reason) = self.halt.get() {
            return Err(StoreError::Stopped(Arc::clone(reason)));
        }
        match read(&self.readers) {
            Some(Ok(value)) => Ok(value),
            Some(Err(failure)) => {
                let error = failure.store_error();
                tracing::error!(%error, path = %self.path.display(), "a read failed");
                Err(error)
            }
            None => Err(StoreError::Stopped(Arc::from("it was closed"))),
        }
    }

    async fn write(&self, work: Work) -> Result<Outcome, StoreError> {
        match self.writer.submit(work).await? {
            Outcome::Refused(error) => Err(error),
            outcome @ (Outcome::Change(_)
            | Outcome::Claims(_)
            | Outcome::Holder(_)
            | Outcome::Purged(_)
            | Outcome::Done) => Ok(outcome),
        }
    }

    async fn give_keys(&self, count: u32) -> Result<Range<i64>, StoreError> {
        loop {
            let wanted = {
                let mut keys = lock(&self.keys);
                let end = keys.next + i64::from(count);
                if end <= keys.end {
                    let given = keys.next..end;
                    keys.next = end;
                    return Ok(given);
                }
                end + KEYS_AHEAD
            };
            // On the disk first: a key that is given is never given again.
            self.write(Work::Reserve { next_key: wanted }).await?;
            let mut keys = lock(&self.keys);
            keys.end = keys.end.max(wanted);
        }
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.close();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store for SqliteStore {
    fn public_ids(&self) -> &PublicIds {
        &self.ids
    }

    fn allot(&self, count: u32) -> BoxFuture<'_, Result<Range<i64>, StoreError>> {
        Box::pin(self.give_keys(count))
    }

    fn commit(&self, change: Change) -> BoxFuture<'_, Result<Applied, ChangeError>> {
        // Queued now, not when first polled: a caller that sends several keeps their order.
        let outcome = self.writer.submit(Work::Change(Box::new(change)));
        Box::pin(async move {
            match outcome.await? {
                Outcome::Change(result) => result,
                Outcome::Refused(error) => Err(error.into()),
                Outcome::Claims(_) | Outcome::Holder(_) | Outcome::Purged(_) | Outcome::Done => {
                    Err(mismatch().into())
                }
            }
        })
    }

    fn find(
        &self,
        scope: &Scope,
        id: &TaskId,
    ) -> BoxFuture<'_, Result<Option<TaskKey>, StoreError>> {
        let result = self.read_alone(|db, names| read::find(db, names, &self.ids, scope, id));
        Box::pin(std::future::ready(result))
    }

    fn load(
        &self,
        scope: &Scope,
        id: &TaskId,
        bytes_max: usize,
    ) -> BoxFuture<'_, Result<Option<Stored>, StoreError>> {
        let result =
            self.read_alone(|db, names| read::load(db, names, &self.ids, scope, id, bytes_max));
        Box::pin(std::future::ready(result))
    }

    fn head(&self, task: TaskKey) -> BoxFuture<'_, Result<Option<Arc<Head>>, StoreError>> {
        let result = self.read_alone(|db, names| read::head(db, names, task));
        Box::pin(std::future::ready(result))
    }

    fn read(
        &self,
        task: TaskKey,
        after: Number,
        bytes_max: usize,
    ) -> BoxFuture<'_, Result<Vec<Entry>, StoreError>> {
        let result = self.read(|db, _| read::entries(db, task, after, bytes_max));
        Box::pin(std::future::ready(result))
    }

    fn snapshot(&self, task: TaskKey) -> BoxFuture<'_, Result<Option<Snapshot>, StoreError>> {
        let result = self.read_alone(|db, _| snapshots::find(db, task, true));
        Box::pin(std::future::ready(result))
    }

    fn list<'a>(
        &'a self,
        scope: &'a Scope,
        filter: &'a ListFilter,
        after: Option<ListPlace>,
        limit: usize,
        bytes_max: usize,
        artifacts: bool,
        known: &'a mut Known<'_>,
    ) -> BoxFuture<'a, Result<ListPage, StoreError>> {
        let query = list::Query {
            filter,
            after,
            limit,
            bytes_max,
            artifacts,
        };
        let result = self.read(|db, names| list::page(db, names, &self.ids, scope, &query, known));
        Box::pin(std::future::ready(result))
    }

    fn once(
        &self,
        scope: &Scope,
        key: [u8; 16],
    ) -> BoxFuture<'_, Result<Option<OnceHit>, StoreError>> {
        let waiting = once::waiting_places(&self.waiting, &key);
        let result = self.read(|db, names| match names.find(db, scope)? {
            Some(scope) => once::find(db, &waiting, scope.scope, &key),
            None => Ok(None),
        });
        Box::pin(std::future::ready(result))
    }

    fn open_holder(&self) -> BoxFuture<'_, Result<HolderId, StoreError>> {
        Box::pin(async {
            match self.write(Work::OpenHolder).await? {
                Outcome::Holder(holder) => Ok(holder),
                _ => Err(mismatch()),
            }
        })
    }

    fn claim(
        &self,
        holder: HolderId,
        wanted: Vec<(AgentId, u32)>,
    ) -> BoxFuture<'_, Result<Claims, StoreError>> {
        Box::pin(async move {
            match self.write(Work::Claim { holder, wanted }).await? {
                Outcome::Claims(claims) => Ok(claims),
                _ => Err(mismatch()),
            }
        })
    }

    fn line(&self, task: TaskKey) -> BoxFuture<'_, Result<Vec<TurnRef>, StoreError>> {
        let result = self.read(|db, _| read::line(db, task));
        Box::pin(std::future::ready(result))
    }

    fn orphans(&self, limit: u32) -> BoxFuture<'_, Result<Vec<Claimed>, StoreError>> {
        let result = self.read(|db, names| read::orphans(db, names, self.first_holder, limit));
        Box::pin(std::future::ready(result))
    }

    fn idle(
        &self,
        before: Timestamp,
        limit: u32,
    ) -> BoxFuture<'_, Result<Vec<TaskKey>, StoreError>> {
        let result = self.read(|db, _| read::idle(db, before, limit));
        Box::pin(std::future::ready(result))
    }

    fn rested(
        &self,
        after: ListPlace,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<(ListPlace, Number)>, StoreError>> {
        let result = self.read(|db, _| rested::rested(db, after, limit));
        Box::pin(std::future::ready(result))
    }

    fn purge(
        &self,
        before: Timestamp,
        limit: u32,
    ) -> BoxFuture<'_, Result<Vec<TaskKey>, StoreError>> {
        Box::pin(async move {
            match self.write(Work::Purge { before, limit }).await? {
                Outcome::Purged(keys) => Ok(keys),
                _ => Err(mismatch()),
            }
        })
    }

    fn stats(&self) -> BoxFuture<'_, Result<StoreStats, StoreError>> {
        let result = self.read(|db, _| read::stats(db));
        Box::pin(std::future::ready(result))
    }

    fn check(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async { self.write(Work::Check).await.map(|_| ()) })
    }

    fn version(&self, task: TaskKey) -> BoxFuture<'_, Result<Option<Number>, StoreError>> {
        let result = self.read(|db, names| read::head(db, names, task));
        let version = result.map(|head| head.map(|head| head.version));
        Box::pin(std::future::ready(version))
    }
}
