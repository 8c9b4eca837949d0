//! What agents run on. Each back end is a module of its own: its settings, as they stand under its
//! key in the configuration, and the [`Agent`](a2ad_core::agent::Agent) that they make.
#![deny(missing_docs)]

mod echo;
pub mod script;
pub mod units;

pub use echo::{Echo, EchoAgent};
pub use script::{Script, ScriptAgent};
