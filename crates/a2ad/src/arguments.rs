//! The command line, as it is typed. What the values mean is checked in `settings`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Parser, Subcommand};

use crate::failure::Failure;
use crate::tell;

const EXIT_CODES: &str = "\
Exit codes:
  0   all is well
  1   it did not work
  2   wrong arguments or configuration
  3   the address is taken or cannot be listened on
  4   the database cannot be used (in use, damaged, too new, read-only, full)
  70  a bug in a2ad";

const SERVE_ENVIRONMENT: &str = "\
Environment:
  A2AD_CONFIG            the configuration file
  A2AD_LISTEN, A2AD_…    any setting outside `agents`: A2AD_LOG_LEVEL is log.level
  HOST, PORT             the address, where A2AD_LISTEN and flags do not give it
  RUST_LOG               the log filter, where A2AD_LOG_LEVEL does not give it
  A2AD_TOKEN             a bearer token for callers, named `default`
  A2AD_BASIC_USERNAME, A2AD_BASIC_PASSWORD, A2AD_API_KEY
                         a user with a password; an API key, named `default`
Flags win over the environment, the environment over the file.";

const COPY_NOTES: &str = "\
Everything goes along: tasks, journals, repeated requests, work that was left. The file stays as it
is. If it is interrupted, run it again: it goes on where it was. Until it has come to its end, no
server starts on the database.";

/// The A2A daemon: serves agents over the Agent2Agent protocol and keeps every task in a journal
/// that survives crashes.
#[derive(Debug, Parser)]
#[command(
    name = "a2ad",
    version,
    after_help = EXIT_CODES,
    arg_required_else_help = true,
    max_term_width = 100
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serves the configured agents; without a configuration, an echo agent.
    #[command(after_help = SERVE_ENVIRONMENT)]
    Serve(Serve),
    /// Walks the whole database and says whether it is sound. Stop the server first, if it has a SQLite file.
    Verify(Verify),
    /// Looks whether a server could serve here, and how well. Changes nothing; a server may be running.
    Doctor(Doctor),
    /// Looks at the database, brings it up to date, moves it to PostgreSQL.
    #[command(subcommand)]
    Db(DbCommand),
    /// Shows what was said in a conversation. Works while servers run.
    #[command(subcommand)]
    Context(ContextCommand),
    /// Makes tokens for callers, lists them, takes them back. Works while the server runs.
    #[command(subcommand)]
    Token(TokenCommand),
    /// Looks at the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum DbCommand {
    /// Says what the database holds and who uses it. Works while servers run.
    Status(Asked),
    /// Makes the tables, or brings them to the newest schema, as the next start would.
    Migrate(Asked),
    /// Copies a SQLite file into a PostgreSQL database. Stop the server first.
    #[command(after_help = COPY_NOTES)]
    Copy(Copy),
}

