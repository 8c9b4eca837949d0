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
mod builder;
mod calling;
mod card;
mod client;
mod credentials;
pub mod dial;
mod error;
mod interface;
mod pages;
mod refusal;
mod settings;
mod setup;
pub mod sse;
mod stream;
mod transport;

pub use a2ad_proto::REPLAY;
pub use builder::Builder;
pub use card::{Cards, FoundCard};
pub use client::{Client, text};
pub use credentials::Credentials;
pub use error::{Error, Refusal};
pub use interface::{Binding, Interface};
pub use pages::Tasks;
pub use settings::{Retries, Sizes, Timeouts};
pub use stream::{Event, EventStream};
pub use transport::{CallOptions, Frames};

/// The version of the protocol that we speak.
pub const VERSION: &str = "1.0";

/// The examples of docs/client.md, which are compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/client.md")]
struct Docs;
