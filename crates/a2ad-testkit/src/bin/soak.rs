//! The kill test at length: `cargo xtask soak [--kills 500] [--seed 7] [--json]`, and with
//! `--postgres` several daemons on one PostgreSQL; with `--rolling` a rolling restart of these under steady load.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for people who wait for its report"
)]

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::str::FromStr;
use std::time::Duration;

use a2ad_testkit::harness::Binding;
use a2ad_testkit::kill::load::Steady;
use a2ad_testkit::kill::rolling::Load;
use a2ad_testkit::kill::{self, Plan, many, rolling};

const USAGE: &str = "\
usage: soak [--kills N] [--seed N] [--binary PATH] [--clients N] [--folder PATH] [--json]
       soak --postgres [the same] [--postgres-kills N] [--freezes N] [--cuts N] [--instances N]
            [--lease SECONDS] [--check-every N]
       soak --rolling [--seed N] [--binary PATH] [--folder PATH] [--json] [--rate N] [--streams N]
            [--instances N] [--rounds N] [--between SECONDS]

Kills the daemon N times (500) under mixed load and checks what it kept.
With --postgres: several instances (3) on one PostgreSQL with a lease of 2 s; kills an instance 100 times,
PostgreSQL 20 times, freezes an instance past its lease 20 times, and cuts connections between
instances and PostgreSQL 30 times. Everything is checked after every tenth fault.
With --rolling: restarts several instances (3) one after the other, twice, behind a balancer, under 300
messages a second and 1,000 open streams over JSON-RPC, HTTP+JSON and gRPC. No call may fail. It takes
about 20 s for each restart.
Without --binary, builds the daemon as it was built itself, and takes that.
--folder keeps data, history and log there; otherwise they are kept only when something is wrong.
Exit codes: 0 nothing wrong, 1 something is, 2 wrong usage.";

struct Asked {
    plan: Chosen,
    json: bool,
}

enum Chosen {
    One(Plan),
    Many(many::Plan),
    Rolling(rolling::Plan),
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
    let report = match &asked.plan {
        Chosen::One(plan) => runtime.block_on(Box::pin(kill::run(plan))),
        Chosen::Many(plan) => runtime.block_on(Box::pin(many::run(plan))),
        Chosen::Rolling(plan) => runtime.block_on(Box::pin(rolling::run(plan))),
    };
    if asked.json {
        println!("{}", report.json());
    } else {
        println!("{report}");
    }
    ExitCode::from(u8::from(!report.is_clean()))
}

/// What stands on the command line.
#[derive(Default)]
struct Arguments {
    json: bool,
    postgres: bool,
    rolling: bool,
    given: Vec<(String, String)>,
}

impl Arguments {
    fn read(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut arguments = Self::default();
        while let Some(name) = words.next() {
            match name.as_str() {
                "--json" => arguments.json = true,
                "--postgres" => arguments.postgres = true,
                "--rolling" => arguments.rolling = true,
                _ => {
                    let value = words.next();
                    let value =
                        value.ok_or_else(|| format!("{name} needs a value or is unknown"))?;
                    arguments.given.push((name, value));
                }
            }
        }
        Ok(arguments)
    }

    /// Takes out what was given by this name.
    fn take(&mut self, name: &str) -> Option<String> {
        let at = self.given.iter().rposition(|(given, _)| given == name)?;
        Some(self.given.remove(at).1)
    }

    fn number<T: FromStr>(&mut self, name: &str, default: T) -> Result<T, String> {
        match self.take(name) {
            Some(value) => value
                .parse()
                .map_err(|_| format!("{name} needs a number, not {value:?}")),
            None => Ok(default),
        }
    }

    fn end(self) -> Result<(), String> {
        match self.given.first() {
            Some((name, _)) => Err(format!("{name} is unknown")),
            None => Ok(()),
        }
    }
}

