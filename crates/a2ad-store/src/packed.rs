//! How public ids and lists of artifacts are laid out in a column.

use std::sync::Arc;

use a2ad_core::keys::{Attempt, Number};
#[cfg(feature = "sqlite")]
use a2ad_core::keys::{uuid_bits, uuid_text};
use a2ad_core::task::ArtifactHead;
#[cfg(feature = "sqlite")]
use rusqlite::ToSql;
#[cfg(feature = "sqlite")]
use rusqlite::types::{ToSqlOutput, Value, ValueRef};

#[cfg(feature = "sqlite")]
/// An id as a column value: a UUID in its usual form takes 16 bytes, anything else is text.
pub(crate) struct PackedId<'a>(pub(crate) &'a str);

#[cfg(feature = "sqlite")]
impl ToSql for PackedId<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match uuid_bits(self.0) {
            Some(bits) => ToSqlOutput::Owned(Value::Blob(bits.to_be_bytes().to_vec())),
            None => ToSqlOutput::Borrowed(ValueRef::Text(self.0.as_bytes())),
        })
    }
}

#[cfg(feature = "sqlite")]
/// The id in a column, if there is one.
pub(crate) fn unpack_id(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Blob(bytes) => {
            let bits = u128::from_be_bytes(bytes.try_into().ok()?);
            Some(uuid_text(bits))
        }
        ValueRef::Text(text) => std::str::from_utf8(text).ok().map(str::to_owned),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => None,
    }
}

/// The artifacts of a head as one column: turn, attempt, length of the id, the id; and so on.
pub(crate) fn pack_artifacts(artifacts: &[ArtifactHead]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for artifact in artifacts {
        bytes.extend_from_slice(&artifact.turn.0.to_le_bytes());
        bytes.extend_from_slice(&artifact.attempt.0.to_le_bytes());
        bytes.extend_from_slice(&(artifact.id.len() as u32).to_le_bytes());
        bytes.extend_from_slice(artifact.id.as_bytes());
    }
    bytes
}

/// The reverse of [`pack_artifacts`]; `None` if the bytes are not what it makes.
pub(crate) fn unpack_artifacts(mut bytes: &[u8]) -> Option<Vec<ArtifactHead>> {
    let mut artifacts = Vec::new();
    while !bytes.is_empty() {
        let turn = Number(u64::from_le_bytes(take(&mut bytes)?));
        let attempt = Attempt(u32::from_le_bytes(take(&mut bytes)?));
        let length = usize::try_from(u32::from_le_bytes(take(&mut bytes)?)).ok()?;
        let (id, rest) = bytes.split_at_checked(length)?;
        bytes = rest;
        artifacts.push(ArtifactHead {
            id: Arc::from(std::str::from_utf8(id).ok()?),
            turn,
            attempt,
        });
    }
    Some(artifacts)
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*first)
}

#[cfg(test)]
#[cfg(feature = "sqlite")]
mod tests {
    use super::*;

    fn there_and_back(id: &str) -> (usize, Option<String>) {
        let packed = PackedId(id);
        let value = match packed.to_sql().unwrap() {
            ToSqlOutput::Owned(value) => value,
            ToSqlOutput::Borrowed(value) => value.try_into().unwrap(),
            other => panic!("{other:?}"),
        };
        let value = ValueRef::from(&value);
        let size = match value {
            ValueRef::Blob(bytes) | ValueRef::Text(bytes) => bytes.len(),
            _ => 0,
        };
        (size, unpack_id(value))
    }

    #[test]
    fn ids_come_back_as_they_were() {
        let uuid = "0197a1b2-c3d4-8e5f-a071-829304a5b6c7";
        assert_eq!(there_and_back(uuid), (16, Some(uuid.to_owned())));
        for other in [
            "0197A1B2-C3D4-8E5F-A071-829304A5B6C7",
            "0197a1b2c3d4-8e5f-a071-829304a5b6c7-",
            "0197a1b2-c3d4-8e5f-a071-829304a5b6cg",
            "urlaub",
            "ü",
        ] {
            assert_eq!(there_and_back(other), (other.len(), Some(other.to_owned())));
        }
    }

    #[test]
    fn artifacts_come_back_as_they_were_and_half_of_them_do_not() {
        let artifacts = vec![
            ArtifactHead {
                id: Arc::from("a"),
                turn: Number(1),
                attempt: Attempt(1),
            },
            ArtifactHead {
                id: Arc::from("Größe"),
                turn: Number(7),
                attempt: Attempt(2),
            },
        ];
        let bytes = pack_artifacts(&artifacts);
        assert_eq!(unpack_artifacts(&bytes), Some(artifacts));
        assert_eq!(unpack_artifacts(&bytes[..bytes.len() - 1]), None);
    }
}
