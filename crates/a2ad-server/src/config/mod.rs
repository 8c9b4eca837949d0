//! The configuration: typed, with a default for everything, readable from YAML.
//!
//! A [`Config`] can be built in code or read with [`Source`]. Reading takes the file's text, a way
//! to look up environment variables, and settings that lie over the file; nothing here touches the
//! environment or the disk.

mod agent;
mod auth;
mod card;
mod de;
mod error;
mod place;
mod policy;
mod tree;
mod units;

pub use a2ad_backends::{Echo, Script};
pub use agent::{AgentConfig, AgentLimits, Backend, Idempotency, Skill};
pub use auth::{
    AuthConfig, Challenge, HeaderText, Key, Openness, PrincipalName, SchemeNames, ScopeText,
    Secret, Token, User,
};
pub use card::CardSource;
pub use error::{ConfigError, Origin};
pub use place::{Database, Listen, PostgresUrl, PublicUrl};
pub use policy::{
    Continuation, EmptyInput, EndState, Finished, Granularity, OnBusy, OnRestart, Policy, Reply,
    Surface, UnsupportedInput,
};

use std::path::{Path, PathBuf};
use std::time::Duration;

use a2ad_transport::{FileBytes, IpNet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use tree::Node;

/// Everything about a server that can be chosen.
///
/// [`Config::default`] serves the echo agent on [`Listen::default`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(title = "a2ad.yaml")]
#[non_exhaustive]
pub struct Config {
    /// Where to listen, as `host:port`. Port 0 takes any free port.
    pub listen: Listen,
    /// Where to listen for gRPC alone, as `host:port`. It is served on `listen` as well.
    pub grpc_listen: Option<Listen>,
    /// The address under which clients reach gRPC, as `host:port`. By default it follows from
    /// `public_url`, `listen` and `grpc_listen`.
    pub grpc_public_address: Option<Listen>,
    /// The address under which clients reach the server, for the agent card; behind a proxy it
    /// differs from `listen`. By default the address that is listened on.
    pub public_url: Option<PublicUrl>,
    /// Proxies, as addresses or networks (`10.0.0.0/8`), whose `X-Forwarded-Host`, `-Proto`, `-Port`
    /// and `-Prefix` say under which address a client asks for a card, where `public_url` does not.
    #[serde(deserialize_with = "place::networks")]
    #[schemars(with = "Vec<String>")]
    pub trusted_proxies: Vec<IpNet>,
    /// The folder for everything the server keeps. It is created if missing, for this user only.
    #[schemars(with = "String")]
    pub data_dir: PathBuf,
    /// The database: `sqlite://` and a path, relative to `data_dir`; or
    /// `postgres://user:password@host/database`, which several instances may share.
    pub database_url: Database,
    /// What an answered request survives. With PostgreSQL it is always all that the database keeps.
    pub durability: Durability,
    /// How long an instance may be out of touch with the shared database before others take over
    /// what it is working on.
    #[serde(with = "units::duration")]
    #[schemars(with = "units::DurationText")]
    pub lease: Duration,
    /// How long stopping may take: streams are ended and running turns may finish.
    #[serde(with = "units::duration")]
    #[schemars(with = "units::DurationText")]
    pub drain: Duration,
    /// What goes to the log, and how.
    pub log: Log,
    /// How both generations of the protocol are told apart.
    pub protocol: Protocol,
    /// What a caller may take.
    pub limits: Limits,
    /// How long tasks are kept.
    pub retention: Retention,
    /// Conversations as files, for people to read.
    pub transcripts: Transcripts,
    /// Who may call.
    pub auth: AuthConfig,
    /// How agents behave where that is their owner's to choose; an agent's own policy goes before it.
    pub policy: Policy,
    /// The agents to serve. The first that clients can find answers where none is named.
    // A file without agents is a mistake; no file at all means the echo agent.
    #[serde(default = "no_agents")]
    pub agents: Vec<AgentConfig>,
}

fn no_agents() -> Vec<AgentConfig> {
    Vec::new()
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: Listen::default(),
            grpc_listen: None,
            grpc_public_address: None,
            public_url: None,
            trusted_proxies: Vec::new(),
            data_dir: PathBuf::from("a2ad-data"),
            database_url: Database::default(),
            durability: Durability::default(),
            lease: Duration::from_secs(30),
            drain: Duration::from_secs(10),
            log: Log::default(),
            protocol: Protocol::default(),
            limits: Limits::default(),
            retention: Retention::default(),
            transcripts: Transcripts::default(),
            auth: AuthConfig::default(),
            policy: Policy::default(),
            agents: vec![AgentConfig::echo()],
        }
    }
}

