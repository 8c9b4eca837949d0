//! The arguments.

use std::time::Duration;

use a2ad_bench::cluster::ClusterArguments;
use a2ad_bench::load::{Binding, Case, IdlePlan, ListFilter, Plan, Target};
use a2ad_bench::run::RunArguments;
use a2ad_bench::scale::{ScaleArguments, SoakArguments};
use a2ad_bench::smoke::SmokeArguments;
use anyhow::Result;
use clap::{Args, Parser, Subcommand};

/// Measures A2A servers on this machine
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Puts a2ad and its peers through the same work and compares them
    Run(RunArguments),
    /// Measures a2ad with very many tasks, pieces and streams
    Scale(ScaleArguments),
    /// Puts a2ad under the same load for a long time and watches its memory
    Soak(SoakArguments),
    /// Measures instances of a2ad that share a PostgreSQL
    Cluster(ClusterArguments),
    /// Tries every case in small with an a2ad, to see that the benchmarks work
    Smoke(SmokeArguments),
    /// Puts one load on a server that runs already
    Load(LoadArguments),
    /// Opens streams on which nothing happens, and then tells them all one event
    Idle(IdleArguments),
}

#[derive(Debug, Args)]
pub(crate) struct LoadArguments {
    /// What to ask
    #[arg(value_enum)]
    case: Case,
    /// The agent: for JSON-RPC its address, for HTTP+JSON what its paths begin with
    #[arg(long)]
    url: String,
    /// The server's process, to see what it takes of its core
    #[arg(long)]
    pid: Option<u32>,
    /// How requests travel
    #[arg(long, value_enum, default_value = "jsonrpc")]
    binding: Binding,
    /// Requests at a time: one on each connection over HTTP/1.1, eight on each over gRPC
    #[arg(long, default_value_t = 32)]
    connections: usize,
    /// Seconds that count
    #[arg(long, default_value_t = 4.0)]
    seconds: f64,
    /// Seconds before that
    #[arg(long, default_value_t = 1.0)]
    warm_up: f64,
    /// Ends it after so many requests, if that is sooner
    #[arg(long)]
    requests: Option<u64>,
    /// The core that the load runs on; keep the server on another
    #[arg(long)]
    pub(crate) core: Option<usize>,
    /// A bearer token
    #[arg(long)]
    token: Option<String>,
    /// Lists the tasks of this context
    #[arg(long)]
    context_id: Option<String>,
    /// Lists the tasks in this state
    #[arg(long)]
    status: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct IdleArguments {
    /// An agent that holds tasks; JSON-RPC is spoken
    #[arg(long)]
    url: String,
    /// The server's process
    #[arg(long)]
    pid: u32,
    /// How many streams
    #[arg(long, default_value_t = 1000)]
    streams: usize,
    /// Seconds before memory is measured
    #[arg(long, default_value_t = 2.0)]
    settle: f64,
    /// Ends without telling them anything
    #[arg(long)]
    silent: bool,
    /// The core that the load runs on; keep the server on another
    #[arg(long)]
    pub(crate) core: Option<usize>,
}

impl IdleArguments {
    pub(crate) fn plan(&self) -> Result<IdlePlan> {
        Ok(IdlePlan {
            target: Target::parse(&self.url)?,
            streams: self.streams,
            pid: self.pid,
            settle: Duration::try_from_secs_f64(self.settle)?,
            cancels: !self.silent,
        })
    }
}

impl LoadArguments {
    pub(crate) fn plan(&self) -> Result<Plan> {
        let mut target = Target::parse(&self.url)?;
        target.token = self.token.clone();
        Ok(Plan {
            target,
            binding: self.binding,
            case: self.case,
            connections: self.connections,
            warm_up: Duration::try_from_secs_f64(self.warm_up)?,
            time: Duration::try_from_secs_f64(self.seconds)?,
            requests_max: self.requests,
            pause: Duration::ZERO,
            pid: self.pid,
            tasks: None,
            filter: ListFilter {
                context_id: self.context_id.clone(),
                status: self.status.clone(),
                total: None,
            },
        })
    }
}
