//! The application: which path leads where.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use a2ad_core::engine::Engine;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{ALLOW, CONNECTION, HOST, TRANSFER_ENCODING};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode, Version};
use ipnet::IpNet;
use tokio_util::sync::CancellationToken;

use crate::address::Address;
use crate::auth::{Auth, Principal, Unknown};
use crate::card::Audience;
use crate::errors::{Fault, Refusal};
use crate::limits::Limits;
use crate::listen::Connection;
use crate::meters::Meters;
use crate::mounts::{Exposed, Mount, Mounts, Named, Visit};
use crate::operations::Operations;
use crate::reply::{self, Body};
use crate::tongue::FileBytes;
use crate::{card, grpc, http_json, jsonrpc, monitor, probes};

/// Writes the process's metrics in the Prometheus text format.
pub type RenderMetrics = Arc<dyn Fn() -> String + Send + Sync>;

/// What the edge is made of.
pub struct Edge {
    /// Does what is asked.
    pub engine: Engine,
    /// The agents that clients can find; the first answers where none is named.
    pub agents: Vec<Exposed>,
    /// Where clients reach us, for the cards.
    pub address: Address,
    /// Since when the cards are as they are.
    pub since: SystemTime,
    /// How callers prove who they are.
    pub auth: Arc<Auth>,
    /// Proxies whose `X-Forwarded-*` are believed.
    pub trusted_proxies: Vec<IpNet>,
    /// The daemon's version, for `/health`.
    pub version: String,
    /// The text of `/metrics`.
    pub metrics: RenderMetrics,
    /// How much callers may take.
    pub limits: Limits,
    /// Whether a method or path of 1.0 needs no header that says so (DUAL-02).
    pub lenient: bool,
    /// How callers of 0.3 have the bytes of files.
    pub file_bytes: FileBytes,
    /// Fires some seconds before the listener stops: readiness goes, HTTP/1 answers say `Connection: close` and
    /// HTTP/2 connections GOAWAY, so that balancers and clients look elsewhere while requests still succeed.
    pub draining: CancellationToken,
}

impl fmt::Debug for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Edge")
            .field("agents", &self.agents)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl Edge {
    /// Puts the parts together. Metrics go to the recorder that is installed by now.
    #[must_use]
    pub fn into_app(self) -> App {
        App::new(Inner {
            operations: Box::new(self.engine),
            mounts: Mounts::new(&self.agents, &self.address, self.since),
            address: self.address,
            auth: self.auth,
            trusted_proxies: self.trusted_proxies,
            version: self.version,
            metrics: self.metrics,
            limits: self.limits,
            lenient: self.lenient,
            file_bytes: self.file_bytes,
            draining: self.draining,
            meters: Meters::new(),
        })
    }
}

/// The edge, ready to be served by [`serve`](crate::serve). Cheap to clone.
#[derive(Clone)]
pub struct App {
    inner: Arc<Inner>,
    only_grpc: bool,
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").finish_non_exhaustive()
    }
}

/// What all requests share.
pub(crate) struct Inner {
    pub(crate) operations: Box<dyn Operations>,
    pub(crate) mounts: Mounts,
    pub(crate) address: Address,
    pub(crate) auth: Arc<Auth>,
    pub(crate) trusted_proxies: Vec<IpNet>,
    pub(crate) version: String,
    pub(crate) metrics: RenderMetrics,
    pub(crate) limits: Limits,
    pub(crate) lenient: bool,
    pub(crate) file_bytes: FileBytes,
    pub(crate) draining: CancellationToken,
    pub(crate) meters: Meters,
}

/// Where a path leads.
enum Route<'a> {
    JsonRpc(Named<'a>),
    /// JSON-RPC of the first agent, at a path where its card is as well.
    Gateway,
    HttpJson(Named<'a>, http_json::Target<'a>),
    Card(&'a Mount),
    Live,
    Ready,
    Health,
    Metrics,
    Monitor(monitor::Route<'a>),
}

/// A request to an agent that has been read.
enum Asked {
    JsonRpc(jsonrpc::Asked),
    HttpJson(http_json::Asked),
}

impl Route<'_> {
    const fn allow(&self) -> &'static str {
        match self {
            Self::JsonRpc(_) => "POST",
            Self::Gateway => "GET, HEAD, OPTIONS, POST",
            Self::HttpJson(_, target) => target.route.allow(),
            Self::Monitor(route) => route.allow(),
            Self::Card(_) => "GET, HEAD, OPTIONS",
            Self::Live | Self::Ready | Self::Health | Self::Metrics => "GET, HEAD",
        }
    }

    fn takes(&self, verb: &Method) -> bool {
        self.allow()
            .split(", ")
            .any(|allowed| allowed == verb.as_str())
    }
}

