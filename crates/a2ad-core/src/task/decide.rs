//! What a command means for a task.

use a2ad_proto::{
    Artifact, Message, Metadata, Task, TaskArtifactUpdateEvent, TaskState, TaskStatus,
    TaskStatusUpdateEvent, Timestamp,
};

use super::entry::{Broken, Hidden, Record};
use super::head::{Head, TurnHead, TurnState};
use crate::keys::{Attempt, Number};

/// How many entries a journal may hold. A task that fills up fails; it still gets to say so.
pub const ENTRIES_MAX: u64 = 100_000;
/// How many bytes a journal may hold.
pub const BYTES_MAX: u64 = 256 << 20;
/// How many artifacts a task may have; their ids are part of its head.
pub const ARTIFACTS_MAX: usize = 1_000;

/// Everything that can be asked of a task.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// A client's message begins the task.
    Submit {
        /// The message, with the task's and the context's ids filled in.
        message: Message,
        /// The request's own metadata.
        metadata: Option<Metadata>,
        /// The media types the client can take; empty means any.
        accepted_output_modes: Vec<String>,
    },
    /// A client's further message.
    Continue {
        /// The message, with the task's and the context's ids filled in.
        message: Message,
        /// The request's own metadata.
        metadata: Option<Metadata>,
        /// The media types the client can take; empty means any.
        accepted_output_modes: Vec<String>,
    },
    /// The holder of a lease begins to work.
    Start {
        /// The turn.
        turn: Number,
        /// The lease.
        attempt: Attempt,
    },
    /// The agent says something.
    Emit {
        /// The turn.
        turn: Number,
        /// The lease.
        attempt: Attempt,
        /// What it says.
        output: Output,
    },
    /// The agent is done with the turn.
    Finish {
        /// The turn.
        turn: Number,
        /// The lease.
        attempt: Attempt,
        /// With what result.
        outcome: Outcome,
    },
    /// What a turn asks for is settled without anybody working on it.
    Settle {
        /// The turn, which nobody has begun.
        turn: Number,
        /// With what result.
        outcome: Outcome,
    },
    /// An attempt ended without an outcome.
    Break {
        /// The turn.
        turn: Number,
        /// The lease.
        attempt: Attempt,
        /// Why.
        reason: Broken,
        /// Whether and when to try again.
        retry: Option<RetryRule>,
        /// What the client reads if this was the last try.
        failure: Message,
    },
    /// The client asks to cancel.
    Cancel {
        /// The cancel request's metadata.
        metadata: Option<Metadata>,
    },
    /// Nobody answered for too long.
    Expire {
        /// What the client reads.
        message: Message,
    },
}

/// When a broken attempt is followed by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryRule {
    /// How many tries the turn has in all.
    pub tries_max: u32,
    /// Not before this time.
    pub due: Timestamp,
}

/// What an agent can say during a turn.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Progress: the task stays WORKING.
    Status {
        /// For the client to read.
        message: Option<Message>,
        /// For the client's programs.
        metadata: Option<Metadata>,
    },
    /// A piece of an artifact.
    Artifact {
        /// The artifact, or the part of it that is new.
        artifact: Artifact,
        /// Adds to what is there; otherwise it replaces.
        append: bool,
        /// Nothing more will be added.
        last_chunk: bool,
    },
}

/// How a turn can end.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The work is done.
    Completed(Option<Message>),
    /// The work is done, and this message is all there is to it.
    Replied(Message),
    /// The agent asks the client something.
    InputRequired(Option<Message>),
    /// The agent needs an authorisation.
    AuthRequired(Option<Message>),
    /// The agent does not take this on.
    Rejected(Option<Message>),
    /// The agent could not do it, and trying again would not help.
    Failed(Option<Message>),
    /// The agent stopped because it was asked to.
    Canceled(Option<Message>),
}

impl Outcome {
    fn into_status(self) -> (TaskState, Option<Message>) {
        match self {
            Self::Completed(said) => (TaskState::Completed, said),
            Self::Replied(said) => (TaskState::Completed, Some(said)),
            Self::InputRequired(said) => (TaskState::InputRequired, said),
            Self::AuthRequired(said) => (TaskState::AuthRequired, said),
            Self::Rejected(said) => (TaskState::Rejected, said),
            Self::Failed(said) => (TaskState::Failed, said),
            Self::Canceled(said) => (TaskState::Canceled, said),
        }
    }
}

