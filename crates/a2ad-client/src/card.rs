//! Finding an agent's card, reading it with good will, and keeping it as long as it is fresh.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use a2ad_proto::{AgentCard, Violations, from_json, v03};
use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Request, StatusCode};
use serde_json::{Value, json};
use tokio::time::Instant;
use url::Url;

use crate::credentials::{Credentials, Shown};
use crate::dial::{Dialer, Limits};
use crate::error::{Error, Refusal};

/// Where cards are, newest name first.
const WELL_KNOWN: [&str; 2] = [".well-known/agent-card.json", ".well-known/agent.json"];
/// The largest card that is read.
const CARD_BYTES_MAX: u64 = 1024 * 1024;
/// How long a card is fresh that says nothing about it.
const LIFETIME_DEFAULT: Duration = Duration::from_secs(60);
/// How long one is fresh at most, whatever it says.
const LIFETIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// How many cards are kept.
const CARDS_MAX: usize = 256;
/// How many members of a card may be unreadable.
const DROPPED_MAX: usize = 16;

/// A card and where it was found.
#[derive(Clone, Debug)]
pub struct FoundCard {
    /// The card.
    pub card: Arc<AgentCard>,
    /// Its own URL.
    pub url: Url,
}

/// Cards that were found, kept as long as HTTP allows (CARD-06). Clients may share one.
///
/// Cards that were shown to us alone, for our credentials, are not kept.
#[derive(Default)]
pub struct Cards {
    kept: Mutex<HashMap<Url, Kept>>,
}

impl fmt::Debug for Cards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cards")
    }
}

#[derive(Clone)]
struct Kept {
    card: Arc<AgentCard>,
    fresh_until: Instant,
    etag: Option<HeaderValue>,
    last_modified: Option<HeaderValue>,
    stored: Instant,
}

impl Cards {
    /// The card of the agent at `base`: at the well-known path below it, or at `base` itself if that is a JSON file.
    pub(crate) async fn find(
        &self,
        dialer: &Dialer,
        base: &Url,
        credentials: &Credentials,
        limits: &Limits,
    ) -> Result<FoundCard, Error> {
        let mut missing = None;
        for url in addresses(base) {
            match self.at(dialer, &url, credentials, limits).await {
                Ok(card) => return Ok(FoundCard { card, url }),
                Err(Error::Refused(refusal)) if is_missing(&refusal) => {
                    missing.get_or_insert(Error::Refused(refusal));
                }
                Err(error) => return Err(error),
            }
        }
        Err(missing.unwrap_or(Error::invalid("the agent's URL")))
    }

    async fn at(
        &self,
        dialer: &Dialer,
        url: &Url,
        credentials: &Credentials,
        limits: &Limits,
    ) -> Result<Arc<AgentCard>, Error> {
        let kept = self.kept(url);
        if let Some(kept) = &kept
            && Instant::now() < kept.fresh_until
        {
            return Ok(Arc::clone(&kept.card));
        }
        let mut known = HeaderMap::new();
        if let Some(kept) = &kept {
            known.extend(kept.etag.clone().map(|etag| (header::IF_NONE_MATCH, etag)));
            let modified = kept.last_modified.clone();
            known.extend(modified.map(|time| (header::IF_MODIFIED_SINCE, time)));
        }
        let public = get(dialer, url, known, None, limits).await;
        let answer = match public {
            // A card need not be public. It is the one place that our credentials are for, whatever it says.
            Err(Error::Refused(refusal))
                if matches!(refusal.code, 401 | 403) && !credentials.is_empty() =>
            {
                let shown = credentials.show_unasked()?;
                let answer = get(dialer, url, HeaderMap::new(), Some(shown), limits).await?;
                return read_card(&answer.body).map(Arc::new);
            }
            answer => answer?,
        };
        let card = match kept {
            Some(kept) if answer.not_modified => kept.card,
            _ if answer.not_modified => {
                return Err(Error::not_a2a("a card that we never had is unchanged", ""));
            }
            _ => Arc::new(read_card(&answer.body)?),
        };
        self.keep(url, &card, &answer.headers);
        Ok(card)
    }

