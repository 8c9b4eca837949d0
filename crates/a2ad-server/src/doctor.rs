//! Looking whether a server could serve here, and how well, without starting it.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use a2ad_store::postgres::{self, Probe};
use a2ad_store::{PostgresOptions, Status};
use tokio::task::spawn_blocking;

use crate::auth;
use crate::config::{Config, Database, Durability, PostgresUrl};
use crate::database::{machine, postgres_options};
use crate::error::StartError;
use crate::server::{Place, Server};
use crate::tokens::Tokens;

/// With less room than this, writes will fail soon …
const ROOM_MIN: u64 = 64 << 20;
/// … and with less than this it is time to make some.
const ROOM_LOW: u64 = 1 << 30;
/// A sync that takes longer is slow for a disk: every commit waits for one.
const SYNC_SLOW: Duration = Duration::from_millis(20);
/// An answer that takes longer is slow for a database: a send asks twice, and commits.
const TRIP_SLOW: Duration = Duration::from_millis(10);
const COMMIT_SLOW: Duration = Duration::from_millis(50);
/// Clocks that differ by more show in the times of tasks.
const CLOCK_OFF_MS: i64 = 1_000;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// As it should be.
    Ok,
    /// It works, but not as well as it could.
    Warning,
    /// It does not work.
    Problem,
}

/// Something that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// How bad it is.
    pub level: Level,
    /// What was looked at.
    pub subject: &'static str,
    /// What was found.
    pub text: String,
    /// What to do about it.
    pub advice: Option<String>,
}

impl Finding {
    /// Something as it should be.
    pub fn ok(subject: &'static str, text: impl Into<String>) -> Self {
        Self {
            level: Level::Ok,
            subject,
            text: text.into(),
            advice: None,
        }
    }

    /// Something that could be better.
    pub fn warning(
        subject: &'static str,
        text: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            level: Level::Warning,
            advice: Some(advice.into()),
            ..Self::ok(subject, text)
        }
    }

    /// Something that does not work. Errors of ours say themselves what to do.
    pub fn problem(subject: &'static str, text: impl Into<String>) -> Self {
        Self {
            level: Level::Problem,
            ..Self::ok(subject, text)
        }
    }

    fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }
}

/// Looks at everything that a server with this configuration needs. It changes nothing, and a server may be
/// running meanwhile. No finding has a secret in it.
pub async fn doctor(config: &Config) -> Vec<Finding> {
    let mut found = vec![match Server::new(config.clone()).check() {
        Ok(()) => {
            let agents: Vec<&str> = config.agents.iter().map(|it| it.id.as_str()).collect();
            Finding::ok("configuration", format!("serves {}", agents.join(", ")))
        }
        Err(error) => Finding::problem("configuration", error.to_string()),
    }];
    let folder = config.data_dir.clone();
    let looked = spawn_blocking(move || data_directory(&folder)).await;
    let (room, sync) = looked.unwrap_or_default();
    found.extend(room);
    let serving = match &config.database_url {
        Database::Sqlite(path) => sqlite(config, path, sync, &mut found).await,
        Database::Postgres(url) => shared(config, url, &mut found).await,
    };
    tokens(config, &mut found);
    listening(config, serving, &mut found).await;
    found
}

/// The folder, and how long a sync takes there.
fn data_directory(folder: &Path) -> (Vec<Finding>, Option<Duration>) {
    const SUBJECT: &str = "data directory";
    let shown = folder.display();
    let exists = folder.is_dir();
    let mut found = Vec::new();
    let sync = match try_write(&existing(folder)) {
        Ok(sync) => sync,
        Err(error) => {
            let text = format!("{shown} cannot be written ({error})");
            let advice = "check its permissions, or choose another with --data-dir";
            return (vec![Finding::problem(SUBJECT, text).advise(advice)], None);
        }
    };
    found.push(if exists {
        match others_may(folder) {
            Some(mode) => Finding::warning(
                SUBJECT,
                format!("{shown} can be looked into by others (mode {mode:o})"),
                format!("chmod 700 {shown}"),
            ),
            None => Finding::ok(
                SUBJECT,
                format!("{shown} can be written, by its owner alone"),
            ),
        }
    } else {
        Finding::ok(SUBJECT, format!("{shown} is made at the first start"))
    });
    if let Some(room) = room(&existing(folder)) {
        let text = format!("{} free", mebibytes(room));
        found.push(if room < ROOM_MIN {
            Finding::problem("space", text).advise("make room: writes are about to be refused")
        } else if room < ROOM_LOW {
            Finding::warning("space", text, "make room before it is used up")
        } else {
            Finding::ok("space", text)
        });
    }
    (found, Some(sync))
}

