//! The engine: accepts messages, runs turns, answers questions about tasks.
//!
//! Every operation is the same few steps: find the task in the caller's scope, take its head,
//! [`decide`](crate::task::decide), commit under the version decided on, and again from the start
//! if somebody was faster. What agents say comes back the same way. There is no second door.

mod accept;
mod busy;
mod cache;
mod cancel;
mod content;
mod cursor;
mod dispatch;
mod draft;
mod error;
mod failure;
mod feed;
mod follow_up;
mod hub;
mod idempotency;
mod list;
mod monitor;
mod passes;
mod read;
mod reply;
mod rested;
mod run;
mod speak;
mod submit;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use a2ad_proto::{AgentId, Timestamp};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use crate::agent::{Agent, AgentPolicy};
use crate::clock::Surroundings;
use crate::keys::{HolderId, Scope, TaskKey, TurnRef};
use crate::store::{Store, StoreError};

pub use cursor::{Frame, Frames};
pub use error::EngineError;
pub use hub::Hub;
pub use monitor::{Seen, SeenPage, Sight, Sighting, Sightings};
pub use rested::{Rested, Resting};
pub use run::describe_metrics;
pub(crate) use speak::is_response;

/// Who asks, for which agent, and what came with the request.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Whose tasks, with which agent.
    pub scope: Scope,
    /// The caller's own name for the request (`Idempotency-Key`), if given.
    pub idempotency_key: Option<String>,
}

/// An agent to serve.
#[derive(Clone, Debug)]
pub struct AgentSpec {
    /// Its id.
    pub id: AgentId,
    /// How it runs.
    pub agent: Arc<dyn Agent>,
    /// Its limits and rules.
    pub policy: AgentPolicy,
}

/// How long tasks are kept.
#[derive(Clone, Debug)]
pub struct Retention {
    /// Ended tasks are deleted after this long.
    pub terminal: Duration,
    /// Tasks that wait for their client are ended after this long.
    pub interrupted: Duration,
    /// How often to look.
    pub every: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        const DAY: u64 = 24 * 3600;
        Self {
            terminal: Duration::from_secs(30 * DAY),
            interrupted: Duration::from_secs(7 * DAY),
            every: Duration::from_secs(60),
        }
    }
}

/// How the engine behaves.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// The agents to serve.
    pub agents: Vec<AgentSpec>,
    /// How long tasks are kept.
    pub retention: Retention,
    /// How long CancelTask waits for the agent to stop before it answers.
    pub cancel_wait: Duration,
    /// Time and randomness.
    pub surroundings: Surroundings,
}

impl EngineOptions {
    /// The defaults, for these agents.
    #[must_use]
    pub fn new(agents: Vec<AgentSpec>) -> Self {
        Self {
            agents,
            retention: Retention::default(),
            cancel_wait: Duration::from_secs(5),
            surroundings: Surroundings::default(),
        }
    }
}

/// A cheap handle to the engine.
#[derive(Clone, Debug)]
pub struct Engine {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    store: Arc<dyn Store>,
    hub: Arc<Hub>,
    /// Who the leases of this process are given to.
    holding: Mutex<Arc<Holding>>,
    agents: HashMap<AgentId, Arc<Served>>,
    surroundings: Surroundings,
    retention: Retention,
    cancel_wait: Duration,
    keys: Mutex<Range<i64>>,
    /// Turns that run here, each with the token that tells it to stop.
    running: Mutex<HashMap<TurnRef, CancellationToken>>,
    /// Turns that run, and messages and cancels that are being taken.
    turns: TaskTracker,
    /// Messages and cancels that are being taken after all turns have ended.
    late: TaskTracker,
    background: TaskTracker,
    /// How many have yet to see what contexts have too much of.
    holds: AtomicUsize,
    /// When the store was last asked whether it can be written, and what it said.
    checked: Mutex<Option<(Instant, Result<(), StoreError>)>>,
    life: Life,
}

/// A holder of leases, for as long as it lasts.
#[derive(Debug)]
struct Holding {
    id: HolderId,
    /// Its leases are over: whoever works under it stops at once and writes nothing more.
    lost: CancellationToken,
}

impl Holding {
    async fn open(store: &dyn Store) -> Result<Arc<Self>, StoreError> {
        let id = store.open_holder().await?;
        let lost = CancellationToken::new();
        Ok(Arc::new(Self { id, lost }))
    }
}

/// The two steps of stopping.
#[derive(Debug, Default)]
struct Life {
    /// Begin no new work; what runs may finish.
    closing: CancellationToken,
    /// Hand back what runs; end streams and waits.
    over: CancellationToken,
}

#[derive(Debug)]
struct Served {
    agent: Arc<dyn Agent>,
    policy: AgentPolicy,
    /// One permit per turn that may run at once.
    slots: Arc<Semaphore>,
}

/// How many keys to set aside at a time.
const KEYS_BLOCK: u32 = 256;
/// How long an answer about the store's health serves.
const CHECK_AGAIN: Duration = Duration::from_secs(1);
/// How often a decision is made again because somebody else was faster.
const CONFLICTS_MAX: u32 = 64;

