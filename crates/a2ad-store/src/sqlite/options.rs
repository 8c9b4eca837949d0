//! How a store is opened.

use std::path::PathBuf;

use a2ad_core::clock::Surroundings;

/// What an answered commit survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// A power cut: every commit is synced to the disk before it is answered.
    #[default]
    Full,
    /// A crash of the daemon, but not of the machine: commits are left to the operating system.
    Os,
}

/// How a [`SqliteStore`](crate::SqliteStore) is opened.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// The database file. It is created if it is not there; its folder must be.
    pub path: PathBuf,
    /// What an answered commit survives.
    pub durability: Durability,
    /// How many connections read beside the writer. Each is used by one thread at a time.
    pub readers: usize,
    /// Time and randomness.
    pub surroundings: Surroundings,
    /// How many writes may wait for the writer. When that many wait, further ones are refused with
    /// [`StoreError::Full`](a2ad_core::store::StoreError::Full) at once: whoever asked can be told
    /// to come back, while a longer queue would only make everybody wait longer.
    pub queue_max: usize,
    /// How many bytes of entries and snapshots may wait for the writer; full means the same.
    pub queue_bytes_max: usize,
}

impl SqliteOptions {
    /// The defaults, for the file at `path`.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            ..Self::default()
        }
    }
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            path: PathBuf::from("a2ad.db"),
            durability: Durability::Full,
            readers: 4,
            surroundings: Surroundings::default(),
            queue_max: 16_384,
            queue_bytes_max: 64 << 20,
        }
    }
}
