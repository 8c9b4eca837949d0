//! Which agent answers where.
//!
//! Every agent is at `/agents/{id}`, `/a2a/agents/{id}`, `/{id}` and `/a2a/{id}`; the first is at `/` and `/a2a` as
//! well. Where the URL names none, the request may: an agent's id is its tenant (TEN-02).

use std::collections::HashMap;
use std::time::SystemTime;

use a2ad_core::engine::EngineError;
use a2ad_proto::{AgentCard, AgentId, Violations};

use crate::address::Address;
use crate::auth::Principal;
use crate::call::Request;
use crate::card;
use crate::errors::{Fault, Refusal};
use crate::extensions::Declared;
use crate::http_json;
use crate::percent::{Plus, decode};

/// Words that no agent can have as its id: paths begin with them, or will (TEN-05).
pub const RESERVED: [&str; 22] = [
    "a2a",
    "agent",
    "agents",
    "api",
    "artifacts",
    "card",
    "console",
    "docs",
    "extendedAgentCard",
    "health",
    "healthz",
    "jsonrpc",
    "livez",
    "metrics",
    "monitor",
    "queue",
    "readyz",
    "rpc",
    "tasks",
    "v1",
    "workers",
    "ws",
];

/// An agent to be found by clients.
#[derive(Clone, Debug)]
pub struct Exposed {
    /// Its id, and its name as a tenant.
    pub id: AgentId,
    /// Its card, but for the interfaces: those are where it is mounted.
    pub card: AgentCard,
}

/// An agent at its paths.
#[derive(Debug)]
pub(crate) struct Mount {
    pub(crate) agent: AgentId,
    pub(crate) card: card::Document,
    pub(crate) extensions: Declared,
    /// Whether the card offers streaming, which gates the streaming methods (OPS-02).
    pub(crate) streaming: bool,
    /// Whether the card offers an extended one.
    pub(crate) extended_card: bool,
}

/// All agents that clients can find.
#[derive(Debug)]
pub(crate) struct Mounts {
    /// The first is meant where nobody is named.
    all: Vec<Mount>,
    by_id: HashMap<String, usize>,
}

/// Who comes, and whom the URL names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visit<'a> {
    pub(crate) principal: &'a Principal,
    pub(crate) named: Named<'a>,
}

/// Whom a URL names. An agent that the caller may not call is not there.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Named<'a> {
    Nobody,
    Agent(&'a Mount),
    /// Somebody we do not know, or do not show.
    Stranger,
}

impl Mounts {
    pub(crate) fn new(agents: &[Exposed], address: &Address, since: SystemTime) -> Self {
        let mount = |(at, exposed): (usize, &Exposed)| {
            let capabilities = &exposed.card.capabilities;
            let id = (at > 0).then(|| exposed.id.as_str());
            Mount {
                agent: exposed.id.clone(),
                card: card::Document::new(exposed.card.clone(), id, address, since),
                extensions: Declared::new(&capabilities.extensions),
                streaming: capabilities.streaming == Some(true),
                extended_card: capabilities.extended_agent_card == Some(true),
            }
        };
        let all: Vec<Mount> = agents.iter().enumerate().map(mount).collect();
        let ids = all.iter().map(|mount| mount.agent.as_str().to_owned());
        Self {
            by_id: ids.zip(0..).collect(),
            all,
        }
    }

    /// The agent of that id.
    pub(crate) fn find(&self, id: &str) -> Option<&Mount> {
        self.all.get(*self.by_id.get(id)?)
    }

    /// The agents that somebody may call.
    pub(crate) fn reached_by(&self, principal: &Principal) -> impl Iterator<Item = &Mount> {
        let reached = |mount: &&Mount| principal.may_call(&mount.agent);
        self.all.iter().filter(reached)
    }

