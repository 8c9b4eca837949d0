//! From a SQLite file to a PostgreSQL database, for when one machine is not enough any more.
//!
//! Everything that counts goes along: tasks with their keys, journals run by run with their hashes,
//! snapshots, conversations, owners and agents, request keys, open and dead turns, and the secret
//! that public ids are made with. Turns that were leased stay so, to a holder that does not exist:
//! whoever serves next finds them as after a crash.
//!
//! Tasks are copied in the order of their keys, some hundred in a transaction which also notes how
//! far it got. So a copy that was interrupted goes on from there, and rows that are there already
//! are left alone. As long as that note stands, nobody serves from the database. At the end every
//! task and every hash is compared, and the note goes.
//!
//! | module | subject |
//! |---|---|
//! | `source` | reading the file, checked against its hashes |
//! | `rows` | what is carried over |
//! | `postgres::fill` | writing it, and reading it back |

pub(crate) mod rows;
mod source;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use crate::postgres::fill::{Begun, Target};
use crate::postgres::{self, PostgresOptions};
use crate::sqlite::open::OpenError;
use rows::{Batch, Key};
pub(crate) use source::HEADS_MAX;
use source::Source;

/// Batches that are read but not written yet; then reading waits.
const AHEAD: usize = 2;

/// Counting a large table takes as long as it takes.
const STATEMENT: Duration = Duration::from_secs(24 * 3600);

/// Why a database was not copied, or not to the end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// The file cannot be used.
    #[error(transparent)]
    Source(#[from] OpenError),
    /// The database cannot be used.
    #[error(transparent)]
    Target(#[from] postgres::OpenError),
    /// There is nothing to copy.
    #[error("{0} holds no database yet: there is nothing to copy")]
    Empty(String),
    /// The file was made by an older a2ad.
    #[error("{0} has an older schema: run `a2ad db migrate` for it first")]
    Outdated(String),
    /// The file is damaged.
    #[error("{path} is damaged ({what}): `a2ad verify` tells more; restore a backup")]
    Damaged {
        /// The file.
        path: String,
        /// What is wrong.
        what: String,
    },
    /// There are tasks in the database that do not come from the file.
    #[error(
        "{server} has tasks already ({count}): copy into an empty database, or serve from this one as it is"
    )]
    HasTasks {
        /// Host, port and database.
        server: String,
        /// How many.
        count: u64,
    },
    /// Somebody serves from the database.
    #[error("{count} instances serve from {server}: stop them first")]
    InUse {
        /// Host, port and database.
        server: String,
        /// How many.
        count: u64,
    },
    /// Another file was copied halfway.
    #[error(
        "{server} is half a copy of another file: go on with that one, or begin anew after `DROP SCHEMA a2ad CASCADE`"
    )]
    OtherFile {
        /// Host, port and database.
        server: String,
    },
    /// Another process copies.
    #[error("another `a2ad db copy` into {server} is under way: wait for it")]
    UnderWay {
        /// Host, port and database.
        server: String,
    },
    /// What was copied is not what stands in the file.
    #[error(
        "{server} differs from the file ({what}): the file was used after the copy had begun; begin anew after `DROP SCHEMA a2ad CASCADE`"
    )]
    Different {
        /// Host, port and database.
        server: String,
        /// What differs.
        what: String,
    },
    /// A bug.
    #[error("copying came to an unexpected end")]
    Panicked,
}

/// How far a copy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopyProgress {
    /// The tasks have been written, and are being compared.
    pub checking: bool,
    /// Tasks that are done with.
    pub tasks: u64,
    /// Tasks that there are.
    pub of: u64,
}

/// What a copy did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopyReport {
    /// Tasks.
    pub tasks: u64,
    /// Of those, the ones that an earlier run had copied.
    pub tasks_before: u64,
    /// Runs of entries, each compared with its hash.
    pub runs: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Snapshots.
    pub snapshots: u64,
    /// Snapshots that were damaged and were left out: the journal tells the same.
    pub snapshots_left_out: u64,
    /// Open turns.
    pub turns: u64,
    /// Of those, the ones that somebody had leased; they are taken up as after a crash.
    pub turns_leased: u64,
    /// Turns that ran out of tries.
    pub dead_turns: u64,
    /// Requests that are still recognised when they are repeated.
    pub requests: u64,
}

/// Copies the database in the file `from` into the database `to`, or goes on with that. Nobody may serve from either.
/// `progress` hears how far it is.
///
/// # Errors
/// See [`CopyError`]. What was copied until then stays, and the next run goes on from there.
pub async fn copy(
    from: &Path,
    to: PostgresOptions,
    progress: &(dyn Fn(CopyProgress) + Sync),
) -> Result<CopyReport, CopyError> {
    let path = from.to_owned();
    let source = blocking(move || Source::open(&path)).await?;
    let target = Target::open(PostgresOptions {
        statement_timeout: STATEMENT,
        ..to
    })
    .await?;
    let copied = Copy {
        source: Arc::new(Mutex::new(source)),
        target: &target,
        progress,
        report: CopyReport::default(),
    }
    .run()
    .await;
    target.close().await;
    copied
}

struct Copy<'a> {
    source: Arc<Mutex<Source>>,
    target: &'a Target,
    progress: &'a (dyn Fn(CopyProgress) + Sync),
    report: CopyReport,
}

