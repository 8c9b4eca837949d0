//! Durations in buckets that grow with them: percentiles to about one percent, at no cost.

use std::time::Duration;

/// Buckets per doubling; a bucket is at most 1/64 of its value wide.
const STEPS: u64 = 64;
const STEPS_BITS: u32 = STEPS.trailing_zeros();
/// Up to 2^42 ns, more than an hour.
const DOUBLINGS: usize = 42;

/// Counts of durations.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            counts: vec![0; DOUBLINGS * STEPS as usize],
            total: 0,
            max: 0,
        }
    }
}

impl Histogram {
    /// Counts one.
    pub fn record(&mut self, duration: Duration) {
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let last = self.counts.len() - 1;
        self.counts[bucket(nanoseconds).min(last)] += 1;
        self.total += 1;
        self.max = self.max.max(nanoseconds);
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.total
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        (self.total, self.max) = (0, 0);
    }

    /// The duration that a `share` (0 to 1) of them does not exceed; zero if there are none.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Duration {
        let rank = ((self.total as f64 * share).ceil() as u64).clamp(1, self.total.max(1));
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Duration::from_nanos(upper_end(index).min(self.max));
            }
        }
        Duration::from_nanos(self.max)
    }
}

/// The first 64 values have buckets of their own; from there on, 64 buckets per doubling.
fn bucket(value: u64) -> usize {
    if value < STEPS {
        return value as usize;
    }
    let doublings = value.ilog2() - STEPS_BITS;
    let step = (value >> doublings) - STEPS;
    ((u64::from(doublings) + 1) * STEPS + step) as usize
}

/// The largest value in a bucket.
fn upper_end(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < STEPS {
        return bucket;
    }
    let doublings = bucket / STEPS - 1;
    let step = bucket % STEPS;
    ((STEPS + step + 1) << doublings) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_ends_where_the_next_begins() {
        for index in 0..DOUBLINGS * STEPS as usize - 1 {
            let end = upper_end(index);
            assert_eq!(bucket(end), index);
            assert_eq!(bucket(end + 1), index + 1);
        }
    }

    #[test]
    fn quantiles_are_right_to_two_percent() {
        let mut histogram = Histogram::default();
        for microseconds in 1..=10_000 {
            histogram.record(Duration::from_micros(microseconds));
        }
        for share in [0.01, 0.5, 0.99] {
            let found = histogram.quantile(share).as_secs_f64() * 1e6;
            let exact = share * 10_000.0;
            assert!((found / exact - 1.0).abs() < 0.02, "{share}: {found}");
        }
        assert_eq!(histogram.quantile(1.0), Duration::from_millis(10));
    }

    #[test]
    fn nothing_takes_no_time() {
        assert_eq!(Histogram::default().quantile(0.99), Duration::ZERO);
    }
}
