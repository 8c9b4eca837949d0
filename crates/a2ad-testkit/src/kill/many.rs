//! Several daemons on one PostgreSQL: instances are killed and frozen, the database is killed, and
//! connections between them are cut, all under load that goes to any instance at any call.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use a2ad_pgkit::proxy::Fault as CommitFault;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::daemon::AGENT;
use super::fleet::Fleet;
use super::load::{Bears, Client, Probe};
use super::plan::Dice;
use super::report::Report;
use super::stored;
use super::trial::{Folder, Trial};

/// How long a stop in good order may take.
const STOP_MAX: Duration = Duration::from_secs(30);
/// What a dead instance worked on goes on elsewhere so long after its lease at the latest.
const TAKEOVER_MAX: Duration = Duration::from_secs(5);
/// How many tasks an instance is at work on for us when it is struck.
const PROBES: usize = 2;
/// How long to wait for an instance to commit something, to cut it there.
const COMMIT_MAX: Duration = Duration::from_secs(2);

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

/// Runs `plan` to its end and says what it came to.
///
/// Needs a runtime with several threads.
///
/// # Panics
/// When the machine does not do its part: no folder, no file, no PostgreSQL.
pub async fn run(plan: &Plan) -> Report {
    eprintln!(
        "kill test on PostgreSQL: seed {}; repeat with: {}",
        plan.seed, plan.repeat
    );
    let folder = Folder::new(plan.folder.as_deref());
    let fleet = Fleet::prepare(&plan.binary, folder.path(), plan.instances, plan.lease).await;
    let bears = Bears {
        broken: true,
        unavailable: true,
        early_ends: false,
    };
    let run = Run {
        plan,
        fleet,
        trial: Trial::new(plan.seed, &plan.repeat, folder.path(), bears),
        dice: Dice::new(plan.seed).fork(0x7374_7269_6b65_0000),
        followers: JoinSet::new(),
        probes: 0,
    };
    folder.keep_for(run.run().await)
}

struct Run<'a> {
    plan: &'a Plan,
    fleet: Fleet,
    trial: Trial,
    dice: Dice,
    /// Those who read on, elsewhere, what an instance was at when it was struck.
    followers: JoinSet<()>,
    probes: usize,
}