/// The folder, or the nearest above it that there is.
fn existing(folder: &Path) -> PathBuf {
    let mut at = folder;
    while !at.exists() {
        match at.parent() {
            Some(above) if !above.as_os_str().is_empty() => at = above,
            _ => return PathBuf::from("."),
        }
    }
    at.to_owned()
}

/// Writes and syncs a file that is gone afterwards; how long the sync took.
fn try_write(folder: &Path) -> io::Result<Duration> {
    let path = folder.join(format!(".a2ad-doctor-{}", std::process::id()));
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)?;
    let written = (|| {
        file.write_all(&[0; 4096])?;
        file.sync_all()?;
        // The first one makes the file known, too.
        file.write_all(&[0; 4096])?;
        let begun = Instant::now();
        file.sync_data()?;
        Ok(begun.elapsed())
    })();
    let removed = fs::remove_file(&path);
    written.and_then(|took| removed.map(|()| took))
}

/// The mode of a file or folder that more than its owner may use.
fn others_may(path: &Path) -> Option<u32> {
    #[cfg(unix)]
    {
        let about = fs::metadata(path).ok()?;
        let mode = std::os::unix::fs::PermissionsExt::mode(&about.permissions()) & 0o777;
        (mode & 0o077 != 0).then_some(mode)
    }
    #[cfg(not(unix))]
    {
        let _unused = path;
        None
    }
}

fn room(folder: &Path) -> Option<u64> {
    #[cfg(unix)]
    {
        let about = rustix::fs::statvfs(folder).ok()?;
        Some(about.f_bavail.saturating_mul(about.f_frsize))
    }
    #[cfg(not(unix))]
    {
        let _unused = folder;
        None
    }
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

fn milliseconds(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1_000.0)
}

/// Looks at a file; whether a server has it.
async fn sqlite(
    config: &Config,
    path: &Path,
    sync: Option<Duration>,
    found: &mut Vec<Finding>,
) -> bool {
    const SUBJECT: &str = "database";
    let path = config.data_dir.join(path);
    let shown = path.display().to_string();
    let mut serving = false;
    if path.exists() {
        let status = spawn_blocking(move || a2ad_store::status(&path)).await;
        match status {
            Ok(Ok(status)) => {
                serving = status.in_use;
                let by = if serving { ", a server has it" } else { "" };
                found.push(described(SUBJECT, &shown, &status, by));
            }
            Ok(Err(error)) => found.push(Finding::problem(SUBJECT, error.to_string())),
            Err(_) => found.push(Finding::problem(SUBJECT, "it could not be looked at")),
        }
    } else {
        found.push(Finding::ok(
            SUBJECT,
            format!("{shown} is made at the first start"),
        ));
    }
    if config.durability == Durability::Os {
        found.push(Finding::warning(
            "durability",
            "a power cut can lose what was just answered",
            "set `durability: full`",
        ));
    }
    if let Some(sync) = sync {
        let text = format!("a sync takes {}", milliseconds(sync));
        found.push(if sync > SYNC_SLOW {
            Finding::warning(
                "disk",
                text,
                "use a faster disk: every commit waits for a sync",
            )
        } else {
            Finding::ok("disk", text)
        });
    }
    serving
}

