//! Messages to a context in which an agent is at work, where they do not simply wait.

use super::cancel::NotDone;
use super::{EngineError, Inner, Served};
use crate::agent::{AgentPolicy, Asked};
use crate::behaviour::OnBusy;
use crate::keys::{Number, TurnRef};
use crate::store::{Change, ContextChoice, Once};
use crate::task::{Command, Head, Outcome, TurnHead, TurnState};

/// What is said to a message that comes while the agent is at work, if it does not wait.
pub(super) const BUSY: &str = "Task is already working.";

impl AgentPolicy {
    /// How many turns may be open in a context. Where a busy one takes no message, the store finds
    /// that out as it finds out that a context is full, so that it holds for all instances at once.
    pub(super) fn context_turns(&self) -> u32 {
        match self.behaviour.on_busy {
            OnBusy::Queue | OnBusy::Interrupt => self.context_turns_max,
            OnBusy::Reject => 1,
        }
    }
}

impl Inner {
    /// What a new task comes to if its context turns out to be busy and does not let it wait.
    pub(super) fn rejection(
        &self,
        served: &Served,
        head: &Head,
        asked: &Asked,
        context: &ContextChoice,
        once: Option<Once>,
    ) -> Result<Option<Box<Change>>, EngineError> {
        let rejects = served.policy.behaviour.on_busy == OnBusy::Reject;
        // A new context is never busy.
        if !rejects || *context == ContextChoice::Minted {
            return Ok(None);
        }
        let outcome = Outcome::Failed(Some(self.notice(&head.identity, BUSY)));
        let (change, _) =
            self.settled(head.clone(), asked.clone(), context.clone(), once, outcome)?;
        Ok(Some(Box::new(change)))
    }

    /// Cancels what stands before this turn in its context. Messages to the same task do not interrupt each other: the task would end with all of them.
    pub(super) async fn interrupt(&self, head: &Head, number: Number) {
        let waits = |turn: &TurnHead| turn.state == TurnState::Waiting;
        if !head.turn(number).is_some_and(waits) {
            return;
        }
        let task = head.identity.key;
        let line = match self.store.line(task).await {
            Ok(line) => line,
            Err(error) => {
                tracing::warn!(%error, "a message could not interrupt what stands before it");
                return;
            }
        };
        let own = TurnRef { task, number };
        let mut before: Vec<_> = line.into_iter().take_while(|turn| *turn != own).collect();
        before.dedup_by_key(|turn| turn.task);
        for turn in before.iter().filter(|turn| turn.task != task) {
            match self
                .control(turn.task, &Command::Cancel { metadata: None })
                .await
            {
                Ok(head) => self.tell_to_stop(&head),
                // It has ended by itself.
                Err(NotDone::Refused | NotDone::Gone) => {}
                Err(NotDone::Failed(error)) => {
                    tracing::warn!(%error, "a message could not interrupt what stands before it");
                }
            }
        }
    }

    /// Whether a message to another task has come after this turn in a context where messages
    /// interrupt. Whoever took that in may not have lived to cancel what stood before it.
    pub(super) async fn is_superseded(
        &self,
        policy: &AgentPolicy,
        turn: TurnRef,
    ) -> Result<bool, EngineError> {
        if policy.behaviour.on_busy != OnBusy::Interrupt {
            return Ok(false);
        }
        let line = self.store.line(turn.task).await?;
        let after = line.iter().skip_while(|it| **it != turn);
        Ok(after.into_iter().any(|it| it.task != turn.task))
    }
}
