//! Where the database is and how it is used.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use a2ad_core::clock::Surroundings;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use super::clock::DatabaseClock;
use super::open::OpenError;

/// Whose clock says when turns are due and leases are over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeSource {
    /// That of the database, which is one for all instances.
    #[default]
    Database,
    /// That of the [`Surroundings`], for tests which turn the hands themselves.
    Surroundings,
}

/// How a [`PostgresStore`](super::PostgresStore) is opened.
#[derive(Clone)]
pub struct PostgresOptions {
    /// `postgres://user:password@host:port/database?sslmode=verify-full`. Its `sslmode` is one of
    /// `disable`, `prefer`, `require`, `verify-ca` and `verify-full`; `sslrootcert` names a file
    /// with the certificates to trust, in place of those of the machine.
    pub url: String,
    /// What this instance is called in the database's own lists.
    pub name: String,
    /// How many connections commit. More than a few serve nobody: each commits all that waits.
    pub lanes: usize,
    /// How many connections read. Reads share them, so few do for many.
    pub readers: usize,
    /// How long a holder of turns may be silent before others take its turns over.
    pub lease: Duration,
    /// How long a statement may take.
    pub statement_timeout: Duration,
    /// How long a statement may wait for another one's lock.
    pub lock_timeout: Duration,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// For how long opening tries again to reach a server that is not there yet.
    pub patience: Duration,
    /// Time and randomness.
    pub surroundings: Surroundings,
    /// A clock to be put right by the database's. Whoever shares the database should go by it.
    pub clock: Option<Arc<DatabaseClock>>,
    /// Whose clock counts for turns and leases.
    pub time: TimeSource,
    /// How many changes may wait for a lane. When that many wait, further ones are refused with
    /// [`StoreError::Full`](a2ad_core::store::StoreError::Full) at once.
    pub queue_max: usize,
    /// How many bytes of entries and snapshots may wait for a lane; full means the same.
    pub queue_bytes_max: usize,
}

impl PostgresOptions {
    /// The defaults, for the database at `url`.
    #[must_use]
    pub fn at(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            name: "a2ad".to_owned(),
            lanes: 4,
            readers: 4,
            lease: Duration::from_secs(30),
            statement_timeout: Duration::from_secs(30),
            lock_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(5),
            patience: Duration::from_secs(10),
            surroundings: Surroundings::default(),
            clock: None,
            time: TimeSource::Database,
            queue_max: 16_384,
            queue_bytes_max: 64 << 20,
        }
    }
}

impl PostgresOptions {
    /// How many connections a store with these options has open at most: lanes, readers, and one
    /// each for leases, claims, deleting, telling and hearing.
    #[must_use]
    pub const fn connections(&self) -> u64 {
        (self.lanes + self.readers + 5) as u64
    }
}

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresOptions")
            .field("url", &"***")
            .field("name", &self.name)
            .field("lanes", &self.lanes)
            .field("readers", &self.readers)
            .field("lease", &self.lease)
            .finish_non_exhaustive()
    }
}

/// How sure we have to be of whom we talk to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// No TLS, or TLS with whoever answers.
    Anyone,
    /// With somebody who has a certificate from one whom we trust.
    Certified,
    /// And it has to be for the host that we asked for.
    Named,
}

/// What a URL says.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) config: Config,
    pub(crate) trust: Trust,
    pub(crate) root_certificates: Option<PathBuf>,
    /// Host, port and database, for messages.
    pub(crate) server: String,
}

