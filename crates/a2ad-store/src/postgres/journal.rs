//! Runs and snapshots as they come out of the database: checked, and put together.

use a2ad_core::keys::{Number, TaskKey};
use a2ad_core::task::{Entry, Snapshot};
use bytes::Bytes;
use metrics::counter;
use tokio_postgres::Row;

use super::fail::Failure;
use super::session::Sixteen;
use crate::hash::{Hash, hash_bytes};
use crate::snapshot::{NO_ARTIFACTS, hash_body};
use crate::{metric, run};

/// Entries that are put together of runs, each of which has to follow the one before.
pub(super) struct Journal {
    task: TaskKey,
    after: Number,
    bytes_max: usize,
    size: usize,
    before: Option<(u64, Hash)>,
    pub(super) entries: Vec<Entry>,
}

impl Journal {
    pub(super) const fn new(task: TaskKey, after: Number, bytes_max: usize) -> Self {
        Self {
            task,
            after,
            bytes_max,
            size: 0,
            before: None,
            entries: Vec::new(),
        }
    }

    /// The number of the entry that comes next.
    pub(super) fn next(&self) -> u64 {
        self.entries.last().map_or(self.after, |it| it.number).0 + 1
    }

    /// Adds the entries of a run that are wanted; `false` if there is no room for more.
    pub(super) fn add(&mut self, mut run: run::Run) -> Result<bool, Failure> {
        let follows = match self.before {
            // The same one again, at the head of the next page.
            Some((last, hash)) if run.last() == last => run.hash == hash,
            Some((last, hash)) => run.first == last + 1 && run.prev == hash,
            None => run.first <= self.after.0 + 1,
        };
        if !follows {
            return Err(Failure::Damaged(format!(
                "task key {}, entry {}: what stands before it is missing or changed",
                self.task.0, run.first
            )));
        }
        let next = self.next();
        self.before = Some((run.last(), run.hash));
        for entry in std::mem::take(&mut run.entries) {
            if entry.number.0 < next {
                continue;
            }
            if !self.entries.is_empty() && self.size + entry.bytes.len() > self.bytes_max {
                return Ok(false);
            }
            self.size += entry.bytes.len();
            self.entries.push(entry);
        }
        Ok(true)
    }
}

/// A run in a row of its own.
pub(super) fn run_of(task: TaskKey, row: &Row) -> Result<run::Run, Failure> {
    let prev: Sixteen = row.try_get(3)?;
    let hash: Sixteen = row.try_get(4)?;
    let once: Option<&[u8]> = row.try_get(5)?;
    let bytes = Bytes::copy_from_slice(row.try_get(6)?);
    let id: i64 = row.try_get(0)?;
    opened(
        task,
        id,
        row.try_get(1)?,
        row.try_get(2)?,
        (prev, hash),
        once,
        &bytes,
    )
}

/// Runs in arrays, from this column on; none if the first array is missing.
pub(super) fn runs_of(task: TaskKey, row: &Row, at: usize) -> Result<Vec<run::Run>, Failure> {
    let Some(ids) = row.try_get::<_, Option<Vec<i64>>>(at)? else {
        return Ok(Vec::new());
    };
    let counts: Vec<i64> = row.try_get(at + 1)?;
    let formats: Vec<i16> = row.try_get(at + 2)?;
    let prevs: Vec<Sixteen> = row.try_get(at + 3)?;
    let hashes: Vec<Sixteen> = row.try_get(at + 4)?;
    let once: Vec<Option<&[u8]>> = row.try_get(at + 5)?;
    let bytes: Vec<&[u8]> = row.try_get(at + 6)?;
    ids.into_iter()
        .zip(counts)
        .zip(formats)
        .zip(prevs.into_iter().zip(hashes))
        .zip(once.into_iter().zip(bytes))
        .map(|((((id, count), format), hashes), (once, bytes))| {
            let bytes = Bytes::copy_from_slice(bytes);
            opened(task, id, count, format, hashes, once, &bytes)
        })
        .collect()
}

fn opened(
    task: TaskKey,
    id: i64,
    count: i64,
    format: i16,
    (prev, hash): (Sixteen, Sixteen),
    once: Option<&[u8]>,
    bytes: &Bytes,
) -> Result<run::Run, Failure> {
    let format = u8::try_from(format).unwrap_or(u8::MAX);
    let once = once.unwrap_or_default();
    run::open(id, count, format, prev.0, hash.0, once, bytes).map_err(|what| {
        let (_, first) = run::unpack_run_id(id);
        Failure::Damaged(format!("task key {}, entry {first}: {what}", task.0))
    })
}

/// The snapshot in the columns from `at` on, if there is a sound one.
pub(super) fn snapshot_of(
    task: TaskKey,
    row: &Row,
    at: usize,
    artifacts: bool,
) -> Result<Option<Snapshot>, Failure> {
    let Some(version) = row.try_get::<_, Option<i64>>(at)? else {
        return Ok(None);
    };
    let hash: Sixteen = row.try_get(at + 1)?;
    let artifacts_hash: Sixteen = row.try_get(at + 2)?;
    let bytes = |column| row.try_get::<_, &[u8]>(column).map(Bytes::copy_from_slice);
    let snapshot = Snapshot {
        version: Number(version.unsigned_abs()),
        marks: bytes(at + 3)?,
        body: bytes(at + 4)?,
        artifacts: if artifacts {
            bytes(at + 5)?
        } else {
            NO_ARTIFACTS
        },
    };
    let sound = hash_body(task, &snapshot, artifacts_hash.0) == hash.0
        && (!artifacts || hash_bytes(&snapshot.artifacts) == artifacts_hash.0);
    if !sound {
        tracing::warn!(key = task.0, "a snapshot is damaged and was passed over");
        counter!(metric::SNAPSHOTS_DAMAGED).increment(1);
    }
    Ok(sound.then_some(snapshot))
}
