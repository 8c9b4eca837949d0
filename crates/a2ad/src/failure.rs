//! How the program ends: one line for people, one number for programs.

use std::fmt;
use std::process::ExitCode;

use a2ad_server::{
    ConfigError, CopyError, DatabaseError, OpenError, RunError, StartError, TokensError,
};

/// The exit codes. They are documented in docs/command.md and in `--help`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It did not work.
    Failure = 1,
    /// Wrong arguments, or a wrong configuration.
    Usage = 2,
    /// The address is taken or cannot be listened on.
    Address = 3,
    /// The database cannot be used.
    Database = 4,
    /// A bug.
    Internal = 70,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why the program ends, and with which code.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    error: anyhow::Error,
}

impl Failure {
    pub(crate) const fn new(exit: Exit, error: anyhow::Error) -> Self {
        Self { exit, error }
    }

    pub(crate) fn usage(text: impl fmt::Display) -> Self {
        Self::new(Exit::Usage, anyhow::anyhow!("{text}"))
    }
}

/// One line, whatever stands in file names and settings.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&one_line(&format!("{:#}", self.error)))
    }
}

/// Text without anything that could end a line or speak to a terminal.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::new(Exit::Usage, error.into())
    }
}

impl From<TokensError> for Failure {
    fn from(error: TokensError) -> Self {
        Self::new(Exit::Failure, error.into())
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        Self::new(Exit::Database, error.into())
    }
}

impl From<DatabaseError> for Failure {
    fn from(error: DatabaseError) -> Self {
        let exit = match &error {
            DatabaseError::Panicked => Exit::Internal,
            _ => Exit::Database,
        };
        Self::new(exit, error.into())
    }
}

impl From<CopyError> for Failure {
    fn from(error: CopyError) -> Self {
        let exit = match &error {
            CopyError::Panicked => Exit::Internal,
            _ => Exit::Database,
        };
        Self::new(exit, error.into())
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        let exit = match &error {
            StartError::NoAgents
            | StartError::NoneExposed
            | StartError::NoBackend(_)
            | StartError::DuplicateAgent(_)
            | StartError::ReservedAgent(_)
            | StartError::Card { .. }
            | StartError::CardFile { .. }
            | StartError::CardYaml { .. }
            | StartError::SameAddress(_)
            | StartError::SameSecret(..)
            | StartError::Unauthenticated(_)
            | StartError::Header(_)
            | StartError::Tokens(_)
            | StartError::PublicUrl => Exit::Usage,
            StartError::Bind { .. } => Exit::Address,
            StartError::DataDir { .. }
            | StartError::Database(_)
            | StartError::Postgres(_)
            | StartError::Store(_) => Exit::Database,
            StartError::Panicked => Exit::Internal,
            _ => Exit::Failure,
        };
        // Its text already says what the source says.
        let text = match &error {
            StartError::Store(source) => format!("{error}: {source}"),
            _ => error.to_string(),
        };
        Self::new(exit, anyhow::anyhow!(text))
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        let exit = match &error {
            RunError::StoreStopped(_) => Exit::Database,
            RunError::Panicked => Exit::Internal,
            _ => Exit::Failure,
        };
        Self::new(exit, error.into())
    }
}
