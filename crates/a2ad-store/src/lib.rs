//! Where a2ad keeps what it must not lose.
//!
//! [`SqliteStore`] keeps one SQLite file behind [`a2ad_core::store::Store`]: one thread writes and
//! commits everything that waits together, a few connections read beside it, and a file lock keeps
//! a second daemon out. [`verify`] walks a database and says what is wrong with it. SQL stays in
//! this crate; it knows nothing of HTTP, agents or the protocol's bindings.
//!
//! | module | subject |
//! |---|---|
//! | `open`, `options`, `lock` | getting hold of the file, migrations, why it failed |
//! | `commit` | [`Core`]: changes applied and committed, without any thread |
//! | `writer`, `answers`, `checkpoint` | the two threads, and how the first one's answers are told |
//! | `read`, `list` | everything that only reads |
//! | `run`, `snapshot`, `packed` | how entries, snapshots and ids are laid out in rows |
//! | `names`, `once`, `hash`, `fail` | scopes and contexts, request keys, checksums, what an error of SQLite means |
#![deny(missing_docs)]

mod answers;
mod checkpoint;
mod commit;
mod fail;
mod hash;
mod list;
mod lock;
pub mod metric;
mod names;
mod once;
mod open;
mod options;
mod packed;
mod read;
mod run;
mod snapshot;
mod store;
#[cfg(test)]
mod tests;
mod verify;
mod writer;

pub use commit::Core;
pub use open::OpenError;
pub use options::{Durability, SqliteOptions};
pub use store::SqliteStore;
pub use verify::{Problem, VerifyReport, verify};
