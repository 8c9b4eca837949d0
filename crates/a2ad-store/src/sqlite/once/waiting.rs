//! The pairs that are in no bucket yet, for the writer and for readers.

use std::sync::{Arc, PoisonError, RwLock};

use super::bucket::Pair;
use super::{SLOTS, slot};

/// Shared by the writer, which alone changes it, and by readers.
#[derive(Clone, Debug)]
pub(crate) struct Waiting(Arc<RwLock<Slots>>);

/// By the upper bits of the tag: a look touches one place in memory, where a tree would touch one
/// for each of its levels.
#[derive(Debug)]
struct Slots {
    slots: Vec<Vec<Pair>>,
    count: usize,
}

impl Waiting {
    pub(super) fn new(pairs: impl IntoIterator<Item = Pair>) -> Self {
        let waiting = Self(Arc::new(RwLock::new(Slots {
            slots: vec![Vec::new(); SLOTS],
            count: 0,
        })));
        waiting.change(&[], pairs);
        waiting
    }

    /// The places of a tag. Readers ask before their transaction begins: a pair that is moved
    /// after that is still here, and one that was moved before is in a bucket they can see.
    pub(super) fn places(&self, tag: i64) -> Vec<i64> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let pairs = all.slots[slot(tag)].iter();
        pairs
            .filter(|pair| pair.tag == tag)
            .map(|pair| pair.place)
            .collect()
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.count
    }

    /// Those with tags from `first` to `last`, sorted, none twice.
    pub(super) fn between(&self, first: i64, last: i64) -> Vec<Pair> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let slots = &all.slots[slot(first)..=slot(last)];
        let mut found: Vec<Pair> = slots
            .iter()
            .flatten()
            .filter(|pair| (first..=last).contains(&pair.tag))
            .copied()
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Removes those with tags in `taken`, then adds others.
    pub(super) fn change(&self, taken: &[(i64, i64)], added: impl IntoIterator<Item = Pair>) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let all = &mut *all;
        for (first, last) in taken {
            for pairs in &mut all.slots[slot(*first)..=slot(*last)] {
                all.count -= pairs.len();
                pairs.retain(|pair| !(first..=last).contains(&&pair.tag));
                all.count += pairs.len();
            }
        }
        for pair in added {
            all.slots[slot(pair.tag)].push(pair);
            all.count += 1;
        }
    }
}
