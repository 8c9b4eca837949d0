//! The kill test at length: `cargo xtask soak [--kills 500] [--seed 7] [--json]`.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for people who wait for its report"
)]

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use a2ad_testkit::kill::{self, Plan};

const USAGE: &str = "\
usage: soak [--kills N] [--seed N] [--binary PATH] [--clients N] [--folder PATH] [--json]

Kills the daemon N times (500) under mixed load and checks what it kept.
Without --binary, builds the daemon as it was built itself, and takes that.
--folder keeps data, history and log there; otherwise they are kept only when something is wrong.
Exit codes: 0 nothing wrong, 1 something is, 2 wrong usage.";

struct Asked {
    plan: Plan,
    json: bool,
}

fn main() -> ExitCode {
    let asked = match parse(std::env::args().skip(1)) {
        Ok(asked) => asked,
        Err(error) => {
            eprintln!("{error}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("no runtime: {error}");
            return ExitCode::from(2);
        }
    };
    let report = runtime.block_on(Box::pin(kill::run(&asked.plan)));
    if asked.json {
        println!("{}", report.json());
    } else {
        println!("{report}");
    }
    ExitCode::from(u8::from(!report.is_clean()))
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Asked, String> {
    // Short enough to be typed again.
    let seed = RandomState::new().hash_one(0) % 1_000_000;
    let mut plan = Plan::new("", seed, 500);
    plan.check_every = 100;
    plan.progress = true;
    let mut json = false;
    let mut binary = None;
    while let Some(name) = arguments.next() {
        if name == "--json" {
            json = true;
            continue;
        }
        let value = arguments
            .next()
            .ok_or_else(|| format!("{name} needs a value or is unknown"))?;
        let number = |what: &str| format!("{what} needs a number, not {value:?}");
        match name.as_str() {
            "--kills" => plan.kills = value.parse().map_err(|_| number("--kills"))?,
            "--seed" => plan.seed = value.parse().map_err(|_| number("--seed"))?,
            "--clients" => plan.clients = value.parse().map_err(|_| number("--clients"))?,
            "--binary" => binary = Some(PathBuf::from(value)),
            "--folder" => plan.folder = Some(PathBuf::from(value)),
            _ => return Err(format!("{name} is unknown")),
        }
    }
    plan.repeat = format!(
        "cargo xtask soak --kills {} --seed {} --clients {}",
        plan.kills, plan.seed, plan.clients
    );
    plan.binary = match binary {
        Some(binary) => binary,
        None => build()?,
    };
    if !plan.binary.is_file() {
        return Err(format!("{} is not there", plan.binary.display()));
    }
    Ok(Asked { plan, json })
}

/// Builds the daemon beside this program.
fn build() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let folder = own.parent().ok_or("this program is nowhere")?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--locked", "--package", "a2ad"]);
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    match command.status() {
        Ok(status) if status.success() => Ok(folder.join("a2ad")),
        Ok(status) => Err(format!("the daemon cannot be built: {status}")),
        Err(error) => Err(format!("cargo cannot be run: {error}")),
    }
}
