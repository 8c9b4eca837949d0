//! The project's own checks and chores: `cargo xtask <command>`.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "talking to the terminal is what this program is for"
)]

mod bench;
mod ci;
mod deny;
mod generate;
mod interop;
mod layers;
mod postgres;
mod python;
mod requirements;
mod servers;
mod workspace;

use std::process::ExitCode;

use anyhow::{Result, bail};
use requirements::Form;

const USAGE: &str = "\
cargo xtask <command>

  bench [arguments]   a2ad beside its peers; see bench/README.md (`bench run --help` for arguments)
  ci                  everything that has to be right before a change lands
  ci --list           the names of its steps
  ci <step>…          only these steps
  generate [--check]  writes docs/a2ad.schema.json and the help texts in docs/command.md
  interop [name]…     tests with the official clients of A2A (python, js, rust; python03 and js03 of
                      generation 0.3), and of our client with the servers of the official SDKs
                      (servers)
  layers              checks which crate uses which
  postgres            installs PostgreSQL for the tests, below the target folder
  requirements        the requirements of docs/requirements.md that have no test
  requirements --list | --json
                      all of them with their tests
  deny                checks licences, sources and banned crates (installs cargo-deny once)
  soak [arguments]    the long kill test; by default 500 kills, and then 500 cuts
  soak --postgres     the same for three instances on one PostgreSQL: 100 kills of instances, 20 of
                      PostgreSQL, and instances that are frozen or cut off
  soak --rolling      a rolling restart of three instances, twice, under 300 messages a second and
                      1,000 open streams over all bindings
  soak cuts           streams that are cut 500 times";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<()> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["bench", arguments @ ..] => bench::run(arguments),
        ["ci", "--list"] => {
            ci::list();
            Ok(())
        }
        ["ci", steps @ ..] => ci::run(steps),
        ["generate"] => generate::write(),
        ["generate", "--check"] => generate::check(),
        ["interop", names @ ..] => interop::run(names),
        ["layers"] => layers::check(),
        ["postgres"] => postgres::install(),
        ["requirements"] => requirements::run(Form::Untested),
        ["requirements", "--list"] => requirements::run(Form::List),
        ["requirements", "--json"] => requirements::run(Form::Json),
        ["deny"] => deny::check(),
        ["soak"] => soak(&["--kills", "500"]).and_then(|()| cuts()),
        ["soak", "cuts"] => cuts(),
        ["soak", rest @ ..] => soak(rest),
        [] | ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        [other, ..] => bail!("no command `{other}`\n\n{USAGE}"),
    }
}

/// Cuts the connections of streams at random bytes, 500 times for each binding and way to resume, and looks for what
/// got lost or came twice.
fn cuts() -> Result<()> {
    let mut command = workspace::cargo();
    command.args(["test", "--locked", "--package", "a2ad-testkit"]);
    command.args(["--test", "it", "twenty_cuts"]);
    workspace::succeed(command.env("A2AD_CUT_STREAMS", "25"))
}

/// Kills the daemon at random moments, again and again, and looks for what got lost.
fn soak(arguments: &[&str]) -> Result<()> {
    let mut command = workspace::cargo();
    command.args(["run", "--release", "--locked", "--package", "a2ad-testkit"]);
    command.args(["--bin", "soak", "--"]);
    command.args(arguments);
    workspace::succeed(&mut command)
}
