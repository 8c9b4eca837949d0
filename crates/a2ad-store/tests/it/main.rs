//! The store contract over SQLite and PostgreSQL, and what only a file or a server can do wrong.
#![expect(
    clippy::unwrap_used,
    reason = "these are tests throughout, not only in #[test] functions"
)]

#[cfg(feature = "sqlite")]
mod contract;
#[cfg(feature = "sqlite")]
mod files;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod threads;
