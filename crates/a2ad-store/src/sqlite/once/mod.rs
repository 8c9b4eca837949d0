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
mod waiting;

use a2ad_core::keys::TaskKey;
use a2ad_core::store::{Once, OnceHit};
use rusqlite::{Connection, OptionalExtension};

pub(crate) use crate::request::unpack;
use crate::run::{run_id, task_runs, unpack_run_id};
use crate::sqlite::fail::Failure;
pub(crate) use bucket::{Bucket, Pair, decode};
use filter::Filters;
pub(crate) use waiting::Waiting;

/// A small database needs no buckets at all.
const WAITING_MIN: usize = 16 << 10;
/// One bucket is rewritten for so many new pairs.
const PAIRS_PER_BUCKET: usize = 16;
/// So many rows of the log are deleted in one commit, which adds one.
const LOG_ROWS_PER_COMMIT: i64 = 4;
/// For each deleted task so many pairs are looked at whether they lead anywhere, so that at most
/// about a third of all pairs are stale.
const SWEPT_PER_TASK: usize = 4;

/// How many parts the tags are cut into where they are kept in memory.
const SLOTS: usize = 1 << SLOT_BITS;
const SLOT_BITS: u32 = 12;

/// The slot of a tag. Slots are in the order of tags.
fn slot(tag: i64) -> usize {
    let from_zero = tag.cast_unsigned() ^ (1 << 63);
    (from_zero >> (64 - SLOT_BITS)) as usize
}

/// The first and the last tag of a slot.
fn slot_tags(slot: usize) -> (i64, i64) {
    let from_zero = (slot as u64) << (64 - SLOT_BITS);
    let first = (from_zero ^ (1 << 63)).cast_signed();
    (first, first | (i64::MAX >> (SLOT_BITS - 1)))
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
            waiting: Waiting::new(waiting),
            waiting_min: WAITING_MIN,
            filters: Filters::new(),
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
        if !self.filters.may_have(db, &self.waiting, tag(key))? {
            return Ok(None);
        }
        find(db, &self.waiting.places(tag(key)), scope, key)
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
        if self.waiting.count() < self.waiting_min {
            return Ok(moved);
        }
        for _ in 0..moved.added.len().div_ceil(PAIRS_PER_BUCKET) {
            let mut bucket = Bucket::read(db, moved.cursor)?;
            let (first, last) = (bucket.first, bucket.last);
            let waiting = self.waiting.between(first, last);
            if !waiting.is_empty() {
                bucket.merge(&waiting);
                bucket.write(db)?;
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
        for pair in &moved.added {
            self.filters.add(*pair);
        }
        self.waiting.change(&moved.taken, moved.added);
    }

    /// Forgets what a transaction that was rolled back may have brought.
    pub(crate) fn rolled_back(&mut self) {
        self.filters = Filters::new();
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

/// The places that wait under this key; see [`Waiting::places`].
pub(crate) fn waiting_places(waiting: &Waiting, key: &[u8; 16]) -> Vec<i64> {
    waiting.places(tag(key))
}

/// The request that had `key` in this scope; `waiting` are the places that wait under it.
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
    for place in Bucket::read(db, tag(key))?.places(tag(key)) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_in_the_order_of_tags_and_leave_none_out() {
        assert_eq!(slot_tags(0).0, i64::MIN);
        assert_eq!(slot_tags(SLOTS - 1).1, i64::MAX);
        for at in 0..SLOTS {
            let (first, last) = slot_tags(at);
            assert_eq!((slot(first), slot(last)), (at, at));
            assert!(at == 0 || slot_tags(at - 1).1 + 1 == first);
        }
    }
}
