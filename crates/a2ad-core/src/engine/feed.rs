//! Who wants to hear of every change to somebody's tasks, and what each has not looked at yet.
//!
//! A feed holds no events: it remembers which tasks have changed, and whoever reads it looks them
//! up. So a slow reader costs as much as a fast one, and what changes often is looked at once.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use a2ad_proto::TaskState;
use tokio::sync::Notify;

use super::lock;
use super::monitor::Sight;
use crate::keys::{Number, TaskKey};
use crate::store::Committed;
use crate::task::{Entry, Head, Snapshot};

/// How many tasks a feed remembers; of those beyond it only knows that there were some.
const TASKS_MAX: usize = 4096;
/// How many bytes of what came to rest a feed holds on to.
const CAUGHT_BYTES_MAX: usize = 32 << 20;
/// How many tasks a reader remembers as told. One that is forgotten may be told again.
const TOLD_MAX: usize = 8192;

/// All feeds that are open.
#[derive(Debug, Default)]
pub(super) struct Feeds {
    open: Mutex<Vec<Arc<Feed>>>,
    /// How many there are, for commits to see without a lock: most often none.
    count: AtomicUsize,
}

#[derive(Debug)]
struct Feed {
    /// What it is about. Without one it is about all that comes to rest.
    sight: Option<Sight>,
    news: Mutex<News>,
    arrived: Notify,
}

/// What has changed since somebody looked.
#[derive(Debug, Default)]
pub(super) struct News {
    /// The tasks.
    pub(super) tasks: BTreeMap<TaskKey, Heard>,
    /// How many bytes of them were caught.
    bytes: usize,
    /// There were more than can be remembered.
    pub(super) missed: bool,
}

/// What was heard of a task.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// It began.
    pub(super) began: bool,
    /// How it came to rest, if that was told with it and there was room. It may be gone from the
    /// store by the time that somebody looks.
    pub(super) caught: Option<Caught>,
}

/// A task as a commit left it.
#[derive(Clone, Debug)]
pub(super) struct Caught {
    pub(super) head: Arc<Head>,
    pub(super) snapshot: Option<Snapshot>,
    /// Without a snapshot, the whole journal.
    pub(super) entries: Vec<Entry>,
}

impl Caught {
    fn of(commit: &Committed) -> Option<Self> {
        let version = commit.head.version;
        let snapshot = commit.snapshot.clone();
        let snapshot = snapshot.filter(|frozen| frozen.version == version);
        let is_whole = commit.entries.first().map(|entry| entry.number) == Some(Number::FIRST);
        if snapshot.is_none() && !is_whole {
            return None;
        }
        Some(Self {
            head: Arc::clone(&commit.head),
            entries: if snapshot.is_none() {
                commit.entries.clone()
            } else {
                Vec::new()
            },
            snapshot,
        })
    }

    fn size(&self) -> usize {
        let entries = self.entries.iter().map(|entry| entry.bytes.len());
        self.snapshot.as_ref().map_or(0, Snapshot::size) + entries.sum::<usize>()
    }
}

impl News {
    fn add(&mut self, task: TaskKey, began: bool, caught: Option<Caught>) {
        if !self.tasks.contains_key(&task) && self.tasks.len() >= TASKS_MAX {
            self.missed = true;
            return;
        }
        let known = self.tasks.entry(task).or_default();
        known.began |= began;
        if let Some(old) = known.caught.take() {
            self.bytes = self.bytes.saturating_sub(old.size());
        }
        let caught = caught.filter(|it| self.bytes + it.size() <= CAUGHT_BYTES_MAX);
        self.bytes += caught.as_ref().map_or(0, Caught::size);
        known.caught = caught;
    }

    fn is_empty(&self) -> bool {
        self.tasks.is_empty() && !self.missed
    }
}

impl Feeds {
    /// Opens a feed. From now on it remembers.
    pub(super) fn open(self: &Arc<Self>, sight: Option<Sight>) -> Following {
        let feed = Arc::new(Feed {
            sight,
            news: Mutex::default(),
            arrived: Notify::new(),
        });
        let mut open = lock(&self.open);
        open.push(Arc::clone(&feed));
        self.count.store(open.len(), Ordering::Release);
        Following {
            feeds: Arc::clone(self),
            feed,
        }
    }

