//! Every case once, in small, so that the benchmarks do not rot between two runs of them.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::catalogue::{a2ad, agents};
use crate::load::{self, Binding, Case, IdlePlan, ListFilter, Making, PAGE, Plan};
use crate::server::Server;

const REQUESTS: u64 = 50;
const CONNECTIONS: usize = 8;
const STREAMS: usize = 20;
/// Reached only if something is wrong.
const TIME_MAX: Duration = Duration::from_secs(20);

/// What to try.
#[derive(Clone, Debug, clap::Args)]
pub struct SmokeArguments {
    /// The a2ad binary
    pub a2ad: PathBuf,
    /// The folder `bench` of the sources
    #[arg(long, default_value = "bench")]
    pub sources: PathBuf,
    /// A folder for the data
    #[arg(long, default_value = "target/bench")]
    pub work: PathBuf,
}

/// Tries every case over every binding with a2ad.
///
/// # Errors
/// When a single answer is wrong.
pub fn smoke(arguments: &SmokeArguments) -> Result<()> {
    let folder = arguments.work.join("smoke");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let start = |config: &str, data: &str| {
        let config = agents(&arguments.sources, config);
        let mut command = a2ad(&arguments.a2ad, &config, &folder.join(data), "os");
        Server::start(&mut command, None, &folder.join("log"))
    };
    let server = start("a2ad", "data")?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let told = runtime.block_on(async {
        every_case(&server).await?;
        idle(&server).await
    });
    let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
    told.with_context(|| format!("what a2ad said: {log}"))?;
    server.kill()?;
    // The other configuration need only be one.
    start("scale", "other")?.kill()?;
    fs::remove_dir_all(&folder)?;
    Ok(())
}

async fn every_case(server: &Server) -> Result<()> {
    for case in [
        Case::Send,
        Case::Burst,
        Case::Flush,
        Case::Sync,
        Case::Get,
        Case::List,
        Case::Resume,
    ] {
        let streams = case.streams();
        let target = server.target.at(if streams {
            "/agents/stream"
        } else {
            "/agents/echo"
        });
        // A few are enough to ask for.
        let making = Making {
            target: target.clone(),
            word: if streams { "burst" } else { "echo" },
            streams,
            context_id: None,
            count: PAGE,
            connections: CONNECTIONS,
        };
        let tasks = making.make().await.context("make tasks")?;
        for binding in [Binding::JsonRpc, Binding::HttpJson, Binding::Grpc] {
            let plan = Plan {
                target: target.clone(),
                binding,
                case,
                connections: CONNECTIONS,
                warm_up: Duration::ZERO,
                time: TIME_MAX,
                requests_max: Some(REQUESTS),
                pause: Duration::ZERO,
                pid: Some(server.pid()),
                tasks: Some(tasks.clone()),
                filter: ListFilter::default(),
            };
            let outcome = load::run(&plan).await;
            let outcome = outcome.with_context(|| format!("{case:?} over {binding:?}"))?;
            ensure!(
                outcome.errors == 0 && outcome.latencies.len() == REQUESTS,
                "{case:?} over {binding:?}: {} right answers, {:?}",
                outcome.latencies.len(),
                outcome.first_errors
            );
        }
    }
    Ok(())
}

async fn idle(server: &Server) -> Result<()> {
    let plan = IdlePlan {
        target: server.target.at("/agents/stream"),
        streams: STREAMS,
        pid: server.pid(),
        settle: Duration::ZERO,
        cancels: true,
    };
    let outcome = load::idle(&plan).await.context("idle streams")?;
    let arrived = outcome.arrivals.map_or(0, |arrivals| arrivals.len());
    ensure!(arrived == STREAMS as u64, "{arrived} streams got the event");
    Ok(())
}