/// What happens to a turn. Each names the attempt it was decided on, which the store compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnChange {
    /// A message is there to be worked on.
    Open {
        /// The entry that holds it.
        number: Number,
    },
    /// The turn is to be leased again.
    Requeue {
        /// Which turn.
        number: Number,
        /// The lease that ended.
        attempt: Attempt,
        /// Not before this time.
        due: Timestamp,
        /// The lease was handed back and does not count as a try.
        returned: bool,
    },
    /// The turn is done.
    End {
        /// Which turn.
        number: Number,
        /// The lease it ended under; [`Attempt::NONE`] if nobody began.
        attempt: Attempt,
    },
    /// The turn has no tries left; it is kept for whoever wants to replay it.
    Dead {
        /// Which turn.
        number: Number,
        /// The lease it died under.
        attempt: Attempt,
    },
}

/// What a command comes to: records for the journal and changes to turns, to be committed together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// In order; numbered from the head's version on.
    pub records: Vec<Record>,
    /// What happens to turns.
    pub turns: Vec<TurnChange>,
    /// The lease that speaks, if the command came from one.
    pub by: Option<(Number, Attempt)>,
}

/// Why a command is not carried out. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The task has ended; ended tasks never move.
    #[error("the task has ended as {}", .0.as_str())]
    Ended(TaskState),
    /// The speaker does not hold the turn, or no longer.
    #[error("the turn is not held under this attempt")]
    Fenced,
    /// There is nothing to expire.
    #[error("the command does not fit the task's state")]
    NotNow,
    /// The task exists already.
    #[error("the task exists")]
    Exists,
    /// The agent adds to an artifact that it never began (ART-03).
    #[error("artifact {0:?} was added to before it was begun")]
    NoSuchArtifact(String),
    /// A limit per task is reached.
    #[error("the task is full: {0}")]
    Full(&'static str),
}

/// Says what `command` means for the task with this `head`. Changes nothing, reads no clock.
pub fn decide(head: &Head, command: Command, now: Timestamp) -> Result<Decision, Refusal> {
    // Time never goes backwards within a task, whatever the clocks say.
    let now = now.max(head.status_at);
    match command {
        Command::Submit { .. } if head.version != Number::ZERO => Err(Refusal::Exists),
        Command::Submit {
            message,
            metadata,
            accepted_output_modes,
        } => Ok(submit(head, message, metadata, accepted_output_modes, now)),
        _ if head.state.is_terminal() => Err(Refusal::Ended(head.state)),
        Command::Continue {
            message,
            metadata,
            accepted_output_modes,
        } => {
            has_room(head)?;
            Ok(follow_up(head, message, metadata, accepted_output_modes))
        }
        Command::Start { turn, attempt } => {
            leased(head, turn, attempt)?;
            let mut decision = Decision::by(turn, attempt);
            decision.hide(Hidden::Attempt { turn, attempt });
            if head.state != TaskState::Working {
                decision.status(head, TaskState::Working, None, None, now);
            }
            Ok(decision)
        }
        Command::Emit {
            turn,
            attempt,
            output,
        } => {
            leased(head, turn, attempt)?;
            has_room(head)?;
            emit(head, turn, attempt, output, now)
        }
        Command::Finish {
            turn,
            attempt,
            outcome,
        } => {
            leased(head, turn, attempt)?;
            Ok(finish(head, turn, attempt, outcome, now))
        }
        Command::Settle { turn, outcome } => settle(head, turn, outcome, now),
        Command::Break {
            turn,
            attempt,
            reason,
            retry,
            failure,
        } => {
            let held = leased(head, turn, attempt)?;
            Ok(break_off(head, held, reason, retry, failure, now))
        }
        Command::Cancel { metadata } => Ok(cancel(head, metadata, now)),
        Command::Expire { .. } if !head.state.is_interrupted() || !head.turns.is_empty() => {
            Err(Refusal::NotNow)
        }
        Command::Expire { message } => {
            let mut decision = Decision::default();
            decision.end(head, TaskState::Canceled, Some(message), now);
            Ok(decision)
        }
    }
}

