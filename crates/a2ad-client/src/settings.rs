//! How long, how large, how often.

use std::time::Duration;

use crate::dial::Limits;
use crate::error::Error;

/// How long things may take.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeouts {
    /// Connecting: at most 10 s, which is the default.
    pub connect: Duration,
    /// A call whose answer is at hand, such as getting a task: 30 s.
    pub call: Duration,
    /// Sending a message, which is answered when the agent is done: 10 min.
    pub send: Duration,
    /// Silence in a stream, after which it counts as cut: 90 s. Comments are no silence.
    pub silence: Duration,
    /// Following one task, with all that is resumed: 24 h.
    pub follow: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Limits::CONNECT_MAX,
            call: Duration::from_secs(30),
            send: Duration::from_secs(10 * 60),
            silence: Duration::from_secs(90),
            follow: Duration::from_secs(24 * 60 * 60),
        }
    }
}

/// How large things may be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sizes {
    /// An answer: 64 MiB.
    pub answer_bytes: u64,
    /// One event of a stream: 16 MiB.
    pub event_bytes: usize,
    /// A task put together from a stream: 256 MiB.
    pub task_bytes: u64,
}

impl Default for Sizes {
    fn default() -> Self {
        Self {
            answer_bytes: 64 << 20,
            event_bytes: 16 << 20,
            task_bytes: 256 << 20,
        }
    }
}

/// How often and how soon to try again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retries {
    /// How often a call is tried again: 3 times.
    pub calls: u32,
    /// How often in a row a stream is resumed in vain: 10 times.
    pub resumes: u32,
    /// How long to wait before the second try again, the first being made at once: 100 ms. It doubles each time, and a
    /// part of it is left to chance. Also the time from one stream of a task to the next, at least.
    pub first: Duration,
    /// How long to wait at most: 5 s.
    pub longest: Duration,
    /// How often to ask for a task that cannot be followed: every 500 ms, and less often if nothing changes.
    pub poll: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self {
            calls: 3,
            resumes: 10,
            first: Duration::from_millis(100),
            longest: Duration::from_secs(5),
            poll: Duration::from_millis(500),
        }
    }
}

impl Retries {
    /// How long to wait before try number `again`, counted from one, after `error`.
    pub(crate) fn delay(&self, again: u32, error: Option<&Error>) -> Duration {
        let asked = match error {
            Some(Error::Refused(refusal)) => refusal.retry_after,
            _ => None,
        };
        // An agent may ask for patience, but not for all of it.
        let asked = asked
            .unwrap_or_default()
            .min(self.longest.saturating_mul(12));
        if again <= 1 {
            return asked;
        }
        let doubled = self.first.saturating_mul(1 << (again - 2).min(20));
        let whole = doubled.min(self.longest);
        asked.max(whole / 2 + whole.mul_f64(f64::from(random::byte()) / 512.0))
    }

    /// How long to wait before asking again for a task that was the same so many times.
    pub(crate) fn poll(&self, unchanged: u32) -> Duration {
        let slower = self.poll.as_secs_f64() * 1.5_f64.powi(unchanged.min(20).cast_signed());
        let slower = Duration::try_from_secs_f64(slower).unwrap_or(Duration::MAX);
        slower.min(self.longest.max(self.poll))
    }
}

pub(crate) mod random {
    use std::fmt::Write as _;

    /// A byte by chance. Where there is none, any will do: it spreads retries.
    pub(crate) fn byte() -> u8 {
        let mut byte = [128];
        if getrandom::fill(&mut byte).is_err() {
            tracing::debug!("no randomness for a delay");
        }
        byte[0]
    }

    /// A UUID of version 4, by which a message is recognised when it comes again; none without randomness.
    pub(crate) fn uuid() -> Option<String> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).ok()?;
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let mut text = String::with_capacity(36);
        for (index, byte) in bytes.iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                text.push('-');
            }
            let _infallible = write!(text, "{byte:02x}");
        }
        Some(text)
    }

    /// Whether an id is one that our servers recognise when it comes again (SEND-17).
    pub(crate) fn is_unique(id: &str) -> bool {
        let is_uuid = id.len() == 36
            && id.bytes().enumerate().all(|(index, byte)| match index {
                8 | 13 | 18 | 23 => byte == b'-',
                _ => byte.is_ascii_hexdigit(),
            });
        let is_ulid = id.len() == 26
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && id.starts_with(|c| ('0'..='7').contains(&c));
        is_uuid || is_ulid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_and_have_an_end() {
        let retries = Retries::default();
        assert_eq!(retries.delay(1, None), Duration::ZERO);
        for (again, whole) in [
            (2, 100),
            (3, 200),
            (4, 400),
            (7, 3_200),
            (8, 5_000),
            (900, 5_000),
        ] {
            let whole = Duration::from_millis(whole);
            for _ in 0..20 {
                let delay = retries.delay(again, None);
                assert!(delay >= whole / 2 && delay <= whole, "{again}: {delay:?}");
            }
        }
        assert_eq!(retries.poll(0), Duration::from_millis(500));
        assert_eq!(retries.poll(900), Duration::from_secs(5));
        let (longest, poll) = (Duration::MAX, Duration::MAX);
        let never = Retries {
            longest,
            poll,
            ..retries
        };
        assert_eq!(never.poll(900), Duration::MAX);
        assert!(never.delay(900, None) > Duration::from_secs(60));
    }

    #[test]
    fn an_agent_that_asks_for_patience_gets_some() {
        let mut refusal = crate::Refusal::of_http(429, b"");
        refusal.retry_after = Some(Duration::from_secs(7));
        let delay = |refusal: &crate::Refusal| {
            Retries::default().delay(1, Some(&Error::refused(refusal.clone())))
        };
        assert_eq!(delay(&refusal), Duration::from_secs(7));
        refusal.retry_after = Some(Duration::MAX);
        assert_eq!(delay(&refusal), Duration::from_secs(60));
    }

    #[test]
    fn ids_are_unique_and_recognised() {
        let (one, two) = (random::uuid().unwrap(), random::uuid().unwrap());
        assert_ne!(one, two);
        assert!(random::is_unique(&one), "{one}");
        assert_eq!(&one[14..15], "4");
        assert!(random::is_unique("01ARZ3NDEKTSV4RRFFQ69G5FAV"));
        for id in ["", "m", "msg-1", &one[1..], "x1ARZ3NDEKTSV4RRFFQ69G5FAV"] {
            assert!(!random::is_unique(id), "{id}");
        }
    }
}
