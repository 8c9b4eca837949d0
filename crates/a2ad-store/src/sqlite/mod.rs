//! Tasks, journals and turns in one file that one daemon has.
//!
//! One thread writes and commits everything that waits together, a few connections read beside it,
//! and a file lock keeps a second daemon out.
//!
//! | module | subject |
//! |---|---|
//! | `options`, `open`, `lock`, `fail` | getting hold of the file, migrations, what an error of SQLite means |
//! | `commit` | [`Core`]: changes applied and committed, without any thread |
//! | `store`, `writer`, `answers`, `checkpoint` | the two threads, and how the first one's answers are told |
//! | `read`, `list` | everything that only reads |
//! | `names`, `once` | scopes and contexts, request keys |
//! | `ids`, `runs`, `snapshots` | how values and rows are laid out |
//! | `inspect`, `verify` | what a file holds, in numbers, and whether it is sound |

mod answers;
mod archive;
mod checkpoint;
mod commit;
pub(crate) mod fail;
pub(crate) mod ids;
mod inspect;
mod list;
pub(crate) mod lock;
mod names;
mod once;
pub(crate) mod open;
mod options;
mod read;
mod rested;
pub(crate) mod runs;
pub(crate) mod snapshots;
mod store;
#[cfg(test)]
mod tests;
pub(crate) mod verify;
mod writer;

pub use archive::read_context;
pub use commit::Core;
pub use inspect::{migrate, status};
pub use open::OpenError;
pub use options::{Durability, SqliteOptions};
pub use store::SqliteStore;
pub use verify::verify;