fn submit(
    head: &Head,
    message: Message,
    metadata: Option<Metadata>,
    accepted_output_modes: Vec<String>,
    now: Timestamp,
) -> Decision {
    let mut decision = Decision::default();
    decision.records.push(Record::Submitted(Task {
        id: head.identity.id.as_str().to_owned(),
        context_id: head.identity.context_id.as_str().to_owned(),
        status: TaskStatus {
            state: TaskState::Submitted,
            message: None,
            timestamp: Some(now),
        },
        artifacts: Vec::new(),
        history: vec![message],
        metadata: None,
    }));
    let number = head.version.next();
    decision.open(number, metadata, accepted_output_modes);
    decision
}

fn follow_up(
    head: &Head,
    message: Message,
    metadata: Option<Metadata>,
    accepted_output_modes: Vec<String>,
) -> Decision {
    let mut decision = Decision::default();
    decision.hide(Hidden::Message(message));
    let number = head.version.next();
    decision.open(number, metadata, accepted_output_modes);
    decision
}

fn emit(
    head: &Head,
    turn: Number,
    attempt: Attempt,
    output: Output,
    now: Timestamp,
) -> Result<Decision, Refusal> {
    let mut decision = Decision::by(turn, attempt);
    match output {
        Output::Status { message, metadata } => {
            decision.status(head, TaskState::Working, message, metadata, now);
        }
        Output::Artifact {
            artifact,
            append,
            last_chunk,
        } => {
            let known = head
                .artifacts
                .iter()
                .find(|known| *known.id == *artifact.artifact_id);
            let append = match known {
                None if append => return Err(Refusal::NoSuchArtifact(artifact.artifact_id)),
                None if head.artifacts.len() >= ARTIFACTS_MAX => {
                    return Err(Refusal::Full("too many artifacts"));
                }
                // What an earlier attempt of this turn wrote is written anew, not added to.
                Some(known) if known.turn == turn && known.attempt != attempt => false,
                None | Some(_) => append,
            };
            decision
                .records
                .push(Record::Artifact(TaskArtifactUpdateEvent {
                    task_id: head.identity.id.as_str().to_owned(),
                    context_id: head.identity.context_id.as_str().to_owned(),
                    artifact,
                    append,
                    last_chunk,
                    metadata: None,
                }));
        }
    }
    Ok(decision)
}

fn finish(
    head: &Head,
    turn: Number,
    attempt: Attempt,
    outcome: Outcome,
    now: Timestamp,
) -> Decision {
    let mut decision = Decision::by(turn, attempt);
    let replies = matches!(outcome, Outcome::Replied(_));
    let (state, said) = outcome.into_status();
    let more_to_do = head.turns.len() > 1;
    let goes_on = state == TaskState::Completed || state.is_interrupted();
    let state = if head.cancel_requested {
        // Once cancel was asked for, a task can only end CANCELED.
        TaskState::Canceled
    } else if goes_on && more_to_do {
        // Messages in line are worked on before the task may end; a question of the agent counts
        // as answered by the next of them.
        TaskState::Working
    } else {
        state
    };
    if state.is_terminal() {
        // A client that has written to the task, or seen output of it, is answered with the task
        // (SEND-15).
        let bare = turn == Number::FIRST && head.artifacts.is_empty();
        if replies && state == TaskState::Completed && bare {
            decision.hide(Hidden::Replied { turn });
        }
        decision.end(head, state, said, now);
    } else {
        decision.status(head, state, said, None, now);
        decision.turns.push(TurnChange::End {
            number: turn,
            attempt,
        });
    }
    decision
}

fn settle(
    head: &Head,
    turn: Number,
    outcome: Outcome,
    now: Timestamp,
) -> Result<Decision, Refusal> {
    let unbegun = head
        .turn(turn)
        .is_some_and(|it| it.attempt == Attempt::NONE);
    if !unbegun {
        return Err(Refusal::Fenced);
    }
    let mut decision = Decision::default();
    let (state, said) = outcome.into_status();
    let others = head.turns.len() > 1;
    if state.is_terminal() && !others {
        decision.end(head, state, said, now);
        return Ok(decision);
    }
    decision.hide(Hidden::TurnDropped { turn });
    decision.turns.push(TurnChange::End {
        number: turn,
        attempt: Attempt::NONE,
    });
    // Those who are at work on the task have the last word on it, and what it waits for it still
    // waits for.
    if !others {
        let waits = head.state.is_interrupted();
        let state = if waits { head.state } else { state };
        decision.status(head, state, said, None, now);
    }
    Ok(decision)
}

