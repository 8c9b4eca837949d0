//! The numbers by which the engine and its stores name things, and how a public task id carries one.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use a2ad_proto::{ContextId, TaskId};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A task's key inside the store. Keys grow, so rows in key order are rows in order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskKey(pub i64);

/// A context's key inside the store: the key of the task that opened it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextKey(pub i64);

/// The number of an entry in its task's journal: 1, 2, 3 … without a gap. A task's version is the
/// number of its newest entry; 0 means "before the first".
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Number(pub u64);

impl Number {
    /// Before the first entry.
    pub const ZERO: Self = Self(0);
    /// The first entry: the message that made the task.
    pub const FIRST: Self = Self(1);

    /// The number after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Which lease of a turn: it rises with every lease and never falls, so it fences off every
/// earlier holder.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Attempt(pub u32);

impl Attempt {
    /// Never leased.
    pub const NONE: Self = Self(0);
    /// The first lease.
    pub const FIRST: Self = Self(1);

    /// The lease after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// An instance or worker session that leases turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HolderId(pub i64);

/// A turn, named by its task and by the number of the entry that holds its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TurnRef {
    /// The task the turn works on.
    pub task: TaskKey,
    /// The entry that holds the message to work on.
    pub number: Number,
}

/// The principal that created a task or context; nobody else can see it. Never empty, so that no
/// missing identity can equal another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(Arc<str>);

impl Owner {
    /// Everybody, on a server without authentication.
    #[must_use]
    pub fn anonymous() -> Self {
        Self(Arc::from("anonymous"))
    }

    /// The owner's name, such as `token:alice`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// An owner without a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an owner needs a name")]
pub struct EmptyOwner;

impl FromStr for Owner {
    type Err = EmptyOwner;

    fn from_str(name: &str) -> Result<Self, EmptyOwner> {
        if name.is_empty() {
            return Err(EmptyOwner);
        }
        Ok(Self(Arc::from(name)))
    }
}

/// Whose tasks with which agent: every lookup starts from one of these.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope {
    /// Who owns what is looked for.
    pub owner: Owner,
    /// The agent it belongs to.
    pub agent: a2ad_proto::AgentId,
}

/// How many bits of a public id hold the key; the other 81 of a UUID's 122 free bits are random.
const KEY_BITS: u32 = 41;
const KEY_MASK: u64 = (1 << KEY_BITS) - 1;
const RANDOM_BITS: u32 = 81;

/// Mints public ids that carry their key, and reads the key back out of one.
///
/// A random id would need an index on random values, which doubles the cost of a send once a
/// million tasks are stored. Instead the key travels inside the id, masked by a keyed hash of the
/// id's random bits so that ids do not tell how many tasks other people make. The key read back is
/// only a hint where to look: whoever looks compares the whole id and the owner with what is stored.
#[derive(Clone)]
pub struct PublicIds {
    secret: [u8; 16],
}

impl fmt::Debug for PublicIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PublicIds(***)")
    }
}

impl PublicIds {
    /// Ids masked by `secret`, which belongs to the database and never changes.
    #[must_use]
    pub const fn new(secret: [u8; 16]) -> Self {
        Self { secret }
    }

    /// A new task id for `key`. `random` must be fresh for every id.
    #[must_use]
    pub fn task_id(&self, key: TaskKey, random: u128) -> TaskId {
        parse_minted(&self.mint(key.0, random))
    }

    /// A new context id for `key`. `random` must be fresh for every id.
    #[must_use]
    pub fn context_id(&self, key: ContextKey, random: u128) -> ContextId {
        parse_minted(&self.mint(key.0, random))
    }

    /// The key that `id` would carry if we had minted it; `None` if its form shows that we did not.
    #[must_use]
    pub fn key_of(&self, id: &str) -> Option<i64> {
        let bits = parse_minted_uuid(id)?;
        let payload =
            ((bits >> 80) << 74) | (((bits >> 64) & 0xfff) << 62) | (bits & ((1 << 62) - 1));
        let random = payload & ((1 << RANDOM_BITS) - 1);
        let masked = u64::try_from(payload >> RANDOM_BITS).ok()?;
        i64::try_from(masked ^ self.mask(random)).ok()
    }

