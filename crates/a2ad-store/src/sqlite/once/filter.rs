//! Which tags are certainly nowhere, without looking.
//!
//! Nearly every send brings a key that nobody has seen, and looking for it would mean to read a
//! page at random each time. Sixteen bits of each tag in memory answer all but one in hundreds.

use std::ops::RangeInclusive;

use rusqlite::Connection;

use super::bucket::{Bucket, Pair};
use super::waiting::Waiting;
use super::{SLOTS, slot, slot_tags};
use crate::sqlite::fail::Failure;

/// At most so many tags are remembered (two bytes each); when there are more, all are forgotten
/// and learned anew, slot by slot.
const TAGS_MAX: usize = 16 << 20;

/// Some bits of every tag that waits or is in a bucket, by slots; `None` for a slot that was not
/// asked about since the start.
#[derive(Debug)]
pub(super) struct Filters {
    slots: Vec<Option<Slot>>,
    tags: usize,
}

#[derive(Clone, Debug, Default)]
struct Slot {
    bits: Vec<u16>,
    /// Tags that are gone leave their bits behind; when there are so many, the slot is learned anew.
    bits_max: usize,
}

impl Filters {
    pub(super) fn new() -> Self {
        Self {
            slots: vec![None; SLOTS],
            tags: 0,
        }
    }

    /// Whether this tag may be anywhere.
    pub(super) fn may_have(
        &mut self,
        db: &Connection,
        waiting: &Waiting,
        tag: i64,
    ) -> Result<bool, Failure> {
        if self.slots[slot(tag)].is_none() {
            self.learn(db, waiting, tag)?;
        }
        let known = self.slots[slot(tag)].as_ref();
        Ok(known.is_none_or(|known| known.bits.contains(&low(tag))))
    }

    /// Learns the slot of this tag, and others that are in the same bucket as a whole.
    fn learn(&mut self, db: &Connection, waiting: &Waiting, tag: i64) -> Result<(), Failure> {
        if self.tags > TAGS_MAX {
            *self = Self::new();
        }
        let mut bucket = Bucket::read(db, tag)?;
        let slots = whole_slots(&bucket);
        let slots = if slots.contains(&slot(tag)) {
            slots
        } else {
            slot(tag)..=slot(tag)
        };
        let (first, last) = (slot_tags(*slots.start()).0, slot_tags(*slots.end()).1);
        let mut pairs = waiting.between(first, last);
        if bucket.first > first {
            bucket = Bucket::read(db, first)?;
        }
        loop {
            let here = bucket.pairs.iter();
            pairs.extend(here.filter(|pair| (first..=last).contains(&pair.tag)));
            if bucket.last >= last {
                break;
            }
            bucket = Bucket::read(db, bucket.last + 1)?;
        }
        for place in &mut self.slots[slots.clone()] {
            let old = place.replace(Slot::default());
            self.tags -= old.map_or(0, |old| old.bits.len());
        }
        self.tags += pairs.len();
        for pair in pairs {
            if let Some(known) = &mut self.slots[slot(pair.tag)] {
                known.bits.push(low(pair.tag));
            }
        }
        for known in self.slots[slots].iter_mut().flatten() {
            known.bits_max = known.bits.len() * 2 + 64;
        }
        Ok(())
    }

    /// Remembers a pair that waits from now on.
    pub(super) fn add(&mut self, pair: Pair) {
        let place = &mut self.slots[slot(pair.tag)];
        let Some(known) = place else { return };
        if known.bits.len() < known.bits_max {
            known.bits.push(low(pair.tag));
            self.tags += 1;
        } else {
            self.tags -= known.bits.len();
            *place = None;
        }
    }
}

/// The slots that a bucket covers from end to end; there may be none.
fn whole_slots(bucket: &Bucket) -> RangeInclusive<usize> {
    let (from, to) = (slot(bucket.first), slot(bucket.last));
    let from = if slot_tags(from).0 < bucket.first {
        from + 1
    } else {
        from
    };
    if slot_tags(to).1 <= bucket.last {
        from..=to
    } else if to > from {
        from..=to - 1
    } else {
        RangeInclusive::new(1, 0)
    }
}

/// Slots are cut by the upper bits, so the lower ones tell their tags apart.
fn low(tag: i64) -> u16 {
    tag as u16
}