    fn kept(&self, url: &Url) -> Option<Kept> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(url).cloned()
    }

    fn keep(&self, url: &Url, card: &Arc<AgentCard>, headers: &HeaderMap) {
        let now = Instant::now();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(lifetime) = lifetime(headers) else {
            kept.remove(url);
            return;
        };
        if kept.len() >= CARDS_MAX && !kept.contains_key(url) {
            let oldest = kept.iter().min_by_key(|(_, kept)| kept.stored);
            let oldest = oldest.map(|(url, _)| url.clone());
            if let Some(oldest) = oldest {
                kept.remove(&oldest);
            }
        }
        kept.insert(
            url.clone(),
            Kept {
                card: Arc::clone(card),
                fresh_until: now + lifetime,
                etag: headers.get(header::ETAG).cloned(),
                last_modified: headers.get(header::LAST_MODIFIED).cloned(),
                stored: now,
            },
        );
    }
}

/// Where the card of the agent at `base` may be.
fn addresses(base: &Url) -> Vec<Url> {
    let mut base = base.clone();
    base.set_fragment(None);
    if base.path().ends_with(".json") {
        return vec![base];
    }
    base.set_query(None);
    let folder = base.path().trim_end_matches('/').to_owned();
    let at = |name: &&str| {
        let mut url = base.clone();
        url.set_path(&format!("{folder}/{name}"));
        url
    };
    WELL_KNOWN.iter().map(at).collect()
}

fn is_missing(refusal: &Refusal) -> bool {
    matches!(refusal.code, 404 | 405 | 410)
}

struct Answer {
    not_modified: bool,
    headers: HeaderMap,
    body: Bytes,
}

async fn get(
    dialer: &Dialer,
    url: &Url,
    known: HeaderMap,
    shown: Option<Shown>,
    limits: &Limits,
) -> Result<Answer, Error> {
    let mut request = Request::get(url.as_str())
        .body(Bytes::new())
        .map_err(|_| Error::invalid("the agent's URL"))?;
    let headers = request.headers_mut();
    headers.extend(known);
    headers.extend(shown.into_iter().flat_map(|shown| shown.headers));
    let accept = HeaderValue::from_static("application/json, application/a2a+json;q=0.9");
    headers.insert(header::ACCEPT, accept);
    headers.insert(
        HeaderName::from_static("a2a-version"),
        HeaderValue::from_static(crate::VERSION),
    );
    let limits = Limits {
        answer_bytes_max: CARD_BYTES_MAX,
        ..limits.clone()
    };
    let too_large = |error: Error| match error {
        Error::TooLarge { bytes_max, .. } => Error::TooLarge {
            what: "the card",
            bytes_max,
        },
        other => other,
    };
    let response = dialer.send(request, &limits).await;
    let response = response.map_err(|error| too_large(error.into()))?;
    let (head, body) = response.into_parts();
    if head.status.is_redirection() && head.status != StatusCode::NOT_MODIFIED {
        return Err(crate::transport::redirect(&head.headers));
    }
    let body = body.bytes().await;
    let body = body.map_err(|error| too_large(error.into()))?;
    if !head.status.is_success() && head.status != StatusCode::NOT_MODIFIED {
        let mut refusal = Refusal::of_http(head.status.as_u16(), &body);
        refusal.code = head.status.as_u16().into();
        return Err(Error::refused(refusal));
    }
    Ok(Answer {
        not_modified: head.status == StatusCode::NOT_MODIFIED,
        headers: head.headers,
        body,
    })
}

