//! A store that is away for a moment.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use a2ad_core::agent::AgentPolicy;
use a2ad_core::engine::{AgentSpec, Engine, EngineOptions, Hub};
use a2ad_core::keys::{HolderId, Number, PublicIds, Scope, TaskKey, TurnRef};
use a2ad_core::store::{
    Applied, Change, ChangeError, Claimed, Claims, Known, ListFilter, ListPage, ListPlace, OnceHit,
    Store, StoreError, StoreStats, Stored,
};
use a2ad_core::task::{Entry, Head, Snapshot};
use a2ad_proto::{
    AgentId, GetTaskRequest, SendMessageResponse, Task, TaskId, TaskState, Timestamp,
};
use a2ad_store::{SqliteOptions, SqliteStore};
use a2ad_testkit::agents::obedient;
use a2ad_testkit::client::{at_once, text};
use futures_util::future::BoxFuture;
use tempfile::TempDir;

use super::caller;

/// Goes away right after turns were leased, and comes back after a few questions.
#[derive(Debug)]
struct Shy {
    store: SqliteStore,
    /// From now on.
    armed: AtomicBool,
    /// How many questions it will not answer yet.
    away: AtomicU32,
    /// How many it did not answer.
    missed: AtomicU32,
}

impl Shy {
    fn answers<'a, T>(
        &'a self,
        answer: BoxFuture<'a, Result<T, StoreError>>,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        let less = |left: u32| left.checked_sub(1);
        let left = self
            .away
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
        if left.is_err() {
            return answer;
        }
        self.missed.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Err(StoreError::Unavailable(Arc::from("away for a moment"))) })
    }
}

impl Store for Shy {
    fn public_ids(&self) -> &PublicIds {
        self.store.public_ids()
    }
    fn allot(&self, count: u32) -> BoxFuture<'_, Result<Range<i64>, StoreError>> {
        self.store.allot(count)
    }
    fn commit(&self, change: Change) -> BoxFuture<'_, Result<Applied, ChangeError>> {
        self.store.commit(change)
    }
    fn find(
        &self,
        scope: &Scope,
        id: &TaskId,
    ) -> BoxFuture<'_, Result<Option<TaskKey>, StoreError>> {
        self.store.find(scope, id)
    }
    fn load(
        &self,
        scope: &Scope,
        id: &TaskId,
        bytes_max: usize,
    ) -> BoxFuture<'_, Result<Option<Stored>, StoreError>> {
        self.store.load(scope, id, bytes_max)
    }
    fn head(&self, task: TaskKey) -> BoxFuture<'_, Result<Option<Arc<Head>>, StoreError>> {
        self.answers(self.store.head(task))
    }
    fn read(
        &self,
        task: TaskKey,
        after: Number,
        bytes_max: usize,
    ) -> BoxFuture<'_, Result<Vec<Entry>, StoreError>> {
        self.answers(self.store.read(task, after, bytes_max))
    }
    fn snapshot(&self, task: TaskKey) -> BoxFuture<'_, Result<Option<Snapshot>, StoreError>> {
        self.store.snapshot(task)
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
        self.store
            .list(scope, filter, after, limit, bytes_max, artifacts, known)
    }
    fn once(
        &self,
        scope: &Scope,
        key: [u8; 16],
    ) -> BoxFuture<'_, Result<Option<OnceHit>, StoreError>> {
        self.store.once(scope, key)
    }
    fn open_holder(&self) -> BoxFuture<'_, Result<HolderId, StoreError>> {
        self.store.open_holder()
    }
    fn claim(
        &self,
        holder: HolderId,
        wanted: Vec<(AgentId, u32)>,
    ) -> BoxFuture<'_, Result<Claims, StoreError>> {
        let claimed = self.store.claim(holder, wanted);
        Box::pin(async move {
            let claims = claimed.await?;
            if !claims.turns.is_empty() && self.armed.load(Ordering::SeqCst) {
                self.away.store(2, Ordering::SeqCst);
            }
            Ok(claims)
        })
    }
    fn line(&self, task: TaskKey) -> BoxFuture<'_, Result<Vec<TurnRef>, StoreError>> {
        self.store.line(task)
    }
    fn orphans(&self, limit: u32) -> BoxFuture<'_, Result<Vec<Claimed>, StoreError>> {
        self.store.orphans(limit)
    }
    fn rested(
        &self,
        after: ListPlace,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<(ListPlace, Number)>, StoreError>> {
        self.store.rested(after, limit)
    }
    fn idle(
        &self,
        before: Timestamp,
        limit: u32,
    ) -> BoxFuture<'_, Result<Vec<TaskKey>, StoreError>> {
        self.store.idle(before, limit)
    }
    fn purge(
        &self,
        before: Timestamp,
        limit: u32,
    ) -> BoxFuture<'_, Result<Vec<TaskKey>, StoreError>> {
        self.store.purge(before, limit)
    }
    fn stats(&self) -> BoxFuture<'_, Result<StoreStats, StoreError>> {
        self.store.stats()
    }
    fn check(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.store.check()
    }
    fn version(&self, task: TaskKey) -> BoxFuture<'_, Result<Option<Number>, StoreError>> {
        self.store.version(task)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leased_turn_runs_once_the_store_is_back() {
    let folder = TempDir::new().unwrap();
    let hub = Hub::new();
    let options = SqliteOptions::at(folder.path().join("a2ad.db"));
    let store = Arc::new(Shy {
        store: SqliteStore::open(options, Arc::clone(&hub) as _).unwrap(),
        armed: AtomicBool::new(false),
        away: AtomicU32::new(0),
        missed: AtomicU32::new(0),
    });
    let agent = obedient();
    let spec = AgentSpec {
        id: "obedient".parse().unwrap(),
        agent: Arc::clone(&agent) as _,
        policy: AgentPolicy {
            running_max: 1,
            ..AgentPolicy::default()
        },
    };
    let options = EngineOptions::new(vec![spec]);
    let engine = Engine::start(options, Arc::clone(&store) as _, hub).await;
    let engine = engine.unwrap();
    // The one slot is taken, so that the second turn has to be claimed.
    let caller = caller();
    let first = engine.send(&caller, at_once(text("gate"))).await;
    first.unwrap();
    let second = engine.send(&caller, at_once(text("echo late"))).await;
    let SendMessageResponse::Task(second) = serde_json::from_slice(&second.unwrap()).unwrap()
    else {
        panic!("a task was expected");
    };
    store.armed.store(true, Ordering::SeqCst);
    // Nobody asks for anything but the turn, until there is none any more.
    let done = async {
        while store.stats().await.unwrap().turns.iter().sum::<u64>() > 0 {
            agent.open_gate();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(20), done).await;
    in_time.expect("the turn is not forgotten");
    let request = GetTaskRequest {
        id: second.id,
        ..GetTaskRequest::default()
    };
    let task = engine.get(&caller, request).await.unwrap();
    let task: Task = serde_json::from_slice(&task).unwrap();
    assert_eq!(task.status.state, TaskState::Completed);
    assert!(store.missed.load(Ordering::SeqCst) >= 2);
}
