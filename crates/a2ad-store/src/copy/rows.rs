//! What is carried over, as both databases have it.

use bytes::Bytes;

use crate::hash::Hash;
use crate::sqlite::runs::Raw;

/// The state of a turn that somebody works on.
pub(crate) const LEASED: i16 = 2;

/// The numbers of a scope and of its agent in the new database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) scope: i64,
    pub(crate) agent: i64,
}

/// The head of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TaskRow {
    pub(crate) key: i64,
    pub(crate) scope: i64,
    pub(crate) context: i64,
    pub(crate) version: i64,
    pub(crate) status_at: i64,
    pub(crate) bytes: i64,
    pub(crate) state: i16,
    pub(crate) cancel: bool,
    pub(crate) id: [u8; 16],
    pub(crate) chain: Hash,
    pub(crate) artifacts: Vec<u8>,
}

/// A conversation: with an id that we minted, or a name that a client chose.
#[derive(Clone, Debug)]
pub(crate) struct ContextRow {
    pub(crate) key: i64,
    pub(crate) scope: i64,
    pub(crate) minted: Option<[u8; 16]>,
    pub(crate) name: Option<String>,
}

/// A snapshot that matches its hash.
#[derive(Clone, Debug)]
pub(crate) struct SnapshotRow {
    pub(crate) task: i64,
    pub(crate) version: i64,
    pub(crate) hash: Hash,
    pub(crate) artifacts_hash: Hash,
    pub(crate) marks: Bytes,
    pub(crate) body: Bytes,
    pub(crate) artifacts: Bytes,
}

/// By what a repeated request is recognised.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestRow {
    pub(crate) scope: i64,
    pub(crate) task: i64,
    pub(crate) number: i64,
    pub(crate) key: [u8; 16],
    pub(crate) body: [u8; 16],
}

/// An open turn.
#[derive(Clone, Debug)]
pub(crate) struct TurnRow {
    pub(crate) seq: i64,
    pub(crate) task: i64,
    pub(crate) number: i64,
    pub(crate) context: i64,
    pub(crate) agent: i64,
    /// By the clock of this machine.
    pub(crate) due: i64,
    pub(crate) created_at: i64,
    pub(crate) attempt: i32,
    pub(crate) returned: i32,
    pub(crate) state: i16,
    pub(crate) sealed: Option<Vec<u8>>,
}

/// A turn that ran out of tries.
#[derive(Clone, Debug)]
pub(crate) struct DeadRow {
    pub(crate) task: i64,
    pub(crate) number: i64,
    pub(crate) context: i64,
    pub(crate) agent: i64,
    pub(crate) created_at: i64,
    pub(crate) died_at: i64,
    pub(crate) attempt: i32,
    pub(crate) returned: i32,
    pub(crate) reason: Option<String>,
}

/// A webhook.
#[derive(Clone, Debug)]
pub(crate) struct PushRow {
    pub(crate) task: i64,
    pub(crate) cursor: i64,
    pub(crate) due: i64,
    pub(crate) events: i64,
    pub(crate) attempt: i32,
    pub(crate) state: i16,
    pub(crate) id: String,
    pub(crate) url: String,
    pub(crate) sealed: Option<Vec<u8>>,
}

/// What goes into one transaction.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) contexts: Vec<ContextRow>,
    pub(crate) tasks: Vec<TaskRow>,
    pub(crate) runs: Vec<Raw>,
    pub(crate) requests: Vec<RequestRow>,
    pub(crate) snapshots: Vec<SnapshotRow>,
    pub(crate) snapshots_left_out: u64,
    /// All tasks up to this key are complete with this batch. The runs of the next one may be in it already.
    pub(crate) through: i64,
    /// How many bytes are in it.
    pub(crate) size: usize,
}

/// What is not a part of any task's story.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    pub(crate) turns: Vec<TurnRow>,
    pub(crate) dead: Vec<DeadRow>,
    pub(crate) push: Vec<PushRow>,
    /// This machine's time when it was read.
    pub(crate) now: i64,
}
