//! How much may wait to be written, whatever writes it.

use std::sync::Arc;

use a2ad_core::store::{Change, StoreError};
use a2ad_core::task::Snapshot;

/// What anything that waits takes, beside what it holds.
pub(crate) const WAITING_BYTES: usize = 256;

/// What a change takes while it waits.
pub(crate) fn weight(change: &Change) -> usize {
    let entries: usize = change.entries.iter().map(|entry| entry.bytes.len()).sum();
    let snapshot = change.snapshot.as_ref().map_or(0, Snapshot::size);
    WAITING_BYTES + entries + snapshot
}

/// The most that may wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) count_max: usize,
    pub(crate) bytes_max: usize,
}

impl Bounds {
    /// Whether `more` bytes may join so many writes of so many bytes. A single write larger than the bound still gets
    /// through when nothing else waits.
    pub(crate) fn admit(&self, count: usize, bytes: usize, more: usize) -> Result<(), StoreError> {
        if count >= self.count_max || (bytes > 0 && bytes + more > self.bytes_max) {
            return Err(StoreError::Full(Arc::from("too many writes are waiting")));
        }
        Ok(())
    }
}
