//! Several daemons on one PostgreSQL: instances are killed and frozen, the database is killed, and
//! connections between them are cut, all under load that goes to any instance at any call.

mod plan;
mod strike;

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;

use super::daemon::AGENT;
use super::fleet::Fleet;
use super::load::Bears;
use super::plan::Dice;
use super::report::Report;
use super::stored;
use super::trial::{Folder, Trial};
pub use plan::{Fault, Plan};

/// How long a stop in good order may take.
const STOP_MAX: Duration = Duration::from_secs(30);
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
                self.rest_and_check(*fault).await;
                if !self.trial.is_clean() {
                    // What comes now would only bury what was found.
                    return Err(format!("after {fault:?} at instance {at}: not clean"));
                }
            }
        }
        Ok(())
    }

    async fn rest_and_check(&mut self, fault: Fault) {
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
            let last = format!("; the last fault was {fault:?}");
            self.trial.say_progress(self.trial.report.kills, &last);
        }
    }

    fn check(&mut self, settled: bool) -> super::checker::Findings {
        let url = self.fleet.url();
        self.trial.check(settled, async |checker| {
            stored::read_shared(&url, AGENT, checker).await;
        })
    }
}
