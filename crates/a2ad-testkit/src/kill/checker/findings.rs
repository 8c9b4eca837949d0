//! What must hold, and what was found not to.

use std::collections::BTreeMap;
use std::fmt;

/// How many violations of each invariant are kept; a broken build breaks everywhere.
const VIOLATIONS_KEPT: usize = 10;

/// What must hold, whatever is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Invariant {
    /// I1: an acknowledged task is there, with the told id, owner and context.
    NothingLost,
    /// I2: journal numbers are 1, 2, … n, and the head's version is n.
    NoGap,
    /// I3: exactly one terminal entry, nothing after it, and it says what clients were told.
    OneEnd,
    /// I4: one task per message.
    OneTaskPerMessage,
    /// I5: streams show the journal's visible entries, byte for byte, none missing or repeated.
    ExactStreams,
    /// I6: what was answered is what was asked, each word once.
    TextOnce,
    /// I7: in a context and in a task one turn runs at a time, in order.
    InOrder,
    /// I8: the database is sound.
    Sound,
    /// I9: no turn is left over once everything has settled.
    NothingLeftOver,
    /// I10: what a dead instance worked on goes on elsewhere in time. (How soon cut work goes on
    /// after a restart of the only instance is only reported.)
    TakenOver,
    /// I11: no answer that should not have been given: an internal error, a stall, a task that a
    /// list leaves out.
    NoSurprise,
}

impl Invariant {
    /// Its number, as in the report.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::NothingLost => "I1",
            Self::NoGap => "I2",
            Self::OneEnd => "I3",
            Self::OneTaskPerMessage => "I4",
            Self::ExactStreams => "I5",
            Self::TextOnce => "I6",
            Self::InOrder => "I7",
            Self::Sound => "I8",
            Self::NothingLeftOver => "I9",
            Self::TakenOver => "I10",
            Self::NoSurprise => "I11",
        }
    }
}

/// Something that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What was to hold.
    pub invariant: Invariant,
    /// About which task, context or message.
    pub about: String,
    /// What was found.
    pub found: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {:?}: {}: {}",
            self.invariant.code(),
            self.invariant,
            self.about,
            self.found
        )
    }
}

/// What a check came to.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The first violations of each kind.
    pub violations: Vec<Violation>,
    /// How many there are in all, by invariant.
    pub violated: BTreeMap<Invariant, u64>,
    /// Tasks looked at.
    pub tasks: u64,
    /// Journal entries looked at.
    pub entries: u64,
    /// Frames compared.
    pub frames: u64,
    /// Attempts that a kill cut off and that were taken over.
    pub recovered: u64,
    /// The most attempts that one turn took.
    pub attempts_max: u64,
}

impl Findings {
    /// How many violations there are in all.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.violated.values().sum()
    }

    /// Keeps a violation, unless it is known or there are enough of its kind.
    pub(in crate::kill) fn keep(&mut self, violation: Violation) {
        let same_kind = self
            .violations
            .iter()
            .filter(|known| known.invariant == violation.invariant);
        if same_kind.count() < VIOLATIONS_KEPT && !self.violations.contains(&violation) {
            self.violations.push(violation);
        }
    }
}