/// How long an answer with these headers is fresh; `None` if it must not be kept.
fn lifetime(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let mut max_age = None;
    for directive in text(header::CACHE_CONTROL).unwrap_or_default().split(',') {
        let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
        match &*name.trim().to_ascii_lowercase() {
            "no-store" => return None,
            "no-cache" => return Some(Duration::ZERO),
            "max-age" => {
                let seconds = value.trim().trim_matches('"').parse().unwrap_or(0);
                max_age = Some(Duration::from_secs(seconds));
            }
            _ => {}
        }
    }
    let expires = || {
        let at = httpdate::parse_http_date(text(header::EXPIRES)?).ok();
        let from = httpdate::parse_http_date(text(header::DATE)?).ok();
        // A time that cannot be read has passed.
        Some(at.zip(from).map_or(Duration::ZERO, |(at, from)| {
            at.duration_since(from).unwrap_or_default()
        }))
    };
    let age = text(header::AGE).and_then(|age| age.trim().parse().ok());
    let age = Duration::from_secs(age.unwrap_or(0));
    let lifetime = max_age.or_else(expires).unwrap_or(LIFETIME_DEFAULT);
    Some(lifetime.saturating_sub(age).min(LIFETIME_MAX))
}

/// Reads a card with good will (CARD-09): what is unknown is ignored, what has another form is left out, and what
/// older versions said elsewhere is found there.
pub(crate) fn read_card(bytes: &[u8]) -> Result<AgentCard, Error> {
    let came = || String::from_utf8_lossy(&bytes[..bytes.len().min(400)]).into_owned();
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    let mut value: Value = serde_json::from_slice(bytes)
        .map_err(|_| Error::not_a2a("the card is no JSON", &came()))?;
    if !value.is_object() {
        return Err(Error::not_a2a("the card is no JSON object", &came()));
    }
    // Of a card that lists interfaces as 1.0 does, what 0.3 says of them does not count (DUAL-07).
    let listed = ["supportedInterfaces", "supported_interfaces"];
    let listed = listed.iter().find_map(|name| value.get(name));
    let read: fn(&[u8]) -> Result<AgentCard, Violations> = match listed {
        Some(listed) if !listed.is_null() => from_json,
        _ => v03::read_card,
    };
    modernise(&mut value);
    for _ in 0..DROPPED_MAX {
        let violations: Violations = match read(value.to_string().as_bytes()) {
            Ok(card) if card == AgentCard::default() => {
                return Err(Error::not_a2a("this is no card", &came()));
            }
            Ok(card) => return Ok(card),
            Err(violations) => violations,
        };
        let field = violations.0.first().map(|first| first.field.clone());
        let member = field.as_deref().unwrap_or_default();
        let member = member.split(['.', '[']).next().unwrap_or_default();
        let essential = matches!(
            member,
            "supportedInterfaces" | "url" | "additionalInterfaces" | ""
        );
        let dropped = value.as_object_mut().and_then(|card| card.remove(member));
        if essential || dropped.is_none() {
            return Err(Error::unexpected("the card", &violations, bytes));
        }
        tracing::debug!(member, "a member of a card cannot be read and is left out");
    }
    Err(Error::not_a2a("the card cannot be read", &came()))
}

/// Gives schemes in the form of 0.3 that of 1.0, in a card that is of 1.0 otherwise.
fn modernise(card: &mut Value) {
    let schemes = card
        .get_mut("securitySchemes")
        .and_then(Value::as_object_mut);
    for scheme in schemes.into_iter().flat_map(|schemes| schemes.values_mut()) {
        let modern = match scheme.get("type").and_then(Value::as_str) {
            Some("apiKey") if scheme.get("apiKeySecurityScheme").is_none() => {
                json!({"apiKeySecurityScheme": {"location": scheme["in"], "name": scheme["name"]}})
            }
            Some("http") if scheme.get("httpAuthSecurityScheme").is_none() => {
                json!({"httpAuthSecurityScheme": {"scheme": scheme["scheme"]}})
            }
            _ => continue,
        };
        *scheme = modern;
    }
}

