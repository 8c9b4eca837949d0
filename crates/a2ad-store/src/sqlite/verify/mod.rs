//! Walking a database and saying what is wrong with it.

mod journal;
mod requests;
mod tables;

use std::path::Path;

use rusqlite::{Connection, Error, ErrorCode, OpenFlags};

use crate::sqlite::fail::Failure;
use crate::sqlite::ids::unpack_id;
use crate::sqlite::lock::{FileLock, beside};
use crate::sqlite::open::{MIGRATIONS, OpenError, connect, recognise, schema};
use crate::walk::{TaskName, VerifyReport};

/// The name of the task with this key.
fn name_of(db: &Connection, key: i64) -> TaskName {
    let id = db
        .prepare_cached("SELECT id FROM tasks WHERE key = ?1")
        .and_then(|mut statement| statement.query_row([key], |row| Ok(unpack_id(row.get_ref(0)?))));
    TaskName::new(key, id.ok().flatten())
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
