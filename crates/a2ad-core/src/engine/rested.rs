//! Following what has come to rest: every task that ended or waits for its client, whoever owns it.
//!
//! This is for what is made of tasks outside the engine, such as transcripts. It begins where its
//! reader left off, and may tell the same thing again; it leaves nothing out.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use a2ad_proto::{Task, Timestamp};
use tokio::time::Instant;

use super::feed::{Caught, Following, Told};
use super::read::{freeze, thaw_or_begin};
use super::{Engine, EngineError, Inner};
use crate::agent::AgentPolicy;
use crate::keys::{Number, TaskKey};
use crate::store::ListPlace;
use crate::task::{Head, Identity, Snapshot};

/// How many tasks are read at a time.
const PAGE: usize = 64;
/// A batch ends when it has so many bytes.
const BATCH_BYTES: usize = 1 << 20;
/// Where others write too, their news may get lost: this often it is looked for what was missed.
const COMPARE_EVERY: Duration = Duration::from_secs(2);
/// By so much instances may disagree about the time, and a commit may come late.
const COMPARE_BACK_MS: i64 = 10_000;

/// A task that has come to rest.
#[derive(Clone, Debug, PartialEq)]
pub struct Rested {
    /// Which task, and whose.
    pub identity: Arc<Identity>,
    /// The task as it is.
    pub task: Task,
    /// The number of its newest entry.
    pub version: Number,
}

/// A stream of them.
#[derive(Debug)]
pub struct Resting {
    inner: Arc<Inner>,
    feed: Following,
    /// Where a list is being read, and when that began.
    listing: Option<(ListPlace, Timestamp)>,
    /// Tasks to be looked at, some of them as they were caught.
    pending: VecDeque<(TaskKey, Option<Caught>)>,
    ready: Vec<Rested>,
    bytes: usize,
    told: Told,
    compare_at: Option<Instant>,
    sure_until: Timestamp,
    /// Until all is told that rested at the beginning.
    hold: Option<Hold>,
}

/// While there is one, no task is deleted because its context has too many: somebody has yet to see
/// it.
#[derive(Debug)]
struct Hold(Arc<Inner>);

impl Hold {
    fn new(inner: &Arc<Inner>) -> Self {
        inner.holds.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(inner))
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.holds.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Inner {
    /// How many tasks a context of an agent may keep.
    pub(super) fn context_tasks_max(&self, policy: &AgentPolicy) -> Option<u32> {
        let cap = policy.context_tasks_max;
        cap.filter(|_| self.holds.load(Ordering::Acquire) == 0)
    }
}

impl Engine {
    /// Everything that came to rest at `since` or later, then whatever does.
    #[must_use]
    pub fn follow_rested(&self, since: Timestamp) -> Resting {
        let inner = &self.inner;
        // Opened before the list is read, so nothing falls in between.
        let feed = inner.hub.feeds.open(None);
        let shared = !inner.store.exclusive();
        Resting {
            inner: Arc::clone(inner),
            feed,
            listing: Some((before(since.as_millis()), inner.now())),
            pending: VecDeque::new(),
            ready: Vec::new(),
            bytes: 0,
            told: Told::default(),
            compare_at: shared.then(|| Instant::now() + COMPARE_EVERY),
            sure_until: since,
            hold: Some(Hold::new(inner)),
        }
    }
}

/// The place before everything at this time.
const fn before(status_at: i64) -> ListPlace {
    ListPlace {
        status_at,
        key: TaskKey(i64::MIN),
    }
}

/// The task at `head`, from what was caught of it if anything was.
async fn frozen(
    inner: &Inner,
    head: &Head,
    caught: Option<Caught>,
) -> Result<Arc<Snapshot>, EngineError> {
    match caught {
        None => inner.frozen(head).await,
        Some(Caught {
            snapshot: Some(frozen),
            ..
        }) => Ok(Arc::new(frozen)),
        Some(Caught { entries, .. }) => freeze(head.identity.key, None, &entries).map(Arc::new),
    }
}

impl Resting {
    /// What comes next: at least one task. `None` when the server is stopping. Cancel-safe.
    pub async fn next(&mut self) -> Option<Result<Vec<Rested>, EngineError>> {
        loop {
            let is_full = self.ready.len() >= PAGE || self.bytes >= BATCH_BYTES;
            if !self.ready.is_empty() && (is_full || self.pending.is_empty()) {
                self.bytes = 0;
                return Some(Ok(std::mem::take(&mut self.ready)));
            }
            if self.inner.life.over.is_cancelled() {
                return None;
            }
            let step = if let Some((task, caught)) = self.pending.front() {
                let (task, caught) = (*task, caught.clone());
                self.look_at(task, caught).await
            } else if let Some((after, began)) = self.listing {
                self.list_on(after, began).await
            } else {
                self.hold = None;
                self.wait().await;
                self.take_news();
                Ok(())
            };
            if let Err(error) = step {
                return Some(Err(error));
            }
        }
    }

