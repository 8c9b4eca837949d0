//! Points in time as the protocol writes them (JSON-04).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

const NANOS_PER_MILLI: u32 = 1_000_000;
const NANOS_PER_SECOND: u32 = 1_000_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// A point in time, in UTC, with nanoseconds, between the years 0001 and 9999.
///
/// It is written with milliseconds, and with more digits only if there are any; it is read with zero to nine
/// fraction digits and any offset.
///
/// ```
/// use a2ad_proto::Timestamp;
/// let time: Timestamp = "2026-01-31t10:00:00+01:00".parse()?;
/// assert_eq!(time.to_string(), "2026-01-31T09:00:00.000Z");
/// # Ok::<(), a2ad_proto::TimestampError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    seconds: i64,
    nanos: u32,
}

/// The text or number is not a time between the years 0001 and 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an RFC 3339 time between the years 0001 and 9999")]
pub struct TimestampError;

impl Timestamp {
    /// The start of the year 0001.
    pub const MIN: Self = Self {
        seconds: -62_135_596_800,
        nanos: 0,
    };
    /// The last nanosecond of the year 9999.
    pub const MAX: Self = Self {
        seconds: 253_402_300_799,
        nanos: NANOS_PER_SECOND - 1,
    };

    /// The time this many milliseconds after 1970 began, brought into the range from [`Self::MIN`] to [`Self::MAX`].
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        let seconds = millis.div_euclid(1_000);
        if seconds < Self::MIN.seconds {
            return Self::MIN;
        }
        if seconds > Self::MAX.seconds {
            return Self::MAX;
        }
        let nanos = millis.rem_euclid(1_000) as u32 * NANOS_PER_MILLI;
        Self { seconds, nanos }
    }

    /// The time given by its two protobuf fields.
    ///
    /// # Errors
    /// If it is out of range or `nanos` is a second or more.
    pub const fn from_parts(seconds: i64, nanos: u32) -> Result<Self, TimestampError> {
        if seconds < Self::MIN.seconds || seconds > Self::MAX.seconds || nanos >= NANOS_PER_SECOND {
            return Err(TimestampError);
        }
        Ok(Self { seconds, nanos })
    }

    /// Milliseconds since 1970 began, rounded towards the past.
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.seconds * 1_000 + (self.nanos / NANOS_PER_MILLI) as i64
    }

    /// Milliseconds since 1970 began, rounded towards the future. A filter "at or after" over times kept in
    /// milliseconds must round this way, or it would let through times before the limit.
    #[must_use]
    pub const fn as_millis_ceil(self) -> i64 {
        self.seconds * 1_000 + self.nanos.div_ceil(NANOS_PER_MILLI) as i64
    }

    /// Whole seconds since 1970 began, rounded towards the past.
    #[must_use]
    pub const fn seconds(self) -> i64 {
        self.seconds
    }

    /// Nanoseconds past [`Self::seconds`].
    #[must_use]
    pub const fn nanos(self) -> u32 {
        self.nanos
    }
}

/// A time as text, on the stack.
struct Text {
    bytes: [u8; 30],
    len: usize,
}

impl Text {
    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }
}

impl Timestamp {
    fn text(self) -> Text {
        let mut bytes = *b"0000-00-00T00:00:00.000000000Z";
        let (year, month, day) = date_of(self.seconds.div_euclid(SECONDS_PER_DAY));
        let second = self.seconds.rem_euclid(SECONDS_PER_DAY);
        put(&mut bytes[0..4], year);
        put(&mut bytes[5..7], month);
        put(&mut bytes[8..10], day);
        put(&mut bytes[11..13], second / 3_600);
        put(&mut bytes[14..16], second / 60 % 60);
        put(&mut bytes[17..19], second % 60);
        // Three, six or nine digits, as ProtoJSON writers do.
        let (end, fraction) = match self.nanos {
            n if n % NANOS_PER_MILLI == 0 => (23, n / NANOS_PER_MILLI),
            n if n % 1_000 == 0 => (26, n / 1_000),
            n => (29, n),
        };
        put(&mut bytes[20..end], i64::from(fraction));
        bytes[end] = b'Z';
        Text {
            bytes,
            len: end + 1,
        }
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text().as_str())
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Self, TimestampError> {
        parse(text.as_bytes()).ok_or(TimestampError)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.text().as_str())
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Timestamp;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an RFC 3339 time")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Timestamp, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

/// Writes `value` in decimal over the zeros in `place`.
fn put(place: &mut [u8], mut value: i64) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

fn parse(text: &[u8]) -> Option<Timestamp> {
    let (date_time, mut rest) = text.split_at_checked(19)?;
    let number = |from: usize, to: usize| decimal(&date_time[from..to]);
    let separated = date_time[4] == b'-'
        && date_time[7] == b'-'
        && matches!(date_time[10], b'T' | b't')
        && date_time[13] == b':'
        && date_time[16] == b':';
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let in_range = (1..=12).contains(&month)
        && (1..=days_in(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    if !separated || !in_range {
        return None;
    }
    let mut nanos = 0;
    if let Some(fraction) = rest.strip_prefix(b".") {
        let count = fraction.iter().take_while(|b| b.is_ascii_digit()).count();
        if !(1..=9).contains(&count) {
            return None;
        }
        nanos = decimal(&fraction[..count])? * 10_i64.pow(9 - count as u32);
        rest = &fraction[count..];
    }
    let seconds = days_to(year, month, day) * SECONDS_PER_DAY + hour * 3_600 + minute * 60 + second;
    Timestamp::from_parts(seconds - offset(rest)?, nanos as u32).ok()
}

/// Seconds east of UTC.
fn offset(text: &[u8]) -> Option<i64> {
    match text {
        [b'Z' | b'z'] => Some(0),
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let (hours, minutes) = (decimal(&[*h1, *h2])?, decimal(&[*m1, *m2])?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            let seconds = hours * 3_600 + minutes * 60;
            Some(if *sign == b'+' { seconds } else { -seconds })
        }
        _ => None,
    }
}

fn decimal(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |value, digit| {
        digit
            .is_ascii_digit()
            .then(|| value * 10 + i64::from(digit - b'0'))
    })
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a date of the Gregorian calendar.
///
/// Years are counted from March, so that the leap day comes last and the days before a month follow from a straight
/// line: (153 m + 2) / 5.
fn days_to(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + (153 * month + 2) / 5 + day - 1 - DAYS_TO_1970
}

/// From the first of March of the year 0 to 1970-01-01.
const DAYS_TO_1970: i64 = 719_468;
const DAYS_PER_400_YEARS: i64 = 146_097;

/// The inverse of [`days_to`].
fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + DAYS_TO_1970;
    let era = days.div_euclid(DAYS_PER_400_YEARS);
    let day = days.rem_euclid(DAYS_PER_400_YEARS);
    // Takes out the leap days passed so far in the era, after which all years have 365 days.
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + i64::from(month <= 2);
    (year, month, day)
}
