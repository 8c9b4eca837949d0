//! All servers through the same work, in one run: fresh and one after the other in each round, so that what else the
//! machine does hits all of them alike.

mod cases;
mod plot;
mod summary;

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde::Serialize;
use serde_json::json;
use tokio::runtime::Runtime;

use crate::catalogue::{Keeps, PEERS, Peer, Places};
use crate::load::{self, IdlePlan, ListFilter, Plan};
use crate::machine::Machine;
use crate::server::Server;
use crate::{disk, process, record};
use cases::{IDLE, MEASURES, Measure};

/// Streams that are held open: a2a-protocol-server has no more than 1,024.
const IDLE_STREAMS: usize = 1000;

/// What to run, and how long.
#[derive(Clone, Debug, clap::Args)]
pub struct RunArguments {
    /// Rounds; what is told is the middle one of each number
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds that count, per case
    #[arg(long, default_value_t = 4.0)]
    seconds: f64,
    /// A look rather than a measurement: one round, a second per case
    #[arg(long)]
    quick: bool,
    /// Only these servers
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Only these cases
    #[arg(long, value_delimiter = ',')]
    case: Vec<String>,
    /// Puts the tables into docs/performance.md
    #[arg(long)]
    record: bool,
    /// The core of the servers
    #[arg(long, default_value_t = 0)]
    server_core: usize,
    /// The core of the load
    #[arg(long, default_value_t = 1)]
    load_core: usize,
    #[command(flatten)]
    places: Places,
}

/// One case in one round.
#[derive(Clone, Debug, Serialize)]
struct Measured {
    round: usize,
    server: &'static str,
    case: &'static str,
    rate: f64,
    cpu_us: Option<f64>,
    p50_ms: f64,
    p99_ms: f64,
    errors: u64,
    first_errors: Vec<String>,
    /// What a sync of the disk took right before, if the server does any.
    sync_us: Option<f64>,
}

/// Idle streams in one round.
#[derive(Clone, Debug, Serialize)]
struct MeasuredIdle {
    round: usize,
    server: &'static str,
    /// From the start of the process until it listened.
    start_ms: f64,
    streams: usize,
    rss_kib: u64,
    kib_each: f64,
    event_p50_ms: Option<f64>,
    event_p99_ms: Option<f64>,
}

/// All that a run found.
#[derive(Clone, Debug, Default, Serialize)]
struct Results {
    measured: Vec<Measured>,
    idle: Vec<MeasuredIdle>,
    /// What could not be measured, and why.
    failures: Vec<String>,
}

/// Runs it; whether all answers were right.
///
/// # Errors
/// When servers do not start, or nothing can be written.
pub fn run(arguments: &RunArguments) -> Result<bool> {
    let run = Run::new(arguments)?;
    process::raise_open_files()?;
    process::pin(arguments.load_core).context("this needs two cores")?;
    let machine = Machine::here(&arguments.places.work);
    println!("{}", machine.line());
    let mut results = Results::default();
    for round in 1..=run.rounds {
        for peer in &run.peers {
            println!("round {round}: {}", peer.name);
            if let Err(error) = run.measure(round, peer, &mut results) {
                println!("  failed: {error:#}");
                results.failures.push(format!("{}: {error:#}", peer.name));
            }
        }
    }
    let summary = summary::summarise(&results);
    let tables = summary::tables(&summary, &results.idle);
    println!("\n{tables}");
    let work = &arguments.places.work;
    let svg = plot::plot(&summary);
    fs::write(work.join("run.svg"), &svg)?;
    let json = json!({"machine": machine, "results": results, "summary": summary});
    fs::write(work.join("run.json"), serde_json::to_vec_pretty(&json)?)?;
    println!("written: {0}/run.json and {0}/run.svg", work.display());
    if arguments.record {
        let docs = arguments.places.sources.with_file_name("docs");
        let picture = "![CPU time per request of every server](performance.svg)";
        let text = format!("{}\n\n{picture}\n\n{tables}", machine.line());
        record::record(&docs.join("performance.md"), "run", &text)?;
        fs::write(docs.join("performance.svg"), svg)?;
    }
    Ok(report_wrong(&results))
}

/// Names what went wrong; whether nothing did.
fn report_wrong(results: &Results) -> bool {
    let mut all_right = results.failures.is_empty();
    for failure in &results.failures {
        println!("failed: {failure}");
    }
    for measured in results
        .measured
        .iter()
        .filter(|measured| measured.errors > 0)
    {
        all_right = false;
        println!(
            "{} errors of {} in {}:",
            measured.errors, measured.server, measured.case
        );
        for error in &measured.first_errors {
            println!("  {error}");
        }
    }
    all_right
}

/// A run with its arguments checked.
struct Run<'a> {
    arguments: &'a RunArguments,
    rounds: usize,
    peers: Vec<&'static Peer>,
    measures: Vec<&'static Measure>,
    idle: bool,
    time: Duration,
    warm_up: Duration,
}

