//! The names of this crate's metrics.

use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram};

/// Changes and other writes per transaction.
pub const COMMIT_BATCH_SIZE: &str = "a2ad_commit_batch_size";
/// Seconds from the start of a transaction until it was durable.
pub const COMMIT_SECONDS: &str = "a2ad_commit_seconds";
/// Seconds that one checkpoint took.
pub const CHECKPOINT_SECONDS: &str = "a2ad_checkpoint_seconds";
/// Pages in the write-ahead log after the newest commit.
pub const WAL_PAGES: &str = "a2ad_wal_pages";
/// Snapshots that were found damaged and passed over.
pub const SNAPSHOTS_DAMAGED: &str = "a2ad_snapshots_damaged_total";

/// Tells the installed recorder what each metric means.
pub fn describe() {
    describe_histogram!(
        COMMIT_BATCH_SIZE,
        Unit::Count,
        "Changes and other writes per transaction"
    );
    describe_histogram!(
        COMMIT_SECONDS,
        Unit::Seconds,
        "Time from the start of a transaction until it was durable"
    );
    describe_histogram!(
        CHECKPOINT_SECONDS,
        Unit::Seconds,
        "Time that one checkpoint took"
    );
    describe_gauge!(
        WAL_PAGES,
        Unit::Count,
        "Pages in the write-ahead log after the newest commit"
    );
    describe_counter!(
        SNAPSHOTS_DAMAGED,
        Unit::Count,
        "Snapshots found damaged and passed over"
    );
    // There from the start, so that the first one is seen as a rise.
    counter!(SNAPSHOTS_DAMAGED).increment(0);
}
