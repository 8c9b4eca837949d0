//! Changes that do not come from a lease: cancel, expire, take over from the dead.

use std::sync::Arc;

use a2ad_proto::{CancelTaskRequest, TaskId};
use bytes::Bytes;

use super::draft::{Draft, Terms};
use super::{CONFLICTS_MAX, Caller, Engine, EngineError, Inner, lock};
use crate::keys::{TaskKey, TurnRef};
use crate::store::{Applied, ChangeError};
use crate::task::{Command, Head, TurnState};

/// Why a command from outside a lease came to nothing.
#[derive(Debug)]
pub(super) enum NotDone {
    /// The task does not allow it.
    Refused,
    /// The task is gone.
    Gone,
    /// The engine could not.
    Failed(EngineError),
}

impl Engine {
    /// CancelTask. The request is recorded first; then the agent has a while to stop. Answers a
    /// `Task` as JSON: CANCELED, or as it is when the wait is over.
    pub async fn cancel(
        &self,
        caller: &Caller,
        request: CancelTaskRequest,
    ) -> Result<Bytes, EngineError> {
        request.check()?;
        let inner = &self.inner;
        let task = inner.find(caller, &request.id).await?;
        let watching = inner.hub.watch(task);
        inner.request_cancel(task, request).await?;
        let settled = inner.wait_until(&watching, |head| head.state.is_terminal());
        // Over time the answer is the task as it is; the request stands.
        let _waited: Result<_, _> = tokio::time::timeout(inner.cancel_wait, settled).await;
        inner.task_json(task, None).await
    }
}

impl Inner {
    /// Records the request and tells the agent. Once begun it is seen through: an agent that is
    /// not told would work on.
    async fn request_cancel(
        self: &Arc<Self>,
        task: TaskKey,
        request: CancelTaskRequest,
    ) -> Result<(), EngineError> {
        let inner = Arc::clone(self);
        self.see_through(async move {
            let command = Command::Cancel {
                metadata: request.metadata,
            };
            let head = match inner.control(task, &command).await {
                Ok(head) => head,
                Err(NotDone::Refused) => {
                    return Err(EngineError::NotCancelable { id: request.id });
                }
                Err(NotDone::Gone) => return Err(EngineError::not_found(&request.id)),
                Err(NotDone::Failed(error)) => return Err(error),
            };
            inner.tell_to_stop(&head);
            Ok(())
        })
        .await
    }

    /// The caller's task with this id.
    pub(super) async fn find(&self, caller: &Caller, id: &str) -> Result<TaskKey, EngineError> {
        // What cannot be an id cannot be found.
        let parsed: TaskId = id.parse().map_err(|_| EngineError::not_found(id))?;
        if let Some(head) = self.known_head(caller, &parsed) {
            return Ok(head.identity.key);
        }
        self.store
            .find(&caller.scope, &parsed)
            .await?
            .ok_or_else(|| EngineError::not_found(id))
    }

    /// Carries out a command that anybody may give, whoever holds the task's turn.
    pub(super) async fn control(
        &self,
        task: TaskKey,
        command: &Command,
    ) -> Result<Arc<Head>, NotDone> {
        for _ in 0..CONFLICTS_MAX {
            let head = match self.head(task).await {
                Ok(Some(head)) => head,
                Ok(None) => return Err(NotDone::Gone),
                Err(error) => return Err(NotDone::Failed(error)),
            };
            let mut draft = Draft::new(Head::clone(&head), None);
            draft
                .command(command.clone(), self.now())
                .map_err(|_| NotDone::Refused)?;
            if draft.is_empty() {
                return Ok(head);
            }
            // The last word on a task is frozen with it, so that nobody folds it again.
            let last = draft.head().state.is_terminal();
            if last {
                // A journal that cannot be folded must not keep the task from ending.
                let fold = self.fold(task, Some(head.version)).await.ok();
                let fold = fold.filter(|fold| fold.version == head.version);
                draft = Draft::new(Head::clone(&head), fold);
                draft
                    .command(command.clone(), self.now())
                    .map_err(|_| NotDone::Refused)?;
            }
            let (change, _) = draft.into_change(Terms {
                snapshot: last,
                context_tasks_max: self
                    .agents
                    .get(&head.identity.scope.agent)
                    .and_then(|served| self.context_tasks_max(&served.policy)),
                ..Terms::default()
            });
            match self.store.commit(change).await {
                Ok(Applied { head, .. }) => return Ok(head),
                Err(ChangeError::Conflict) => self.hub.forget(task),
                Err(
                    ChangeError::Fenced
                    | ChangeError::Repeated(_)
                    | ChangeError::ContextFull
                    | ChangeError::AgentFull,
                ) => return Err(NotDone::Refused),
                Err(ChangeError::Store(error)) => return Err(NotDone::Failed(error.into())),
            }
        }
        Err(NotDone::Failed(EngineError::Exhausted(
            "the task changes too fast",
        )))
    }

    /// Tells the turns of a task that run here to stop.
    pub(super) fn tell_to_stop(&self, head: &Head) {
        let running = lock(&self.running);
        for turn in &head.turns {
            if turn.state != TurnState::Leased {
                continue;
            }
            let turn = TurnRef {
                task: head.identity.key,
                number: turn.number,
            };
            if let Some(stop) = running.get(&turn) {
                stop.cancel();
            }
        }
    }
}
