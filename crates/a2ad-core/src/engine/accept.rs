//! Accepting messages: SendMessage and SendStreamingMessage.

use std::sync::Arc;

use a2ad_proto::{ContextId, Message, SendMessageRequest};
use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;

use super::content::check_content;
use super::cursor::{EndsAt, Frames, check_cursor};
use super::draft::{Draft, Terms};
use super::hub::Watching;
use super::idempotency::{Fingerprint, fingerprint};
use super::read::{wrap_message, wrap_task};
use super::run::{Asked, Begin, Ended, Lease, Live, TASKS_BEGUN, Warm, count_end};
use super::speak::{Silenced, Voice};
use super::{CONFLICTS_MAX, Caller, Engine, EngineError, Inner, Served};
use crate::agent::Say;
use crate::keys::{Attempt, ContextKey, Number, TurnRef};
use crate::store::{Applied, Change, ChangeError, ContextChoice, Once, OnceHit};
use crate::task::{Command, Fold, Head, Identity, Refusal, TurnState};

/// A message that is in the journal.
struct Accepted {
    watching: Watching,
    /// The entry that holds the message.
    number: Number,
    /// The task as of that entry, where it is known without reading and a stream opens with it.
    fold: Option<Fold>,
    /// The message had been sent before; this is the task it made then.
    again: bool,
}

impl Accepted {
    /// The direct reply to the message, if it made the task and the task has come to that. Who
    /// continues a task is answered with the task (SEND-15).
    async fn reply(&self, inner: &Inner) -> Result<Option<(Number, Message)>, EngineError> {
        if self.number != Number::FIRST {
            return Ok(None);
        }
        inner.direct_reply(self.watching.task).await
    }
}

impl Engine {
    /// SendMessage. Blocks until the task has ended or waits for its client, unless the request
    /// says to return at once. Answers a `SendMessageResponse` as JSON: the task, or the agent's
    /// direct reply if there is one by then.
    pub async fn send(
        &self,
        caller: &Caller,
        request: SendMessageRequest,
    ) -> Result<Bytes, EngineError> {
        let inner = &self.inner;
        let configuration = request.configuration.as_ref();
        let history_length = configuration.and_then(|asked| asked.history_length);
        let blocking = configuration.is_none_or(|asked| !asked.return_immediately);
        let accepted = inner.accept(caller, request).await?;
        if blocking {
            let number = accepted.number;
            inner
                .wait_until(&accepted.watching, |head| {
                    head.version >= number && head.is_settled()
                })
                .await?;
        }
        let task = inner
            .task_json(accepted.watching.task, history_length)
            .await?;
        // Looked for after the task was read, so that no task is shown that a reply has ended.
        Ok(match accepted.reply(inner).await? {
            Some((_, reply)) => wrap_message(&reply),
            None => wrap_task(&task),
        })
    }

    /// SendStreamingMessage. Opens with the task as of the entry that the message made, then
    /// everything after. A message that was sent before is not worked on again: its stream is
    /// replayed, after `after` if the caller has seen part of it.
    ///
    /// If the agent has already replied directly when the stream opens, that message is the whole
    /// stream. A stream that has opened with the task stays one, and so does what is resumed from
    /// it: who names an entry has seen the task (STREAM-01). A number from before the message names
    /// none of its stream, and counts as no number.
    pub async fn stream(
        &self,
        caller: &Caller,
        request: SendMessageRequest,
        after: Option<Number>,
    ) -> Result<Frames, EngineError> {
        let inner = &self.inner;
        let configuration = request.configuration.as_ref();
        let history_length = configuration.and_then(|asked| asked.history_length);
        let accepted = inner.accept(caller, request).await?;
        if let Some(after) = after.filter(|after| accepted.again && *after >= accepted.number) {
            let head = inner.head(accepted.watching.task).await?;
            let head = head.ok_or_else(|| EngineError::not_found(""))?;
            check_cursor(after, &head)?;
            return Ok(Frames::after(
                inner,
                accepted.watching,
                after,
                EndsAt::InputRequired,
            ));
        }
        let fold = match accepted.fold {
            Some(fold) => fold,
            None => {
                if let Some((number, reply)) = accepted.reply(inner).await? {
                    return Ok(Frames::reply(inner, accepted.watching, number, &reply));
                }
                inner
                    .fold(accepted.watching.task, Some(accepted.number))
                    .await?
            }
        };
        Ok(Frames::from_fold(
            inner,
            accepted.watching,
            fold,
            history_length,
            EndsAt::InputRequired,
        ))
    }
}

