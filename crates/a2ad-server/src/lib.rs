//! The a2ad server as a library: a [`Config`] in, a running A2A server out.
//!
//! ```no_run
//! use a2ad_server::{Config, Server};
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let mut handle = Server::start(Config::default()).await?;
//! println!("{}", handle.card_url());
//! handle.stop();
//! handle.wait().await?;
//! # Ok(())
//! # }
//! ```
//!
//! An agent of your own implements [`Agent`](a2ad_core::agent::Agent) and is served with
//! [`Server::agent`]. This crate puts store, engine and transport together; it prints nothing,
//! reads no environment and never exits.
#![deny(missing_docs)]

mod announce;
mod auth;
mod card;
pub mod config;
mod database;
mod doctor;
mod error;
mod maintenance;
mod meter;
mod server;
mod tokens;
mod transcripts;

pub use a2ad_backends::{EchoAgent, ScriptAgent};
pub use a2ad_core::agent;
pub use a2ad_store::copy::{CopyError, CopyProgress, CopyReport};
pub use a2ad_store::{InstanceStatus, Migrated, OpenError, Problem, Status, VerifyReport};
pub use a2ad_transport::auth::Scope;

pub use config::{Config, ConfigError};
pub use doctor::{Finding, Level, doctor};
pub use error::{RunError, StartError};
pub use maintenance::{
    DatabaseError, copy_database, database_status, migrate_database, verify_database,
};
pub use server::{Handle, Server};
pub use tokens::{StoredToken, Tokens, TokensError};
pub use transcripts::{ExportError, Exported, export_context};
