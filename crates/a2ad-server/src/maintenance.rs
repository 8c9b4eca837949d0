//! What an operator asks of a database, and does to it, without serving from it.

use std::path::{Path, PathBuf};

use a2ad_core::keys::Owner;
use a2ad_proto::{AgentId, ContextId};
use a2ad_store::copy::{CopyError, CopyProgress, CopyReport};
use a2ad_store::{Archived, Migrated, OpenError, Status, VerifyReport, postgres};
use tokio::task::spawn_blocking;

use crate::config::{Config, Database, PostgresUrl};
use crate::database::{create_private, postgres_options};

/// Why a database could not be asked or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatabaseError {
    /// The file cannot be used.
    #[error(transparent)]
    Sqlite(#[from] OpenError),
    /// The shared database cannot be used.
    #[error(transparent)]
    Postgres(#[from] postgres::OpenError),
    /// The folder of the file cannot be made.
    #[error("cannot use the data directory {} ({source}): check its permissions, or choose another", path.display())]
    DataDir {
        /// The folder.
        path: PathBuf,
        /// What the operating system says.
        source: std::io::Error,
    },
    /// A bug.
    #[error("asking the database came to an unexpected end")]
    Panicked,
}

/// What the configured database holds and who uses it. It may be in use.
///
/// # Errors
/// If it cannot be reached, or is something else.
pub async fn database_status(config: &Config) -> Result<Status, DatabaseError> {
    match &config.database_url {
        Database::Sqlite(path) => {
            let path = config.data_dir.join(path);
            blocking(move || Ok(a2ad_store::status(&path)?)).await
        }
        Database::Postgres(url) => Ok(postgres::status(postgres_options(config, url)).await?),
    }
}

/// Brings the configured database to the newest schema; creates what is not there.
///
/// # Errors
/// If it cannot be used, or is in use by somebody whom that would leave behind.
pub async fn migrate_database(config: &Config) -> Result<Migrated, DatabaseError> {
    match &config.database_url {
        Database::Sqlite(path) => {
            let path = config.data_dir.join(path);
            blocking(move || {
                let folder = path.parent().unwrap_or(Path::new(""));
                if !folder.as_os_str().is_empty() {
                    create_private(folder).map_err(|source| DatabaseError::DataDir {
                        path: folder.to_owned(),
                        source,
                    })?;
                }
                Ok(a2ad_store::migrate(&path)?)
            })
            .await
        }
        Database::Postgres(url) => Ok(postgres::migrate(postgres_options(config, url)).await?),
    }
}

/// The conversation of this name with this agent: of `owner`, or of whoever alone has one. The
/// database may be in use.
///
/// # Errors
/// If it cannot be reached, or is something else.
pub(crate) async fn read_context(
    config: &Config,
    agent: &AgentId,
    context: &ContextId,
    owner: Option<&Owner>,
) -> Result<Archived, DatabaseError> {
    match &config.database_url {
        Database::Sqlite(path) => {
            let path = config.data_dir.join(path);
            let (agent, context, owner) = (agent.clone(), context.clone(), owner.cloned());
            let read = move || {
                let owner = owner.as_ref();
                Ok(a2ad_store::read_context(&path, &agent, &context, owner)?)
            };
            blocking(read).await
        }
        Database::Postgres(url) => {
            let options = postgres_options(config, url);
            Ok(postgres::read_context(options, agent, context, owner).await?)
        }
    }
}

/// Reads the whole configured database and checks everything that must hold in it. Writes nothing.
/// A file must not be in use; a shared database may be.
///
/// # Errors
/// If it cannot be read at all. What is wrong inside is in the report.
pub async fn verify_database(config: &Config) -> Result<VerifyReport, DatabaseError> {
    match &config.database_url {
        Database::Sqlite(path) => {
            let path = config.data_dir.join(path);
            blocking(move || Ok(a2ad_store::verify(&path)?)).await
        }
        Database::Postgres(url) => Ok(postgres::verify(postgres_options(config, url)).await?),
    }
}

/// Copies the SQLite file `from` into the PostgreSQL database `to`, or goes on with that; see
/// [`a2ad_store::copy`]. `progress` hears how far it is.
///
/// # Errors
/// See [`CopyError`].
pub async fn copy_database(
    config: &Config,
    from: &Path,
    to: &PostgresUrl,
    progress: &(dyn Fn(CopyProgress) + Sync),
) -> Result<CopyReport, CopyError> {
    a2ad_store::copy::copy(from, postgres_options(config, to), progress).await
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, DatabaseError> + Send + 'static,
) -> Result<T, DatabaseError> {
    spawn_blocking(work)
        .await
        .unwrap_or(Err(DatabaseError::Panicked))
}
