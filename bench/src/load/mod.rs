//! The load: so many connections, each of which asks, checks the answer, and asks again.
//!
//! It runs on one thread, so that it can be kept on one core, away from the server.

mod ask;
mod check;
mod follower;
mod grpc;
mod http1;
mod idle;
mod job;
mod long;
mod meter;
mod prepare;
mod random;
mod request;
mod target;

use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{sleep, timeout};

pub use check::{EVENTS, PAGE, PIECES};
pub use follower::Follower;
pub use idle::{IdleOutcome, IdlePlan, idle};
pub use long::{LongOutcome, LongPlan, long};
pub use prepare::{Made, Making};
pub use target::Target;

use crate::histogram::Histogram;
use crate::process::cpu_time;
use ask::{Asker, Line};
use job::Job;
use meter::Meter;

/// How long requests that are under way at the end may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// How requests travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Binding {
    /// JSON-RPC over HTTP/1.1.
    #[value(name = "jsonrpc")]
    JsonRpc,
    /// HTTP+JSON over HTTP/1.1.
    HttpJson,
    /// gRPC over HTTP/2.
    Grpc,
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Case {
    /// SendMessage, blocking, to an agent that echoes.
    Send,
    /// SendStreamingMessage to an agent that says 20 events at once.
    Burst,
    /// SendStreamingMessage to an agent that says them one by one.
    Flush,
    /// SendStreamingMessage to an agent that waits until each of them is written.
    Sync,
    /// GetTask of one of a thousand tasks.
    Get,
    /// ListTasks, a page of 50.
    List,
    /// SubscribeToTask from the beginning of a task that has ended.
    Resume,
}

impl Case {
    /// What a message begins with; it tells the agent what to do.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Burst | Self::Resume => "burst",
            Self::Flush => "flush",
            Self::Sync => "sync",
            Self::Send | Self::Get | Self::List => "echo",
        }
    }

    /// Whether the answer is a stream.
    pub(crate) fn streams(self) -> bool {
        matches!(self, Self::Burst | Self::Flush | Self::Sync | Self::Resume)
    }
}

/// Which tasks a list has.
#[derive(Clone, Debug, Default)]
pub struct ListFilter {
    /// Those of a context.
    pub context_id: Option<String>,
    /// Those in a state.
    pub status: Option<String>,
    /// How many there are in all, if that is known.
    pub total: Option<u64>,
}

/// What to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Whom to ask.
    pub target: Target,
    /// How.
    pub binding: Binding,
    /// What.
    pub case: Case,
    /// Requests at a time: one on each connection over HTTP/1.1, eight on each over gRPC.
    pub connections: usize,
    /// Time before anything counts.
    pub warm_up: Duration,
    /// Time that counts.
    pub time: Duration,
    /// Ends it earlier, after so many requests.
    pub requests_max: Option<u64>,
    /// What each connection waits between an answer and its next request.
    pub pause: Duration,
    /// The server's process, for the time it takes.
    pub pid: Option<u32>,
    /// Tasks that are there, for [`Case::Get`] and [`Case::Resume`] to ask for. If not given, these and
    /// [`Case::List`] make some.
    pub tasks: Option<Vec<Made>>,
    /// For [`Case::List`].
    pub filter: ListFilter,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How long every right answer took.
    pub latencies: Histogram,
    /// Over how much time.
    pub time: Duration,
    /// What the server took of its core meanwhile.
    pub cpu: Option<Duration>,
    /// Answers that were wrong or did not come, from the beginning of the warm-up on.
    pub errors: u64,
    /// The first of them.
    pub first_errors: Vec<String>,
}

impl Outcome {
    /// Right answers per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.latencies.len() as f64 / self.time.as_secs_f64()
    }

    /// What an answer took of the server's core, in µs.
    #[must_use]
    pub fn cpu_us(&self) -> Option<f64> {
        let answers = self.latencies.len() as f64;
        self.cpu.map(|cpu| cpu.as_secs_f64() * 1e6 / answers)
    }
}

/// Does it.
///
/// # Errors
/// When the server cannot be reached, or ends. Wrong answers are counted instead.
pub async fn run(plan: &Plan) -> Result<Outcome> {
    let job = Rc::new(Job::prepare(plan).await?);
    let meter = Rc::new(Meter::new(plan.requests_max));
    let set = LocalSet::new();
    let mut workers = JoinSet::new();
    // What keeps connections going that several workers share; gone with this set.
    let mut connections = JoinSet::new();
    set.run_until(async {
        let mut shared = None;
        for index in 0..plan.connections {
            let line = match plan.binding {
                Binding::JsonRpc | Binding::HttpJson => Line::Http1(None),
                Binding::Grpc => {
                    if index % grpc::CALLS == 0 {
                        let (sender, connection) = grpc::connect(plan.target.address).await?;
                        connections.spawn_local(connection);
                        shared = Some(sender);
                    }
                    Line::Grpc(shared.clone().context("the first has a connection")?)
                }
            };
            let asker = Asker::new(Rc::clone(&job), line);
            workers.spawn_local(worker(asker, Rc::clone(&meter), plan.pause));
        }
        watch(plan, &meter, workers).await
    })
    .await
}

async fn worker(mut asker: Asker, meter: Rc<Meter>, pause: Duration) {
    while meter.begins() {
        match asker.ask().await {
            Ok(took) => meter.succeeded(took),
            Err(error) => meter.failed(&error),
        }
        if !pause.is_zero() {
            sleep(pause).await;
        }
    }
}

/// Counts from the end of the warm-up until the time is over or the requests are done.
async fn watch(plan: &Plan, meter: &Meter, mut workers: JoinSet<()>) -> Result<Outcome> {
    let cpu = || plan.pid.map(cpu_time).transpose();
    let all_done = async |workers: &mut JoinSet<()>| {
        while let Some(ended) = workers.join_next().await {
            ended.context("a connection")?;
        }
        anyhow::Ok(())
    };
    // Even no time at all would let some answers in, which would then not count.
    if !plan.warm_up.is_zero() {
        sleep(plan.warm_up).await;
        meter.restart();
    }
    let (begin, cpu_before) = (Instant::now(), cpu()?);
    if let Ok(done) = timeout(plan.time, all_done(&mut workers)).await {
        done?;
    }
    let (time, cpu_after) = (begin.elapsed(), cpu()?);
    let latencies = meter.latencies();
    meter.end();
    match timeout(PATIENCE, all_done(&mut workers)).await {
        Ok(done) => done?,
        Err(_) => bail!("some answers did not come within {PATIENCE:?}"),
    }
    let (errors, first_errors) = meter.errors();
    Ok(Outcome {
        latencies,
        time,
        cpu: cpu_before
            .zip(cpu_after)
            .map(|(before, after)| after - before),
        errors,
        first_errors,
    })
}
