//! Getting hold of a database file, and why that can fail.

use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use a2ad_core::clock::Surroundings;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, Error, ErrorCode, OpenFlags, OptionalExtension, TransactionBehavior};

use crate::sqlite::lock::{FileLock, private};
use crate::sqlite::options::{Durability, SqliteOptions};

/// "a2ad", in the header of each of our databases: another program's file is not touched.
const APPLICATION_ID: i32 = 0x6132_6164;

/// How long a statement waits for another connection of ours. Only a checkpoint that restarts the
/// log keeps others out, and not for long.
const BUSY: Duration = Duration::from_secs(2);

/// Why a database could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process has it.
    #[error("{} is in use by another a2ad: stop that one, or use another file", path.display())]
    Locked {
        /// The database.
        path: PathBuf,
    },
    /// It cannot be written.
    #[error("{} cannot be written: check the permissions of the file and its folder", path.display())]
    ReadOnly {
        /// The database.
        path: PathBuf,
    },
    /// It is something else.
    #[error("{} is not a database of a2ad: choose another file", path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// A later a2ad has changed it in a way that this one does not understand.
    #[error("{} has schema {found}, this a2ad knows up to {known}: use a newer a2ad", path.display())]
    Newer {
        /// The database.
        path: PathBuf,
        /// Its schema.
        found: u32,
        /// The newest schema that this code knows.
        known: u32,
    },
    /// It is damaged.
    #[error("{} is damaged ({detail}): restore a backup", path.display())]
    Corrupt {
        /// The database.
        path: PathBuf,
        /// What SQLite says.
        detail: String,
    },
    /// The disk is full.
    #[error("there is no space left for {}: make room and start again", path.display())]
    NoSpace {
        /// The database.
        path: PathBuf,
    },
    /// The operating system refuses.
    #[error("{} cannot be opened ({detail}): check that its folder exists and is yours", path.display())]
    Io {
        /// The database.
        path: PathBuf,
        /// What the operating system or SQLite says.
        detail: String,
    },
}

impl OpenError {
    pub(crate) fn from_io(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::ReadOnly { path }
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::NoSpace { path },
            _ => Self::Io {
                path,
                detail: source.to_string(),
            },
        }
    }

    pub(crate) fn from_sql(path: &Path, source: &Error) -> Self {
        let path = path.to_owned();
        let detail = source.to_string();
        match source.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Self::NotADatabase { path },
            Some(ErrorCode::DatabaseCorrupt) => Self::Corrupt { path, detail },
            Some(ErrorCode::DiskFull) => Self::NoSpace { path },
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Self::ReadOnly { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked { path },
            _ => Self::Io { path, detail },
        }
    }
}

/// A database that is ready to be written.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) db: Connection,
    pub(crate) lock: Arc<FileLock>,
    /// Masks the keys in public ids.
    pub(crate) secret: [u8; 16],
    /// Every task key ever given is below this one.
    pub(crate) next_key: i64,
}

/// Locks, opens and migrates the database; creates it if there is none.
pub(crate) fn open(options: &SqliteOptions) -> Result<Opened, OpenError> {
    let path = &options.path;
    // Before the lock, which would leave a file beside whatever this is.
    if path.is_dir() {
        return Err(OpenError::NotADatabase { path: path.clone() });
    }
    let lock = Arc::new(FileLock::exclusive(path)?);
    private(OpenOptions::new().write(true).create(true).truncate(false))
        .open(path)
        .map_err(|source| OpenError::from_io(path, source))?;
    let sql = |source: Error| OpenError::from_sql(path, &source);
    let mut db = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(sql)?;
    if db.is_readonly("main").map_err(sql)? {
        return Err(OpenError::ReadOnly { path: path.clone() });
    }
    recognise(&db, path)?;
    prepare(&db, options.durability).map_err(sql)?;
    migrate(&mut db, path, MIGRATIONS, &options.surroundings)?;
    let damaged = |what: &str| OpenError::Corrupt {
        path: path.clone(),
        detail: format!("{what} is missing"),
    };
    let secret = meta(&db, "secret")
        .map_err(sql)?
        .ok_or_else(|| damaged("the secret of its ids"))?;
    let next_key = meta(&db, "next_key")
        .map_err(sql)?
        .ok_or_else(|| damaged("the next key"))?;
    Ok(Opened {
        db,
        lock,
        secret,
        next_key,
    })
}

/// A further connection to an open database, for reading.
pub(crate) fn reader(path: &Path) -> Result<Connection, OpenError> {
    let sql = |source: Error| OpenError::from_sql(path, &source);
    let db = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(sql)?;
    db.pragma_update(None, "cache_size", -8_192).map_err(sql)?;
    Ok(db)
}

/// A further connection to an open database, for checkpoints.
pub(crate) fn checkpointer(path: &Path, durability: Durability) -> Result<Connection, OpenError> {
    let sql = |source: Error| OpenError::from_sql(path, &source);
    let db = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(sql)?;
    prepare(&db, durability).map_err(sql)?;
    Ok(db)
}