impl Engine {
    /// Starts the engine on `store`, which must tell `hub` of its commits. Takes up what an
    /// earlier run left behind.
    pub async fn start(
        options: EngineOptions,
        store: Arc<dyn Store>,
        hub: Arc<Hub>,
    ) -> Result<Self, StoreError> {
        let holding = Holding::open(&*store).await?;
        let agents = options
            .agents
            .into_iter()
            .map(|spec| {
                let slots = Arc::new(Semaphore::new(spec.policy.running_max as usize));
                let served = Served {
                    agent: spec.agent,
                    policy: spec.policy,
                    slots,
                };
                (spec.id, Arc::new(served))
            })
            .collect();
        let inner = Arc::new(Inner {
            store,
            hub,
            holding: Mutex::new(holding),
            agents,
            surroundings: options.surroundings,
            retention: options.retention,
            cancel_wait: options.cancel_wait,
            keys: Mutex::new(0..0),
            running: Mutex::default(),
            turns: TaskTracker::new(),
            late: TaskTracker::new(),
            background: TaskTracker::new(),
            holds: AtomicUsize::new(0),
            checked: Mutex::default(),
            life: Life::default(),
        });
        inner
            .background
            .spawn(dispatch::recover(Arc::clone(&inner)));
        inner
            .background
            .spawn(dispatch::claim_turns(Arc::clone(&inner)));
        inner
            .background
            .spawn(dispatch::keep_house(Arc::clone(&inner)));
        if !inner.store.exclusive() {
            inner
                .background
                .spawn(dispatch::keep_holding(Arc::clone(&inner)));
        }
        Ok(Self { inner })
    }

    /// Whether the engine takes work: it is not stopping, and the store can be written.
    pub async fn ready(&self) -> Result<(), EngineError> {
        let inner = &self.inner;
        if inner.life.closing.is_cancelled() {
            return Err(EngineError::Unavailable(None));
        }
        // Anybody may ask, and asking costs a write; so one answer serves for a moment.
        let recent = lock(&inner.checked).clone();
        if let Some((at, answer)) = recent
            && at.elapsed() < CHECK_AGAIN
        {
            return Ok(answer?);
        }
        let answer = inner.store.check().await;
        *lock(&inner.checked) = Some((Instant::now(), answer.clone()));
        Ok(answer?)
    }

    /// Resolves with the reason when the store has stopped for good; the process should end then.
    pub async fn stopped(&self) -> Arc<str> {
        self.inner.hub.store_stopped().await
    }

    /// Stops: begins no more work, lets what runs finish for as long as `patience`, then hands the
    /// rest back, ends streams after a whole frame and answers blocked sends with the task as it
    /// is. Done when nothing of the engine runs any more, but for messages that are still coming in
    /// for others: whoever lets them in has to wait for them.
    pub async fn drain(&self, patience: Duration) {
        let inner = &self.inner;
        inner.life.closing.cancel();
        inner.turns.close();
        if tokio::time::timeout(patience, inner.turns.wait())
            .await
            .is_err()
        {
            let turns = inner.turns.len();
            tracing::info!(turns, "handing back the turns that still run");
        }
        inner.life.over.cancel();
        inner.turns.wait().await;
        inner.background.close();
        inner.background.wait().await;
    }
}

impl Inner {
    fn now(&self) -> Timestamp {
        self.surroundings.clock.now()
    }

    fn holding(&self) -> Arc<Holding> {
        Arc::clone(&lock(&self.holding))
    }

    /// Messages are taken until we close; or for as long as anybody can reach us, if there may be
    /// others to work on them. Then nobody who calls has to know that we are going, not even on a
    /// connection that was kept for long and is used again in our last moment.
    fn refuse_if_closing(&self) -> Result<(), EngineError> {
        if self.store.exclusive() && self.life.closing.is_cancelled() {
            return Err(EngineError::Unavailable(None));
        }
        Ok(())
    }

    /// What the end waits for, or what it does not: there may always be more of what comes in last.
    fn waited_for(&self) -> &TaskTracker {
        if self.life.over.is_cancelled() {
            &self.late
        } else {
            &self.turns
        }
    }

    /// Does `work` to its end, also if whoever waits for it goes away: a handler's future dies
    /// with its connection, but what is committed has to be followed up.
    fn see_through<T, W>(&self, work: W) -> impl Future<Output = W::Output> + use<T, W>
    where
        T: Send + 'static,
        W: Future<Output = Result<T, EngineError>> + Send + 'static,
    {
        let done = self.waited_for().spawn(work.in_current_span());
        async move {
            match done.await {
                Ok(result) => result,
                Err(panicked) => Err(EngineError::Internal(Box::new(panicked))),
            }
        }
    }

    fn served(&self, agent: &AgentId) -> Result<&Arc<Served>, EngineError> {
        self.agents
            .get(agent)
            .ok_or_else(|| EngineError::Unsupported(format!("There is no agent {agent} here")))
    }

    async fn new_key(&self) -> Result<TaskKey, EngineError> {
        loop {
            if let Some(key) = lock(&self.keys).next() {
                return Ok(TaskKey(key));
            }
            let block = self.store.allot(KEYS_BLOCK).await?;
            let mut keys = lock(&self.keys);
            // Somebody else may have brought a block meanwhile; keys need not be used up.
            if keys.is_empty() {
                *keys = block;
            }
        }
    }
}

#[cfg(feature = "test-util")]
impl Engine {
    /// How many turns run in this process.
    #[must_use]
    pub fn running(&self) -> usize {
        lock(&self.inner.running).len()
    }
}

/// What these locks guard stays usable if its holder panicked: every change to it is one step.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
