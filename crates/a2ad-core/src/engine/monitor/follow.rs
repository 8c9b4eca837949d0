//! A stream of sightings: what is there, then whatever changes.
//!
//! The feed is opened before the first list is read, so nothing falls in between; what changes
//! while the list is read is told after it. A task is told as it is when it is looked at: of
//! several changes in quick succession the last is told.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use a2ad_proto::Timestamp;
use tokio::time::Instant;

use super::super::feed::{Following, Told};
use super::super::{EngineError, Inner};
use super::{Seen, Sight, Sighting};
use crate::keys::TaskKey;
use crate::store::ListPlace;

/// How many tasks a stream begins with.
const THERE_MAX: usize = 1000;
/// How many are read at a time.
const PAGE: usize = 50;
/// A batch of changes ends when it has so many, or so many bytes.
const BATCH: usize = 64;
const BATCH_BYTES: usize = 256 << 10;
/// Changes are looked at this often at most, so that an agent that says much costs little.
const PACE: Duration = Duration::from_millis(100);
/// Where others change tasks too, their news may get lost: this often the list is compared.
const COMPARE_EVERY: Duration = Duration::from_secs(2);
/// By so much instances may disagree about the time, and a commit may come late.
const COMPARE_BACK_MS: i64 = 10_000;

/// A stream in progress.
#[derive(Debug)]
pub struct Sightings {
    inner: Arc<Inner>,
    sight: Sight,
    feed: Following,
    opened_at: Timestamp,
    listing: Option<Listing>,
    /// Changed tasks that are to be looked at, each with whether it is known to have begun since.
    pending: VecDeque<(TaskKey, bool)>,
    ready: Vec<Sighting>,
    told: Told,
    look_from: Instant,
    /// When the list is compared next; never if nobody else changes anything.
    compare_at: Option<Instant>,
    /// Up to here nothing was missed.
    sure_until: Timestamp,
}

/// A list being read.
#[derive(Clone, Copy, Debug)]
struct Listing {
    /// What was there at the beginning, not what was missed since.
    first: bool,
    after: Option<ListPlace>,
    status_at_least: Option<i64>,
    began_at: Timestamp,
    told: usize,
}

impl Sightings {
    pub(super) fn new(inner: &Arc<Inner>, sight: Sight) -> Self {
        let feed = inner.hub.feeds.open(Some(sight.clone()));
        let opened_at = inner.now();
        let now = Instant::now();
        Self {
            inner: Arc::clone(inner),
            sight,
            feed,
            opened_at,
            listing: Some(Listing {
                first: true,
                after: None,
                status_at_least: None,
                began_at: opened_at,
                told: 0,
            }),
            pending: VecDeque::new(),
            ready: Vec::new(),
            told: Told::default(),
            look_from: now,
            compare_at: (!inner.store.exclusive()).then(|| now + COMPARE_EVERY),
            sure_until: opened_at,
        }
    }

    /// What comes next: at least one sighting. `None` when the server is stopping. Cancel-safe.
    pub async fn next(&mut self) -> Option<Result<Vec<Sighting>, EngineError>> {
        loop {
            let is_full = self.ready.len() >= BATCH || self.ready_bytes() >= BATCH_BYTES;
            if !self.ready.is_empty() && (is_full || self.pending.is_empty()) {
                return Some(Ok(std::mem::take(&mut self.ready)));
            }
            if self.inner.life.over.is_cancelled() {
                return None;
            }
            let step = if let Some((task, began)) = self.pending.front().copied() {
                self.look_at(task, began).await
            } else if let Some(listing) = self.listing {
                self.list_on(listing).await
            } else {
                self.wait().await;
                self.take_news();
                Ok(())
            };
            if let Err(error) = step {
                return Some(Err(error));
            }
        }
    }

    fn ready_bytes(&self) -> usize {
        self.ready.iter().map(|it| it.seen().size).sum()
    }

