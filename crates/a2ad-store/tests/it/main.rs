//! The store contract over SQLite, and what only a file can do wrong.
#![expect(
    clippy::unwrap_used,
    reason = "these are tests throughout, not only in #[test] functions"
)]

mod contract;
mod files;
mod threads;