#[derive(Debug, Subcommand)]
pub(crate) enum ContextCommand {
    /// Prints a conversation as Markdown: what the user said and what each turn came to, in order.
    Export(Export),
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    #[command(flatten)]
    pub(crate) place: Place,
    /// The agent's id.
    #[arg(long, value_name = "ID")]
    pub(crate) agent: String,
    /// The conversation's id.
    #[arg(long, value_name = "ID")]
    pub(crate) context: String,
    /// Whose conversation it is, as token:alice or basic:bob [default: whoever alone has one of this name].
    #[arg(long, value_name = "NAME")]
    pub(crate) owner: Option<String>,
    /// Prints one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A question about what is configured.
#[derive(Debug, Args)]
pub(crate) struct Asked {
    #[command(flatten)]
    pub(crate) place: Place,
    /// Prints one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Copy {
    #[command(flatten)]
    pub(crate) place: Place,
    /// The file, also as sqlite://FILE, which like `database_url` is relative to the data directory [default: the configured one, or a2ad.db in the data directory].
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<String>,
    /// The database, as postgres://user@host/database [default: the configured one]. Others on this machine can see it; A2AD_DATABASE_URL keeps a password to yourself.
    #[arg(long, value_name = "URL")]
    pub(crate) to: Option<String>,
    /// Prints one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) serve: Serve,
    /// Prints one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Reads the configuration as `serve` would and says what is wrong with it.
    Check(Place),
    /// Prints the JSON Schema of the configuration file.
    Schema,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Makes a token and prints it; only a digest is kept.
    Create {
        #[command(flatten)]
        place: Place,
        /// Whose it is: tasks belong to this name.
        name: String,
        /// What it is good for: agents, agents:ID, monitor, admin, worker [default: agents].
        #[arg(long = "scope", value_name = "SCOPE")]
        scopes: Vec<String>,
        /// Prints one JSON document.
        #[arg(long)]
        json: bool,
    },
    /// Lists names, scopes and when they were made.
    List {
        #[command(flatten)]
        place: Place,
        /// Prints one JSON document.
        #[arg(long)]
        json: bool,
    },
    /// Takes a token back; a running server refuses it within a second.
    Revoke {
        #[command(flatten)]
        place: Place,
        /// Whose.
        name: String,
    },
}

/// Where the configuration and the data are.
#[derive(Debug, Default, Args)]
pub(crate) struct Place {
    /// The configuration file [default: a2ad.yaml, if there is one].
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The folder for everything that is kept [default: a2ad-data].
    #[arg(long, value_name = "FOLDER")]
    pub(crate) data_dir: Option<PathBuf>,
}

#[derive(Debug, Default, Args)]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) place: Place,
    /// Where to listen [default: 127.0.0.1:41240]; port 0 takes any free port.
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["host", "port"])]
    pub(crate) listen: Option<String>,
    /// A further address for gRPC, which is served on the main one too.
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) grpc_listen: Option<String>,
    /// A bearer token for callers, named `default`. Others on this machine can see it; A2AD_TOKEN or
    /// --token-file keep it to yourself.
    #[arg(long, value_name = "TOKEN", conflicts_with = "token_file")]
    pub(crate) token: Option<String>,
    /// A file that holds such a token.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Serves everybody, also on an address that others can reach.
    #[arg(long)]
    pub(crate) allow_unauthenticated: bool,
    /// The host to listen on, alone.
    #[arg(long)]
    pub(crate) host: Option<String>,
    /// The port to listen on, alone.
    #[arg(short, long)]
    pub(crate) port: Option<u16>,
}

#[derive(Debug, Args)]
pub(crate) struct Verify {
    #[command(flatten)]
    pub(crate) place: Place,
    /// Prints one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Reads the command line. `None`: help or version was asked for, and has been given.
pub(crate) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Option<Command>, Failure> {
    match Arguments::try_parse_from(words) {
        Ok(arguments) => Ok(Some(arguments.command)),
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
                tell(error.to_string().trim_end());
                Ok(None)
            }
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
                eprintln!("{}", error.to_string().trim_end());
                Err(Failure::usage("a command is needed"))
            }
            _ => Err(Failure::usage(one_line(&error))),
        },
    }
}

/// What is wrong, what may have been meant, and where to read on, without clap's paragraphs.
fn one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    // The first paragraph, whose list of missing or known things stands on lines of its own.
    let first: Vec<&str> = text
        .lines()
        .take_while(|line| !line.trim().is_empty())
        .map(str::trim)
        .collect();
    let mut line = first.join(" ");
    if let Some(bare) = line.strip_prefix("error: ") {
        line = bare.to_owned();
    }
    let suggestion = [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand]
        .into_iter()
        .find_map(|kind| error.get(kind))
        .and_then(|value| match value {
            ContextValue::String(word) => Some(word.clone()),
            ContextValue::Strings(words) => words.first().cloned(),
            _ => None,
        });
    match suggestion {
        Some(word) => format!("{line}; did you mean `{word}`?"),
        None => format!("{line}; see a2ad --help"),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn refused(words: &[&str]) -> String {
        let words = std::iter::once("a2ad").chain(words.iter().copied());
        parse(words.map(OsString::from)).unwrap_err().to_string()
    }

    #[test]
    fn the_arguments_are_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_wrong_argument_is_one_line_with_a_suggestion() {
        assert_eq!(
            refused(&["serve", "--prot", "1"]),
            "unexpected argument '--prot' found; did you mean `--port`?"
        );
        assert_eq!(
            refused(&["sevre"]),
            "unrecognized subcommand 'sevre'; did you mean `serve`?"
        );
        for words in [
            &["serve", "--port", "70000"][..],
            &["serve", "--listen", "a:1", "--port", "1"],
            &["config"],
            &["serve", "extra"],
        ] {
            assert!(!refused(words).contains('\n'), "{words:?}");
        }
    }
}
