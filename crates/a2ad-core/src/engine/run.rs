//! Running a turn: polls the agent, writes down what it says, and ends the turn with its outcome.
//!
//! One commit of a turn is in flight at a time. What the agent says meanwhile gathers, text runs
//! together, and goes out with the next commit; so a fast agent costs few commits, a slow one is
//! written word by word, and nobody sets a timer.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use a2ad_proto::{AgentId, Timestamp};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::content::{as_shown, show_history};
use super::draft::{Draft, Terms};
use super::failure::Failure;
use super::passes::{Passes, Point};
use super::speak::Voice;
use super::{EngineError, Holding, Inner, Served, lock};
use crate::agent::{AgentError, Asked, Ending, Say, Turn, TurnShared};
use crate::keys::{Attempt, Number, TaskKey, TurnRef};
use crate::said::{Listener, said};
use crate::store::{Applied, Change, ChangeError, StoreError};
use crate::task::{Broken, Command, Fold, Head, Hidden, Identity, Record};

/// Open turns by state, and dead ones.
pub(super) const TURNS: &str = "a2ad_turns";
/// Tasks that were accepted.
pub(super) const TASKS_BEGUN: &str = "a2ad_tasks_begun_total";
/// Tasks that ended, by state.
pub(super) const TASKS_ENDED: &str = "a2ad_tasks_ended_total";
/// Attempts that ended without an outcome, by reason.
pub(super) const ATTEMPTS_BROKEN: &str = "a2ad_attempts_broken_total";

/// A snapshot is not worth writing for less than this much new journal.
pub(super) const SNAPSHOT_BYTES_MIN: u64 = 64 << 10;
/// What clients read of a turn that was given up.
const GIVEN_UP: &str = "The server could not run this task";
/// How long to wait before trying again to write what the store refused.
const STORE_PAUSE: Duration = Duration::from_millis(200);

/// Describes the engine's metrics to whoever records them.
pub fn describe_metrics() {
    metrics::describe_gauge!(TURNS, "Open turns by state, and dead ones");
    metrics::describe_counter!(TASKS_BEGUN, "Tasks that were accepted");
    metrics::describe_counter!(TASKS_ENDED, "Tasks that ended, by state");
    metrics::describe_counter!(
        ATTEMPTS_BROKEN,
        "Attempts that ended without an outcome, by reason"
    );
    // There from the start: whoever waits for the first one sees nothing rise that was not there before.
    metrics::counter!(TASKS_BEGUN).increment(0);
    for reason in Broken::ALL {
        metrics::counter!(ATTEMPTS_BROKEN, "reason" => reason.label()).increment(0);
    }
}

/// A turn that this process holds.
#[derive(Clone, Debug)]
pub(super) struct Lease {
    pub(super) turn: TurnRef,
    pub(super) agent: AgentId,
    pub(super) attempt: Attempt,
    pub(super) holding: Arc<Holding>,
}

/// How the agent's part ended.
pub(super) enum Ended {
    /// With a result, or an error of its own.
    Returned(Result<Ending, AgentError>),
    Panicked,
    /// It did not stop in time after a cancel.
    CanceledNow,
    DeadlinePassed,
    /// The server stops.
    HandedBack,
}

/// An agent at work on a turn.
pub(super) struct Live {
    turn: Turn,
    work: BoxFuture<'static, std::thread::Result<Result<Ending, AgentError>>>,
    said: Listener,
    stop: CancellationToken,
    deadline: Option<Instant>,
    /// Set once the work has returned, panicked or is not waited for any longer.
    ended: Option<Ended>,
}

