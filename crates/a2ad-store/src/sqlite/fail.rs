//! What an error of SQLite means for the store.

use std::sync::Arc;

use a2ad_core::store::StoreError;
use rusqlite::{Error, ErrorCode, ffi};

/// Why something could not be read or written.
#[derive(Debug)]
pub(crate) enum Failure {
    /// SQLite says so.
    Sql(Error),
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
            Self::Damaged(what) => return StoreError::Corrupt(Arc::from(what.as_str())),
        };
        let text = Arc::from(error.to_string());
        match error {
            Error::SqliteFailure(code, _) => match code.code {
                ErrorCode::DiskFull => StoreError::Full(text),
                ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => StoreError::Corrupt(text),
                _ => StoreError::Unavailable(text),
            },
            Error::FromSqlConversionFailure(..)
            | Error::IntegralValueOutOfRange(..)
            | Error::InvalidColumnType(..)
            | Error::Utf8Error(..) => StoreError::Corrupt(text),
            _ => StoreError::Unavailable(text),
        }
    }

    /// Whether the failure leaves us not knowing what is on the disk. A failed write or sync is
    /// never tried again: the operating system may have dropped the pages and would then report
    /// success for data that is gone.
    pub(crate) fn is_fatal(&self) -> bool {
        match self {
            Self::Sql(Error::SqliteFailure(code, _)) => {
                code.code == ErrorCode::SystemIoFailure && !HARMLESS.contains(&code.extended_code)
            }
            Self::Sql(_) | Self::Damaged(_) => false,
        }
    }
}

/// I/O errors that put nothing on the disk in doubt: reading, and the shared memory beside the
/// log, which is rebuilt from the log whenever it is gone.
const HARMLESS: [i32; 8] = [
    ffi::SQLITE_IOERR_READ,
    ffi::SQLITE_IOERR_SHORT_READ,
    ffi::SQLITE_IOERR_NOMEM,
    ffi::SQLITE_IOERR_SHMOPEN,
    ffi::SQLITE_IOERR_SHMSIZE,
    ffi::SQLITE_IOERR_SHMLOCK,
    ffi::SQLITE_IOERR_SHMMAP,
    ffi::SQLITE_IOERR_FSTAT,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(code: i32) -> Failure {
        Failure::Sql(Error::SqliteFailure(ffi::Error::new(code), None))
    }

    #[test]
    fn only_failed_writes_and_syncs_are_fatal() {
        for code in [
            ffi::SQLITE_IOERR_WRITE,
            ffi::SQLITE_IOERR_FSYNC,
            ffi::SQLITE_IOERR_DIR_FSYNC,
            ffi::SQLITE_IOERR_TRUNCATE,
            ffi::SQLITE_IOERR,
        ] {
            assert!(failure(code).is_fatal(), "{code}");
        }
        for code in [
            ffi::SQLITE_FULL,
            ffi::SQLITE_BUSY,
            ffi::SQLITE_READONLY,
            ffi::SQLITE_IOERR_READ,
            ffi::SQLITE_CORRUPT,
        ] {
            assert!(!failure(code).is_fatal(), "{code}");
        }
    }

    #[test]
    fn callers_learn_what_they_can_act_on() {
        let told = |code| failure(code).store_error();
        assert!(matches!(told(ffi::SQLITE_FULL), StoreError::Full(_)));
        assert!(matches!(told(ffi::SQLITE_CORRUPT), StoreError::Corrupt(_)));
        assert!(matches!(told(ffi::SQLITE_NOTADB), StoreError::Corrupt(_)));
        assert!(matches!(
            told(ffi::SQLITE_READONLY),
            StoreError::Unavailable(_)
        ));
        assert!(matches!(told(ffi::SQLITE_BUSY), StoreError::Unavailable(_)));
    }
}
