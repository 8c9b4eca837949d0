//! Checksums of what is stored.
//!
//! They find what a disk did to it, and are no defence against somebody who can write the database: XXH3 is as good at the
//! one as a cryptographic hash and takes a tenth of the time.

use twox_hash::XxHash3_128;

pub(crate) type Hash = [u8; 16];

/// The hash of some bytes.
pub(crate) fn hash_bytes(bytes: &[u8]) -> Hash {
    XxHash3_128::oneshot(bytes).to_le_bytes()
}

/// The hash of a few short parts of fixed length, one after the other. Long ones come by their own hash.
pub(crate) fn hash_parts(parts: &[&[u8]]) -> Hash {
    const ROOM: usize = 96;
    let mut joined = [0; ROOM];
    let mut length = 0;
    for part in parts {
        let to = length + part.len();
        debug_assert!(to <= ROOM, "more than a few short parts");
        joined[length..to].copy_from_slice(part);
        length = to;
    }
    hash_bytes(&joined[..length])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Databases hold these: another result would make all that is stored look damaged.
    #[test]
    fn hashes_stay_as_they_are() {
        let hex = |hash: Hash| {
            hash.iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
        };
        assert_eq!(hex(hash_bytes(b"")), "7f498d4624c30160d8984701d306aa99");
        assert_eq!(
            hex(hash_bytes(&[7; 1000])),
            "ea515439569d7e5df615416d40f4002c"
        );
        assert_eq!(hash_parts(&[b"ab", b"c"]), hash_bytes(b"abc"));
    }
}
