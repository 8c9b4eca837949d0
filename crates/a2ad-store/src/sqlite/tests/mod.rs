//! Tests that look inside: a [`Core`] without its thread, and surgery on its file.

mod batch;
mod damage;
mod failure;
mod migrate;
mod once;
mod statements;

use std::path::PathBuf;
use std::sync::Arc;

use a2ad_core::clock::Clock;
use a2ad_core::clock::Surroundings;
use a2ad_core::clock::manual::{ManualClock, Seeded};
use a2ad_core::contract::Recorder;
use a2ad_core::contract::sample::{alice, change, submit, unborn};
use a2ad_core::store::{Applied, Change, ChangeError};
use a2ad_core::task::{Command, Head};
use a2ad_proto::Timestamp;
use rusqlite::Connection;

use crate::sqlite::commit::{Core, Work};
use crate::sqlite::options::SqliteOptions;

/// A database in a folder of its own.
struct Rig {
    dir: tempfile::TempDir,
    wake: Arc<Recorder>,
    clock: Arc<ManualClock>,
    random: Arc<Seeded>,
    next_key: i64,
}

impl Rig {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            wake: Arc::new(Recorder::default()),
            clock: Arc::new(ManualClock::at(1_700_000_000_000)),
            random: Arc::new(Seeded::new(3)),
            next_key: 0,
        }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("a2ad.db")
    }

    fn options(&self) -> SqliteOptions {
        SqliteOptions {
            surroundings: Surroundings {
                clock: self.clock.clone(),
                random: self.random.clone(),
            },
            ..SqliteOptions::at(self.path())
        }
    }

    fn open(&mut self) -> Core {
        let mut core = Core::open(&self.options(), self.wake.clone()).unwrap();
        core.run(vec![Work::Reserve { next_key: 100_000 }]);
        core
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A task in a context of its own, not yet committed.
    fn submission(&mut self, core: &Core) -> Change {
        self.next_key += 1;
        let head = unborn(core.public_ids(), self.next_key, &*self.random, &alice());
        change(&head, &[submit("hello")], self.now())
    }

    fn change(&self, head: &Head, commands: &[Command]) -> Change {
        change(head, commands, self.now())
    }

    /// A connection for surgery; nothing else must be open.
    fn surgery(&self) -> Connection {
        Connection::open(self.path()).unwrap()
    }
}

/// Commits one change.
fn commit(core: &mut Core, change: Change) -> Result<Applied, ChangeError> {
    core.commit(vec![change]).pop().unwrap()
}