fn parse(words: impl Iterator<Item = String>) -> Result<Asked, String> {
    let mut arguments = Arguments::read(words)?;
    let json = arguments.json;
    // Short enough to be typed again.
    let seed = RandomState::new().hash_one(0) % 1_000_000;
    let seed = arguments.number("--seed", seed)?;
    let folder = arguments.take("--folder").map(PathBuf::from);
    let binary = arguments.take("--binary").map(PathBuf::from);
    let mut plan = if arguments.rolling {
        Chosen::Rolling(parse_rolling(&mut arguments, seed)?)
    } else if arguments.postgres {
        Chosen::Many(parse_many(&mut arguments, seed)?)
    } else {
        Chosen::One(parse_one(&mut arguments, seed)?)
    };
    arguments.end()?;
    let binary = match binary {
        Some(binary) => binary,
        None => build()?,
    };
    if !binary.is_file() {
        return Err(format!("{} is not there", binary.display()));
    }
    match &mut plan {
        Chosen::One(plan) => (plan.binary, plan.folder) = (binary, folder),
        Chosen::Many(plan) => (plan.binary, plan.folder) = (binary, folder),
        Chosen::Rolling(plan) => (plan.binary, plan.folder) = (binary, folder),
    }
    Ok(Asked { plan, json })
}

fn parse_one(arguments: &mut Arguments, seed: u64) -> Result<Plan, String> {
    let mut plan = Plan::new("", seed, arguments.number("--kills", 500)?);
    plan.clients = arguments.number("--clients", plan.clients)?;
    plan.check_every = 100;
    plan.progress = true;
    plan.repeat = format!(
        "cargo xtask soak --kills {} --seed {} --clients {}",
        plan.kills, plan.seed, plan.clients
    );
    Ok(plan)
}

fn parse_many(arguments: &mut Arguments, seed: u64) -> Result<many::Plan, String> {
    let mut plan = many::Plan::new("", seed);
    plan.kills = arguments.number("--kills", 100)?;
    plan.postgres_kills = arguments.number("--postgres-kills", 20)?;
    plan.freezes = arguments.number("--freezes", 20)?;
    plan.cuts = arguments.number("--cuts", 30)?;
    plan.clients = arguments.number("--clients", plan.clients)?;
    plan.instances = arguments.number("--instances", plan.instances)?;
    let lease = arguments.number("--lease", plan.lease.as_secs())?;
    plan.lease = Duration::from_secs(lease);
    plan.check_every = arguments.number("--check-every", 10)?;
    if plan.instances < 2 || plan.check_every == 0 || lease == 0 {
        return Err("it takes two instances, a lease, and checks".to_owned());
    }
    plan.progress = true;
    plan.repeat = format!(
        "cargo xtask soak --postgres --kills {} --postgres-kills {} --freezes {} --cuts {} \
         --seed {} --clients {} --instances {} --lease {lease} --check-every {}",
        plan.kills,
        plan.postgres_kills,
        plan.freezes,
        plan.cuts,
        plan.seed,
        plan.clients,
        plan.instances,
        plan.check_every
    );
    Ok(plan)
}

fn parse_rolling(arguments: &mut Arguments, seed: u64) -> Result<rolling::Plan, String> {
    let mut plan = rolling::Plan::new("", seed);
    let steady = Steady {
        rate: arguments.number("--rate", 300)?,
        streams: arguments.number("--streams", 1_000)?,
        words: 15,
        pause: Duration::from_millis(500),
        bindings: &[Binding::JsonRpc, Binding::HttpJson, Binding::Grpc],
    };
    plan.load = Load::Steady(steady);
    plan.instances = arguments.number("--instances", plan.instances)?;
    plan.rounds = arguments.number("--rounds", 2)?;
    let between = arguments.number("--between", 5)?;
    plan.between = Duration::from_secs(between);
    if plan.instances < 2 {
        return Err("it takes two instances".to_owned());
    }
    plan.progress = true;
    plan.repeat = format!(
        "cargo xtask soak --rolling --seed {} --rate {} --streams {} --instances {} --rounds {} \
         --between {between}",
        plan.seed, steady.rate, steady.streams, plan.instances, plan.rounds
    );
    Ok(plan)
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
