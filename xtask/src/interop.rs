//! The official clients of A2A against the real server, and our client against theirs:
//! `cargo xtask interop`.
//!
//! Each client gets a server of its own, on a free port of the loopback interface and with an
//! empty data folder, and finds its tests below `interop/`. What they need is installed below the
//! target folder, again only if what is pinned has changed.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use crate::python::{self, Environment};
use crate::servers;
use crate::workspace::{cargo, root, succeed, target_directory};

/// What the server has. The clients are tested over each of these bindings, and fail if the
/// agent card does not list exactly these.
const BINDINGS: &[&str] = &["JSONRPC", "HTTP+JSON", "GRPC"];

/// The versions of the protocol in which the card lists each of them, in its order.
const VERSIONS: &[&str] = &["1.0", "0.3"];

/// How long a server may take to say where it listens.
pub(crate) const START: Duration = Duration::from_secs(30);

/// A client to test with: its name, what runs its tests, and what has to be there first.
struct Client {
    name: &'static str,
    tests: fn(&Place) -> Result<Command>,
}

const CLIENTS: &[Client] = &[
    Client {
        name: "python",
        tests: python_tests,
    },
    Client {
        name: "js",
        tests: js_tests,
    },
    Client {
        name: "rust",
        tests: rust_tests,
    },
    Client {
        name: "python03",
        tests: python03_tests,
    },
    Client {
        name: "js03",
        tests: js03_tests,
    },
];

/// What stands for the tests of our client.
const SERVERS: &str = "servers";

/// Where things lie.
pub(crate) struct Place {
    /// Where things are installed, `target/tools`.
    pub(crate) tools: PathBuf,
    /// Where the tests leave things, `target/interop`.
    pub(crate) work: PathBuf,
}

