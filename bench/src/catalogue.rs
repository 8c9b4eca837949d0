//! The servers that are measured, and how each is started.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the programs are; by default where `cargo xtask bench` puts them, seen from the root of the sources.
#[derive(Clone, Debug, clap::Args)]
pub struct Places {
    /// The a2ad binary
    #[arg(long, default_value = "target/dist/a2ad")]
    pub a2ad: PathBuf,
    /// The folder of the Rust peers' binaries
    #[arg(long, default_value = "target/peers/dist")]
    pub peers: PathBuf,
    /// A Python that has the SDK
    #[arg(long, default_value = "target/tools/bench-python/bin/python")]
    pub python: PathBuf,
    /// Node
    #[arg(long, default_value = "node")]
    pub node: PathBuf,
    /// The folder with the JavaScript server and its packages
    #[arg(long, default_value = "target/bench/js")]
    pub js: PathBuf,
    /// The folder `bench` of the sources
    #[arg(long, default_value = "bench")]
    pub sources: PathBuf,
    /// The folder for what is measured; on the disk that durability is to be measured on
    #[arg(long, default_value = "target/bench")]
    pub work: PathBuf,
}

impl Places {
    /// A configuration of a2ad.
    #[must_use]
    pub fn agents(&self, name: &str) -> PathBuf {
        agents(&self.sources, name)
    }
}

/// A configuration of a2ad in the folder `bench` of the sources.
#[must_use]
pub fn agents(sources: &Path, name: &str) -> PathBuf {
    sources.join("agents").join(format!("{name}.yaml"))
}

/// What becomes of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeps {
    /// Nothing: a yardstick.
    Bare,
    /// They are gone with the process.
    InMemory,
    /// They survive the process.
    OnDisk,
    /// They survive a power cut.
    Durably,
}

/// A server.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// Its name.
    pub name: &'static str,
    /// What it is, for people.
    pub what: &'static str,
    /// What becomes of its tasks.
    pub keeps: Keeps,
    /// Whether it is ours, and so has agents at paths and all bindings.
    pub ours: bool,
    /// Whether a cancel reaches those who follow a task.
    pub cancels: bool,
    command: fn(&Places, &Path) -> Command,
}

/// Against whom everybody is compared.
pub const YARDSTICK: &str = "bare-axum";

/// All of them, in the order of tables.
pub const PEERS: &[Peer] = &[
    Peer {
        name: "bare-hyper",
        what: "a handler written by hand, hyper",
        keeps: Keeps::Bare,
        ours: false,
        cancels: false,
        command: |places, _| rust_peer(places, "bare-hyper"),
    },
    Peer {
        name: YARDSTICK,
        what: "the same on axum",
        keeps: Keeps::Bare,
        ours: false,
        cancels: false,
        command: |places, _| rust_peer(places, "bare-axum"),
    },
    Peer {
        name: "a2ad",
        what: "a2ad, survives power cuts",
        keeps: Keeps::Durably,
        ours: true,
        cancels: true,
        command: |places, data| a2ad(&places.a2ad, &places.agents("a2ad"), data, "full"),
    },
    Peer {
        name: "a2ad-os",
        what: "a2ad, `durability: os`",
        keeps: Keeps::OnDisk,
        ours: true,
        cancels: true,
        command: |places, data| a2ad(&places.a2ad, &places.agents("a2ad"), data, "os"),
    },
    Peer {
        name: "official",
        what: "official Rust SDK, in memory",
        keeps: Keeps::InMemory,
        ours: false,
        cancels: true,
        command: |places, _| rust_peer(places, "official"),
    },
    Peer {
        name: "protocol",
        what: "a2a-protocol-server, in memory",
        keeps: Keeps::InMemory,
        ours: false,
        cancels: true,
        command: |places, _| rust_peer(places, "protocol"),
    },
    Peer {
        name: "protocol-sqlite",
        what: "a2a-protocol-server, SQLite without sync",
        keeps: Keeps::OnDisk,
        ours: false,
        cancels: true,
        command: |places, data| {
            let mut command = rust_peer(places, "protocol");
            command.arg("127.0.0.1:0").arg(data.join("tasks.db"));
            command
        },
    },
    Peer {
        name: "js",
        what: "official JavaScript SDK, in memory",
        keeps: Keeps::InMemory,
        ours: false,
        cancels: true,
        command: |places, _| {
            let mut command = Command::new(&places.node);
            command.arg(places.js.join("server.mjs"));
            command
        },
    },
    Peer {
        name: "python",
        what: "official Python SDK, in memory",
        keeps: Keeps::InMemory,
        ours: false,
        cancels: true,
        command: |places, _| {
            let mut command = Command::new(&places.python);
            command.arg(places.sources.join("peers/python/server.py"));
            command.env("PYTHONDONTWRITEBYTECODE", "1");
            command
        },
    },
];

impl Peer {
    /// What starts it, with its data in a folder that is there.
    #[must_use]
    pub fn command(&self, places: &Places, data: &Path) -> Command {
        (self.command)(places, data)
    }

    /// Where its agent for messages is.
    #[must_use]
    pub fn echo_path(&self) -> &'static str {
        if self.ours { "/agents/echo" } else { "" }
    }

    /// Where its agent for streams is.
    #[must_use]
    pub fn stream_path(&self) -> &'static str {
        if self.ours { "/agents/stream" } else { "" }
    }

    /// Its release.
    #[must_use]
    pub fn version(&self) -> Option<&'static str> {
        let locked = include_str!("../peers/rust/Cargo.lock");
        let crate_version = |name: &str| {
            let entry = locked.split("[[package]]").find(|entry| {
                let mut lines = entry.lines();
                lines.any(|line| line.strip_prefix("name = ") == Some(&format!("\"{name}\"")))
            })?;
            let version = entry
                .lines()
                .find_map(|line| line.strip_prefix("version = "))?;
            Some(version.trim_matches('"'))
        };
        match self.name {
            "bare-hyper" => crate_version("hyper"),
            "bare-axum" => crate_version("axum"),
            "official" => crate_version("a2a-server-lf"),
            "protocol" | "protocol-sqlite" => crate_version("a2a-protocol-server"),
            "js" => {
                let package = include_str!("../peers/js/package.json");
                let (_, rest) = package.split_once("\"@a2a-js/sdk\": \"")?;
                rest.split('"').next()
            }
            "python" => {
                let pinned = include_str!("../peers/python/requirements.txt").lines();
                let mut sdk = pinned.filter_map(|line| line.strip_prefix("a2a-sdk[http-server]=="));
                sdk.next()
            }
            _ => Some(env!("CARGO_PKG_VERSION")),
        }
    }
}

/// Starts a2ad on any free port.
#[must_use]
pub fn a2ad(binary: &Path, config: &Path, data: &Path, durability: &str) -> Command {
    let mut command = Command::new(binary);
    command.args(["serve", "--listen", "127.0.0.1:0", "--config"]);
    command.arg(config);
    command.arg("--data-dir").arg(data);
    command.env("A2AD_DURABILITY", durability);
    command
}

fn rust_peer(places: &Places, name: &str) -> Command {
    Command::new(places.peers.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_peer_has_a_version() {
        for peer in PEERS {
            let version = peer.version().unwrap_or_default();
            assert!(version.contains('.'), "{}: {version}", peer.name);
        }
    }
}
