//! The store as the engine sees it.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use a2ad_core::keys::{HolderId, Number, PublicIds, Scope, TaskKey, TurnRef};
use a2ad_core::store::{
    Applied, Change, ChangeError, Claimed, Claims, Known, ListFilter, ListPage, ListPlace, OnceHit,
    Store, StoreError, StoreStats, Stored, Wake,
};
use a2ad_core::task::{Entry, Head, Snapshot};
use a2ad_proto::{AgentId, TaskId, Timestamp};
use futures_util::future::BoxFuture;
use tokio::sync::{Mutex, Notify};
use tokio_util::task::TaskTracker;

use super::claim::Claimer;
use super::fail::Failure;
use super::holders::{Holders, time};
use super::lane::{Equipment, Lanes};
use super::list;
use super::names::Names;
use super::news::{self, News};
use super::open::{self, OpenError};
use super::options::PostgresOptions;
use super::purge;
use super::read::Reader;
use super::session::Ground;
use super::sessions::{Sessions, Slot};
use super::watch;

/// How many keys are taken at a time. Those that are left when the store is closed are lost, which
/// costs nothing: there are 2^41.
const KEYS_AHEAD: i64 = 1 << 10;

/// How long closing waits for commits that are under way.
const CLOSE: Duration = Duration::from_secs(10);

/// Tasks, journals and turns in a PostgreSQL database that any number of instances share.
///
/// It has to be opened within a runtime, in which its lanes then run; [`close`](Self::close) ends
/// them. A store that is dropped gives its leases up only by letting them run out.
#[derive(Debug)]
pub struct PostgresStore {
    ground: Arc<Ground>,
    reader: Arc<Reader>,
    lanes: Lanes,
    holders: Arc<Holders>,
    claimer: Arc<Claimer>,
    keeper: Arc<Mutex<Slot>>,
    keys: Mutex<Range<i64>>,
    instance: HolderId,
    /// What runs beside the callers, besides connections and lanes.
    tasks: TaskTracker,
}

impl PostgresStore {
    /// Opens the database; creates the tables if there are none. `wake` hears of every commit
    /// before its caller does, and of what other instances do.
    ///
    /// # Errors
    /// If the database cannot be reached or used; see [`OpenError`].
    pub async fn open(options: PostgresOptions, wake: Arc<dyn Wake>) -> Result<Self, OpenError> {
        let ground = Arc::new(Ground::new(options)?);
        // If it does not come to an end, nothing is left running.
        let unfinished = ground.stop.clone().drop_guard();
        let database = open::prepare(&ground).await?;
        let ids = PublicIds::new(database.secret);
        let reader = Arc::new(Reader {
            sessions: Sessions::new(&ground, ground.options.readers),
            names: Arc::new(Names::default()),
            ids: ids.clone(),
        });
        let holders = Arc::new(Holders::new(Arc::clone(&ground), Arc::clone(&wake)));
        let server = &ground.target.server;
        let failed = |failure: Failure| OpenError::from_failure(server, &failure);
        let instance = holders.open(true).await.map_err(failed)?;
        // Whoever copies says so first and then looks for instances; we do it the other way round,
        // so that one of us sees the other.
        if reader.is_half_copied().await.map_err(failed)? {
            holders.close(instance).await;
            return Err(OpenError::HalfCopied {
                server: server.clone(),
            });
        }
        let tasks = TaskTracker::new();
        let news = News::default();
        let missed = Arc::new(Notify::new());
        tasks.spawn(Arc::clone(&holders).beat(instance));
        tasks.spawn(
            news.clone()
                .tell(Arc::clone(&ground), Arc::clone(&reader), instance.0),
        );
        tasks.spawn(news::hear(
            Arc::clone(&ground),
            Arc::clone(&reader),
            Arc::clone(&wake),
            instance.0,
            Arc::clone(&missed),
        ));
        tasks.spawn(watch::watch(
            Arc::clone(&ground),
            Arc::clone(&reader),
            Arc::clone(&wake),
            missed,
        ));
        tasks.close();
        let equipment = Arc::new(Equipment {
            ground: Arc::clone(&ground),
            names: Arc::clone(&reader.names),
            ids,
            wake,
            news,
            instance: instance.0,
        });
        let store = Self {
            lanes: Lanes::start(&equipment),
            claimer: Arc::new(Claimer::new(&ground, &reader)),
            keeper: Arc::new(Mutex::new(Slot::new(Arc::clone(&ground), &[]))),
            keys: Mutex::new(0..0),
            reader,
            holders,
            ground,
            instance,
            tasks,
        };
        unfinished.disarm();
        Ok(store)
    }

