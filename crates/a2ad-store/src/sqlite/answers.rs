//! Telling the engine and the callers what was committed, from inside the runtime.
//!
//! The writer could wake each caller itself, but waking a task from outside its runtime costs a
//! microsecond or two, for every caller. Instead it leaves all answers of a commit here and wakes
//! one task, which passes them on: first to the engine, then to the callers, commit after commit.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use a2ad_core::keys::TaskKey;
use a2ad_core::store::{Committed, Wake};
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};

use crate::sqlite::commit::Outcome;

/// With so many answers left here the writer passes them on itself: the runtime is not keeping up,
/// and what waits has to be bounded.
const LEFT_MAX: usize = 16_384;

/// A caller and what became of its write.
pub(crate) type Answer = (oneshot::Sender<Outcome>, Outcome);

/// Where the writer leaves what is to be told. The store's [`Core`](crate::Core) has it as the
/// [`Wake`] that hears of commits.
#[derive(Debug)]
pub(crate) struct Answers {
    engine: Arc<dyn Wake>,
    left: Mutex<Left>,
    arrived: Notify,
    /// Held while telling, so that everything is told in its order, whoever tells.
    telling: Mutex<()>,
}

#[derive(Debug, Default)]
struct Left {
    news: Vec<News>,
    answers: usize,
    /// Somebody in the runtime waits for news.
    heeded: bool,
}

#[derive(Debug)]
enum News {
    Committed(Vec<Committed>),
    Deleted(Vec<TaskKey>),
    Answered(Vec<Answer>),
}

impl Answers {
    /// Nothing is left yet, and the writer tells.
    pub(crate) fn new(engine: Arc<dyn Wake>) -> Arc<Self> {
        Arc::new(Self {
            engine,
            left: Mutex::default(),
            arrived: Notify::new(),
            telling: Mutex::default(),
        })
    }

    /// Leaves telling to a task from now on, if there is a runtime to run it.
    pub(crate) fn start(self: &Arc<Self>) {
        if let Ok(runtime) = Handle::try_current() {
            self.left().heeded = true;
            // Nobody awaits it, since the store is closed by a blocking call; that tells what is
            // left, and then the task ends by itself.
            runtime.spawn(Heeding(Arc::clone(self)).heed());
        }
    }

    /// Leaves the answers of a commit, after what was committed.
    pub(crate) fn leave(&self, answers: Vec<Answer>) {
        let mut left = self.left();
        left.answers += answers.len();
        left.news.push(News::Answered(answers));
        let heeded = left.heeded && left.answers <= LEFT_MAX;
        drop(left);
        if heeded {
            self.arrived.notify_one();
        } else {
            self.tell();
        }
    }

    /// Tells what is left and leaves nothing to the task any more.
    pub(crate) fn close(&self) {
        self.left().heeded = false;
        self.arrived.notify_one();
        self.tell();
    }

    fn left(&self) -> MutexGuard<'_, Left> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self) {
        let _in_order = self.telling.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left = self.left();
        let news = std::mem::take(&mut left.news);
        left.answers = 0;
        drop(left);
        for one in news {
            match one {
                News::Committed(batch) => self.engine.committed(batch),
                News::Deleted(tasks) => self.engine.deleted(&tasks),
                News::Answered(answers) => {
                    for (sender, outcome) in answers {
                        answer(sender, outcome);
                    }
                }
            }
        }
    }
}

impl Wake for Answers {
    fn committed(&self, batch: Vec<Committed>) {
        // Told when the answers are there.
        self.left().news.push(News::Committed(batch));
    }

    fn deleted(&self, tasks: &[TaskKey]) {
        self.left().news.push(News::Deleted(tasks.to_vec()));
    }

    fn stopped(&self, reason: &str) {
        self.tell();
        self.engine.stopped(reason);
    }
}

/// The task that tells. When it goes away with its runtime, the writer tells instead.
struct Heeding(Arc<Answers>);

impl Heeding {
    async fn heed(self) {
        while self.0.left().heeded {
            self.0.arrived.notified().await;
            self.0.tell();
        }
    }
}

impl Drop for Heeding {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Tells a caller what became of its write.
pub(crate) fn answer(sender: oneshot::Sender<Outcome>, outcome: Outcome) {
    if sender.send(outcome).is_err() {
        tracing::debug!("nobody waits for this answer any more");
    }
}
