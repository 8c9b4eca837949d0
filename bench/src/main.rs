//! `a2ad-bench`: see README.md.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "talking to the terminal is what this program is for"
)]

mod arguments;

use std::process::ExitCode;

use a2ad_bench::{cluster, load, process, run, scale, smoke};
use anyhow::{Context as _, Result};
use arguments::{Arguments, Command, IdleArguments, LoadArguments};
use clap::Parser as _;

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Scale(arguments) => scale::scale(&arguments),
        Command::Soak(arguments) => scale::soak(&arguments),
        Command::Cluster(arguments) => cluster::cluster(&arguments),
        Command::Smoke(arguments) => smoke::smoke(&arguments).map(|()| true),
        Command::Load(arguments) => load(&arguments),
        Command::Idle(arguments) => idle(&arguments),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("a2ad-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Puts one load on one server; whether all answers were right.
fn load(arguments: &LoadArguments) -> Result<bool> {
    let plan = arguments.plan()?;
    let outcome = on_one_core(arguments.core, load::run(&plan))?;
    let milliseconds = |share| outcome.latencies.quantile(share).as_secs_f64() * 1e3;
    let cpu = match outcome.cpu_us() {
        Some(cpu) => format!("{cpu:.1} µs CPU each, "),
        None => String::new(),
    };
    println!(
        "{} answers in {:.2} s: {:.0}/s, {cpu}p50 {:.2} ms, p99 {:.2} ms, {} errors",
        outcome.latencies.len(),
        outcome.time.as_secs_f64(),
        outcome.rate(),
        milliseconds(0.5),
        milliseconds(0.99),
        outcome.errors,
    );
    for error in &outcome.first_errors {
        println!("error: {error}");
    }
    Ok(outcome.errors == 0 && !outcome.latencies.is_empty())
}

fn idle(arguments: &IdleArguments) -> Result<bool> {
    let outcome = on_one_core(arguments.core, load::idle(&arguments.plan()?))?;
    println!(
        "{} streams: {:.1} KiB each (from {} to {} KiB)",
        outcome.streams,
        outcome.kib_each(),
        outcome.before_kib,
        outcome.after_kib,
    );
    if let Some(arrivals) = outcome.arrivals {
        let milliseconds = |share| arrivals.quantile(share).as_secs_f64() * 1e3;
        println!(
            "one event to all: p50 {:.1} ms, p99 {:.1} ms, last {:.1} ms",
            milliseconds(0.5),
            milliseconds(0.99),
            milliseconds(1.0),
        );
    }
    Ok(true)
}

fn on_one_core<T>(core: Option<usize>, work: impl Future<Output = Result<T>>) -> Result<T> {
    process::raise_open_files()?;
    if let Some(core) = core {
        process::pin(core)?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("start the runtime")?;
    runtime.block_on(work)
}
