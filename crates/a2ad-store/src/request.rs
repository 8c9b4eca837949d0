//! How the requests that brought a run's messages are laid out beside it.

use a2ad_core::keys::Number;
use a2ad_core::store::Once;

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