impl Inner {
    /// Puts a message into a journal and its turn into the queue, durably. Once begun it is seen
    /// through (SEND-18).
    async fn accept(
        self: &Arc<Self>,
        caller: &Caller,
        request: SendMessageRequest,
    ) -> Result<Accepted, EngineError> {
        let inner = Arc::clone(self);
        let caller = caller.clone();
        self.see_through(async move { inner.take_in(&caller, request).await })
            .await
    }

    async fn take_in(
        self: &Arc<Self>,
        caller: &Caller,
        request: SendMessageRequest,
    ) -> Result<Accepted, EngineError> {
        request.check()?;
        self.refuse_if_closing()?;
        let served = self.served(&caller.scope.agent)?;
        let Some(message) = &request.message else {
            return Err(EngineError::invalid("message", "is required"));
        };
        let asks_for_push = request
            .configuration
            .as_ref()
            .is_some_and(|asked| asked.task_push_notification_config.is_some());
        if asks_for_push {
            return Err(EngineError::PushNotSupported);
        }
        let mark = fingerprint(
            self.store.public_ids(),
            caller,
            served.policy.idempotency,
            message,
            request.metadata.as_ref(),
        );
        if let Err(refusal) = check_content(&served.policy, &request) {
            // The agent may have taken more when the message first came.
            return match self.earlier(caller, mark).await? {
                Some(accepted) => Ok(accepted),
                None => Err(refusal),
            };
        }
        if message.task_id.is_empty() {
            self.submit(caller, served, request, mark).await
        } else {
            self.follow_up(caller, served, request, mark).await
        }
    }

    async fn submit(
        self: &Arc<Self>,
        caller: &Caller,
        served: &Arc<Served>,
        request: SendMessageRequest,
        mark: Option<Fingerprint>,
    ) -> Result<Accepted, EngineError> {
        let (mut message, metadata, accepted_output_modes) = unpack(request)?;
        let key = self.new_key().await?;
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
        message.task_id = head.identity.id.as_str().to_owned();
        message.context_id = head.identity.context_id.as_str().to_owned();

        let number = Number::FIRST;
        let lease = Lease {
            turn: TurnRef { task: key, number },
            agent: caller.scope.agent.clone(),
            attempt: Attempt::FIRST,
        };
        let asked = Asked {
            message: message.clone(),
            metadata: metadata.clone(),
            accepted_output_modes: accepted_output_modes.clone(),
            history: Vec::new(),
        };
        let mut draft = Draft::new(&head, Some(Fold::default()));
        let command = Command::Submit {
            message,
            metadata,
            accepted_output_modes,
        };
        draft
            .command(command, self.now())
            .map_err(|refusal| EngineError::Internal(Box::new(refusal)))?;
        let slot = self.free_slot(served);
        let watching = self.hub.watch(key);
        let once = mark.map(|mark| mark.once(number));

        // In a context of its own nothing can precede the turn, so it may begin before it is
        // written, if its agent allows; and if it ends at once, one commit is all it takes.
        let mut early = None;
        if slot.is_some() && context == ContextChoice::Minted && served.agent.is_pure() {
            let mut live = Live::begin(self, served, &lease, &head.identity, asked.clone());
            live.poll_once().await;
            if let Some((says, ended)) = live.take_whole() {
                let whole = self.whole_turn(draft, served, lease, &says, ended);
                let fold = whole.as_submitted;
                let snapshot = whole.change.snapshot.clone();
                let change = Change {
                    once,
                    ..whole.change
                };
                return match self.store.commit(change).await {
                    Ok(applied) => {
                        if let Some(snapshot) = snapshot {
                            self.hub.keep_snapshot(key, Arc::new(snapshot));
                        }
                        metrics::counter!(TASKS_BEGUN).increment(1);
                        count_end(&applied.head);
                        Ok(Accepted {
                            watching,
                            number,
                            fold,
                            again: false,
                        })
                    }
                    Err(error) => self.not_submitted(error, mark),
                };
            }
            early = Some(live);
        }

        let (change, fold) = draft.into_change(Terms {
            context,
            lease_to: slot.is_some().then_some(self.holder),
            once,
            context_turns_max: served.policy.context_turns_max,
            agent_turns_max: served.policy.queue_max,
            snapshot: false,
        });
        match self.store.commit(change).await {
            Ok(applied) => {
                metrics::counter!(TASKS_BEGUN).increment(1);
                if let (Some(slot), Some(fold), true) =
                    (slot, fold.clone(), born_leased(&applied, number))
                {
                    let head = applied.head;
                    let live = early.unwrap_or_else(|| {
                        Live::begin(self, served, &lease, &head.identity, asked)
                    });
                    let warm = Warm { head, fold, live };
                    self.spawn_turn(lease, slot, Begin::Warm(Box::new(warm)));
                }
                Ok(Accepted {
                    watching,
                    number,
                    fold,
                    again: false,
                })
            }
            Err(error) => self.not_submitted(error, mark),
        }
    }

