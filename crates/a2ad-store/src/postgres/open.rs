//! Getting hold of a database, and why that can fail.

use std::time::Duration;

use tokio::time::Instant;
use tokio_postgres::error::SqlState;

use super::fail::{Failure, describe};
use super::inspect::CONNECTIONS;
use super::migrate;
use super::session::{Ground, Session};

/// The oldest server that is looked after, as of 2026, and that we try things with.
const VERSION_MIN: u32 = 13;

/// Why a database could not be opened. No variant has a password in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The URL cannot be used.
    #[error("the URL of the database cannot be used: {detail}")]
    Url {
        /// What is wrong with it.
        detail: String,
    },
    /// TLS cannot be set up.
    #[error("TLS to the database cannot be set up ({detail}): check sslmode and sslrootcert")]
    Tls {
        /// What is wrong.
        detail: String,
    },
    /// Nobody answers.
    #[error(
        "{server} cannot be reached ({detail}): check that PostgreSQL runs there and lets us in"
    )]
    Unreachable {
        /// Host, port and database.
        server: String,
        /// What the operating system or the server says.
        detail: String,
    },
    /// The server does not believe us.
    #[error("{server} refuses the user ({detail}): check user and password in the URL")]
    Refused {
        /// Host, port and database.
        server: String,
        /// What the server says.
        detail: String,
    },
    /// There is no such database.
    #[error("{server} does not exist: create it with `CREATE DATABASE`, or check the URL")]
    NoDatabase {
        /// Host, port and database.
        server: String,
    },
    /// The server has too many connections already.
    #[error("{server} takes no more connections ({detail}): raise max_connections there")]
    Crowded {
        /// Host, port and database.
        server: String,
        /// What the server says.
        detail: String,
    },
    /// The server is too old.
    #[error("{server} runs PostgreSQL {found}, a2ad needs 13 or newer: upgrade the server")]
    TooOld {
        /// Host, port and database.
        server: String,
        /// What it runs.
        found: String,
    },
    /// The server only reads.
    #[error("{server} is a standby, which only reads: use the address of the primary")]
    Standby {
        /// Host, port and database.
        server: String,
    },
    /// Something stands between us and the server and deals connections out by transaction.
    #[error(
        "between us and {server} is a pooler that gives each transaction another connection: \
         connect to PostgreSQL itself, or set the pooler to session mode"
    )]
    Pooler {
        /// Host, port and database.
        server: String,
    },
    /// The user may not do what we have to.
    #[error(
        "the user may not use schema a2ad of {server} ({detail}): if there is no such schema yet, \
         run `CREATE SCHEMA a2ad AUTHORIZATION` that user, as the owner of the database; \
         if there is, connect as the user who owns it"
    )]
    Privileges {
        /// Host, port and database.
        server: String,
        /// What the server says.
        detail: String,
    },
    /// There is nothing of ours in it.
    #[error("{server} has no tables of a2ad: check the URL, or start a2ad, which makes them")]
    Empty {
        /// Host, port and database.
        server: String,
    },
    /// A later a2ad has changed it in a way that this one does not understand.
    #[error("{server} has schema {found}, this a2ad knows up to {known}: use a newer a2ad")]
    Newer {
        /// Host, port and database.
        server: String,
        /// Its schema.
        found: u32,
        /// The newest schema that this code knows.
        known: u32,
    },
    /// Instances run that the newest schema would leave behind.
    #[error(
        "{count} older instances still use {server}, and would not understand the new schema \
         (a2ad that knows schema {needed} or later does): stop them first"
    )]
    OlderInstances {
        /// Host, port and database.
        server: String,
        /// How many.
        count: u64,
        /// The schema that they would have to know.
        needed: u32,
    },
    /// A copy into it has begun and not come to its end.
    #[error(
        "{server} is half a copy: run `a2ad db copy` again, which goes on where it was interrupted"
    )]
    HalfCopied {
        /// Host, port and database.
        server: String,
    },
    /// It is damaged.
    #[error("{server} is damaged ({detail}): restore a backup")]
    Corrupt {
        /// Host, port and database.
        server: String,
        /// What is wrong.
        detail: String,
    },
    /// Anything else that the server says.
    #[error("{server} cannot be used: {detail}")]
    Sql {
        /// Host, port and database.
        server: String,
        /// What the server says.
        detail: String,
    },
}

impl OpenError {
    pub(crate) fn from_failure(server: &str, failure: &Failure) -> Self {
        let server = server.to_owned();
        let Failure::Sql(error) = failure else {
            let detail = failure.store_error().to_string();
            return Self::Unreachable { server, detail };
        };
        let detail = describe(error);
        let Some(code) = error.code() else {
            // The driver has no better way to say which of its errors it is.
            let begins = |text| detail.starts_with(text);
            return if begins("error performing TLS handshake") {
                Self::Tls { detail }
            } else if begins("invalid configuration") || begins("authentication error") {
                // For example that there is no password, which the server asks for.
                Self::Refused { server, detail }
            } else {
                Self::Unreachable { server, detail }
            };
        };
        let is = |codes: &[SqlState]| codes.contains(code);
        if is(&[
            SqlState::INVALID_PASSWORD,
            SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
        ]) {
            Self::Refused { server, detail }
        } else if is(&[SqlState::INVALID_CATALOG_NAME]) {
            Self::NoDatabase { server }
        } else if is(&[SqlState::TOO_MANY_CONNECTIONS]) {
            Self::Crowded { server, detail }
        } else if is(&[SqlState::INSUFFICIENT_PRIVILEGE]) {
            Self::Privileges { server, detail }
        } else if is(&[SqlState::READ_ONLY_SQL_TRANSACTION]) {
            Self::Standby { server }
        } else if is(&[
            // What was prepared is on a connection that is another one's now.
            SqlState::INVALID_SQL_STATEMENT_NAME,
            SqlState::DUPLICATE_PSTATEMENT,
        ]) {
            Self::Pooler { server }
        } else if is(&[
            SqlState::CANNOT_CONNECT_NOW,
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
        ]) {
            Self::Unreachable { server, detail }
        } else {
            Self::Sql { server, detail }
        }
    }

