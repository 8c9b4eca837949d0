//! Everything that can come instead of an answer.

use std::time::Duration;

use a2ad_proto::{ErrorKind, Violations};

use crate::dial::{DialError, Refused};
pub use crate::refusal::Refusal;
use crate::refusal::clip;

/// How much of what is not A2A is shown.
const EXCERPT_CHARS_MAX: usize = 200;

/// Why a call failed. None of it holds a credential, nor the path or query of a URL.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The agent said no.
    #[error("the agent refused: {0}")]
    Refused(Box<Refusal>),
    /// The connection could not be made, or broke.
    #[error(transparent)]
    Network(DialError),
    /// It took too long.
    #[error("{what} took longer than {limit:?}")]
    Timeout {
        /// What did.
        what: &'static str,
        /// How long it was waited for.
        limit: Duration,
        /// Whether the agent may have got the request.
        sent: bool,
    },
    /// What came is not A2A.
    #[error("this is not A2A: {what}{}", Came(came))]
    NotA2a {
        /// What is wrong with it.
        what: String,
        /// How it begins.
        came: String,
    },
    /// What came is larger than we take.
    #[error("{what} is larger than {bytes_max} bytes")]
    TooLarge {
        /// What is.
        what: &'static str,
        /// The most that is taken.
        bytes_max: u64,
    },
    /// The rules of the dialer forbid the address. Nothing was sent.
    #[error("the address is not allowed: {0}")]
    Forbidden(Refused),
    /// None of the card's interfaces can be used.
    #[error("no interface of the agent can be used: {reasons}")]
    NoInterface {
        /// Why, for each.
        reasons: String,
    },
    /// A stream was cut, and all attempts to resume it failed.
    #[error("the stream was cut and could not be resumed in {attempts} attempts")]
    Cut {
        /// How many there were.
        attempts: u32,
        /// How the last one failed.
        #[source]
        last: Box<Error>,
    },
    /// The caller changed its mind.
    #[error("canceled")]
    Canceled,
    /// The caller asks for something impossible.
    #[error("{what} is not valid")]
    Invalid {
        /// What is not.
        what: &'static str,
    },
}

struct Came<'a>(&'a str);

impl std::fmt::Display for Came<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() {
            Ok(())
        } else {
            write!(f, ", it begins {:?}", self.0)
        }
    }
}

impl Error {
    pub(crate) fn not_a2a(what: impl Into<String>, came: &str) -> Self {
        let came: String = came.chars().take(EXCERPT_CHARS_MAX).collect();
        Self::NotA2a {
            what: what.into(),
            came: clip(&came),
        }
    }

    /// JSON that is not what it should be.
    pub(crate) fn unexpected(what: &str, why: &Violations, came: &[u8]) -> Self {
        let begin = &came[..came.len().min(4 * EXCERPT_CHARS_MAX)];
        let why = clip(&why.to_string());
        Self::not_a2a(format!("{what}: {why}"), &String::from_utf8_lossy(begin))
    }

    pub(crate) const fn invalid(what: &'static str) -> Self {
        Self::Invalid { what }
    }

    pub(crate) fn refused(refusal: Refusal) -> Self {
        Self::Refused(Box::new(refusal))
    }

    /// The error of the protocol that the agent named, if it refused.
    #[must_use]
    pub fn kind(&self) -> Option<ErrorKind> {
        match self {
            Self::Refused(refusal) => refusal.kind,
            _ => None,
        }
    }

    /// Whether it is certain that the agent has not seen the request: then it can be sent again, anywhere.
    #[must_use]
    pub fn is_unsent(&self) -> bool {
        match self {
            Self::Network(error) => error.is_unsent(),
            Self::Timeout { sent, .. } => !sent,
            Self::Forbidden(_) | Self::NoInterface { .. } | Self::Invalid { .. } => true,
            Self::Refused(_)
            | Self::NotA2a { .. }
            | Self::TooLarge { .. }
            | Self::Cut { .. }
            | Self::Canceled => false,
        }
    }

    /// Whether the agent has not acted on the request: it never left, or was turned away at the door. A gateway that
    /// has no answer may have passed it on.
    pub(crate) fn is_unheard(&self) -> bool {
        self.is_unsent() || self.kind() == Some(ErrorKind::ResourceExhausted)
    }

