//! Request keys, by which a repeated request is recognised for as long as its task is kept.
//!
//! What was asked stands with the message, in its run (`runs.once`), and goes with it. Here is the
//! way to it: a tag of eight bytes, taken from the key, and the place of the message. Keys are
//! random, and an index on random values costs a page per row once it is large. So the pairs of a
//! commit are appended to a log, all in one row, and kept in memory; from there they go to buckets
//! in the order of their tags, like passengers of a lift that never turns around: each commit
//! rewrites the next few buckets with all that waits for them. The more buckets there are, the
//! more pairs wait, and a rewritten page always serves about [`PAIRS_PER_BUCKET`] of them. ADR 0007
//! has the measurements.
//!
//! A pair only says where to look: what counts is the key beside the message. So a pair whose
//! task is gone is no hit, and does no harm until it is swept away.

mod bucket;
mod filter;

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use a2ad_core::keys::{Number, TaskKey};
use a2ad_core::store::{Once, OnceHit};
use rusqlite::{Connection, OptionalExtension};

use crate::fail::Failure;
use crate::run::{run_id, task_runs, unpack_run_id};
pub(crate) use bucket::{Bucket, Pair, decode};
use filter::Filters;

/// A small database needs no buckets at all.
const WAITING_MIN: usize = 16 << 10;
/// One bucket is rewritten for so many new pairs.
const PAIRS_PER_BUCKET: usize = 16;
/// So many rows of the log are deleted in one commit, which adds one.
const LOG_ROWS_PER_COMMIT: i64 = 4;
/// For each deleted task so many pairs are looked at whether they lead anywhere, so that at most
/// about a third of all pairs are stale.
const SWEPT_PER_TASK: usize = 4;

/// The pairs that are in no bucket yet, for the writer and for readers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting(Arc<RwLock<BTreeSet<Pair>>>);

impl Waiting {
    fn read(&self) -> RwLockReadGuard<'_, BTreeSet<Pair>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeSet<Pair>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The places of a key. Readers ask before their transaction begins: a pair that is moved
    /// after that is still here, and one that was moved before is in a bucket they can see.
    pub(crate) fn places(&self, key: &[u8; 16]) -> Vec<i64> {
        let tag = tag(key);
        let waiting = self.read();
        waiting
            .range(range(tag, tag))
            .map(|pair| pair.place)
            .collect()
    }
}

/// How the writer finds and keeps request keys.
#[derive(Debug)]
pub(crate) struct Index {
    waiting: Waiting,
    /// While fewer wait, none is moved.
    pub(crate) waiting_min: usize,
    filters: Filters,
    /// The tag at which the next bucket is looked for.
    cursor: i64,
    log: Log,
    /// The tag at which the next sweep goes on.
    swept: i64,
}

/// Which rows of the log there are, and which are still needed.
#[derive(Clone, Copy, Debug)]
struct Log {
    /// The oldest row.
    first: i64,
    /// The row of the next commit.
    next: i64,
    /// All pairs in rows below this one are in buckets.
    done: i64,
    /// So are those below this one when the cursor has come round.
    pass: i64,
}

/// What a transaction did to the index; it counts when the transaction is committed.
#[derive(Debug)]
pub(crate) struct Moved {
    added: Vec<Pair>,
    /// The tags that went to buckets.
    taken: Vec<(i64, i64)>,
    cursor: i64,
    log: Log,
}

impl Index {
    /// Reads the pairs that are in no bucket yet. Some may have been moved already, since a row of
    /// the log stays until all of its pairs are; moving them again changes nothing.
    pub(crate) fn open(db: &Connection) -> Result<Self, Failure> {
        let mut statement = db.prepare_cached("SELECT seq, pairs FROM once_log ORDER BY seq")?;
        let mut rows = statement.query([])?;
        let mut waiting = Vec::new();
        let mut first = None;
        let mut next = 1;
        while let Some(row) = rows.next()? {
            let seq: i64 = row.get(0)?;
            first.get_or_insert(seq);
            next = seq + 1;
            let pairs = decode(row.get_ref(1)?.as_blob().unwrap_or_default());
            let damaged = || Failure::Damaged(format!("row {seq} of request keys is cut short"));
            waiting.extend(pairs.ok_or_else(damaged)?);
        }
        let first = first.unwrap_or(next);
        Ok(Self {
            waiting: Waiting(Arc::new(RwLock::new(waiting.into_iter().collect()))),
            waiting_min: WAITING_MIN,
            filters: Filters::default(),
            cursor: i64::MIN,
            log: Log {
                first,
                next,
                done: first,
                pass: next,
            },
            swept: i64::MIN,
        })
    }

