//! How snapshots are laid out. A damaged one counts as none: the journal tells the same story, so
//! whoever asked folds that instead of failing. `verify` still reports the damage.
//!
//! A short journal has none: it is read and folded in about the time that its snapshot would take,
//! and most tasks are never read again.

use a2ad_core::keys::TaskKey;
use a2ad_core::task::Snapshot;
use bytes::Bytes;

use crate::hash::{Hash, hash_bytes, hash_parts};

/// What stands in for artifacts that were not asked for.
pub(crate) const NO_ARTIFACTS: Bytes = Bytes::from_static(b"[]");

/// Covers the artifacts by their hash, so that a list can check what it read without them.
pub(crate) fn hash_body(task: TaskKey, snapshot: &Snapshot, artifacts_hash: Hash) -> Hash {
    hash_parts(&[
        &artifacts_hash,
        &task.0.to_le_bytes(),
        &snapshot.version.0.to_le_bytes(),
        &hash_bytes(&snapshot.marks),
        &hash_bytes(&snapshot.body),
    ])
}