    /// Whom a path names, and what it asks of them: the rest is relative to the agent's interface. `None` if it
    /// names an agent by its address, and there is none for this caller; without a caller, all are there.
    pub(crate) fn split<'a>(
        &'a self,
        path: &'a str,
        caller: Option<&Principal>,
    ) -> Option<(Named<'a>, &'a str)> {
        let find = |id: &str| {
            let mount = self.find(id);
            mount.filter(|mount| caller.is_none_or(|caller| caller.may_call(&mount.agent)))
        };
        let inside = strip(path, "a2a").unwrap_or(path);
        if let Some(rest) = strip(inside, "agents") {
            let (id, rest) = segment(rest)?;
            let mount = find(&decode(id, Plus::Plus)?)?;
            return Some((Named::Agent(mount), rest));
        }
        let Some((first, rest)) = segment(inside) else {
            return Some((Named::Nobody, inside));
        };
        let first = decode(first, Plus::Plus)?;
        if let Some(mount) = find(&first) {
            return Some((Named::Agent(mount), rest));
        }
        // Whether a tenant exists is told in the terms of the operation (TEN-03), if there is one.
        if !is_reserved(&first) && http_json::Target::find(rest).is_some() {
            return Some((Named::Stranger, rest));
        }
        Some((Named::Nobody, inside))
    }

    /// Whose card is meant.
    pub(crate) fn card_of<'a>(&'a self, named: Named<'a>) -> Option<&'a Mount> {
        match named {
            Named::Nobody => self.all.first(),
            Named::Agent(mount) => Some(mount),
            Named::Stranger => None,
        }
    }

    /// The agent that a request is for: the one its URL names, or else its tenant, or else the first.
    ///
    /// # Errors
    /// If two names differ, or there is no such agent for this caller.
    pub(crate) fn resolve<'a>(
        &'a self,
        visit: Visit<'a>,
        tenants: [Option<&str>; 2],
        request: Option<&Request>,
    ) -> Result<&'a Mount, Fault> {
        let differs = || {
            Fault::from(Violations::one(
                "tenant",
                "names another agent than the rest of the request does",
            ))
        };
        let mut given = tenants
            .into_iter()
            .flatten()
            .filter(|name| !name.is_empty());
        let tenant = given.next();
        if given.any(|other| Some(other) != tenant) {
            return Err(differs());
        }
        let Visit { principal, named } = visit;
        let reached = |mount: &&Mount| principal.may_call(&mount.agent);
        let found = match (named, tenant) {
            (Named::Agent(mount), Some(tenant)) if mount.agent.as_str() != tenant => {
                return Err(differs());
            }
            (Named::Agent(mount), _) => Some(mount),
            (Named::Nobody, Some(tenant)) => self.find(tenant).filter(reached),
            (Named::Nobody, None) => match self.all.first().filter(reached) {
                Some(first) => Some(first),
                // It is no secret that there is one.
                None => return Err(Fault::from(Refusal::Forbidden).with("requiredScope", "agents")),
            },
            (Named::Stranger, _) => None,
        };
        found.ok_or_else(|| match request.and_then(Request::task) {
            Some(id) => EngineError::TaskNotFound { id: id.to_owned() }.into(),
            None => Fault::from(Refusal::NoSuchTenant).about("tenant"),
        })
    }
}

/// Whether a word is reserved, however it is written.
#[must_use]
pub fn is_reserved(word: &str) -> bool {
    RESERVED
        .iter()
        .any(|known| known.eq_ignore_ascii_case(word))
}

/// What follows `/word` in a path that begins with it.
fn strip<'a>(path: &'a str, word: &str) -> Option<&'a str> {
    let rest = path.strip_prefix('/')?.strip_prefix(word)?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

