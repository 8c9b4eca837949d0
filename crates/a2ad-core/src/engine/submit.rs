//! New tasks: all that a message needs to become one, put together without waiting for anything.

use std::sync::Arc;
use std::time::Duration;

use a2ad_proto::{ContextId, Message, SendMessageRequest};
use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;

use super::accept::{Followed, born_leased, unpack};
use super::content::nothing_in;
use super::draft::{Draft, Terms};
use super::hub::Watching;
use super::idempotency::Fingerprint;
use super::passes::{Passes, Point};
use super::read::{fold_in, limit_history, wrap_message, wrap_task};
use super::reply::ReplyRule;
use super::run::{Begin, Ended, Lease, Live, Warm};
use super::speak::{Silenced, Voice};
use super::{Caller, EngineError, Inner, Served};
use crate::agent::{AgentPolicy, Asked, Say};
use crate::behaviour::{Behaviour, EmptyInput, OnBusy};
use crate::keys::{Attempt, ContextKey, Number, TaskKey, TurnRef};
use crate::store::{Change, ChangeError, ContextChoice, Once, SHORT_JOURNAL};
use crate::task::{Command, Entry, Fold, Head, Identity, Outcome};

/// What is said to a message with nothing in it.
const NO_INPUT: &str = "No input received. Please provide your input.";

/// A new task, ready to be committed.
#[expect(clippy::large_enum_variant, reason = "it is taken apart at once")]
pub(super) enum Submission<T> {
    /// Its agent is done already: one commit holds the turn from its message to its end.
    Whole(WholeTurn<T>),
    /// Its agent has yet to work.
    Opening(Box<Opening>),
}

/// A turn that was over before anybody else could see it, and what its caller will be told.
pub(super) struct WholeTurn<T> {
    change: Change,
    told: T,
}

/// How a caller is told of a turn that one commit holds. It is put together before the commit, so
/// that nothing else has to be kept while that takes its time.
pub(super) trait Answer {
    /// What the caller is told.
    type Told;
    /// Whether that takes the task as it ended up.
    const FOLDS: bool;
    /// Tells of `change` of an agent that behaves so. `fold` is the task as it ended up; it is empty if nobody needs it and the
    /// agent did not reply directly.
    fn tell(self, behaviour: &Behaviour, change: &Change, fold: Fold) -> Self::Told;
}

/// The response to SendMessage.
pub(super) struct AsResponse {
    pub(super) history_length: Option<i32>,
    pub(super) blocking: bool,
}

impl Answer for AsResponse {
    type Told = Bytes;
    const FOLDS: bool = true;

    fn tell(self, behaviour: &Behaviour, _change: &Change, mut fold: Fold) -> Bytes {
        if let Some(reply) = fold.reply() {
            return wrap_message(reply);
        }
        let rule = ReplyRule::new(behaviour, self.blocking);
        if let Some(last) = rule.final_message(&fold.task, Duration::ZERO) {
            return wrap_message(&last);
        }
        limit_history(&mut fold.task, self.history_length);
        wrap_task(&fold.task)
    }
}

/// The whole of a stream.
pub(super) struct AsStream;

/// A journal from its first entry on.
pub(super) struct Journal {
    pub(super) task: TaskKey,
    pub(super) version: Number,
    pub(super) entries: Vec<Entry>,
    /// What the agent replied directly, if it did.
    pub(super) reply: Option<Box<Message>>,
}

impl Answer for AsStream {
    type Told = Journal;
    const FOLDS: bool = false;

    fn tell(self, _behaviour: &Behaviour, change: &Change, fold: Fold) -> Journal {
        Journal {
            task: change.head.identity.key,
            version: change.head.version,
            entries: change.entries.clone(),
            reply: fold.reply().cloned().map(Box::new),
        }
    }
}

/// The fold of entries that were just written, from the first on.
fn replay(entries: &[Entry]) -> Option<Fold> {
    let mut fold = Fold::default();
    fold_in(&mut fold, entries, None).ok()?;
    Some(fold)
}

/// A turn that begins with its task.
pub(super) struct Opening {
    change: Change,
    fold: Option<Fold>,
    lease: Lease,
    slot: Option<OwnedSemaphorePermit>,
    watching: Watching,
    work: Work,
    /// What is committed instead if the context is busy and the agent takes no more then.
    rejection: Option<Box<Change>>,
}

/// The agent's part of a turn that is about to be opened.
enum Work {
    /// To be begun.
    Asked(Asked),
    /// Begun, but not done at once.
    Begun(Live),
}