impl App {
    pub(crate) fn new(inner: Inner) -> Self {
        Self {
            inner: Arc::new(inner),
            only_grpc: false,
        }
    }

    /// The same for a listener of its own that answers gRPC alone: whoever opens that port to others opens nothing
    /// else.
    #[must_use]
    pub fn only_grpc(&self) -> Self {
        Self {
            only_grpc: true,
            ..self.clone()
        }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    /// Fires some seconds before the listener stops.
    pub(crate) fn draining(&self) -> &CancellationToken {
        &self.inner.draining
    }

    /// Answers one request.
    pub(crate) async fn answer<B>(
        &self,
        head: Parts,
        body: B,
        connection: &Arc<Connection>,
    ) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let wants_body = head.method != Method::HEAD;
        let fit = |response| match wants_body {
            true => response,
            false => reply::without_body(response),
        };
        if head.version > Version::HTTP_11 {
            let mut response = fit(self.route(head, body, connection).await);
            // HTTP/2 has no such header.
            response.headers_mut().remove(CONNECTION);
            return response;
        }
        // Where framing was not by length alone, nothing later on the connection is trusted to be a request: what
        // we took for the end of this one may not be what a proxy took for it.
        let by_length = !head.headers.contains_key(TRANSFER_ENCODING);
        let mut response = fit(match framing(&head, connection) {
            Ok(()) => self.route(head, body, connection).await,
            Err(refusal) => {
                let generation = http_json::generation_of(head.uri.path());
                http_json::refuse(
                    &refusal.into(),
                    generation,
                    &head.headers,
                    &self.inner.limits,
                )
            }
        });
        let leaving = self.inner.draining.is_cancelled() || connection.stop().is_cancelled();
        if !by_length || leaving {
            response
                .headers_mut()
                .insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    /// Boxed by where it leads, so that no future is larger than its own work needs.
    fn route<'a, B>(
        &'a self,
        head: Parts,
        body: B,
        connection: &'a Arc<Connection>,
    ) -> BoxFuture<'a, Response<Body>>
    where
        B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        if grpc::is_meant(&head.headers) {
            Box::pin(grpc::answer(&self.inner, head, body, connection))
        } else {
            Box::pin(self.visit(head, body, connection))
        }
    }

    async fn visit<B>(&self, head: Parts, body: B, connection: &Arc<Connection>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let inner = &*self.inner;
        let generation = http_json::generation_of(head.uri.path());
        let fail =
            |fault: &Fault| http_json::refuse(fault, generation, &head.headers, &inner.limits);
        let refuse = |refusal: Refusal| fail(&refusal.into());
        let forbidden = |scope: &'static str| {
            fail(&Fault::from(Refusal::Forbidden).with("requiredScope", scope))
        };
        let identified = inner.auth.identify(&head.headers);
        if self.only_grpc {
            return refuse(Refusal::OnlyGrpc);
        }
        let route = inner.find(&head, identified.as_deref().ok());
        let open = route.as_ref().is_some_and(|route| inner.is_open(route));
        let principal = match identified.as_deref() {
            Ok(principal) => principal,
            Err(_) if open => &Principal::nobody(),
            // Before it is said whether there is anything here.
            Err(why) => return unauthorized(inner, &head, connection, *why),
        };
        let Some(route) = route else {
            return refuse(Refusal::NoSuchPath);
        };
        let wrong_verb = || {
            let mut response = refuse(Refusal::WrongVerb);
            let allow = HeaderValue::from_static(route.allow());
            response.headers_mut().insert(ALLOW, allow);
            response
        };
        if !route.takes(&head.method) {
            return wrong_verb();
        }
        let asked = match route {
            Route::Gateway | Route::JsonRpc(_) => {
                let named = match route {
                    Route::JsonRpc(named) => named,
                    _ => Named::Nobody,
                };
                let visit = Visit { principal, named };
                Asked::JsonRpc(jsonrpc::read(inner, visit, &head, body, connection).await)
            }
            Route::HttpJson(named, target) => match target.route.method(&head.method) {
                Some(method) => {
                    let visit = Visit { principal, named };
                    let target = (target, method);
                    let read = http_json::read(inner, visit, target, &head, body, connection);
                    Asked::HttpJson(read.await)
                }
                None => return wrong_verb(),
            },
            Route::Card(_) if head.method == Method::OPTIONS => return card::preflight(),
            // By its own path it would not be there; that there is one at `/` is no secret.
            Route::Card(mount) if !inner.auth.public_cards && !principal.may_call(&mount.agent) => {
                return forbidden("agents");
            }
            Route::Card(mount) => {
                let trusted = &inner.trusted_proxies;
                let forwarded = inner.address.forwarded(&head, connection.peer(), trusted);
                let audience = Audience {
                    forwarded: forwarded.as_ref(),
                    by_proxy: !trusted.is_empty(),
                    public: inner.auth.public_cards,
                };
                return mount.card.answer(&head.headers, audience);
            }
            Route::Live => return probes::live(),
            Route::Ready => return probes::ready(inner).await,
            Route::Health => return probes::health(inner),
            Route::Metrics if principal.may_monitor() => return probes::metrics(inner),
            Route::Metrics => return forbidden("monitor"),
            Route::Monitor(route) => {
                return monitor::answer(inner, principal, route, &head, connection).await;
            }
        };
        // The answer may take a commit, or minutes. The head holds on to the buffer that the request was read into.
        drop(head);
        match asked {
            Asked::JsonRpc(asked) => asked.answer(inner, connection).await,
            Asked::HttpJson(asked) => asked.answer(inner, connection).await,
        }
    }
}

