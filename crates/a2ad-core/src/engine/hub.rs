//! Where commits are heard: heads, tails of journals, and those who wait.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::{Notify, watch};

use super::cache::Cache;
use super::lock;
use super::run::{TASKS_BEGUN, TASKS_ENDED};
use crate::keys::{Number, TaskKey};
use crate::store::{Committed, Wake};
use crate::task::{Entry, Head, Snapshot};

/// Heads kept in memory.
const HEADS_MAX: usize = 16 * 1024;
/// Bytes of snapshots kept in memory.
const SNAPSHOT_BYTES_MAX: usize = 16 << 20;
/// Entries and bytes of a watched journal kept in memory; a cursor that lags further reads the
/// store.
const TAIL_ENTRIES_MAX: usize = 512;
const TAIL_BYTES_MAX: usize = 256 << 10;

/// Hears of every commit and passes it on: first the caches, then the tails, then the wake-ups.
#[derive(Debug)]
pub struct Hub {
    heads: Cache<TaskKey, Arc<Head>>,
    snapshots: Cache<TaskKey, Arc<Snapshot>>,
    watches: Mutex<HashMap<TaskKey, Arc<Watch>>>,
    /// There may be turns to claim. True at first: an earlier run may have left some.
    work: Notify,
    work_seen: AtomicBool,
    stopped: watch::Sender<Option<Arc<str>>>,
}

#[derive(Debug, Default)]
struct Watch {
    state: Mutex<Tail>,
    changed: Notify,
}

/// The newest entries of one journal, shared by all its cursors.
#[derive(Debug, Default)]
struct Tail {
    head: Option<Arc<Head>>,
    entries: VecDeque<Entry>,
    bytes: usize,
}

impl Hub {
    /// A hub that has heard nothing yet.
    #[must_use]
    pub fn new() -> Arc<Self> {
        let hub = Self {
            heads: Cache::new(HEADS_MAX),
            snapshots: Cache::new(SNAPSHOT_BYTES_MAX),
            watches: Mutex::default(),
            work: Notify::new(),
            work_seen: AtomicBool::new(true),
            stopped: watch::Sender::new(None),
        };
        hub.work.notify_one();
        Arc::new(hub)
    }

    pub(super) fn cached_head(&self, task: TaskKey) -> Option<Arc<Head>> {
        self.heads.get(task)
    }

    pub(super) fn keep_head(&self, head: &Arc<Head>) {
        self.heads
            .insert_unless(head.identity.key, Arc::clone(head), 1, |known| {
                known.version > head.version
            });
    }

    pub(super) fn cached_snapshot(&self, task: TaskKey) -> Option<Arc<Snapshot>> {
        self.snapshots.get(task)
    }

    pub(super) fn keep_snapshot(&self, task: TaskKey, snapshot: Arc<Snapshot>) {
        let weight = snapshot.size();
        let version = snapshot.version;
        self.snapshots
            .insert_unless(task, snapshot, weight, |known| known.version > version);
    }

    /// Forgets what it knows of a task: it was changed past the hub, or is gone.
    pub(super) fn forget(&self, task: TaskKey) {
        self.heads.remove(task);
    }

    pub(super) fn forget_all_of(&self, task: TaskKey) {
        self.heads.remove(task);
        self.snapshots.remove(task);
    }

    /// Starts to follow a task. From now on its commits are kept in the tail.
    pub(super) fn watch(self: &Arc<Self>, task: TaskKey) -> Watching {
        let watch = Arc::clone(lock(&self.watches).entry(task).or_default());
        Watching {
            hub: Arc::clone(self),
            task,
            watch,
        }
    }

    /// Says that there may be turns to claim.
    pub(super) fn announce_work(&self) {
        self.work_seen.store(true, Ordering::Release);
        self.work.notify_one();
    }

    /// Says that turns were left for lack of a slot.
    pub(super) fn leave_work(&self) {
        self.work_seen.store(true, Ordering::Release);
    }

    /// A slot became free: worth a look only if turns were left waiting.
    pub(super) fn announce_slot(&self) {
        if self.work_seen.load(Ordering::Acquire) {
            self.work.notify_one();
        }
    }

    /// Says that all there was to claim has been claimed. Called before claiming, so that work
    /// announced meanwhile is not missed.
    pub(super) fn work_taken_up(&self) {
        self.work_seen.store(false, Ordering::Release);
    }

    pub(super) async fn work(&self) {
        self.work.notified().await;
    }

    /// Resolves with the reason when the store has stopped for good.
    pub(super) async fn store_stopped(&self) -> Arc<str> {
        let mut stopped = self.stopped.subscribe();
        let reason = match stopped.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone(),
            Err(_) => None,
        };
        reason.unwrap_or_else(|| Arc::from("unknown"))
    }
}

