//! The a2ad engine.
//!
//! A task is a journal of numbered entries; work is a turn; nothing is told before it is
//! committed; a subscriber is a cursor. This crate holds the pure task machine ([`task`]), the
//! engine that runs it ([`engine`]), and the ports through which it reaches the world: [`store`],
//! [`agent`], [`clock`]. It names no HTTP, no SQL and no vendor.
#![deny(missing_docs)]
#![warn(clippy::wildcard_enum_match_arm)]

pub mod agent;
pub mod behaviour;
pub mod clock;
#[cfg(feature = "test-util")]
pub mod contract;
pub mod engine;
pub mod keys;
pub mod modes;
mod said;
pub mod store;
pub mod task;
pub mod texts;
pub mod transcript;
