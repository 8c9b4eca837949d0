use std::time::Duration;

use super::address::Range;

/// Why a URL may not be dialled. Says the host and the reason, never the path, the query or a credential.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{reason}", HostPrefix(host))]
pub struct Refused {
    /// The host as the URL has it; empty where the URL has none or could not be read.
    pub host: String,
    /// What is wrong with it.
    pub reason: Reason,
}

struct HostPrefix<'a>(&'a str);

impl std::fmt::Display for HostPrefix<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() {
            Ok(())
        } else {
            write!(f, "{}: ", self.0)
        }
    }
}

/// What is wrong with a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// It cannot be read as an absolute URL.
    #[error("not an absolute URL")]
    Unreadable,
    /// It is longer than [`URL_BYTES_MAX`](super::URL_BYTES_MAX).
    #[error("the URL is too long")]
    TooLong,
    /// Only `http` and `https` are dialled.
    #[error("only http and https URLs are dialled")]
    Scheme,
    /// The rules ask for TLS.
    #[error("only https URLs are dialled")]
    PlainHttp,
    /// A user name or password before the host.
    #[error("a URL with a user name or password is not dialled")]
    UserInfo,
    /// No host.
    #[error("the URL has no host")]
    NoHost,
    /// Port 0.
    #[error("port 0 is not dialled")]
    Port,
    /// The rules have a list of hosts, and this is not on it.
    #[error("the host is not on the list of allowed hosts")]
    NotListed,
    /// A name that stands for this machine.
    #[error("the name stands for this machine")]
    LocalName,
    /// A name by which clouds hand out credentials.
    #[error("the name is that of a cloud's metadata service")]
    MetadataName,
    /// The host is an address of a range that is not dialled.
    #[error("the address is not public ({0})")]
    Address(Range),
    /// The host's name stands for an address, perhaps among others, of a range that is not dialled.
    #[error("the name leads to an address that is not public ({0})")]
    Resolved(Range),
}

/// Why no answer came, or not all of it. Says the host and the reason: nothing of the answer, no path, no query, no
/// header.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DialError {
    /// The rules forbid it. Nothing was sent, and trying again is of no use.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The caller's request cannot be sent as it is.
    #[error("the request cannot be sent: {0}")]
    Request(&'static str),
    /// The name could not be resolved.
    #[error("{host}: the name could not be resolved")]
    Unresolved {
        /// The host.
        host: String,
    },
    /// No connection. Nothing was sent.
    #[error("{host}: could not connect ({why})")]
    Connect {
        /// The host.
        host: String,
        /// What the system said.
        why: &'static str,
    },
    /// No TLS session. Nothing was sent.
    #[error("{host}: no TLS session ({why})")]
    Tls {
        /// The host.
        host: String,
        /// What is wrong with the other side, or what it said of ours.
        why: &'static str,
    },
    /// It took too long.
    #[error("{host}: {wait} took longer than {limit:?}")]
    TimedOut {
        /// The host.
        host: String,
        /// What took too long.
        wait: Wait,
        /// The limit.
        limit: Duration,
    },
    /// The answer is larger than the limit.
    #[error("{host}: the answer is larger than {bytes_max} bytes")]
    TooLarge {
        /// The host.
        host: String,
        /// The limit.
        bytes_max: u64,
    },
    /// The connection broke, or what came over it is not HTTP. The request may have been acted on.
    #[error("{host}: the answer broke off or is no valid HTTP")]
    Broken {
        /// The host.
        host: String,
    },
}

impl DialError {
    /// Whether it is certain that the other side has seen nothing of the request.
    pub fn is_unsent(&self) -> bool {
        match self {
            Self::Refused(_)
            | Self::Request(_)
            | Self::Unresolved { .. }
            | Self::Connect { .. }
            | Self::Tls { .. } => true,
            Self::TimedOut { wait, .. } => *wait == Wait::Connect,
            Self::TooLarge { .. } | Self::Broken { .. } => false,
        }
    }
}

/// What one can wait for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Resolving, connecting and the TLS handshake.
    Connect,
    /// Everything up to the answer's head.
    Head,
    /// The next piece of the body.
    Silence,
    /// The whole exchange.
    Total,
}

impl std::fmt::Display for Wait {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Connect => "connecting",
            Self::Head => "the head of the answer",
            Self::Silence => "the next piece of the answer",
            Self::Total => "the whole answer",
        })
    }
}

/// Why there is no dialer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// An entry of the list of hosts cannot be read.
    #[error("{0:?} is neither a host, nor host:port, nor *.domain")]
    HostRule(String),
    /// The PEM text of the additional roots cannot be read, or has no certificate.
    #[error("the additional roots are no PEM certificates")]
    Roots,
    /// The client certificate and its key cannot be read, or do not belong together.
    #[error("the client certificate and key cannot be used: {0}")]
    Identity(&'static str),
    /// The HTTP client could not be made.
    #[error("could not set up the HTTP client")]
    Client(#[source] reqwest::Error),
}
