//! A server under test: a process of its own, on a core of its own, that never outlives us.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::load::Target;
use crate::process;

/// How long a start may take: recovery of a large store, or a slow language.
const START_MAX: Duration = Duration::from_secs(60);
/// How long an end in good order may take.
const STOP_MAX: Duration = Duration::from_secs(30);

/// Kills the process that its argument names if its input ends without a word.
const WATCH: &str = r#"trap '' INT TERM HUP; read -r _ || kill -KILL "$1""#;

/// A running server.
#[derive(Debug)]
pub struct Server {
    child: Child,
    /// Sees to it that it ends with us, also if we are killed.
    watch: Child,
    /// Where it is.
    pub target: Target,
    /// From its start until it said where it listens.
    pub started_in: Duration,
}

impl Server {
    /// Starts `command` on a core and waits until it says where it listens. What else it says goes to the file `log`.
    ///
    /// # Errors
    /// When it does not start, or says nothing in time.
    pub fn start(command: &mut Command, core: Option<usize>, log: &Path) -> Result<Self> {
        clean_environment(command);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let errors = File::create(log).with_context(|| format!("create {}", log.display()))?;
        command.stderr(errors);
        let program = PathBuf::from(command.get_program());
        let begin = Instant::now();
        let mut spawn = || {
            let child = command.spawn();
            child.with_context(|| format!("start {}", program.display()))
        };
        let mut child = match core {
            Some(core) => process::on_core(core, spawn)?,
            None => spawn()?,
        };
        let said = child.stdout.take().context("its output is piped")?;
        let url = first_address(said).recv_timeout(START_MAX);
        let started_in = begin.elapsed();
        let target = url.context("it does not say where it listens");
        let target = target.and_then(|url| Target::parse(&url));
        let watched = target.and_then(|target| Ok((target, watch(child.id())?)));
        match watched {
            Ok((target, watch)) => Ok(Self {
                child,
                watch,
                target,
                started_in,
            }),
            Err(error) => {
                end(&mut child)?;
                let log = std::fs::read_to_string(log).unwrap_or_default();
                Err(error.context(format!("start {}\n{log}", program.display())))
            }
        }
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to end, and waits until it has.
    ///
    /// # Errors
    /// When it does not end in time; then it is killed.
    pub fn stop(mut self) -> Result<()> {
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw);
        kill_process(pid.context("a process has an id")?, Signal::TERM)?;
        let begin = Instant::now();
        while begin.elapsed() < STOP_MAX {
            if self.child.try_wait()?.is_some() {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(5));
        }
        bail!("it did not end within {STOP_MAX:?}")
    }

    /// Ends it as a crash would.
    ///
    /// # Errors
    /// When it had ended before.
    pub fn kill(mut self) -> Result<()> {
        let ended = self.child.try_wait()?;
        if let Some(status) = ended {
            bail!("it had ended: {status}");
        }
        end(&mut self.child)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Whoever wants to know how it ended calls one of the others.
        let _ended = end(&mut self.child);
        // Only now: its id may soon be that of another process.
        if let Some(mut word) = self.watch.stdin.take() {
            let _ended = word.write_all(b"over\n");
        }
        let _ended = self.watch.wait();
    }
}

fn watch(pid: u32) -> Result<Child> {
    let mut command = Command::new("sh");
    command.args(["-c", WATCH, "watch"]).arg(pid.to_string());
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    command.spawn().context("watch over the server")
}

fn end(child: &mut Child) -> Result<()> {
    if child.try_wait()?.is_none() {
        child.kill()?;
        child.wait()?;
    }
    Ok(())
}

/// Nothing that happens to be set here may change what is measured, or send it through a proxy.
fn clean_environment(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy().to_uppercase();
        let ours = text.starts_with("A2AD_") || ["HOST", "PORT", "RUST_LOG"].contains(&&*text);
        let set_for_it = command.get_envs().any(|(set, _)| set == name);
        if (ours && !set_for_it) || text.ends_with("_PROXY") {
            command.env_remove(name);
        }
    }
}

/// The URL that a server says it listens on.
fn first_address(said: ChildStdout) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::sync_channel(1);
    // Reads on to the end, so that the server never writes into a closed pipe.
    thread::spawn(move || {
        for line in BufReader::new(said).lines().map_while(Result::ok) {
            if let Some((_, url)) = line.split_once("listening on ") {
                let _only_the_first_counts = sender.try_send(url.trim().to_owned());
            }
        }
    });
    receiver
}
