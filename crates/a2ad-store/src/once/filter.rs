//! What buckets certainly do not have, without reading them.
//!
//! Nearly every send brings a key that nobody has seen, and looking for it would mean to read a
//! page at random each time. Sixteen bits of each tag in memory answer all but one in two hundred.

use std::collections::BTreeMap;

use super::bucket::Bucket;

/// At most so many tags are remembered (two bytes each); when there are more, all are forgotten
/// and learned anew, bucket by bucket.
const TAGS_MAX: usize = 16 << 20;

/// The buckets that were read or written since the start.
#[derive(Debug, Default)]
pub(super) struct Filters {
    /// By the first tag of the bucket: the last one, and some bits of all that are there.
    known: BTreeMap<i64, (i64, Box<[u16]>)>,
    tags: usize,
}

impl Filters {
    /// Whether a bucket has this tag; `None` if that bucket is not known.
    pub(super) fn may_have(&self, tag: i64) -> Option<bool> {
        let (_, (last, bits)) = self.known.range(..=tag).next_back()?;
        (tag <= *last).then(|| bits.contains(&low(tag)))
    }

    /// Remembers a bucket as it is now.
    pub(super) fn learn(&mut self, bucket: &Bucket) {
        if self.tags > TAGS_MAX {
            *self = Self::default();
        }
        // What was there before may have been cut otherwise.
        let old = self
            .known
            .extract_if(bucket.first..=bucket.last, |_, _| true);
        self.tags -= old.map(|(_, (_, bits))| bits.len()).sum::<usize>();
        let bits: Box<[u16]> = bucket.pairs.iter().map(|pair| low(pair.tag)).collect();
        self.tags += bits.len();
        self.known.insert(bucket.first, (bucket.last, bits));
    }
}

/// Buckets are cut by the upper bits, so the lower ones tell their tags apart.
fn low(tag: i64) -> u16 {
    tag as u16
}
