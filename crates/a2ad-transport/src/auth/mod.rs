//! Who calls: credentials to principals.
//!
//! A request is let in with one good credential, or with none where authentication is off. A bad credential is
//! never the same as none, and why one was refused is for the log alone.

mod challenge;
mod secret;

pub use secret::{Credential, Digest, Kind};

use std::fmt;
use std::sync::{Arc, RwLock};

use a2ad_core::keys::Owner;
use a2ad_proto::AgentId;
use http::header::{AUTHORIZATION, HeaderName};
use http::{HeaderMap, HeaderValue};

/// No credential is longer; more would be hashed for nothing.
const CREDENTIAL_BYTES_MAX: usize = 4096;

/// Who somebody is, and what they may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// Whose tasks theirs are.
    pub owner: Owner,
    /// What they may do.
    pub scopes: Vec<Scope>,
}

/// Something that a principal may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Talk to every agent.
    Agents,
    /// Talk to this agent.
    Agent(AgentId),
    /// Everything that operators may.
    Admin,
    /// Work as an agent.
    Worker,
    /// Look at how the server is doing.
    Monitor,
}

impl Principal {
    /// Everybody, where authentication is off.
    #[must_use]
    pub fn anonymous() -> Self {
        Self {
            owner: Owner::anonymous(),
            scopes: vec![Scope::Agents, Scope::Admin, Scope::Worker, Scope::Monitor],
        }
    }

    /// Somebody unknown, at what is open to all.
    pub(crate) fn nobody() -> Self {
        Self {
            owner: Owner::anonymous(),
            scopes: Vec::new(),
        }
    }

    /// Whether they may talk to this agent.
    pub(crate) fn may_call(&self, agent: &AgentId) -> bool {
        self.scopes.iter().any(|scope| match scope {
            Scope::Agents => true,
            Scope::Agent(allowed) => allowed == agent,
            Scope::Admin | Scope::Worker | Scope::Monitor => false,
        })
    }

    /// Whether they may look at how the server is doing.
    pub(crate) fn may_monitor(&self) -> bool {
        let allowed = |scope: &Scope| matches!(scope, Scope::Monitor | Scope::Admin);
        self.scopes.iter().any(allowed)
    }
}

impl std::str::FromStr for Scope {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        Ok(match text {
            "agents" => Self::Agents,
            "admin" => Self::Admin,
            "worker" => Self::Worker,
            "monitor" => Self::Monitor,
            _ => match text.strip_prefix("agents:").map(str::parse) {
                Some(Ok(agent)) => Self::Agent(agent),
                Some(Err(_)) | None => return Err(UnknownScope(text.to_owned())),
            },
        })
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agents => f.write_str("agents"),
            Self::Agent(agent) => write!(f, "agents:{agent}"),
            Self::Admin => f.write_str("admin"),
            Self::Worker => f.write_str("worker"),
            Self::Monitor => f.write_str("monitor"),
        }
    }
}

/// A word that is no scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownScope(String);

impl std::error::Error for UnknownScope {}

impl fmt::Display for UnknownScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = &self.0;
        write!(
            f,
            "`{word}` is no scope; known: agents, agents:<id>, admin, worker, monitor"
        )
    }
}

/// How callers prove who they are.
#[derive(Debug)]
pub struct Auth {
    /// Whether callers have to. Kept apart from the credentials: when the last is revoked, nobody gets in.
    pub required: bool,
    /// A header that bearer tokens may stand in as well.
    pub token_header: Option<HeaderName>,
    /// The header of API keys.
    pub api_key_header: HeaderName,
    /// Whether 401 says how to authenticate.
    pub challenge: bool,
    /// Whether cards are for everybody.
    pub public_cards: bool,
    /// Whether the probes are for everybody.
    pub public_health: bool,
    /// Which kinds of credential there can be, for the challenge.
    pub kinds: Vec<Kind>,
    credentials: RwLock<Arc<Vec<Credential>>>,
    /// Made once: where authentication is off, every request is theirs.
    anonymous: Arc<Principal>,
}

/// The header of API keys where nothing else is said.
pub const API_KEY_HEADER: HeaderName = HeaderName::from_static("x-api-key");

impl Auth {
    /// No authentication: everybody is the same anonymous owner.
    #[must_use]
    pub fn off() -> Self {
        Self {
            required: false,
            token_header: None,
            api_key_header: API_KEY_HEADER,
            challenge: true,
            public_cards: true,
            public_health: true,
            kinds: Vec::new(),
            credentials: RwLock::default(),
            anonymous: Arc::new(Principal::anonymous()),
        }
    }

