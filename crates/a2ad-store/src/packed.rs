//! How a list of artifacts is laid out in a column.

use std::sync::Arc;

use a2ad_core::keys::{Attempt, Number};
use a2ad_core::task::ArtifactHead;

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
mod tests {
    use super::*;

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
