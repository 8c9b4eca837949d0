//! Where commits are heard: heads, tails of journals, and those who wait.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use a2ad_proto::AgentId;
use tokio::sync::{Notify, watch};

use super::cache::Cache;
use super::feed::Feeds;
use super::lock;
use super::run::{TASKS_BEGUN, TASKS_ENDED};
use crate::keys::{HolderId, Number, TaskKey};
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

/// How many deleted tasks are remembered, so that a reader who was a moment late does not bring one
/// back.
const GONE_MAX: usize = 4096;

/// Hears of every commit and passes it on: first the caches, then the tails, then the wake-ups.
#[derive(Debug)]
pub struct Hub {
    heads: Cache<TaskKey, Arc<Head>>,
    snapshots: Cache<TaskKey, Arc<Snapshot>>,
    /// Tasks that were deleted lately.
    gone: Cache<TaskKey, ()>,
    watches: Mutex<HashMap<TaskKey, Watched>>,
    /// Who hears of all changes to somebody's tasks.
    pub(super) feeds: Arc<Feeds>,
    /// There may be turns to claim. True at first: an earlier run may have left some.
    work: Notify,
    work_seen: AtomicBool,
    stopped: watch::Sender<Option<Arc<str>>>,
    lost: watch::Sender<Option<HolderId>>,
}

/// A task that somebody follows, and how many do. They are counted under the lock of the map: of
/// two who leave at once, one is the last.
#[derive(Debug, Default)]
struct Watched {
    watch: Arc<Watch>,
    interests: usize,
}

#[derive(Debug, Default)]
struct Watch {
    state: Mutex<Tail>,
    changed: Notify,
}