impl Live {
    /// Sets the agent to work. Nothing happens before the first poll.
    pub(super) fn begin(
        inner: &Inner,
        served: &Served,
        lease: &Lease,
        identity: &Identity,
        mut asked: Asked,
    ) -> Self {
        let shown = as_shown(&served.policy, &asked.message);
        show_history(&served.policy, &mut asked.history);
        let (speaker, said) = said();
        let stop = CancellationToken::new();
        let limit = served.policy.deadline;
        let turn = Turn {
            shared: Arc::new(TurnShared {
                task_id: identity.id.clone(),
                context_id: identity.context_id.clone(),
                context: identity.context,
                context_key: OnceLock::new(),
                ids: inner.store.public_ids().clone(),
                agent: lease.agent.clone(),
                owner: identity.scope.owner.clone(),
                attempt: lease.attempt,
                asked,
                shown,
                deadline: limit.map(|limit| {
                    let limit = i64::try_from(limit.as_millis()).unwrap_or(i64::MAX);
                    Timestamp::from_millis(inner.now().as_millis().saturating_add(limit))
                }),
                speaker,
                stop: stop.clone(),
            }),
        };
        let agent = Arc::clone(&served.agent);
        let given = turn.clone();
        let work = AssertUnwindSafe(async move { agent.run(given).await }).catch_unwind();
        Self {
            turn,
            work: work.boxed(),
            said,
            stop,
            deadline: limit.and_then(|limit| Instant::now().checked_add(limit)),
            ended: None,
        }
    }

    /// Polls the agent, if it is still at work. Nobody is told if it wakes afterwards, so whoever
    /// wants to wait for it polls again.
    pub(super) fn poll_now(&mut self) {
        if self.ended.is_none()
            && let Some(result) = (&mut self.work).now_or_never()
        {
            self.ended = Some(Ended::from_work(result));
        }
    }

    /// What it was asked.
    pub(super) fn asked(&self) -> &Asked {
        &self.turn.shared.asked
    }

    /// What the agent was asked and what it said, if it has already said everything and returned in good order.
    pub(super) fn into_whole(mut self) -> Result<(Asked, Vec<Say>, Ended), Self> {
        let ended = match self.ended.take() {
            Some(ended @ Ended::Returned(Ok(_))) => ended,
            other => {
                self.ended = other;
                return Err(self);
            }
        };
        let mut says = Vec::new();
        self.said.take(&mut says);
        // The agent has given its copy of the turn back, unless it kept one.
        drop(self.work);
        let asked = match Arc::try_unwrap(self.turn.shared) {
            Ok(shared) => shared.asked,
            Err(shared) => shared.asked.clone(),
        };
        Ok((asked, says, ended))
    }
}

/// What is known of a turn that is about to run.
pub(super) enum Begin {
    /// Nothing yet.
    Cold,
    /// The agent is at work.
    Warm(Box<Warm>),
}

/// An agent at work, and the task it works on.
pub(super) struct Warm {
    pub(super) head: Arc<Head>,
    pub(super) fold: Fold,
    pub(super) live: Live,
}

impl Inner {
    /// Runs a leased turn in the background.
    pub(super) fn spawn_turn(
        self: &Arc<Self>,
        lease: Lease,
        slot: OwnedSemaphorePermit,
        begin: Begin,
    ) {
        let span = tracing::info_span!(
            "turn",
            task = lease.turn.task.0,
            turn = lease.turn.number.0,
            attempt = lease.attempt.0,
            agent = %lease.agent
        );
        let inner = Arc::clone(self);
        let work = async move {
            let turn = lease.turn;
            let holding = Arc::clone(&lease.holding);
            let ran = tokio::select! {
                biased;
                () = holding.lost.cancelled() => Ok(()),
                ran = run_turn(&inner, lease.clone(), begin) => ran,
                never = heed_others(&inner, turn.task) => match never {},
            };
            if let Err(error) = ran {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "a turn was given up"
                );
                inner.give_up(&lease, &error).await;
            }
            lock(&inner.running).remove(&turn);
            drop(slot);
            inner.hub.announce_slot();
        };
        self.turns.spawn(work.instrument(span));
    }
}

impl Inner {
    /// Fails the task of a turn that cannot be run, for example because its journal is damaged.
    /// If the store is gone for good the turn stays ours and is taken over at the next start.
    async fn give_up(&self, lease: &Lease, error: &EngineError) {
        if matches!(error, EngineError::Unavailable(_)) {
            return;
        }
        let Ok(Some(head)) = self.store.head(lease.turn.task).await else {
            return;
        };
        let Failure { id, text } = Failure::new("server", &error.to_string(), GIVEN_UP);
        tracing::error!(error_id = %id, "the task of a turn that was given up fails");
        let command = Command::Break {
            turn: lease.turn.number,
            attempt: lease.attempt,
            reason: Broken::Failed,
            retry: None,
            failure: self.notice(&head.identity, &text),
        };
        if self.control(lease.turn.task, &command).await.is_err() {
            tracing::error!("the turn's task could not be failed either");
        }
    }
}

