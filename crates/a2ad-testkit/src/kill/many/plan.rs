//! What is struck, how often and in which order, chosen from a seed.

use std::path::PathBuf;
use std::time::Duration;

use super::super::plan::Dice;

/// What to strike, how often, and how hard to press it.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The daemon.
    pub binary: PathBuf,
    /// Where every choice comes from.
    pub seed: u64,
    /// How many instances share the database.
    pub instances: usize,
    /// How long an instance may be out of touch.
    pub lease: Duration,
    /// How often an instance is killed.
    pub kills: u32,
    /// How often PostgreSQL is killed.
    pub postgres_kills: u32,
    /// How often an instance is frozen for longer than its lease.
    pub freezes: u32,
    /// How often connections between an instance and PostgreSQL are cut: all of them for a while,
    /// or one after the other in mid-commit; or nothing comes through; in turn.
    pub cuts: u32,
    /// How many clients ask at once.
    pub clients: usize,
    /// How long a client rests between operations, at most.
    pub rest_max: Duration,
    /// Everything comes to rest and is checked after so many faults, beside the check at the end.
    pub check_every: usize,
    /// How long the work that is left may take once nothing is struck any more.
    pub settle_max: Duration,
    /// Where to keep data and history; a folder of its own, kept only when something is wrong, if
    /// none is given.
    pub folder: Option<PathBuf>,
    /// Whether to say how far it is after every check.
    pub progress: bool,
    /// The command that repeats the run.
    pub repeat: String,
}

/// Something that happens to an instance or to the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// `kill -9`; it is started again after a while, and some are killed once more while they start.
    Kill {
        /// How long it stays down.
        down: Duration,
        /// How long after its start it is killed again.
        again: Option<Duration>,
    },
    /// SIGSTOP, and SIGCONT so long after its lease is over.
    Freeze {
        /// Beyond the lease.
        beyond: Duration,
    },
    /// `kill -9` of PostgreSQL, which stays down for a while.
    KillPostgres {
        /// How long.
        down: Duration,
        /// An instance is killed meanwhile, too.
        instance_too: bool,
    },
    /// No connection between an instance and PostgreSQL for a while.
    CutOff {
        /// How long.
        lasts: Duration,
    },
    /// Nothing that PostgreSQL says reaches an instance for a while, though all is open.
    Silence {
        /// How long.
        lasts: Duration,
    },
    /// Connections between an instance and PostgreSQL are cut in mid-commit.
    CutCommits {
        /// How many.
        count: u32,
    },
}

impl Plan {
    /// A short plan, with a few of each fault.
    #[must_use]
    pub fn new(binary: impl Into<PathBuf>, seed: u64) -> Self {
        Self {
            binary: binary.into(),
            seed,
            instances: 3,
            lease: Duration::from_secs(2),
            kills: 2,
            postgres_kills: 1,
            freezes: 1,
            cuts: 2,
            clients: 12,
            rest_max: Duration::from_millis(150),
            check_every: 1,
            settle_max: Duration::from_secs(60),
            folder: None,
            progress: false,
            repeat: format!("cargo xtask soak --postgres --seed {seed}"),
        }
    }

    /// All faults in the order in which they come.
    #[must_use]
    pub fn faults(&self) -> Vec<Fault> {
        let mut dice = Dice::new(self.seed).fork(0x6661_756c_7400_0000);
        let lease = u64::try_from(self.lease.as_millis()).unwrap_or(u64::MAX / 4);
        let mut faults = Vec::new();
        for _ in 0..self.kills {
            let down = Duration::from_millis(dice.below(500));
            let again = dice.chance(15);
            let again = again.then(|| Duration::from_millis(dice.below(400)));
            faults.push(Fault::Kill { down, again });
        }
        for number in 0..self.postgres_kills {
            // Sometimes for so long that every instance loses its lease.
            let longest = if number % 4 == 3 { lease * 2 } else { 800 };
            faults.push(Fault::KillPostgres {
                down: Duration::from_millis(dice.below(longest.max(1))),
                instance_too: dice.chance(25),
            });
        }
        for _ in 0..self.freezes {
            let beyond = Duration::from_millis(200 + dice.below(2_500));
            faults.push(Fault::Freeze { beyond });
        }
        for number in 0..self.cuts {
            faults.push(match number % 4 {
                // Long enough to lose the lease, or just a moment.
                0 => Fault::CutOff {
                    lasts: Duration::from_millis(lease + 500 + dice.below(1_500)),
                },
                1 => Fault::CutCommits {
                    count: 2 + u32::try_from(dice.below(6)).unwrap_or(0),
                },
                2 => Fault::Silence {
                    lasts: Duration::from_millis(dice.below(lease * 2)),
                },
                _ => Fault::CutOff {
                    lasts: Duration::from_millis(dice.below(500)),
                },
            });
        }
        for last in (1..faults.len()).rev() {
            let other = usize::try_from(dice.below(last as u64 + 1)).unwrap_or(0);
            faults.swap(last, other);
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_fault_comes_as_often_as_it_was_asked_for() {
        let mut plan = Plan::new("a2ad", 7);
        (plan.kills, plan.postgres_kills) = (20, 8);
        (plan.freezes, plan.cuts) = (4, 8);
        let faults = plan.faults();
        let count = |kind: fn(&Fault) -> bool| faults.iter().filter(|it| kind(it)).count();
        assert_eq!(count(|it| matches!(it, Fault::Kill { .. })), 20);
        assert_eq!(count(|it| matches!(it, Fault::KillPostgres { .. })), 8);
        assert_eq!(count(|it| matches!(it, Fault::Freeze { .. })), 4);
        assert_eq!(count(|it| matches!(it, Fault::CutOff { .. })), 4);
        assert_eq!(count(|it| matches!(it, Fault::Silence { .. })), 2);
        assert_eq!(count(|it| matches!(it, Fault::CutCommits { .. })), 2);
        assert_eq!(faults, plan.faults());
        plan.seed = 8;
        assert_ne!(faults, plan.faults());
    }
}
