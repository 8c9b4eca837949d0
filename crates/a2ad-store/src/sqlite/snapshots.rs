//! The rows of snapshots, checked when they are read.

use a2ad_core::keys::{Number, TaskKey};
use a2ad_core::task::Snapshot;
use bytes::Bytes;
use metrics::counter;
use rusqlite::{Connection, OptionalExtension};

use crate::hash::hash_bytes;
use crate::metric;
use crate::snapshot::{NO_ARTIFACTS, hash_body};
use crate::sqlite::fail::Failure;
use crate::sqlite::runs::hash_column;

/// A snapshot row.
pub(crate) enum Stored {
    /// As it was written.
    Sound(Snapshot),
    /// Not as it was written.
    Damaged,
}

/// Keeps `snapshot` as the task's newest, unless a newer one is there.
pub(crate) fn write(db: &Connection, task: TaskKey, snapshot: &Snapshot) -> Result<(), Failure> {
    let artifacts_hash = hash_bytes(&snapshot.artifacts);
    let hash = hash_body(task, snapshot, artifacts_hash);
    db.prepare_cached(
        "INSERT INTO snapshots (task, version, hash, artifacts_hash, marks, body, artifacts)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
         ON CONFLICT (task) DO UPDATE SET
             version = excluded.version, hash = excluded.hash,
             artifacts_hash = excluded.artifacts_hash, marks = excluded.marks,
             body = excluded.body, artifacts = excluded.artifacts
         WHERE excluded.version >= snapshots.version",
    )?
    .execute((
        task.0,
        snapshot.version.0 as i64,
        hash,
        artifacts_hash,
        &snapshot.marks[..],
        &snapshot.body[..],
        &snapshot.artifacts[..],
    ))?;
    Ok(())
}

/// The task's newest snapshot, if there is a sound one.
pub(crate) fn find(
    db: &Connection,
    task: TaskKey,
    artifacts: bool,
) -> Result<Option<Snapshot>, Failure> {
    match read(db, task, artifacts)? {
        None => Ok(None),
        Some(Stored::Sound(snapshot)) => Ok(Some(snapshot)),
        Some(Stored::Damaged) => {
            tracing::warn!(key = task.0, "a snapshot is damaged and was passed over");
            counter!(metric::SNAPSHOTS_DAMAGED).increment(1);
            Ok(None)
        }
    }
}

/// The task's newest snapshot, checked.
pub(crate) fn read(
    db: &Connection,
    task: TaskKey,
    artifacts: bool,
) -> Result<Option<Stored>, Failure> {
    // Two texts rather than a condition: a column that is not selected is not read.
    let sql = if artifacts {
        "SELECT version, hash, artifacts_hash, marks, body, artifacts
         FROM snapshots WHERE task = ?1"
    } else {
        "SELECT version, hash, artifacts_hash, marks, body FROM snapshots WHERE task = ?1"
    };
    let row = db
        .prepare_cached(sql)?
        .query_row([task.0], |row| {
            let bytes = |column| {
                row.get_ref(column)
                    .map(|value| Bytes::copy_from_slice(value.as_blob().unwrap_or_default()))
            };
            let snapshot = Snapshot {
                version: Number(row.get::<_, i64>(0)?.unsigned_abs()),
                marks: bytes(3)?,
                body: bytes(4)?,
                artifacts: if artifacts { bytes(5)? } else { NO_ARTIFACTS },
            };
            Ok((snapshot, hash_column(row, 1), hash_column(row, 2)))
        })
        .optional()?;
    let Some((snapshot, Some(hash), Some(artifacts_hash))) = row else {
        return Ok(row.map(|_| Stored::Damaged));
    };
    let sound = hash_body(task, &snapshot, artifacts_hash) == hash
        && (!artifacts || hash_bytes(&snapshot.artifacts) == artifacts_hash);
    Ok(Some(if sound {
        Stored::Sound(snapshot)
    } else {
        Stored::Damaged
    }))
}
