//! The gRPC binding: `lf.a2a.v1.A2AService`, health and reflection (GRPC-01).
//!
//! Requests come here by their content type. A2A methods all have one message to read: it is read whole, under the
//! same limits as on the other bindings, before tonic sees it. Streams are written as they come.

mod codec;
mod deadline;
mod health;
mod message;
mod read;
mod reflection;
mod write;

use std::sync::Arc;

use a2ad_proto::{REPLAY, pb};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use http::header::{ALLOW, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, Version};
use http_body_util::Full;
use tokio::time::{Instant, timeout_at};
use tonic::metadata::MetadataMap;
use tonic::server::{Grpc, ServerStreamingService};
use tonic::{Code, Status};
use tracing::Instrument as _;

use crate::auth::Principal;
use crate::body;
use crate::call::{Call, Reply, Request};
use crate::edge::Inner;
use crate::errors::{Fault, Refusal};
use crate::extensions::Active;
use crate::follow::Follow;
use crate::http_json;
use crate::limits::Limits;
use crate::listen::Connection;
use crate::media;
use crate::meters::{self, Binding};
use crate::method::Method;
use crate::mounts::{Named, Visit};
use crate::reply::Body;
use crate::version::Absent;
use codec::Raw;

const TYPES: [&str; 2] = ["application/grpc", "application/grpc+proto"];
const HEALTH: &str = "grpc.health.v1.Health";

/// Whether a request is meant for this binding.
pub(crate) fn is_meant(headers: &HeaderMap) -> bool {
    let Some(Ok(text)) = headers.get(CONTENT_TYPE).map(HeaderValue::to_str) else {
        return false;
    };
    let essence = media::essence(text).to_ascii_lowercase();
    // Not `application/grpc-web`, which is another protocol.
    essence
        .strip_prefix(TYPES[0])
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('+'))
}

/// Answers one request.
pub(crate) async fn answer<B>(
    inner: &Arc<Inner>,
    head: Parts,
    body: B,
    connection: &Arc<Connection>,
) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let limits = &inner.limits;
    if head.version < Version::HTTP_2 {
        let fault = Refusal::GrpcNeedsHttp2.into();
        return http_json::refuse(&fault, &HeaderMap::new(), limits);
    }
    if head.method != http::Method::POST {
        let fault = Refusal::WrongVerb.into();
        let mut response = http_json::refuse(&fault, &HeaderMap::new(), limits);
        response
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("POST"));
        return response;
    }
    let service = head.uri.path().strip_prefix('/').unwrap_or_default();
    let is_health = service
        .split_once('/')
        .is_some_and(|(service, _)| service == HEALTH);
    let open = inner.auth.public_health && is_health;
    let principal = match inner.auth.identify(&head.headers) {
        Ok(principal) => principal,
        Err(_) if open => Arc::new(Principal::nobody()),
        Err(why) => {
            tracing::info!(peer = %connection.peer(), reason = %why, "a caller was turned away");
            let mut response = refuse(Refusal::Unauthorized, limits).map(Body::Grpc);
            inner.auth.tell_grpc(response.headers_mut());
            return response;
        }
    };
    let response = match service.split_once('/') {
        Some((pb::SERVICE, name)) => {
            let handler = Handler {
                inner,
                principal: &principal,
                method: Method::named(name),
                head: &head,
                connection,
                began: Instant::now(),
            };
            handler.answer(body).await
        }
        Some((HEALTH, name)) if health::has(name) => {
            match health::answer(inner, head, body, connection).await {
                Ok(response) => response,
                Err(status) => status.into_http(),
            }
        }
        Some((service, _)) if reflection::is_served(service) => {
            reflection::answer(head, body, connection, limits).await
        }
        _ => refuse(Refusal::UnknownMethod, limits),
    };
    response.map(Body::Grpc)
}

async fn read_body<B>(
    body: B,
    headers: &HeaderMap,
    connection: &Connection,
    limits: &Limits,
) -> Result<Bytes, Refusal>
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    let read = body::read(body, headers, &TYPES, connection, limits).await;
    read.map_err(|refusal| match refusal {
        Refusal::MediaType => Refusal::GrpcMediaType,
        other => other,
    })
}

/// An answer that is nothing but a status.
fn refuse(refusal: Refusal, limits: &Limits) -> Response<tonic::body::Body> {
    status(refusal, limits).into_http()
}

/// How a refusal looks on this binding.
fn status(refusal: Refusal, limits: &Limits) -> Status {
    let fault = Fault::from(refusal);
    if let Refusal::CompressedMessage | Refusal::ContentEncoding = refusal {
        let mut status = fault.status_as(Code::Unimplemented, limits.retry_after);
        let identity = tonic::metadata::MetadataValue::from_static("identity");
        status
            .metadata_mut()
            .insert("grpc-accept-encoding", identity);
        return status;
    }
    fault.status(limits.retry_after)
}

/// One call of an A2A method, or of one that there is not.
struct Handler<'a> {
    inner: &'a Inner,
    principal: &'a Principal,
    method: Option<Method>,
    head: &'a Parts,
    connection: &'a Connection,
    began: Instant,
}

