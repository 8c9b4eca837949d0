//! The kill test: the real daemon under mixed load, killed at random, again and again, and an
//! oracle that reads what clients were told against what the store holds afterwards.
//!
//! [`run`] kills one daemon with a file of its own. [`many::run`] strikes several that share a
//! PostgreSQL database, that database, and what lies between; [`rolling::run`] restarts them in good
//! order behind a balancer.
//!
//! | module | subject |
//! |---|---|
//! | [`plan`] | what a run will do, chosen from a seed |
//! | [`daemon`] | starting, finding and killing the binary |
//! | [`fleet`], [`balance`] | several of them on one database, and one door to all |
//! | [`load`] | the clients |
//! | [`history`] | what they were told |
//! | [`stored`] | what the store holds |
//! | [`checker`] | one against the other |
//! | [`trial`] | what all runs have in common |
//! | [`report`] | what it came to |
//!
//! The seed settles what is asked and when a kill comes after the start; it cannot settle how the
//! threads of another process interleave, so a failing seed is likely, not certain, to fail again.

pub mod balance;
pub mod checker;
pub mod daemon;
pub mod fleet;
pub mod history;
pub mod load;
pub mod many;
pub mod plan;
pub mod report;
pub mod rolling;
pub mod stored;
pub mod trial;

use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use daemon::{AGENT, Daemon, Place};
use load::{Bears, Up};
pub use plan::{Moment, Plan};
pub use report::Report;
use trial::{Folder, Trial};

/// How long a stop in good order may take.
const STOP_MAX: Duration = Duration::from_secs(40);

/// Word by word, slowly enough to be killed in the middle; more asked than may run at once, so
/// that turns also wait and are claimed; so many tries that no kill makes a task fail.
const CONFIG: &str = "\
log: {level: warn}
agents:
  - id: echo
    echo: {words: true, delay: 5ms}
    limits: {running: 8, attempts: 100000}
";

/// Runs `plan` to its end and says what it came to.
///
/// Needs a runtime with several threads.
///
/// # Panics
/// When the machine does not do its part: no folder, no file.
pub async fn run(plan: &Plan) -> Report {
    eprintln!(
        "kill test: seed {}; repeat with: {}",
        plan.seed, plan.repeat
    );
    let folder = Folder::new(plan.folder.as_deref());
    let place = Place::new(&plan.binary, folder.path());
    place.prepare(CONFIG).expect("the folder can be written");
    let bears = Bears {
        broken: true,
        unavailable: false,
        early_ends: false,
    };
    let run = Run {
        plan,
        place,
        trial: Trial::new(plan.seed, &plan.repeat, folder.path(), bears),
    };
    let report = run.run().await;
    folder.keep_for(report)
}

struct Run<'a> {
    plan: &'a Plan,
    place: Place,
    trial: Trial,
}

impl Run<'_> {
    async fn run(mut self) -> Report {
        let plan = self.plan;
        self.trial
            .begin(plan.clients, plan.operations_max, plan.rest_max);
        let mut up = true;
        for round in 0..self.plan.kills {
            if let Err(error) = self.live_and_die(round).await {
                let life = self.trial.lives;
                self.trial
                    .surprise(format!("life {life}: the daemon: {error}"));
                up = false;
                break;
            }
            let killed = round + 1;
            if killed % self.plan.check_every == 0 && killed < self.plan.kills {
                self.check_copy();
            }
            if self.plan.progress && killed % 10 == 0 {
                self.trial.say_progress(killed, "");
            }
        }
        let mut settled = false;
        if up {
            match self.settle_and_stop().await {
                Ok(()) => settled = true,
                Err(error) => {
                    let life = self.trial.lives;
                    self.trial
                        .surprise(format!("life {life}: the daemon: {error}"));
                }
            }
        }
        self.trial.dismiss().await;
        let database = Place::database(&self.place.data());
        let last = self.trial.check(settled, async |checker| {
            stored::read_file(&database, AGENT, checker).await;
        });
        self.trial.conclude(last)
    }

    /// One life of the daemon, up to its kill.
    async fn live_and_die(&mut self, round: u32) -> Result<(), String> {
        let moment = self.plan.moment(round);
        let mut daemon = self.start(&format!("life {}, {moment:?}", self.trial.lives + 1))?;
        match moment {
            Moment::AfterStart(wait) => {
                // It may well be ready before; nobody is told.
                sleep(wait).await;
                self.trial.report.kills_at_start += 1;
            }
            Moment::AfterReady(wait) => {
                daemon = self.announce(daemon).await?;
                sleep(wait).await;
            }
        }
        let killed = daemon.kill().await;
        self.trial.servers.send_replace(Vec::new());
        killed?;
        self.trial.killed(&format!("{moment:?}"));
        Ok(())
    }

    fn start(&mut self, mark: &str) -> Result<Daemon, String> {
        self.trial.lives += 1;
        Daemon::start(&self.place, mark).map_err(|error| format!("cannot be started: {error}"))
    }

    /// Waits until the daemon is ready and tells the clients; if it will not be, it is ended, so
    /// that its database can be read.
    async fn announce(&mut self, mut daemon: Daemon) -> Result<Daemon, String> {
        match daemon.ready().await {
            Ok((to, took)) => {
                self.trial.ready_after(took);
                self.trial.servers.send_replace(vec![Up {
                    to,
                    since: Instant::now(),
                    life: self.trial.lives,
                }]);
                Ok(daemon)
            }
            Err(error) => {
                let _gone = daemon.kill().await.is_ok();
                Err(error)
            }
        }
    }

    /// A last life: the clients finish, everything settles, and it is stopped in good order.
    async fn settle_and_stop(&mut self) -> Result<(), String> {
        let daemon = self.start("the last life")?;
        let daemon = self.announce(daemon).await?;
        self.trial.settle(self.plan.settle_max).await;
        self.trial.servers.send_replace(Vec::new());
        daemon.stop(STOP_MAX).await
    }

    /// Checks a copy, so that the daemon finds its files as the kill left them.
    fn check_copy(&mut self) {
        let copy = self.place.folder.join("copy");
        let copied = copy_data(&self.place.data(), &copy);
        if let Err(error) = copied {
            self.trial
                .surprise(format!("the data cannot be copied: {error}"));
            return;
        }
        let database = Place::database(&copy);
        let findings = self.trial.check(false, async |checker| {
            stored::read_file(&database, AGENT, checker).await;
        });
        self.trial.add(findings);
        std::fs::remove_dir_all(&copy).expect("the copy can be removed");
    }
}

/// Copies what a killed daemon left, without the shared memory that only lives with a process.
fn copy_data(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_memory = name.to_string_lossy().ends_with("-shm");
        if entry.file_type()?.is_file() && !is_memory {
            std::fs::copy(entry.path(), to.join(name))?;
        }
    }
    Ok(())
}
