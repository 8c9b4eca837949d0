//! The library from the outside.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on should panic"
)]

mod deploy;
mod documents;
mod embedding;
mod script;