/// The newest entries of one journal, shared by all its cursors.
#[derive(Debug, Default)]
struct Tail {
    /// The newest version heard of, here or from elsewhere.
    heard: Number,
    /// The head at that version, if it was told with it.
    head: Option<Arc<Head>>,
    /// Without a gap up to `head`.
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
            gone: Cache::new(GONE_MAX),
            watches: Mutex::default(),
            feeds: Arc::default(),
            work: Notify::new(),
            work_seen: AtomicBool::new(true),
            stopped: watch::Sender::new(None),
            lost: watch::Sender::new(None),
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
        if self.gone.get(head.identity.key).is_some() {
            self.heads.remove(head.identity.key);
        }
    }

    pub(super) fn cached_snapshot(&self, task: TaskKey) -> Option<Arc<Snapshot>> {
        self.snapshots.get(task)
    }

    pub(super) fn keep_snapshot(&self, task: TaskKey, snapshot: Arc<Snapshot>) {
        let weight = snapshot.size();
        let version = snapshot.version;
        self.snapshots
            .insert_unless(task, snapshot, weight, |known| known.version > version);
        if self.gone.get(task).is_some() {
            self.snapshots.remove(task);
        }
    }

    /// Forgets what it knows of a task: it was changed past the hub.
    pub(super) fn forget(&self, task: TaskKey) {
        self.heads.remove(task);
    }

    /// Forgets a task that was deleted, for good.
    pub(super) fn bury(&self, task: TaskKey) {
        self.gone.insert_unless(task, (), 1, |()| false);
        self.heads.remove(task);
        self.snapshots.remove(task);
    }

    /// Starts to follow a task. From now on its commits are kept in the tail.
    pub(super) fn watch(self: &Arc<Self>, task: TaskKey) -> Watching {
        let mut watches = lock(&self.watches);
        let watched = watches.entry(task).or_default();
        watched.interests += 1;
        let watch = Arc::clone(&watched.watch);
        drop(watches);
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

#[cfg(feature = "test-util")]
impl Hub {
    /// What is in memory now: heads, bytes of snapshots, tasks that somebody follows.
    #[must_use]
    pub fn held(&self) -> [usize; 3] {
        let watched = lock(&self.watches).len();
        [self.heads.weight(), self.snapshots.weight(), watched]
    }

    /// What there is at most of the first two.
    pub const HELD_MAX: [usize; 2] = [2 * HEADS_MAX, 2 * SNAPSHOT_BYTES_MAX];
}

impl Hub {
    /// Resolves when the leases of this holder are over.
    pub(super) async fn lost(&self, holder: HolderId) {
        let mut lost = self.lost.subscribe();
        if lost.wait_for(|lost| *lost == Some(holder)).await.is_err() {
            std::future::pending().await
        }
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
        self.feeds.committed(&batch);
        let mut woken = Vec::new();
        {
            let watches = lock(&self.watches);
            if !watches.is_empty() {
                for commit in batch {
                    if let Some(Watched { watch, .. }) = watches.get(&commit.head.identity.key) {
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

    fn deleted(&self, tasks: &[TaskKey]) {
        for task in tasks {
            self.bury(*task);
        }
    }

    fn stopped(&self, reason: &str) {
        self.stopped.send_replace(Some(Arc::from(reason)));
    }

    fn changed(&self, tasks: &[(TaskKey, Number)]) {
        self.feeds.changed(tasks);
        let mut woken = Vec::new();
        {
            let watches = lock(&self.watches);
            for (task, version) in tasks {
                if let Some(Watched { watch, .. }) = watches.get(task)
                    && lock(&watch.state).hear(*version)
                {
                    woken.push(Arc::clone(watch));
                }
            }
        }
        for watch in woken {
            watch.changed.notify_waiters();
        }
    }

    fn ready(&self, _agents: &[AgentId]) {
        self.announce_work();
    }

    fn watched(&self) -> Vec<(TaskKey, Number)> {
        let watches = lock(&self.watches);
        let heard = |watch: &Watch| lock(&watch.state).heard;
        watches
            .iter()
            .map(|(task, it)| (*task, heard(&it.watch)))
            .collect()
    }

    fn holder_lost(&self, holder: HolderId) {
        self.lost.send_replace(Some(holder));
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
    /// Notes that another instance has brought the task to `version`. What it wrote has to be read.
    fn hear(&mut self, version: Number) -> bool {
        if version <= self.heard {
            return false;
        }
        *self = Self {
            heard: version,
            ..Self::default()
        };
        true
    }

    fn push(&mut self, commit: Committed) {
        if let (Some(last), Some(first)) = (self.entries.back(), commit.entries.first())
            && first.number != last.number.next()
        {
            // Another instance has written in between, and word of that is still on its way.
            self.entries.clear();
            self.bytes = 0;
        }
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
        // Of commits that were made together here and elsewhere, the later one counts.
        if commit.head.version >= self.heard {
            self.heard = commit.head.version;
            self.head = Some(commit.head);
        }
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

    /// Whether another instance has changed the task since its head was last told here.
    pub(super) fn is_changed_elsewhere(&self) -> bool {
        let tail = lock(&self.watch.state);
        tail.head.is_none() && tail.heard > Number::ZERO
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
        if let Some(watched) = watches.get_mut(&self.task) {
            watched.interests -= 1;
            if watched.interests == 0 {
                watches.remove(&self.task);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::keys::{ContextKey, Scope};
    use crate::task::{Identity, Shape};

    const TASK: TaskKey = TaskKey(7);

    /// A commit that brings the task from `from` to `to`.
    fn commit(from: u64, to: u64) -> Committed {
        let mut head = Head::unborn(Identity {
            key: TASK,
            id: "6f9619ff-8b86-4011-b42d-00c04fc964ff".parse().unwrap(),
            context: ContextKey(7),
            context_id: "context".parse().unwrap(),
            scope: Scope {
                owner: crate::keys::Owner::anonymous(),
                agent: "echo".parse().unwrap(),
            },
        });
        head.version = Number(to);
        let entry = |number| Entry {
            number: Number(number),
            shape: Shape::from_byte(0),
            bytes: bytes::Bytes::from_static(b"{}"),
        };
        Committed {
            head: Arc::new(head),
            entries: (from + 1..=to).map(entry).collect(),
            snapshot: None,
            ready: Vec::new(),
        }
    }

    fn numbers(watching: &Watching, after: u64) -> Option<Vec<u64>> {
        match watching.after(Number(after), 1024) {
            Tailed::Entries(entries) => Some(entries.iter().map(|it| it.number.0).collect()),
            Tailed::Nothing => Some(Vec::new()),
            Tailed::AskStore => None,
            Tailed::End => panic!("the task goes on"),
        }
    }

    #[test]
    fn what_another_instance_wrote_is_asked_for_in_the_store() {
        let hub = Hub::new();
        let watching = hub.watch(TASK);
        hub.committed(vec![commit(0, 2)]);
        assert_eq!(numbers(&watching, 1), Some(vec![2]));
        let mut changed = Box::pin(watching.changed());
        changed.as_mut().enable();
        assert!(!watching.is_changed_elsewhere());

        hub.changed(&[(TASK, Number(3)), (TaskKey(8), Number(1))]);
        assert!(changed.now_or_never().is_some(), "followers are woken");
        assert!(watching.is_changed_elsewhere());
        assert_eq!(numbers(&watching, 2), None);
        assert_eq!(hub.watched(), [(TASK, Number(3))]);

        hub.committed(vec![commit(3, 4)]);
        assert_eq!(numbers(&watching, 2), None, "entry 3 is in the store alone");
        assert_eq!(numbers(&watching, 3), Some(vec![4]));
    }

    /// Two threads that stop at once, over and over.
    #[test]
    fn nothing_stays_of_a_task_that_nobody_follows() {
        let hub = Hub::new();
        for _ in 0..5_000 {
            let both = [hub.watch(TASK), hub.watch(TASK)];
            let barrier = std::sync::Barrier::new(2);
            std::thread::scope(|scope| {
                for watching in both {
                    scope.spawn(|| {
                        barrier.wait();
                        drop(watching);
                    });
                }
            });
            assert!(lock(&hub.watches).is_empty());
        }
    }

    #[test]
    fn a_gap_is_not_stepped_over_while_word_of_it_is_on_its_way() {
        let hub = Hub::new();
        let watching = hub.watch(TASK);
        hub.committed(vec![commit(0, 2)]);
        // Entry 3 was written elsewhere.
        hub.committed(vec![commit(3, 4)]);
        assert_eq!(numbers(&watching, 2), None);
        assert_eq!(numbers(&watching, 3), Some(vec![4]));
        // Then word of it comes.
        let mut changed = Box::pin(watching.changed());
        changed.as_mut().enable();
        hub.changed(&[(TASK, Number(3))]);
        assert!(changed.now_or_never().is_none(), "that is known");
    }

    #[test]
    fn an_older_commit_does_not_hide_a_newer_one() {
        let hub = Hub::new();
        let watching = hub.watch(TASK);
        hub.changed(&[(TASK, Number(3))]);
        hub.committed(vec![commit(1, 2)]);
        assert!(watching.head().is_none());
        assert_eq!(numbers(&watching, 2), None);
        assert_eq!(hub.watched(), [(TASK, Number(3))]);
    }

    #[test]
    fn what_was_deleted_is_not_brought_back_by_who_read_it_before() {
        let hub = Hub::new();
        let head = commit(0, 2).head;
        hub.keep_head(&head);
        hub.deleted(&[TASK]);
        assert!(hub.cached_head(TASK).is_none());
        hub.keep_head(&head);
        assert!(hub.cached_head(TASK).is_none());
    }

    #[test]
    fn a_lost_holder_is_told() {
        let hub = Hub::new();
        assert!(hub.lost(HolderId(1)).now_or_never().is_none());
        hub.holder_lost(HolderId(1));
        assert!(hub.lost(HolderId(1)).now_or_never().is_some());
        assert!(hub.lost(HolderId(2)).now_or_never().is_none());
    }
}
