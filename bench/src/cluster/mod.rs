//! a2ad on PostgreSQL: so many instances on one database, everything on this machine.

mod frames;

use std::fs;
use std::process::Command;
use std::time::Duration;

use a2ad_pgkit::{Cluster, Durability};
use anyhow::{Result, ensure};
use futures_util::future::try_join_all;
use serde::Serialize;
use serde_json::json;
use tokio::runtime::Runtime;

use crate::catalogue::Places;
use crate::load::{self, Binding, Case, ListFilter, Outcome, Plan, Target};
use crate::machine::Machine;
use crate::server::Server;
use crate::table::{Table, number};
use crate::{process, record};

/// Requests at a time, over all instances.
const CONNECTIONS: usize = 128;

/// What to measure.
#[derive(Clone, Debug, clap::Args)]
pub struct ClusterArguments {
    /// Instances on the database
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4])]
    instances: Vec<usize>,
    /// Tasks that are stored before one further measurement, with two instances; none leaves that out
    #[arg(long, default_value_t = 1_000_000)]
    stored: u64,
    /// Seconds that count, per operation
    #[arg(long, default_value_t = 4.0)]
    seconds: f64,
    /// Puts the table into docs/performance.md
    #[arg(long)]
    record: bool,
    #[command(flatten)]
    places: Places,
}

/// What was found with so many instances.
#[derive(Clone, Debug, Serialize)]
struct Found {
    what: String,
    sends: f64,
    events: f64,
    gets: f64,
    lists: f64,
    /// How much later than at the instance that runs the task a frame comes at another, in milliseconds.
    frame_p50: Option<f64>,
    frame_p99: Option<f64>,
}

/// Runs it.
///
/// # Errors
/// When a server does not start, or an answer is wrong.
pub fn cluster(arguments: &ClusterArguments) -> Result<bool> {
    process::raise_open_files()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let work = &arguments.places.work;
    fs::create_dir_all(work)?;
    let machine = Machine::here(work);
    println!("{}", machine.line());
    let postgres = Cluster::start(Durability::Full);
    let time = Duration::try_from_secs_f64(arguments.seconds)?;
    let mut found = Vec::new();
    for &count in &arguments.instances {
        let instances = Instances::start(arguments, &postgres.create(), count)?;
        let what = match count {
            1 => "1 instance".to_owned(),
            count => format!("{count} instances"),
        };
        found.push(instances.measure(&runtime, what, time)?);
    }
    if arguments.stored > 0 {
        let instances = Instances::start(arguments, &postgres.create(), 2)?;
        println!("storing {} tasks", arguments.stored);
        instances.fill(&runtime, arguments.stored)?;
        let what = format!("2 instances, {} tasks stored", arguments.stored);
        found.push(instances.measure(&runtime, what, time)?);
    }
    let table = table(&found);
    println!("\n{table}");
    let json = json!({"machine": machine, "cluster": found});
    fs::write(work.join("cluster.json"), serde_json::to_vec_pretty(&json)?)?;
    if arguments.record {
        let docs = arguments.places.sources.with_file_name("docs");
        let text = format!("{}\n\n{table}", machine.line());
        record::record(&docs.join("performance.md"), "cluster", &text)?;
    }
    Ok(true)
}

/// Servers on one database.
struct Instances(Vec<Server>);

impl Instances {
    fn start(arguments: &ClusterArguments, url: &str, count: usize) -> Result<Self> {
        let places = &arguments.places;
        let start = |index: usize| {
            let data = places.work.join(format!("instance-{index}"));
            fs::create_dir_all(&data)?;
            let mut command = Command::new(&places.a2ad);
            command.arg("serve").arg("-c").arg(places.agents("a2ad"));
            command.args(["--listen", "127.0.0.1:0", "--data-dir"]);
            command.arg(&data).env("A2AD_DATABASE_URL", url);
            Server::start(&mut command, None, &data.join("log"))
        };
        Ok(Self((0..count).map(start).collect::<Result<_>>()?))
    }

    fn targets(&self, path: &str) -> impl Iterator<Item = Target> {
        self.0.iter().map(move |server| server.target.at(path))
    }

    /// Puts one load on all of them together; answers per second.
    fn load(
        &self,
        runtime: &Runtime,
        case: Case,
        time: Duration,
        requests: Option<u64>,
    ) -> Result<f64> {
        let path = if case.streams() {
            "/agents/stream"
        } else {
            "/agents/echo"
        };
        let count = self.0.len();
        let plans: Vec<Plan> = self
            .targets(path)
            .map(|target| Plan {
                target,
                binding: Binding::JsonRpc,
                case,
                connections: CONNECTIONS / count,
                warm_up: if requests.is_some() {
                    Duration::ZERO
                } else {
                    time / 4
                },
                time,
                requests_max: requests.map(|all| all / count as u64),
                pause: Duration::ZERO,
                pid: None,
                tasks: None,
                filter: ListFilter::default(),
            })
            .collect();
        let outcomes = runtime.block_on(try_join_all(plans.iter().map(load::run)))?;
        for outcome in &outcomes {
            let first = outcome.first_errors.first();
            ensure!(
                outcome.errors == 0,
                "{} wrong answers, such as {first:?}",
                outcome.errors
            );
        }
        Ok(outcomes.iter().map(Outcome::rate).sum())
    }

    fn fill(&self, runtime: &Runtime, tasks: u64) -> Result<()> {
        let hour = Duration::from_secs(3600);
        self.load(runtime, Case::Send, hour, Some(tasks)).map(drop)
    }

    fn measure(&self, runtime: &Runtime, what: String, time: Duration) -> Result<Found> {
        println!("{what}");
        let say = |name: &str, value: f64| {
            println!("  {name}: {}", number(Some(value)));
            value
        };
        let sends = say(
            "sends per second",
            self.load(runtime, Case::Send, time, None)?,
        );
        let bursts = self.load(runtime, Case::Burst, time, None)?;
        let events = say("events per second", bursts * load::EVENTS as f64);
        let gets = say(
            "gets per second",
            self.load(runtime, Case::Get, time, None)?,
        );
        let lists = say(
            "lists per second",
            self.load(runtime, Case::List, time, None)?,
        );
        let mut targets = self.targets("/agents/stream");
        let frames = match (targets.next(), targets.next()) {
            (Some(at), Some(other)) => Some(runtime.block_on(frames::follow(&at, &other))?),
            _ => None,
        };
        let milliseconds = |share| {
            let frames = frames.as_ref()?;
            Some(frames.quantile(share).as_secs_f64() * 1e3)
        };
        let (frame_p50, frame_p99) = (milliseconds(0.5), milliseconds(0.99));
        if let Some(late) = frame_p99 {
            say("a frame at another instance, ms later, p99", late);
        }
        Ok(Found {
            what,
            sends,
            events,
            gets,
            lists,
            frame_p50,
            frame_p99,
        })
    }
}

fn table(found: &[Found]) -> String {
    let mut table = Table::new(&[
        "",
        "sends/s",
        "events/s in bursts",
        "gets/s",
        "lists/s",
        "frame elsewhere p50 ms",
        "p99 ms",
    ]);
    for it in found {
        table.row([
            it.what.clone(),
            number(Some(it.sends)),
            number(Some(it.events)),
            number(Some(it.gets)),
            number(Some(it.lists)),
            number(it.frame_p50),
            number(it.frame_p99),
        ]);
    }
    table.to_string()
}
