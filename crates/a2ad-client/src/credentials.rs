//! What we show an agent so that it knows us. It goes to the origins it is meant for and nowhere else.

use std::fmt;

use a2ad_proto::{AgentCard, SecurityScheme};
use base64::Engine as _;
use http::{HeaderMap, HeaderName, HeaderValue};
use url::form_urlencoded::byte_serialize;

use crate::error::Error;

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
struct Secret(String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The credentials of a client.
///
/// ```
/// use a2ad_client::Credentials;
/// let credentials = Credentials::default().bearer("t0ken").api_key("partner", "k3y");
/// assert!(!format!("{credentials:?}").contains("t0ken"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    authorization: Option<Secret>,
    /// What is shown in `authorization` in a form of its own.
    password: Option<Secret>,
    /// By the names of the card's schemes.
    api_keys: Vec<(String, Secret)>,
    headers: Vec<(HeaderName, Secret)>,
}

/// Where the key of a declared scheme goes.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) headers: HeaderMap,
    /// Name and key for the query of the URL.
    pub(crate) query: Vec<(String, String)>,
}

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shown(***)")
    }
}

impl Credentials {
    /// Shows a bearer token, in the header `Authorization`.
    #[must_use]
    pub fn bearer(mut self, token: impl AsRef<str>) -> Self {
        self.authorization = Some(Secret(format!("Bearer {}", token.as_ref())));
        self.password = None;
        self
    }

    /// Shows a name and password, in the header `Authorization`.
    #[must_use]
    pub fn basic(mut self, user: &str, password: &str) -> Self {
        let pair = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
        self.authorization = Some(Secret(format!("Basic {pair}")));
        self.password = Some(Secret(password.to_owned()));
        self
    }

    /// Shows an API key, where the card's security scheme of this name says. Without such a scheme in the card it
    /// goes nowhere.
    #[must_use]
    pub fn api_key(mut self, scheme: impl Into<String>, key: impl Into<String>) -> Self {
        self.api_keys.push((scheme.into(), Secret(key.into())));
        self
    }

    /// Shows a header of your own.
    ///
    /// # Errors
    /// When the name is none.
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Result<Self, Error> {
        let name = name.parse::<HeaderName>();
        let name = name.map_err(|_| Error::invalid("the name of a header"))?;
        self.headers.push((name, Secret(value.into())));
        Ok(self)
    }

    /// Whether there is anything to show.
    pub(crate) fn is_empty(&self) -> bool {
        self.authorization.is_none() && self.api_keys.is_empty() && self.headers.is_empty()
    }

    /// What to show an agent with this card.
    pub(crate) fn show(&self, card: &AgentCard) -> Result<Shown, Error> {
        let mut shown = self.show_unasked()?;
        for (name, key) in &self.api_keys {
            let Some(SecurityScheme::ApiKey(scheme)) = card.security_schemes.get(name) else {
                continue;
            };
            match &*scheme.location {
                "query" => shown.query.push((scheme.name.clone(), key.0.clone())),
                "cookie" => {
                    let pair = format!("{}={}", scheme.name, key.0);
                    shown.headers.append(http::header::COOKIE, secret(&pair)?);
                }
                _ => {
                    let name = scheme.name.parse::<HeaderName>().ok();
                    // A card says where its key goes; it does not get to write our requests.
                    let Some(name) = name.filter(|name| !is_ours(name)) else {
                        return Err(Error::not_a2a(
                            "the card wants an API key in a header that is not for keys",
                            &scheme.name,
                        ));
                    };
                    shown.headers.insert(name, secret(&key.0)?);
                }
            }
        }
        Ok(shown)
    }

    /// What can be shown before the card is known: to get at a card that is not public.
    pub(crate) fn show_unasked(&self) -> Result<Shown, Error> {
        let mut headers = HeaderMap::new();
        if let Some(authorization) = &self.authorization {
            headers.insert(http::header::AUTHORIZATION, secret(&authorization.0)?);
        }
        for (name, value) in &self.headers {
            headers.append(name.clone(), secret(&value.0)?);
        }
        Ok(Shown {
            headers,
            query: Vec::new(),
        })
    }