impl Inner {
    /// Puts a new task together.
    ///
    /// In a context of its own nothing can precede its turn, so that may begin before it is
    /// written, if its agent allows; and if it ends at once, one commit is all it takes.
    pub(super) fn prepare<A: Answer>(
        self: &Arc<Self>,
        caller: &Caller,
        served: &Arc<Served>,
        request: Box<SendMessageRequest>,
        mark: Option<Fingerprint>,
        key: TaskKey,
        answer: A,
    ) -> Result<Submission<A::Told>, EngineError> {
        let (mut message, metadata, accepted_output_modes) = unpack(request)?;
        let ids = self.store.public_ids();
        let random = &self.surroundings.random;
        let (context_id, context) = if message.context_id.is_empty() {
            let minted = ids.context_id(ContextKey(key.0), random.bits());
            (minted, ContextChoice::Minted)
        } else {
            let named: ContextId =
                message
                    .context_id
                    .parse()
                    .map_err(|error: a2ad_proto::IdError| {
                        EngineError::invalid("message.contextId", error.to_string())
                    })?;
            (named.clone(), ContextChoice::Named(named))
        };
        let head = Head::unborn(Identity {
            key,
            id: ids.task_id(key, random.bits()),
            context: ContextKey(key.0),
            context_id,
            scope: caller.scope.clone(),
        });
        let identity = Arc::clone(&head.identity);
        message.task_id = identity.id.as_str().to_owned();
        message.context_id = identity.context_id.as_str().to_owned();

        let number = Number::FIRST;
        let lease = Lease {
            turn: TurnRef { task: key, number },
            agent: caller.scope.agent.clone(),
            attempt: Attempt::FIRST,
            holding: self.holding(),
        };
        let asked = Asked {
            message,
            metadata,
            accepted_output_modes,
            history: Vec::new(),
        };
        let once = mark.map(|mark| mark.once(number));
        if let Some(outcome) = self.outcome_of_nothing(&served.policy, &identity, &asked.message) {
            let (change, fold) = self.settled(head, asked, context, once, outcome)?;
            let told = answer.tell(&served.policy.behaviour, &change, fold);
            return Ok(Submission::Whole(WholeTurn { change, told }));
        }
        let slot = self.free_slot(served);

        let work = if slot.is_some() && context == ContextChoice::Minted && served.agent.is_pure() {
            let mut live = Live::begin(self, served, &lease, &identity, asked);
            live.poll_now();
            match live.into_whole() {
                Ok((asked, says, ended)) => {
                    let folds = A::FOLDS || ended.is_reply();
                    let mut draft = Draft::new(head, folds.then(Fold::default));
                    // Beside what was said there are the task, the attempt, and the end.
                    draft.reserve(says.len() + 3);
                    let draft = self.submitted(draft, asked)?;
                    let (change, fold) = self.whole_turn(draft, served, lease, says, ended, once);
                    let told = answer.tell(&served.policy.behaviour, &change, fold);
                    return Ok(Submission::Whole(WholeTurn { change, told }));
                }
                Err(live) => Work::Begun(live),
            }
        } else {
            Work::Asked(asked)
        };
        let rejection = self.rejection(served, &head, work.asked(), &context, once)?;
        let mut draft = Draft::new(head, Some(Fold::default()));
        draft.reserve(1);
        let (change, fold) = self
            .submitted(draft, work.asked().clone())?
            .into_change(Terms {
                context,
                lease_to: slot.is_some().then_some(lease.holding.id),
                once,
                context_turns_max: served.policy.context_turns(),
                agent_turns_max: served.policy.queue_max,
                context_tasks_max: self.context_tasks_max(&served.policy),
                snapshot: false,
            });
        Ok(Submission::Opening(Box::new(Opening {
            change,
            fold,
            lease,
            slot,
            watching: self.hub.watch(key),
            work,
            rejection,
        })))
    }

    /// The draft of a task that begins with what was asked.
    fn submitted(&self, mut draft: Draft, asked: Asked) -> Result<Draft, EngineError> {
        let command = Command::Submit {
            message: asked.message,
            metadata: asked.metadata,
            accepted_output_modes: asked.accepted_output_modes,
        };
        match draft.command(command, self.now()) {
            Ok(()) => Ok(draft),
            Err(refusal) => Err(EngineError::Internal(Box::new(refusal))),
        }
    }

    /// What becomes of a message with nothing in it, unless the agent is to work on it.
    pub(super) fn outcome_of_nothing(
        &self,
        policy: &AgentPolicy,
        identity: &Identity,
        message: &Message,
    ) -> Option<Outcome> {
        let rule = policy.behaviour.empty_input;
        if rule == EmptyInput::Run || !nothing_in(policy, message) {
            return None;
        }
        let said = Some(self.notice(identity, NO_INPUT));
        match rule {
            EmptyInput::InputRequired => Some(Outcome::InputRequired(said)),
            EmptyInput::Failed => Some(Outcome::Failed(said)),
            EmptyInput::Run => None,
        }
    }

