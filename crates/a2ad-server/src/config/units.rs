//! Sizes as people write them: `512KiB`, `16MiB`.

use std::borrow::Cow;

use a2ad_backends::units::leading_number;
pub(super) use a2ad_backends::units::{DurationText, duration};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

const SIZE_UNITS: [(&str, u64); 7] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("B", 1),
];

/// Reads `16MiB`, `16777216` and the like.
pub(super) fn parse_size(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a size; write it like 4096, 512KiB or 16MiB");
    let (number, unit) = leading_number(text.trim()).ok_or_else(wrong)?;
    let unit = unit.trim();
    let factor = if unit.is_empty() {
        1
    } else {
        let found = SIZE_UNITS
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(unit));
        found.ok_or_else(wrong)?.1
    };
    number
        .checked_mul(factor)
        .ok_or_else(|| format!("`{text}` is too large a size"))
}

/// Writes a size in the largest binary unit that fits it exactly.
pub(super) fn show_size(bytes: u64) -> String {
    let unit = SIZE_UNITS[..3]
        .iter()
        .find(|(_, size)| bytes != 0 && bytes.is_multiple_of(*size));
    unit.map_or_else(
        || bytes.to_string(),
        |(name, size)| format!("{}{name}", bytes / size),
    )
}

/// What the schema says of a size.
pub(super) struct SizeText;

impl JsonSchema for SizeText {
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A number of bytes, or a size such as 512KiB or 16MiB.",
            "type": ["integer", "string"],
            "minimum": 0,
            "pattern": r"^[0-9]+ *([KMGkmg]i?)?[Bb]?$|\$\{",
        })
    }
}

/// For `#[serde(with)]` on a number of bytes.
pub(super) mod size {
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(in crate::config) fn serialize<S: Serializer>(
        bytes: &u64,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&super::show_size(*bytes))
    }

    pub(in crate::config) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<u64, D::Error> {
        let text = String::deserialize(deserializer)?;
        super::parse_size(&text).map_err(de::Error::custom)
    }
}

/// For `#[serde(deserialize_with)]` on limits that shut everything out at 0. Here rather than
/// where they are used, so that the error names the key's own line.
pub(super) mod above_zero {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, de};

    pub(in crate::config) fn count<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
        let count = u32::deserialize(from)?;
        checked(count, count == 0, "1")
    }

    pub(in crate::config) fn some_count<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<u32>, D::Error> {
        count(from).map(Some)
    }

    pub(in crate::config) fn size<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        let bytes = super::size::deserialize(from)?;
        checked(bytes, bytes == 0, "1KiB")
    }

    pub(in crate::config) fn duration<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Duration, D::Error> {
        let duration = super::duration::deserialize(from)?;
        checked(duration, duration.is_zero(), "1ms")
    }

    fn checked<T, E: de::Error>(value: T, is_zero: bool, least: &str) -> Result<T, E> {
        if is_zero {
            let what = format!("0 would let nothing through; set at least {least}");
            return Err(E::custom(what));
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_their_units() {
        assert_eq!(parse_size("4096"), Ok(4096));
        assert_eq!(parse_size("16MiB"), Ok(16 << 20));
        assert_eq!(parse_size("16 MiB"), Ok(16 << 20));
        assert_eq!(parse_size("1kB"), Ok(1000));
        for text in ["", "MiB", "16Mi", "16 apples", "-1", "99999999999GiB"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        for bytes in [0, 1, 1023, 1024, 16 << 20, (1 << 30) + 1] {
            assert_eq!(parse_size(&show_size(bytes)), Ok(bytes));
        }
    }
}
