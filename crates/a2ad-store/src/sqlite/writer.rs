//! The thread that writes: it takes everything that waits and commits it together.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;

use a2ad_core::store::{StoreError, Wake};
use tokio::sync::oneshot;

use crate::bounds::{Bounds, WAITING_BYTES, weight};
use crate::sqlite::answers::{Answers, answer};
use crate::sqlite::checkpoint::{Checkpointer, Mode, PASSIVE_PAGES, Pace, RESTART_PAGES};
use crate::sqlite::commit::{Core, Outcome, Work};
use crate::sqlite::open::OpenError;
use crate::sqlite::options::SqliteOptions;

/// One transaction takes at most so many writes …
const BATCH_MAX: usize = 512;
/// … and bytes, so that nobody waits for more than a moment behind others.
const BATCH_BYTES_MAX: usize = 4 << 20;

/// Why the store does nothing any more; empty while it works.
pub(crate) type Halt = Arc<OnceLock<Arc<str>>>;

/// Hands writes to the thread.
#[derive(Debug)]
pub(crate) struct Writer {
    queue: Arc<Queue>,
    answers: Arc<Answers>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What waits to be written, bounded by count and bytes; full means that a write is refused.
#[derive(Debug)]
struct Queue {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
    bounds: Bounds,
    halt: Halt,
}

#[derive(Debug, Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    bytes: usize,
    closing: bool,
}

#[derive(Debug)]
struct Job {
    work: Work,
    bytes: usize,
    answer: oneshot::Sender<Outcome>,
}

impl Writer {
    /// Starts the thread.
    pub(crate) fn start(
        core: Core,
        options: &SqliteOptions,
        halt: Halt,
        answers: Arc<Answers>,
    ) -> Result<Self, OpenError> {
        let queue = Arc::new(Queue {
            waiting: Mutex::default(),
            arrived: Condvar::new(),
            bounds: Bounds {
                count_max: options.queue_max,
                bytes_max: options.queue_bytes_max,
            },
            halt,
        });
        let checkpointer = Checkpointer::start(&options.path, options.durability)?;
        let served = Arc::clone(&queue);
        let told = Arc::clone(&answers);
        let thread = std::thread::Builder::new()
            .name("a2ad-store".to_owned())
            .spawn(move || {
                let guard = PanicGuard {
                    queue: Arc::clone(&served),
                    answers: told,
                };
                serve(core, &served, &guard.answers, checkpointer);
            })
            .map_err(|source| OpenError::from_io(&options.path, source))?;
        Ok(Self {
            queue,
            answers,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Queues `work` and waits for what becomes of it. If the caller goes away the work is done
    /// all the same.
    pub(crate) fn submit(
        &self,
        work: Work,
    ) -> impl Future<Output = Result<Outcome, StoreError>> + Send + use<> {
        let receiver = self.queue.push(work);
        let halt = Arc::clone(&self.queue.halt);
        async move {
            receiver?.await.map_err(|_| {
                let reason = halt.get().cloned();
                StoreError::Stopped(reason.unwrap_or_else(|| Arc::from("the writer is gone")))
            })
        }
    }

    /// Takes no more work, finishes what waits, ends the thread; all has been answered then.
    pub(crate) fn close(&self) {
        self.queue.lock().closing = true;
        self.queue.arrived.notify_one();
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!("the writer thread panicked");
        }
        self.answers.close();
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, work: Work) -> Result<oneshot::Receiver<Outcome>, StoreError> {
        let bytes = size(&work);
        let (answer, receiver) = oneshot::channel();
        let mut waiting = self.lock();
        if let Some(reason) = self.halt.get() {
            return Err(StoreError::Stopped(Arc::clone(reason)));
        }
        if waiting.closing {
            return Err(StoreError::Stopped(Arc::from("it was closed")));
        }
        self.bounds
            .admit(waiting.jobs.len(), waiting.bytes, bytes)?;
        waiting.bytes += bytes;
        waiting.jobs.push_back(Job {
            work,
            bytes,
            answer,
        });
        let first = waiting.jobs.len() == 1;
        drop(waiting);
        // With more than one waiting, the thread is awake or has been woken already.
        if first {
            self.arrived.notify_one();
        }
        Ok(receiver)
    }

    /// Waits for work; `None` when there will be no more.
    fn take(&self, group: &mut Group) -> Option<()> {
        let mut waiting = self.lock();
        while waiting.jobs.is_empty() {
            if waiting.closing {
                return None;
            }
            waiting = self
                .arrived
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner);
        }
        group.fill(&mut waiting);
        Some(())
    }

    /// Refuses all that waits and all that comes.
    fn stop(&self, reason: &Arc<str>) {
        let mut waiting = self.lock();
        self.halt.get_or_init(|| Arc::clone(reason));
        waiting.bytes = 0;
        let jobs = std::mem::take(&mut waiting.jobs);
        drop(waiting);
        for job in jobs {
            let refused = Outcome::Refused(StoreError::Stopped(Arc::clone(reason)));
            answer(job.answer, refused);
        }
    }
}

/// The writes of one transaction.
#[derive(Debug, Default)]
struct Group {
    work: Vec<Work>,
    callers: Vec<oneshot::Sender<Outcome>>,
    bytes: usize,
}

impl Group {
    fn fill(&mut self, waiting: &mut Waiting) {
        while self.work.len() < BATCH_MAX
            && let Some(next) = waiting.jobs.front()
            && (self.work.is_empty() || self.bytes + next.bytes <= BATCH_BYTES_MAX)
            && let Some(job) = waiting.jobs.pop_front()
        {
            waiting.bytes -= job.bytes;
            self.bytes += job.bytes;
            self.work.push(job.work);
            self.callers.push(job.answer);
        }
    }
}

fn serve(mut core: Core, queue: &Queue, answers: &Answers, mut checkpointer: Checkpointer) {
    let mut passive = Pace::default();
    let mut restart = Pace::default();
    loop {
        let mut group = Group::default();
        if queue.take(&mut group).is_none() {
            break;
        }
        // Callers that are just about to ask join the group: a sync is dearer than two yields.
        for _ in 0..2 {
            std::thread::yield_now();
            group.fill(&mut queue.lock());
        }
        let outcomes = core.run(group.work);
        answers.leave(group.callers.into_iter().zip(outcomes).collect());
        let pages = core.wal_pages();
        if passive.is_due(pages, PASSIVE_PAGES) {
            checkpointer.request();
        }
        if restart.is_due(pages, RESTART_PAGES) {
            checkpointer.stand_back();
            core.checkpoint(Mode::Restart);
        }
        if let Some(reason) = checkpointer.failed() {
            core.stop(&reason);
        }
        if let Some(reason) = core.stopped() {
            queue.stop(reason);
            break;
        }
    }
    checkpointer.stop();
    if core.stopped().is_none() {
        core.checkpoint(Mode::Truncate);
    }
}

/// What a write adds to the bytes that wait.
fn size(work: &Work) -> usize {
    match work {
        Work::Change(change) => weight(change),
        Work::Claim { .. }
        | Work::OpenHolder
        | Work::Purge { .. }
        | Work::Reserve { .. }
        | Work::Check => WAITING_BYTES,
    }
}

/// If the thread dies of a bug, everybody hears of it.
struct PanicGuard {
    queue: Arc<Queue>,
    answers: Arc<Answers>,
}

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let reason: Arc<str> = Arc::from("the writer thread panicked");
            self.queue.stop(&reason);
            self.answers.stopped(&reason);
        }
    }
}