impl Wake for Hub {
    fn committed(&self, batch: Vec<Committed>) {
        let mut ready = false;
        let mut tally = Tally::default();
        for commit in &batch {
            ready |= !commit.ready.is_empty();
            tally.add(commit);
            // What is over as soon as it begins is seldom asked for again: a reader brings it in.
            if !commit.is_whole() {
                self.keep_head(&commit.head);
            }
        }
        tally.report();
        let mut woken = Vec::new();
        {
            let watches = lock(&self.watches);
            if !watches.is_empty() {
                for commit in batch {
                    if let Some(watch) = watches.get(&commit.head.identity.key) {
                        lock(&watch.state).push(commit);
                        woken.push(Arc::clone(watch));
                    }
                }
            }
        }
        for watch in woken {
            watch.changed.notify_waiters();
        }
        if ready {
            self.announce_work();
        }
    }

    fn stopped(&self, reason: &str) {
        self.stopped.send_replace(Some(Arc::from(reason)));
    }
}

/// What a batch adds to the counters.
#[derive(Debug, Default)]
struct Tally {
    begun: u64,
    /// By state.
    ended: BTreeMap<&'static str, u64>,
}

impl Tally {
    fn add(&mut self, commit: &Committed) {
        let Some(first) = commit.entries.first() else {
            return;
        };
        self.begun += u64::from(first.number == Number::FIRST);
        // Nothing is written to a task after its end, so this commit brought it.
        if commit.head.state.is_terminal() {
            *self.ended.entry(commit.head.state.as_str()).or_default() += 1;
        }
    }

    fn report(self) {
        if self.begun > 0 {
            metrics::counter!(TASKS_BEGUN).increment(self.begun);
        }
        for (state, count) in self.ended {
            metrics::counter!(TASKS_ENDED, "state" => state).increment(count);
        }
    }
}

impl Tail {
    fn push(&mut self, commit: Committed) {
        for entry in commit.entries {
            self.bytes += entry.bytes.len();
            self.entries.push_back(entry);
        }
        while self.entries.len() > TAIL_ENTRIES_MAX
            || (self.bytes > TAIL_BYTES_MAX && self.entries.len() > 1)
        {
            if let Some(oldest) = self.entries.pop_front() {
                self.bytes -= oldest.bytes.len();
            }
        }
        self.head = Some(commit.head);
    }
}

/// What the tail of a journal can say about the entries after a cursor.
pub(super) enum Tailed {
    /// These come next.
    Entries(Vec<Entry>),
    /// There is nothing new.
    Nothing,
    /// The task has ended, and there is nothing more to come.
    End,
    /// The tail does not reach back that far, or has seen no commit yet: ask the store.
    AskStore,
}

/// Somebody's interest in a task; the tail is kept while anybody has one.
#[derive(Debug)]
pub(super) struct Watching {
    hub: Arc<Hub>,
    pub(super) task: TaskKey,
    watch: Arc<Watch>,
}

impl Watching {
    /// The newest head seen since somebody began to watch.
    pub(super) fn head(&self) -> Option<Arc<Head>> {
        lock(&self.watch.state).head.clone()
    }

    /// The entries after `after`, as far as the tail knows.
    pub(super) fn after(&self, after: Number, bytes_max: usize) -> Tailed {
        let tail = lock(&self.watch.state);
        let Some(head) = &tail.head else {
            return Tailed::AskStore;
        };
        if head.version <= after {
            return if head.state.is_terminal() {
                Tailed::End
            } else {
                Tailed::Nothing
            };
        }
        let Some(oldest) = tail.entries.front() else {
            return Tailed::AskStore;
        };
        if oldest.number > after.next() {
            return Tailed::AskStore;
        }
        let mut bytes = 0;
        let skip = usize::try_from(after.next().0 - oldest.number.0).unwrap_or(usize::MAX);
        let entries = tail
            .entries
            .iter()
            .skip(skip)
            .take_while(|entry| {
                let fits = bytes == 0 || bytes + entry.bytes.len() <= bytes_max;
                bytes += entry.bytes.len();
                fits
            })
            .cloned()
            .collect();
        Tailed::Entries(entries)
    }

    /// A future that resolves at the next commit of the task. To miss none, enable it before
    /// looking.
    pub(super) fn changed(&self) -> tokio::sync::futures::Notified<'_> {
        self.watch.changed.notified()
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let mut watches = lock(&self.hub.watches);
        // The map and this one; interests are only ever added under the map's lock.
        if Arc::strong_count(&self.watch) <= 2 {
            watches.remove(&self.task);
        }
    }
}
