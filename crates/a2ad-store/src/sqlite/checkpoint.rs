//! Copying the log back into the database, off the commit path.
//!
//! A passive checkpoint runs beside the writer, but under steady load it may never catch up, and
//! then the log never starts anew. So when the log is about to outgrow what a restart can replay
//! quickly, the writer itself copies the rest between two transactions.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use metrics::histogram;
use rusqlite::Connection;

use crate::metric;
use crate::sqlite::fail::Failure;
use crate::sqlite::open::{OpenError, checkpointer};
use crate::sqlite::options::Durability;

/// A passive checkpoint starts when the log has this many pages (8 MiB).
pub(crate) const PASSIVE_PAGES: u32 = 1_000;
/// The writer starts the log anew at this many pages (32 MiB): replaying 40 MB after a crash took
/// 10 ms.
pub(crate) const RESTART_PAGES: u32 = 4_000;

/// How much a checkpoint may ask of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Waits for nobody.
    Passive,
    /// Keeps writers out and waits for readers; afterwards the log starts at its beginning.
    Restart,
    /// The same, and cuts the log's file to nothing.
    Truncate,
}

/// Copies what the log holds into the database.
pub(crate) fn checkpoint(db: &Connection, mode: Mode) -> Result<(), Failure> {
    let began = Instant::now();
    let sql = match mode {
        Mode::Passive => "PRAGMA wal_checkpoint(PASSIVE)",
        Mode::Restart => "PRAGMA wal_checkpoint(RESTART)",
        Mode::Truncate => "PRAGMA wal_checkpoint(TRUNCATE)",
    };
    let (busy, log, done): (i64, i64, i64) =
        db.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    histogram!(metric::CHECKPOINT_SECONDS).record(began.elapsed().as_secs_f64());
    tracing::debug!(?mode, busy, log, done, "checkpoint");
    Ok(())
}

/// Decides when the next checkpoint is due.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    last: u32,
}

impl Pace {
    /// Whether a log of `pages` wants a checkpoint that starts at `from` pages. While a reader
    /// keeps the log from starting anew, one checkpoint per [`PASSIVE_PAGES`] is enough.
    pub(crate) fn is_due(&mut self, pages: u32, from: u32) -> bool {
        if pages < self.last {
            self.last = 0;
        }
        let due = pages >= from && (self.last == 0 || pages >= self.last + PASSIVE_PAGES);
        if due {
            self.last = pages;
        }
        due
    }
}

/// The thread that runs passive checkpoints.
#[derive(Debug)]
pub(crate) struct Checkpointer {
    signal: Arc<Signal>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Signal {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    wanted: bool,
    /// One is under way.
    running: bool,
    stop: bool,
    failed: Option<Arc<str>>,
}

impl Checkpointer {
    /// Starts the thread with a connection of its own.
    pub(crate) fn start(path: &Path, durability: Durability) -> Result<Self, OpenError> {
        let db = checkpointer(path, durability)?;
        let signal = Arc::new(Signal::default());
        let heard = Arc::clone(&signal);
        let thread = std::thread::Builder::new()
            .name("a2ad-checkpoint".to_owned())
            .spawn(move || heard.run(&db))
            .map_err(|source| OpenError::from_io(path, source))?;
        Ok(Self {
            signal,
            thread: Some(thread),
        })
    }

    /// Asks for a checkpoint; one more request while one is waiting changes nothing.
    pub(crate) fn request(&self) {
        self.signal.lock().wanted = true;
        self.signal.changed.notify_all();
    }

    /// Waits for the checkpoint under way, and forgets the one that was asked for: while one runs,
    /// nobody else's can.
    pub(crate) fn stand_back(&self) {
        let mut state = self.signal.lock();
        state.wanted = false;
        while state.running {
            state = self
                .signal
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Why a checkpoint could not write or sync, if that happened.
    pub(crate) fn failed(&self) -> Option<Arc<str>> {
        self.signal.lock().failed.clone()
    }

    /// Ends the thread after the checkpoint under way.
    pub(crate) fn stop(&mut self) {
        self.signal.lock().stop = true;
        self.signal.changed.notify_all();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the checkpoint thread panicked");
        }
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Signal {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, db: &Connection) {
        loop {
            let mut state = self.lock();
            while !state.wanted && !state.stop {
                state = self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            if state.stop {
                return;
            }
            state.wanted = false;
            state.running = true;
            drop(state);
            let done = checkpoint(db, Mode::Passive);
            self.lock().running = false;
            self.changed.notify_all();
            if let Err(failure) = done {
                let error = failure.store_error();
                tracing::warn!(%error, "a checkpoint failed");
                if failure.is_fatal() {
                    self.lock().failed = Some(Arc::from(error.to_string()));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_cannot_start_anew_is_not_checkpointed_at_every_commit() {
        let mut pace = Pace::default();
        assert!(!pace.is_due(999, PASSIVE_PAGES));
        assert!(pace.is_due(1_000, PASSIVE_PAGES));
        assert!(!pace.is_due(1_010, PASSIVE_PAGES));
        assert!(!pace.is_due(1_999, PASSIVE_PAGES));
        assert!(pace.is_due(2_000, PASSIVE_PAGES));
        assert!(!pace.is_due(7, PASSIVE_PAGES), "the log began anew");
        assert!(pace.is_due(1_500, PASSIVE_PAGES));
    }
}
