//! Addresses: where to listen, where to be reached, where to keep things.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use a2ad_transport::{Address, Grpc, IpNet};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::error::ConfigError;

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// A name or an address, without brackets.
    pub host: String,
    /// 0 takes any free port.
    pub port: u16,
}

impl Default for Listen {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port: 41240,
        }
    }
}

impl FromStr for Listen {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let wrong = || {
            ConfigError::new(format!(
                "`{text}` is not an address; write it like 127.0.0.1:41240 or [::1]:41240"
            ))
        };
        let (host, port) = text.trim().rsplit_once(':').ok_or_else(wrong)?;
        let port = port.parse().map_err(|_| wrong())?;
        let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
        let host = match bare {
            Some(six) if six.parse::<std::net::Ipv6Addr>().is_ok() => six,
            Some(_) => return Err(wrong()),
            None if is_host(host) => host,
            None => return Err(wrong()),
        };
        Ok(Self {
            host: host.to_owned(),
            port,
        })
    }
}

fn is_host(text: &str) -> bool {
    let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    !text.is_empty() && text.chars().all(inside)
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// An `http` or `https` address without a trailing slash, query or fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl(String);

impl PublicUrl {
    /// The address as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PublicUrl {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let url = text.trim().trim_end_matches('/');
        if Address::new(url, Grpc::Here).is_some() {
            Ok(Self(url.to_owned()))
        } else {
            Err(ConfigError::new(format!(
                "`{text}` is not a public address; write it like https://agents.example.com"
            )))
        }
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What keeps the tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Database {
    /// A SQLite file; a relative path lies in the data directory.
    Sqlite(PathBuf),
    /// A PostgreSQL database, which several instances may share.
    Postgres(PostgresUrl),
}

/// Where a PostgreSQL database is, and how to get in. It is shown without the latter.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl(String);

impl PostgresUrl {
    /// All of it, with the password.
    pub(crate) fn secret(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, rest) = self.0.split_once("://").unwrap_or_default();
        let rest = rest.split('?').next().unwrap_or_default();
        let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
        write!(f, "postgres://{place}")
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Default for Database {
    fn default() -> Self {
        Self::Sqlite(PathBuf::from("a2ad.db"))
    }
}

impl FromStr for Database {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        match text.trim().split_once("://") {
            Some(("sqlite", path)) if !path.is_empty() && !path.contains(['?', '\0']) => {
                Ok(Self::Sqlite(PathBuf::from(path)))
            }
            Some(("sqlite", _)) => Err(ConfigError::new(
                "a path has to follow `sqlite://`, such as sqlite://a2ad.db",
            )),
            Some(("postgres" | "postgresql", rest)) if !rest.is_empty() => {
                Ok(Self::Postgres(PostgresUrl(text.trim().to_owned())))
            }
            // The rest may hold a password, so only the scheme is repeated.
            Some((scheme, _)) => Err(ConfigError::new(format!(
                "no database is known as `{scheme}://`; write it like sqlite://a2ad.db or postgres://user@host/database"
            ))),
            None => Err(ConfigError::new(
                "not a database address; write it like sqlite://a2ad.db or postgres://user@host/database",
            )),
        }
    }
}

impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite://{}", path.display()),
            Self::Postgres(url) => url.fmt(f),
        }
    }
}

/// Addresses and networks, as a list or, as in an environment variable, with commas between them.
pub(super) fn networks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<IpNet>, D::Error> {
    use serde_json::Value;
    let expected = || de::Error::custom("expected addresses or networks, such as [10.0.0.0/8]");
    let words = match Value::deserialize(deserializer)? {
        Value::Null => Vec::new(),
        Value::String(line) => line.split(',').map(|word| word.trim().to_owned()).collect(),
        Value::Array(list) => {
            let word = |item: Value| match item {
                Value::String(word) => Ok(word),
                _ => Err(expected()),
            };
            list.into_iter().map(word).collect::<Result<_, _>>()?
        }
        _ => return Err(expected()),
    };
    let read = |word: &String| {
        network(word).ok_or_else(|| {
            de::Error::custom(format!(
                "`{word}` is neither an address nor a network; write it like 10.0.0.7 or 10.0.0.0/8"
            ))
        })
    };
    words.iter().map(read).collect()
}

/// An address or a network. Those of IPv4 that are written as IPv6 are of IPv4, as callers' addresses are.
fn network(word: &str) -> Option<IpNet> {
    if let Ok(alone) = word.parse::<IpAddr>() {
        return Some(alone.to_canonical().into());
    }
    let net: IpNet = word.parse().ok()?;
    match net.addr().to_canonical() {
        IpAddr::V4(four) if net.addr().is_ipv6() => {
            IpNet::new(four.into(), net.prefix_len().checked_sub(96)?).ok()
        }
        _ => Some(net),
    }
}

macro_rules! as_text {
    ($name:ident, $description:literal, $pattern:literal) => {
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(de::Error::custom)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "description": $description,
                    "type": "string",
                    "pattern": $pattern,
                })
            }
        }
    };
}

as_text!(
    Listen,
    "A host and a port, such as 127.0.0.1:41240 or [::1]:41240.",
    r"^.+:[0-9]+$|\$\{"
);
as_text!(
    PublicUrl,
    "An http or https address, such as https://agents.example.com.",
    r"^https?://|\$\{"
);
as_text!(
    Database,
    "`sqlite://` and a path, of which a relative one lies in the data directory; or `postgres://user:password@host/database`.",
    r"^(sqlite|postgres|postgresql)://.+|\$\{"
);
