//! Recognising a request that was sent again.

use a2ad_proto::{Message, Metadata, Part, PartContent, canonical_json, to_json};
use sha2::{Digest, Sha256};

use super::Caller;
use crate::agent::Idempotency;
use crate::keys::{PublicIds, first_16};

/// What names a request, and what it says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fingerprint {
    pub(super) key: [u8; 16],
    pub(super) body: [u8; 16],
    /// Where the request's name came from, as the caller would look for it.
    pub(super) field: &'static str,
}

/// The fingerprint of a message as the client sent it, if it can be recognised at all.
///
/// People type `"messageId": "1"` and use it again, so only ids that are unique by their making
/// count, unless the agent's owner says otherwise or the caller names the request itself.
///
/// Numbers count as the doubles they are over gRPC, so that a repeat is known over any binding.
pub(super) fn fingerprint(
    ids: &PublicIds,
    caller: &Caller,
    rule: Idempotency,
    message: &Message,
    metadata: Option<&Metadata>,
) -> Option<Fingerprint> {
    let id = &message.message_id;
    let (field, name) = match &caller.idempotency_key {
        Some(key) => ("Idempotency-Key", key.clone()),
        // Both kinds are the same id in either case of letters.
        None if is_unique(id) => ("message.messageId", id.to_ascii_lowercase()),
        None if rule == Idempotency::Always => ("message.messageId", id.clone()),
        None => return None,
    };
    let scope = &caller.scope;
    let key = ids.tag(&[
        b"once",
        scope.owner.as_str().as_bytes(),
        scope.agent.as_str().as_bytes(),
        field.as_bytes(),
        name.as_bytes(),
    ]);
    let mut body = Sha256::new();
    if caller.idempotency_key.is_some() {
        // The caller names the request; its library may mint a new message id for every try.
        let unnamed = Message {
            message_id: String::new(),
            ..message.clone()
        };
        body.update(content(&unnamed));
    } else {
        body.update(content(message));
    }
    body.update([0]);
    if let Some(metadata) = metadata {
        body.update(canonical_json(metadata));
    }
    Some(Fingerprint {
        key,
        body: first_16(&body.finalize()),
        field,
    })
}

/// The message as text that is the same for the same message. What has a schema is always written the same way; free
/// content can be said in several.
fn content(message: &Message) -> Vec<u8> {
    let is_free =
        |part: &Part| part.metadata.is_some() || matches!(part.content, PartContent::Data(_));
    if message.metadata.is_some() || message.parts.iter().any(is_free) {
        canonical_json(message).into_bytes()
    } else {
        to_json(message)
    }
}

fn is_unique(id: &str) -> bool {
    is_uuid(id) || is_ulid(id)
}

fn is_uuid(id: &str) -> bool {
    id.len() == 36
        && id.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

fn is_ulid(id: &str) -> bool {
    id.len() == 26
        && id.as_bytes()[0] <= b'7'
        && id.bytes().all(|byte| match byte.to_ascii_uppercase() {
            b'I' | b'L' | b'O' | b'U' => false,
            byte => byte.is_ascii_digit() || byte.is_ascii_uppercase(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn send_17_only_uuids_and_ulids_are_unique_by_their_making() {
        for id in [
            "0198a5b2-7c1e-7f3a-9d2e-3b1f5c7a9e10",
            "F47AC10B-58CC-4372-A567-0E02B2C3D479",
            "01ARZ3NDEKTSV4RRFFQ69G5FAV",
        ] {
            assert!(is_unique(id), "{id}");
        }
        for id in [
            "1",
            "",
            "msg-1",
            "81ARZ3NDEKTSV4RRFFQ69G5FAV",
            "f47ac10b58cc4372a5670e02b2c3d479",
        ] {
            assert!(!is_unique(id), "{id}");
        }
    }
}
