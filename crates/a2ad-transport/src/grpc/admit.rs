//! Who calls, for which agent, and how: everything about a call but what it asks for.

use std::time::Duration;

use a2ad_core::engine::Caller;
use http::HeaderMap;
use http::request::Parts;
use tokio::time::Instant;
use tonic::metadata::{MetadataMap, MetadataValue};

use crate::caller;
use crate::edge::{Inner, Mount};
use crate::errors::{Fault, Refusal};
use crate::version;

/// The extension by which frames carry their numbers, as gRPC has no place of its own for them.
pub(super) const REPLAY: &str = "urn:a2ad:replay:v1";
const EXTENSIONS: &str = "a2a-extensions";

/// A call that may be made.
pub(super) struct Admitted<'a> {
    pub(super) mount: &'a Mount,
    pub(super) caller: Caller,
    pub(super) extensions: Extensions,
}

/// Finds the agent and the caller, in the order of OPS-04: identity, version, extensions, tenant.
pub(super) fn admit<'a>(
    inner: &'a Inner,
    head: &Parts,
    _tenant: &str,
) -> Result<Admitted<'a>, Fault> {
    let mount = &inner.mount;
    let caller = caller::identify(head, &mount.agent, &inner.limits)?;
    let version::Version::V1 = version::given(&head.headers)?;
    Ok(Admitted {
        mount,
        caller,
        extensions: Extensions::requested(&head.headers),
    })
}

/// The extensions in use during a call. What is not known is not used (EXT-03).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extensions {
    pub(super) replay: bool,
}

impl Extensions {
    fn requested(headers: &HeaderMap) -> Self {
        let mut uris = headers
            .get_all(EXTENSIONS)
            .iter()
            .filter_map(|line| line.to_str().ok())
            .flat_map(|line| line.split(','))
            .map(str::trim);
        Self {
            replay: uris.any(|uri| uri == REPLAY),
        }
    }

    /// Tells the caller which are in use (EXT-05).
    pub(super) fn echo(self, metadata: &mut MetadataMap) {
        if self.replay {
            metadata.insert(EXTENSIONS, MetadataValue::from_static(REPLAY));
        }
    }
}

/// When the caller stops waiting (`grpc-timeout`).
pub(super) fn deadline(headers: &HeaderMap, began: Instant) -> Result<Option<Instant>, Fault> {
    const NAME: &str = "grpc-timeout";
    let Some(line) = headers.get(NAME) else {
        return Ok(None);
    };
    let timeout = line.to_str().ok().and_then(timeout);
    let timeout = timeout.ok_or_else(|| Fault::from(Refusal::Timeout).about(NAME))?;
    // Further away than the clock goes is never.
    Ok(began.checked_add(timeout))
}

fn timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if !(1..=8).contains(&digits.len()) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(number * 3600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_up_to_eight_digits_and_a_unit() {
        for (text, expected) in [
            ("1H", Some(Duration::from_secs(3600))),
            ("2M", Some(Duration::from_secs(120))),
            ("3S", Some(Duration::from_secs(3))),
            ("4m", Some(Duration::from_millis(4))),
            ("5u", Some(Duration::from_micros(5))),
            ("6n", Some(Duration::from_nanos(6))),
            ("99999999H", Some(Duration::from_secs(99_999_999 * 3600))),
            ("0S", Some(Duration::ZERO)),
            ("999999999S", None),
            ("S", None),
            ("", None),
            ("1", None),
            ("1s", None),
            ("-1S", None),
            ("+1S", None),
            ("1.5S", None),
            ("1\u{e4}", None),
        ] {
            assert_eq!(timeout(text), expected, "{text:?}");
        }
    }

    #[test]
    fn ext_03_only_known_extensions_are_used() {
        let ask = |lines: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(EXTENSIONS, http::HeaderValue::from_static(line));
            }
            Extensions::requested(&headers).replay
        };
        assert!(ask(&[REPLAY]));
        assert!(ask(&["urn:other, urn:a2ad:replay:v1 ,x"]));
        assert!(ask(&["urn:other", "urn:a2ad:replay:v1"]));
        assert!(!ask(&[]));
        assert!(!ask(&["urn:a2ad:replay:v2", "urn:a2ad:replay"]));
        assert!(!ask(&["URN:A2AD:REPLAY:V1"]));
    }
}