    /// The change that makes a task and settles it without any work.
    pub(super) fn settled(
        &self,
        head: Head,
        asked: Asked,
        context: ContextChoice,
        once: Option<Once>,
        outcome: Outcome,
    ) -> Result<(Change, Fold), EngineError> {
        let mut draft = Draft::new(head, Some(Fold::default()));
        draft.reserve(2);
        let mut draft = self.submitted(draft, asked)?;
        let turn = Number::FIRST;
        draft
            .command(Command::Settle { turn, outcome }, self.now())
            .map_err(|refusal| EngineError::Internal(Box::new(refusal)))?;
        draft.forget_turn(turn);
        let (change, fold) = draft.into_change(Terms {
            context,
            once,
            snapshot: true,
            ..Terms::default()
        });
        Ok((change, fold.unwrap_or_default()))
    }

    /// The change that holds a turn from its message to its end, and its fold if the draft has one.
    fn whole_turn(
        self: &Arc<Self>,
        mut draft: Draft,
        served: &Arc<Served>,
        lease: Lease,
        says: Vec<Say>,
        ended: Ended,
        once: Option<Once>,
    ) -> (Change, Fold) {
        let number = lease.turn.number;
        draft.lease_newborn(number);
        let mut voice = Voice {
            inner: Arc::clone(self),
            served: Arc::clone(served),
            identity: Arc::clone(&draft.head().identity),
            lease,
            started: false,
            spoke: false,
            text_begun: false,
            passes: Passes::new(&served.policy.behaviour),
        };
        let says = voice.passes.sift(says, Point::Ended);
        let end = voice.conclude(ended, &says, draft.head());
        // Nobody else has seen the turn, so nobody can have silenced it.
        let _spoken: Result<(), Silenced> = voice.speak(&mut draft, says, Some(end));
        draft.forget_turn(number);
        let (mut change, mut fold) = draft.into_change(Terms {
            once,
            context_tasks_max: self.context_tasks_max(&served.policy),
            ..Terms::default()
        });
        // The fold of a short journal is made when it is asked for.
        if change.head.bytes > SHORT_JOURNAL {
            let mut replayed = fold.is_none().then(|| replay(&change.entries)).flatten();
            change.snapshot = fold.as_mut().or(replayed.as_mut()).map(Fold::snapshot);
        }
        (change, fold.unwrap_or_default())
    }
}

impl<T> WholeTurn<T> {
    /// Commits it; then its caller may be told.
    pub(super) fn commit(self, inner: &Inner) -> impl Future<Output = Result<T, ChangeError>> {
        let Self { change, told } = self;
        let committed = inner.store.commit(change);
        async move { committed.await.map(|_applied| told) }
    }
}

impl Work {
    /// What the agent is asked.
    fn asked(&self) -> &Asked {
        match self {
            Self::Begun(live) => live.asked(),
            Self::Asked(asked) => asked,
        }
    }
}

impl Opening {
    /// Commits it, and sets the agent to work if the turn was born ours.
    pub(super) async fn commit(
        self: Box<Self>,
        inner: &Arc<Inner>,
        served: &Arc<Served>,
        mark: Option<Fingerprint>,
    ) -> Result<Followed, EngineError> {
        let Self {
            change,
            fold,
            lease,
            slot,
            watching,
            work,
            rejection,
        } = *self;
        let number = lease.turn.number;
        let committed = match (inner.store.commit(change).await, rejection) {
            (Err(ChangeError::ContextFull), Some(rejection)) => {
                inner.store.commit(*rejection).await
            }
            (committed, _) => committed,
        };
        let applied = match committed {
            Ok(applied) => applied,
            Err(error) => return inner.not_submitted(error, mark),
        };
        if served.policy.behaviour.on_busy == OnBusy::Interrupt {
            Box::pin(inner.interrupt(&applied.head, number)).await;
        }
        let begun = born_leased(&applied, number);
        if let (Some(slot), Some(fold), true) = (slot, fold, begun) {
            let head = applied.head;
            let live = match work {
                Work::Begun(live) => live,
                Work::Asked(asked) => Live::begin(inner, served, &lease, &head.identity, asked),
            };
            let warm = Warm { head, fold, live };
            inner.spawn_turn(lease, slot, Begin::Warm(Box::new(warm)));
        }
        Ok(Followed {
            watching,
            number,
            again: false,
            begun,
        })
    }
}