    /// Up to when all that came to rest has been told, if that can be said.
    #[must_use]
    pub fn sure_until(&self) -> Option<Timestamp> {
        let at_hand = !self.pending.is_empty() || !self.ready.is_empty();
        match self.listing {
            _ if at_hand => None,
            Some((after, _)) => Some(Timestamp::from_millis(after.status_at).min(self.sure_until)),
            None => Some(self.sure_until),
        }
    }

    async fn look_at(&mut self, task: TaskKey, caught: Option<Caught>) -> Result<(), EngineError> {
        let inner = &self.inner;
        let head = match &caught {
            Some(caught) => Some(Arc::clone(&caught.head)),
            None => inner.head(task).await?,
        };
        let at_rest = |state: a2ad_proto::TaskState| state.is_terminal() || state.is_interrupted();
        let told = self.told.of(task).map(|(version, _)| version);
        let head = head.filter(|head| at_rest(head.state) && told < Some(head.version));
        let rested = match &head {
            Some(head) => match frozen(inner, head, caught).await {
                Ok(frozen) if frozen.version > Number::ZERO => {
                    self.bytes += frozen.size();
                    Some(Rested {
                        identity: Arc::clone(&head.identity),
                        task: thaw_or_begin(task, Some(&frozen)).task,
                        version: frozen.version,
                    })
                }
                Ok(_) => None,
                // One that is damaged must not hold up the others.
                Err(error @ EngineError::Internal(_)) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::error!(task = task.0, error, "a damaged task is passed over");
                    None
                }
                Err(error) => return Err(error),
            },
            None => None,
        };
        self.pending.pop_front();
        if let Some(rested) = rested {
            let state = rested.task.status.state;
            self.told.put(task, rested.version, state);
            self.ready.push(rested);
        }
        Ok(())
    }

    async fn list_on(&mut self, after: ListPlace, began: Timestamp) -> Result<(), EngineError> {
        let page = self.inner.store.rested(after, PAGE).await?;
        let told = |task, version| self.told.of(task).is_some_and(|(told, _)| told >= version);
        let news = page.iter().filter(|(at, version)| !told(at.key, *version));
        self.pending.extend(news.map(|(at, _)| (at.key, None)));
        self.listing = page.last().map(|(at, _)| (*at, began));
        if self.listing.is_none() {
            self.sure_until = self.sure_until.max(began);
        }
        Ok(())
    }

    async fn wait(&self) {
        let compare = async {
            match self.compare_at {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.feed.arrived() => {}
            () = compare => {}
            () = self.inner.life.over.cancelled() => {}
        }
    }

    fn take_news(&mut self) {
        let taken_at = self.inner.now();
        let news = self.feed.take();
        let tasks = news.tasks.into_iter();
        self.pending
            .extend(tasks.map(|(task, heard)| (task, heard.caught)));
        let now = Instant::now();
        let due = self.compare_at.is_some_and(|at| now >= at);
        if due {
            self.compare_at = Some(now + COMPARE_EVERY);
        }
        if news.missed || due {
            let from = self.sure_until.as_millis().saturating_sub(COMPARE_BACK_MS);
            self.listing = Some((before(from), taken_at));
        } else if self.inner.store.exclusive() {
            self.sure_until = self.sure_until.max(taken_at);
        }
    }
}