/// Which number an owner's tasks with an agent, and the agent, get.
pub(crate) type Keys = HashMap<i64, Key>;

impl Copy<'_> {
    async fn run(mut self) -> Result<CopyReport, CopyError> {
        let about = self.ask(Source::about).await?;
        let begun = match self.target.begin(about.secret, about.next_key).await? {
            Begun::From(after) => after,
            Begun::Refused(error) => return Err(error),
        };
        let scopes = self.ask(Source::scopes).await?;
        let mut keys = Keys::new();
        for (key, scope) in scopes {
            keys.insert(key, self.target.name(&scope).await?);
        }
        let keys = Arc::new(keys);
        self.tasks(begun, &keys, about.tasks).await?;
        self.rest(&keys).await?;
        self.check(&keys, about.tasks).await?;
        self.target.finish().await?;
        Ok(self.report)
    }

    /// Asks the file, away from the runtime's threads.
    async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Source) -> Result<T, CopyError> + Send + 'static,
    ) -> Result<T, CopyError> {
        let source = Arc::clone(&self.source);
        blocking(move || {
            let source = source.lock().unwrap_or_else(PoisonError::into_inner);
            question(&source)
        })
        .await
    }

    async fn tasks(&mut self, after: i64, keys: &Arc<Keys>, of: u64) -> Result<(), CopyError> {
        let before = self.ask(move |source| source.tasks_until(after)).await?;
        self.report.tasks_before = before;
        self.report.tasks = before;
        self.tell(false, of);
        let (batches, mut read) = mpsc::channel::<Batch>(AHEAD);
        let given = Arc::clone(keys);
        let reading = self.ask(move |source| {
            source.read(after, &given, |batch| batches.blocking_send(batch).is_ok())
        });
        let target = self.target;
        let (progress, mut report) = (self.progress, self.report);
        let writing = async move {
            while let Some(batch) = read.recv().await {
                target.put(&batch).await?;
                report.tasks += batch.tasks.len() as u64;
                report.snapshots_left_out += batch.snapshots_left_out;
                progress(CopyProgress {
                    checking: false,
                    tasks: report.tasks,
                    of,
                });
            }
            Ok::<_, CopyError>(report)
        };
        let (read, written) = tokio::join!(reading, writing);
        // If writing has ended, that is why reading has, too.
        self.report = written?;
        read
    }

    fn tell(&self, checking: bool, of: u64) {
        (self.progress)(CopyProgress {
            checking,
            tasks: self.report.tasks,
            of,
        });
    }

    /// What belongs to the file as a whole, as it is now.
    async fn rest(&mut self, keys: &Arc<Keys>) -> Result<(), CopyError> {
        let given = Arc::clone(keys);
        let rest = self.ask(move |source| source.rest(&given)).await?;
        self.report.turns = rest.turns.len() as u64;
        let leased = rest.turns.iter().filter(|turn| turn.state == rows::LEASED);
        self.report.turns_leased = leased.count() as u64;
        self.report.dead_turns = rest.dead.len() as u64;
        Ok(self.target.put_rest(&rest).await?)
    }

    /// Compares every task and every hash, and counts the rest.
    async fn check(&mut self, keys: &Arc<Keys>, of: u64) -> Result<(), CopyError> {
        let different = |what: String| CopyError::Different {
            server: self.target.server().to_owned(),
            what,
        };
        let mut seen = 0;
        let mut after = i64::MIN;
        let mut report = CopyReport {
            runs: 0,
            bytes: 0,
            ..self.report
        };
        let mut requests = 0;
        loop {
            let given = Arc::clone(keys);
            let wanted = self.ask(move |source| source.heads(after, &given)).await?;
            let found = self.target.heads(after).await?;
            if let Some((one, other)) = wanted.iter().zip(&found).find(|(one, it)| one != it) {
                let key = one.key.min(other.key);
                return Err(different(format!("the task with key {key}")));
            }
            if wanted.len() != found.len() {
                let (one, other) = (wanted.len(), found.len());
                return Err(different(format!("{one} tasks against {other}")));
            }
            let Some(last) = found.last() else { break };
            let walked = self.target.walk(&found).await?;
            let walked = walked.map_err(different)?;
            report.runs += walked.runs;
            report.bytes += walked.bytes;
            requests += walked.requests;
            seen += found.len() as u64;
            after = last.key;
            (self.progress)(CopyProgress {
                checking: true,
                tasks: seen,
                of,
            });
        }
        let snapshots = self.ask(Source::sound_snapshots).await?;
        let counts = self.target.counts().await?;
        report.tasks = seen;
        report.snapshots = counts.snapshots;
        report.requests = counts.requests;
        report.snapshots_left_out = snapshots.1;
        for (what, wanted, found) in [
            ("snapshots", snapshots.0, counts.snapshots),
            ("requests", requests, counts.requests),
            ("open turns", report.turns, counts.turns),
            ("dead turns", report.dead_turns, counts.dead_turns),
            ("tasks without a conversation", 0, counts.strays),
        ] {
            if wanted != found {
                return Err(different(format!("{wanted} {what} against {found}")));
            }
        }
        self.report = report;
        Ok(())
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CopyError> + Send + 'static,
) -> Result<T, CopyError> {
    spawn_blocking(work)
        .await
        .unwrap_or(Err(CopyError::Panicked))
}
