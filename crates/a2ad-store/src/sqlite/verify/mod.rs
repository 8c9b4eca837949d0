//! Walking a database and saying what is wrong with it.

mod journal;
mod requests;
mod tables;

use std::fmt;
use std::path::Path;

use rusqlite::{Connection, Error, ErrorCode, OpenFlags};

use crate::sqlite::fail::Failure;
use crate::sqlite::ids::unpack_id;
use crate::sqlite::lock::{FileLock, beside};
use crate::sqlite::open::{MIGRATIONS, OpenError, connect, recognise, schema};

/// More problems than this are counted but not listed: whoever has so many restores a backup.
const PROBLEMS_MAX: usize = 1_000;

/// What a walk over a database found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Tasks.
    pub tasks: u64,
    /// Runs of entries.
    pub runs: u64,
    /// Entries in all journals.
    pub entries: u64,
    /// Bytes in all entries.
    pub bytes: u64,
    /// Snapshots.
    pub snapshots: u64,
    /// Open turns.
    pub turns: u64,
    /// What is wrong, as far as it is listed.
    pub problems: Vec<Problem>,
    /// How much is wrong in all.
    pub problem_count: u64,
}

impl VerifyReport {
    /// Nothing is wrong.
    #[must_use]
    pub const fn is_sound(&self) -> bool {
        self.problem_count == 0
    }

    fn report(&mut self, problem: Problem) {
        self.problem_count += 1;
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem);
        }
    }

    fn report_of(&mut self, task: &TaskName, entry: Option<u64>, what: impl Into<String>) {
        self.report(Problem {
            task: Some(task.0.clone()),
            entry,
            what: what.into(),
        });
    }

    fn report_all(&mut self, what: impl Into<String>) {
        self.report(Problem {
            task: None,
            entry: None,
            what: what.into(),
        });
    }
}

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The public id of the task it concerns, or `key N` if that cannot be read.
    pub task: Option<String>,
    /// The number of the entry it concerns.
    pub entry: Option<u64>,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(task) = &self.task {
            write!(f, "task {task}: ")?;
        }
        if let Some(entry) = self.entry {
            write!(f, "entry {entry}: ")?;
        }
        f.write_str(&self.what)
    }
}

/// How a problem names a task.
struct TaskName(String);

impl TaskName {
    fn of(db: &Connection, key: i64) -> Self {
        let id = db
            .prepare_cached("SELECT id FROM tasks WHERE key = ?1")
            .and_then(|mut statement| {
                statement.query_row([key], |row| Ok(unpack_id(row.get_ref(0)?)))
            });
        Self::new(key, id.ok().flatten())
    }

    fn new(key: i64, id: Option<String>) -> Self {
        Self(id.unwrap_or_else(|| format!("key {key}")))
    }
}

/// Reads the whole database at `path` and checks everything that must hold in it. Writes nothing;
/// refuses while a daemon has it open.
///
/// # Errors
/// If the file cannot be read at all. What is wrong inside is in the report.
pub fn verify(path: &Path) -> Result<VerifyReport, OpenError> {
    if path.is_dir() {
        return Err(OpenError::NotADatabase {
            path: path.to_owned(),
        });
    }
    let _lock = FileLock::shared(path)?;
    let db = open_read_only(path)?;
    recognise(&db, path)?;
    let known = MIGRATIONS.last().map_or(0, |step| step.schema);
    let mut report = VerifyReport::default();
    if schema(&db, path, known)? == 0 {
        report.report_all("the file is empty: there is no database in it");
        return Ok(report);
    }
    match walk(&db, &mut report) {
        Ok(()) => {}
        // Damage that stops the walk is the worst of findings, not a failure to look.
        Err(failure) => report.report_all(format!(
            "the rest could not be read: {}",
            failure.store_error()
        )),
    }
    Ok(report)
}

fn walk(db: &Connection, report: &mut VerifyReport) -> Result<(), Failure> {
    // One transaction: one moment.
    let tx = db.unchecked_transaction()?;
    tables::integrity(&tx, report)?;
    journal::tasks(&tx, report)?;
    tables::strays(&tx, report)?;
    tables::turns(&tx, report)?;
    tables::counters(&tx, report)?;
    tables::keys(&tx, report)
}

/// SQLite keeps shared memory beside a database with a log, and needs to create it. Where it may
/// not, as on a read-only copy, and there is no log, the file can be read as it stands.
pub(crate) fn open_read_only(path: &Path) -> Result<Connection, OpenError> {
    let sql = |source: Error| OpenError::from_sql(path, &source);
    let attempt = || -> rusqlite::Result<Connection> {
        let db = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        db.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(db)
    };
    match attempt() {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::CannotOpen) => {
            let log = beside(path, "-wal");
            let has_log = std::fs::metadata(log).is_ok_and(|log| log.len() > 0);
            let Some(text) = path.to_str().filter(|_| !has_log && path.is_file()) else {
                return Err(sql(error));
            };
            let text = text
                .replace('%', "%25")
                .replace('?', "%3f")
                .replace('#', "%23");
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
            connect(Path::new(&format!("file:{text}?immutable=1")), flags).map_err(sql)
        }
        other => other.map_err(sql),
    }
}
