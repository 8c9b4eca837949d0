//! The rows of runs; how their bytes are laid out is told in [`crate::run`].

use a2ad_core::keys::TaskKey;
use a2ad_core::task::FORMAT;
use bytes::{Bytes, BytesMut};
use rusqlite::{CachedStatement, Connection, Row};

use crate::hash::Hash;
use crate::run::{NewRun, Run, Sealed, open, unpack_run_id};
use crate::sqlite::fail::Failure;

/// Longer runs are cut into rows of this length, so that no row needs one huge allocation.
pub(crate) const SPILL_BYTES: usize = 256 << 10;

/// Selects runs by a range of row ids, in order, with the columns that [`read`] expects.
pub(crate) const SELECT: &str =
    "SELECT id, count, format, spilled, prev, hash, once, bytes FROM runs
     WHERE id BETWEEN ?1 AND ?2 ORDER BY id";

/// How many columns [`read`] expects.
pub(crate) const COLUMNS: usize = 8;

/// Writes runs, many with one statement.
pub(crate) struct Writer<'db> {
    db: &'db Connection,
    insert: CachedStatement<'db>,
}

impl<'db> Writer<'db> {
    pub(crate) fn new(db: &'db Connection) -> Result<Self, Failure> {
        let insert = db.prepare_cached(
            "INSERT INTO runs (id, count, format, spilled, prev, hash, once, bytes)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?;
        Ok(Self { db, insert })
    }

    /// Writes a run of `task` after the run with hash `prev`.
    pub(crate) fn write(
        &mut self,
        task: TaskKey,
        run: &NewRun,
        prev: Hash,
    ) -> Result<Hash, Failure> {
        if run.is_empty() {
            return Ok(prev);
        }
        let Sealed {
            id,
            count,
            hash,
            once,
            bytes,
        } = run.seal(task, prev);
        let spilled = if bytes.len() > SPILL_BYTES {
            spill(self.db, id, bytes)?
        } else {
            0
        };
        let inline: &[u8] = if spilled == 0 { bytes } else { &[] };
        self.insert
            .execute((id, count as i64, FORMAT, spilled, prev, hash, once, inline))?;
        Ok(hash)
    }
}

fn spill(db: &Connection, run: i64, bytes: &[u8]) -> Result<i64, Failure> {
    let mut insert = db.prepare_cached("INSERT INTO chunks (run, n, bytes) VALUES (?1, ?2, ?3)")?;
    for (n, chunk) in bytes.chunks(SPILL_BYTES).enumerate() {
        insert.execute((run, n as i64, chunk))?;
    }
    Ok(bytes.len().div_ceil(SPILL_BYTES) as i64)
}

/// Reads a run from a row of [`SELECT`] and checks its hash.
pub(crate) fn read(db: &Connection, row: &Row<'_>) -> Result<Run, Failure> {
    Raw::read(db, row)?.open()
}

/// A run as it is stored, its bytes in one piece, not yet checked.
#[derive(Debug)]
pub(crate) struct Raw {
    pub(crate) id: i64,
    pub(crate) count: i64,
    pub(crate) format: u8,
    pub(crate) prev: Hash,
    pub(crate) hash: Hash,
    pub(crate) once: Vec<u8>,
    pub(crate) bytes: Bytes,
}

impl Raw {
    /// Reads a row of [`SELECT`].
    pub(crate) fn read(db: &Connection, row: &Row<'_>) -> Result<Self, Failure> {
        let id = row.get(0)?;
        let spilled: i64 = row.get(3)?;
        let hash = |column, what| hash_column(row, column).ok_or_else(|| damaged(id, what));
        let once = row.get_ref(6)?.as_blob_or_null().ok().flatten();
        Ok(Self {
            id,
            count: row.get(1)?,
            format: row.get(2)?,
            prev: hash(4, "the hash before it is malformed")?,
            hash: hash(5, "its hash is malformed")?,
            once: once.unwrap_or_default().to_vec(),
            bytes: if spilled == 0 {
                Bytes::copy_from_slice(row.get_ref(7)?.as_blob().unwrap_or_default())
            } else {
                unspill(db, id, spilled)?
            },
        })
    }

    /// Checks its hash and takes it apart.
    pub(crate) fn open(&self) -> Result<Run, Failure> {
        let Self {
            id,
            count,
            format,
            prev,
            hash,
            once,
            bytes,
        } = self;
        open(*id, *count, *format, *prev, *hash, once, bytes).map_err(|what| damaged(*id, what))
    }
}

fn damaged(run: i64, what: &str) -> Failure {
    let (task, first) = unpack_run_id(run);
    Failure::Damaged(format!("task key {task}, entry {first}: {what}"))
}

fn unspill(db: &Connection, run: i64, count: i64) -> Result<Bytes, Failure> {
    // No reservation by `count`, which is not covered by the hash and may be damaged.
    let mut bytes = BytesMut::new();
    let mut statement = db.prepare_cached("SELECT bytes FROM chunks WHERE run = ?1 ORDER BY n")?;
    let mut rows = statement.query([run])?;
    let mut seen = 0;
    while let Some(row) = rows.next()? {
        bytes.extend_from_slice(row.get_ref(0)?.as_blob().unwrap_or_default());
        seen += 1;
    }
    if seen != count {
        let (task, first) = unpack_run_id(run);
        return Err(Failure::Damaged(format!(
            "task key {task}, entry {first}: {seen} of {count} chunks are there"
        )));
    }
    Ok(bytes.freeze())
}

/// A hash in a column, if it has the length of one.
pub(crate) fn hash_column(row: &Row<'_>, column: usize) -> Option<Hash> {
    row.get_ref(column).ok()?.as_blob().ok()?.try_into().ok()
}
