//! What keeps the tasks: one file of our own, or a database that instances share.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use a2ad_core::clock::Surroundings;
use a2ad_core::engine::Hub;
use a2ad_core::store::Store;
use a2ad_store::postgres::DatabaseClock;
use a2ad_store::{PostgresOptions, PostgresStore, SqliteOptions, SqliteStore};
use tokio::task::spawn_blocking;

use crate::config::{Config, Database, Durability, PostgresUrl};
use crate::error::StartError;

/// An open database.
#[derive(Clone, Debug)]
pub(crate) enum Opened {
    Sqlite(Arc<SqliteStore>),
    Postgres {
        store: Arc<PostgresStore>,
        clock: Arc<DatabaseClock>,
    },
}

impl Opened {
    /// Whether other instances may use it, too.
    pub(crate) const fn is_shared(&self) -> bool {
        matches!(self, Self::Postgres { .. })
    }

    /// Opens what is configured; `hub` will hear of what is committed.
    pub(crate) async fn open(config: &Config, hub: Arc<Hub>) -> Result<Self, StartError> {
        match &config.database_url {
            Database::Sqlite(path) => sqlite(config, path, hub).await,
            Database::Postgres(url) => {
                if config.durability == Durability::Os {
                    tracing::warn!(
                        "`durability` is for SQLite alone: PostgreSQL keeps what it has confirmed"
                    );
                }
                let clock = Arc::new(DatabaseClock::default());
                let options = PostgresOptions {
                    surroundings: going_by(&clock),
                    clock: Some(Arc::clone(&clock)),
                    ..postgres_options(config, url)
                };
                let store = Arc::new(PostgresStore::open(options, hub).await?);
                Ok(Self::Postgres { store, clock })
            }
        }
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Sqlite(store) => Arc::<SqliteStore>::clone(store),
            Self::Postgres { store, .. } => Arc::<PostgresStore>::clone(store),
        }
    }

    /// Time and randomness. Where others write too, the time is the database's.
    pub(crate) fn surroundings(&self) -> Surroundings {
        match self {
            Self::Sqlite(_) => Surroundings::default(),
            Self::Postgres { clock, .. } => going_by(clock),
        }
    }

    /// Writes what waits, and lets go. `Err` if that panicked.
    pub(crate) async fn close(self) -> Result<(), tokio::task::JoinError> {
        match self {
            Self::Sqlite(store) => spawn_blocking(move || store.close()).await,
            Self::Postgres { store, .. } => {
                store.close().await;
                Ok(())
            }
        }
    }
}

fn going_by(clock: &Arc<DatabaseClock>) -> Surroundings {
    Surroundings {
        clock: Arc::<DatabaseClock>::clone(clock),
        ..Surroundings::default()
    }
}

/// How a shared database is used.
pub(crate) fn postgres_options(config: &Config, url: &PostgresUrl) -> PostgresOptions {
    PostgresOptions {
        name: instance_name(),
        lease: config.lease,
        ..PostgresOptions::at(url.secret())
    }
}

/// What an instance is called where others see it: in containers, process ids alone are all the same.
pub(crate) fn instance_name() -> String {
    let process = std::process::id();
    format!("a2ad/{process}@{}", machine())
}

/// The name of this machine, as far as it fits into the server's lists.
pub(crate) fn machine() -> String {
    const LENGTH_MAX: usize = 40;
    #[cfg(unix)]
    let name = {
        let about = rustix::system::uname();
        about.nodename().to_string_lossy().into_owned()
    };
    #[cfg(not(unix))]
    let name = String::from("localhost");
    let plain = |it: &char| it.is_ascii_alphanumeric() || matches!(it, '.' | '-' | '_');
    name.chars().filter(plain).take(LENGTH_MAX).collect()
}

async fn sqlite(config: &Config, path: &Path, hub: Arc<Hub>) -> Result<Opened, StartError> {
    let path = config.data_dir.join(path);
    let folders: Vec<PathBuf> = [Some(config.data_dir.as_path()), path.parent()]
        .into_iter()
        .flatten()
        .filter(|folder| !folder.as_os_str().is_empty())
        .map(Path::to_owned)
        .collect();
    let options = SqliteOptions {
        path,
        durability: match config.durability {
            Durability::Full => a2ad_store::Durability::Full,
            Durability::Os => a2ad_store::Durability::Os,
        },
        ..SqliteOptions::default()
    };
    let opened = spawn_blocking(move || -> Result<SqliteStore, StartError> {
        for folder in folders {
            create_private(&folder).map_err(|source| StartError::DataDir {
                path: folder,
                source,
            })?;
        }
        Ok(SqliteStore::open(options, hub)?)
    });
    let store = opened.await.map_err(|_| StartError::Panicked)??;
    Ok(Opened::Sqlite(Arc::new(store)))
}

/// Creates a folder that only its owner can look into: it will hold what people say to agents.
pub(crate) fn create_private(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}