    /// Puts these credentials in the place of those before.
    pub fn replace(&self, credentials: Vec<Credential>) {
        let mut current = self
            .credentials
            .write()
            .unwrap_or_else(|it| it.into_inner());
        *current = Arc::new(credentials);
    }

    /// Whose request it is.
    ///
    /// # Errors
    /// If nobody can be told from it. The reason is for the log.
    pub(crate) fn identify(&self, headers: &HeaderMap) -> Result<Arc<Principal>, Unknown> {
        if !self.required {
            return Ok(Arc::clone(&self.anonymous));
        }
        let credentials = Arc::clone(&self.credentials.read().unwrap_or_else(|it| it.into_inner()));
        let mut refused = Unknown::Nothing;
        for shown in self.shown(headers) {
            match shown.and_then(|shown| shown.find(&credentials)) {
                Ok(principal) => return Ok(principal),
                Err(why) => refused = why,
            }
        }
        Err(refused)
    }

    /// The credentials that a request shows, wherever they may stand.
    fn shown<'a>(
        &self,
        headers: &'a HeaderMap,
    ) -> impl Iterator<Item = Result<Shown<'a>, Unknown>> {
        let of = |name: &HeaderName, read: fn(&'a [u8]) -> Result<Shown<'a>, Unknown>| {
            one(headers, name).map(|line| line.and_then(read))
        };
        let token = |line: &'a [u8]| Shown::new(Kind::Bearer, line);
        let key = |line: &'a [u8]| Shown::new(Kind::ApiKey, line);
        let keys = self.kinds.contains(&Kind::ApiKey);
        [
            of(&AUTHORIZATION, authorization),
            self.token_header.as_ref().and_then(|name| of(name, token)),
            keys.then(|| of(&self.api_key_header, key)).flatten(),
        ]
        .into_iter()
        .flatten()
    }
}

/// The value of a header that is there: once, and not too long.
fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<Result<&'a [u8], Unknown>> {
    let mut lines = headers.get_all(name).iter().map(HeaderValue::as_bytes);
    let first = lines.next()?;
    Some(if lines.next().is_some() {
        Err(Unknown::Twice)
    } else if first.len() > CREDENTIAL_BYTES_MAX {
        Err(Unknown::TooLong)
    } else {
        Ok(first)
    })
}

/// What stands in `Authorization`.
fn authorization(line: &[u8]) -> Result<Shown<'_>, Unknown> {
    let at = line.iter().position(|byte| *byte == b' ');
    let (scheme, rest) = line.split_at(at.unwrap_or(line.len()));
    let rest = rest.trim_ascii();
    if scheme.eq_ignore_ascii_case(b"bearer") {
        Shown::new(Kind::Bearer, rest)
    } else if scheme.eq_ignore_ascii_case(b"basic") {
        let pair = base64::Engine::decode(&base64::prelude::BASE64_STANDARD, rest);
        let pair = pair.map_err(|_| Unknown::Malformed)?;
        match pair.iter().position(|byte| *byte == b':') {
            Some(at) if at > 0 && at + 1 < pair.len() => Ok(Shown {
                kind: Kind::Basic,
                secret: pair.into(),
            }),
            Some(_) | None => Err(Unknown::Malformed),
        }
    } else {
        Err(Unknown::Scheme)
    }
}

/// A credential as it was shown.
struct Shown<'a> {
    kind: Kind,
    secret: std::borrow::Cow<'a, [u8]>,
}

impl<'a> Shown<'a> {
    fn new(kind: Kind, secret: &'a [u8]) -> Result<Self, Unknown> {
        if secret.is_empty() {
            return Err(Unknown::Malformed);
        }
        Ok(Self {
            kind,
            secret: secret.into(),
        })
    }

    /// Whose it is. Every known credential is compared, in the same time whether it fits or not.
    fn find(&self, known: &[Credential]) -> Result<Arc<Principal>, Unknown> {
        let digest = Digest::of(&self.secret);
        let mut found = None;
        for credential in known {
            if credential.fits(self.kind, &digest) {
                found = Some(&credential.principal);
            }
        }
        found.cloned().ok_or(Unknown::Wrong)
    }
}

/// Why a caller is nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unknown {
    Nothing,
    Twice,
    TooLong,
    Malformed,
    Scheme,
    Wrong,
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "no credential",
            Self::Twice => "a credential given twice",
            Self::TooLong => "a credential that is too long",
            Self::Malformed => "a malformed credential",
            Self::Scheme => "a scheme that is not offered",
            Self::Wrong => "a credential that nobody has",
        })
    }
}

#[cfg(test)]
mod tests;
