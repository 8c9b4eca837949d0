//! Where a2ad keeps what it must not lose.
//!
//! Two stores behind [`a2ad_core::store::Store`], each a feature of this crate. [`SqliteStore`]
//! (`sqlite`) keeps one file: one thread writes and commits everything that waits together, a few
//! connections read beside it, and a file lock keeps a second daemon out. [`PostgresStore`]
//! (`postgres`) shares a database among many daemons. [`verify`] walks a SQLite file and says what
//! is wrong with it. SQL stays in this crate; it knows nothing of HTTP, agents or the protocol's
//! bindings.
//!
//! | module | subject |
//! |---|---|
//! | `plan`, `run`, `snapshot`, `packed`, `request` | what both have in common: what a change means for turns, how entries, snapshots and ids are laid out |
//! | `open`, `options`, `lock` | getting hold of the file, migrations, why it failed |
//! | `commit` | [`Core`]: changes applied and committed, without any thread |
//! | `writer`, `answers`, `checkpoint` | the two threads, and how the first one's answers are told |
//! | `read`, `list` | everything that only reads |
//! | `names`, `once`, `hash`, `bounds`, `fail` | scopes and contexts, request keys, checksums, how much may wait, what an error of SQLite means |
//! | `status`, `inspect` | what a database holds, in numbers |
//! | `postgres` | the same on PostgreSQL, with leases that end and news between instances |
//! | [`copy`] | from a file to a database, once and for all |
#![deny(missing_docs)]

#[cfg(feature = "sqlite")]
mod answers;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod bounds;
#[cfg(feature = "sqlite")]
mod checkpoint;
#[cfg(feature = "sqlite")]
mod commit;
#[cfg(all(feature = "postgres", feature = "sqlite"))]
pub mod copy;
#[cfg(feature = "sqlite")]
mod fail;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod hash;
#[cfg(feature = "sqlite")]
mod inspect;
#[cfg(feature = "sqlite")]
mod list;
#[cfg(feature = "sqlite")]
mod lock;
pub mod metric;
#[cfg(feature = "sqlite")]
mod names;
#[cfg(feature = "sqlite")]
mod once;
#[cfg(feature = "sqlite")]
mod open;
#[cfg(feature = "sqlite")]
mod options;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod packed;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod plan;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "sqlite")]
mod read;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod request;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod run;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod snapshot;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod status;
#[cfg(feature = "sqlite")]
mod store;
#[cfg(test)]
#[cfg(feature = "sqlite")]
mod tests;
#[cfg(feature = "sqlite")]
mod verify;
#[cfg(feature = "sqlite")]
mod writer;

#[cfg(feature = "sqlite")]
pub use commit::Core;
#[cfg(feature = "sqlite")]
pub use inspect::{migrate, status};
#[cfg(feature = "sqlite")]
pub use open::OpenError;
#[cfg(feature = "sqlite")]
pub use options::{Durability, SqliteOptions};
#[cfg(feature = "postgres")]
pub use postgres::{PostgresOptions, PostgresStore};
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub use status::{InstanceStatus, Migrated, Status};
#[cfg(feature = "sqlite")]
pub use store::SqliteStore;
#[cfg(feature = "sqlite")]
pub use verify::{Problem, VerifyReport, verify};
