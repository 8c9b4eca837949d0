//! The agent card as a document.

use a2ad_proto::AgentCard;
use bytes::Bytes;
use http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use sha2::{Digest, Sha256};

use crate::reply::{self, Body};

/// Where the card is found (§8.2 of the specification).
pub(crate) const PATH: &str = "/.well-known/agent-card.json";

/// A card rendered once.
#[derive(Debug)]
pub(crate) struct Document {
    json: Bytes,
    etag: String,
}

impl Document {
    pub(crate) fn new(card: &AgentCard) -> Self {
        let json = Bytes::from(a2ad_proto::to_json(card));
        let digest = Sha256::digest(&json);
        let hex: String = digest
            .iter()
            .take(16)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Self {
            json,
            etag: format!("\"{hex}\""),
        }
    }

    /// The card, or 304 for a caller that has it.
    pub(crate) fn answer(&self, headers: &HeaderMap) -> Response<Body> {
        let mut response = if self.is_known_to(headers) {
            let mut response = Response::new(Body::Full(Bytes::new()));
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        } else {
            reply::whole(StatusCode::OK, reply::JSON, self.json.clone())
        };
        let headers = response.headers_mut();
        if let Ok(etag) = HeaderValue::from_str(&self.etag) {
            headers.insert(ETAG, etag);
        }
        headers.insert(
            CACHE_CONTROL,
            HeaderValue::from_static("public, max-age=60"),
        );
        // The card is public; browsers' clients need it before anything else.
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        response
    }

    fn is_known_to(&self, headers: &HeaderMap) -> bool {
        headers
            .get_all(IF_NONE_MATCH)
            .iter()
            .filter_map(|line| line.to_str().ok())
            .flat_map(|line| line.split(','))
            .map(str::trim)
            // A weak tag matches too: for If-None-Match the comparison is weak.
            .any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == self.etag)
    }
}
