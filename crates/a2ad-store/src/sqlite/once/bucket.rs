//! Pairs of a tag and a place, sorted, as the bytes of one row.

use rusqlite::{Connection, OptionalExtension};

use crate::sqlite::fail::Failure;

/// A bucket with more pairs is split. So many still fit on one page of the database.
pub(super) const PAIRS_MAX: usize = 500;
/// How many pairs each part of a split bucket has at most: room for more before the next split.
const PAIRS_AFTER_SPLIT: usize = PAIRS_MAX * 3 / 4;

const PAIR_BYTES: usize = 16;

/// A tag, and where the request that has it stands: the row id of a run that would begin with the
/// request's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pair {
    pub(crate) tag: i64,
    pub(crate) place: i64,
}

/// All pairs with tags from `first` to `last`.
#[derive(Debug)]
pub(crate) struct Bucket {
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) pairs: Vec<Pair>,
}

impl Bucket {
    /// The bucket that has this tag, or would have it.
    pub(crate) fn read(db: &Connection, tag: i64) -> Result<Self, Failure> {
        let found = db
            .prepare_cached(
                "SELECT first, pairs FROM once WHERE first <= ?1 ORDER BY first DESC LIMIT 1",
            )?
            .query_row([tag], |row| {
                let pairs = decode(row.get_ref(1)?.as_blob().unwrap_or_default());
                Ok((row.get(0)?, pairs))
            })
            .optional()?;
        let next: Option<i64> = db
            .prepare_cached("SELECT min(first) FROM once WHERE first > ?1")?
            .query_row([tag], |row| row.get(0))?;
        let (first, pairs) = match found {
            Some((first, Some(pairs))) => (first, pairs),
            Some((first, None)) => {
                let what = format!("request keys from {first} on are cut short");
                return Err(Failure::Damaged(what));
            }
            None => (i64::MIN, Vec::new()),
        };
        Ok(Self {
            first,
            last: next.map_or(i64::MAX, |next| next.saturating_sub(1)),
            pairs,
        })
    }

    /// The places of this tag.
    pub(crate) fn places(&self, tag: i64) -> impl Iterator<Item = i64> + '_ {
        let from = self.pairs.partition_point(|pair| pair.tag < tag);
        self.pairs[from..]
            .iter()
            .take_while(move |pair| pair.tag == tag)
            .map(|pair| pair.place)
    }

    /// Adds pairs, which are sorted; one that is there already is not added again.
    pub(super) fn merge(&mut self, more: &[Pair]) {
        let mut all = Vec::with_capacity(self.pairs.len() + more.len());
        let mut rest = &self.pairs[..];
        for pair in more {
            let (smaller, others) = rest.split_at(rest.partition_point(|known| known < pair));
            all.extend_from_slice(smaller);
            rest = others;
            if rest.first() != Some(pair) {
                all.push(*pair);
            }
        }
        all.extend_from_slice(rest);
        self.pairs = all;
    }

    /// Writes the bucket, in several rows if it has grown too large.
    pub(super) fn write(self, db: &Connection) -> Result<(), Failure> {
        let mut replace =
            db.prepare_cached("INSERT OR REPLACE INTO once (first, pairs) VALUES (?1, ?2)")?;
        for part in self.split() {
            replace.execute((part.first, encode(&part.pairs)))?;
        }
        Ok(())
    }

    /// Removes the bucket's row; its tags belong to the bucket before it from now on.
    pub(super) fn delete(&self, db: &Connection) -> Result<(), Failure> {
        db.prepare_cached("DELETE FROM once WHERE first = ?1")?
            .execute([self.first])?;
        Ok(())
    }

    fn split(self) -> Vec<Self> {
        let count = self.pairs.len();
        if count <= PAIRS_MAX {
            return vec![self];
        }
        let size = count.div_ceil(count.div_ceil(PAIRS_AFTER_SPLIT));
        let mut parts: Vec<Self> = Vec::new();
        let mut rest = &self.pairs[..];
        while !rest.is_empty() {
            let mut end = size.min(rest.len());
            // A tag is found in one bucket, so pairs with the same one stay together.
            while end < rest.len() && rest[end].tag == rest[end - 1].tag {
                end += 1;
            }
            let (part, more) = rest.split_at(end);
            let first = if parts.is_empty() {
                self.first
            } else {
                part[0].tag
            };
            parts.push(Self {
                first,
                last: more.first().map_or(self.last, |next| next.tag - 1),
                pairs: part.to_vec(),
            });
            rest = more;
        }
        parts
    }
}

/// Pairs as bytes.
pub(super) fn encode(pairs: &[Pair]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(pairs.len() * PAIR_BYTES);
    for pair in pairs {
        bytes.extend_from_slice(&pair.tag.to_le_bytes());
        bytes.extend_from_slice(&pair.place.to_le_bytes());
    }
    bytes
}

/// The reverse of [`encode`]; `None` if the bytes are not what it makes.
pub(crate) fn decode(bytes: &[u8]) -> Option<Vec<Pair>> {
    let (pairs, rest) = bytes.as_chunks::<PAIR_BYTES>();
    if !rest.is_empty() {
        return None;
    }
    Some(pairs.iter().map(pair).collect())
}

fn pair(bytes: &[u8; PAIR_BYTES]) -> Pair {
    let both = u128::from_le_bytes(*bytes);
    Pair {
        tag: both as i64,
        place: (both >> 64) as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(tags: impl IntoIterator<Item = i64>) -> Vec<Pair> {
        tags.into_iter()
            .enumerate()
            .map(|(place, tag)| Pair {
                tag,
                place: place as i64,
            })
            .collect()
    }

    #[test]
    fn pairs_come_back_as_they_were_and_half_of_one_does_not() {
        let pairs = pairs([i64::MIN, -1, 0, 7, 7, i64::MAX]);
        let bytes = encode(&pairs);
        assert_eq!(decode(&bytes), Some(pairs));
        assert_eq!(decode(&bytes[1..]), None);
    }

    #[test]
    fn merged_pairs_are_sorted_and_none_is_there_twice() {
        let known = pairs([2, 4, 4, 9]);
        let more = pairs([1, 4, 5, 9, 9, 12]);
        let mut bucket = Bucket {
            first: 0,
            last: 99,
            pairs: known.clone(),
        };
        bucket.merge(&more);
        let mut expected = [known, more].concat();
        expected.sort_unstable();
        expected.dedup();
        assert_eq!(bucket.pairs, expected);
        bucket.merge(&expected);
        assert_eq!(bucket.pairs, expected);
    }

    #[test]
    fn the_parts_of_a_bucket_cover_its_tags_without_gap_and_share_none() {
        let same = PAIRS_MAX as i64;
        // Many in order, most under one tag, and all under one tag.
        let cases = [
            pairs(0..3 * same),
            pairs((0..2 * same).map(|n| n.min(10))),
            pairs((0..2 * same).map(|_| 5)),
        ];
        for pairs in cases {
            let bucket = Bucket {
                first: -9,
                last: 1 << 40,
                pairs: pairs.clone(),
            };
            let parts = bucket.split();
            let mut next = -9;
            let mut seen = Vec::new();
            for part in &parts {
                assert_eq!(part.first, next);
                assert!(
                    part.pairs
                        .iter()
                        .all(|pair| (part.first..=part.last).contains(&pair.tag))
                );
                next = part.last + 1;
                seen.extend_from_slice(&part.pairs);
            }
            assert_eq!(next, (1 << 40) + 1);
            assert_eq!(seen, pairs);
        }
    }
}
