//! Tasks, journals and turns in a PostgreSQL database that many instances share.
//!
//! Whoever changes a task has locked the row of its context first, so all that happens in a context
//! happens one after the other, whichever instance does it. A few *lanes* commit, each with a
//! connection of its own; a lane takes all that waits, locks, reads, decides in memory, writes, and
//! commits, in two round trips. Reads share a few connections and are one statement each. Times
//! that instances have to agree on are those of the database's clock.
//!
//! | module | subject |
//! |---|---|
//! | `options`, `tls`, `open`, `migrate` | where the database is, getting hold of it, why that failed |
//! | `session`, `sessions`, `fail` | connections that come back, and what an error means |
//! | `names` | the numbers of agents, scopes and contexts |
//! | `lane`, `queue`, `transact` | from a change to its commit |
//! | `gather`, `batch`, `write`, `truth` | locking and reading, deciding, writing; what became of it |
//! | `read`, `journal`, `list` | everything that only reads |
//! | `claim`, `holders`, `clock`, `purge` | leasing turns, keeping leases, the time, deleting |
//! | `fill` | writing what another database held |
//! | `inspect`, `verify` | what the database holds, how it does and whether it is sound, without serving from it |
//! | `news`, `watch` | what instances tell each other, and what they find out by themselves |

mod archive;
mod batch;
mod claim;
mod clock;
mod fail;
#[cfg(feature = "sqlite")]
pub(crate) mod fill;
mod gather;
mod holders;
mod inspect;
mod journal;
mod lane;
mod list;
mod migrate;
mod names;
mod news;
mod open;
mod options;
mod purge;
mod queue;
mod read;
mod rested;
mod session;
mod sessions;
mod store;
mod tls;
mod transact;
mod truth;
mod verify;
mod watch;
mod write;

pub use archive::read_context;
pub use clock::DatabaseClock;
pub use inspect::{Probe, migrate, probe, status};
pub use open::OpenError;
pub use options::{PostgresOptions, TimeSource};
pub use store::PostgresStore;
pub use verify::verify;
