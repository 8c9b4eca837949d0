//! From what an agent says to commands.

use std::sync::Arc;

use a2ad_proto::{Artifact, Message, Part, PartContent, Role, Timestamp};

use super::draft::{Draft, backoff_millis};
use super::failure::{self, Failure};
use super::passes::Passes;
use super::run::{ATTEMPTS_BROKEN, Ended, Lease};
use super::{Inner, Served};
use crate::agent::{Ending, Say};
use crate::behaviour::{EndState, OnRestart, Surface};
use crate::clock::uuid;
use crate::keys::Number;
use crate::task::{Broken, Command, Head, Identity, Outcome, Output, Refusal, RetryRule};

/// The artifact that the text of a task's first turn goes to, and the name of those of all turns.
pub(super) const RESPONSE: &str = "response";

/// The voice of one attempt: what it says, put into commands under its lease.
pub(super) struct Voice {
    pub(super) inner: Arc<Inner>,
    pub(super) served: Arc<Served>,
    pub(super) lease: Lease,
    pub(super) identity: Arc<Identity>,
    /// The attempt's start is in the journal.
    pub(super) started: bool,
    /// The attempt has said something, whatever it was.
    pub(super) spoke: bool,
    /// The turn's text artifact exists in this attempt.
    pub(super) text_begun: bool,
    /// How its text is cut.
    pub(super) passes: Passes,
}

/// The lease is over, or the task has ended: there is nothing more to say.
pub(super) struct Silenced;

impl Voice {
    /// Decides what was said, and the end if it has come, on top of `draft`.
    pub(super) fn speak(
        &self,
        draft: &mut Draft,
        says: Vec<Say>,
        ended: Option<Command>,
    ) -> Result<(), Silenced> {
        let now = self.inner.now();
        let turn = self.lease.turn.number;
        let attempt = self.lease.attempt;
        let start = (!self.started).then_some(Command::Start { turn, attempt });
        let outputs = self.outputs(says, ended.is_some());
        let emits = outputs.into_iter().map(|output| Command::Emit {
            turn,
            attempt,
            output,
        });
        for command in start.into_iter().chain(emits).chain(ended) {
            match draft.command(command, now) {
                Ok(()) => {}
                Err(refusal @ (Refusal::NoSuchArtifact(_) | Refusal::Full(_))) => {
                    tracing::warn!(%refusal, "the agent's output is refused; the task fails");
                    let text = format!("The agent's answer is invalid: {refusal}");
                    let failed = Command::Finish {
                        turn,
                        attempt,
                        outcome: Outcome::Failed(self.message(vec![Part::text(text)])),
                    };
                    return draft.command(failed, now).map_err(|_| Silenced);
                }
                Err(Refusal::Fenced | Refusal::Ended(_) | Refusal::NotNow | Refusal::Exists) => {
                    return Err(Silenced);
                }
            }
        }
        Ok(())
    }

    /// What was said as commands take it: neighbouring text runs together.
    fn outputs(&self, says: Vec<Say>, last: bool) -> Vec<Output> {
        let mut outputs: Vec<Output> = Vec::with_capacity(says.len());
        let mut text_begun = self.text_begun;
        let mut open_text: Option<usize> = None;
        for say in says {
            match say {
                Say::Text(text) => {
                    if let Some(so_far) = open_text.and_then(|at| text_of(outputs.get_mut(at)?)) {
                        so_far.push_str(&text);
                        continue;
                    }
                    open_text = Some(outputs.len());
                    if self.served.policy.behaviour.surface == Surface::Status {
                        outputs.push(Output::Status {
                            message: self.message(vec![Part::text(text)]),
                            metadata: None,
                        });
                        continue;
                    }
                    outputs.push(Output::Artifact {
                        artifact: Artifact {
                            artifact_id: response_id(self.lease.turn.number),
                            name: RESPONSE.to_owned(),
                            parts: vec![Part::text(text)],
                            ..Artifact::default()
                        },
                        append: text_begun,
                        last_chunk: false,
                    });
                    text_begun = true;
                }
                Say::Artifact {
                    artifact,
                    append,
                    last_chunk,
                } => {
                    open_text = None;
                    outputs.push(Output::Artifact {
                        artifact,
                        append,
                        last_chunk,
                    });
                }
                Say::Status { parts, metadata } => {
                    open_text = None;
                    outputs.push(Output::Status {
                        message: self.message(parts),
                        metadata,
                    });
                }
            }
        }
        if last
            && let Some(at) = open_text
            && let Some(Output::Artifact { last_chunk, .. }) = outputs.get_mut(at)
        {
            *last_chunk = true;
        }
        outputs
    }

