//! One daemon per database, by a lock on a file beside it.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::sqlite::open::OpenError;

/// For so long a lock may outlive whoever let go of it: a child that its process was just starting
/// has it too, until it becomes another program.
const LINGERS: Duration = Duration::from_millis(200);

/// Held while the database is open; the operating system lets go of it when the process ends,
/// however it ends.
#[derive(Debug)]
pub(crate) struct FileLock {
    _file: File,
}

impl FileLock {
    /// Takes the lock for a daemon.
    pub(crate) fn exclusive(database: &Path) -> Result<Self, OpenError> {
        let file = private(OpenOptions::new().write(true).create(true).truncate(false))
            .open(beside(database, ".lock"))
            .map_err(|source| OpenError::from_io(database, source))?;
        Self::hold(database, file, File::try_lock)
    }

    /// Keeps daemons away while the database is only read. `None` if there is no lock to take:
    /// in a folder that cannot be written nobody else writes either.
    pub(crate) fn shared(database: &Path) -> Result<Option<Self>, OpenError> {
        match File::open(beside(database, ".lock")) {
            Ok(file) => Self::hold(database, file, File::try_lock_shared).map(Some),
            Err(_) => Ok(None),
        }
    }

    fn hold(
        database: &Path,
        file: File,
        lock: impl Fn(&File) -> Result<(), TryLockError>,
    ) -> Result<Self, OpenError> {
        let began = Instant::now();
        loop {
            match lock(&file) {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::WouldBlock) if began.elapsed() < LINGERS => {
                    std::thread::sleep(LINGERS / 10);
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(OpenError::Locked {
                        path: database.to_owned(),
                    });
                }
                Err(TryLockError::Error(source)) => {
                    return Err(OpenError::from_io(database, source));
                }
            }
        }
    }
}

/// The file with `suffix` added to the database's name.
pub(crate) fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(database);
    name.push(suffix);
    PathBuf::from(name)
}

/// Files that we create are for our own user only: journals hold what people wrote.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}
