//! Who wants to hear of every change to somebody's tasks, and what each has not looked at yet.
//!
//! A feed holds no events: it remembers which tasks have changed, and whoever reads it looks them
//! up. So a slow reader costs as much as a fast one, and what changes often is looked at once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use super::lock;
use super::monitor::Sight;
use crate::keys::{Number, TaskKey};
use crate::store::Committed;

/// How many tasks a feed remembers; of those beyond it only knows that there were some.
const TASKS_MAX: usize = 4096;

/// All feeds that are open.
#[derive(Debug, Default)]
pub(super) struct Feeds {
    open: Mutex<Vec<Arc<Feed>>>,
    /// How many there are, for commits to see without a lock: most often none.
    count: AtomicUsize,
}

#[derive(Debug)]
struct Feed {
    sight: Sight,
    news: Mutex<News>,
    arrived: Notify,
}

/// What has changed since somebody looked.
#[derive(Debug, Default)]
pub(super) struct News {
    /// The tasks, each with whether it began.
    pub(super) tasks: BTreeMap<TaskKey, bool>,
    /// There were more than can be remembered.
    pub(super) missed: bool,
}

impl News {
    fn add(&mut self, task: TaskKey, began: bool) {
        if let Some(known) = self.tasks.get_mut(&task) {
            *known |= began;
        } else if self.tasks.len() < TASKS_MAX {
            self.tasks.insert(task, began);
        } else {
            self.missed = true;
        }
    }

    fn is_empty(&self) -> bool {
        self.tasks.is_empty() && !self.missed
    }
}

impl Feeds {
    /// Opens a feed. From now on it remembers.
    pub(super) fn open(self: &Arc<Self>, sight: Sight) -> Following {
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
                if feed.sight.reaches(identity) {
                    let first = commit.entries.first().map(|entry| entry.number);
                    news.add(identity.key, first == Some(Number::FIRST));
                }
            }
        });
    }

    /// Hears of changes made elsewhere. Whose they are is not told; whoever looks finds out.
    pub(super) fn changed(&self, tasks: &[(TaskKey, Number)]) {
        self.tell(|_, news| {
            for (task, version) in tasks {
                news.add(*task, *version == Number::FIRST);
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
    pub(super) fn sight(&self) -> &Sight {
        &self.feed.sight
    }

    /// Whether anything was heard that nobody has taken.
    pub(super) fn has_news(&self) -> bool {
        !lock(&self.feed.news).is_empty()
    }

    /// Whether it was heard that this task began, and nobody has taken that.
    pub(super) fn has_begun(&self, task: TaskKey) -> bool {
        lock(&self.feed.news).tasks.get(&task) == Some(&true)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Owner;

    #[test]
    fn a_feed_that_nobody_reads_stays_small_and_says_that_it_missed_something() {
        let feeds = Arc::new(Feeds::default());
        let sight = Sight {
            owner: Owner::anonymous(),
            agents: Vec::new(),
            context_id: None,
        };
        let following = feeds.open(sight);
        for key in 0..10_000 {
            feeds.changed(&[(TaskKey(key), Number(2))]);
        }
        let news = following.take();
        assert_eq!((news.tasks.len(), news.missed), (TASKS_MAX, true));
        assert!(!following.has_news());
        drop(following);
        assert!(lock(&feeds.open).is_empty());
    }
}