    /// Looks at a task that has changed.
    async fn look_at(&mut self, task: TaskKey, began: bool) -> Result<(), EngineError> {
        let seen = self.inner.look_at(&self.sight, task, None).await?;
        self.pending.pop_front();
        if let Some(seen) = seen {
            self.tell(task, seen, began);
        }
        Ok(())
    }

    /// Tells of a task that has changed, unless that was told.
    fn tell(&mut self, task: TaskKey, seen: Seen, began: bool) {
        let before = self.told.of(task);
        if before.is_some_and(|(version, _)| version >= seen.version) {
            return;
        }
        self.told.put(task, seen.version, seen.task.status.state);
        let is_new = began || seen.created_at.is_some_and(|at| at >= self.opened_at);
        self.ready.push(match before {
            None if is_new => Sighting::Created(seen),
            None => Sighting::Updated { seen, before: None },
            Some((_, state)) => Sighting::Updated {
                seen,
                before: Some(state),
            },
        });
    }

    /// Reads the next page of a list.
    async fn list_on(&mut self, mut listing: Listing) -> Result<(), EngineError> {
        let inner = Arc::clone(&self.inner);
        let limit = match listing.first {
            true => PAGE.min(THERE_MAX - listing.told),
            false => PAGE,
        };
        let told = &self.told;
        let mut known = |task, version| told.of(task).is_some_and(|(told, _)| told >= version);
        let page = inner
            .in_sight(
                &self.sight,
                listing.after,
                listing.status_at_least,
                limit,
                &mut known,
            )
            .await?;
        let mut found = Vec::with_capacity(page.tasks.len());
        for (agent, listed) in &page.tasks {
            let told = self.told.of(listed.place.key);
            if told.is_some_and(|(version, _)| version >= listed.version) {
                continue;
            }
            if let Some(seen) = inner.seen_in_list(agent, listed).await? {
                found.push((listed.place.key, seen));
            }
        }
        // Nothing is waited for from here on.
        for (task, seen) in found {
            if !listing.first {
                self.tell(task, seen, false);
                continue;
            }
            // What began since is news, which the feed brings.
            let since = seen.created_at.is_some_and(|at| at > self.opened_at);
            if !since && !self.feed.has_begun(task) {
                self.told.put(task, seen.version, seen.task.status.state);
                self.ready.push(Sighting::There(seen));
            }
        }
        listing.told += page.tasks.len();
        listing.after = page.tasks.last().map(|(_, listed)| listed.place);
        let goes_on = page.more && !(listing.first && listing.told >= THERE_MAX);
        if goes_on && listing.after.is_some() {
            self.listing = Some(listing);
        } else {
            self.listing = None;
            self.sure_until = listing.began_at;
        }
        Ok(())
    }

    /// Waits until there is something to do.
    async fn wait(&self) {
        let news = async {
            self.feed.arrived().await;
            tokio::time::sleep_until(self.look_from).await;
        };
        let compare = async {
            match self.compare_at {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = news => {}
            () = compare => {}
            () = self.inner.life.over.cancelled() => {}
        }
    }

    fn take_news(&mut self) {
        let now = Instant::now();
        let mut missed = false;
        if self.feed.has_news() && now >= self.look_from {
            self.look_from = now + PACE;
            let taken_at = self.inner.now();
            let news = self.feed.take();
            if !news.missed && self.inner.store.exclusive() {
                self.sure_until = taken_at;
            }
            let tasks = news.tasks.into_iter();
            self.pending
                .extend(tasks.map(|(task, heard)| (task, heard.began)));
            missed = news.missed;
        }
        if let Some(at) = self.compare_at.filter(|at| now >= *at) {
            self.compare_at = Some(at.max(now) + COMPARE_EVERY);
            missed = true;
        }
        if missed {
            let from = self.sure_until.as_millis().saturating_sub(COMPARE_BACK_MS);
            self.listing = Some(Listing {
                first: false,
                after: None,
                status_at_least: Some(from),
                began_at: self.inner.now(),
                told: 0,
            });
        }
    }
}