    /// Hears of commits made here.
    pub(super) fn committed(&self, batch: &[Committed]) {
        self.tell(|feed, news| {
            for commit in batch {
                let identity = &commit.head.identity;
                let state = commit.head.state;
                let concerns = match &feed.sight {
                    Some(sight) => sight.reaches(identity),
                    None => state.is_terminal() || state.is_interrupted(),
                };
                if concerns {
                    let first = commit.entries.first().map(|entry| entry.number);
                    let caught = match &feed.sight {
                        Some(_) => None,
                        None => Caught::of(commit),
                    };
                    news.add(identity.key, first == Some(Number::FIRST), caught);
                }
            }
        });
    }

    /// Hears of changes made elsewhere. Whose they are is not told; whoever looks finds out.
    pub(super) fn changed(&self, tasks: &[(TaskKey, Number)]) {
        self.tell(|_, news| {
            for (task, version) in tasks {
                news.add(*task, *version == Number::FIRST, None);
            }
        });
    }

    fn tell(&self, add: impl Fn(&Feed, &mut News)) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        for feed in lock(&self.open).iter() {
            let mut news = lock(&feed.news);
            add(feed, &mut news);
            if !news.is_empty() {
                feed.arrived.notify_one();
            }
        }
    }
}

/// A feed that is open for as long as this is there.
#[derive(Debug)]
pub(super) struct Following {
    feeds: Arc<Feeds>,
    feed: Arc<Feed>,
}

impl Following {
    /// Whether anything was heard that nobody has taken.
    pub(super) fn has_news(&self) -> bool {
        !lock(&self.feed.news).is_empty()
    }

    /// Whether it was heard that this task began, and nobody has taken that.
    pub(super) fn has_begun(&self, task: TaskKey) -> bool {
        let news = lock(&self.feed.news);
        news.tasks.get(&task).is_some_and(|heard| heard.began)
    }

    pub(super) fn take(&self) -> News {
        std::mem::take(&mut *lock(&self.feed.news))
    }

    /// Resolves when there is something to hear.
    pub(super) async fn arrived(&self) {
        while !self.has_news() {
            self.feed.arrived.notified().await;
        }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let mut open = lock(&self.feeds.open);
        open.retain(|feed| !Arc::ptr_eq(feed, &self.feed));
        self.feeds.count.store(open.len(), Ordering::Release);
    }
}

/// The tasks that were told, each with its version and state then.
#[derive(Debug, Default)]
pub(super) struct Told {
    tasks: HashMap<TaskKey, (Number, TaskState)>,
    /// In the order in which they were first told.
    order: VecDeque<TaskKey>,
}

impl Told {
    pub(super) fn of(&self, task: TaskKey) -> Option<(Number, TaskState)> {
        self.tasks.get(&task).copied()
    }

    pub(super) fn put(&mut self, task: TaskKey, version: Number, state: TaskState) {
        if self.tasks.insert(task, (version, state)).is_none() {
            self.order.push_back(task);
        }
        while self.order.len() > TOLD_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.tasks.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feed_that_nobody_reads_stays_small_and_says_that_it_missed_something() {
        let feeds = Arc::new(Feeds::default());
        let following = feeds.open(None);
        for key in 0..10_000 {
            feeds.changed(&[(TaskKey(key), Number(2))]);
        }
        let news = following.take();
        assert_eq!((news.tasks.len(), news.missed), (TASKS_MAX, true));
        assert!(!following.has_news());
        drop(following);
        assert!(lock(&feeds.open).is_empty());
    }

    #[test]
    fn what_was_told_is_forgotten_in_the_end() {
        let mut told = Told::default();
        let most = i64::try_from(TOLD_MAX).unwrap();
        for key in 0..most + 10 {
            told.put(TaskKey(key), Number(1), TaskState::Submitted);
            told.put(TaskKey(key), Number(2), TaskState::Working);
        }
        assert_eq!((told.tasks.len(), told.order.len()), (TOLD_MAX, TOLD_MAX));
        assert_eq!(told.of(TaskKey(9)), None);
        let known = told.of(TaskKey(10));
        assert_eq!(known, Some((Number(2), TaskState::Working)));
    }
}
