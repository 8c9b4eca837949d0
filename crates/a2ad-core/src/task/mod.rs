//! The task machine: a pair of pure functions over closed enums.
//!
//! [`decide`] says what a command means for a task with a given [`Head`]; [`apply`] folds one
//! journal record into the [`Task`](a2ad_proto::Task) that clients see. Neither reads a clock,
//! rolls dice or does I/O: time and fresh ids are arguments. There are no effects to perform
//! either: starting an agent is a turn that becomes ready, a stream is somebody reading the
//! journal.

mod decide;
mod entry;
mod fold;
mod head;
mod splice;
#[cfg(test)]
mod tests;

pub use decide::{
    ARTIFACTS_MAX, BYTES_MAX, Command, Decision, ENTRIES_MAX, Outcome, Output, Refusal, RetryRule,
    TurnChange, decide,
};
pub use entry::{Broken, CorruptEntry, Entry, FORMAT, Hidden, Record, Shape};
pub use fold::{CorruptSnapshot, Fold, Snapshot, apply};
pub use head::{ArtifactHead, Head, Identity, TurnHead, TurnState};
pub use splice::splice;