pub(crate) fn connect(path: &Path, mode: OpenFlags) -> rusqlite::Result<Connection> {
    // Each connection is used by one thread at a time, so SQLite need not lock.
    let db = Connection::open_with_flags(path, mode | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    db.busy_timeout(BUSY)?;
    db.set_prepared_statement_cache_capacity(128);
    // Else the planner looks at the values bound to a statement, and whenever they change it
    // parses and plans the statement again.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(db)
}

/// Runs a statement without parameters, parsed once per connection.
pub(crate) fn execute(db: &Connection, sql: &str) -> rusqlite::Result<()> {
    db.prepare_cached(sql)?.execute([]).map(|_| ())
}

fn prepare(db: &Connection, durability: Durability) -> rusqlite::Result<()> {
    // The page size counts only before the first page is written.
    db.pragma_update(None, "page_size", 8_192)?;
    db.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    db.pragma_update(
        None,
        "synchronous",
        match durability {
            Durability::Full => "FULL",
            Durability::Os => "NORMAL",
        },
    )?;
    db.query_row("PRAGMA wal_autocheckpoint = 0", [], |_| Ok(()))?;
    db.pragma_update(None, "cache_size", -32_768)?;
    db.pragma_update(None, "temp_store", "MEMORY")
}

/// Makes sure that the file is empty or one of ours, before anything is written to it.
pub(crate) fn recognise(db: &Connection, path: &Path) -> Result<(), OpenError> {
    let sql = |source: Error| OpenError::from_sql(path, &source);
    let tables: i64 = db
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(sql)?;
    let application: i32 = db
        .pragma_query_value(None, "application_id", |row| row.get(0))
        .map_err(sql)?;
    if tables > 0 && application != APPLICATION_ID {
        return Err(OpenError::NotADatabase {
            path: path.to_owned(),
        });
    }
    Ok(())
}

/// A value that belongs to the database as a whole.
pub(crate) fn meta<T: rusqlite::types::FromSql>(
    db: &Connection,
    key: &str,
) -> rusqlite::Result<Option<T>> {
    db.query_row("SELECT value FROM meta WHERE key = ?1", [key], |row| {
        row.get(0)
    })
    .optional()
}

pub(crate) fn set_meta(
    db: &Connection,
    key: &str,
    value: impl rusqlite::ToSql,
) -> rusqlite::Result<()> {
    db.prepare_cached(
        "INSERT INTO meta (key, value) VALUES (?1, ?2)
         ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    )?
    .execute((key, value))?;
    Ok(())
}

/// A step from one schema to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Migration {
    /// The schema after the step.
    pub(crate) schema: u32,
    /// The oldest code that can still use the database after it, by the schema it knows.
    pub(crate) oldest_compatible: u32,
    /// What the step does.
    pub(crate) sql: &'static str,
}

/// All steps, oldest first. A released one never changes.
pub(crate) const MIGRATIONS: &[Migration] = &[Migration {
    schema: 1,
    oldest_compatible: 1,
    sql: include_str!("../../migrations/sqlite/0001_tasks_journals_turns.sql"),
}];

/// Brings the database to the newest schema of `steps`, all in one transaction.
pub(crate) fn migrate(
    db: &mut Connection,
    path: &Path,
    steps: &[Migration],
    surroundings: &Surroundings,
) -> Result<(), OpenError> {
    let sql = |source: Error| OpenError::from_sql(path, &source);
    let known = steps.last().map_or(0, |step| step.schema);
    let found = schema(db, path, known)?;
    if found >= known {
        return Ok(());
    }
    let step_all = |db: &mut Connection| -> rusqlite::Result<()> {
        let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for step in steps.iter().filter(|step| step.schema > found) {
            tx.execute_batch(step.sql)?;
            set_meta(&tx, "schema", step.schema)?;
            set_meta(&tx, "oldest_compatible", step.oldest_compatible)?;
        }
        if found == 0 {
            tx.pragma_update(None, "application_id", APPLICATION_ID)?;
            set_meta(&tx, "secret", surroundings.random.bits().to_le_bytes())?;
            set_meta(&tx, "next_key", 1_i64)?;
        }
        tx.commit()
    };
    step_all(db).map_err(sql)?;
    tracing::info!(from = found, to = known, "the database has a new schema");
    Ok(())
}

/// The schema of a database, unless code that knows schemas up to `known` cannot use it; 0 if the
/// database is empty.
pub(crate) fn schema(db: &Connection, path: &Path, known: u32) -> Result<u32, OpenError> {
    let (found, oldest) = schemas(db, path)?;
    if oldest > known {
        return Err(OpenError::Newer {
            path: path.to_owned(),
            found,
            known,
        });
    }
    Ok(found)
}

/// The schema of a database, and the oldest code that can use it; zeros if the database is empty.
pub(crate) fn schemas(db: &Connection, path: &Path) -> Result<(u32, u32), OpenError> {
    let sql = |source: Error| OpenError::from_sql(path, &source);
    let has_meta: bool = db
        .query_row(
            "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'meta'",
            [],
            |row| row.get(0),
        )
        .map_err(sql)?;
    if !has_meta {
        return Ok((0, 0));
    }
    let damaged = || OpenError::Corrupt {
        path: path.to_owned(),
        detail: "its schema number is missing".to_owned(),
    };
    let found = meta(db, "schema").map_err(sql)?.ok_or_else(damaged)?;
    let oldest = meta(db, "oldest_compatible").map_err(sql)?;
    Ok((found, oldest.ok_or_else(damaged)?))
}
