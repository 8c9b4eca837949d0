//! How long a caller waits (`grpc-timeout`).

use std::time::Duration;

use http::HeaderMap;
use tokio::time::Instant;

use crate::errors::{Fault, Refusal};

/// When the caller stops waiting, if ever.
pub(super) fn read(headers: &HeaderMap, began: Instant) -> Result<Option<Instant>, Fault> {
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
}
