//! The HTTP+JSON binding: paths and verbs instead of methods.

mod query;
mod read;
mod route;

pub(crate) use route::{Target, generation_of};

use bytes::Bytes;
use http::header::CACHE_CONTROL;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use tokio::time::Instant;

use crate::call::{self, Call, Reply};
use crate::edge::Inner;
use crate::errors::{Fault, Refusal};
use crate::limits::Limits;
use crate::listen::Connection;
use crate::meters::Binding;
use crate::method::Method;
use crate::mounts::Visit;
use crate::reply::{self, Body};
use crate::sse::{self, Wrap};
use crate::tongue::Tongue;
use crate::version::{self, Generation};
use crate::{body, media};

/// A request that has been read.
pub(crate) struct Asked {
    asked: call::Asked,
    /// What a result and an error are written as.
    result_type: HeaderValue,
    error_type: HeaderValue,
}

/// Reads one request to an agent's HTTP+JSON interface. `target` is where its path leads, and `method` what its verb
/// means there.
pub(crate) async fn read<B>(
    inner: &Inner,
    visit: Visit<'_>,
    (target, method): (Target<'_>, Method),
    head: &Parts,
    body: B,
    connection: &Connection,
) -> Asked
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    let began = Instant::now();
    let tongue = Tongue::of_schema(target.generation, inner.file_bytes, &head.headers);
    let body = read_body(head, body, connection, &inner.limits).await;
    let span = tracing::debug_span!(
        "request",
        binding = Binding::HttpJson.name(),
        method = method.name(),
        task = tracing::field::Empty
    );
    let call = span.in_scope(|| {
        let generation = version::negotiate(head, target.spoken(), inner.lenient);
        let request = read::read(head, (target.route, method), tongue, &body?);
        Call::new(inner, visit, head, generation, request)
    });
    Asked {
        asked: call::Asked {
            began,
            method: Some(method),
            span,
            tongue,
            call,
        },
        result_type: media::of_result(target.generation, &head.headers),
        error_type: media::of_error(target.generation, &head.headers),
    }
}

impl Asked {
    /// Does what was asked, and says what came of it.
    pub(crate) async fn answer(self, inner: &Inner, connection: &Connection) -> Response<Body> {
        let Self {
            asked,
            result_type,
            error_type,
        } = self;
        let tongue = asked.tongue;
        let generation = tongue.generation();
        let (active, result) = asked.perform(inner, Binding::HttpJson).await;
        let mut response = match result {
            Ok(Reply::Result(json)) => {
                let mut response = reply::whole(StatusCode::OK, result_type, json);
                // The next look at a task may show another state, and it is nobody else's business.
                response
                    .headers_mut()
                    .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
                response
            }
            Ok(Reply::Stream(stream)) => {
                let wrap = Wrap::Bare(generation);
                sse::open(wrap, tongue, stream, connection, &inner.limits)
            }
            Err(fault) => refuse_as(&fault, generation, error_type, &inner.limits),
        };
        active.tell(generation, response.headers_mut());
        response
    }
}

/// An error in the form of this binding. `headers` are the request's.
pub(crate) fn refuse(
    fault: &Fault,
    generation: Generation,
    headers: &HeaderMap,
    limits: &Limits,
) -> Response<Body> {
    let content_type = media::of_error(generation, headers);
    refuse_as(fault, generation, content_type, limits)
}

fn refuse_as(
    fault: &Fault,
    generation: Generation,
    content_type: HeaderValue,
    limits: &Limits,
) -> Response<Body> {
    let status = fault.http_status();
    let body = fault.http_json(generation);
    reply::error(fault, status, content_type, body, limits)
}

/// The body of a POST. The other verbs have none to speak of.
async fn read_body<B>(
    head: &Parts,
    body: B,
    connection: &Connection,
    limits: &Limits,
) -> Result<Bytes, Refusal>
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    if head.method != http::Method::POST {
        return Ok(Bytes::new());
    }
    let types = [media::A2A_JSON_NAME, media::JSON_NAME];
    body::read(body, &head.headers, &types, connection, limits).await
}
