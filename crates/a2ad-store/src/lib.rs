//! Where a2ad keeps what it must not lose.
//!
//! Two stores behind [`a2ad_core::store::Store`], each a feature of this crate and a module of its
//! own. [`SqliteStore`] (`sqlite`) keeps one file for one daemon. [`PostgresStore`] (`postgres`)
//! shares a database among many. SQL stays in this crate; it knows nothing of HTTP, agents or the
//! protocol's bindings.
//!
//! | module | subject |
//! |---|---|
//! | `sqlite` | one file: one thread that commits, group commit, a file lock; [`verify`] walks a file and says what is wrong with it |
//! | `postgres` | many instances, one database: leases that end, and news between instances |
//! | [`copy`] | from a file to a database, once and for all |
//! | `plan` | what a change means for turns |
//! | `run`, `snapshot`, `packed`, `request`, `hash` | how entries, snapshots, artifacts and request keys are laid out, and their checksums |
//! | `archive` | one conversation, read while somebody serves from the database |
//! | `bounds`, `status`, `walk`, [`metric`] | how much may wait; what a database holds, in numbers; whether it is sound; what is measured |
#![deny(missing_docs)]
#![cfg_attr(
    not(any(feature = "postgres", feature = "sqlite")),
    expect(dead_code, reason = "what stores share, without any store")
)]

mod archive;
mod bounds;
#[cfg(all(feature = "postgres", feature = "sqlite"))]
pub mod copy;
mod hash;
pub mod metric;
mod packed;
mod plan;
#[cfg(feature = "postgres")]
pub mod postgres;
mod request;
mod run;
mod snapshot;
#[cfg(feature = "sqlite")]
mod sqlite;
mod status;
mod walk;

pub use archive::Archived;
#[cfg(feature = "postgres")]
pub use postgres::{PostgresOptions, PostgresStore};
#[cfg(feature = "sqlite")]
pub use sqlite::{
    Core, Durability, OpenError, SqliteOptions, SqliteStore, migrate, read_context, status, verify,
};
pub use status::{InstanceStatus, Migrated, Status};
pub use walk::{Problem, VerifyReport};
