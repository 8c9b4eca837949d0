//! The one way out to the network.
//!
//! Every request goes these steps:
//!
//! 1. The URL is read once and judged: scheme, user name, port, the list of hosts, and a host that is an address in
//!    whatever spelling. The parsed form that was judged is the one that is dialled.
//! 2. A name is resolved once. Every address that it stands for is judged, and one bad address refuses them all. The
//!    connection is made to those addresses; nobody resolves again. `Host` and SNI keep the name.
//! 3. The answer comes as it is: a redirect is an answer, nothing is unpacked, no cookie is kept, and no proxy variable
//!    is heard. Its head and body are bounded by [`Limits`].
//!
//! A connection that is kept was judged when it was made, and lives in the dialer that judged it: other rules are
//! another dialer, with connections of its own.

mod address;
mod body;
mod connect;
mod error;
mod limits;
mod request;
mod resolve;
mod rules;
#[cfg(test)]
mod tests;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use reqwest::redirect::Policy;
use rustls::ClientConfig;
use tokio::time::Instant;

pub use self::address::Range;
pub use self::body::Body;
pub use self::error::{BuildError, DialError, Reason, Refused, Wait};
pub use self::limits::Limits;
pub use self::resolve::{Addresses, Resolver, SystemResolver};
pub use self::rules::{Rules, URL_BYTES_MAX};
pub use self::tls::Tls;
pub use url::Url;

use self::connect::{CONNECT_LIMIT, LimitConnect};
use self::resolve::{Gate, NOWHERE};
use self::rules::{Judge, Pass};

/// How long a connection is kept without a request.
const IDLE: Duration = Duration::from_secs(30);
/// Connections without a request that are kept for one host.
const IDLE_PER_HOST_MAX: usize = 8;
/// Fields in the head of an answer over HTTP/1.1; hyper bounds their bytes.
const FIELDS_MAX: usize = 128;
/// Bytes in the head of an answer over HTTP/2.
const HEAD_BYTES_MAX: u32 = 64 * 1024;

/// One way out. Cheap to clone; clones share their connections.
#[derive(Clone, Debug)]
pub struct Dialer {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    judge: Arc<Judge>,
    /// For what everyone may dial: every address is judged.
    judged: Clients,
    /// For endpoints that are allowed as such.
    any: Clients,
}

#[derive(Clone, Debug)]
struct Clients {
    /// HTTP/1.1, or HTTP/2 where TLS finds that both sides can.
    http: reqwest::Client,
    /// HTTP/2 only.
    h2: reqwest::Client,
}

/// Makes a [`Dialer`].
#[derive(Clone, Debug)]
pub struct Builder {
    /// None: unguarded.
    rules: Option<Rules>,
    resolver: Arc<dyn Resolver>,
    tls: Tls,
    #[cfg(test)]
    seam: Option<Arc<dyn tests::Seam>>,
}

impl Dialer {
    /// For URLs that come from others (clients, cards, messages, models): every address is judged.
    pub fn guarded(rules: Rules) -> Result<Self, BuildError> {
        Builder::guarded(rules).build()
    }

    /// For the user's own commands: may reach private hosts. Redirects, proxies and so on are off all the same.
    pub fn unguarded() -> Result<Self, BuildError> {
        Builder::unguarded().build()
    }

    /// Judges a URL without dialling: when it is stored. What a name leads to is judged whenever it is dialled.
    pub fn judge(&self, url: &Url) -> Result<(), Refused> {
        self.inner.judge.url(url).map(drop)
    }

    /// Reads and judges a URL that comes as text. Stricter than [`Url::parse`], which repairs what it can: backslashes,
    /// white space and control characters are refused, since others read them otherwise.
    pub fn admit(&self, text: &str) -> Result<Url, Refused> {
        let url = read(text)?;
        self.judge(&url)?;
        Ok(url)
    }

    /// Sends a request and gives the answer's head and its bounded body: over HTTP/1.1, or HTTP/2 where TLS finds that
    /// both sides can. An answer of any status is an answer.
    ///
    /// Cancel safe in the sense of HTTP: dropping the future gives up the exchange, and the other side may have seen
    /// the request.
    pub async fn send(
        &self,
        request: Request<Bytes>,
        limits: &Limits,
    ) -> Result<Response<Body>, DialError> {
        self.exchange(request, limits, |clients| &clients.http)
            .await
    }

    /// The same over HTTP/2 only, by prior knowledge where there is no TLS, as gRPC asks for. [`Body::trailers`] has
    /// the trailers.
    pub async fn send_h2(
        &self,
        request: Request<Bytes>,
        limits: &Limits,
    ) -> Result<Response<Body>, DialError> {
        self.exchange(request, limits, |clients| &clients.h2).await
    }

    /// A guarded HTTP client for libraries that bring their own requests, to be used for `url` and what is under it.
    ///
    /// It obeys the same rules, also for other URLs, but not the bounds of [`Limits`] on heads and bodies: these are
    /// left to the library.
    pub fn client_for(&self, url: &Url) -> Result<reqwest::Client, Refused> {
        Ok(self.clients(self.inner.judge.url(url)?).http.clone())
    }

    fn clients(&self, pass: Pass) -> &Clients {
        match pass {
            Pass::Judged => &self.inner.judged,
            Pass::Any => &self.inner.any,
        }
    }