/// A database that could be looked at.
fn described(subject: &'static str, shown: &str, status: &Status, more: &str) -> Finding {
    let Status {
        server,
        schema,
        known,
        oldest_compatible,
        ..
    } = status;
    let tasks = status.task_count();
    let text = format!("{shown}: {server}, schema {schema}, {tasks} tasks{more}");
    if status.half_copied {
        let text = format!("{shown} is half a copy");
        return Finding::problem(subject, text)
            .advise("run `a2ad db copy` again: it goes on where it was interrupted");
    }
    if !status.is_usable() {
        let text = format!(
            "{shown} has schema {schema}, for a2ad that knows {oldest_compatible}; this one knows {known}"
        );
        return Finding::problem(subject, text).advise("use a newer a2ad");
    }
    Finding::ok(subject, text)
}

/// Looks at a database that instances share; whether one of this machine serves from it.
async fn shared(config: &Config, url: &PostgresUrl, found: &mut Vec<Finding>) -> bool {
    let options = PostgresOptions {
        patience: Duration::ZERO,
        ..postgres_options(config, url)
    };
    let probe = match postgres::probe(options).await {
        Ok(probe) => probe,
        Err(error) => {
            found.push(Finding::problem("database", error.to_string()));
            return false;
        }
    };
    let alive = probe.status.instances.iter().filter(|it| it.alive);
    let ours = format!("@{}", machine());
    let here = alive.clone().any(|it| it.name.ends_with(&ours));
    let alive = alive.count() as u64;
    let more = match alive {
        0 => String::new(),
        1 => ", 1 instance".to_owned(),
        _ => format!(", {alive} instances"),
    };
    if probe.status.schema == 0 {
        let text = format!("{url}: {}, no tables yet", probe.status.server);
        found.push(if probe.may_create {
            Finding::ok(
                "database",
                format!("{text}; they are made at the first start"),
            )
        } else {
            Finding::problem(
                "database",
                format!("{text}, and this user may not make them"),
            )
            .advise(
                "run `CREATE SCHEMA a2ad AUTHORIZATION` that user, as the owner of the database",
            )
        });
    } else {
        found.push(described(
            "database",
            &url.to_string(),
            &probe.status,
            &more,
        ));
    }
    found.extend(settings(&probe));
    found.push(connections(&probe, alive));
    found.push(clock(probe.ahead_ms));
    found.extend(latency(&probe));
    here
}

fn settings(probe: &Probe) -> Vec<Finding> {
    let mut found: Vec<Finding> = probe
        .unsafe_settings
        .iter()
        .map(|(name, value)| {
            let text = format!(
                "{name} is {value}: a crash of its machine can lose or damage what was answered"
            );
            Finding::warning(
                "settings",
                text,
                format!("set {name} = on in postgresql.conf"),
            )
        })
        .collect();
    if !probe.private {
        found.push(Finding::warning(
            "settings",
            "the connection is not encrypted",
            "add ?sslmode=verify-full to the URL",
        ));
    }
    if found.is_empty() {
        let text = "synchronous_commit is on for our sessions, fsync and full_page_writes are on";
        found.push(Finding::ok("settings", text));
    }
    found
}

fn connections(probe: &Probe, alive: u64) -> Finding {
    let needed = probe.connections_needed;
    let (most, taken) = probe.connections;
    let text = format!("{most} at most, {taken} taken; each instance needs {needed}");
    let advice = "raise max_connections in postgresql.conf";
    if most < needed {
        Finding::problem("connections", text).advise(advice)
    } else if most.saturating_sub(taken) < needed && alive == 0 {
        Finding::problem("connections", text).advise(format!("end what has them, or {advice}"))
    } else if most.saturating_sub(taken) < needed {
        let advice = format!("{advice} before another instance comes");
        Finding::warning("connections", text, advice)
    } else {
        Finding::ok("connections", text)
    }
}

fn clock(ahead_ms: i64) -> Finding {
    let text = match ahead_ms {
        0 => "that of the database says the same".to_owned(),
        1.. => format!("that of the database is {ahead_ms} ms ahead of ours"),
        _ => format!("that of the database is {} ms behind ours", -ahead_ms),
    };
    if ahead_ms.abs() > CLOCK_OFF_MS {
        let advice =
            "keep both by NTP: leases do not depend on it, but the times shown in tasks do";
        Finding::warning("clock", text, advice)
    } else {
        Finding::ok("clock", text)
    }
}