    /// Whether it may be otherwise in a moment.
    const fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. } | Self::Crowded { .. } | Self::OlderInstances { .. }
        )
    }
}

/// Looks whether the database can be used, and brings it to the newest schema. A server that is
/// not there yet is waited for.
pub(crate) async fn prepare(ground: &Ground) -> Result<migrate::Database, OpenError> {
    let database = prepare_for_copy(ground).await?;
    if database.half_copied {
        return Err(OpenError::HalfCopied {
            server: ground.target.server.clone(),
        });
    }
    Ok(database)
}

/// The same, also of a database that is half a copy.
pub(crate) async fn prepare_for_copy(ground: &Ground) -> Result<migrate::Database, OpenError> {
    let until = Instant::now() + ground.options.patience;
    let mut pause = Duration::from_millis(100);
    let mut told = String::new();
    loop {
        match try_prepare(ground).await {
            Err(error) if error.is_passing() && Instant::now() + pause < until => {
                // Said once, and again if something else is in the way.
                let text = error.to_string();
                if text != told {
                    tracing::warn!(%error, "the database cannot be used yet; trying again");
                    told = text;
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(2));
            }
            prepared => return prepared,
        }
    }
}

async fn try_prepare(ground: &Ground) -> Result<migrate::Database, OpenError> {
    let session = connect(ground).await?;
    let database = migrate::migrate(ground, &session, migrate::MIGRATIONS).await?;
    warn_of_crowd(ground, &session).await;
    Ok(database)
}

/// Says so if the server has fewer connections left than we need: some of our callers would be turned away.
async fn warn_of_crowd(ground: &Ground, session: &Session) {
    let Ok(rows) = session.query(CONNECTIONS, &[]).await else {
        return;
    };
    let number = |at| rows.first()?.try_get::<_, i64>(at).ok();
    let (Some(most), Some(taken)) = (number(0), number(1)) else {
        return;
    };
    // The one that asks is among them.
    let left = most.saturating_sub(taken).saturating_add(1);
    let needed = i64::try_from(ground.options.connections()).unwrap_or(i64::MAX);
    if left < needed {
        tracing::warn!(
            left,
            needed,
            "the database has too few connections left for this instance: raise max_connections there"
        );
    }
}

/// A connection to a server that can be used.
pub(crate) async fn connect(ground: &Ground) -> Result<Session, OpenError> {
    let server = ground.target.server.as_str();
    let failed = |failure: Failure| OpenError::from_failure(server, &failure);
    let one = Session::connect(ground, None).await.map_err(failed)?;
    check_version(server, &one.version)?;
    let other = Session::connect(ground, None).await.map_err(failed)?;
    check_pooler(server, &one, &other).await?;
    drop(other);
    check_primary(server, &one).await?;
    Ok(one)
}

/// Two sessions that each keep what they were told are two sessions indeed.
async fn check_pooler(server: &str, one: &Session, other: &Session) -> Result<(), OpenError> {
    const PID: &str = "SELECT pg_backend_pid(), current_setting('a2ad.session', true)";
    let failed = |failure: Failure| OpenError::from_failure(server, &failure);
    let mut pids = Vec::new();
    for (session, name) in [(one, "one"), (other, "other")] {
        let set = format!("SET a2ad.session = '{name}'");
        session.run(&set).await.map_err(failed)?;
    }
    for (session, name) in [(one, "one"), (other, "other"), (one, "one")] {
        let rows = session.query(PID, &[]).await.map_err(failed)?;
        let row = rows.first();
        let pid: Option<i32> = row.and_then(|row| row.try_get(0).ok());
        let told: Option<String> = row.and_then(|row| row.try_get(1).ok());
        if told.as_deref() != Some(name) {
            return Err(OpenError::Pooler {
                server: server.to_owned(),
            });
        }
        pids.push(pid);
    }
    if pids[0] == pids[1] || pids[0] != pids[2] {
        return Err(OpenError::Pooler {
            server: server.to_owned(),
        });
    }
    Ok(())
}

fn check_version(server: &str, found: &str) -> Result<(), OpenError> {
    let digits = found.split(|it: char| !it.is_ascii_digit()).next();
    let major = digits.and_then(|digits| digits.parse::<u32>().ok());
    if major.is_none_or(|major| major < VERSION_MIN) {
        return Err(OpenError::TooOld {
            server: server.to_owned(),
            found: found.to_owned(),
        });
    }
    Ok(())
}

async fn check_primary(server: &str, session: &Session) -> Result<(), OpenError> {
    let rows = session
        .query("SELECT pg_is_in_recovery()", &[])
        .await
        .map_err(|failure| OpenError::from_failure(server, &failure))?;
    match rows.first().and_then(|row| row.try_get(0).ok()) {
        Some(false) => Ok(()),
        Some(true) | None => Err(OpenError::Standby {
            server: server.to_owned(),
        }),
    }
}
