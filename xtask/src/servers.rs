//! Our client against the servers of the official SDKs: `cargo xtask interop servers`.
//!
//! The same small agent, served by each of them (`interop/servers`), on free ports of the loopback
//! interface. The tests are those of a2ad-client (`tests/sdk`), which play with all at once.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use crate::interop::{Place, START, node_packages, without_proxies};
use crate::python::Environment;
use crate::workspace::{cargo, root, succeed};

/// How long a server may take to end.
const END: Duration = Duration::from_secs(10);

/// An SDK: its name, and what starts its server.
struct Sdk {
    name: &'static str,
    server: fn(&Place) -> Result<Command>,
}

const SDKS: &[Sdk] = &[
    Sdk {
        name: "python",
        server: python_server,
    },
    Sdk {
        name: "js",
        server: js_server,
    },
    Sdk {
        name: "rust",
        server: rust_server,
    },
    // Of protocol 0.3.
    Sdk {
        name: "python03",
        server: |place| python_server_of(&Environment::interop_03(&place.tools), "python03"),
    },
    Sdk {
        name: "js03",
        server: |place| js_server_of(place, "js03"),
    },
];

pub(crate) fn run(place: &Place) -> Result<()> {
    let begin = Instant::now();
    let folder = place.work.join("servers");
    fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
    let mut commands = Vec::new();
    for sdk in SDKS {
        let command = (sdk.server)(place).with_context(|| format!("set up {}", sdk.name))?;
        commands.push((sdk.name, command));
    }
    succeed(tests().arg("--no-run"))?;
    let ready = begin.elapsed().as_secs_f64();

    let begin = Instant::now();
    let start = |(name, command)| Server::start(name, command, &folder);
    let mut servers = commands
        .into_iter()
        .map(start)
        .collect::<Result<Vec<_>>>()?;
    let listed: Result<Vec<_>> = servers.iter_mut().map(Server::listed).collect();
    let played = listed.and_then(|listed| {
        let mut tests = tests();
        tests.env("A2AD_SDK_SERVERS", listed.join(","));
        succeed(without_proxies(&mut tests))
    });
    let mut wrong: Vec<_> = played.err().into_iter().collect();
    let failed = !wrong.is_empty();
    for server in servers {
        let (name, log) = (server.name, server.log.clone());
        wrong.extend(server.end().err());
        let log = fs::read_to_string(log).unwrap_or_default();
        if failed && !log.trim().is_empty() {
            println!("--- what the server of {name} said");
            println!("{}", log.trim_end());
            println!("---");
        }
    }
    let wrong: Vec<_> = wrong.iter().map(|error| format!("{error:#}")).collect();
    ensure!(wrong.is_empty(), "{}", wrong.join("; "));
    println!(
        "    servers ok, {:.1} s (ready after {ready:.1} s)",
        begin.elapsed().as_secs_f64()
    );
    Ok(())
}

/// With the features of the test step, so that nothing is built twice.
fn tests() -> Command {
    let mut command = cargo();
    command.args(["test", "--workspace", "--all-features", "--locked"]);
    command.args(["--quiet", "--test", "sdk"]);
    command
}

fn python_server(place: &Place) -> Result<Command> {
    python_server_of(&Environment::interop(&place.tools), "python")
}

fn python_server_of(environment: &Environment, name: &str) -> Result<Command> {
    environment.install()?;
    let mut command = environment.python();
    command.arg(sources(name).join("server.py"));
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    Ok(command)
}

fn js_server(place: &Place) -> Result<Command> {
    js_server_of(place, "js")
}

fn js_server_of(place: &Place, name: &str) -> Result<Command> {
    let folder = place.work.join("servers").join(name);
    let environment = Environment::interop(&place.tools);
    let node = node_packages(&environment, &sources(name), &folder, Some("server.mjs"))?;
    let mut command = Command::new(node);
    command.arg(folder.join("server.mjs"));
    Ok(command)
}

/// The binary as the tests build it.
fn rust_server(place: &Place) -> Result<Command> {
    let mut command = cargo();
    command.args(["test", "--workspace", "--all-features", "--locked"]);
    succeed(command.args(["--no-run", "--quiet", "--test", "it"]))?;
    let name = format!("a2ad-interop-server{}", std::env::consts::EXE_SUFFIX);
    let debug = place.tools.with_file_name("debug");
    Ok(Command::new(debug.join(name)))
}

fn sources(name: &str) -> PathBuf {
    root().join("interop").join("servers").join(name)
}

/// A running server. It lives as long as its input is open, so it does not outlive us.
struct Server {
    name: &'static str,
    child: Child,
    log: PathBuf,
    card: mpsc::Receiver<String>,
}

impl Server {
    fn start(name: &'static str, mut command: Command, folder: &Path) -> Result<Self> {
        let log = folder.join(format!("{name}.log"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(fs::File::create(&log)?);
        let child = without_proxies(&mut command).spawn();
        let mut child = child.with_context(|| format!("start the server of {name}"))?;
        let (sender, card) = mpsc::sync_channel(1);
        let said = child.stdout.take().context("the output is piped")?;
        // Reads on to the end, so that the server never writes into a closed pipe.
        std::thread::spawn(move || {
            for line in BufReader::new(said).lines().map_while(Result::ok) {
                let _only_the_first_counts = sender.try_send(line);
            }
        });
        Ok(Self {
            name,
            child,
            log,
            card,
        })
    }

    /// Its name and where its card is, as the tests want it.
    fn listed(&mut self) -> Result<String> {
        let card = self.card.recv_timeout(START);
        let card = card.with_context(|| format!("{} does not say where its card is", self.name))?;
        Ok(format!("{}={}", self.name, card.trim()))
    }

    /// Closes its input, and sees to it that it ends.
    fn end(mut self) -> Result<()> {
        drop(self.child.stdin.take());
        let begin = Instant::now();
        while begin.elapsed() < END {
            if let Some(status) = self.child.try_wait()? {
                ensure!(status.success(), "the server of {}: {status}", self.name);
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self.child.kill()?;
        self.child.wait()?;
        bail!("the server of {} did not end with its input", self.name)
    }
}