    /// The change that holds a turn from its message to its end.
    fn whole_turn(
        self: &Arc<Self>,
        mut draft: Draft,
        served: &Arc<Served>,
        lease: Lease,
        says: &[Say],
        ended: Ended,
    ) -> WholeTurn {
        let number = lease.turn.number;
        let as_submitted = draft.fold().cloned();
        draft.lease_newborn(number);
        let voice = Voice {
            inner: Arc::clone(self),
            served: Arc::clone(served),
            identity: Arc::clone(&draft.head().identity),
            lease,
            started: false,
            spoke: false,
            text_begun: false,
        };
        let end = voice.conclude(ended, says, draft.head());
        // Nobody else has seen the turn, so nobody can have silenced it.
        let _spoken: Result<(), Silenced> = voice.speak(&mut draft, says, Some(&end));
        draft.forget_turn(number);
        let (change, fold) = draft.into_change(Terms {
            snapshot: true,
            ..Terms::default()
        });
        let replied = fold.is_some_and(|fold| fold.reply().is_some());
        WholeTurn {
            change,
            as_submitted: as_submitted.filter(|_| !replied),
        }
    }

    /// Why a new task did not come about, or which one it is a repeat of.
    fn not_submitted(
        self: &Arc<Self>,
        error: ChangeError,
        mark: Option<Fingerprint>,
    ) -> Result<Accepted, EngineError> {
        match error {
            ChangeError::Repeated(hit) => self.sent_before(hit, mark),
            ChangeError::ContextFull => Err(CONTEXT_FULL),
            ChangeError::AgentFull => Err(AGENT_FULL),
            ChangeError::Store(error) => Err(error.into()),
            error @ (ChangeError::Conflict | ChangeError::Fenced) => {
                Err(EngineError::Internal(Box::new(error)))
            }
        }
    }

    async fn follow_up(
        self: &Arc<Self>,
        caller: &Caller,
        served: &Arc<Served>,
        request: SendMessageRequest,
        mark: Option<Fingerprint>,
    ) -> Result<Accepted, EngineError> {
        let (mut message, metadata, accepted_output_modes) = unpack(request)?;
        let task = self.find(caller, &message.task_id).await?;
        let watching = self.hub.watch(task);
        for _ in 0..CONFLICTS_MAX {
            let head = self
                .head(task)
                .await?
                .ok_or_else(|| EngineError::not_found(&message.task_id))?;
            let context_id = head.identity.context_id.as_str();
            if message.context_id.is_empty() {
                context_id.clone_into(&mut message.context_id);
            } else if message.context_id != context_id {
                return Err(EngineError::invalid(
                    "message.contextId",
                    "The task belongs to another context",
                ));
            }
            let mut draft = Draft::new(&head, None);
            let command = Command::Continue {
                message: message.clone(),
                metadata: metadata.clone(),
                accepted_output_modes: accepted_output_modes.clone(),
            };
            let number = head.version.next();
            if let Err(refusal) = draft.command(command, self.now()) {
                return self.refused(caller, refusal, mark).await;
            }
            let slot = self.free_slot(served);
            let (change, _) = draft.into_change(Terms {
                lease_to: slot.is_some().then_some(self.holder),
                once: mark.map(|mark| mark.once(number)),
                context_turns_max: served.policy.context_turns_max,
                agent_turns_max: served.policy.queue_max,
                ..Terms::default()
            });
            match self.store.commit(change).await {
                Ok(applied) => {
                    if let (Some(slot), true) = (slot, born_leased(&applied, number)) {
                        let lease = Lease {
                            turn: TurnRef { task, number },
                            agent: caller.scope.agent.clone(),
                            attempt: Attempt::FIRST,
                        };
                        self.spawn_turn(lease, slot, Begin::Cold);
                    }
                    return Ok(Accepted {
                        watching,
                        number,
                        fold: None,
                        again: false,
                    });
                }
                Err(ChangeError::Conflict) => self.hub.forget(task),
                Err(ChangeError::Repeated(hit)) => return self.sent_before(hit, mark),
                Err(ChangeError::ContextFull) => return Err(CONTEXT_FULL),
                Err(ChangeError::AgentFull) => return Err(AGENT_FULL),
                Err(ChangeError::Store(error)) => return Err(error.into()),
                Err(error @ ChangeError::Fenced) => {
                    return Err(EngineError::Internal(Box::new(error)));
                }
            }
        }
        Err(EngineError::Exhausted("the task changes too fast"))
    }

