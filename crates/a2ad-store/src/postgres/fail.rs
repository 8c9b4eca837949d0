//! What an error of PostgreSQL means for the store.

use std::error::Error as _;
use std::sync::Arc;

use a2ad_core::store::StoreError;
use tokio_postgres::Error;
use tokio_postgres::error::{Severity, SqlState};

/// Why something could not be read or written.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The server or the driver says so.
    Sql(Error),
    /// There is no connection, and none could be made just now.
    Away(Arc<str>),
    /// Nothing was heard for longer than a statement may take.
    Silent,
    /// The rows do not say what we wrote.
    Damaged(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Sql(error)
    }
}

impl Failure {
    /// What callers are told.
    pub(crate) fn store_error(&self) -> StoreError {
        let error = match self {
            Self::Sql(error) => error,
            Self::Away(why) => return StoreError::Unavailable(Arc::clone(why)),
            Self::Silent => {
                return StoreError::Unavailable(Arc::from("the database does not answer"));
            }
            Self::Damaged(what) => return StoreError::Corrupt(Arc::from(what.as_str())),
        };
        let text = Arc::from(describe(error));
        match error.code() {
            Some(code) if *code == SqlState::DISK_FULL => StoreError::Full(text),
            Some(code) if [SqlState::DATA_CORRUPTED, SqlState::INDEX_CORRUPTED].contains(code) => {
                StoreError::Corrupt(text)
            }
            _ => StoreError::Unavailable(text),
        }
    }

    /// The same, for whoever says himself that the store is not available.
    pub(crate) fn reason(&self) -> Arc<str> {
        match self.store_error() {
            StoreError::Full(why)
            | StoreError::Unavailable(why)
            | StoreError::Corrupt(why)
            | StoreError::Stopped(why) => why,
        }
    }

    /// Whether the connection is of no more use. If it was lost in mid-commit, nobody knows yet
    /// what became of the commit.
    pub(crate) fn is_lost(&self) -> bool {
        match self {
            Self::Sql(error) => is_lost(error),
            Self::Away(_) | Self::Silent => true,
            Self::Damaged(_) => false,
        }
    }

    /// Whether the same transaction may well succeed the next time.
    pub(crate) fn is_passing(&self) -> bool {
        self.code().is_some_and(|code| {
            [
                SqlState::T_R_DEADLOCK_DETECTED,
                SqlState::T_R_SERIALIZATION_FAILURE,
            ]
            .contains(code)
        })
    }

    /// Whether the server dislikes what it was given: a value (class 22), a duplicate (23) or too
    /// much of something (54).
    pub(crate) fn is_about_content(&self) -> bool {
        let class = self.code().and_then(|code| code.code().get(..2));
        class.is_some_and(|class| ["22", "23", "54"].contains(&class))
    }

    /// Whether the server has no connection left for us.
    pub(crate) fn is_crowded(&self) -> bool {
        self.code() == Some(&SqlState::TOO_MANY_CONNECTIONS)
    }

    fn code(&self) -> Option<&SqlState> {
        match self {
            Self::Sql(error) => error.code(),
            Self::Away(_) | Self::Silent | Self::Damaged(_) => None,
        }
    }
}

/// Everything but an error that the server reports about a statement, and goes on. A server that
/// has become a standby is lost, too: the primary has to be found anew.
fn is_lost(error: &Error) -> bool {
    let Some(reported) = error.as_db_error() else {
        return true;
    };
    if *reported.code() == SqlState::READ_ONLY_SQL_TRANSACTION {
        return true;
    }
    let severity = reported.parsed_severity();
    matches!(severity, Some(Severity::Fatal | Severity::Panic))
}

/// An error in a line. Details are left out, since they can repeat what was to be stored.
pub(crate) fn describe(error: &Error) -> String {
    if let Some(reported) = error.as_db_error() {
        return format!(
            "{} (SQLSTATE {})",
            reported.message(),
            reported.code().code()
        );
    }
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        source = inner.source();
    }
    text
}
