//! What a database holds and who uses it, in numbers.

use a2ad_proto::{TaskState, Timestamp};

/// A database, seen from outside. Asking for it changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// What keeps it, with its version: `SQLite 3.50.2`, `PostgreSQL 17.2`.
    pub server: String,
    /// Its schema; 0 if there is none yet.
    pub schema: u32,
    /// The oldest code that can use it, by the schema that it knows.
    pub oldest_compatible: u32,
    /// The newest schema that this code knows.
    pub known: u32,
    /// A copy into it has begun and not come to its end.
    pub half_copied: bool,
    /// How many tasks are in which state; states without any are left out.
    pub tasks: Vec<(TaskState, u64)>,
    /// Open turns that wait, are ready, and are leased.
    pub turns: [u64; 3],
    /// Turns that ran out of tries.
    pub dead_turns: u64,
    /// How much room it takes.
    pub bytes: u64,
    /// Whether somebody serves from it.
    pub in_use: bool,
    /// The instances that share it, and those that have gone without a word; none of SQLite, which is not shared.
    pub instances: Vec<InstanceStatus>,
}

/// An instance that shares a database.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InstanceStatus {
    /// What it calls itself.
    pub name: String,
    /// Since when it is there.
    pub opened_at: Timestamp,
    /// When it was last heard of, by the database's clock.
    pub beat_at: Timestamp,
    /// How long ago that is, in milliseconds.
    pub silent_ms: i64,
    /// Whether its lease still runs.
    pub alive: bool,
}

impl Status {
    /// Whether this code can use the database, once it is migrated.
    #[must_use]
    pub const fn is_usable(&self) -> bool {
        self.oldest_compatible <= self.known && !self.half_copied
    }

    /// How many tasks there are.
    #[must_use]
    pub fn task_count(&self) -> u64 {
        self.tasks.iter().map(|(_, count)| count).sum()
    }

    /// Takes in a count of tasks in a state.
    pub(crate) fn add_tasks(&mut self, state: i64, count: i64) {
        let state = i32::try_from(state).ok().and_then(TaskState::from_number);
        if let (Some(state), true) = (state, count > 0) {
            self.tasks.push((state, count.unsigned_abs()));
        }
    }
}

/// What bringing a database to the newest schema did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Migrated {
    /// The schema before; 0 if there was none.
    pub from: u32,
    /// The schema after. It is that of a later a2ad if that one left it usable for us.
    pub to: u32,
}
