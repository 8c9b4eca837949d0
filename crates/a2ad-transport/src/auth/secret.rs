//! Secrets, kept as their digests.

use std::fmt;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::Principal;

/// How a secret is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// As a bearer token.
    Bearer,
    /// As a user's name and password.
    Basic,
    /// As an API key in a header of its own.
    ApiKey,
}

/// The SHA-256 of a secret. Secrets that are made by `a2ad token create` are random and long enough for that; those
/// that people choose are compared by it, but never stored.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of a secret.
    #[must_use]
    pub fn of(secret: &[u8]) -> Self {
        Self(Sha256::digest(secret).into())
    }

    /// The digest of a user's name and password.
    #[must_use]
    pub fn of_pair(user: &str, password: &str) -> Self {
        Self::of(format!("{user}:{password}").as_bytes())
    }

    /// A digest as it is stored: 64 hexadecimal digits.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        for (at, byte) in bytes.iter_mut().enumerate() {
            let digits = text.get(2 * at..2 * at + 2)?;
            if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return None;
            }
            *byte = u8::from_str_radix(digits, 16).ok()?;
        }
        Some(Self(bytes))
    }

    /// As it is stored.
    #[must_use]
    pub fn to_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Not even the digest: a short secret can be found from it.
impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest(…)")
    }
}

/// A secret and whose it is.
#[derive(Clone, Debug)]
pub struct Credential {
    /// How it is shown.
    pub kind: Kind,
    /// What it is.
    pub digest: Digest,
    /// Whose it is.
    pub principal: Arc<Principal>,
}

impl Credential {
    /// Whether it is this one; the time does not tell how much of it fits.
    pub(super) fn fits(&self, kind: Kind, digest: &Digest) -> bool {
        let same = self.digest.0.ct_eq(&digest.0);
        self.kind == kind && bool::from(same)
    }
}
