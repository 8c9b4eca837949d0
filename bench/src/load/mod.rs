//! The load: so many connections, each of which asks, checks the answer, and asks again.
//!
//! It runs on one thread, so that it can be kept on one core, away from the server.

mod check;
mod http1;
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
pub use prepare::{Made, make};
pub use target::Target;

use crate::histogram::Histogram;
use crate::process::cpu_time;
use http1::Connection;
use meter::Meter;
use random::Random;
use request::Template;

/// How long requests that are under way at the end may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// Tasks to ask for again.
const MADE: usize = 1000;
/// Streams to replay.
const STREAMED: usize = 200;

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
    /// SendStreamingMessage to an agent that pauses before each of them.
    Flush,
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
            Self::Send | Self::Get | Self::List => "echo",
        }
    }

    /// Whether the answer is a stream.
    pub(crate) fn streams(self) -> bool {
        matches!(self, Self::Burst | Self::Flush | Self::Resume)
    }
}

/// Which tasks a list has.
#[derive(Clone, Debug, Default)]
pub struct ListFilter {
    /// Those of a context.
    pub context_id: Option<String>,
    /// Those in a state.
    pub status: Option<String>,
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
    /// Connections.
    pub connections: usize,
    /// Time before anything counts.
    pub warm_up: Duration,
    /// Time that counts.
    pub time: Duration,
    /// Ends it earlier, after so many requests.
    pub requests_max: Option<u64>,
    /// The server's process, for the time it takes.
    pub pid: Option<u32>,
    /// For [`Case::Get`] and [`Case::Resume`]: tasks that are there. If empty, some are made.
    pub tasks: Vec<Made>,
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
    for _ in 0..plan.connections {
        let (job, meter) = (Rc::clone(&job), Rc::clone(&meter));
        workers.spawn_local_on(worker(job, meter), &set);
    }
    set.run_until(watch(plan, &meter, workers)).await
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
    sleep(plan.warm_up).await;
    meter.restart();
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

/// What all connections do.
struct Job {
    target: Target,
    requests: Requests,
    case: Case,
}

enum Requests {
    /// A new message each time.
    Fresh(Template),
    /// Any of these, with the mark of the task that each is about.
    Prepared(Vec<(Vec<u8>, String)>),
}

impl Job {
    async fn prepare(plan: &Plan) -> Result<Self> {
        let (target, binding) = (&plan.target, plan.binding);
        let tasks = |count| async move {
            match plan.tasks.is_empty() {
                true => make(target, plan.case, count).await.context("make tasks"),
                false => Ok(plan.tasks.clone()),
            }
        };
        let requests = match plan.case {
            Case::Send | Case::Burst | Case::Flush => {
                Requests::Fresh(Template::new(target, binding, plan.case)?)
            }
            Case::Get => Requests::Prepared(
                tasks(MADE)
                    .await?
                    .into_iter()
                    .map(|made| (request::get(target, binding, &made), made.mark))
                    .collect(),
            ),
            Case::Resume => Requests::Prepared(
                tasks(STREAMED)
                    .await?
                    .into_iter()
                    .map(|made| {
                        (
                            request::subscribe(target, binding, &made.id, Some("0")),
                            made.mark,
                        )
                    })
                    .collect(),
            ),
            Case::List => {
                tasks(PAGE).await?;
                Requests::Prepared(vec![(
                    request::list(target, binding, &plan.filter),
                    String::new(),
                )])
            }
        };
        Ok(Self {
            target: target.clone(),
            requests,
            case: plan.case,
        })
    }
}

async fn worker(job: Rc<Job>, meter: Rc<Meter>) {
    let mut asker = Asker {
        job,
        connection: None,
        random: Random::new(),
        fresh: None,
        body: Vec::new(),
    };
    while meter.begins() {
        match asker.ask().await {
            Ok(took) => meter.succeeded(took),
            Err(error) => {
                asker.connection = None;
                meter.failed(&error);
            }
        }
    }
}

/// One connection and what it needs to ask.
struct Asker {
    job: Rc<Job>,
    connection: Option<Connection>,
    random: Random,
    fresh: Option<Template>,
    body: Vec<u8>,
}

impl Asker {
    /// Asks once and checks the answer; how long that took.
    async fn ask(&mut self) -> Result<Duration> {
        let connection = match &mut self.connection {
            Some(connection) if connection.is_reusable() => connection,
            connection => connection.insert(Connection::open(self.job.target.address).await?),
        };
        let fresh_mark;
        let (request, mark) = match &self.job.requests {
            Requests::Fresh(template) => {
                let template = self.fresh.get_or_insert_with(|| template.clone());
                fresh_mark = template.refresh(&mut self.random);
                (template.bytes(), fresh_mark.as_slice())
            }
            Requests::Prepared(requests) => {
                let index = self.random.next() as usize % requests.len();
                let (request, mark) = &requests[index];
                (request.as_slice(), mark.as_bytes())
            }
        };
        let begin = Instant::now();
        let status = connection.ask(request).await?;
        if status != 200 {
            connection.whole_body(&mut self.body).await?;
            bail!("status {status}: {}", check::shown(&self.body));
        }
        if self.job.case.streams() {
            let mut events = check::Events::default();
            self.body.clear();
            while connection.body(&mut self.body).await? {
                events.take_lines(&mut self.body)?;
            }
            events.take_lines(&mut self.body)?;
            events.finish()?;
            return Ok(begin.elapsed());
        }
        connection.whole_body(&mut self.body).await?;
        let took = begin.elapsed();
        match self.job.case {
            Case::List => check::page(&self.body)?,
            _ => check::task(&self.body, mark)?,
        }
        Ok(took)
    }
}
