//! The gRPC binding: `lf.a2a.v1.A2AService`, that of 0.3, health and reflection (GRPC-01, DUAL-04).
//!
//! Requests come here by their content type. A2A methods all have one message to read: it is read whole, under the
//! same limits as on the other bindings. tonic serves health and reflection, and knows how a status is written.

mod deadline;
mod health;
mod message;
mod messages;
mod read;
mod reflection;
mod write;

use std::sync::Arc;

use a2ad_proto::{REPLAY, pb, v03};
use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, Version};
use tokio::time::{Instant, timeout_at};
use tonic::{Code, Status};
use tracing::Instrument as _;

use crate::auth::Principal;
use crate::body;
use crate::call::{Call, Reply};
use crate::edge::Inner;
use crate::errors::{Fault, Refusal};
use crate::follow::Follow;
use crate::http_json;
use crate::limits::Limits;
use crate::listen::Connection;
use crate::media;
use crate::meters::{self, Binding};
use crate::method::Method;
use crate::mounts::{Named, Visit};
use crate::reply::Body;
use crate::tongue::Tongue;
use crate::version::{self, Generation, Spoken};
pub(crate) use messages::{Messages, trailers};

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
        return http_json::refuse(&fault, Generation::V10, &HeaderMap::new(), limits);
    }
    if head.method != http::Method::POST {
        let fault = Refusal::WrongVerb.into();
        let mut response = http_json::refuse(&fault, Generation::V10, &HeaderMap::new(), limits);
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
            let mut response = refuse(Refusal::Unauthorized, limits);
            inner.auth.tell_grpc(response.headers_mut());
            return response;
        }
    };
    match service.split_once('/') {
        Some((service @ (pb::SERVICE | v03::pb::SERVICE), name)) => {
            let (generation, method) = match service {
                pb::SERVICE => (Generation::V10, Method::named(name)),
                _ => (Generation::V03, Method::named_in_v03_service(name)),
            };
            let handler = Handler {
                inner,
                tongue: Tongue::of_schema(generation, inner.file_bytes, &head.headers),
                method,
                connection,
                began: Instant::now(),
            };
            handler.answer(&principal, head, body).await
        }
        Some((HEALTH, name)) if health::has(name) => {
            match health::answer(inner, head, body, connection).await {
                Ok(response) => response.map(Body::Tonic),
                Err(status) => only(&status),
            }
        }
        Some((service, _)) if reflection::is_served(service) => {
            let answer = reflection::answer(head, body, connection, limits).await;
            answer.map(Body::Tonic)
        }
        _ => refuse(Refusal::UnknownMethod, limits),
    }
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

fn refuse(refusal: Refusal, limits: &Limits) -> Response<Body> {
    only(&status(refusal, limits))
}

/// An answer that is nothing but a status.
fn only(status: &Status) -> Response<Body> {
    let mut response = with_type(Body::Grpc(Messages::Over));
    // Fails for a status that is no header, and then there is none to tell.
    drop(status.add_header(response.headers_mut()));
    response
}

fn with_type(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let content_type = HeaderValue::from_static(TYPES[0]);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
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
    tongue: Tongue,
    method: Option<Method>,
    connection: &'a Connection,
    began: Instant,
}

impl Handler<'_> {
    async fn answer<B>(self, principal: &Principal, head: Parts, body: B) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Unpin,
    {
        let limits = &self.inner.limits;
        let Some(method) = self.method else {
            return self.refuse(Refusal::UnknownMethod);
        };
        let deadline = match deadline::read(&head.headers, self.began) {
            Ok(deadline) => deadline,
            Err(fault) => return self.fail(&fault),
        };
        let read = read_body(body, &head.headers, self.connection, limits);
        let body = match within(deadline, read).await {
            Some(Ok(body)) => body,
            Some(Err(refusal)) => return self.refuse(refusal),
            None => return self.too_late(),
        };
        let span = tracing::debug_span!(
            "request",
            binding = Binding::Grpc.name(),
            method = meters::label(self.method),
            task = tracing::field::Empty
        );
        // There are no paths to name an agent by: its tenant does.
        let visit = Visit {
            principal,
            named: Named::Nobody,
        };
        let tongue = self.tongue;
        // The service says which generation it is of.
        let spoken = match tongue.generation() {
            Generation::V10 => Spoken::OnlyV10,
            Generation::V03 => Spoken::V03,
        };
        let generation = version::negotiate(&head, spoken, self.inner.lenient);
        let call = |request| Call::new(self.inner, visit, &head, generation.clone(), request);
        let call = match message::check(&head.headers, &body) {
            Ok(message) => span.in_scope(|| call(read::decode(method, tongue, message))),
            // Who asks in another version may well write in another form: that comes first (OPS-04).
            Err(refusal) => match call(Err(refusal.into())) {
                Err(fault) if fault.kind != Fault::from(refusal).kind => Err(fault),
                _ => return self.refuse(refusal),
            },
        };
        let call = match call {
            Ok(call) => call,
            Err(fault) => return self.fail(&fault),
        };
        // A blocking send may take minutes; what was read is not needed any more.
        drop((head, body));
        let active = call.active.clone();
        let replied = within(deadline, call.run(self.inner).instrument(span)).await;
        let messages = match replied {
            Some(Ok(Reply::Result(json))) => {
                write::result(method, tongue, &json).map(Messages::One)
            }
            Some(Ok(Reply::Stream(stream))) => {
                let stop = self.connection.stop();
                let writing = write::Writing {
                    follow: Follow::new(stream, stop.clone()),
                    leaving: [self.inner.draining.clone(), stop.clone()],
                    replay: active.has(REPLAY),
                    tongue,
                    deadline,
                    retry_after: limits.retry_after,
                    failed: None,
                };
                Ok(writing.into_messages())
            }
            Some(Err(fault)) => Err(fault),
            None => {
                let mut response = self.too_late();
                active.tell(tongue.generation(), response.headers_mut());
                return response;
            }
        };
        let mut response = match messages {
            Ok(messages) => {
                self.count(None);
                with_type(Body::Grpc(messages))
            }
            Err(fault) => self.fail(&fault),
        };
        // An error says it as well, once it is settled (EXT-05).
        active.tell(tongue.generation(), response.headers_mut());
        response
    }

    fn refuse(&self, refusal: Refusal) -> Response<Body> {
        let fault = Fault::from(refusal);
        self.count(Some(fault.kind.reason()));
        match refusal {
            // gRPC's own business, whatever is spoken over it.
            Refusal::CompressedMessage | Refusal::ContentEncoding | Refusal::UnknownMethod => {
                refuse(refusal, &self.inner.limits)
            }
            _ => only(&self.status(&fault)),
        }
    }

    fn fail(&self, fault: &Fault) -> Response<Body> {
        self.count(Some(fault.kind.reason()));
        only(&self.status(fault))
    }

    fn status(&self, fault: &Fault) -> Status {
        fault.status_in(self.tongue.generation(), self.inner.limits.retry_after)
    }

    fn too_late(&self) -> Response<Body> {
        self.count(Some(write::TOO_LATE));
        only(&write::too_late())
    }

    fn count(&self, refused: Option<&'static str>) {
        let took = self.began.elapsed();
        let meters = &self.inner.meters;
        meters.count(Binding::Grpc, self.method, refused, took);
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