    /// A message that the task does not take. If it was taken before, that is the answer.
    async fn refused(
        self: &Arc<Self>,
        caller: &Caller,
        refusal: Refusal,
        mark: Option<Fingerprint>,
    ) -> Result<Accepted, EngineError> {
        if let Some(accepted) = self.earlier(caller, mark).await? {
            return Ok(accepted);
        }
        match refusal {
            Refusal::Ended(state) => Err(EngineError::Unsupported(format!(
                "The task has ended as {}; send a new message in its context instead",
                state.as_str()
            ))),
            Refusal::Full(_) => Err(EngineError::Exhausted("the task is full")),
            Refusal::Fenced | Refusal::NotNow | Refusal::Exists | Refusal::NoSuchArtifact(_) => {
                Err(EngineError::Internal(Box::new(refusal)))
            }
        }
    }

    /// What the message came to if it was sent and taken before.
    async fn earlier(
        self: &Arc<Self>,
        caller: &Caller,
        mark: Option<Fingerprint>,
    ) -> Result<Option<Accepted>, EngineError> {
        let Some(mark) = mark else { return Ok(None) };
        let hit = self.store.once(&caller.scope, mark.key).await?;
        hit.map(|hit| self.sent_before(hit, Some(mark))).transpose()
    }

    fn sent_before(
        self: &Arc<Self>,
        hit: OnceHit,
        mark: Option<Fingerprint>,
    ) -> Result<Accepted, EngineError> {
        let same = mark.is_some_and(|mark| mark.body == hit.body);
        if !same {
            let field = mark.map_or("message.messageId", |mark| mark.field);
            let what = "This id was used before for another message; use a new one";
            return Err(EngineError::invalid(field, what));
        }
        Ok(Accepted {
            watching: self.hub.watch(hit.task),
            number: hit.number,
            fold: None,
            again: true,
        })
    }

    fn free_slot(&self, served: &Served) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&served.slots).try_acquire_owned().ok()
    }
}

/// A turn from its message to its end, in one change.
struct WholeTurn {
    change: Change,
    /// The task as of its message, which a stream opens with unless it is a direct reply.
    as_submitted: Option<Fold>,
}

fn born_leased(applied: &Applied, number: Number) -> bool {
    applied
        .head
        .turn(number)
        .is_some_and(|turn| turn.state == TurnState::Leased)
}

const CONTEXT_FULL: EngineError = EngineError::Exhausted("too many messages wait in this context");
const AGENT_FULL: EngineError = EngineError::Exhausted("too many messages wait for this agent");

impl Fingerprint {
    fn once(self, number: Number) -> Once {
        Once {
            key: self.key,
            body: self.body,
            number,
        }
    }
}

type Unpacked = (Message, Option<a2ad_proto::Metadata>, Vec<String>);

fn unpack(request: SendMessageRequest) -> Result<Unpacked, EngineError> {
    let message = request
        .message
        .ok_or_else(|| EngineError::invalid("message", "is required"))?;
    let modes = request
        .configuration
        .map(|asked| asked.accepted_output_modes)
        .unwrap_or_default();
    Ok((message, request.metadata, modes))
}