    /// Whether the same call may well succeed a little later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Network(_) | Self::Timeout { .. } => true,
            Self::Refused(refusal) => matches!(
                refusal.kind,
                Some(ErrorKind::Unavailable | ErrorKind::ResourceExhausted)
            ),
            Self::NotA2a { .. }
            | Self::TooLarge { .. }
            | Self::Forbidden(_)
            | Self::NoInterface { .. }
            | Self::Cut { .. }
            | Self::Canceled
            | Self::Invalid { .. } => false,
        }
    }

    /// The same without what `conceal` takes out of texts that came from outside.
    pub(crate) fn map_text(mut self, conceal: impl Fn(&str) -> String) -> Self {
        match &mut self {
            Self::Refused(refusal) => {
                refusal.message = conceal(&refusal.message);
                refusal.reason = conceal(&refusal.reason);
                for violation in &mut refusal.violations.0 {
                    violation.field = conceal(&violation.field);
                    violation.description = conceal(&violation.description);
                }
                for detail in &mut refusal.details {
                    let text = detail.to_string();
                    let shown = conceal(&text);
                    if shown != text {
                        *detail = serde_json::from_str(&shown).unwrap_or_default();
                    }
                }
            }
            Self::NoInterface { reasons } => *reasons = conceal(reasons),
            Self::NotA2a { what, came } => {
                *what = conceal(what);
                *came = conceal(came);
            }
            _ => {}
        }
        self
    }
}

impl From<DialError> for Error {
    fn from(error: DialError) -> Self {
        match error {
            DialError::Refused(refused) => Self::Forbidden(refused),
            DialError::Request(what) => Self::Invalid { what },
            DialError::TimedOut { wait, limit, .. } => Self::Timeout {
                what: match wait {
                    crate::dial::Wait::Connect => "connecting to the agent",
                    crate::dial::Wait::Head => "the agent's answer",
                    crate::dial::Wait::Silence => "the next piece of the answer",
                    crate::dial::Wait::Total => "the whole answer",
                },
                limit,
                sent: !DialError::TimedOut {
                    host: String::new(),
                    wait,
                    limit,
                }
                .is_unsent(),
            },
            DialError::TooLarge { bytes_max, .. } => Self::TooLarge {
                what: "the agent's answer",
                bytes_max,
            },
            other => Self::Network(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a2a_is_shown_in_part() {
        let error = Error::not_a2a(
            "the card is no JSON",
            &format!("<html>\u{1b}\n{}", "x".repeat(9_999)),
        );
        let text = error.to_string();
        assert!(
            text.starts_with("this is not A2A: the card is no JSON, it begins \"<html>  xx"),
            "{text}"
        );
        assert!(text.len() < 300);
    }

    #[test]
    fn what_was_sent_is_known() {
        let host = || "h".to_owned();
        let unsent = [
            DialError::Connect {
                host: host(),
                why: "refused",
            },
            DialError::Unresolved { host: host() },
        ];
        for error in unsent {
            assert!(Error::from(error).is_unsent());
        }
        assert!(!Error::from(DialError::Broken { host: host() }).is_unsent());
        let limit = Duration::from_secs(1);
        for (wait, unsent) in [
            (crate::dial::Wait::Connect, true),
            (crate::dial::Wait::Head, false),
        ] {
            let error = DialError::TimedOut {
                host: host(),
                wait,
                limit,
            };
            assert_eq!(Error::from(error).is_unsent(), unsent);
        }
    }

    #[test]
    fn an_agent_that_sends_our_secrets_back_is_not_quoted() {
        let conceal = |text: &str| text.replace("s3cret", "***");
        let body = br#"{"error":{"code":401,"message":"bad s3cret","details":[{"@type":"x","reason":"s3cret"}]}}"#;
        let error = Error::refused(Refusal::of_http(401, body)).map_text(conceal);
        assert!(
            !format!("{error:?} {error}").contains("s3cret"),
            "{error:?}"
        );
        let error = Error::not_a2a("s3cret", "s3cret").map_text(conceal);
        assert!(
            !format!("{error:?} {error}").contains("s3cret"),
            "{error:?}"
        );
    }
}
