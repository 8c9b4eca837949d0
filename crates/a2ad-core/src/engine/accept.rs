//! Accepting messages: SendMessage and SendStreamingMessage.

use std::sync::Arc;

use a2ad_proto::{Message, SendMessageRequest};
use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;

use super::content::check_content;
use super::cursor::{EndsAt, Frames, check_cursor};
use super::hub::Watching;
use super::idempotency::{Fingerprint, fingerprint};
use super::read::{wrap_message, wrap_task_json};
use super::reply::ReplyRule;
use super::submit::{Answer, AsResponse, AsStream, Journal, Opening, Submission};
use super::{Caller, Engine, EngineError, Inner, Served};
use crate::behaviour::Continuation;
use crate::keys::Number;
use crate::store::{Applied, ChangeError, Once, OnceHit};
use crate::task::{Head, TurnState};

/// A message that is in the journal.
enum Accepted<T> {
    /// So is all that came of it; the caller can be told.
    Whole(T),
    /// Somebody works on it, or will, or has long ago.
    Followed(Followed),
}

/// A message whose task has to be watched to see what comes of it.
pub(super) struct Followed {
    pub(super) watching: Watching,
    /// The entry that holds the message.
    pub(super) number: Number,
    /// The message had been sent before; this is the task it made then.
    pub(super) again: bool,
    /// Its turn began at once.
    pub(super) begun: bool,
}

impl Followed {
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
        request: impl Into<Box<SendMessageRequest>>,
    ) -> Result<Bytes, EngineError> {
        let inner = &self.inner;
        let request = request.into();
        let configuration = request.configuration.as_ref();
        let history_length = configuration.and_then(|asked| asked.history_length);
        let blocking = configuration.is_none_or(|asked| !asked.return_immediately);
        let answer = AsResponse {
            history_length,
            blocking,
        };
        let accepted = match inner.accept(caller, request, answer).await? {
            Accepted::Whole(response) => return Ok(response),
            Accepted::Followed(accepted) => accepted,
        };
        let served = inner.served(&caller.scope.agent)?;
        let rule = ReplyRule::new(&served.policy.behaviour, blocking);
        // Boxed, so that those who need not wait do not carry what waiting takes.
        Box::pin(inner.result(accepted, rule, history_length)).await
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
        request: impl Into<Box<SendMessageRequest>>,
        after: Option<Number>,
    ) -> Result<Frames, EngineError> {
        let inner = &self.inner;
        let request = request.into();
        let configuration = request.configuration.as_ref();
        let history_length = configuration.and_then(|asked| asked.history_length);
        let accepted = match inner.accept(caller, request, AsStream).await? {
            Accepted::Whole(Journal {
                task,
                version,
                reply: Some(reply),
                ..
            }) => return Ok(Frames::reply(inner, task, version, &reply)),
            Accepted::Whole(journal) if history_length.is_none() => {
                let ends_at = EndsAt::InputRequired;
                return Ok(Frames::known(inner, journal.task, journal.entries, ends_at));
            }
            Accepted::Whole(journal) => Followed {
                watching: inner.hub.watch(journal.task),
                number: Number::FIRST,
                again: false,
                begun: true,
            },
            Accepted::Followed(accepted) => accepted,
        };
        Box::pin(inner.frames(accepted, after, history_length)).await
    }
}

impl Inner {
    /// What came of a message; waits for it if `blocking`.
    async fn result(
        &self,
        accepted: Followed,
        rule: ReplyRule,
        history_length: Option<i32>,
    ) -> Result<Bytes, EngineError> {
        if rule.blocking {
            let number = accepted.number;
            let settled = |head: &Head| head.version >= number && head.is_settled();
            let mut settled = std::pin::pin!(self.wait_until(&accepted.watching, settled));
            match rule.fast_path {
                None => settled.as_mut().await?,
                // What has to wait for its turn is not waited for.
                Some(_) if !accepted.begun && !accepted.again => {}
                Some(window) => match tokio::time::timeout(window, settled.as_mut()).await {
                    Ok(settled) => settled?,
                    Err(_elapsed) => {}
                },
            }
        }
        let key = accepted.watching.task;
        let task = self.task_json(key, history_length).await?;
        // Looked for after the task was read, so that no task is shown that a reply has ended.
        if let Some((_, reply)) = accepted.reply(self).await? {
            return Ok(wrap_message(&reply));
        }
        if accepted.number == Number::FIRST
            && rule.may_be_message()
            && let Some(last) = Box::pin(self.final_message(rule, key)).await?
        {
            return Ok(wrap_message(&last));
        }
        Ok(wrap_task_json(&task))
    }

    /// The stream of a message that may have been sent before.
    async fn frames(
        self: &Arc<Self>,
        accepted: Followed,
        after: Option<Number>,
        history_length: Option<i32>,
    ) -> Result<Frames, EngineError> {
        let ends_at = EndsAt::InputRequired;
        let task = accepted.watching.task;
        if let Some(after) = after.filter(|after| accepted.again && *after >= accepted.number) {
            let head = self.head(task).await?;
            let head = head.ok_or_else(|| EngineError::not_found(""))?;
            check_cursor(after, &head)?;
            let Followed {
                watching, number, ..
            } = accepted;
            return Ok(Frames::of_message(self, watching, number, after));
        }
        if accepted.again
            && let Some((number, reply)) = accepted.reply(self).await?
        {
            return Ok(Frames::reply(self, task, number, &reply));
        }
        if accepted.number == Number::FIRST && history_length.is_none() {
            // The first entry is the task as of its message.
            let watching = accepted.watching;
            return Ok(Frames::after(self, watching, Number::ZERO, ends_at));
        }
        let fold = self.fold(task, Some(accepted.number)).await?;
        let watching = accepted.watching;
        Ok(Frames::from_fold(
            self,
            watching,
            fold,
            history_length,
            ends_at,
        ))
    }