    /// Takes no more changes, commits those that wait, gives its leases up and disconnects.
    /// Everything afterwards is refused.
    pub async fn close(&self) {
        self.lanes.close();
        if tokio::time::timeout(CLOSE, self.lanes.ended())
            .await
            .is_err()
        {
            tracing::warn!("some commits did not come to an end");
        }
        self.holders.close(self.instance).await;
        self.ground.stop.cancel();
        self.ground.tracker.close();
        self.lanes.ended().await;
        self.tasks.wait().await;
        self.ground.tracker.wait().await;
    }

    /// Sees something to its end even if the caller goes away.
    async fn see_through<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<T, StoreError> {
        match self.tasks.spawn(work).await {
            Ok(result) => told(result),
            Err(_) => Err(StoreError::Stopped(Arc::from("it was closed"))),
        }
    }

    async fn give_keys(&self, count: u32) -> Result<Range<i64>, Failure> {
        const TAKE: &str =
            "UPDATE meta SET number = number + $1 WHERE key = 'next_key' RETURNING number";
        let count = i64::from(count);
        let mut keys = self.keys.lock().await;
        if keys.end - keys.start < count {
            let block = count.max(KEYS_AHEAD);
            let rows = self.reader.sessions.write(TAKE, &[&block]).await?;
            let row = rows
                .first()
                .ok_or_else(|| Failure::Damaged("the next key is missing".to_owned()))?;
            let end: i64 = row.try_get(0)?;
            *keys = end - block..end;
        }
        let given = keys.start..keys.start + count;
        keys.start = given.end;
        Ok(given)
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.lanes.close();
        self.ground.stop.cancel();
    }
}

/// What the engine is told. Damage is logged here, once; a server that is away says so often.
fn told<T>(result: Result<T, Failure>) -> Result<T, StoreError> {
    result.map_err(|failure| {
        let error = failure.store_error();
        match &error {
            StoreError::Corrupt(_) => tracing::error!(%error, "the database is damaged"),
            StoreError::Full(_) | StoreError::Unavailable(_) | StoreError::Stopped(_) => {
                tracing::debug!(%error, "the database could not be asked");
            }
        }
        error
    })
}

impl Store for PostgresStore {
    fn public_ids(&self) -> &PublicIds {
        &self.reader.ids
    }

