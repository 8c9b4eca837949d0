//! What a change means for the turns of its task, whatever database they are in: found possible or
//! refused before anything is written.

use std::sync::Arc;

use a2ad_core::keys::{Attempt, ContextKey, HolderId, Number, TaskKey};
use a2ad_core::store::{Change, ChangeError, ContextChoice, birth};
use a2ad_core::task::{Entry, Hidden, Identity, Record, TurnChange, TurnHead, TurnState};

use crate::run::NUMBER_MAX;

/// An open turn of the task that a change is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenTurn {
    pub(crate) seq: i64,
    pub(crate) head: TurnHead,
    pub(crate) created_at: i64,
}

/// Whether this lease of this turn is held.
pub(crate) fn is_held(open: &[OpenTurn], number: Number, attempt: Attempt) -> bool {
    open.iter().any(|turn| {
        turn.head.number == number
            && turn.head.state == TurnState::Leased
            && turn.head.attempt == attempt
    })
}

/// Whether the changes open the turn themselves, as when accept and finish are one change.
pub(crate) fn opens(changes: &[TurnChange], number: Number) -> bool {
    changes
        .iter()
        .any(|change| matches!(change, TurnChange::Open { number: opened } if *opened == number))
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// As it is in the table.
    Keep,
    /// Not in the table yet; due at once unless its first lease has already broken.
    Insert { due: Option<i64> },
    /// Back in line.
    Requeue { due: i64 },
    /// Done, or gone in the change that opened it.
    End,
    /// Out of tries.
    Die,
}

/// What a change does to turns, found possible.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) steps: Vec<(OpenTurn, Step)>,
}

impl Plan {
    /// Follows the turn changes in their order; `in_context` turns are open in the context, those
    /// of the task included, and `of_agent` in all contexts. A turn that
    /// it opens is leased to `lease_to` at once, if it is ready.
    pub(crate) fn make(
        change: &Change,
        lease_to: Option<HolderId>,
        open: Vec<OpenTurn>,
        mut in_context: u32,
        of_agent: u32,
    ) -> Result<Self, ChangeError> {
        let mut steps: Vec<(OpenTurn, Step)> =
            open.into_iter().map(|turn| (turn, Step::Keep)).collect();
        for turn_change in &change.turns {
            match *turn_change {
                TurnChange::Open { number } => {
                    if in_context >= change.context_turns_max {
                        return Err(ChangeError::ContextFull);
                    }
                    if of_agent >= change.agent_turns_max {
                        return Err(ChangeError::AgentFull);
                    }
                    if find(&mut steps, number).is_some() {
                        return Err(ChangeError::Conflict);
                    }
                    let newborn = newborn(number, birth(in_context > 0, lease_to));
                    in_context += 1;
                    steps.push((newborn, Step::Insert { due: None }));
                    if let Some((fenced, attempt)) = change.fence
                        && fenced == number
                        && !is_held(&[newborn], number, attempt)
                    {
                        return Err(ChangeError::Fenced);
                    }
                }
                TurnChange::Requeue {
                    number,
                    attempt,
                    due,
                    returned,
                } => {
                    let (turn, step) = matching(&mut steps, number, attempt)?;
                    if turn.head.state != TurnState::Leased {
                        return Err(ChangeError::Conflict);
                    }
                    turn.head.state = TurnState::Ready;
                    turn.head.returned += u32::from(returned);
                    let due = due.as_millis_ceil();
                    *step = match step {
                        Step::Insert { .. } => Step::Insert { due: Some(due) },
                        Step::Keep | Step::Requeue { .. } | Step::End | Step::Die => {
                            Step::Requeue { due }
                        }
                    };
                }
                TurnChange::End { number, attempt } | TurnChange::Dead { number, attempt } => {
                    let dies = matches!(turn_change, TurnChange::Dead { .. });
                    let (_, step) = matching(&mut steps, number, attempt)?;
                    *step = if dies { Step::Die } else { Step::End };
                    in_context = in_context.saturating_sub(1);
                }
            }
        }
        Ok(Self { steps })
    }
}

/// Stands for the place of a turn that has no row yet.
pub(crate) const NOT_STORED: i64 = 0;

fn newborn(number: Number, state: TurnState) -> OpenTurn {
    OpenTurn {
        seq: NOT_STORED,
        head: TurnHead {
            number,
            state,
            attempt: match state {
                TurnState::Leased => Attempt::FIRST,
                TurnState::Waiting | TurnState::Ready => Attempt::NONE,
            },
            returned: 0,
        },
        created_at: 0,
    }
}

fn find(steps: &mut [(OpenTurn, Step)], number: Number) -> Option<&mut (OpenTurn, Step)> {
    steps
        .iter_mut()
        .find(|(turn, _)| turn.head.number == number)
}

/// The open turn with this number, if its newest lease is still the one that was decided on.
fn matching(
    steps: &mut [(OpenTurn, Step)],
    number: Number,
    attempt: Attempt,
) -> Result<(&mut OpenTurn, &mut Step), ChangeError> {
    match find(steps, number) {
        Some((turn, step))
            if turn.head.attempt == attempt && !matches!(step, Step::End | Step::Die) =>
        {
            Ok((turn, step))
        }
        Some(_) | None => Err(ChangeError::Conflict),
    }
}

/// Why the last attempt ended, as the journal of the same change tells it.
pub(crate) fn cause_of_death(entries: &[Entry], number: Number) -> Option<String> {
    entries
        .iter()
        .filter(|entry| !entry.shape.visible)
        .find_map(|entry| match entry.record() {
            Ok(Record::Hidden(Hidden::AttemptEnded { turn, reason, .. })) if turn == number => {
                Some(format!("{reason:?}").to_lowercase())
            }
            Ok(_) | Err(_) => None,
        })
}

/// The identity with the context that the task really has.
pub(crate) fn settle_identity(change: &Change, context: i64) -> Arc<Identity> {
    let identity = &change.head.identity;
    let context = ContextKey(context);
    match &change.context {
        ContextChoice::Named(id)
            if change.expected == Number::ZERO
                && (identity.context != context || identity.context_id != *id) =>
        {
            Arc::new(Identity {
                context,
                context_id: id.clone(),
                ..Identity::clone(identity)
            })
        }
        ContextChoice::Named(_) | ContextChoice::Minted => Arc::clone(identity),
    }
}

/// What the engine promises about every change; anything else would break the numbering for good.
pub(crate) fn well_formed(change: &Change) -> Result<(), &'static str> {
    let TaskKey(key) = change.head.identity.key;
    if !(0..1 << 41).contains(&key) {
        return Err("a change's task key is out of range");
    }
    let mut next = change.expected;
    for entry in &change.entries {
        next = next.next();
        if entry.number != next {
            return Err("a change's entries are not numbered from its expected version on");
        }
    }
    if change.head.version != next || next.0 > NUMBER_MAX {
        return Err("a change's version is not the number of its last entry");
    }
    if change.expected == Number::ZERO && change.entries.is_empty() {
        return Err("a new task needs an entry");
    }
    if change
        .snapshot
        .as_ref()
        .is_some_and(|fold| fold.version > next)
    {
        return Err("a change's snapshot is ahead of its entries");
    }
    Ok(())
}
