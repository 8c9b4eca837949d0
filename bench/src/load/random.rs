//! Identifiers that differ each time. They need to be unique, not secret.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// How long the text of a UUID is.
pub(crate) const UUID_LENGTH: usize = 36;
/// How long a mark is.
pub(crate) const MARK_LENGTH: usize = 16;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// SplitMix64, begun somewhere.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new() -> Self {
        Self(RandomState::new().build_hasher().finish())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A UUID of version 4, as text.
    pub(crate) fn uuid(&mut self) -> [u8; UUID_LENGTH] {
        let mut bits = u128::from(self.next()) << 64 | u128::from(self.next());
        let mut text = [b'-'; UUID_LENGTH];
        for (index, digit) in text.iter_mut().enumerate() {
            if matches!(index, 8 | 13 | 18 | 23) {
                continue;
            }
            *digit = match index {
                14 => b'4',
                19 => HEX[8 + (bits & 3) as usize],
                _ => HEX[(bits & 15) as usize],
            };
            bits >>= 4;
        }
        text
    }

    /// A text by which an answer is known.
    pub(crate) fn mark(&mut self) -> [u8; MARK_LENGTH] {
        let mut bits = self.next();
        std::array::from_fn(|_| {
            let digit = HEX[(bits & 15) as usize];
            bits >>= 4;
            digit
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_has_its_form() {
        let mut random = Random::new();
        let (one, other) = (random.uuid(), random.uuid());
        assert_ne!(one, other);
        let text = std::str::from_utf8(&one).unwrap();
        let lengths: Vec<_> = text.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
        assert_eq!(&text[14..15], "4");
        assert!("89ab".contains(&text[19..20]));
    }
}