impl Run<'_> {
    async fn run(mut self) -> Report {
        let plan = self.plan;
        let mut struck = self.start_all().await;
        self.trial.begin(plan.clients, usize::MAX, plan.rest_max);
        if struck.is_ok() {
            struck = self.strike_all().await;
        }
        self.trial.settle(plan.settle_max).await;
        let ended = self.fleet.stop_all(STOP_MAX).await;
        if let Err(error) = struck.and(ended) {
            self.trial.surprise(error);
        }
        self.trial.servers.send_replace(Vec::new());
        self.trial.dismiss().await;
        let last = self.check(true);
        self.trial.conclude(last)
    }

    async fn start_all(&mut self) -> Result<(), String> {
        for at in 0..self.fleet.count() {
            self.fleet.start(at, &mut self.trial)?;
            self.fleet.ready(at, &mut self.trial).await?;
        }
        self.fleet.announce(&self.trial);
        Ok(())
    }

    async fn strike_all(&mut self) -> Result<(), String> {
        let faults = self.plan.faults();
        for (number, fault) in faults.iter().enumerate() {
            // Work comes in before and in between.
            sleep(Duration::from_millis(100 + self.dice.below(400))).await;
            let at = self.dice.below(self.fleet.count() as u64);
            let at = usize::try_from(at).unwrap_or(0);
            let struck = self.strike(*fault, at).await;
            struck.map_err(|error| format!("{fault:?} at instance {at}: {error}"))?;
            if (number + 1) % self.plan.check_every == 0 && number + 1 < faults.len() {
                self.rest_and_check().await;
                if !self.trial.is_clean() {
                    // What comes now would only bury what was found.
                    return Err(format!("after {fault:?} at instance {at}: not clean"));
                }
            }
        }
        Ok(())
    }

    async fn rest_and_check(&mut self) {
        let url = self.fleet.url();
        let rest = self
            .trial
            .at_rest(self.plan.settle_max, async |trial: &mut Trial| {
                let findings = trial.check(true, async |checker| {
                    stored::read_shared(&url, AGENT, checker).await;
                });
                trial.add(findings);
            });
        rest.await;
        if self.plan.progress {
            self.trial.say_progress(self.trial.report.kills);
        }
    }

    fn check(&mut self, settled: bool) -> super::checker::Findings {
        let url = self.fleet.url();
        self.trial.check(settled, async |checker| {
            stored::read_shared(&url, AGENT, checker).await;
        })
    }

    async fn strike(&mut self, fault: Fault, at: usize) -> Result<(), String> {
        match fault {
            Fault::Kill { down, again } => self.kill(at, down, again).await?,
            Fault::Freeze { beyond } => self.freeze(at, beyond).await?,
            Fault::KillPostgres { down, instance_too } => {
                self.kill_postgres(at, down, instance_too).await?;
            }
            Fault::CutOff { lasts } => self.cut_off(at, lasts).await,
            Fault::Silence { lasts } => self.silence(at, lasts).await,
            Fault::CutCommits { count } => self.cut_commits(at, count).await,
        }
        self.fleet.all_ready(&self.trial).await?;
        let followed = timeout(self.plan.settle_max, async {
            while let Some(ended) = self.followers.join_next().await {
                ended.map_err(|error| format!("a follower broke off: {error}"))?;
            }
            Ok(())
        });
        followed
            .await
            .unwrap_or_else(|_late| Err("what the instance was at does not go on".to_owned()))
    }

    async fn kill(
        &mut self,
        at: usize,
        down: Duration,
        again: Option<Duration>,
    ) -> Result<(), String> {
        let probes = self.begin_probes(at).await;
        let struck = Instant::now();
        self.fleet.kill(at, &mut self.trial).await?;
        self.follow(probes, struck);
        if let Some(wait) = again {
            self.fleet.start(at, &mut self.trial)?;
            sleep(wait).await;
            self.fleet.kill(at, &mut self.trial).await?;
            self.trial.report.kills_at_start += 1;
        }
        sleep(down).await;
        self.fleet.start(at, &mut self.trial)?;
        self.fleet.ready(at, &mut self.trial).await?;
        self.fleet.announce(&self.trial);
        Ok(())
    }

    async fn freeze(&mut self, at: usize, beyond: Duration) -> Result<(), String> {
        let probes = self.begin_probes(at).await;
        let struck = Instant::now();
        self.fleet.signal(at, "STOP").await?;
        let up = self.fleet.withdraw(at, &self.trial);
        self.follow(probes, struck);
        sleep(self.plan.lease + beyond).await;
        self.fleet.signal(at, "CONT").await?;
        self.trial.struck("freezes");
        let up = up.ok_or("it was not up")?;
        self.fleet.restore(at, up, &self.trial).await
    }

    async fn kill_postgres(
        &mut self,
        at: usize,
        down: Duration,
        instance_too: bool,
    ) -> Result<(), String> {
        tokio::task::block_in_place(|| self.fleet.cluster.kill());
        self.trial.struck("kills of PostgreSQL");
        if instance_too {
            self.fleet.kill(at, &mut self.trial).await?;
        }
        sleep(down).await;
        tokio::task::block_in_place(|| self.fleet.cluster.restart());
        let back = self.fleet.all_ready(&self.trial).await?;
        self.trial.back_after(back);
        if instance_too {
            self.fleet.start(at, &mut self.trial)?;
            self.fleet.ready(at, &mut self.trial).await?;
            self.fleet.announce(&self.trial);
        }
        Ok(())
    }

    async fn cut_off(&mut self, at: usize, lasts: Duration) {
        let probes = if lasts > self.plan.lease {
            self.begin_probes(at).await
        } else {
            Vec::new()
        };
        let struck = Instant::now();
        self.fleet.proxy(at).close();
        self.follow(probes, struck);
        sleep(lasts).await;
        self.fleet.proxy(at).reopen();
        self.trial.struck("instances cut off");
    }

    async fn silence(&mut self, at: usize, lasts: Duration) {
        let stalled = &self.fleet.proxy(at).behaviour.stalled;
        stalled.store(true, Ordering::Relaxed);
        sleep(lasts).await;
        stalled.store(false, Ordering::Relaxed);
        self.trial.struck("silences");
    }

    async fn cut_commits(&mut self, at: usize, count: u32) {
        for number in 0..count {
            let fault = if number % 2 == 0 {
                CommitFault::Answer
            } else {
                CommitFault::Question
            };
            let proxy = self.fleet.proxy(at);
            if proxy.cut_next_commit(fault, COMMIT_MAX).await {
                self.trial.struck("commits cut");
            }
        }
    }

    /// Has an instance work on something.
    async fn begin_probes(&mut self, at: usize) -> Vec<(Client, Probe)> {
        let mut probes = Vec::new();
        let Some(up) = self.fleet.up(at) else {
            return probes;
        };
        for _ in 0..PROBES {
            let shared = Arc::clone(&self.trial.shared);
            self.probes += 1;
            let number = 1_000_000 + self.probes;
            let mut client = Client::new(shared, self.plan.seed, number, Duration::ZERO);
            let probe = client.begin_probe(up).await;
            probes.extend(probe.map(|probe| (client, probe)));
        }
        probes
    }

    /// Has somebody see what becomes of it.
    fn follow(&mut self, probes: Vec<(Client, Probe)>, struck: Instant) {
        let due = self.plan.lease + TAKEOVER_MAX;
        for (mut client, probe) in probes {
            self.followers
                .spawn(async move { client.follow(probe, struck, due).await });
        }
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
