//! Further messages to a task that exists.

use std::sync::Arc;

use a2ad_proto::SendMessageRequest;

use super::accept::{AGENT_FULL, CONTEXT_FULL, Followed, born_leased, unpack};
use super::busy::BUSY;
use super::draft::{Draft, Terms};
use super::idempotency::Fingerprint;
use super::run::{Begin, Lease};
use super::{CONFLICTS_MAX, Caller, EngineError, Inner, Served};
use crate::behaviour::OnBusy;
use crate::keys::{Attempt, TurnRef};
use crate::store::ChangeError;
use crate::task::{Command, Head, Refusal};

/// How much of an id is repeated to whoever sent it.
const ID_SHOWN_MAX: usize = 128;
const INSTEAD_OF_TASK_ID: &str =
    "Use tasks/get to poll an existing task, or omit taskId when sending a new message.";

impl Inner {
    /// Takes a further message to a task. Not an async function, so that the future it spawns is no
    /// part of its callers'.
    pub(super) fn begin_follow_up(
        self: &Arc<Self>,
        caller: &Caller,
        served: &Arc<Served>,
        request: Box<SendMessageRequest>,
        mark: Option<Fingerprint>,
    ) -> impl Future<Output = Result<Followed, EngineError>> + use<> {
        let (inner, caller, served) = (Arc::clone(self), caller.clone(), Arc::clone(served));
        self.see_through(async move { inner.follow_up(&caller, &served, request, mark).await })
    }

    async fn follow_up(
        self: &Arc<Self>,
        caller: &Caller,
        served: &Arc<Served>,
        request: Box<SendMessageRequest>,
        mark: Option<Fingerprint>,
    ) -> Result<Followed, EngineError> {
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
            let mut draft = Draft::new(Head::clone(&head), None);
            let command = Command::Continue {
                message: message.clone(),
                metadata: metadata.clone(),
                accepted_output_modes: accepted_output_modes.clone(),
            };
            let number = head.version.next();
            if let Err(refusal) = draft.command(command, self.now()) {
                return self.refused(caller, refusal, mark).await;
            }
            let nothing = self.outcome_of_nothing(&served.policy, &head.identity, &message);
            let slot = match &nothing {
                Some(_) => None,
                None => self.free_slot(served),
            };
            if let Some(outcome) = nothing {
                let settle = Command::Settle {
                    turn: number,
                    outcome,
                };
                draft
                    .command(settle, self.now())
                    .map_err(|refusal| EngineError::Internal(Box::new(refusal)))?;
                draft.forget_turn(number);
            }
            let holding = self.holding();
            let (change, _) = draft.into_change(Terms {
                lease_to: slot.is_some().then_some(holding.id),
                once: mark.map(|mark| mark.once(number)),
                context_turns_max: served.policy.context_turns(),
                agent_turns_max: served.policy.queue_max,
                ..Terms::default()
            });
            match self.store.commit(change).await {
                Ok(applied) => {
                    if served.policy.behaviour.on_busy == OnBusy::Interrupt {
                        self.interrupt(&applied.head, number).await;
                    }
                    let begun = born_leased(&applied, number);
                    if let (Some(slot), true) = (slot, begun) {
                        let lease = Lease {
                            turn: TurnRef { task, number },
                            agent: caller.scope.agent.clone(),
                            attempt: Attempt::FIRST,
                            holding,
                        };
                        self.spawn_turn(lease, slot, Begin::Cold);
                    }
                    return Ok(Followed {
                        watching,
                        number,
                        again: false,
                        begun,
                    });
                }
                Err(ChangeError::ContextFull)
                    if served.policy.behaviour.on_busy == OnBusy::Reject =>
                {
                    return Err(EngineError::Unsupported(BUSY.to_owned()));
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
    ) -> Result<Followed, EngineError> {
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

    /// Why a message to a task that exists, or does not, is not taken.
    pub(super) async fn no_continuation(&self, caller: &Caller, id: &str) -> EngineError {
        let shown: String = id.chars().take(ID_SHOWN_MAX).collect();
        let what = match self.find(caller, id).await {
            Ok(_) => format!("Client-supplied taskId {shown:?} is not supported for message/send."),
            Err(EngineError::TaskNotFound { .. }) => format!("Unknown taskId {shown:?}."),
            Err(error) => return error,
        };
        EngineError::invalid("message.taskId", format!("{what} {INSTEAD_OF_TASK_ID}"))
    }
}
