//! A change in the making: commands decided one after the other, to be committed in one go.

use std::sync::Arc;

use a2ad_proto::Timestamp;
use bytes::Bytes;

use crate::keys::{Attempt, HolderId, Number};
use crate::store::{Change, ContextChoice, Once};
use crate::task::{
    Command, Entry, Fold, Head, Refusal, Shape, TurnChange, TurnState, apply, decide,
};

/// Commands that have been decided on top of a head but not committed.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    head: Head,
    expected: Number,
    /// The new entries in order, numbered from `expected` on: shape, and where it ends in `bytes`.
    entries: Vec<(Shape, usize)>,
    /// Their bytes, one after the other, so that all of them share one allocation.
    bytes: Vec<u8>,
    turns: Vec<TurnChange>,
    fence: Option<(Number, Attempt)>,
    fold: Option<Fold>,
}

/// What else a change needs to be committed.
#[derive(Debug)]
pub(super) struct Terms {
    pub(super) context: ContextChoice,
    pub(super) lease_to: Option<HolderId>,
    pub(super) once: Option<Once>,
    pub(super) context_turns_max: u32,
    pub(super) agent_turns_max: u32,
    pub(super) context_tasks_max: Option<u32>,
    /// Freeze the fold into the change.
    pub(super) snapshot: bool,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            context: ContextChoice::Minted,
            lease_to: None,
            once: None,
            context_turns_max: u32::MAX,
            agent_turns_max: u32::MAX,
            context_tasks_max: None,
            snapshot: false,
        }
    }
}

impl Draft {
    /// Nothing decided yet. With a `fold` of the task up to `head`, the draft can be frozen.
    pub(super) fn new(head: Head, fold: Option<Fold>) -> Self {
        Self {
            expected: head.version,
            head,
            entries: Vec::new(),
            bytes: Vec::new(),
            turns: Vec::new(),
            fence: None,
            fold,
        }
    }

    /// Makes room for `count` more entries of an ordinary size, one of which may be the task.
    pub(super) fn reserve(&mut self, count: usize) {
        self.entries.reserve(count);
        self.bytes.reserve(count.saturating_mul(384) + 512);
    }

    /// Decides one more command. A refused one leaves the draft as it was.
    pub(super) fn command(&mut self, command: Command, now: Timestamp) -> Result<(), Refusal> {
        let decision = decide(&self.head, command, now)?;
        self.head.advance(&decision);
        for record in decision.records {
            let from = self.bytes.len();
            let shape = record.write(&mut self.bytes);
            self.head.bytes += (self.bytes.len() - from) as u64;
            self.entries.push((shape, self.bytes.len()));
            if let Some(fold) = &mut self.fold {
                apply(fold, record);
            }
        }
        self.turns.extend(&decision.turns);
        self.fence = self.fence.or(decision.by);
        Ok(())
    }

    /// Treats the turn that this draft opened as leased for the first time, so that it can be
    /// worked on before anybody else could see it.
    pub(super) fn lease_newborn(&mut self, number: Number) {
        for turn in &mut self.head.turns {
            if turn.number == number {
                turn.state = TurnState::Leased;
                turn.attempt = Attempt::FIRST;
            }
        }
    }

    /// Leaves out a turn that began and ended within this draft: the store need not hear of it.
    pub(super) fn forget_turn(&mut self, forgotten: Number) {
        self.turns.retain(|change| match change {
            TurnChange::Open { number }
            | TurnChange::Requeue { number, .. }
            | TurnChange::End { number, .. }
            | TurnChange::Dead { number, .. } => *number != forgotten,
        });
        self.fence = None;
    }

    pub(super) fn head(&self) -> &Head {
        &self.head
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.turns.is_empty()
    }

    /// The change to commit, and the fold as it will be.
    pub(super) fn into_change(mut self, terms: Terms) -> (Change, Option<Fold>) {
        let snapshot = if terms.snapshot {
            self.fold.as_mut().map(Fold::snapshot)
        } else {
            None
        };
        let change = Change {
            head: self.head,
            expected: self.expected,
            context: terms.context,
            entries: numbered(self.expected, &self.entries, self.bytes.into()),
            turns: self.turns,
            lease_to: terms.lease_to,
            fence: self.fence,
            once: terms.once,
            snapshot,
            context_turns_max: terms.context_turns_max,
            agent_turns_max: terms.agent_turns_max,
            context_tasks_max: terms.context_tasks_max,
        };
        (change, self.fold)
    }
}

/// Entries after `last`, each with its share of `bytes`.
fn numbered(last: Number, entries: &[(Shape, usize)], bytes: Bytes) -> Vec<Entry> {
    let mut number = last;
    let mut from = 0;
    let cut = entries.iter().map(|&(shape, to)| {
        number = number.next();
        let bytes = bytes.slice(from..to);
        from = to;
        Entry {
            number,
            shape,
            bytes,
        }
    });
    cut.collect()
}

/// No wait is longer than a week, whatever is configured.
const WAIT_MAX: std::time::Duration = std::time::Duration::from_secs(7 * 24 * 3600);

/// Waits after a failed try: doubling, capped, spread by a fifth either way.
pub(super) fn backoff_millis(
    tries: u32,
    first: std::time::Duration,
    longest: std::time::Duration,
    random: &Arc<dyn crate::clock::Random>,
) -> i64 {
    let doublings = tries.saturating_sub(1).min(20);
    let wait = first
        .saturating_mul(1 << doublings)
        .min(longest)
        .min(WAIT_MAX);
    let wait = i64::try_from(wait.as_millis()).unwrap_or(0);
    let spread = wait / 5;
    let roll = i64::try_from(random.bits() % 1_000_001).unwrap_or(0);
    wait - spread + spread * 2 * roll / 1_000_000
}
