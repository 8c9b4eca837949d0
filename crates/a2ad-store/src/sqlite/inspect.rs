//! Looking at a file without serving from it.

use std::path::Path;

use rusqlite::Connection;

use crate::sqlite::fail::Failure;
use crate::sqlite::lock::FileLock;
use crate::sqlite::open::{MIGRATIONS, OpenError, meta, open, recognise, schemas};
use crate::sqlite::options::SqliteOptions;
use crate::sqlite::verify::open_read_only;
use crate::status::{Migrated, Status};

/// What the database at `path` holds. It may be in use.
///
/// # Errors
/// If there is no such file, or it is something else.
pub fn status(path: &Path) -> Result<Status, OpenError> {
    let mut status = Status {
        server: format!("SQLite {}", rusqlite::version()),
        known: MIGRATIONS.last().map_or(0, |step| step.schema),
        ..Status::default()
    };
    if path.is_dir() {
        return Err(OpenError::NotADatabase {
            path: path.to_owned(),
        });
    }
    let db = open_read_only(path)?;
    recognise(&db, path)?;
    status.in_use = matches!(FileLock::shared(path), Err(OpenError::Locked { .. }));
    (status.schema, status.oldest_compatible) = schemas(&db, path)?;
    for suffix in ["", "-wal"] {
        let file = std::fs::metadata(crate::sqlite::lock::beside(path, suffix));
        status.bytes += file.map_or(0, |file| file.len());
    }
    if status.schema > 0 && status.oldest_compatible <= status.known {
        count(&db, &mut status).map_err(|failure| OpenError::Corrupt {
            path: path.to_owned(),
            detail: failure.store_error().to_string(),
        })?;
    }
    Ok(status)
}

fn count(db: &Connection, status: &mut Status) -> Result<(), Failure> {
    let tx = db.unchecked_transaction()?;
    let mut statement = tx.prepare("SELECT id & 15, sum(n) FROM counters GROUP BY 1 ORDER BY 1")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        status.add_tasks(row.get(0)?, row.get(1)?);
    }
    let mut statement = tx.prepare("SELECT state, count(*) FROM turns GROUP BY state")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let state: u8 = row.get(0)?;
        if let Some(turns) = status.turns.get_mut(usize::from(state)) {
            *turns = row.get::<_, i64>(1)?.unsigned_abs();
        }
    }
    let dead: i64 = tx.query_row("SELECT count(*) FROM dead_turns", [], |row| row.get(0))?;
    status.dead_turns = dead.unsigned_abs();
    Ok(())
}

/// Brings the database to the newest schema; creates it if there is none.
///
/// # Errors
/// If it cannot be used, or is in use.
pub fn migrate(path: &Path) -> Result<Migrated, OpenError> {
    let found = match open_read_only(path) {
        Ok(db) if path.is_file() => {
            recognise(&db, path)?;
            schemas(&db, path)?.0
        }
        // What is wrong with it, opening says.
        Ok(_) | Err(_) => 0,
    };
    let opened = open(&SqliteOptions::at(path))?;
    let to: Option<u32> =
        meta(&opened.db, "schema").map_err(|source| OpenError::from_sql(path, &source))?;
    Ok(Migrated {
        from: found,
        to: to.unwrap_or_default(),
    })
}
