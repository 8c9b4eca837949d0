//! The HTTP+JSON binding: paths and verbs instead of methods.

mod percent;
mod query;
mod read;
mod route;

pub(crate) use route::Route;

use std::sync::Arc;

use bytes::Bytes;
use http::header::CACHE_CONTROL;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::call::Reply;
use crate::edge::{Inner, Mount};
use crate::errors::{Fault, Refusal};
use crate::limits::Limits;
use crate::listen::Connection;
use crate::meters::Binding;
use crate::method::Method;
use crate::reply::{self, Body};
use crate::sse::{self, Wrap};
use crate::{body, media};

/// Answers one request to an agent's HTTP+JSON interface. `route` is where its path leads, and `method` what its verb
/// means there.
pub(crate) async fn answer<B>(
    inner: &Inner,
    mount: &Mount,
    (route, method): (Route<'_>, Method),
    head: &Parts,
    body: B,
    connection: &Arc<Connection>,
) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    let began = Instant::now();
    let result = match read_body(head, body, &inner.limits).await {
        Ok(body) => perform(inner, mount, (route, method), head, body).await,
        Err(refusal) => Err(refusal.into()),
    };
    let refused = result.as_ref().err().map(|fault| fault.kind.reason());
    inner
        .meters
        .count(Binding::HttpJson, Some(method), refused, began.elapsed());
    match result {
        Ok(Reply::Result(json)) => {
            let mut response = reply::whole(StatusCode::OK, media::of_result(&head.headers), json);
            // The next look at a task may show another state, and it is nobody else's business.
            response
                .headers_mut()
                .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
            response
        }
        Ok(Reply::Stream(stream)) => sse::open(Wrap::Bare, stream, connection, &inner.limits),
        Err(fault) => refuse(&fault, &head.headers, &inner.limits),
    }
}

/// An error in the form of this binding. `headers` are the request's.
pub(crate) fn refuse(fault: &Fault, headers: &HeaderMap, limits: &Limits) -> Response<Body> {
    let content_type = media::of_error(headers);
    let status = fault.http_status();
    reply::error(fault, status, content_type, fault.http_json(), limits)
}

/// The body of a POST. The other verbs have none to speak of.
async fn read_body<B>(head: &Parts, body: B, limits: &Limits) -> Result<Bytes, Refusal>
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    if head.method != http::Method::POST {
        return Ok(Bytes::new());
    }
    let types = [media::A2A_JSON_NAME, media::JSON_NAME];
    body::read(body, &head.headers, &types, limits).await
}

async fn perform(
    inner: &Inner,
    mount: &Mount,
    (route, method): (Route<'_>, Method),
    head: &Parts,
    body: Bytes,
) -> Result<Reply, Fault> {
    let span = tracing::debug_span!(
        "request",
        binding = Binding::HttpJson.name(),
        method = method.name(),
        task = tracing::field::Empty
    );
    let call = span.in_scope(|| read::read(mount, head, route, &body, &inner.limits));
    // A blocking send may take minutes; what was read is not needed any more.
    drop(body);
    call?.run(inner).instrument(span).await
}