    /// Puts a message into a journal and its turn into the queue, durably. Once begun it is seen
    /// through (SEND-18).
    async fn accept<A: Answer>(
        self: &Arc<Self>,
        caller: &Caller,
        request: Box<SendMessageRequest>,
        answer: A,
    ) -> Result<Accepted<A::Told>, EngineError> {
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
            return match Box::pin(self.earlier(caller, mark)).await? {
                Some(accepted) => Ok(Accepted::Followed(accepted)),
                None => Err(refusal),
            };
        }
        if !message.task_id.is_empty() {
            if served.policy.behaviour.continuation == Continuation::Deny {
                return match Box::pin(self.earlier(caller, mark)).await? {
                    Some(accepted) => Ok(Accepted::Followed(accepted)),
                    None => Err(Box::pin(self.no_continuation(caller, &message.task_id)).await),
                };
            }
            let done = self.begin_follow_up(caller, served, request, mark);
            return done.await.map(Accepted::Followed);
        }
        let key = self.new_key().await?;
        match self.prepare(caller, served, request, mark, key, answer)? {
            // The store finishes a commit whether anybody waits or not, and nothing follows it.
            Submission::Whole(whole) => match whole.commit(self).await {
                Ok(told) => Ok(Accepted::Whole(told)),
                Err(error) => self.not_submitted(error, mark).map(Accepted::Followed),
            },
            Submission::Opening(opening) => {
                let done = self.begin_opening(opening, served, mark);
                done.await.map(Accepted::Followed)
            }
        }
    }

    // Not an async function, so that the future it spawns is no part of its callers'.
    fn begin_opening(
        self: &Arc<Self>,
        opening: Box<Opening>,
        served: &Arc<Served>,
        mark: Option<Fingerprint>,
    ) -> impl Future<Output = Result<Followed, EngineError>> + use<> {
        let (inner, served) = (Arc::clone(self), Arc::clone(served));
        self.see_through(async move { opening.commit(&inner, &served, mark).await })
    }

    /// Why a new task did not come about, or which one it is a repeat of.
    pub(super) fn not_submitted(
        self: &Arc<Self>,
        error: ChangeError,
        mark: Option<Fingerprint>,
    ) -> Result<Followed, EngineError> {
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

    /// What the message came to if it was sent and taken before.
    pub(super) async fn earlier(
        self: &Arc<Self>,
        caller: &Caller,
        mark: Option<Fingerprint>,
    ) -> Result<Option<Followed>, EngineError> {
        let Some(mark) = mark else { return Ok(None) };
        let hit = self.store.once(&caller.scope, mark.key).await?;
        hit.map(|hit| self.sent_before(hit, Some(mark))).transpose()
    }

    pub(super) fn sent_before(
        self: &Arc<Self>,
        hit: OnceHit,
        mark: Option<Fingerprint>,
    ) -> Result<Followed, EngineError> {
        let same = mark.is_some_and(|mark| mark.body == hit.body);
        if !same {
            let field = mark.map_or("message.messageId", |mark| mark.field);
            let what = "This id was used before for another message; use a new one";
            return Err(EngineError::invalid(field, what));
        }
        Ok(Followed {
            watching: self.hub.watch(hit.task),
            number: hit.number,
            again: true,
            begun: false,
        })
    }

    /// Room to begin a turn at once.
    pub(super) fn free_slot(&self, served: &Served) -> Option<OwnedSemaphorePermit> {
        if self.life.closing.is_cancelled() {
            return None;
        }
        Arc::clone(&served.slots).try_acquire_owned().ok()
    }
}

/// Whether the turn that the change opened was leased to us at once.
pub(super) fn born_leased(applied: &Applied, number: Number) -> bool {
    applied
        .head
        .turn(number)
        .is_some_and(|turn| turn.state == TurnState::Leased)
}

pub(super) const CONTEXT_FULL: EngineError =
    EngineError::Exhausted("too many messages wait in this context");
pub(super) const AGENT_FULL: EngineError =
    EngineError::Exhausted("too many messages wait for this agent");

impl Fingerprint {
    pub(super) fn once(self, number: Number) -> Once {
        Once {
            key: self.key,
            body: self.body,
            number,
        }
    }
}

type Unpacked = (Message, Option<a2ad_proto::Metadata>, Vec<String>);

pub(super) fn unpack(request: Box<SendMessageRequest>) -> Result<Unpacked, EngineError> {
    let message = request
        .message
        .ok_or_else(|| EngineError::invalid("message", "is required"))?;
    let modes = request
        .configuration
        .map(|asked| asked.accepted_output_modes)
        .unwrap_or_default();
    Ok((message, request.metadata, modes))
}