/// Tells the turns of a task that run here to stop if somebody cancels it at another instance.
async fn heed_others(inner: &Inner, task: TaskKey) -> Infallible {
    if inner.store.exclusive() {
        return std::future::pending().await;
    }
    let watching = inner.hub.watch(task);
    loop {
        let changed = watching.changed();
        tokio::pin!(changed);
        changed.as_mut().enable();
        if watching.is_changed_elsewhere()
            && let Ok(Some(head)) = inner.store.head(task).await
            && head.cancel_requested
        {
            inner.tell_to_stop(&head);
        }
        changed.await;
    }
}

async fn run_turn(inner: &Arc<Inner>, lease: Lease, begin: Begin) -> Result<(), EngineError> {
    let served = inner.served(&lease.agent)?;
    let (head, fold, live) = match begin {
        Begin::Warm(warm) => (warm.head, warm.fold, warm.live),
        Begin::Cold => {
            let (head, fold) = patiently(inner, || load(inner, &lease)).await?;
            let asked = patiently(inner, || what_was_asked(inner, &lease, &fold)).await?;
            let live = Live::begin(inner, served, &lease, &head.identity, asked);
            (head, fold, live)
        }
    };
    // From here on a cancel finds the turn; one that came before shows in the head or, at the
    // first commit, as a conflict.
    lock(&inner.running).insert(lease.turn, live.stop.clone());
    if head.cancel_requested {
        live.stop.cancel();
    }
    Runner {
        voice: Voice {
            inner: Arc::clone(inner),
            served: Arc::clone(served),
            identity: Arc::clone(&head.identity),
            lease,
            started: false,
            spoke: false,
            text_begun: false,
            passes: Passes::new(&served.policy.behaviour),
        },
        stop: live.stop.clone(),
        frozen: Frozen::before(&head),
        head,
        fold: Some(fold),
    }
    .run(live)
    .await
}

/// Reads for a turn, however long the store is away: while its lease holds, nobody else runs it.
async fn patiently<T, F>(inner: &Inner, read: impl Fn() -> F) -> Result<T, EngineError>
where
    F: Future<Output = Result<T, EngineError>>,
{
    let mut warned = false;
    loop {
        let error = match read().await {
            Err(EngineError::Unavailable(Some(
                error @ (StoreError::Full(_) | StoreError::Unavailable(_)),
            ))) => error,
            result => return result,
        };
        if !warned {
            tracing::warn!(%error, "a turn waits for the store");
            warned = true;
        }
        tokio::select! {
            () = tokio::time::sleep(STORE_PAUSE) => {}
            () = inner.life.over.cancelled() => return Err(error.into()),
        }
    }
}

/// The task of a lease, fresh from the store.
async fn load(inner: &Arc<Inner>, lease: &Lease) -> Result<(Arc<Head>, Fold), EngineError> {
    let head = inner
        .store
        .head(lease.turn.task)
        .await?
        .ok_or_else(|| EngineError::not_found(""))?;
    let fold = inner.fold(lease.turn.task, Some(head.version)).await?;
    if fold.version != head.version {
        return Err(EngineError::Internal(
            "the journal is shorter than its head says".into(),
        ));
    }
    Ok((head, fold))
}

