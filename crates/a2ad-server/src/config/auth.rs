//! Who may call: credentials, where they may stand, and what is open to all.

use std::fmt;

use a2ad_transport::auth::Scope;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Who may call. Without any credential, everybody may.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct AuthConfig {
    /// Bearer tokens. More can be made with `a2ad token create`.
    pub tokens: Vec<Token>,
    /// A header that bearer tokens may stand in as well, such as `X-SB-Token`.
    pub token_header: Option<HeaderText>,
    /// Users with passwords.
    pub basic: Vec<User>,
    /// API keys.
    pub api_keys: Vec<Key>,
    /// The header of API keys.
    pub api_key_header: HeaderText,
    /// Whether an answer 401 says how to authenticate, in `WWW-Authenticate`.
    pub challenge: Challenge,
    /// Who sees agent cards; if they are protected, whoever may call the agent.
    pub card: Openness,
    /// Who sees `/livez`, `/readyz`, `/healthz` and `/health`.
    pub health: Openness,
    /// Serves everybody on an address that others can reach. Otherwise that is refused.
    pub allow_unauthenticated: bool,
    /// What cards call the ways to authenticate.
    pub scheme_names: SchemeNames,
}

impl Default for AuthConfig {
    fn default() -> Self {
        Self {
            tokens: Vec::new(),
            token_header: None,
            basic: Vec::new(),
            api_keys: Vec::new(),
            api_key_header: HeaderText("X-API-Key".to_owned()),
            challenge: Challenge::default(),
            card: Openness::default(),
            health: Openness::default(),
            allow_unauthenticated: false,
            scheme_names: SchemeNames::default(),
        }
    }
}

/// A bearer token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// Whose it is. Two tokens of one name are the same person.
    pub name: PrincipalName,
    /// The token itself; write it as `${VARIABLE}`.
    pub token: Secret,
    /// What it is good for: `agents`, `agents:<id>`, `monitor`, `admin`, `worker`.
    #[serde(default = "agents")]
    pub scopes: Vec<ScopeText>,
}

/// A user with a password.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// The user's name.
    pub user: PrincipalName,
    /// The password; write it as `${VARIABLE}`.
    pub password: Secret,
    /// What the user may do: `agents`, `agents:<id>`, `monitor`, `admin`, `worker`.
    #[serde(default = "agents")]
    pub scopes: Vec<ScopeText>,
}

/// An API key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// Whose it is.
    pub name: PrincipalName,
    /// The key itself; write it as `${VARIABLE}`.
    pub key: Secret,
    /// What it is good for: `agents`, `agents:<id>`, `monitor`, `admin`, `worker`.
    #[serde(default = "agents")]
    pub scopes: Vec<ScopeText>,
}

fn agents() -> Vec<ScopeText> {
    vec![ScopeText(Scope::Agents)]
}

/// Whether an answer 401 says how to authenticate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Challenge {
    /// In `WWW-Authenticate`.
    #[default]
    Header,
    /// No.
    None,
}

/// Who sees something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Openness {
    /// Everybody.
    #[default]
    Public,
    /// Whoever has a credential.
    Protected,
}

/// What cards call the ways to authenticate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SchemeNames {
    /// Bearer tokens.
    pub bearer: String,
    /// Bearer tokens in `auth.token_header`.
    pub token_header: String,
    /// Users with passwords.
    pub basic: String,
    /// API keys.
    pub api_key: String,
}

impl Default for SchemeNames {
    fn default() -> Self {
        Self {
            bearer: "bearerAuth".to_owned(),
            token_header: "tokenAuth".to_owned(),
            basic: "basicAuth".to_owned(),
            api_key: "apiKeyAuth".to_owned(),
        }
    }
}

/// A text that is shown to nobody.
#[derive(Clone, PartialEq, Eq, JsonSchema)]
#[schemars(transparent)]
pub struct Secret(String);

impl Secret {
    /// A secret; none if the text is empty.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        (!text.is_empty()).then_some(Self(text))
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("…")
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Not quoted in the error, whatever is wrong with it.
        let text = String::deserialize(deserializer)?;
        Self::new(text).ok_or_else(|| de::Error::custom("the secret is empty"))
    }
}

/// Whose a credential is: letters, digits, `.`, `_`, `-` and `@`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(transparent)]
pub struct PrincipalName(String);

impl PrincipalName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for PrincipalName {
    type Err = super::ConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '@');
        if (1..=128).contains(&text.len()) && text.chars().all(inside) {
            return Ok(Self(text.to_owned()));
        }
        Err(super::ConfigError::new(format!(
            "`{text}` is no name; use up to 128 letters, digits, `.`, `_`, `-` and `@`"
        )))
    }
}

impl<'de> Deserialize<'de> for PrincipalName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

/// The name of a header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(transparent)]
pub struct HeaderText(String);

impl HeaderText {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for HeaderText {
    type Err = super::ConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // Headers that mean something else already.
        const TAKEN: [&str; 6] = [
            "authorization",
            "connection",
            "content-length",
            "content-type",
            "host",
            "transfer-encoding",
        ];
        let taken = TAKEN.iter().any(|name| name.eq_ignore_ascii_case(text));
        let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if !taken && (1..=128).contains(&text.len()) && text.chars().all(inside) {
            return Ok(Self(text.to_owned()));
        }
        Err(super::ConfigError::new(format!(
            "`{text}` cannot be the header of a credential; write it like X-API-Key"
        )))
    }
}

impl<'de> Deserialize<'de> for HeaderText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

/// Something that a credential is good for.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(transparent)]
pub struct ScopeText(#[schemars(with = "String")] pub Scope);

impl Serialize for ScopeText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ScopeText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(de::Error::custom)
    }
}
