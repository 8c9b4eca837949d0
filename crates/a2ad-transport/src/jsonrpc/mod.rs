//! The JSON-RPC binding: one POST, one call.

mod call;
mod envelope;
mod method;

pub(crate) use method::Method;

use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use serde_json::value::RawValue;
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::edge::{Inner, Mount};
use crate::errors::{self, Fault, Refusal};
use crate::limits::Limits;
use crate::listen::Connection;
use crate::reply::{self, Body};
use crate::sse::{self, Events};
use crate::{body, meters};

/// What came of a request.
struct Done {
    method: Option<Method>,
    id: Box<RawValue>,
    result: Result<Reply, Fault>,
}

enum Reply {
    /// The result's JSON.
    Result(Bytes),
    Stream(Events),
}

/// Answers one POST to an agent's JSON-RPC endpoint.
pub(crate) async fn answer<B>(
    inner: &Inner,
    mount: &Mount,
    request: Request<B>,
    connection: &Arc<Connection>,
) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    let began = Instant::now();
    let (head, body) = request.into_parts();
    let done = match admit(&head.headers, body, &inner.limits).await {
        Ok(body) => perform(inner, mount, &head, body, connection).await,
        Err(refusal) => Done {
            method: None,
            id: RawValue::NULL.to_owned(),
            result: Err(refusal.into()),
        },
    };
    let refused = done.result.as_ref().err().map(|fault| fault.kind.reason());
    inner
        .meters
        .count(done.method, refused, began.elapsed().as_secs_f64());
    let Done { method, id, result } = done;
    match result {
        Ok(Reply::Result(json)) => reply::whole(StatusCode::OK, reply::JSON, success(&id, &json)),
        Ok(Reply::Stream(events)) => sse::open(events),
        Err(fault) => {
            let events = method.is_some_and(Method::streams) && accepts_events(&head.headers);
            refuse(&id, &fault, events, &inner.limits)
        }
    }
}

/// Reads the body of a request that is JSON as far as its headers say.
async fn admit<B>(headers: &HeaderMap, body: B, limits: &Limits) -> Result<Bytes, Refusal>
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    if !is_json(headers) {
        return Err(Refusal::MediaType);
    }
    if !is_plain(headers) {
        return Err(Refusal::ContentEncoding);
    }
    body::read(body, headers, limits).await
}

async fn perform(
    inner: &Inner,
    mount: &Mount,
    head: &Parts,
    body: Bytes,
    connection: &Arc<Connection>,
) -> Done {
    let envelope = match envelope::read(&body) {
        Ok(envelope) => envelope,
        Err((id, refusal)) => {
            return Done {
                method: None,
                id: id.to_owned(),
                result: Err(refusal.into()),
            };
        }
    };
    let method = Method::named(&envelope.method);
    let id = envelope.id.to_owned();
    let span = tracing::debug_span!(
        "request",
        binding = "jsonrpc",
        method = meters::label(method),
        task = tracing::field::Empty
    );
    let call = span.in_scope(|| call::read(mount, head, method, &envelope, &inner.limits));
    // A blocking send may take minutes; what was read is not needed any more.
    drop(body);
    let result = match call {
        Ok(call) => {
            call.run(inner, &id, connection.stop())
                .instrument(span)
                .await
        }
        Err(fault) => Err(fault),
    };
    Done { method, id, result }
}

/// `{"jsonrpc":"2.0","id":…,"result":…}`
fn success(id: &RawValue, json: &[u8]) -> Vec<u8> {
    let id = id.get().as_bytes();
    [
        &b"{\"jsonrpc\":\"2.0\",\"id\":"[..],
        id,
        b",\"result\":",
        json,
        b"}",
    ]
    .concat()
}

/// An error response; `as_event` if the caller asked for a stream and reads events (RPC-08).
fn refuse(id: &RawValue, fault: &Fault, as_event: bool, limits: &Limits) -> Response<Body> {
    let status = fault.json_rpc_status();
    // What has a status of its own is for HTTP clients and proxies, which do not read events.
    if as_event && status == StatusCode::OK {
        return sse::refuse(id, fault);
    }
    let mut response = reply::whole(status, reply::JSON, fault.json_rpc(id));
    let headers = response.headers_mut();
    if errors::is_transient(fault.kind) {
        headers.insert(RETRY_AFTER, limits.retry_after.as_secs().max(1).into());
    }
    if fault.close {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// `application/json`, whatever its parameters, or nothing said (AMB-29).
fn is_json(headers: &HeaderMap) -> bool {
    let mut lines = headers.get_all(CONTENT_TYPE).iter();
    match (lines.next(), lines.next()) {
        (None, _) => true,
        (Some(line), None) => line
            .to_str()
            .is_ok_and(|text| essence(text).eq_ignore_ascii_case("application/json")),
        (Some(_), Some(_)) => false,
    }
}

/// Whether the body is not compressed. Inflating is refused altogether rather than bounded.
fn is_plain(headers: &HeaderMap) -> bool {
    headers.get_all(CONTENT_ENCODING).iter().all(|line| {
        line.to_str().is_ok_and(|text| {
            text.split(',')
                .map(str::trim)
                .all(|coding| coding.is_empty() || coding.eq_ignore_ascii_case("identity"))
        })
    })
}

fn accepts_events(headers: &HeaderMap) -> bool {
    headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','))
        .any(|range| essence(range).eq_ignore_ascii_case("text/event-stream"))
}

/// A media type without its parameters.
fn essence(media_type: &str) -> &str {
    let end = media_type.find(';').unwrap_or(media_type.len());
    media_type[..end].trim()
}

#[cfg(test)]
mod tests;
