//! The lanes: each takes everything that waits for it and commits it together.
//!
//! All changes of a context go through one lane, so within an instance they keep their order and
//! never wait for each other's locks.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use a2ad_core::keys::{Number, PublicIds};
use a2ad_core::store::{Applied, Change, ChangeError, ContextChoice, StoreError, Wake};
use metrics::histogram;
use tokio_util::task::TaskTracker;

use super::batch::Refusal;
use super::fail::Failure;
use super::names::Names;
use super::news::News;
use super::options::TimeSource;
use super::queue::{Answer, Queue};
use super::session::{Backend, Ground, Parameter, Shared, Sixteen};
use super::sessions::Slot;
use super::transact::{Done, Place, Trouble, refused, transact};
use super::{gather, truth, write};
use crate::bounds::Bounds;
use crate::metric;

/// So often a transaction that lost against another is tried again.
const TRIES_MAX: u32 = 5;

/// Counters have so many shards.
const SHARDS: i64 = 64;

/// Hands changes to the lanes.
#[derive(Debug)]
pub(super) struct Lanes {
    queues: Vec<Arc<Queue>>,
    tracker: TaskTracker,
}

/// What a lane needs besides its queue.
#[derive(Debug)]
pub(super) struct Equipment {
    pub(super) ground: Arc<Ground>,
    pub(super) names: Arc<Names>,
    pub(super) ids: PublicIds,
    pub(super) wake: Arc<dyn Wake>,
    pub(super) news: News,
    /// The number of this instance.
    pub(super) instance: i64,
}

impl Lanes {
    /// Starts the lanes.
    pub(super) fn start(equipment: &Arc<Equipment>) -> Self {
        let options = &equipment.ground.options;
        let count = options.lanes.max(1);
        let queues: Vec<Arc<Queue>> = (0..count)
            .map(|_| {
                Arc::new(Queue::new(Bounds {
                    count_max: options.queue_max.div_ceil(count),
                    bytes_max: options.queue_bytes_max.div_ceil(count),
                }))
            })
            .collect();
        let tracker = TaskTracker::new();
        for (at, queue) in queues.iter().enumerate() {
            let shard = (equipment.instance * count as i64 + at as i64) % SHARDS;
            let lane = Lane {
                equipment: Arc::clone(equipment),
                queue: Arc::clone(queue),
                slot: Slot::new(Arc::clone(&equipment.ground), STATEMENTS),
                shard: shard as i16,
                number: at as i16,
            };
            tracker.spawn(lane.serve());
        }
        tracker.close();
        Self { queues, tracker }
    }

    /// Queues `change` and waits for what becomes of it. If the caller goes away it is done all
    /// the same.
    pub(super) fn submit(
        &self,
        change: Change,
    ) -> impl Future<Output = Result<Applied, ChangeError>> + Send + use<> {
        let receiver = self.queues[self.place(&change)].push(change);
        async move {
            match receiver?.await {
                Ok(result) => result,
                Err(_) => Err(StoreError::Stopped(Arc::from("the lane is gone")).into()),
            }
        }
    }

    fn place(&self, change: &Change) -> usize {
        let identity = &change.head.identity;
        let context = match &change.context {
            ContextChoice::Named(id) if change.expected == Number::ZERO => id,
            ContextChoice::Named(_) | ContextChoice::Minted => &identity.context_id,
        };
        let mut hasher = DefaultHasher::new();
        context.as_str().hash(&mut hasher);
        (hasher.finish() % self.queues.len() as u64) as usize
    }

    /// Takes no more changes; the lanes end when they have done those that wait.
    pub(super) fn close(&self) {
        for queue in &self.queues {
            queue.close();
        }
    }

    /// Waits until they have.
    pub(super) async fn ended(&self) {
        self.tracker.wait().await;
    }
}

const STATEMENTS: &[&str] = &concat_statements();

/// All that a lane sends, in one list.
const fn concat_statements() -> [&'static str; gather::STATEMENTS.len() + write::STATEMENTS.len()] {
    let mut all = [""; gather::STATEMENTS.len() + write::STATEMENTS.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = if at < gather::STATEMENTS.len() {
            gather::STATEMENTS[at]
        } else {
            write::STATEMENTS[at - gather::STATEMENTS.len()]
        };
        at += 1;
    }
    all
}

struct Lane {
    equipment: Arc<Equipment>,
    queue: Arc<Queue>,
    slot: Slot,
    shard: i16,
    /// Which lane of the instance it is.
    number: i16,
}

impl Lane {
    async fn serve(self) {
        while let Some((changes, answers)) = self.queue.take().await {
            self.commit(changes, answers).await;
        }
    }

