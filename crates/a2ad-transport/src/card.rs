//! Agent cards as documents.

use std::borrow::Cow;
use std::time::SystemTime;

use a2ad_proto::{AgentCard, AgentInterface, v03};
use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, CACHE_CONTROL, ETAG, IF_MODIFIED_SINCE,
    IF_NONE_MATCH, LAST_MODIFIED, VARY,
};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use httpdate::HttpDate;
use sha2::{Digest, Sha256};

use crate::address::Address;
use crate::reply::{self, Body};

/// Where the card is found (§8.2 of the specification), and where it was before.
pub(crate) const PATHS: [&str; 2] = ["/.well-known/agent-card.json", "/.well-known/agent.json"];

/// An agent's card, rendered for the usual address.
#[derive(Debug)]
pub(crate) struct Document {
    card: AgentCard,
    /// The agent's id, unless it answers at `/`.
    id: Option<String>,
    usual: Rendered,
    since: HttpDate,
}

/// Whom a card is shown to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Audience<'a> {
    /// The address that the caller used, if it is not the usual one.
    pub(crate) forwarded: Option<&'a Address>,
    /// Callers may use several addresses.
    pub(crate) by_proxy: bool,
    /// Everybody may see it.
    pub(crate) public: bool,
}

impl Audience<'_> {
    const fn caching(&self) -> &'static str {
        if self.public {
            "public, max-age=60"
        } else {
            "private, max-age=60"
        }
    }

    const fn varies(&self) -> Option<&'static str> {
        match (self.public, self.by_proxy) {
            (true, false) => None,
            (true, true) => {
                Some("X-Forwarded-Host, X-Forwarded-Proto, X-Forwarded-Port, X-Forwarded-Prefix")
            }
            (false, false) => Some("Authorization"),
            (false, true) => Some(
                "Authorization, X-Forwarded-Host, X-Forwarded-Proto, X-Forwarded-Port, X-Forwarded-Prefix",
            ),
        }
    }
}

#[derive(Clone, Debug)]
struct Rendered {
    json: Bytes,
    etag: String,
}

impl Document {
    /// The card of an agent, whose `id` is part of its address unless it is the first.
    pub(crate) fn new(
        card: AgentCard,
        id: Option<&str>,
        address: &Address,
        since: SystemTime,
    ) -> Self {
        Self {
            usual: render(&card, id, address),
            id: id.map(str::to_owned),
            card,
            since: HttpDate::from(since),
        }
    }

    /// What it says.
    pub(crate) const fn card(&self) -> &AgentCard {
        &self.card
    }

    /// The card as JSON of 1.0 alone, as it is seen at `address`.
    pub(crate) fn plain(&self, address: &Address) -> Bytes {
        let card = at(&self.card, self.id.as_deref(), address);
        a2ad_proto::to_json(&card).into()
    }

    /// The card, or 304 for a caller that has it.
    pub(crate) fn answer(&self, headers: &HeaderMap, audience: Audience<'_>) -> Response<Body> {
        let shown = match audience.forwarded {
            Some(address) => Cow::Owned(render(&self.card, self.id.as_deref(), address)),
            None => Cow::Borrowed(&self.usual),
        };
        let mut response = if self.is_known(&shown.etag, headers) {
            let mut response = Response::new(Body::Full(Bytes::new()));
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        } else {
            reply::whole(StatusCode::OK, reply::JSON, shown.json.clone())
        };
        let headers = response.headers_mut();
        let lines = [
            (ETAG, HeaderValue::try_from(&shown.etag).ok()),
            (
                LAST_MODIFIED,
                HeaderValue::try_from(self.since.to_string()).ok(),
            ),
            (
                CACHE_CONTROL,
                Some(HeaderValue::from_static(audience.caching())),
            ),
            // The card is public; browsers' clients need it before anything else.
            (
                ACCESS_CONTROL_ALLOW_ORIGIN,
                Some(HeaderValue::from_static("*")),
            ),
            (
                ACCESS_CONTROL_EXPOSE_HEADERS,
                Some(HeaderValue::from_static("ETag, Last-Modified")),
            ),
            (VARY, audience.varies().map(HeaderValue::from_static)),
        ];
        for (name, value) in lines {
            if let Some(value) = value {
                headers.insert(name, value);
            }
        }
        response
    }

    fn is_known(&self, etag: &str, headers: &HeaderMap) -> bool {
        if headers.contains_key(IF_NONE_MATCH) {
            return headers
                .get_all(IF_NONE_MATCH)
                .iter()
                .filter_map(|line| line.to_str().ok())
                .flat_map(|line| line.split(','))
                .map(str::trim)
                .any(|tag| tag == "*" || opaque(tag) == opaque(etag));
        }
        // Asked only by those who have no tag (RFC 9110, 13.1.3).
        let known = headers.get(IF_MODIFIED_SINCE);
        let known = known.and_then(|line| line.to_str().ok()?.parse::<HttpDate>().ok());
        known.is_some_and(|known| known >= self.since)
    }
}

/// The comparison for If-None-Match is weak: whether a tag is makes no difference.
fn opaque(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

/// What a browser asks before it asks for a card with headers of its own.
pub(crate) fn preflight() -> Response<Body> {
    let mut response = Response::new(Body::Full(Bytes::new()));
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(
        ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static("GET, HEAD"),
    );
    headers.insert(
        ACCESS_CONTROL_ALLOW_HEADERS,
        HeaderValue::from_static("*, Authorization"),
    );
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
    response
}

fn at(card: &AgentCard, id: Option<&str>, address: &Address) -> AgentCard {
    AgentCard {
        supported_interfaces: interfaces(id, address),
        ..card.clone()
    }
}

/// The card as it is seen at `address`.
fn render(card: &AgentCard, id: Option<&str>, address: &Address) -> Rendered {
    let card = at(card, id, address);
    let json = Bytes::from(v03::write_hybrid_card(&card));
    let digest = Sha256::digest(&json);
    let hex: String = digest
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Rendered {
        json,
        // Weak, since a proxy may compress the document and keep the tag.
        etag: format!("W/\"sha256-{hex}\""),
    }
}

/// Where the agent is served, preferred first: clients take the first they can (CARD-02, CARD-03). Both generations
/// are at the same addresses.
fn interfaces(id: Option<&str>, address: &Address) -> Vec<AgentInterface> {
    let newer = interfaces_of("1.0", id, address);
    let older = interfaces_of("0.3", id, address);
    // 0.3 knows no tenants, so what needs one is not for it.
    let older = older.into_iter().filter(|each| each.tenant.is_empty());
    newer.into_iter().chain(older).collect()
}

fn interfaces_of(version: &str, id: Option<&str>, address: &Address) -> Vec<AgentInterface> {
    let url = address.url();
    let interface = |url: String, binding: &str| AgentInterface {
        url,
        protocol_binding: binding.to_owned(),
        protocol_version: version.to_owned(),
        ..AgentInterface::default()
    };
    let mut all = match id {
        None => vec![
            interface(format!("{url}/"), "JSONRPC"),
            // Its paths are appended as they are.
            interface(url.to_owned(), "HTTP+JSON"),
        ],
        Some(id) => vec![
            interface(format!("{url}/agents/{id}"), "JSONRPC"),
            interface(format!("{url}/agents/{id}"), "HTTP+JSON"),
        ],
    };
    all.extend(address.grpc().map(|to| AgentInterface {
        // It knows no paths, so the tenant has to say whom a call is for.
        tenant: id.unwrap_or_default().to_owned(),
        ..interface(to.to_owned(), "GRPC")
    }));
    all
}
