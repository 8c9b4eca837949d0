//! When SendMessage is answered with a message although the agent did not reply directly.

use std::time::Duration;

use a2ad_proto::{Message, Part, PartContent, Role, Task, TaskState};
use sha2::{Digest, Sha256};

use super::speak::RESPONSE;
use super::{EngineError, Inner};
use crate::behaviour::{Behaviour, Reply};
use crate::clock::uuid_from;
use crate::keys::{Number, TaskKey, first_16};
use crate::task::Record;

/// What a SendMessage is answered with, and how long it waits for that.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplyRule {
    pub(super) blocking: bool,
    reply: Reply,
    pub(super) fast_path: Option<Duration>,
}

impl ReplyRule {
    pub(super) fn new(behaviour: &Behaviour, blocking: bool) -> Self {
        Self {
            blocking,
            reply: behaviour.reply,
            fast_path: behaviour.fast_path,
        }
    }

    /// Whether it can be anything but the task.
    pub(super) fn may_be_message(&self) -> bool {
        self.blocking && (self.reply == Reply::Message || self.fast_path.is_some())
    }

    /// The final message of a task that took so long, if that is the answer to the message that
    /// made it. It depends on nothing but what is stored, so a repeat is answered the same way.
    pub(super) fn final_message(&self, task: &Task, took: Duration) -> Option<Message> {
        let in_time = self.fast_path.is_some_and(|window| took <= window);
        if !self.may_be_message()
            || !(in_time || self.reply == Reply::Message)
            || task.status.state != TaskState::Completed
        {
            return None;
        }
        // Who has written to the task a second time knows it as a task (SEND-15).
        let asked = task.history.iter().filter(|said| said.role == Role::User);
        if asked.count() > 1 {
            return None;
        }
        let is_text = |part: &Part| part.as_text().is_some();
        let text = match &task.artifacts[..] {
            [] => Vec::new(),
            [only] if only.artifact_id == RESPONSE && only.parts.iter().all(is_text) => {
                let texts = only.parts.iter().filter_map(Part::as_text);
                vec![Part::text(texts.collect::<String>())]
            }
            // There is more to it than a message could say.
            _ => return None,
        };
        let mut message = match &task.status.message {
            Some(said) => said.clone(),
            None => Message {
                message_id: id_of(&task.id),
                context_id: task.context_id.clone(),
                task_id: task.id.clone(),
                role: Role::Agent,
                parts: text,
                ..Message::default()
            },
        };
        if let Some(PartContent::Text(text)) = message.parts.last_mut().map(|it| &mut it.content) {
            text.truncate(text.trim_end().len());
        }
        (!message.parts.is_empty()).then_some(message)
    }
}

/// A final message has the same id whenever it is asked for.
fn id_of(task: &str) -> String {
    let digest = Sha256::new_with_prefix(b"final message\0").chain_update(task);
    uuid_from(u128::from_be_bytes(first_16(&digest.finalize())))
}

impl Inner {
    /// The final message of a task that has ended, if that is the answer to its first message.
    pub(super) async fn final_message(
        &self,
        rule: ReplyRule,
        task: TaskKey,
    ) -> Result<Option<Message>, EngineError> {
        let head = self.head(task).await?;
        if head.is_none_or(|head| head.state != TaskState::Completed) {
            return Ok(None);
        }
        let fold = self.fold(task, None).await?;
        let took = self.time_taken(task, &fold.task).await?;
        Ok(rule.final_message(&fold.task, took))
    }

    /// How long a task took from its message to its end.
    async fn time_taken(&self, key: TaskKey, task: &Task) -> Result<Duration, EngineError> {
        let first = self.store.read(key, Number::ZERO, 1).await?;
        let begun = match first.first().map(|entry| entry.record()) {
            Some(Ok(Record::Submitted(task))) => task.status.timestamp,
            Some(Ok(Record::Status(_) | Record::Artifact(_) | Record::Hidden(_)) | Err(_))
            | None => None,
        };
        let (Some(begun), Some(ended)) = (begun, task.status.timestamp) else {
            return Ok(Duration::MAX);
        };
        let millis = ended.as_millis().saturating_sub(begun.as_millis());
        Ok(Duration::from_millis(u64::try_from(millis).unwrap_or(0)))
    }
}