impl Config {
    /// The settings outside `agents` that an environment variable may override, as paths of keys.
    /// The variable for `log.level` is `A2AD_LOG_LEVEL`.
    pub const SETTINGS: &'static [&'static [&'static str]] = &[
        &["listen"],
        &["grpc_listen"],
        &["grpc_public_address"],
        &["public_url"],
        &["trusted_proxies"],
        &["data_dir"],
        &["database_url"],
        &["durability"],
        &["lease"],
        &["drain"],
        &["log", "format"],
        &["log", "level"],
        &["protocol", "lenient"],
        &["protocol", "v03_files"],
        &["limits", "connections"],
        &["limits", "body"],
        &["limits", "idle"],
        &["limits", "stall"],
        &["limits", "keep_alive"],
        &["retention", "terminal"],
        &["retention", "interrupted"],
        &["transcripts", "dir"],
        &["auth", "token_header"],
        &["auth", "api_key_header"],
        &["auth", "challenge"],
        &["auth", "card"],
        &["auth", "health"],
        &["auth", "allow_unauthenticated"],
        &["policy", "reply"],
        &["policy", "fast_path"],
        &["policy", "on_busy"],
        &["policy", "end_state"],
        &["policy", "granularity"],
        &["policy", "surface"],
        &["policy", "empty_input"],
        &["policy", "unsupported_input"],
        &["policy", "finished"],
        &["policy", "continuation"],
        &["policy", "on_restart"],
    ];

    /// The JSON Schema of a configuration file.
    #[must_use]
    pub fn schema() -> serde_json::Value {
        let mut schema = schemars::schema_for!(Self);
        schema.insert(
            "$id".to_owned(),
            "https://github.com/a2ad/a2ad/raw/main/docs/a2ad.schema.json".into(),
        );
        // Unlike in code, where the default is the echo agent, a file has to name its agents.
        if let Some(agents) = schema.pointer_mut("/properties/agents") {
            agents
                .as_object_mut()
                .map(|agents| agents.remove("default"));
        }
        dashed_too(schema.as_value())
    }

    /// Makes relative paths of card files relative to `folder`, where the configuration file is.
    pub fn look_in(&mut self, folder: &Path) {
        for agent in &mut self.agents {
            if let Some(CardSource::File(path)) = &mut agent.card {
                *path = folder.join(&path);
            }
        }
    }

    /// Where the database file is, if it is one.
    #[must_use]
    pub fn database_path(&self) -> Option<PathBuf> {
        match &self.database_url {
            Database::Sqlite(path) => Some(self.data_dir.join(path)),
            Database::Postgres(_) => None,
        }
    }
}

/// Allows every key with dashes beside its form with underscores, in each object of the schema.
fn dashed_too(schema: &serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match schema {
        Value::Array(items) => items.iter().map(dashed_too).collect(),
        Value::Object(members) => {
            let mut members: serde_json::Map<String, Value> = members
                .iter()
                .map(|(name, value)| (name.clone(), dashed_too(value)))
                .collect();
            if let Some(Value::Object(properties)) = members.get("properties").cloned() {
                let dashed: serde_json::Map<String, Value> = properties
                    .iter()
                    .filter(|(name, _)| name.contains('_'))
                    .map(|(name, value)| (format!("^{}$", name.replace('_', "-")), value.clone()))
                    .collect();
                if !dashed.is_empty() {
                    members.insert("patternProperties".to_owned(), Value::Object(dashed));
                }
            }
            Value::Object(members)
        }
        other => other.clone(),
    }
}

/// Conversations as files, for people to read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Transcripts {
    /// The folder for them, relative to `data_dir`. Without one, none are written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dir: Option<PathBuf>,
}

/// What an answered request survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// A power cut: every commit is synced to the disk.
    #[default]
    Full,
    /// A crash of the process, but not of the machine.
    Os,
}

/// What goes to the log, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Log {
    /// For people or for programs.
    pub format: LogFormat,
    /// `error`, `warn`, `info`, `debug` or `trace`, or a filter such as
    /// `info,a2ad_core=debug`.
    pub level: String,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            format: LogFormat::default(),
            level: "info".to_owned(),
        }
    }
}

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// One readable line each.
    #[default]
    Text,
    /// One JSON object each.
    Json,
}

