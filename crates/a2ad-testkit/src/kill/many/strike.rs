//! Each fault, from its beginning until every instance is ready again and what it hit goes on.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use a2ad_pgkit::proxy::Fault as CommitFault;
use tokio::time::{Instant, sleep, timeout};

use super::super::load::{Client, Probe};
use super::{Fault, Run};

/// What a dead instance worked on goes on elsewhere so long after its lease at the latest.
const TAKEOVER_MAX: Duration = Duration::from_secs(5);
/// How many tasks an instance is at work on for us when it is struck.
const PROBES: usize = 2;
/// How long to wait for an instance to commit something, to cut it there.
const COMMIT_MAX: Duration = Duration::from_secs(2);

impl Run<'_> {
    pub(super) async fn strike(&mut self, fault: Fault, at: usize) -> Result<(), String> {
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