/// The first segment of a path and what follows it.
fn segment(path: &str) -> Option<(&str, &str)> {
    let path = path.strip_prefix('/')?;
    let end = path.find('/').unwrap_or(path.len());
    (end > 0).then(|| path.split_at(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::Generation;

    fn mounts() -> Mounts {
        let exposed = |id: &str| Exposed {
            id: id.parse().unwrap(),
            card: AgentCard::default(),
        };
        let address = Address::new("http://127.0.0.1:1", crate::address::Grpc::Here).unwrap();
        Mounts::new(
            &[exposed("first"), exposed("other")],
            &address,
            SystemTime::UNIX_EPOCH,
        )
    }

    #[test]
    fn paths_name_agents_or_nobody() {
        let mounts = mounts();
        for (path, named, rest) in [
            ("/", "-", "/"),
            ("/a2a", "-", ""),
            ("/a2a/", "-", "/"),
            ("/tasks/t1", "-", "/tasks/t1"),
            ("/a2a/tasks/t1", "-", "/tasks/t1"),
            ("/message:send", "-", "/message:send"),
            ("/v1/message:send", "-", "/v1/message:send"),
            ("/nope", "-", "/nope"),
            ("/nope/", "-", "/nope/"),
            ("/a2ax", "-", "/a2ax"),
            ("/first", "first", ""),
            ("/other", "other", ""),
            ("/other/", "other", "/"),
            ("/%6Fther/tasks", "other", "/tasks"),
            ("/a2a/other/message:send", "other", "/message:send"),
            ("/agents/other", "other", ""),
            ("/agents/other/tasks/t1:cancel", "other", "/tasks/t1:cancel"),
            ("/a2a/agents/first/", "first", "/"),
            ("/nope/message:send", "?", "/message:send"),
            ("/a2a/nope/tasks/t1", "?", "/tasks/t1"),
        ] {
            let (found, left) = mounts.split(path, None).unwrap();
            let found = match found {
                Named::Nobody => "-",
                Named::Agent(mount) => mount.agent.as_str(),
                Named::Stranger => "?",
            };
            assert_eq!((found, left), (named, rest), "{path}");
        }
        for path in [
            "/agents",
            "/agents/",
            "/agents/nope",
            "/a2a/agents/nope/tasks",
            "/%zz/tasks",
        ] {
            assert!(mounts.split(path, None).is_none(), "{path}");
        }
    }

    /// TEN-02.
    #[test]
    fn names_must_agree() {
        let mounts = mounts();
        let other = Named::Agent(mounts.find("other").unwrap());
        let principal = &Principal::anonymous();
        let ask = |named, tenants| {
            mounts
                .resolve(Visit { principal, named }, tenants, None)
                .map(|mount| mount.agent.as_str())
                .map_err(|fault| fault.kind)
        };
        let invalid = Err(a2ad_proto::ErrorKind::InvalidParams);
        assert_eq!(ask(Named::Nobody, [None, None]), Ok("first"));
        assert_eq!(ask(Named::Nobody, [Some(""), None]), Ok("first"));
        assert_eq!(ask(Named::Nobody, [Some("other"), None]), Ok("other"));
        assert_eq!(
            ask(Named::Nobody, [Some("other"), Some("other")]),
            Ok("other")
        );
        assert_eq!(ask(other, [None, Some("other")]), Ok("other"));
        assert_eq!(ask(other, [None, Some("first")]), invalid);
        assert_eq!(ask(Named::Nobody, [Some("first"), Some("other")]), invalid);
        assert_eq!(ask(Named::Nobody, [Some("nope"), None]), invalid);
        assert_eq!(ask(Named::Stranger, [None, None]), invalid);
    }

    #[test]
    fn agents_out_of_reach_are_not_there() {
        let mounts = mounts();
        let principal = &Principal {
            scopes: vec!["agents:other".parse().unwrap()],
            ..Principal::anonymous()
        };
        for path in ["/agents/first", "/agents/nope", "/a2a/agents/first/tasks"] {
            assert!(mounts.split(path, Some(principal)).is_none(), "{path}");
        }
        for path in ["/first/tasks", "/nope/tasks"] {
            let (named, rest) = mounts.split(path, Some(principal)).unwrap();
            assert!(
                matches!(named, Named::Stranger) && rest == "/tasks",
                "{path}"
            );
        }
        let named = Named::Nobody;
        let ask = |tenant| {
            let visit = Visit { principal, named };
            mounts.resolve(visit, [tenant, None], None)
        };
        assert_eq!(ask(Some("other")).unwrap().agent.as_str(), "other");
        let hidden = ask(Some("first")).unwrap_err().http_json(Generation::V10);
        assert_eq!(
            hidden,
            ask(Some("nope")).unwrap_err().http_json(Generation::V10)
        );
        let first = ask(None).unwrap_err();
        assert_eq!(first.kind, a2ad_proto::ErrorKind::PermissionDenied);
    }

    #[test]
    fn reserved_words_are_sorted_and_known_in_any_case() {
        assert!(RESERVED.is_sorted());
        assert!(is_reserved("Tasks") && is_reserved("extendedagentcard"));
        assert!(!is_reserved("task"));
    }
}