    fn allot(&self, count: u32) -> BoxFuture<'_, Result<Range<i64>, StoreError>> {
        Box::pin(async move { told(self.give_keys(count).await) })
    }

    fn commit(&self, change: Change) -> BoxFuture<'_, Result<Applied, ChangeError>> {
        // Queued now, not when first polled: a caller that sends several keeps their order.
        Box::pin(self.lanes.submit(change))
    }

    fn find(
        &self,
        scope: &Scope,
        id: &TaskId,
    ) -> BoxFuture<'_, Result<Option<TaskKey>, StoreError>> {
        let (scope, id) = (scope.clone(), id.clone());
        Box::pin(async move { told(self.reader.find(&scope, &id).await) })
    }

    fn load(
        &self,
        scope: &Scope,
        id: &TaskId,
        bytes_max: usize,
    ) -> BoxFuture<'_, Result<Option<Stored>, StoreError>> {
        let (scope, id) = (scope.clone(), id.clone());
        Box::pin(async move { told(self.reader.load(&scope, &id, bytes_max).await) })
    }

    fn head(&self, task: TaskKey) -> BoxFuture<'_, Result<Option<Arc<Head>>, StoreError>> {
        Box::pin(async move { told(self.reader.head(task).await) })
    }

    fn read(
        &self,
        task: TaskKey,
        after: Number,
        bytes_max: usize,
    ) -> BoxFuture<'_, Result<Vec<Entry>, StoreError>> {
        Box::pin(async move { told(self.reader.entries(task, after, bytes_max).await) })
    }

    fn snapshot(&self, task: TaskKey) -> BoxFuture<'_, Result<Option<Snapshot>, StoreError>> {
        Box::pin(async move { told(self.reader.snapshot(task).await) })
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
        Box::pin(async move {
            let query = list::Query {
                filter,
                after,
                limit,
                bytes_max,
                artifacts,
            };
            told(self.reader.list(scope, &query, known).await)
        })
    }

    fn once(
        &self,
        scope: &Scope,
        key: [u8; 16],
    ) -> BoxFuture<'_, Result<Option<OnceHit>, StoreError>> {
        let scope = scope.clone();
        Box::pin(async move { told(self.reader.once(&scope, key).await) })
    }

    fn open_holder(&self) -> BoxFuture<'_, Result<HolderId, StoreError>> {
        Box::pin(async move { told(self.holders.open(false).await) })
    }

    fn claim(
        &self,
        holder: HolderId,
        wanted: Vec<(AgentId, u32)>,
    ) -> BoxFuture<'_, Result<Claims, StoreError>> {
        let claimer = Arc::clone(&self.claimer);
        Box::pin(self.see_through(async move { claimer.claim(holder, wanted).await }))
    }

    fn line(&self, task: TaskKey) -> BoxFuture<'_, Result<Vec<TurnRef>, StoreError>> {
        Box::pin(async move { told(self.reader.line(task).await) })
    }

    fn orphans(&self, limit: u32) -> BoxFuture<'_, Result<Vec<Claimed>, StoreError>> {
        let time = time(&self.ground.options);
        Box::pin(async move { told(self.reader.orphans(time, self.instance.0, limit).await) })
    }

    fn idle(
        &self,
        before: Timestamp,
        limit: u32,
    ) -> BoxFuture<'_, Result<Vec<TaskKey>, StoreError>> {
        Box::pin(async move { told(self.reader.idle(before, limit).await) })
    }

    fn rested(
        &self,
        after: ListPlace,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<(ListPlace, Number)>, StoreError>> {
        Box::pin(async move { told(self.reader.rested(after, limit).await) })
    }

    fn purge(
        &self,
        before: Timestamp,
        limit: u32,
    ) -> BoxFuture<'_, Result<Vec<TaskKey>, StoreError>> {
        let keeper = Arc::clone(&self.keeper);
        Box::pin(self.see_through(async move {
            let slot = keeper.lock().await;
            let session = slot.session().await?;
            let purged = purge::purge(&session, before, limit).await;
            if purged.is_err() {
                slot.drop_session(&session).await;
            }
            purged
        }))
    }

    fn stats(&self) -> BoxFuture<'_, Result<StoreStats, StoreError>> {
        Box::pin(async move { told(self.reader.stats().await) })
    }

    fn check(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            if self.ground.is_crowded() {
                let why =
                    "the database has no connections left for us: raise max_connections there";
                return Err(StoreError::Unavailable(Arc::from(why)));
            }
            told(self.holders.check(self.instance).await)
        })
    }

    fn version(&self, task: TaskKey) -> BoxFuture<'_, Result<Option<Number>, StoreError>> {
        Box::pin(async move { told(self.reader.version(task).await) })
    }

    fn exclusive(&self) -> bool {
        false
    }
}