/// What a caller may take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Limits {
    /// Connections open at once.
    #[serde(deserialize_with = "units::above_zero::count")]
    #[schemars(range(min = 1))]
    pub connections: u32,
    /// Size of a request's body.
    #[serde(
        serialize_with = "units::size::serialize",
        deserialize_with = "units::above_zero::size"
    )]
    #[schemars(with = "units::SizeText")]
    pub body: u64,
    /// How long a connection may idle between requests.
    #[serde(
        serialize_with = "units::duration::serialize",
        deserialize_with = "units::above_zero::duration"
    )]
    #[schemars(with = "units::DurationText")]
    pub idle: Duration,
    /// How long a caller may take nothing of what is ready for it before it is cut off.
    #[serde(
        serialize_with = "units::duration::serialize",
        deserialize_with = "units::above_zero::duration"
    )]
    #[schemars(with = "units::DurationText")]
    pub stall: Duration,
    /// After how much silence a stream sends a comment, so that proxies keep it open.
    #[serde(
        serialize_with = "units::duration::serialize",
        deserialize_with = "units::above_zero::duration"
    )]
    #[schemars(with = "units::DurationText")]
    pub keep_alive: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 16_384,
            body: 16 << 20,
            idle: Duration::from_secs(60),
            stall: Duration::from_secs(60),
            keep_alive: Duration::from_secs(4),
        }
    }
}

/// How both generations of the protocol are told apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Protocol {
    /// Whether a method or path of 1.0 is served without the header `A2A-Version: 1.0`. By the specification a
    /// request without one is of 0.3, so that it is refused.
    pub lenient: bool,
    /// How clients of 0.3 have the bytes of files over HTTP+JSON and gRPC: SDKs of the time differ.
    pub v03_files: V03Files,
}

/// How clients of 0.3 have the bytes of files over HTTP+JSON and gRPC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum V03Files {
    /// As their `User-Agent` suggests: JavaScript has them as they are, others as base64 text.
    #[default]
    Auto,
    /// As base64 text, as the SDKs for Python and Go do.
    Base64,
    /// As they are, as the schema says and the SDK for JavaScript does.
    Plain,
}

impl From<V03Files> for FileBytes {
    fn from(files: V03Files) -> Self {
        match files {
            V03Files::Auto => Self::Auto,
            V03Files::Base64 => Self::Base64,
            V03Files::Plain => Self::Plain,
        }
    }
}

/// How long tasks are kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Retention {
    /// Tasks that have ended are deleted after this time.
    #[serde(with = "units::duration")]
    #[schemars(with = "units::DurationText")]
    pub terminal: Duration,
    /// Tasks that wait for their client this long are canceled.
    #[serde(with = "units::duration")]
    #[schemars(with = "units::DurationText")]
    pub interrupted: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        let day = Duration::from_secs(24 * 3600);
        Self {
            terminal: 30 * day,
            interrupted: 7 * day,
        }
    }
}

/// A configuration that is still to be read: a file's text and what lies over it.
///
/// ```
/// use a2ad_server::config::Source;
/// let config = Source::yaml("a2ad.yaml", "agents: [{id: parrot, echo: {delay: ${PAUSE}}}]")
///     .set(&["log", "level"], "debug", "A2AD_LOG_LEVEL")
///     .read(&|name| (name == "PAUSE").then(|| "20ms".to_owned()))?;
/// assert_eq!(config.log.level, "debug");
/// # Ok::<(), a2ad_server::config::ConfigError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Source {
    file: Option<(String, String)>,
    over: Vec<(Vec<String>, String, Origin)>,
}

impl Source {
    /// No file: [`Config::default`], unless something is laid over it.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// A YAML text; `name` is for error messages.
    #[must_use]
    pub fn yaml(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            file: Some((name.into(), text.into())),
            over: Vec::new(),
        }
    }

    /// Lays a setting over the file; `origin` names the flag or variable it came from. Later ones
    /// win.
    #[must_use]
    pub fn set(
        mut self,
        path: &[&str],
        value: impl Into<String>,
        origin: impl Into<String>,
    ) -> Self {
        let path = path.iter().map(|&key| key.to_owned()).collect();
        self.over
            .push((path, value.into(), Origin::Named(origin.into())));
        self
    }

    /// Reads it. `variable` looks up what `${NAME}` in the file stands for.
    pub fn read(&self, variable: &dyn Fn(&str) -> Option<String>) -> Result<Config, ConfigError> {
        let named = |error: ConfigError| match &self.file {
            Some((name, _)) => error.in_file(name),
            None => error,
        };
        let mut tree = match &self.file {
            Some((_, text)) => Node::parse(text, variable).map_err(named)?,
            None => Node {
                origin: Origin::Named("the settings".to_owned()),
                kind: tree::Kind::Null,
            },
        };
        for (path, value, origin) in &self.over {
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            tree.set(&path, value, origin);
        }
        let mut config =
            Config::deserialize(&tree).map_err(|error| named(error.at(&tree.origin)))?;
        if self.file.is_none() {
            config.agents = Config::default().agents;
        }
        Ok(config)
    }
}

#[cfg(test)]
mod tests;