    /// What waits to be moved, for readers.
    pub(crate) fn waiting(&self) -> Waiting {
        self.waiting.clone()
    }

    /// The request that had `key` in this scope.
    pub(crate) fn find(
        &mut self,
        db: &Connection,
        scope: i64,
        key: &[u8; 16],
    ) -> Result<Option<OnceHit>, Failure> {
        for place in self.waiting.places(key) {
            if let Some(hit) = check(db, scope, key, place)? {
                return Ok(Some(hit));
            }
        }
        let tag = tag(key);
        match self.filters.may_have(tag) {
            Some(false) => Ok(None),
            Some(true) => find_in_bucket(db, scope, key, &Bucket::read(db, tag)?),
            None => {
                let bucket = Bucket::read(db, tag)?;
                self.filters.learn(&bucket);
                find_in_bucket(db, scope, key, &bucket)
            }
        }
    }

    /// Writes the new pairs to the log and moves some of those that wait to their buckets.
    pub(crate) fn write(&mut self, db: &Connection, added: Vec<Pair>) -> Result<Moved, Failure> {
        let mut moved = Moved {
            added,
            taken: Vec::new(),
            cursor: self.cursor,
            log: self.log,
        };
        if moved.added.is_empty() {
            return Ok(moved);
        }
        let log = &mut moved.log;
        db.prepare_cached("INSERT INTO once_log (seq, pairs) VALUES (?1, ?2)")?
            .execute((log.next, bucket::encode(&moved.added)))?;
        log.next += 1;
        if log.first < log.done {
            let end = log.done.min(log.first + LOG_ROWS_PER_COMMIT);
            db.prepare_cached("DELETE FROM once_log WHERE seq >= ?1 AND seq < ?2")?
                .execute((log.first, end))?;
            log.first = end;
        }
        let waiting = self.waiting.read();
        if waiting.len() < self.waiting_min {
            return Ok(moved);
        }
        for _ in 0..moved.added.len().div_ceil(PAIRS_PER_BUCKET) {
            let mut bucket = Bucket::read(db, moved.cursor)?;
            let (first, last) = (bucket.first, bucket.last);
            let before = bucket.pairs.len();
            bucket.merge(waiting.range(range(first, last)).copied());
            if bucket.pairs.len() > before {
                for part in bucket.write(db)? {
                    self.filters.learn(&part);
                }
            }
            moved.taken.push((first, last));
            if last == i64::MAX {
                moved.cursor = i64::MIN;
                moved.log.done = moved.log.pass;
                // This commit's own pairs do not wait yet.
                moved.log.pass = self.log.next;
                break;
            }
            moved.cursor = last + 1;
        }
        Ok(moved)
    }

    /// Takes in what a committed transaction did.
    pub(crate) fn committed(&mut self, moved: Moved) {
        self.cursor = moved.cursor;
        self.log = moved.log;
        let mut waiting = self.waiting.write();
        for (first, last) in moved.taken {
            waiting
                .extract_if(range(first, last), |_| true)
                .for_each(drop);
        }
        waiting.extend(moved.added);
    }

    /// Forgets what a transaction that was rolled back may have brought.
    pub(crate) fn rolled_back(&mut self) {
        self.filters = Filters::default();
    }

    /// Removes pairs whose tasks are gone, from a few buckets, now that `tasks` were deleted.
    pub(crate) fn sweep(&mut self, db: &Connection, tasks: usize) -> Result<(), Failure> {
        let mut exists = db.prepare_cached("SELECT 1 FROM tasks WHERE key = ?1")?;
        let mut left = tasks * SWEPT_PER_TASK;
        while left > 0 {
            let mut bucket = Bucket::read(db, self.swept)?;
            let before = bucket.pairs.len();
            let mut kept = Vec::with_capacity(before);
            for pair in &bucket.pairs {
                if exists.exists([unpack_run_id(pair.place).0])? {
                    kept.push(*pair);
                }
            }
            let last = bucket.last;
            if kept.is_empty() {
                bucket.delete(db)?;
            } else if kept.len() < before {
                bucket.pairs = kept;
                bucket.write(db)?;
            }
            if last == i64::MAX {
                // Once round is enough, however few there are.
                self.swept = i64::MIN;
                return Ok(());
            }
            self.swept = last + 1;
            left = left.saturating_sub(before.max(1));
        }
        Ok(())
    }
}

