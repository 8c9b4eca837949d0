//! What waits for a lane.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use a2ad_core::store::{Applied, Change, ChangeError, StoreError};
use tokio::sync::{Notify, oneshot};

use crate::bounds::{Bounds, weight};

/// One transaction takes at most so many changes …
const BATCH_MAX: usize = 512;
/// … and bytes, so that nobody waits for more than a moment behind others.
const BATCH_BYTES_MAX: usize = 4 << 20;
/// What a caller waits for.
pub(super) type Answer = oneshot::Sender<Result<Applied, ChangeError>>;

/// What waits for a lane, bounded by count and bytes; full means that a change is refused.
#[derive(Debug)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    arrived: Notify,
    bounds: Bounds,
}

#[derive(Debug, Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    bytes: usize,
    closing: bool,
}

#[derive(Debug)]
struct Job {
    change: Change,
    bytes: usize,
    answer: Answer,
}

impl Queue {
    /// Nothing waits yet.
    pub(super) fn new(bounds: Bounds) -> Self {
        Self {
            waiting: Mutex::default(),
            arrived: Notify::new(),
            bounds,
        }
    }

    /// Takes no more changes.
    pub(super) fn close(&self) {
        self.lock().closing = true;
        self.arrived.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a change; what becomes of it comes through the receiver.
    pub(super) fn push(
        &self,
        change: Change,
    ) -> Result<oneshot::Receiver<Result<Applied, ChangeError>>, StoreError> {
        let bytes = weight(&change);
        let (answer, receiver) = oneshot::channel();
        let mut waiting = self.lock();
        if waiting.closing {
            return Err(StoreError::Stopped(Arc::from("it was closed")));
        }
        self.bounds
            .admit(waiting.jobs.len(), waiting.bytes, bytes)?;
        waiting.bytes += bytes;
        waiting.jobs.push_back(Job {
            change,
            bytes,
            answer,
        });
        drop(waiting);
        self.arrived.notify_one();
        Ok(receiver)
    }

    /// Waits for work; `None` when there will be no more.
    pub(super) async fn take(&self) -> Option<(Vec<Change>, Vec<Answer>)> {
        loop {
            {
                let mut waiting = self.lock();
                if !waiting.jobs.is_empty() {
                    return Some(waiting.take());
                }
                if waiting.closing {
                    return None;
                }
            }
            self.arrived.notified().await;
        }
    }

    /// Takes everything that waits, to be refused.
    pub(super) fn empty(&self) -> Vec<Answer> {
        let mut waiting = self.lock();
        waiting.bytes = 0;
        waiting.jobs.drain(..).map(|job| job.answer).collect()
    }

    /// Puts changes back that have to be looked at again.
    pub(super) fn put_back(&self, jobs: Vec<(Change, Answer)>) {
        let mut waiting = self.lock();
        for (change, answer) in jobs.into_iter().rev() {
            let bytes = weight(&change);
            waiting.bytes += bytes;
            waiting.jobs.push_front(Job {
                change,
                bytes,
                answer,
            });
        }
    }
}

impl Waiting {
    fn take(&mut self) -> (Vec<Change>, Vec<Answer>) {
        let mut changes = Vec::new();
        let mut answers = Vec::new();
        let mut bytes = 0;
        while changes.len() < BATCH_MAX
            && let Some(next) = self.jobs.front()
            && (changes.is_empty() || bytes + next.bytes <= BATCH_BYTES_MAX)
            && let Some(job) = self.jobs.pop_front()
        {
            self.bytes -= job.bytes;
            bytes += job.bytes;
            changes.push(job.change);
            answers.push(job.answer);
        }
        (changes, answers)
    }
}
