//! From our request to the HTTP client's, and from its errors to ours.

use std::error::Error;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderValue, Method, Request};
use rustls::AlertDescription as Alert;
use url::Url;

use super::connect::ConnectTimedOut;
use super::error::{DialError, Refused, Wait};
use super::limits::Limits;
use super::resolve::Unresolved;

/// Fields that say how the message is framed or where it goes: the dialer's own, since whoever can set them can speak
/// to another host, or put one request into another.
const OWN_FIELDS: &[&str] = &[
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

pub(super) fn outgoing(request: Request<Bytes>, url: Url) -> Result<reqwest::Request, DialError> {
    let (head, body) = request.into_parts();
    if head.method == Method::CONNECT {
        return Err(DialError::Request("CONNECT is for proxies"));
    }
    check(&head.headers)?;
    let mut request = reqwest::Request::new(head.method, url);
    *request.headers_mut() = head.headers;
    if !body.is_empty() {
        *request.body_mut() = Some(body.into());
    } else if matches!(
        *request.method(),
        Method::POST | Method::PUT | Method::PATCH
    ) {
        // Otherwise it would say nothing, and some servers wait for what comes.
        let headers = request.headers_mut();
        headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
    Ok(request)
}

fn check(headers: &HeaderMap) -> Result<(), DialError> {
    if OWN_FIELDS.iter().any(|name| headers.contains_key(*name)) {
        return Err(DialError::Request("a header that the dialer sets itself"));
    }
    let splits = |value: &HeaderValue| value.as_bytes().iter().any(|b| b"\r\n\0".contains(b));
    if headers.values().any(splits) {
        return Err(DialError::Request("a line break in a header"));
    }
    Ok(())
}

/// Says what went wrong before the head of the answer. The texts are ours: those of the libraries may quote the other
/// side.
pub(super) fn failure(error: &reqwest::Error, host: String, connect: Duration) -> DialError {
    let connect_timed_out = |limit| DialError::TimedOut {
        host: host.clone(),
        wait: Wait::Connect,
        limit,
    };
    let mut system = None;
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(cause) = next {
        if let Some(refused) = cause.downcast_ref::<Refused>() {
            return refused.clone().into();
        }
        if cause.is::<Unresolved>() {
            return DialError::Unresolved { host };
        }
        if cause.is::<ConnectTimedOut>() {
            return connect_timed_out(connect);
        }
        if let Some(tls) = cause.downcast_ref::<rustls::Error>() {
            let why = tls_reason(tls);
            // What the other side says of our certificate may come once we have begun to send, and it reads nothing
            // before that. Anything else that comes so late may come after the request was acted on.
            return match error.is_connect() || why == NOT_OURS {
                true => DialError::Tls { host, why },
                false => DialError::Broken { host },
            };
        }
        // HTTP/2 keeps the text of an I/O error only.
        if let Some((_, alert)) = cause.to_string().rsplit_once("received fatal alert: ")
            && NOT_OURS_ALERTS
                .iter()
                .any(|known| format!("{known:?}") == alert)
        {
            let why = NOT_OURS;
            return DialError::Tls { host, why };
        }
        next = cause.source();
        if let Some(error) = cause.downcast_ref::<io::Error>() {
            system = Some(error.kind());
            // What an I/O error wraps is not its source.
            if let Some(inner) = error.get_ref() {
                next = Some(inner);
            }
        }
    }
    if !error.is_connect() {
        return DialError::Broken { host };
    }
    if error.is_timeout() {
        return connect_timed_out(Limits::CONNECT_MAX);
    }
    DialError::Connect {
        host,
        why: system.map_or("no connection", system_reason),
    }
}

fn system_reason(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::ConnectionRefused => "connection refused",
        io::ErrorKind::ConnectionReset => "connection reset",
        io::ErrorKind::HostUnreachable => "host unreachable",
        io::ErrorKind::NetworkUnreachable => "network unreachable",
        io::ErrorKind::TimedOut => "timed out",
        io::ErrorKind::UnexpectedEof => "connection closed",
        _ => "no connection",
    }
}

const NOT_OURS: &str = "it does not accept our certificate";

/// How the other side says so.
const NOT_OURS_ALERTS: &[Alert] = &[
    Alert::AccessDenied,
    Alert::BadCertificate,
    Alert::CertificateExpired,
    Alert::CertificateRequired,
    Alert::CertificateRevoked,
    Alert::CertificateUnknown,
    Alert::UnknownCA,
    Alert::UnsupportedCertificate,
];

fn tls_reason(error: &rustls::Error) -> &'static str {
    use rustls::{CertificateError as Bad, Error};
    match error {
        Error::InvalidCertificate(bad) => match bad {
            Bad::Expired | Bad::ExpiredContext { .. } => "its certificate has expired",
            Bad::NotValidYet | Bad::NotValidYetContext { .. } => "its certificate is not valid yet",
            Bad::Revoked => "its certificate was revoked",
            Bad::NotValidForName | Bad::NotValidForNameContext { .. } => {
                "its certificate is for another name"
            }
            Bad::UnknownIssuer => "its certificate is from an unknown issuer",
            _ => "its certificate is not valid",
        },
        Error::AlertReceived(alert) if NOT_OURS_ALERTS.contains(alert) => NOT_OURS,
        Error::AlertReceived(_) => "it ended the handshake",
        Error::NoApplicationProtocol => "no common application protocol",
        Error::PeerIncompatible(_) => "no common TLS version or cipher",
        _ => "not a valid handshake",
    }
}