/// Takes a URL apart. The driver knows three of the five values of `sslmode` and no `sslrootcert`,
/// so these two are taken out before it sees the rest.
pub(crate) fn parse(url: &str) -> Result<Target, OpenError> {
    let wrong = |detail: &str| OpenError::Url {
        detail: detail.to_owned(),
    };
    if !["postgres://", "postgresql://"]
        .iter()
        .any(|scheme| url.starts_with(scheme))
    {
        return Err(wrong("it does not begin with postgres://"));
    }
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    let mut mode = "prefer".to_owned();
    let mut root_certificates = None;
    let mut rest = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("sslmode", value)) => mode = value.to_owned(),
            Some(("sslrootcert", value)) => {
                let path = percent_decoded(value).ok_or_else(|| wrong("sslrootcert is no text"))?;
                root_certificates = Some(PathBuf::from(path));
            }
            _ => rest.push(pair),
        }
    }
    let (ssl, trust) = match mode.as_str() {
        "disable" => (SslMode::Disable, Trust::Anyone),
        "prefer" | "allow" => (SslMode::Prefer, Trust::Anyone),
        // As libpq has it: a certificate to compare with asks for the comparison.
        "require" if root_certificates.is_some() => (SslMode::Require, Trust::Certified),
        "require" => (SslMode::Require, Trust::Anyone),
        "verify-ca" => (SslMode::Require, Trust::Certified),
        "verify-full" => (SslMode::Require, Trust::Named),
        _ => {
            return Err(wrong(
                "sslmode is none of disable, prefer, require, verify-ca, verify-full",
            ));
        }
    };
    // What the parser complains of can be a part of the password, so only its kind is told.
    let mut config = Config::from_str(&format!("{base}?{}", rest.join("&")))
        .map_err(|_| wrong("it is not postgres://user:password@host:port/database, or has parameters that are not known"))?;
    if config.get_hosts().is_empty() {
        return Err(wrong("it names no host"));
    }
    if config.get_dbname().is_none() {
        return Err(wrong("it names no database"));
    }
    config
        .ssl_mode(ssl)
        .keepalives_idle(Duration::from_secs(10))
        .keepalives_interval(Duration::from_secs(5))
        .keepalives_retries(3)
        .tcp_user_timeout(Duration::from_secs(20));
    let server = server(&config);
    Ok(Target {
        config,
        trust,
        root_certificates,
        server,
    })
}

fn server(config: &Config) -> String {
    let hosts: Vec<String> = config
        .get_hosts()
        .iter()
        .enumerate()
        .map(|(at, host)| {
            let ports = config.get_ports();
            let port = ports.get(at).or(ports.first()).copied().unwrap_or(5432);
            match host {
                Host::Tcp(name) => format!("{name}:{port}"),
                #[cfg(unix)]
                Host::Unix(path) => format!("{}:{port}", path.display()),
            }
        })
        .collect();
    let database = config.get_dbname().unwrap_or_default();
    format!("{}/{database}", hosts.join(","))
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_where_and_how_sure() {
        let target = parse("postgres://me:pw@db.example:6000/a?sslmode=verify-full&sslrootcert=%2Fca.pem&connect_timeout=3")
            .unwrap();
        assert_eq!(target.server, "db.example:6000/a");
        assert_eq!(target.trust, Trust::Named);
        assert_eq!(target.config.get_ssl_mode(), SslMode::Require);
        assert_eq!(target.root_certificates, Some(PathBuf::from("/ca.pem")));
        let target = parse("postgresql://me@127.0.0.1/a").unwrap();
        assert_eq!(target.server, "127.0.0.1:5432/a");
        assert_eq!(
            (target.trust, target.config.get_ssl_mode()),
            (Trust::Anyone, SslMode::Prefer)
        );
    }

    #[test]
    fn what_is_wrong_with_a_url_is_said_without_the_password() {
        for url in [
            "mysql://me:hunter2@db/a",
            "postgres://me:hunter2@db:port/a",
            "postgres://me:hunter2@db/a?sslmode=hunter2",
            "postgres://me:hunter2@db/a?hunter2=1",
            "postgres://me:hunter2@db",
            "postgres://",
        ] {
            let error = parse(url).unwrap_err();
            let told = format!("{error} {error:?}");
            assert!(!told.contains("hunter2"), "{told}");
        }
        let told = format!("{:?}", PostgresOptions::at("postgres://me:hunter2@db/a"));
        assert!(!told.contains("hunter2"), "{told}");
        let told = format!("{:?}", parse("postgres://me:hunter2@db/a").unwrap());
        assert!(!told.contains("hunter2"), "{told}");
    }
}
