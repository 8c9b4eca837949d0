//! The tests of the client.
#![expect(
    clippy::unwrap_used,
    reason = "these are tests throughout, not only in #[test] functions"
)]

mod dial;
mod lies;