    async fn commit(&self, changes: Vec<Change>, answers: Vec<Answer>) {
        let began = Instant::now();
        match self.try_commit(&changes).await {
            Ok(done) => {
                histogram!(metric::COMMIT_SECONDS).record(began.elapsed().as_secs_f64());
                histogram!(metric::COMMIT_BATCH_SIZE).record(changes.len() as f64);
                self.tell(done, changes, answers);
            }
            Err(failure) if changes.len() > 1 && failure.is_about_content() => {
                // One of them is not to the server's liking; the others need not suffer.
                for (change, sender) in changes.into_iter().zip(answers) {
                    let one = vec![change];
                    match self.try_commit(&one).await {
                        Ok(done) => self.tell(done, one, vec![sender]),
                        Err(failure) => refuse(vec![sender], &failure),
                    }
                }
            }
            Err(failure) => refuse(answers, &failure),
        }
    }

    /// Commits all that can be committed, again if another transaction was in the way.
    async fn try_commit(&self, changes: &[Change]) -> Result<Done, Failure> {
        let mut tries = 0;
        loop {
            let session = self.slot.session().await?;
            let random = &self.equipment.ground.options.surroundings.random;
            let mark = Sixteen(random.bits().to_be_bytes());
            match self.transact(&session, mark, changes).await {
                Ok(done) => return Ok(done),
                Err(Trouble::Failed(failure)) => {
                    if failure.is_lost() {
                        self.slot.drop_session(&session).await;
                    }
                    tries += 1;
                    if !failure.is_passing() || tries >= TRIES_MAX {
                        return Err(failure);
                    }
                    tokio::time::sleep(Duration::from_millis(10) * tries).await;
                }
                Err(Trouble::Unknown { done, failure }) => {
                    self.slot.drop_session(&session).await;
                    return match self.is_marked(&session.backend, mark).await {
                        Some(true) => Ok(*done),
                        Some(false) | None => Err(failure),
                    };
                }
            }
        }
    }

    /// Whether the transaction with this mark was committed.
    async fn is_marked(&self, backend: &Backend, mark: Sixteen) -> Option<bool> {
        let Equipment {
            ground, instance, ..
        } = &*self.equipment;
        let parameters: [Parameter<'_>; 3] = [instance, &self.number, &mark];
        let rows = truth::find(
            &self.slot,
            &ground.stop,
            backend,
            gather::IS_MARKED,
            &parameters,
            // Those who wait behind it need not wait for the server.
            |failure| refuse(self.queue.empty(), failure),
        );
        let committed = rows.await.map(|rows| !rows.is_empty());
        tracing::warn!(committed, "the connection was lost in mid-commit");
        committed
    }

    async fn transact(
        &self,
        session: &Shared,
        mark: Sixteen,
        changes: &[Change],
    ) -> Result<Done, Trouble> {
        let options = &self.equipment.ground.options;
        let now = options.surroundings.clock.now();
        let place = Place {
            session,
            names: &self.equipment.names,
            ids: &self.equipment.ids,
            shard: self.shard,
            instance: self.equipment.instance,
            lane: self.number,
            mark,
            now,
            time: match options.time {
                TimeSource::Database => None,
                TimeSource::Surroundings => Some(now.as_millis()),
            },
        };
        transact(&place, changes).await
    }

    /// Tells the engine, then the callers, then the other instances.
    fn tell(&self, done: Done, changes: Vec<Change>, answers: Vec<Answer>) {
        let Equipment { wake, news, .. } = &*self.equipment;
        for one in &done.committed {
            news.committed(one.head.identity.key, one.head.version, &one.ready);
        }
        if !done.committed.is_empty() {
            wake.committed(done.committed);
        }
        if !done.deleted.is_empty() {
            wake.deleted(&done.deleted);
        }
        let mut again = Vec::new();
        for ((outcome, change), sender) in done.outcomes.into_iter().zip(changes).zip(answers) {
            match outcome {
                Ok(applied) => answer(sender, Ok(applied)),
                Err(Refusal::Change(error)) => answer(sender, Err(error)),
                Err(Refusal::Again) => again.push((change, sender)),
            }
        }
        if !again.is_empty() {
            self.queue.put_back(again);
        }
        news.go();
    }
}

fn refuse(answers: Vec<Answer>, failure: &Failure) {
    if answers.is_empty() {
        return;
    }
    let error = failure.store_error();
    tracing::warn!(%error, changes = answers.len(), "a commit failed; nothing of it was kept");
    for sender in answers {
        answer(sender, Err(refused(failure)));
    }
}

fn answer(sender: Answer, result: Result<Applied, ChangeError>) {
    if sender.send(result).is_err() {
        tracing::debug!("nobody waits for this answer any more");
    }
}