fn break_off(
    head: &Head,
    held: &TurnHead,
    reason: Broken,
    retry: Option<RetryRule>,
    failure: Message,
    now: Timestamp,
) -> Decision {
    let mut decision = Decision::by(held.number, held.attempt);
    decision.hide(Hidden::AttemptEnded {
        turn: held.number,
        attempt: held.attempt,
        reason,
    });
    if head.cancel_requested {
        decision.end(head, TaskState::Canceled, None, now);
        return decision;
    }
    let returned = reason == Broken::Released;
    match retry {
        Some(rule) if returned || held.tries() < rule.tries_max => {
            decision.turns.push(TurnChange::Requeue {
                number: held.number,
                attempt: held.attempt,
                due: rule.due,
                returned,
            });
        }
        Some(_) => {
            decision.end(head, TaskState::Failed, Some(failure), now);
            // Not merely ended: it ran out of tries and is kept as a dead letter.
            for change in &mut decision.turns {
                if let TurnChange::End { number, attempt } = *change
                    && number == held.number
                {
                    *change = TurnChange::Dead { number, attempt };
                }
            }
        }
        None => decision.end(head, TaskState::Failed, Some(failure), now),
    }
    decision
}

fn cancel(head: &Head, metadata: Option<Metadata>, now: Timestamp) -> Decision {
    let mut decision = Decision::default();
    if !head.cancel_requested {
        decision.hide(Hidden::CancelRequested { metadata });
    }
    let running = head
        .turns
        .iter()
        .any(|turn| turn.state == TurnState::Leased);
    if !running {
        decision.end(head, TaskState::Canceled, None, now);
    }
    decision
}

fn leased(head: &Head, turn: Number, attempt: Attempt) -> Result<&TurnHead, Refusal> {
    head.turn(turn)
        .filter(|held| held.state == TurnState::Leased && held.attempt == attempt)
        .ok_or(Refusal::Fenced)
}

fn has_room(head: &Head) -> Result<(), Refusal> {
    if head.version.0 >= ENTRIES_MAX {
        return Err(Refusal::Full("too many entries"));
    }
    if head.bytes >= BYTES_MAX {
        return Err(Refusal::Full("too many bytes"));
    }
    Ok(())
}

impl Decision {
    fn by(turn: Number, attempt: Attempt) -> Self {
        Self {
            by: Some((turn, attempt)),
            ..Self::default()
        }
    }

    fn hide(&mut self, hidden: Hidden) {
        self.records.push(Record::Hidden(hidden));
    }

    fn open(
        &mut self,
        number: Number,
        metadata: Option<Metadata>,
        accepted_output_modes: Vec<String>,
    ) {
        if metadata.is_some() || !accepted_output_modes.is_empty() {
            self.hide(Hidden::Request {
                turn: number,
                metadata,
                accepted_output_modes,
            });
        }
        self.turns.push(TurnChange::Open { number });
    }

    fn status(
        &mut self,
        head: &Head,
        state: TaskState,
        message: Option<Message>,
        metadata: Option<Metadata>,
        now: Timestamp,
    ) {
        self.records.push(Record::Status(TaskStatusUpdateEvent {
            task_id: head.identity.id.as_str().to_owned(),
            context_id: head.identity.context_id.as_str().to_owned(),
            status: TaskStatus {
                state,
                message,
                timestamp: Some(now),
            },
            metadata,
        }));
    }

    /// Ends the task, and with it every turn that is still open.
    fn end(&mut self, head: &Head, state: TaskState, message: Option<Message>, now: Timestamp) {
        for turn in &head.turns {
            let speaker = self.by.is_some_and(|(number, _)| number == turn.number);
            if !speaker {
                self.hide(Hidden::TurnDropped { turn: turn.number });
            }
            self.turns.push(TurnChange::End {
                number: turn.number,
                attempt: turn.attempt,
            });
        }
        self.status(head, state, message, None, now);
    }
}