#[cfg(test)]
mod tests {
    use a2ad_proto::SecurityScheme;

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), value.parse().unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    fn seconds(pairs: &[(&'static str, &str)]) -> Option<u64> {
        lifetime(&headers(pairs)).map(|lifetime| lifetime.as_secs())
    }

    #[test]
    fn card_06_http_says_how_long_a_card_is_fresh() {
        assert_eq!(seconds(&[]), Some(60));
        assert_eq!(
            seconds(&[("cache-control", "public, max-age=300")]),
            Some(300)
        );
        assert_eq!(
            seconds(&[("cache-control", "Max-Age=\"300\""), ("age", "100")]),
            Some(200)
        );
        assert_eq!(
            seconds(&[("cache-control", "max-age=5"), ("age", "100")]),
            Some(0)
        );
        assert_eq!(
            seconds(&[("cache-control", "max-age=99999999999")]),
            Some(86_400)
        );
        assert_eq!(seconds(&[("cache-control", "max-age=nonsense")]), Some(0));
        assert_eq!(seconds(&[("cache-control", "no-store, max-age=300")]), None);
        assert_eq!(
            seconds(&[("cache-control", "no-cache, max-age=300")]),
            Some(0)
        );
        let date = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(
            seconds(&[date, ("expires", "Sun, 06 Nov 1994 08:50:37 GMT")]),
            Some(60)
        );
        assert_eq!(seconds(&[date, ("expires", "0")]), Some(0));
    }

    #[test]
    fn card_01_a_card_is_below_the_base() {
        let at = |base: &str| -> Vec<String> {
            let urls = addresses(&Url::parse(base).unwrap());
            urls.into_iter().map(String::from).collect()
        };
        let both = |folder: &str| {
            let path = |name: &str| format!("https://a.example{folder}/.well-known/{name}.json");
            vec![path("agent-card"), path("agent")]
        };
        assert_eq!(at("https://a.example"), both(""));
        assert_eq!(
            at("https://a.example/agents/one/?x=1#y"),
            both("/agents/one")
        );
        assert_eq!(
            at("https://a.example/my/card.json"),
            ["https://a.example/my/card.json"]
        );
    }

    #[test]
    fn card_09_a_card_is_read_with_good_will() {
        let card = read_card(
            br#"{"name":"n","capabilities":{"streaming":true},"skills":"none","provider":7,"colour":"red",
                "defaultInputModes":null,"supportedInterfaces":[{"url":"https://a.example","protocolBinding":"JSONRPC",
                "protocolVersion":"1.0","mood":"good"}],
                "securitySchemes":{"old":{"type":"apiKey","in":"header","name":"X-Key"},"odd":{"type":"magic"}}}"#,
        );
        let card = card.unwrap();
        assert_eq!(card.name, "n");
        assert_eq!(card.supported_interfaces.len(), 1);
        assert_eq!(card.capabilities.streaming, Some(true));
        let SecurityScheme::ApiKey(scheme) = &card.security_schemes["old"] else {
            panic!("{card:?}");
        };
        assert_eq!((&*scheme.location, &*scheme.name), ("header", "X-Key"));
    }

    #[test]
    fn dual_07_interfaces_of_an_older_card_are_found() {
        let card = read_card(
            br#"{"name":"n","protocolVersion":"0.3.0","url":"https://a.example/","preferredTransport":"GRPC",
                "additionalInterfaces":[{"url":"https://a.example/","transport":"GRPC"},
                {"url":"https://a.example/rest","transport":"HTTP+JSON"}]}"#,
        );
        let listed: Vec<_> = card
            .unwrap()
            .supported_interfaces
            .into_iter()
            .map(|it| (it.protocol_binding, it.protocol_version))
            .collect();
        let one = |binding: &str| (binding.to_owned(), "0.3".to_owned());
        assert_eq!(listed, [one("GRPC"), one("HTTP+JSON")]);
    }

    #[test]
    fn what_is_no_card_is_said_to_be_none() {
        for bytes in [
            "",
            "<html>",
            "[]",
            "null",
            "{}",
            r#"{"supportedInterfaces":7}"#,
            "{\"a\":",
        ] {
            let error = read_card(bytes.as_bytes()).unwrap_err();
            assert!(matches!(error, Error::NotA2a { .. }), "{bytes}: {error}");
        }
        let deep = "[".repeat(100_000);
        assert!(read_card(deep.as_bytes()).is_err());
    }
}