/// Finds a turn's message, what came with it, and what was said before it.
async fn what_was_asked(
    inner: &Arc<Inner>,
    lease: &Lease,
    fold: &Fold,
) -> Result<Asked, EngineError> {
    let TurnRef { task, number } = lease.turn;
    let record = |entry: crate::task::Entry| {
        entry
            .record()
            .map_err(|error| EngineError::Internal(Box::new(error)))
    };
    let mut asked = Asked::default();
    let before = Number(number.0.saturating_sub(1));
    let mut entries = inner.store.read(task, before, 1).await?.into_iter();
    match entries.next().map(record).transpose()? {
        Some(Record::Submitted(task)) => {
            asked.message = task.history.into_iter().next().unwrap_or_default();
        }
        Some(Record::Hidden(Hidden::Message(message))) => asked.message = message,
        Some(Record::Status(_) | Record::Artifact(_) | Record::Hidden(_)) | None => {
            return Err(EngineError::Internal("a turn names no message".into()));
        }
    }
    let next = match entries.next() {
        Some(entry) => Some(entry),
        None => inner.store.read(task, number, 1).await?.into_iter().next(),
    };
    if let Some(Record::Hidden(Hidden::Request {
        turn,
        metadata,
        accepted_output_modes,
    })) = next.map(record).transpose()?
        && turn == number
    {
        asked.metadata = metadata;
        asked.accepted_output_modes = accepted_output_modes;
    }
    asked.history = fold.task.history.clone();
    let own = asked
        .history
        .iter()
        .rposition(|said| *said == asked.message);
    if let Some(own) = own {
        asked.history.truncate(own);
    }
    Ok(asked)
}

/// When the journal was last frozen, and how large that was.
#[derive(Clone, Copy, Debug)]
struct Frozen {
    bytes: u64,
    size: u64,
}

impl Frozen {
    fn before(head: &Head) -> Self {
        Self {
            bytes: head.bytes,
            size: 0,
        }
    }

    /// Freezing when the journal has doubled keeps the total cost linear.
    fn is_due(self, head: &Head) -> bool {
        head.bytes.saturating_sub(self.bytes) > self.size.max(SNAPSHOT_BYTES_MIN)
    }
}

struct Runner {
    voice: Voice,
    stop: CancellationToken,
    head: Arc<Head>,
    /// The task up to `head`; always there between commits.
    fold: Option<Fold>,
    frozen: Frozen,
}

impl Runner {
    async fn run(mut self, mut live: Live) -> Result<(), EngineError> {
        // The agent's first poll comes before the first commit, which then carries all it said.
        live.poll_now();
        let mut says: Vec<Say> = Vec::new();
        let mut stopped_at = None;
        loop {
            // What an agent says before it returns is in the queue by then, so this is all of it.
            live.said.take(&mut says);
            let finish = live.ended.take();
            let finished = finish.is_some();
            if !self.voice.passes.are_plain() {
                says = self.sift(&live, says, finished);
            }
            if finished || !self.voice.started || !says.is_empty() {
                let batch = std::mem::take(&mut says);
                let holds = self.voice.passes.hold();
                let mut write = std::pin::pin!(self.write(batch, finish));
                // While the disk works, so may the agent; what it says waits in the channel.
                let lease_holds = loop {
                    tokio::select! {
                        biased;
                        result = &mut write => break result?,
                        result = &mut live.work, if live.ended.is_none() && !finished => {
                            live.ended = Some(Ended::from_work(result));
                        }
                    }
                };
                if finished || !lease_holds {
                    return Ok(());
                }
                if !holds {
                    live.said.note_written();
                }
                continue;
            }
            if live.ended.is_none() {
                self.wait(&mut live, &mut stopped_at).await;
            }
        }
    }

    /// Of what was said, what is to be told now.
    fn sift(&mut self, live: &Live, says: Vec<Say>, finished: bool) -> Vec<Say> {
        let point = match finished {
            true => Point::Ended,
            false if live.said.is_flushing() => Point::Flushed,
            false => Point::GoesOn,
        };
        let told = self.voice.passes.sift(says, point);
        if told.is_empty() && !self.voice.passes.hold() {
            // Nothing of it will be told before the end, so nobody has to wait for that.
            live.said.note_written();
        }
        told
    }

    /// Waits until the agent says something, returns, or has to stop.
    async fn wait(&self, live: &mut Live, stopped_at: &mut Option<Instant>) {
        let past_grace = async {
            self.stop.cancelled().await;
            let since = *stopped_at.get_or_insert_with(Instant::now);
            tokio::time::sleep_until(since + self.voice.served.policy.cancel_grace).await;
        };
        let deadline = live.deadline;
        let past_deadline = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        let over = &self.voice.inner.life.over;
        live.ended = tokio::select! {
            biased;
            result = &mut live.work => Some(Ended::from_work(result)),
            () = live.said.spoken() => None,
            () = past_grace => Some(Ended::CanceledNow),
            () = past_deadline => Some(Ended::DeadlinePassed),
            () = over.cancelled() => Some(Ended::HandedBack),
        };
    }