impl<'a> Handler<'a> {
    async fn answer<B>(self, body: B) -> Response<tonic::body::Body>
    where
        B: http_body::Body<Data = Bytes> + Unpin,
    {
        let limits = &self.inner.limits;
        let Some(method) = self.method else {
            return self.refuse(Refusal::UnknownMethod);
        };
        let deadline = match deadline::read(&self.head.headers, self.began) {
            Ok(deadline) => deadline,
            Err(fault) => {
                self.count(Some(fault.kind.reason()));
                return fault.status(limits.retry_after).into_http();
            }
        };
        let read = read_body(body, &self.head.headers, self.connection, limits);
        let read = within(deadline, read);
        let body = match read.await {
            Some(Ok(body)) => body,
            Some(Err(refusal)) => return self.refuse(refusal),
            None => {
                self.count(Some(write::TOO_LATE));
                return write::too_late().into_http();
            }
        };
        if let Err(refusal) = message::check(&self.head.headers, &body) {
            // Who asks in another version may well write in another form: that comes first (OPS-04).
            return match self.call(Err(refusal.into())) {
                Err(fault) if fault.kind != Fault::from(refusal).kind => {
                    self.count(Some(fault.kind.reason()));
                    fault.status(limits.retry_after).into_http()
                }
                _ => self.refuse(refusal),
            };
        }
        let mut request = http::Request::new(Full::new(body));
        request.headers_mut().clone_from(&self.head.headers);
        let serve = Serve {
            handler: self,
            method,
            deadline,
        };
        // What came in is bounded already, and what goes out is as large as it is (GRPC-05).
        Grpc::new(Raw)
            .max_decoding_message_size(usize::MAX)
            .server_streaming(serve, request)
            .await
    }

    fn refuse(&self, refusal: Refusal) -> Response<tonic::body::Body> {
        self.count(Some(Fault::from(refusal).kind.reason()));
        refuse(refusal, &self.inner.limits)
    }

    fn count(&self, refused: Option<&'static str>) {
        let took = self.began.elapsed();
        let meters = &self.inner.meters;
        meters.count(Binding::Grpc, self.method, refused, took);
    }

    async fn perform(
        &self,
        method: Method,
        message: Bytes,
        deadline: Option<Instant>,
        active: &mut Active,
    ) -> Result<Messages, Fault> {
        let inner = self.inner;
        let span = tracing::debug_span!(
            "request",
            binding = Binding::Grpc.name(),
            method = meters::label(self.method),
            task = tracing::field::Empty
        );
        let request = read::decode(method, &message);
        // A blocking send may take minutes; what was read is not needed any more.
        drop(message);
        let call = span.in_scope(|| self.call(request))?;
        active.clone_from(&call.active);
        Ok(match call.run(inner).instrument(span).await? {
            Reply::Result(json) => stream::iter([Ok(write::result(method, &json)?)]).boxed(),
            Reply::Stream(stream) => {
                let stop = self.connection.stop();
                let writing = write::Writing {
                    follow: Follow::new(stream, stop.clone()),
                    leaving: [inner.draining.clone(), stop.clone()],
                    replay: active.has(REPLAY),
                    deadline,
                    retry_after: inner.limits.retry_after,
                };
                writing.into_messages()
            }
        })
    }

    /// The call that a request makes. There are no paths to name an agent by: its tenant does.
    fn call(&self, request: Result<Request, Fault>) -> Result<Call, Fault> {
        let visit = Visit {
            principal: self.principal,
            named: Named::Nobody,
        };
        Call::new(self.inner, visit, self.head, request, Absent::Means10)
    }
}

/// The messages of an answer, encoded.
type Messages = BoxStream<'static, Result<Vec<u8>, Status>>;

/// The method as tonic calls it. One message or many is all the same on the wire.
struct Serve<'a> {
    handler: Handler<'a>,
    method: Method,
    deadline: Option<Instant>,
}

impl<'a> ServerStreamingService<Bytes> for Serve<'a> {
    type Response = Vec<u8>;
    type ResponseStream = Messages;
    type Future = BoxFuture<'a, Result<tonic::Response<Messages>, Status>>;

    fn call(&mut self, request: tonic::Request<Bytes>) -> Self::Future {
        let Self {
            ref handler,
            method,
            deadline,
        } = *self;
        let handler = Handler { ..*handler };
        Box::pin(async move {
            let message = request.into_inner();
            let mut active = Active::default();
            let performing = handler.perform(method, message, deadline, &mut active);
            let performed = within(deadline, performing).await;
            let refused = match &performed {
                Some(Ok(_)) => None,
                Some(Err(fault)) => Some(fault.kind.reason()),
                None => Some(write::TOO_LATE),
            };
            handler.count(refused);
            let mut answer = match performed {
                Some(Ok(messages)) => Ok(tonic::Response::new(messages)),
                Some(Err(fault)) => Err(fault.status(handler.inner.limits.retry_after)),
                None => Err(write::too_late()),
            };
            // An error says it as well, once it is settled (EXT-05).
            let metadata = match &mut answer {
                Ok(response) => response.metadata_mut(),
                Err(status) => status.metadata_mut(),
            };
            let mut headers = std::mem::take(metadata).into_headers();
            active.tell(&mut headers);
            *metadata = MetadataMap::from_headers(headers);
            answer
        })
    }
}

/// What comes of `future`, or nothing once the deadline has passed.
async fn within<F: Future>(deadline: Option<Instant>, future: F) -> Option<F::Output> {
    match deadline {
        // What is always ready would else never be asked for the time.
        Some(deadline) if deadline <= Instant::now() => None,
        Some(deadline) => timeout_at(deadline, future).await.ok(),
        None => Some(future.await),
    }
}
