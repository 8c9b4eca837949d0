//! How entries are laid out: a run is the consecutive entries that one commit gave to one task.
//!
//! The bytes of a run are, for each entry, its length (four bytes, little end first), its shape
//! (one byte) and its bytes. A run's hash covers the hash of the run before it, so that a changed,
//! missing or reordered run is found; and the requests that came with the run. No database notices a flipped bit in a value by
//! itself.

use a2ad_core::keys::{Number, TaskKey};
use a2ad_core::store::Once;
use a2ad_core::task::{Entry, FORMAT, Shape};
use bytes::{BufMut, Bytes};

use crate::hash::{Hash, hash_bytes, hash_parts};
use crate::request;

/// The hash before a task's first run.
pub(crate) const NO_HASH: Hash = [0; 16];

/// Entry numbers have 22 bits (journals end at 100,000), task keys 41.
const NUMBER_BITS: u32 = 22;
const NUMBER_MASK: i64 = (1 << NUMBER_BITS) - 1;

/// The largest number an entry can have.
pub(crate) const NUMBER_MAX: u64 = NUMBER_MASK as u64;

/// The row id of the run that starts with entry `first`.
pub(crate) const fn run_id(task: i64, first: u64) -> i64 {
    (task << NUMBER_BITS) | first as i64
}

/// The task and the first entry's number in a row id.
pub(crate) const fn unpack_run_id(id: i64) -> (i64, u64) {
    (id >> NUMBER_BITS, (id & NUMBER_MASK) as u64)
}

/// The first and last row id that runs of `task` can have.
pub(crate) const fn task_runs(task: i64) -> (i64, i64) {
    (run_id(task, 0), run_id(task, NUMBER_MASK as u64))
}

/// A run as it was read, its hash already checked.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) first: u64,
    pub(crate) count: u64,
    pub(crate) prev: Hash,
    pub(crate) hash: Hash,
    /// The requests that brought its messages, as [`request::pack`] has them.
    pub(crate) once: Vec<u8>,
    pub(crate) entries: Vec<Entry>,
}

impl Run {
    /// The number of its last entry.
    pub(crate) const fn last(&self) -> u64 {
        self.first + self.count - 1
    }
}

/// Consecutive entries of a task that are about to become a run, and the requests that brought
/// them.
#[derive(Debug, Default)]
pub(crate) struct NewRun {
    first: u64,
    count: u64,
    bytes: Vec<u8>,
    once: Vec<u8>,
}

impl NewRun {
    /// Adds the entries that come next.
    pub(crate) fn extend(&mut self, entries: &[Entry]) {
        if let (0, Some(entry)) = (self.count, entries.first()) {
            self.first = entry.number.0;
        }
        self.count += entries.len() as u64;
        let size = entries.iter().map(|entry| entry.bytes.len() + 5).sum();
        self.bytes.reserve(size);
        for entry in entries {
            self.bytes.put_u32_le(entry.bytes.len() as u32);
            self.bytes.put_u8(entry.shape.to_byte());
            self.bytes.put_slice(&entry.bytes);
        }
    }

    /// What it will be, after the run with hash `prev`: its row, and the hash that comes next.
    pub(crate) fn seal(&self, task: TaskKey, prev: Hash) -> Sealed<'_> {
        Sealed {
            id: run_id(task.0, self.first),
            count: self.count,
            hash: hash_run(
                prev,
                task.0,
                self.first,
                self.count,
                FORMAT,
                &self.bytes,
                &self.once,
            ),
            once: (!self.once.is_empty()).then_some(&self.once[..]),
            bytes: &self.bytes,
        }
    }

    /// Whether there is anything in it.
    pub(crate) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a request that brought one of the entries.
    pub(crate) fn request(&mut self, once: &Once) {
        request::pack(once, &mut self.once);
    }
}

/// A run with its hash, ready to become a row.
#[derive(Debug)]
pub(crate) struct Sealed<'a> {
    pub(crate) id: i64,
    pub(crate) count: u64,
    pub(crate) hash: Hash,
    pub(crate) once: Option<&'a [u8]>,
    pub(crate) bytes: &'a [u8],
}

/// Checks the hash of a run that was read and takes it apart; the error says what is wrong.
pub(crate) fn open(
    id: i64,
    count: i64,
    format: u8,
    prev: Hash,
    hash: Hash,
    once: &[u8],
    bytes: &Bytes,
) -> Result<Run, &'static str> {
    let (task, first) = unpack_run_id(id);
    let count = u64::try_from(count).unwrap_or_default();
    if hash_run(prev, task, first, count, format, bytes, once) != hash {
        return Err("the stored bytes do not match their hash");
    }
    if format != FORMAT {
        return Err("its format is unknown");
    }
    let entries = decode(first, count, bytes).ok_or("its bytes are cut short")?;
    Ok(Run {
        first,
        count,
        prev,
        hash,
        once: once.to_vec(),
        entries,
    })
}

fn decode(first: u64, count: u64, bytes: &Bytes) -> Option<Vec<Entry>> {
    // An entry takes five bytes at the least, so a damaged count reserves no more than was read.
    let most = bytes.len() / 5;
    let mut entries = Vec::with_capacity(most.min(usize::try_from(count).ok()?));
    let mut at = 0;
    while at < bytes.len() {
        let (head, _) = bytes.get(at..)?.split_first_chunk::<5>()?;
        let [a, b, c, d, shape] = *head;
        let from = at + 5;
        let to = from.checked_add(u32::from_le_bytes([a, b, c, d]) as usize)?;
        if to > bytes.len() {
            return None;
        }
        entries.push(Entry {
            number: Number(first + entries.len() as u64),
            shape: Shape::from_byte(shape),
            bytes: bytes.slice(from..to),
        });
        at = to;
    }
    (entries.len() as u64 == count).then_some(entries)
}

fn hash_run(
    prev: Hash,
    task: i64,
    first: u64,
    count: u64,
    format: u8,
    bytes: &[u8],
    once: &[u8],
) -> Hash {
    hash_parts(&[
        &prev,
        &task.to_le_bytes(),
        &first.to_le_bytes(),
        &count.to_le_bytes(),
        &[format],
        &hash_bytes(bytes),
        &hash_bytes(once),
    ])
}