    /// Commits what was said, and the end if it has come. Says whether the lease still holds.
    async fn write(&mut self, says: Vec<Say>, ended: Option<Ended>) -> Result<bool, EngineError> {
        let ended = ended.map(|ended| self.voice.conclude(ended, &says, &self.head));
        loop {
            let Some((change, fold)) = self.draft(says.clone(), ended.clone()) else {
                return Ok(false);
            };
            let snapshot = change.snapshot.clone();
            match self.commit(change).await? {
                Ok(Applied { head, .. }) => {
                    if let Some(snapshot) = snapshot {
                        self.frozen = Frozen {
                            bytes: head.bytes,
                            size: snapshot.size() as u64,
                        };
                        let task = self.voice.lease.turn.task;
                        self.voice.inner.hub.keep_snapshot(task, Arc::new(snapshot));
                    }
                    self.voice.started = true;
                    self.voice.spoke |= !says.is_empty();
                    self.voice.text_begun |= says.iter().any(|say| matches!(say, Say::Text(_)));
                    // Output that had to be refused ends the turn without the agent's word.
                    let holds = head.turn(self.voice.lease.turn.number).is_some();
                    self.head = head;
                    self.fold = fold;
                    return Ok(holds);
                }
                Err(ChangeError::Fenced) => return Ok(false),
                // Somebody else wrote to the task: a further message, a cancel. Decide again.
                Err(
                    ChangeError::Conflict
                    | ChangeError::Repeated(_)
                    | ChangeError::ContextFull
                    | ChangeError::AgentFull,
                ) => {
                    let Voice { inner, lease, .. } = &self.voice;
                    let (head, fold) = patiently(inner, || load(inner, lease)).await?;
                    if head.cancel_requested {
                        self.stop.cancel();
                    }
                    self.head = head;
                    self.fold = Some(fold);
                }
                Err(ChangeError::Store(error)) => return Err(error.into()),
            }
        }
    }

    /// Decides what was said on top of the head. `None`: the lease is over.
    fn draft(&mut self, says: Vec<Say>, ended: Option<Command>) -> Option<(Change, Option<Fold>)> {
        let mut draft = Draft::new(Head::clone(&self.head), self.fold.take());
        draft.reserve(says.len() + 2);
        self.voice.speak(&mut draft, says, ended).ok()?;
        let over = draft.head().turn(self.voice.lease.turn.number).is_none();
        let snapshot = over || self.frozen.is_due(draft.head());
        Some(
            draft.into_change(Terms {
                snapshot,
                context_tasks_max: self
                    .voice
                    .inner
                    .context_tasks_max(&self.voice.served.policy),
                ..Terms::default()
            }),
        )
    }

    /// Commits, however long the store refuses for lack of space or because it is away: the
    /// agent's word is not lost, and the agent feels it as back-pressure.
    async fn commit(&self, change: Change) -> Result<Result<Applied, ChangeError>, EngineError> {
        let mut warned = false;
        loop {
            match self.voice.inner.store.commit(change.clone()).await {
                Err(ChangeError::Store(
                    error @ (StoreError::Full(_) | StoreError::Unavailable(_)),
                )) => {
                    if !warned {
                        tracing::warn!(%error, "a turn waits for the store");
                        warned = true;
                    }
                    tokio::select! {
                        () = tokio::time::sleep(STORE_PAUSE) => {}
                        () = self.voice.inner.life.over.cancelled() => return Err(error.into()),
                    }
                }
                result => return Ok(result),
            }
        }
    }
}

impl Ended {
    /// Whether the agent replied directly.
    pub(super) fn is_reply(&self) -> bool {
        matches!(self, Self::Returned(Ok(Ending::Reply(_))))
    }

    fn from_work(result: std::thread::Result<Result<Ending, AgentError>>) -> Self {
        match result {
            Ok(returned) => Self::Returned(returned),
            Err(_) => Self::Panicked,
        }
    }
}