    async fn exchange(
        &self,
        request: Request<Bytes>,
        limits: &Limits,
        which: impl Fn(&Clients) -> &reqwest::Client,
    ) -> Result<Response<Body>, DialError> {
        let url = read(&request.uri().to_string())?;
        let pass = self.inner.judge.url(&url)?;
        let host = url.host_str().unwrap_or_default().to_owned();
        let request = request::outgoing(request, url)?;

        let start = Instant::now();
        // What no clock can show never comes.
        let deadline = limits.total.and_then(|total| start.checked_add(total));
        let (wait, patience) = match limits.total {
            Some(total) if total < limits.head => (Wait::Total, total),
            _ => (Wait::Head, limits.head),
        };
        let connect = limits.connect.min(Limits::CONNECT_MAX);
        let exchange = CONNECT_LIMIT.scope(connect, which(self.clients(pass)).execute(request));
        let answer = match tokio::time::timeout(patience, exchange).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => return Err(request::failure(&error, host, connect)),
            Err(_) => {
                return Err(DialError::TimedOut {
                    host,
                    wait,
                    limit: patience,
                });
            }
        };
        let (mut head, body) = Response::from(answer).into_parts();
        // What the HTTP client left there is its own.
        head.extensions.clear();
        let body = Body::new(body, host, limits, deadline)?;
        Ok(Response::from_parts(head, body))
    }
}

/// Reads a URL, or says why not. It is not judged yet.
fn read(text: &str) -> Result<Url, Refused> {
    let refuse = |reason| {
        Err(Refused {
            host: String::new(),
            reason,
        })
    };
    if text.len() > URL_BYTES_MAX {
        return refuse(Reason::TooLong);
    }
    if text.contains(|c: char| c == '\\' || c.is_control() || c.is_whitespace()) {
        return refuse(Reason::Unreadable);
    }
    Url::parse(text).or_else(|_| refuse(Reason::Unreadable))
}

impl Builder {
    /// See [`Dialer::guarded`].
    pub fn guarded(rules: Rules) -> Self {
        Self {
            rules: Some(rules),
            resolver: Arc::new(SystemResolver::default()),
            tls: Tls::default(),
            #[cfg(test)]
            seam: None,
        }
    }

    /// See [`Dialer::unguarded`].
    pub fn unguarded() -> Self {
        Self {
            rules: None,
            ..Self::guarded(Rules::default())
        }
    }

    /// Resolves names with this. Otherwise with a [`SystemResolver`].
    pub fn resolver(mut self, resolver: Arc<dyn Resolver>) -> Self {
        self.resolver = resolver;
        self
    }

    /// Roots and a client certificate.
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = tls;
        self
    }

    /// Makes it.
    pub fn build(self) -> Result<Dialer, BuildError> {
        let judge = Arc::new(match &self.rules {
            Some(rules) => Judge::new(rules)?,
            None => Judge::of_form_only(),
        });
        let tls = self.tls.config()?;
        let clients = |pass| self.clients(pass, &judge, &tls);
        Ok(Dialer {
            inner: Arc::new(Inner {
                judged: clients(Pass::Judged)?,
                any: clients(Pass::Any)?,
                judge: Arc::clone(&judge),
            }),
        })
    }

    fn clients(
        &self,
        pass: Pass,
        judge: &Arc<Judge>,
        tls: &ClientConfig,
    ) -> Result<Clients, BuildError> {
        let gate = Gate {
            resolver: Arc::clone(&self.resolver),
            judge: (pass == Pass::Judged).then(|| Arc::clone(judge)),
            #[cfg(test)]
            seam: self.seam.clone(),
        };
        let limit_connect = LimitConnect {
            #[cfg(test)]
            seam: self.seam.clone(),
        };
        let client = |alpn: &[&[u8]]| {
            let mut tls = tls.clone();
            tls.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
            client(tls, gate.clone(), own_judge(pass, judge)).connector_layer(limit_connect.clone())
        };
        Ok(Clients {
            http: client(&[b"h2", b"http/1.1"])
                .build()
                .map_err(BuildError::Client)?,
            h2: client(&[b"h2"])
                .http2_prior_knowledge()
                .build()
                .map_err(BuildError::Client)?,
        })
    }
}

/// Judges once more where the HTTP client makes a connection. It asks there which proxy to use; a URL that is not for
/// this client is sent to a proxy that does not exist. This is what guards a client that was given away, since the
/// resolver is not asked about addresses and does not see ports.
fn own_judge(pass: Pass, judge: &Arc<Judge>) -> reqwest::Proxy {
    let judge = Arc::clone(judge);
    reqwest::Proxy::custom(move |url| match judge.url(url) {
        Ok(found) if found == pass => None,
        _ => Some(format!("http://{NOWHERE}")),
    })
}

/// Says everything that matters, also what is off by default: another crate may switch on a feature for all.
fn client(tls: ClientConfig, gate: Gate, own_judge: reqwest::Proxy) -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .dns_resolver(gate)
        .no_proxy()
        .proxy(own_judge)
        // Also shares the time out among a name's addresses.
        .connect_timeout(Limits::CONNECT_MAX)
        .redirect(Policy::none())
        .referer(false)
        // What the other side says it has not begun (GOAWAY, REFUSED_STREAM) is asked again by itself, twice at most:
        // servers that restart say so to whoever comes too late.
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
        .http1_max_headers(FIELDS_MAX)
        .http2_max_header_list_size(HEAD_BYTES_MAX)
        .http2_keep_alive_interval(IDLE)
        .http2_keep_alive_timeout(Limits::CONNECT_MAX)
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(IDLE_PER_HOST_MAX)
}
