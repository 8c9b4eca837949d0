//! A private PostgreSQL for tests: a server of our own, on a free port of the loopback interface,
//! with a data folder of its own, ended by its process id.
//!
//! The binaries lie below the target folder; `cargo xtask postgres` installs them, and the first
//! test that misses them has that done. [`Cluster::shared`] is one server for all tests of a
//! process, each with a database of its own; whoever wants to kill or stop the server starts one
//! for himself.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test without its database has failed"
)]

mod binaries;
mod process;
pub mod proxy;

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

pub use binaries::installed;
use process::Server;

/// How long the server may take to come up; after a crash, its last life has to be cleared away.
const START: Duration = Duration::from_secs(60);

/// What an answered commit survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// A crash, as in production.
    Full,
    /// Nothing; for tests in which nothing crashes.
    None,
}

/// A server of our own. It ends with this value, or with the process at the latest.
#[derive(Debug)]
pub struct Cluster {
    folder: TempDir,
    port: u16,
    durability: Durability,
    settings: Vec<String>,
    server: Option<Server>,
    databases: AtomicU32,
    /// The folder is removed when the server ends.
    fleeting: bool,
}

/// The user that everything belongs to; it needs no password.
pub const USER: &str = "a2ad";
/// A user who needs one.
pub const GUARDED_USER: &str = "guarded";
/// The password of [`GUARDED_USER`].
pub const PASSWORD: &str = "open sesame";

impl Cluster {
    /// Starts a server.
    ///
    /// # Panics
    /// If it does not come up.
    #[must_use]
    pub fn start(durability: Durability) -> Self {
        Self::start_with(durability, &[])
    }

    /// Starts a server with some settings of its own, such as `max_connections=20`.
    ///
    /// # Panics
    /// If it does not come up.
    #[must_use]
    pub fn start_with(durability: Durability, settings: &[&str]) -> Self {
        let mut cluster = Self::prepare(durability);
        cluster.settings = settings.iter().map(|&setting| setting.to_owned()).collect();
        cluster.restart();
        cluster
    }

    /// Starts a server that speaks TLS with this certificate and its key, both as PEM.
    ///
    /// # Panics
    /// If it does not come up.
    #[must_use]
    pub fn start_tls(certificate: &str, key: &str) -> Self {
        let mut cluster = Self::prepare(Durability::None);
        cluster.settings.push("ssl=on".to_owned());
        for (setting, name, text) in [
            ("ssl_cert_file", "server.crt", certificate),
            ("ssl_key_file", "server.key", key),
        ] {
            let file = cluster.folder.path().join(name);
            process::write_private(&file, text);
            let setting = format!("{setting}={}", file.display());
            cluster.settings.push(setting);
        }
        cluster.restart();
        cluster
    }

    fn prepare(durability: Durability) -> Self {
        let folder = TempDir::with_prefix("a2ad-pg-").expect("a folder");
        process::give_away(folder.path());
        let data = folder.path().join("data");
        process::copy(&binaries::template(), &data);
        Self {
            folder,
            port: free_port(),
            durability,
            settings: Vec::new(),
            server: None,
            databases: AtomicU32::new(0),
            fleeting: false,
        }
    }

    /// One server for all tests of this process. It forgets everything if it crashes.
    ///
    /// # Panics
    /// If it does not come up.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Cluster> = OnceLock::new();
        SHARED.get_or_init(|| {
            let until = Instant::now() + START;
            loop {
                let mut cluster = Self::prepare(Durability::None);
                // Nobody drops what is static, so its folder goes with the server.
                cluster.fleeting = true;
                if cluster.comes_up(until) {
                    break cluster;
                }
                assert!(Instant::now() < until, "no server comes up");
            }
        })
    }

    /// Its port on 127.0.0.1.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The URL of a database.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        url(self.port, database)
    }

    /// Makes a database that nobody else uses, and returns its name.
    ///
    /// # Panics
    /// If the server does not.
    pub fn create_database(&self) -> String {
        let number = self.databases.fetch_add(1, Ordering::Relaxed);
        let name = format!("t{number}");
        self.sql(
            "postgres",
            &format!("CREATE DATABASE {name} TEMPLATE template0"),
        );
        name
    }

    /// Makes a database that nobody else uses, and returns its URL.
    ///
    /// # Panics
    /// If the server does not.
    pub fn create(&self) -> String {
        self.url(&self.create_database())
    }

    /// Runs statements without an answer, as the superuser.
    ///
    /// # Panics
    /// If the server refuses them.
    pub fn sql(&self, database: &str, statements: &str) {
        let answer = process::simple_query(self.port, database, statements);
        if let Err(error) = answer {
            panic!("{statements}: {error}");
        }
    }

    /// Whether a condition holds in a database.
    #[must_use]
    pub fn holds(&self, database: &str, condition: &str) -> bool {
        let ask = format!("SELECT 1 / CASE WHEN {condition} THEN 1 ELSE 0 END");
        process::simple_query(self.port, database, &ask).is_ok()
    }

    /// Where its data lies.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// What the server has to say.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    fn log_file(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// Ends the server in order; its clients are cut off.
    pub fn stop(&mut self) {
        if let Some(server) = self.server.take() {
            server.end("INT");
        }
    }

    /// Ends the server with `kill -9`: nothing is written any more.
    pub fn kill(&mut self) {
        if let Some(server) = self.server.take() {
            server.end("KILL");
        }
    }

    /// Starts the server anew, with the same port and data.
    ///
    /// # Panics
    /// If it does not come up.
    pub fn restart(&mut self) {
        self.stop();
        let until = Instant::now() + START;
        while !self.comes_up(until) {
            // The port was taken, or what the last life has left is not cleared away yet.
            assert!(Instant::now() < until, "no server:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(100));
            if self.databases.load(Ordering::Relaxed) == 0 {
                self.port = free_port();
            }
        }
    }

    fn comes_up(&mut self, until: Instant) -> bool {
        let folder = self.fleeting.then(|| self.folder.path());
        let mut server = Server::start(self.arguments(), &self.log_file(), folder);
        if server.is_up(self.port, until) {
            self.server = Some(server);
            return true;
        }
        server.end("KILL");
        false
    }

    fn arguments(&self) -> Vec<String> {
        let data = self.data().display().to_string();
        let port = self.port.to_string();
        let mut arguments: Vec<String> = ["-D", &data, "-p", &port].map(str::to_owned).to_vec();
        let mut set = |setting: &str| {
            arguments.extend(["-c".to_owned(), setting.to_owned()]);
        };
        set("listen_addresses=127.0.0.1");
        set("unix_socket_directories=");
        set("max_connections=200");
        set("shared_buffers=64MB");
        set("timezone=UTC");
        set("log_timezone=UTC");
        if self.durability == Durability::None {
            set("fsync=off");
            set("full_page_writes=off");
            set("synchronous_commit=off");
        }
        self.settings.iter().for_each(|setting| set(setting));
        arguments
    }
}

/// The URL of a database behind a port of the loopback interface.
#[must_use]
pub fn url(port: u16, database: &str) -> String {
    format!("postgres://{USER}@127.0.0.1:{port}/{database}?sslmode=disable")
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("an address").port()
}

/// The target folder that this program was built in.
pub(crate) fn target_folder() -> PathBuf {
    let program = std::env::current_exe().expect("the path of this program");
    let is_target = |folder: &&Path| folder.join(".rustc_info.json").exists();
    let found = program.ancestors().find(is_target);
    found
        .expect("this program lies below cargo's target folder")
        .to_owned()
}
