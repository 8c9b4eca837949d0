//! The head of a task: all that decisions need, and nothing that grows with its messages.

use std::sync::Arc;

use a2ad_proto::{ContextId, TaskId, TaskState, Timestamp};

use super::decide::{Decision, TurnChange};
use super::entry::{Hidden, Record};
use crate::keys::{Attempt, ContextKey, Number, Scope, TaskKey};

/// What never changes about a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its key in the store.
    pub key: TaskKey,
    /// Its public id.
    pub id: TaskId,
    /// The key of the conversation it belongs to.
    pub context: ContextKey,
    /// The public id of that conversation.
    pub context_id: ContextId,
    /// Whose it is, and with which agent.
    pub scope: Scope,
}

/// Where a turn stands. Done turns are not kept; dead ones are kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnState {
    /// Something unfinished precedes it in its context.
    Waiting,
    /// May be leased, once it is due.
    Ready,
    /// Somebody works on it.
    Leased,
}

/// An open turn of the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnHead {
    /// The entry that holds its message.
    pub number: Number,
    /// Where it stands.
    pub state: TurnState,
    /// Its newest lease.
    pub attempt: Attempt,
    /// How many leases were handed back in good order and so do not count as tries.
    pub returned: u32,
}

impl TurnHead {
    /// How often the turn was tried.
    #[must_use]
    pub const fn tries(&self) -> u32 {
        self.attempt.0.saturating_sub(self.returned)
    }
}

/// An artifact that exists, and who wrote to it last: the first chunk of a new attempt replaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactHead {
    /// The artifact's id.
    pub id: Arc<str>,
    /// The turn that wrote to it last.
    pub turn: Number,
    /// That turn's attempt.
    pub attempt: Attempt,
}

/// The narrow row that every decision about a task starts from.
#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    /// What never changes.
    pub identity: Arc<Identity>,
    /// The number of the newest entry.
    pub version: Number,
    /// The current state; `Unspecified` before the first entry.
    pub state: TaskState,
    /// When the status last changed.
    pub status_at: Timestamp,
    /// The client asked to cancel; the task can only end CANCELED.
    pub cancel_requested: bool,
    /// The open turns, in order.
    pub turns: Vec<TurnHead>,
    /// The artifacts written so far. Shared, since most decisions leave them alone.
    pub artifacts: Arc<Vec<ArtifactHead>>,
    /// Bytes in the journal.
    pub bytes: u64,
}

impl Head {
    /// The head of a task that is about to begin.
    #[must_use]
    pub fn unborn(identity: Identity) -> Self {
        Self {
            identity: Arc::new(identity),
            version: Number::ZERO,
            state: TaskState::Unspecified,
            status_at: Timestamp::from_millis(0),
            cancel_requested: false,
            turns: Vec::new(),
            artifacts: Arc::new(Vec::new()),
            bytes: 0,
        }
    }

    /// Nothing more happens unless the client acts: the task has ended, or it waits for the client
    /// and no message of the client is still in line.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.state.is_terminal() || (self.state.is_interrupted() && self.turns.is_empty())
    }

    /// The open turn with this number.
    #[must_use]
    pub fn turn(&self, number: Number) -> Option<&TurnHead> {
        self.turns.iter().find(|turn| turn.number == number)
    }

    /// Moves the head past `decision`. A turn that it opens counts as waiting until the store has
    /// said what it became.
    pub fn advance(&mut self, decision: &Decision) {
        for record in &decision.records {
            self.version = self.version.next();
            self.advance_record(record, decision.by);
        }
        for change in &decision.turns {
            self.advance_turn(change);
        }
    }

    fn advance_record(&mut self, record: &Record, by: Option<(Number, Attempt)>) {
        match record {
            Record::Submitted(task) => self.set_status(&task.status),
            Record::Status(update) => self.set_status(&update.status),
            Record::Artifact(update) => {
                let Some((turn, attempt)) = by else { return };
                let id = update.artifact.artifact_id.as_str();
                match self.artifacts.iter().position(|known| &*known.id == id) {
                    Some(at)
                        if self.artifacts[at].turn == turn
                            && self.artifacts[at].attempt == attempt => {}
                    Some(at) => {
                        let known = &mut Arc::make_mut(&mut self.artifacts)[at];
                        known.turn = turn;
                        known.attempt = attempt;
                    }
                    None => Arc::make_mut(&mut self.artifacts).push(ArtifactHead {
                        id: Arc::from(id),
                        turn,
                        attempt,
                    }),
                }
            }
            Record::Hidden(Hidden::CancelRequested { .. }) => self.cancel_requested = true,
            Record::Hidden(
                Hidden::Message(_)
                | Hidden::Request { .. }
                | Hidden::Attempt { .. }
                | Hidden::AttemptEnded { .. }
                | Hidden::Replied { .. }
                | Hidden::TurnDropped { .. },
            ) => {}
        }
    }

    fn set_status(&mut self, status: &a2ad_proto::TaskStatus) {
        self.state = status.state;
        if let Some(at) = status.timestamp {
            self.status_at = at;
        }
    }

    fn advance_turn(&mut self, change: &TurnChange) {
        match change {
            TurnChange::Open { number } => self.turns.push(TurnHead {
                number: *number,
                state: TurnState::Waiting,
                attempt: Attempt::NONE,
                returned: 0,
            }),
            TurnChange::Requeue {
                number, returned, ..
            } => {
                for turn in self.turns.iter_mut().filter(|turn| turn.number == *number) {
                    turn.state = TurnState::Ready;
                    turn.returned += u32::from(*returned);
                }
            }
            TurnChange::End { number, .. } | TurnChange::Dead { number, .. } => {
                self.turns.retain(|turn| turn.number != *number);
            }
        }
    }
}