fn latency(probe: &Probe) -> Vec<Finding> {
    let mut found = Vec::new();
    let text = format!("an answer takes {}", milliseconds(probe.round_trip));
    found.push(if probe.round_trip > TRIP_SLOW {
        let advice = "bring the database nearer: a send asks twice, and commits";
        Finding::warning("latency", text, advice)
    } else {
        Finding::ok("latency", text)
    });
    if let Some(commit) = probe.commit {
        let text = format!("a commit takes {}", milliseconds(commit));
        found.push(if commit > COMMIT_SLOW {
            Finding::warning("latency", text, "give the database a faster disk")
        } else {
            Finding::ok("latency", text)
        });
    }
    found
}

fn tokens(config: &Config, found: &mut Vec<Finding>) {
    const SUBJECT: &str = "tokens";
    // What is wrong with them, the configuration's line has said.
    let Ok(stored) = Tokens::in_folder(&config.data_dir).list() else {
        return;
    };
    let auth = &config.auth;
    let configured = auth.tokens.len() + auth.basic.len() + auth.api_keys.len();
    let made = stored.as_ref().map_or(0, Vec::len);
    let shared = matches!(config.database_url, Database::Postgres(_));
    let own = if made > 0 && shared {
        "; tokens.json is this instance's own, so give the others a copy"
    } else {
        ""
    };
    found.push(if stored.is_none() && configured == 0 {
        Finding::ok(SUBJECT, "none: everybody who can reach it may call")
    } else if made + configured == 0 {
        Finding::warning(
            SUBJECT,
            "all were revoked: nobody may call",
            "make one with `a2ad token create NAME`",
        )
    } else {
        let text = format!("{made} made by `a2ad token create`, {configured} configured{own}");
        Finding::ok(SUBJECT, text)
    });
    let file = config.data_dir.join("tokens.json");
    if let Some(mode) = others_may(&file) {
        let shown = file.display();
        found.push(Finding::warning(
            SUBJECT,
            format!("{shown} can be read by others (mode {mode:o})"),
            format!("chmod 600 {shown}"),
        ));
    }
}

/// Whether the addresses can be had. If a server is `serving` here, it has them.
async fn listening(config: &Config, serving: bool, found: &mut Vec<Finding>) {
    const SUBJECT: &str = "address";
    let tokens = Tokens::in_folder(&config.data_dir);
    let required = auth::auth(&config.auth, tokens).map(|(auth, _)| auth.required);
    let mut open = false;
    for (listen, flag) in [
        (Some(&config.listen), "--port"),
        (config.grpc_listen.as_ref(), "--grpc-listen"),
    ] {
        let Some(listen) = listen else { continue };
        let place = match Place::find(listen, flag).await {
            Ok(place) => place,
            Err(error) => {
                found.push(Finding::problem(SUBJECT, error.to_string()));
                continue;
            }
        };
        open |= place.is_open_to_others();
        found.push(match place.bind().await {
            Ok(_) => Finding::ok(SUBJECT, format!("{listen} is free")),
            Err(StartError::Bind { source, .. })
                if serving && source.kind() == io::ErrorKind::AddrInUse =>
            {
                let text = format!("{listen} is taken, it seems by the server that runs here");
                Finding::ok(SUBJECT, text)
            }
            Err(error) => Finding::problem(SUBJECT, error.to_string()),
        });
    }
    if !open {
        return;
    }
    let text = "others can reach it, and there is no authentication";
    if required.is_ok_and(|required| !required) {
        found.push(if config.auth.allow_unauthenticated {
            Finding::warning(SUBJECT, text, "make a token with `a2ad token create NAME`")
        } else {
            Finding::problem(SUBJECT, text).advise(
                "make a token with `a2ad token create NAME`, or say --allow-unauthenticated",
            )
        });
    }
    if config.public_url.is_none() && config.trusted_proxies.is_empty() {
        found.push(Finding::warning(
            SUBJECT,
            "cards show the address listened on",
            "set `public_url` to the address that clients use",
        ));
    }
}
