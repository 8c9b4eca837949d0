//! The A2A daemon: arguments, environment, exit codes. Everything else is `a2ad-server`.
#![allow(
    clippy::print_stderr,
    reason = "talking to the terminal is this crate's part"
)]

mod arguments;
mod check;
mod context;
mod db;
mod doctor;
mod failure;
mod logs;
mod serve;
mod settings;
mod token;
mod verify;

use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use anyhow::Context as _;
use arguments::{Command, ConfigCommand};
use failure::{Exit, Failure};

#[cfg(all(feature = "jemalloc", not(target_env = "msvc")))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let done = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        Err(Failure::new(
            Exit::Internal,
            anyhow::anyhow!("a bug in a2ad ended it; please report the lines above"),
        ))
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("a2ad: {failure}");
            failure.exit.into()
        }
    }
}

fn run() -> Result<(), Failure> {
    let Some(command) = arguments::parse(std::env::args_os())? else {
        return Ok(());
    };
    match command {
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Verify(arguments) => verify::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Db(command) => db::run(&command),
        Command::Context(command) => context::run(&command),
        Command::Token(command) => token::run(&command),
        Command::Config(ConfigCommand::Check(arguments)) => check::run(&arguments),
        Command::Config(ConfigCommand::Schema) => check::schema(),
    }
}

/// Sees something through that waits for others.
fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Runtime::new()
        .context("start the runtime")
        .map_err(|error| Failure::new(Exit::Failure, error))?;
    runtime.block_on(work)
}

/// Writes to the standard output. Nobody may be reading, which is no reason to stop.
fn tell(text: &str) {
    let mut out = std::io::stdout().lock();
    let _unread = writeln!(out, "{text}").and_then(|()| out.flush());
}
