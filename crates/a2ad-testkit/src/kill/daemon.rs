//! The daemon under test: the real binary, started, found and killed.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use hyper::Method;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

use crate::http;

/// How long a start may take before it counts as failed.
const START_MAX: Duration = Duration::from_secs(30);
/// How often to look whether it has come up.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// The agent that the clients talk to.
pub const AGENT: &str = "echo";
/// Whose tasks they are.
pub const OWNER: &str = "anonymous";

/// Where everything of a daemon is.
#[derive(Clone, Debug)]
pub struct Place {
    /// The binary.
    pub binary: PathBuf,
    /// Its folder.
    pub folder: PathBuf,
}

impl Place {
    /// A daemon that has `folder` for itself.
    #[must_use]
    pub fn new(binary: &Path, folder: &Path) -> Self {
        Self {
            binary: binary.to_owned(),
            folder: folder.to_owned(),
        }
    }

    /// The folder that the daemon is given.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// What the daemon printed, over all its lives.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.folder.join("daemon.log")
    }

    fn config(&self) -> PathBuf {
        self.folder.join("a2ad.yaml")
    }

    /// Writes the configuration.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn prepare(&self, config: &str) -> std::io::Result<()> {
        std::fs::create_dir_all(&self.folder)?;
        std::fs::write(self.config(), config)
    }

    /// The database in `data`.
    #[must_use]
    pub fn database(data: &Path) -> PathBuf {
        let found = std::fs::read_dir(data)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .find(|path| path.extension().is_some_and(|extension| extension == "db"));
        found.unwrap_or_else(|| data.join("a2ad.db"))
    }
}

/// A running daemon.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    log: PathBuf,
    /// Where in the log its own lines begin.
    log_from: u64,
    started: Instant,
}

impl Daemon {
    /// Starts it; it may not listen yet.
    ///
    /// # Errors
    /// When the binary cannot be run.
    pub fn start(place: &Place, mark: &str) -> std::io::Result<Self> {
        let mut log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(place.log())?;
        writeln!(log, "--- {mark}")?;
        let log_from = log.metadata()?.len();
        let mut command = Command::new(&place.binary);
        // Nothing of ours that happens to be in the environment may change the configuration.
        for (name, _) in std::env::vars_os() {
            let ours = name.to_string_lossy().starts_with("A2AD_");
            if ours || name == "HOST" || name == "PORT" || name == "RUST_LOG" {
                command.env_remove(name);
            }
        }
        let child = command
            .arg("serve")
            .args(["--listen", "127.0.0.1:0"])
            .arg("--data-dir")
            .arg(place.data())
            .arg("--config")
            .arg(place.config())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true)
            .spawn()?;
        Ok(Self {
            child,
            log: place.log(),
            log_from,
            started: Instant::now(),
        })
    }

    /// Waits until it says that it is ready; where it listens, and how long that took.
    ///
    /// # Errors
    /// When it ends instead, or takes too long: what it printed.
    pub async fn ready(&mut self) -> Result<(SocketAddr, Duration), String> {
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("it ended with {status}: {}", self.printed()));
            }
            if self.started.elapsed() > START_MAX {
                return Err(format!("it does not come up: {}", self.printed()));
            }
            if let Some(to) = find_address(&self.printed())
                && let Ok(Ok(answer)) = timeout(
                    Duration::from_secs(5),
                    http::call(to, Method::GET, "/readyz", &[], ""),
                )
                .await
                && answer.status.is_success()
            {
                return Ok((to, self.started.elapsed()));
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// `kill -9`, and waits until it is gone.
    ///
    /// # Errors
    /// When it had ended by itself before.
    pub async fn kill(mut self) -> Result<(), String> {
        if let Ok(Some(status)) = self.child.try_wait() {
            return Err(format!("it ended with {status}: {}", self.printed()));
        }
        self.child.kill().await.map_err(|error| error.to_string())
    }

    /// Sends it a signal, by name: `STOP`, `CONT`, `TERM`.
    ///
    /// # Errors
    /// When it has ended by itself before, or cannot be told.
    pub async fn signal(&self, name: &str) -> Result<(), String> {
        let id = self.child.id().ok_or("it had ended before")?;
        // The shell's own: not every machine has a program of that name.
        let told = Command::new("sh")
            .args(["-c", &format!("kill -{name} {id}")])
            .status()
            .await;
        match told {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("the signal {name}: {status}: {}", self.printed())),
            Err(error) => Err(error.to_string()),
        }
    }

    /// SIGTERM, and waits until it has ended in good order.
    ///
    /// # Errors
    /// When it does not end in time, for then it is killed, or does not end well.
    pub async fn stop(mut self, patience: Duration) -> Result<(), String> {
        self.signal("TERM").await?;
        match timeout(patience, self.child.wait()).await {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => Err(format!("it stopped with {status}: {}", self.printed())),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => {
                let _gone = self.child.kill().await.is_ok();
                Err(format!("it does not stop: {}", self.printed()))
            }
        }
    }

    fn printed(&self) -> String {
        let read = || -> std::io::Result<Vec<u8>> {
            let mut file = File::open(&self.log)?;
            file.seek(SeekFrom::Start(self.log_from))?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
    }
}

/// The first address on the loopback that stands in what was printed, whole.
fn find_address(printed: &str) -> Option<SocketAddr> {
    const HOST: &str = "127.0.0.1:";
    printed.match_indices(HOST).find_map(|(at, _)| {
        let rest = &printed[at + HOST.len()..];
        // What stands at the very end may still be growing.
        let end = rest.find(|c: char| !c.is_ascii_digit())?;
        let port: u16 = rest[..end].parse().ok()?;
        (port != 0).then(|| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_read_only_when_it_is_whole() {
        let port = |text| find_address(text).map(|address| address.port());
        assert_eq!(port("listening on http://127.0.0.1:4100/\n"), Some(4100));
        assert_eq!(port("listening on http://127.0.0.1:41"), None);
        assert_eq!(port("--listen 127.0.0.1:0 then 127.0.0.1:77\n"), Some(77));
    }
}