    /// The command that ends the turn, after `says` and what was said before.
    pub(super) fn conclude(&self, ended: Ended, says: &[Say], head: &Head) -> Command {
        let turn = self.lease.turn.number;
        let attempt = self.lease.attempt;
        let finish = |outcome| Command::Finish {
            turn,
            attempt,
            outcome,
        };
        match ended {
            Ended::Returned(Ok(ending)) => finish(self.outcome(ending, says)),
            Ended::Returned(Err(error)) => {
                let Failure { id, text } = Failure::of(&error);
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    error_id = %id,
                    retryable = error.retryable,
                    "the agent failed"
                );
                let retry = error.retryable.then(|| self.retry(head));
                self.broken(Broken::Failed, retry, &text)
            }
            Ended::Panicked => {
                let Failure { id, text } = failure::PANICKED.failure();
                tracing::error!(error_id = %id, "the agent panicked");
                finish(Outcome::Failed(self.message(vec![Part::text(text)])))
            }
            Ended::CanceledNow => finish(Outcome::Canceled(None)),
            Ended::DeadlinePassed => {
                let Failure { id, text } = failure::TOO_LONG.failure();
                tracing::warn!(error_id = %id, "the agent took too long");
                self.broken(Broken::Deadline, None, &text)
            }
            Ended::HandedBack => match self.served.policy.behaviour.on_restart {
                OnRestart::Requeue => {
                    let now = RetryRule {
                        tries_max: u32::MAX,
                        due: self.inner.now(),
                    };
                    self.broken(Broken::Released, Some(now), "")
                }
                OnRestart::Fail => self.broken(Broken::Released, None, failure::CUT_OFF),
                OnRestart::InputRequired => {
                    let text = Part::text(failure::ASK_AGAIN);
                    finish(Outcome::InputRequired(self.message(vec![text])))
                }
            },
        }
    }

    /// What the agent's ending means for the task.
    fn outcome(&self, ending: Ending, says: &[Say]) -> Outcome {
        let done = |said| match self.served.policy.behaviour.end_state {
            EndState::Completed => Outcome::Completed(said),
            EndState::InputRequired => Outcome::InputRequired(said),
        };
        match ending {
            Ending::Completed(parts) => done(self.last_message(parts)),
            Ending::Reply(parts) => {
                let first_word = !self.spoke && says.is_empty();
                match (self.message(parts), self.served.policy.behaviour.end_state) {
                    (Some(reply), EndState::Completed) if first_word => Outcome::Replied(reply),
                    (said, _) => done(said),
                }
            }
            Ending::InputRequired(parts) => Outcome::InputRequired(self.last_message(parts)),
            Ending::AuthRequired(parts) => Outcome::AuthRequired(self.message(parts)),
            Ending::Rejected(parts) => Outcome::Rejected(self.message(parts)),
            Ending::Failed(parts) if parts.is_empty() => {
                let Failure { id, text } = failure::NO_REASON.failure();
                tracing::warn!(error_id = %id, "the agent failed without a word");
                Outcome::Failed(self.message(vec![Part::text(text)]))
            }
            Ending::Failed(parts) => Outcome::Failed(self.message(parts)),
        }
    }

    /// What the agent says at its end; if that is nothing, what it said before, where that is to be
    /// said again.
    fn last_message(&self, mut parts: Vec<Part>) -> Option<Message> {
        if parts.is_empty() {
            parts.extend(self.passes.last_word());
        }
        self.message(parts)
    }

    fn broken(&self, reason: Broken, retry: Option<RetryRule>, text: &str) -> Command {
        metrics::counter!(ATTEMPTS_BROKEN, "reason" => reason.label()).increment(1);
        Command::Break {
            turn: self.lease.turn.number,
            attempt: self.lease.attempt,
            reason,
            retry,
            failure: self.inner.notice(&self.identity, text),
        }
    }

    fn retry(&self, head: &Head) -> RetryRule {
        let policy = &self.served.policy;
        let tries = head
            .turn(self.lease.turn.number)
            .map_or(1, |turn| turn.tries());
        let random = &self.inner.surroundings.random;
        let wait = backoff_millis(tries, policy.backoff, policy.backoff_max, random);
        RetryRule {
            tries_max: policy.tries_max,
            due: Timestamp::from_millis(self.inner.now().as_millis().saturating_add(wait)),
        }
    }

    /// What the agent says to the client, if it says anything.
    fn message(&self, parts: Vec<Part>) -> Option<Message> {
        (!parts.is_empty()).then(|| self.inner.agent_message(&self.identity, parts))
    }
}

impl Inner {
    /// A message to the client about its task.
    pub(super) fn notice(&self, identity: &Identity, text: &str) -> Message {
        self.agent_message(identity, vec![Part::text(text)])
    }

    fn agent_message(&self, identity: &Identity, parts: Vec<Part>) -> Message {
        Message {
            message_id: uuid(&*self.surroundings.random),
            context_id: identity.context_id.as_str().to_owned(),
            task_id: identity.id.as_str().to_owned(),
            role: Role::Agent,
            parts,
            ..Message::default()
        }
    }
}

fn text_of(output: &mut Output) -> Option<&mut String> {
    let parts = match output {
        Output::Artifact { artifact, .. } => &mut artifact.parts,
        Output::Status { message, .. } => &mut message.as_mut()?.parts,
    };
    match &mut parts.last_mut()?.content {
        PartContent::Text(text) => Some(text),
        PartContent::Raw(_) | PartContent::Url(_) | PartContent::Data(_) => None,
    }
}

/// Whether an artifact is one that the text of a turn goes to.
pub(crate) fn is_response(id: &str) -> bool {
    let number = id.strip_prefix(RESPONSE).map(|rest| rest.strip_prefix('-'));
    id == RESPONSE
        || number
            .flatten()
            .is_some_and(|number| number.parse::<u64>().is_ok())
}

/// The artifact that a turn's text goes to. Each turn of a task has its own.
fn response_id(turn: Number) -> String {
    match turn {
        Number(1) => RESPONSE.to_owned(),
        Number(n) => format!("{RESPONSE}-{n}"),
    }
}