    /// The text without our secrets, should an agent send them back: as they are, as they stand in a URL, and what is
    /// left of one where the text was cut off.
    pub(crate) fn conceal(&self, text: &str) -> String {
        let words = self.authorization.iter().map(|it| {
            let word = it.0.split_once(' ').map(|(_, word)| word);
            word.unwrap_or(&it.0)
        });
        let passwords = self.password.iter().map(|password| &*password.0);
        let keys = self.api_keys.iter().map(|(_, key)| &*key.0);
        let headers = self.headers.iter().map(|(_, value)| &*value.0);
        let mut text = text.to_owned();
        let secrets = words.chain(passwords).chain(keys).chain(headers);
        for secret in secrets.filter(|it| it.len() >= SECRET_BYTES_MIN) {
            let in_url: String = byte_serialize(secret.as_bytes()).collect();
            for form in [secret, &in_url] {
                if text.contains(form) {
                    text = text.replace(form, "***");
                }
                let cut = text.trim_end_matches('…');
                let mut beginnings = form.char_indices().rev().map(|(at, _)| &form[..at]);
                let beginning = beginnings
                    .find(|begin| begin.len() < SECRET_BYTES_MIN || cut.ends_with(begin))
                    .filter(|begin| begin.len() >= SECRET_BYTES_MIN);
                if let Some(beginning) = beginning {
                    text.truncate(cut.len() - beginning.len());
                    text.push_str("***");
                }
            }
        }
        text
    }
}

/// One or two letters are no secret, and taking them out would leave nothing to read.
const SECRET_BYTES_MIN: usize = 4;

fn secret(text: &str) -> Result<HeaderValue, Error> {
    let mut value = HeaderValue::from_str(text)
        .map_err(|_| Error::invalid("a credential, which cannot stand in a header"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// Whether a header means something to the protocol or the connection.
fn is_ours(name: &HeaderName) -> bool {
    let name = name.as_str();
    let known = [
        "accept",
        "connection",
        "content-length",
        "content-type",
        "content-encoding",
        "cookie",
        "expect",
        "forwarded",
        "host",
        "idempotency-key",
        "keep-alive",
        "last-event-id",
        "origin",
        "range",
        "referer",
        "te",
        "traceparent",
        "tracestate",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "user-agent",
        "via",
    ];
    let begins = ["a2a-", "grpc-", "proxy-", "sec-", "x-forwarded-", ":"];
    known.contains(&name) || begins.iter().any(|begin| name.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use a2ad_proto::ApiKeySecurityScheme;

    use super::*;

    fn card(location: &str, name: &str) -> AgentCard {
        let scheme = SecurityScheme::ApiKey(ApiKeySecurityScheme {
            location: location.to_owned(),
            name: name.to_owned(),
            ..ApiKeySecurityScheme::default()
        });
        AgentCard {
            security_schemes: [("key".to_owned(), scheme)].into(),
            ..AgentCard::default()
        }
    }

    #[test]
    fn auth_04_a_key_goes_where_its_scheme_says() {
        let credentials = Credentials::default().api_key("key", "k-123");
        let shown = credentials.show(&card("header", "X-Key")).unwrap();
        assert_eq!(shown.headers["x-key"], "k-123");
        assert!(shown.headers["x-key"].is_sensitive());
        let shown = credentials.show(&card("query", "k")).unwrap();
        assert_eq!(shown.query, [("k".to_owned(), "k-123".to_owned())]);
        let shown = credentials.show(&card("cookie", "k")).unwrap();
        assert_eq!(shown.headers["cookie"], "k=k-123");
    }

    #[test]
    fn s13_a_key_without_its_scheme_stays_home() {
        let other = Credentials::default().api_key("another", "k-123");
        let shown = other.show(&card("header", "X-Key")).unwrap();
        assert!(shown.headers.is_empty() && shown.query.is_empty());
        let none = Credentials::default().bearer("t-123");
        let shown = none.show(&card("header", "X-Key")).unwrap();
        assert_eq!(shown.headers.len(), 1);
    }

    #[test]
    fn s13_a_card_does_not_write_our_requests() {
        let credentials = Credentials::default().api_key("key", "k-123");
        for name in [
            "Host",
            "Content-Length",
            "Transfer-Encoding",
            "A2A-Version",
            "Cookie",
            "a b",
            "",
            "x\r\ny",
        ] {
            let error = credentials.show(&card("header", name)).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("k-123"));
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        let credentials = Credentials::default()
            .bearer("t-12345")
            .api_key("key", "k-12345")
            .header("x-mine", "h-12345")
            .unwrap();
        let shown = credentials.show(&card("header", "X-Key")).unwrap();
        let all = format!("{credentials:?} {:?}", shown.headers);
        assert!(!all.contains("-12345"), "{all}");
        let echoed = "bad token t-12345, bad key k-12345, h-12345";
        assert_eq!(
            credentials.conceal(echoed),
            "bad token ***, bad key ***, ***"
        );
        let basic = Credentials::default().basic("user", "pass");
        let text = format!("{:?}", basic.show_unasked().unwrap().headers);
        assert!(!text.contains("dXNlcjpwYXNz"), "{text}");
    }

    #[test]
    fn a_secret_that_is_no_header_is_an_error_without_it() {
        let error = Credentials::default().bearer("a\nb-12345").show_unasked();
        assert!(!format!("{:?}", error.unwrap_err()).contains("12345"));
    }
}