    /// A tag over `parts` that only holders of the database's secret can make.
    #[must_use]
    pub fn tag(&self, parts: &[&[u8]]) -> [u8; 16] {
        let mut hash = Sha256::new_with_prefix(self.secret);
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        first_16(&hash.finalize())
    }

    fn mint(&self, key: i64, random: u128) -> String {
        let random = random & ((1 << RANDOM_BITS) - 1);
        let masked = (key.unsigned_abs() & KEY_MASK) ^ self.mask(random);
        let payload = (u128::from(masked) << RANDOM_BITS) | random;
        let high = payload >> 74;
        let middle = (payload >> 62) & 0xfff;
        let low = payload & ((1 << 62) - 1);
        // Version 8 (RFC 9562: custom), variant 0b10.
        let bits = (high << 80) | (8 << 76) | (middle << 64) | (0b10 << 62) | low;
        uuid_text(bits)
    }

    fn mask(&self, random: u128) -> u64 {
        let tag = self.tag(&[b"public-id", &random.to_le_bytes()]);
        let mut low = [0; 8];
        low.copy_from_slice(&tag[..8]);
        u64::from_le_bytes(low) & KEY_MASK
    }
}

/// The first half of a SHA-256 digest: enough against accidents and for fences we hold the key to.
#[must_use]
pub fn first_16(digest: &[u8]) -> [u8; 16] {
    let mut half = [0; 16];
    for (to, from) in half.iter_mut().zip(digest) {
        *to = *from;
    }
    half
}

#[expect(clippy::expect_used, reason = "a minted id is 36 printable characters")]
fn parse_minted<T: FromStr>(text: &str) -> T
where
    T::Err: fmt::Debug,
{
    text.parse().expect("minted ids are well-formed")
}

/// A UUID's 128 bits as text. By hand, since formatting takes as long as reading a row.
#[must_use]
pub fn uuid_text(bits: u128) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    const PLACES: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
    let mut text = [b'-'; 36];
    for (byte, at) in bits.to_be_bytes().into_iter().zip(PLACES) {
        text[at] = DIGITS[usize::from(byte >> 4)];
        text[at + 1] = DIGITS[usize::from(byte & 15)];
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// The reverse of [`uuid_text`], of any UUID in exactly that form.
#[must_use]
pub fn uuid_bits(text: &str) -> Option<u128> {
    let bytes = text.as_bytes();
    if bytes.len() != 36 {
        return None;
    }
    let mut bits: u128 = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if matches!(at, 8 | 13 | 18 | 23) {
            if byte != b'-' {
                return None;
            }
            continue;
        }
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => return None,
        };
        bits = (bits << 4) | u128::from(digit);
    }
    Some(bits)
}

/// The bits of a version-8 UUID, which is the only form we mint.
fn parse_minted_uuid(text: &str) -> Option<u128> {
    uuid_bits(text).filter(|bits| (bits >> 76) & 0xf == 8 && (bits >> 62) & 0b11 == 0b10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_id_gives_its_key_back(key in 0..=(KEY_MASK as i64), random: u128, secret: [u8; 16]) {
            let ids = PublicIds::new(secret);
            let id = ids.task_id(TaskKey(key), random);
            prop_assert_eq!(ids.key_of(id.as_str()), Some(key));
        }

        #[test]
        fn any_text_is_read_without_panic(text in ".{0,40}") {
            let _read = PublicIds::new([7; 16]).key_of(&text);
        }
    }

    #[test]
    fn ids_of_neighbouring_keys_do_not_look_alike() {
        let ids = PublicIds::new([1; 16]);
        let one = ids.task_id(TaskKey(1), 11);
        let two = ids.task_id(TaskKey(2), 12);
        assert_ne!(one.as_str()[..8], two.as_str()[..8]);
    }

    #[test]
    fn another_databases_secret_reads_another_key() {
        let id = PublicIds::new([1; 16]).task_id(TaskKey(77), 5);
        assert_ne!(PublicIds::new([2; 16]).key_of(id.as_str()), Some(77));
    }

    #[test]
    fn uuids_are_written_as_usual() {
        let bits = 0x0197_a1b2_c3d4_8e5f_a071_8293_04a5_b6c7;
        assert_eq!(uuid_text(bits), "0197a1b2-c3d4-8e5f-a071-829304a5b6c7");
    }

    #[test]
    fn an_owner_has_a_name() {
        assert_eq!("".parse::<Owner>(), Err(EmptyOwner));
    }
}
