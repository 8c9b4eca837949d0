//! Bytes as a field.

use base64::Engine as _;
use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::part::{Base64, STANDARD};
use crate::wire::Leaf;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blob(pub(super) Bytes);

impl Leaf for Blob {
    type Wire = Self;

    fn is_default(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Blob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Blob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Base64::deserialize(deserializer).map(|Base64(bytes)| Self(bytes))
    }
}

#[cfg(feature = "protobuf")]
mod pb {
    use super::{Blob, Bytes};
    use crate::pb::{DecodeError, Kind, Payload, Single, Typed, put_bytes};
    use crate::wire::Bounds;

    impl Single for Blob {
        fn put(&self, field: u32, out: &mut Vec<u8>) {
            put_bytes(out, field, &self.0);
        }

        fn take(payload: Payload<'_>, _bounds: Bounds) -> Result<Self, DecodeError> {
            payload.bytes().map(Bytes::copy_from_slice).map(Self)
        }
    }

    impl Typed for Blob {
        const KIND: Kind = Kind::Bytes;
    }
}
