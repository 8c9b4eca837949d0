//! What a run will do: everything that is chosen, is chosen from the seed.

use std::path::PathBuf;
use std::time::Duration;

/// What to run, how often to kill it, and how hard to press it.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The daemon to kill.
    pub binary: PathBuf,
    /// Where every choice comes from.
    pub seed: u64,
    /// How often to kill it.
    pub kills: u32,
    /// How many clients ask at once.
    pub clients: usize,
    /// How many operations a client begins at most.
    pub operations_max: usize,
    /// How long a client rests between operations, at most.
    pub rest_max: Duration,
    /// The store is read and checked after so many kills, beside the check at the end.
    pub check_every: u32,
    /// How long the work that is left may take once nobody kills any more.
    pub settle_max: Duration,
    /// Where to keep data and history; a folder of its own, kept only when something is wrong, if
    /// none is given.
    pub folder: Option<PathBuf>,
    /// Whether to say how far it is after every tenth kill.
    pub progress: bool,
    /// The command that repeats the run.
    pub repeat: String,
}

impl Plan {
    /// A plan for `kills` kills of `binary`.
    #[must_use]
    pub fn new(binary: impl Into<PathBuf>, seed: u64, kills: u32) -> Self {
        Self {
            binary: binary.into(),
            seed,
            kills,
            clients: 16,
            operations_max: 100_000,
            rest_max: Duration::from_millis(40),
            check_every: 10,
            settle_max: Duration::from_secs(150),
            folder: None,
            progress: false,
            repeat: format!("cargo xtask soak --kills {kills} --seed {seed}"),
        }
    }

    /// When the kill number `round` comes. Independent of all other rounds.
    #[must_use]
    pub fn moment(&self, round: u32) -> Moment {
        let mut dice = Dice::new(self.seed).fork(0x6b69_6c6c_0000_0000 | u64::from(round));
        match dice.below(100) {
            // The database is only just being made.
            _ if round == 0 => Moment::AfterStart(Duration::from_micros(dice.below(40_000))),
            // Before it listens, while it opens and migrates, or while it recovers.
            0..15 => Moment::AfterStart(Duration::from_micros(dice.below(60_000))),
            // Just up: recovered turns have been leased again and say their first words.
            15..30 => Moment::AfterReady(Duration::from_micros(dice.below(50_000))),
            _ => Moment::AfterReady(Duration::from_micros(50_000 + dice.below(1_450_000))),
        }
    }
}

/// When a kill comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// So long after the process was started, ready or not.
    AfterStart(Duration),
    /// So long after it was ready.
    AfterReady(Duration),
}

/// SplitMix64: small, and the same everywhere.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Dice that fall as `seed` says.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Dice of their own for `purpose`.
    #[must_use]
    pub fn fork(&self, purpose: u64) -> Self {
        let mut mixed = Self(self.0 ^ purpose.wrapping_mul(0xd6e8_feb8_6659_fd93));
        Self(mixed.roll())
    }

    /// 64 bits.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    ///
    /// # Panics
    /// If `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.roll() % end
    }

    /// True `percent` times in a hundred.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of `all`, if there is one.
    pub fn pick<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        if all.is_empty() {
            return None;
        }
        all.get(usize::try_from(self.below(all.len() as u64)).unwrap_or(0))
    }

    /// A version-4 UUID, which the server takes for unique.
    pub fn uuid(&mut self) -> String {
        let (high, low) = (self.roll(), self.roll());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            0x8000 | (low >> 48) & 0x3fff,
            low & 0xffff_ffff_ffff
        )
    }

    /// A text of `words` words with single and double blanks, some of them not ASCII.
    pub fn text(&mut self, words: u64) -> String {
        let mut text = String::new();
        for at in 0..words {
            if at > 0 {
                text.push_str(if self.chance(10) { "  " } else { " " });
            }
            match self.below(12) {
                0 => text.push_str("grüße"),
                1 => text.push_str("世界"),
                2 => {
                    text.push_str(&"lang".repeat(1 + usize::try_from(self.below(60)).unwrap_or(0)))
                }
                3 => text.push_str("\"quoted\\"),
                // The place in the text makes a doubled or missing word show.
                _ => text.push_str(&format!("w{at}x{:x}", self.below(4096))),
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_choices() {
        let choices = |seed| {
            let plan = Plan::new("a2ad", seed, 50);
            let moments: Vec<_> = (0..50).map(|round| plan.moment(round)).collect();
            let mut dice = Dice::new(seed).fork(7);
            (moments, dice.uuid(), dice.text(20))
        };
        assert_eq!(choices(1), choices(1));
        assert_ne!(choices(1).0, choices(2).0);
        assert_ne!(choices(1).1, choices(2).1);
    }

    #[test]
    fn dice_of_different_purposes_differ() {
        let dice = Dice::new(9);
        assert_ne!(dice.fork(1).roll(), dice.fork(2).roll());
    }
}
