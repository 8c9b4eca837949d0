//! Reading a conversation out of a database that somebody else may be serving from.

use a2ad_core::keys::{Owner, TaskKey};
use a2ad_core::task::Entry;

/// A conversation that was asked for.
#[derive(Clone, Debug)]
pub enum Archived {
    /// Nobody has one of this name with this agent.
    Nobodys,
    /// These have, and it was not said whose is meant.
    Several(Vec<Owner>),
    /// This one: the journals of its tasks, in no particular order.
    Found {
        /// Whose it is.
        owner: Owner,
        /// One journal per task.
        journals: Vec<(TaskKey, Vec<Entry>)>,
    },
}