/// All pairs with these tags.
fn range(first: i64, last: i64) -> std::ops::RangeInclusive<Pair> {
    Pair {
        tag: first,
        place: i64::MIN,
    }..=Pair {
        tag: last,
        place: i64::MAX,
    }
}

/// The request that had `key` in this scope, for a reader: `waiting` are the places that
/// [`Waiting::places`] gave before the transaction began.
pub(crate) fn find(
    db: &Connection,
    waiting: &[i64],
    scope: i64,
    key: &[u8; 16],
) -> Result<Option<OnceHit>, Failure> {
    for place in waiting {
        if let Some(hit) = check(db, scope, key, *place)? {
            return Ok(Some(hit));
        }
    }
    find_in_bucket(db, scope, key, &Bucket::read(db, tag(key))?)
}

fn find_in_bucket(
    db: &Connection,
    scope: i64,
    key: &[u8; 16],
    bucket: &Bucket,
) -> Result<Option<OnceHit>, Failure> {
    for place in bucket.places(tag(key)) {
        if let Some(hit) = check(db, scope, key, place)? {
            return Ok(Some(hit));
        }
    }
    Ok(None)
}

/// Whether the request at `place` is there, and has this key in this scope.
fn check(
    db: &Connection,
    scope: i64,
    key: &[u8; 16],
    place: i64,
) -> Result<Option<OnceHit>, Failure> {
    let (task, number) = unpack_run_id(place);
    // The newest run that starts at or before the entry holds it.
    let found: Option<Vec<u8>> = db
        .prepare_cached(
            "SELECT once FROM runs WHERE id = (SELECT max(id) FROM runs WHERE id BETWEEN ?1 AND ?2)
                 AND EXISTS (SELECT 1 FROM tasks WHERE key = ?3 AND scope = ?4)",
        )?
        .query_row((task_runs(task).0, place, task, scope), |row| row.get(0))
        .optional()?
        .flatten();
    let records = found.unwrap_or_default();
    let hit = unpack(&records).find(|once| once.number.0 == number && once.key == *key);
    Ok(hit.map(|once| OnceHit {
        task: TaskKey(task),
        number: once.number,
        body: once.body,
    }))
}

/// The pair that leads to a request.
pub(crate) fn pair(task: TaskKey, once: &Once) -> Pair {
    Pair {
        tag: tag(&once.key),
        place: run_id(task.0, once.number.0),
    }
}

/// Keys are hashes already, of owner and agent too, made with a secret: half of one is as good.
fn tag(key: &[u8; 16]) -> i64 {
    u128::from_le_bytes(*key) as i64
}

const RECORD_BYTES: usize = 36;

/// Adds a request to those of its run, which are one column: number, key, body; and so on.
pub(crate) fn pack(once: &Once, bytes: &mut Vec<u8>) {
    bytes.reserve_exact(RECORD_BYTES);
    // Numbers have 22 bits.
    bytes.extend_from_slice(&(once.number.0 as u32).to_le_bytes());
    bytes.extend_from_slice(&once.key);
    bytes.extend_from_slice(&once.body);
}

/// The reverse of [`pack`].
pub(crate) fn unpack(bytes: &[u8]) -> impl Iterator<Item = Once> + '_ {
    let (records, _) = bytes.as_chunks::<RECORD_BYTES>();
    records.iter().map(|record| {
        let (number, rest) = record.split_at(4);
        let (key, body) = rest.split_at(16);
        let mut once = Once {
            key: [0; 16],
            body: [0; 16],
            number: Number::ZERO,
        };
        let mut low = [0; 4];
        low.copy_from_slice(number);
        once.number = Number(u64::from(u32::from_le_bytes(low)));
        once.key.copy_from_slice(key);
        once.body.copy_from_slice(body);
        once
    })
}
