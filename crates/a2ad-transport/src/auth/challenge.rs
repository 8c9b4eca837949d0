//! What a caller without a credential is told.

use http::header::WWW_AUTHENTICATE;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::{Auth, Kind};

impl Auth {
    /// Tells how to authenticate (AUTH-03), unless that is switched off.
    pub(crate) fn tell(&self, headers: &mut HeaderMap) {
        if !self.challenge {
            return;
        }
        for line in self.challenges() {
            if let Ok(line) = HeaderValue::try_from(line) {
                headers.append(WWW_AUTHENTICATE, line);
            }
        }
    }

    /// The same for gRPC, with a hint to the header that a token may stand in. It is always told: a client of gRPC
    /// has no other way to learn.
    pub(crate) fn tell_grpc(&self, metadata: &mut HeaderMap) {
        for line in self.challenges() {
            if let Ok(line) = HeaderValue::try_from(line) {
                metadata.append(WWW_AUTHENTICATE, line);
            }
        }
        if let Some(name) = &self.token_header {
            metadata.insert(name.clone(), HeaderValue::from_static("required"));
        }
    }

    fn challenges(&self) -> Vec<String> {
        let realm = "realm=\"a2ad\"";
        let line = |kind: &Kind| match kind {
            Kind::Bearer => format!("Bearer {realm}"),
            Kind::Basic => format!("Basic {realm}, charset=\"UTF-8\""),
            Kind::ApiKey => format!("ApiKey {realm}, header=\"{}\"", shown(&self.api_key_header)),
        };
        self.kinds.iter().map(line).collect()
    }
}

/// A header's name as people write it.
fn shown(name: &HeaderName) -> String {
    let mut start = true;
    let upper = |c: char| {
        let shown = if start { c.to_ascii_uppercase() } else { c };
        start = c == '-';
        shown
    };
    name.as_str().chars().map(upper).collect()
}
