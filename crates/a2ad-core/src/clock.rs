//! Time and randomness, which come from outside so that tests can bring their own.

use std::cell::RefCell;
use std::sync::Arc;

use a2ad_proto::Timestamp;

use crate::keys::uuid_text;

/// Tells the time of day.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// Now.
    fn now(&self) -> Timestamp;
}

/// Makes bytes that nobody can guess.
pub trait Random: Send + Sync + std::fmt::Debug {
    /// 128 fresh bits.
    fn bits(&self) -> u128;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        #[expect(
            clippy::disallowed_methods,
            reason = "this is the one place that asks the machine"
        )]
        let now = std::time::SystemTime::now();
        let millis = now
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |since| since.as_millis());
        Timestamp::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
    }
}

/// The operating system's random numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemRandom;

impl Random for SystemRandom {
    fn bits(&self) -> u128 {
        STOCK.with_borrow_mut(|stock| {
            loop {
                if let Some(bits) = stock.pop() {
                    return bits;
                }
                *stock = fetch();
            }
        })
    }
}

thread_local! {
    /// Random numbers fetched ahead, since asking the operating system takes longer than making an
    /// id of them. Each is handed out once.
    static STOCK: RefCell<Vec<u128>> = const { RefCell::new(Vec::new()) };
}

fn fetch() -> Vec<u128> {
    let mut bytes = [0; 64 * 16];
    #[expect(
        clippy::expect_used,
        reason = "without random numbers no id is safe to hand out; stopping is right"
    )]
    getrandom::fill(&mut bytes).expect("the operating system gives random numbers");
    let (words, _) = bytes.as_chunks::<16>();
    words.iter().copied().map(u128::from_le_bytes).collect()
}

/// A random version-4 UUID, for ids that carry nothing.
#[must_use]
pub fn uuid(random: &dyn Random) -> String {
    uuid_from(random.bits())
}

/// The UUID that these bits make.
pub(crate) fn uuid_from(bits: u128) -> String {
    let bits = (bits & !(0xf << 76)) | (4 << 76);
    let bits = (bits & !(0b11 << 62)) | (0b10 << 62);
    uuid_text(bits)
}

/// What the engine asks its surroundings for.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
}

impl Default for Surroundings {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            random: Arc::new(SystemRandom),
        }
    }
}

/// A clock and dice for tests.
#[cfg(any(test, feature = "test-util"))]
pub mod manual {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::{Clock, Random};
    use a2ad_proto::Timestamp;

    /// A clock that moves only when told.
    #[derive(Debug)]
    pub struct ManualClock(AtomicI64);

    impl ManualClock {
        /// Stands at this many milliseconds after 1970.
        #[must_use]
        pub const fn at(millis: i64) -> Self {
            Self(AtomicI64::new(millis))
        }

        /// Moves, forwards or backwards.
        pub fn step(&self, millis: i64) {
            self.0.fetch_add(millis, Ordering::SeqCst);
        }
    }

    impl Clock for ManualClock {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(self.0.load(Ordering::SeqCst))
        }
    }

    /// Numbers that are the same for the same seed (SplitMix64).
    #[derive(Debug)]
    pub struct Seeded(Mutex<u64>);

    impl Seeded {
        /// Starts from `seed`.
        #[must_use]
        pub const fn new(seed: u64) -> Self {
            Self(Mutex::new(seed))
        }

        fn word(&self) -> u64 {
            let mut state = self.0.lock().unwrap_or_else(|broken| broken.into_inner());
            *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut word = *state;
            word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            word ^ (word >> 31)
        }
    }

    impl Random for Seeded {
        fn bits(&self) -> u128 {
            (u128::from(self.word()) << 64) | u128::from(self.word())
        }
    }
}