/// Tests with the named clients and with the servers, or with all.
pub(crate) fn run(names: &[&str]) -> Result<()> {
    let known = || CLIENTS.iter().map(|client| client.name).chain([SERVERS]);
    for name in names {
        if known().all(|known| known != *name) {
            let known: Vec<_> = known().collect();
            bail!("nothing named `{name}`; there are {}", known.join(", "));
        }
    }
    let target = target_directory()?;
    let place = Place {
        tools: target.join("tools"),
        work: target.join("interop"),
    };
    let chosen = CLIENTS
        .iter()
        .filter(|client| names.is_empty() || names.contains(&client.name));
    let mut wrong = Vec::new();
    for client in chosen {
        let begin = Instant::now();
        let mut tests =
            (client.tests)(&place).with_context(|| format!("set up {}", client.name))?;
        let program = server_program(&target)?;
        let ready = begin.elapsed().as_secs_f64();
        let begin = Instant::now();
        let server = Server::start(&program, &place.work.join(client.name))?;
        tests.current_dir(root());
        tests.env("A2AD_INTEROP_URL", &server.url);
        tests.env("A2AD_INTEROP_BINDINGS", BINDINGS.join(","));
        tests.env("A2AD_INTEROP_VERSIONS", VERSIONS.join(","));
        let done = succeed(without_proxies(&mut tests));
        let log = server.stop();
        match done {
            Ok(()) => println!(
                "    {} ok, {:.1} s (ready after {ready:.1} s)",
                client.name,
                begin.elapsed().as_secs_f64()
            ),
            Err(error) => {
                println!("--- the server's log ({})", log.display());
                println!(
                    "{}",
                    fs::read_to_string(&log).unwrap_or_default().trim_end()
                );
                println!("---");
                wrong.push(format!("{}: {error:#}", client.name));
            }
        }
    }
    if (names.is_empty() || names.contains(&SERVERS))
        && let Err(error) = servers::run(&place)
    {
        wrong.push(format!("{SERVERS}: {error:#}"));
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n       "));
    Ok(())
}

/// What a proxy is set for is not for us: all of this stays on the loopback interface.
pub(crate) fn without_proxies(command: &mut Command) -> &mut Command {
    for proxy in ["http_proxy", "https_proxy", "all_proxy", "grpc_proxy"] {
        command.env_remove(proxy).env_remove(proxy.to_uppercase());
    }
    command
}

/// The binary as the tests build it: `cargo build` leaves out the features that only tests ask
/// for, and would build half of everything again.
fn server_program(target: &Path) -> Result<PathBuf> {
    let mut command = cargo();
    command.args(["test", "--workspace", "--all-features", "--locked"]);
    succeed(command.args(["--no-run", "--quiet", "--test", "it"]))?;
    let name = format!("a2ad{}", std::env::consts::EXE_SUFFIX);
    Ok(target.join("debug").join(name))
}

/// A running `a2ad serve`.
struct Server {
    url: String,
    log: PathBuf,
    watch: Child,
    /// The server lives as long as this is open, so it does not outlive us, however we end.
    life: Option<ChildStdin>,
}

/// Starts what its arguments say and ends it, by its process id, when the input ends.
const WATCH: &str = r#"
"$@" & server=$!
trap '' INT TERM HUP
exec >&-
read -r _
kill "$server"
wait "$server"
"#;

impl Server {
    fn start(program: &Path, folder: &Path) -> Result<Self> {
        let data = folder.join("data");
        if data.exists() {
            fs::remove_dir_all(&data).with_context(|| format!("remove {}", data.display()))?;
        }
        fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
        let log = folder.join("server.log");
        let mut command = Command::new("sh");
        command.args(["-c", WATCH, "sh"]).arg(program);
        command.args(["serve", "--listen", "127.0.0.1:0", "--config"]);
        command.arg(root().join("interop").join("agents.yaml"));
        command.arg("--data-dir").arg(&data);
        command.env("A2AD_LOG_LEVEL", "info").env_remove("RUST_LOG");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(fs::File::create(&log)?);
        let mut watch = command.spawn().context("start a2ad serve")?;
        let said = watch.stdout.take();
        let mut server = Self {
            url: String::new(),
            log,
            life: watch.stdin.take(),
            watch,
        };
        let url = said.and_then(address);
        let Some(url) = url else {
            let log = server.stop();
            let log = fs::read_to_string(log).unwrap_or_default();
            bail!("a2ad serve did not say where it listens\n{log}");
        };
        server.url = url;
        Ok(server)
    }

    /// Ends it and returns where its log is.
    fn stop(mut self) -> PathBuf {
        self.end();
        self.log.clone()
    }

    fn end(&mut self) {
        if self.life.take().is_some()
            && let Err(error) = self.watch.wait()
        {
            eprintln!("xtask: wait for a2ad serve: {error}");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// The address from the banner, if it comes in time.
fn address(said: ChildStdout) -> Option<String> {
    let (sender, receiver) = mpsc::sync_channel(1);
    // Reads on to the end, so that the server never writes into a closed pipe.
    std::thread::spawn(move || {
        for line in BufReader::new(said).lines().map_while(Result::ok) {
            if let Some((_, url)) = line.split_once(" listening on ") {
                let _nobody_waits = sender.try_send(url.trim().to_owned());
            }
        }
    });
    receiver.recv_timeout(START).ok()
}

fn python_tests(place: &Place) -> Result<Command> {
    pytest(&Environment::interop(&place.tools), "python")
}

fn python03_tests(place: &Place) -> Result<Command> {
    pytest(&Environment::interop03(&place.tools), "v03/python")
}

fn pytest(environment: &Environment, folder: &str) -> Result<Command> {
    environment.install()?;
    let sources = root().join("interop");
    let mut command = environment.python();
    command.args(["-m", "pytest", "--quiet", "--no-header", "--tb=short"]);
    // Nothing is to be written into the sources.
    command.args(["-p", "no:cacheprovider"]);
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    // What runs the tests, conftest.py, is there for all clients.
    command.arg("--rootdir").arg(&sources);
    command.arg(sources.join(folder));
    Ok(command)
}

fn js_tests(place: &Place) -> Result<Command> {
    node_test(place, "js", "js")
}

fn js03_tests(place: &Place) -> Result<Command> {
    node_test(place, "js03", "v03/js")
}

fn node_test(place: &Place, name: &str, folder: &str) -> Result<Command> {
    let program = "interop.test.mjs";
    let sources = root().join("interop").join(folder);
    let folder = place.work.join(name).join("tests");
    let environment = Environment::interop(&place.tools);
    let node = node_packages(&environment, &sources, &folder, Some(program))?;
    let mut command = Command::new(node);
    // A test that hangs has its own deadline; one that is over does not wait for connections.
    command.args(["--test", "--test-force-exit", "--test-reporter=dot"]);
    command.arg(folder.join(program));
    Ok(command)
}

/// Node, which comes with the Python packages. Its packages go where the program is copied to:
/// modules are looked for above the file that imports them, and nothing is to be written into the
/// sources.
pub(crate) fn node_packages(
    environment: &Environment,
    sources: &Path,
    folder: &Path,
    program: Option<&str>,
) -> Result<PathBuf> {
    environment.install()?;
    let home = environment.node()?;
    let node = home.join("bin").join("node");
    fs::create_dir_all(folder)?;
    let packages = ["package.json", "package-lock.json"];
    for name in packages.into_iter().chain(program) {
        fs::copy(sources.join(name), folder.join(name)).with_context(|| format!("copy {name}"))?;
    }
    let pinned = [
        environment.pinned()?,
        python::read(&[
            &folder.join("package.json"),
            &folder.join("package-lock.json"),
        ])?,
    ];
    python::once(&folder.join("installed"), &pinned.concat(), || {
        println!("installing Node packages into {}", folder.display());
        let mut command = Command::new(&node);
        command.arg(home.join("lib/node_modules/npm/bin/npm-cli.js"));
        command.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
        succeed(command.arg("--loglevel=error").current_dir(folder))
    })?;
    Ok(node)
}

/// With the features of the test step, so that nothing is built twice.
fn rust_tests(_: &Place) -> Result<Command> {
    let built = || {
        let mut command = cargo();
        command.args(["test", "--workspace", "--all-features", "--locked"]);
        command.args(["--quiet", "--test", "interop"]);
        command
    };
    succeed(built().arg("--no-run"))?;
    let mut tests = built();
    // What is wrong stands in the first lines.
    tests.env("RUST_BACKTRACE", "0");
    Ok(tests)
}
