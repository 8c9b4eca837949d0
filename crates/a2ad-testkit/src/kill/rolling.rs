//! A rolling restart: each instance is stopped in good order and started again, one after the other,
//! behind a balancer and under load. No call may fail: what clients put up with otherwise, broken
//! connections and "not now", is a surprise here.

use std::path::PathBuf;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::balance::Balancer;
use super::daemon::AGENT;
use super::fleet::{Fleet, Pace};
use super::load::{Bears, Steady, Up};
use super::report::Report;
use super::stored;
use super::trial::{Folder, Trial};

/// How long a stop in good order may take.
const STOP_MAX: Duration = Duration::from_secs(30);
/// How many turns each instance runs at once under steady load: enough for all streams.
const RUNNING: usize = 4_096;

/// Who asks for what.
#[derive(Clone, Copy, Debug)]
pub enum Load {
    /// So many clients that ask for everything, each one thing after the other, resting for so long
    /// at most.
    Mixed(usize, Duration),
    /// Messages at a steady rate and streams that stay open, over all bindings.
    Steady(Steady),
}

/// What to restart, how often, and how hard to press it.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The daemon.
    pub binary: PathBuf,
    /// Where every choice comes from.
    pub seed: u64,
    /// How many instances share the database.
    pub instances: usize,
    /// How often all of them are restarted.
    pub rounds: usize,
    /// Who asks for what.
    pub load: Load,
    /// How long the load runs before, between and after restarts.
    pub between: Duration,
    /// How long the work that is left may take at the end.
    pub settle_max: Duration,
    /// Where to keep data and history; a folder of its own, kept only when something is wrong, if
    /// none is given.
    pub folder: Option<PathBuf>,
    /// Whether to say how far it is after every restart.
    pub progress: bool,
    /// The command that repeats the run.
    pub repeat: String,
}

impl Plan {
    /// Three instances, each restarted once.
    #[must_use]
    pub fn new(binary: impl Into<PathBuf>, seed: u64) -> Self {
        Self {
            binary: binary.into(),
            seed,
            instances: 3,
            rounds: 1,
            load: Load::Mixed(16, Duration::from_millis(100)),
            between: Duration::from_millis(300),
            settle_max: Duration::from_secs(60),
            folder: None,
            progress: false,
            repeat: String::new(),
        }
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
        "rolling restart: seed {}; repeat with: {}",
        plan.seed, plan.repeat
    );
    let folder = Folder::new(plan.folder.as_deref());
    // As in production: nobody's lease runs out here.
    let lease = Duration::from_secs(30);
    let pace = match plan.load {
        Load::Mixed(..) => Pace::LIVELY,
        Load::Steady(steady) => Pace {
            word: steady.pause,
            running: RUNNING,
        },
    };
    let mut fleet = Fleet::prepare(&plan.binary, folder.path(), plan.instances, lease, pace).await;
    let balancer = Balancer::start(plan.instances).await;
    let bears = Bears {
        broken: false,
        unavailable: false,
        early_ends: true,
    };
    let mut trial = Trial::new(plan.seed, &plan.repeat, folder.path(), bears);
    let rolled = roll(plan, &mut fleet, &balancer, &mut trial).await;
    trial.settle(plan.settle_max).await;
    trial.servers.send_replace(Vec::new());
    let ended = fleet.stop_all(STOP_MAX).await;
    if let Err(error) = rolled.and(ended) {
        trial.surprise(error);
    }
    trial.dismiss().await;
    let url = fleet.url();
    let last = trial.check(true, async |checker| {
        stored::read_shared(&url, AGENT, checker).await;
    });
    folder.keep_for(trial.conclude(last))
}

async fn roll(
    plan: &Plan,
    fleet: &mut Fleet,
    balancer: &Balancer,
    trial: &mut Trial,
) -> Result<(), String> {
    for at in 0..fleet.count() {
        start(at, fleet, balancer, trial).await?;
    }
    trial.servers.send_replace(vec![Up {
        to: balancer.addr(),
        since: Instant::now(),
        life: trial.lives,
    }]);
    match plan.load {
        Load::Mixed(clients, rest_max) => trial.begin(clients, usize::MAX, rest_max),
        Load::Steady(steady) => trial.begin_steady(steady),
    }
    for _ in 0..plan.rounds {
        for at in 0..fleet.count() {
            sleep(plan.between).await;
            let from = Instant::now();
            let stopped = fleet.stop(at, STOP_MAX).await;
            stopped.map_err(|error| format!("instance {at}: {error}"))?;
            trial.stopped_after(from.elapsed());
            start(at, fleet, balancer, trial).await?;
            trial.struck("restarts");
            if plan.progress {
                trial.say_progress(0, "");
            }
        }
    }
    sleep(plan.between).await;
    Ok(())
}

async fn start(
    at: usize,
    fleet: &mut Fleet,
    balancer: &Balancer,
    trial: &mut Trial,
) -> Result<(), String> {
    fleet.start(at, trial)?;
    fleet.ready(at, trial).await?;
    if let Some(up) = fleet.up(at) {
        balancer.add(at, up.to).await;
    }
    Ok(())
}