impl Inner {
    /// Where a path leads. The mounts come last: what the daemon itself has at a path is no agent's.
    /// Agents that the caller may not call are not there.
    fn find<'a>(&'a self, head: &'a Parts, caller: Option<&Principal>) -> Option<Route<'a>> {
        let path = head.uri.path();
        let is_card = card::PATHS.iter().any(|end| path.ends_with(end));
        Some(match path {
            "/livez" => Route::Live,
            "/readyz" | "/healthz" => Route::Ready,
            "/health" | "/a2a/health" => Route::Health,
            "/metrics" => Route::Metrics,
            "/a2a" if head.method != Method::POST && Route::Gateway.takes(&head.method) => {
                Route::Card(self.mounts.card_of(Named::Nobody)?)
            }
            "/a2a" => Route::Gateway,
            _ if path.starts_with("/monitor/") => Route::Monitor(monitor::Route::find(path)?),
            _ => {
                // Cards that are public are so for everybody, whomever they may call.
                let caller = caller.filter(|_| !(is_card && self.auth.public_cards));
                let (named, rest) = self.mounts.split(path, caller)?;
                match rest {
                    "" | "/" | "/jsonrpc" | "/a2a/jsonrpc" => Route::JsonRpc(named),
                    rest if card::PATHS.contains(&rest) => Route::Card(self.mounts.card_of(named)?),
                    rest => Route::HttpJson(named, http_json::Target::find(rest)?),
                }
            }
        })
    }
}

impl Inner {
    /// Whether a route is for everybody.
    fn is_open(&self, route: &Route<'_>) -> bool {
        match route {
            Route::Card(_) => self.auth.public_cards,
            Route::Live | Route::Ready | Route::Health => self.auth.public_health,
            Route::JsonRpc(_)
            | Route::Gateway
            | Route::HttpJson(..)
            | Route::Metrics
            | Route::Monitor(_) => false,
        }
    }
}

/// The answer to a caller who is nobody. It is the same wherever it asked, but for the form.
fn unauthorized(
    inner: &Inner,
    head: &Parts,
    connection: &Connection,
    why: Unknown,
) -> Response<Body> {
    tracing::info!(peer = %connection.peer(), reason = %why, "a caller was turned away");
    let path = head.uri.path();
    let mut starts = path.match_indices('/').map(|(at, _)| &path[at..]);
    let mut response = if starts.any(|rest| http_json::Target::find(rest).is_some()) {
        let fault = Refusal::Unauthorized.into();
        let generation = http_json::generation_of(path);
        http_json::refuse(&fault, generation, &head.headers, &inner.limits)
    } else {
        reply::whole(
            StatusCode::UNAUTHORIZED,
            reply::JSON,
            r#"{"error":"Unauthorized"}"#,
        )
    };
    inner.auth.tell(response.headers_mut());
    response
}

/// Refuses HTTP/1 requests that two readers could take differently.
fn framing(head: &Parts, connection: &Connection) -> Result<(), Refusal> {
    let headers = &head.headers;
    let length_seen = connection.take_length_seen();
    if head.version == Version::HTTP_11 && headers.get_all(HOST).iter().count() != 1 {
        return Err(Refusal::NoHost);
    }
    if headers.contains_key(TRANSFER_ENCODING) && length_seen {
        return Err(Refusal::AmbiguousLength);
    }
    Ok(())
}
