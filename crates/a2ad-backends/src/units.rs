//! Durations as people write them: `250ms`, `1h30m`, `30d`.

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

const DURATION_UNITS: [(&str, u64); 6] = [
    ("w", 7 * 24 * 3_600_000),
    ("d", 24 * 3_600_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

/// Reads `90s`, `1h30m` and the like.
fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong =
        || format!("`{text}` is not a duration; write it like 500ms, 5s, 10m, 1h30m or 30d");
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(wrong());
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (number, after) = leading_number(rest).ok_or_else(wrong)?;
        let unit_end = after
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_end);
        let (_, millis) = DURATION_UNITS
            .iter()
            .find(|(name, _)| *name == unit.trim())
            .ok_or_else(wrong)?;
        total = number
            .checked_mul(*millis)
            .and_then(|more| total.checked_add(more))
            .ok_or_else(|| format!("`{text}` is too long a duration"))?;
        rest = next;
    }
    Ok(Duration::from_millis(total))
}

/// Splits a text after the number it begins with.
#[must_use]
pub fn leading_number(text: &str) -> Option<(u64, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    Some((digits.parse().ok()?, rest))
}

/// Writes a duration in the largest unit that fits it exactly.
fn show_duration(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    if millis == 0 {
        return "0s".to_owned();
    }
    // Weeks are understood but not written: `7d` reads better than `1w` beside `30d`.
    let unit = DURATION_UNITS[1..]
        .iter()
        .find(|(_, size)| millis.is_multiple_of(*size));
    unit.map_or_else(String::new, |(name, size)| {
        format!("{}{name}", millis / size)
    })
}

/// What the schema says of a duration.
#[derive(Debug)]
pub struct DurationText;

impl JsonSchema for DurationText {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A duration, such as 500ms, 5s, 10m, 1h30m or 30d.",
            "type": "string",
            "pattern": r"^([0-9]+(ms|s|m|h|d|w))+$|\$\{",
        })
    }
}

/// For `#[serde(with)]` on a [`Duration`].
pub mod duration {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer, de};

    /// Writes it, such as `90s`.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&super::show_duration(*duration))
    }

    /// Reads it.
    ///
    /// # Errors
    /// If it is not a text that says a duration.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        let text = String::deserialize(deserializer)?;
        super::parse_duration(&text).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_with_their_units() {
        let ok = |text: &str| parse_duration(text).unwrap().as_millis();
        assert_eq!(ok("250ms"), 250);
        assert_eq!(ok("5s"), 5_000);
        assert_eq!(ok("10m"), 600_000);
        assert_eq!(ok("1h30m"), 5_400_000);
        assert_eq!(ok("30d"), 30 * 24 * 3_600_000);
        assert_eq!(ok("0s"), 0);
        for text in [
            "",
            "5",
            "s",
            "5 parsecs",
            "-5s",
            "1.5s",
            "99999999999999999999s",
        ] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
        assert!(parse_duration("999999999999999999d").is_err());
    }

    #[test]
    fn what_is_written_is_read_back() {
        for millis in [0, 1, 50, 1_000, 90_000, 7 * 24 * 3_600_000, 86_400_001] {
            let duration = Duration::from_millis(millis);
            assert_eq!(parse_duration(&show_duration(duration)), Ok(duration));
        }
    }
}
