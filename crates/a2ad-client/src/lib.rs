//! Whom we call: the guarded dialer, and the A2A client on top of it.
//!
//! A [`dial::Dialer`] is the one way out to the network for the whole product: no other crate of ours builds an HTTP
//! client (`cargo xtask layers` checks it). One made by [`dial::Dialer::guarded`] judges every URL and every address
//! behind it, and is meant for URLs that come from others: webhooks, cards, files, keys. One made by
//! [`dial::Dialer::unguarded`] is for what the user typed.
//!
//! This crate knows the protocol and HTTP; it knows no engine, no storage and no configuration, and it prints nothing.
#![deny(missing_docs)]

pub mod assemble;
pub mod dial;
mod error;
mod refusal;
pub mod sse;

pub use error::{Error, Refusal};
