//! The real binary, in a folder of its own, on a port of its own.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on should panic"
)]

mod context;
mod daemon;
mod database;
mod documents;
mod failing;
mod identity;
mod kill;
mod proxied;
mod serving;
mod stopping;
mod verifying;