impl<'a> Run<'a> {
    fn new(arguments: &'a RunArguments) -> Result<Self> {
        let (only, case) = (&arguments.only, &arguments.case);
        for name in only {
            let mut names = PEERS.iter().map(|peer| peer.name);
            ensure!(names.any(|known| known == name), "no server `{name}`");
        }
        for name in case {
            let mut names = MEASURES.iter().map(|measure| measure.name).chain([IDLE]);
            ensure!(names.any(|known| known == name), "no case `{name}`");
        }
        let chosen =
            |asked: &[String], name: &str| asked.is_empty() || asked.iter().any(|it| it == name);
        ensure!(
            arguments.server_core != arguments.load_core,
            "one core cannot be both"
        );
        Ok(Self {
            arguments,
            rounds: if arguments.quick { 1 } else { arguments.rounds },
            peers: PEERS
                .iter()
                .filter(|peer| chosen(only, peer.name))
                .collect(),
            measures: MEASURES
                .iter()
                .filter(|measure| chosen(case, measure.name))
                .collect(),
            idle: chosen(case, IDLE),
            time: Duration::try_from_secs_f64(if arguments.quick {
                1.0
            } else {
                arguments.seconds
            })?,
            warm_up: Duration::from_secs_f64(if arguments.quick { 0.3 } else { 1.0 }),
        })
    }

    /// Everything with one server, started fresh, and again for idle streams: memory that other cases used would
    /// hide what they need.
    fn measure(&self, round: usize, peer: &'static Peer, results: &mut Results) -> Result<()> {
        let data = self.arguments.places.work.join("data").join(peer.name);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        if !self.measures.is_empty() {
            let server = self.start(peer, &data)?;
            self.measure_cases(round, peer, &server, &data, &runtime, results)?;
            stop(peer, server)?;
        }
        if self.idle {
            let server = self.start(peer, &data)?;
            let idle = self
                .measure_idle(round, peer, &server, &runtime)
                .context(IDLE)?;
            println!("  {}", summary::idle_line(&idle));
            results.idle.push(idle);
            stop(peer, server)?;
        }
        fs::remove_dir_all(&data)?;
        Ok(())
    }

    fn start(&self, peer: &Peer, data: &Path) -> Result<Server> {
        let places = &self.arguments.places;
        empty(data)?;
        let log = places.work.join(format!("{}.log", peer.name));
        let core = Some(self.arguments.server_core);
        Server::start(&mut peer.command(places, data), core, &log)
    }

    fn measure_cases(
        &self,
        round: usize,
        peer: &'static Peer,
        server: &Server,
        data: &Path,
        runtime: &Runtime,
        results: &mut Results,
    ) -> Result<()> {
        for measure in self.measures.iter().filter(|measure| measure.is_for(peer)) {
            let sync = (peer.keeps == Keeps::Durably && measure.writes())
                .then(|| disk::sync_time(data, self.warm_up));
            let plan = Plan {
                target: measure.target(peer, &server.target),
                binding: measure.binding,
                case: measure.case,
                connections: measure.connections,
                warm_up: self.warm_up,
                time: self.time,
                requests_max: None,
                pid: Some(server.pid()),
                pause: Duration::ZERO,
                tasks: None,
                filter: ListFilter::default(),
            };
            let outcome = runtime.block_on(load::run(&plan)).context(measure.name)?;
            let milliseconds = |share| outcome.latencies.quantile(share).as_secs_f64() * 1e3;
            let measured = Measured {
                round,
                server: peer.name,
                case: measure.name,
                rate: outcome.rate(),
                cpu_us: outcome.cpu_us(),
                p50_ms: milliseconds(0.5),
                p99_ms: milliseconds(0.99),
                errors: outcome.errors,
                first_errors: outcome.first_errors.clone(),
                sync_us: sync.transpose()?.map(|time| time.as_secs_f64() * 1e6),
            };
            println!("  {}", summary::line(&measured));
            results.measured.push(measured);
            if outcome.latencies.is_empty() {
                bail!("{}: not one right answer", measure.name);
            }
        }
        Ok(())
    }

    fn measure_idle(
        &self,
        round: usize,
        peer: &'static Peer,
        server: &Server,
        runtime: &Runtime,
    ) -> Result<MeasuredIdle> {
        let outcome = runtime.block_on(load::idle(&IdlePlan {
            target: server.target.at(peer.stream_path()),
            streams: IDLE_STREAMS,
            pid: server.pid(),
            settle: self.warm_up * 2,
            cancels: peer.cancels,
        }))?;
        let milliseconds = |share| {
            let arrivals = outcome.arrivals.as_ref();
            arrivals.map(|arrivals| arrivals.quantile(share).as_secs_f64() * 1e3)
        };
        Ok(MeasuredIdle {
            round,
            server: peer.name,
            start_ms: server.started_in.as_secs_f64() * 1e3,
            streams: outcome.streams,
            rss_kib: outcome.before_kib,
            kib_each: outcome.kib_each(),
            event_p50_ms: milliseconds(0.5),
            event_p99_ms: milliseconds(0.99),
        })
    }
}

/// Stops it; how others end is not what is measured.
fn stop(peer: &Peer, server: Server) -> Result<()> {
    match server.stop() {
        Err(error) if peer.ours => Err(error),
        _ => Ok(()),
    }
}

/// An empty folder.
fn empty(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("remove {}", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))
}
