//! The JSON-RPC binding: one POST, one call.

mod envelope;
mod params;

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{Response, StatusCode};
use serde_json::value::RawValue;
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::call::{Call, Reply};
use crate::edge::Inner;
use crate::errors::Fault;
use crate::extensions::Active;
use crate::limits::Limits;
use crate::listen::Connection;
use crate::meters::{self, Binding};
use crate::method::Method;
use crate::mounts::Visit;
use crate::reply::{self, Body};
use crate::sse::{self, Wrap};
use crate::version::Absent;
use crate::{body, media};

/// What came of a request.
struct Done {
    method: Option<Method>,
    id: Box<RawValue>,
    active: Active,
    result: Result<Reply, Fault>,
}

impl Done {
    /// A request that did not get as far as being a call.
    fn refused(id: &RawValue, fault: impl Into<Fault>) -> Self {
        Self {
            method: None,
            id: id.to_owned(),
            active: Active::default(),
            result: Err(fault.into()),
        }
    }
}

/// Answers one POST to an agent's JSON-RPC endpoint.
pub(crate) async fn answer<B>(
    inner: &Inner,
    visit: Visit<'_>,
    head: &Parts,
    body: B,
    connection: &Arc<Connection>,
) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    let began = Instant::now();
    let types = &[media::JSON_NAME];
    let read = body::read(body, &head.headers, types, connection, &inner.limits);
    let done = match read.await {
        Ok(body) => perform(inner, visit, head, body).await,
        Err(refusal) => Done::refused(RawValue::NULL, refusal),
    };
    let refused = done.result.as_ref().err().map(|fault| fault.kind.reason());
    inner
        .meters
        .count(Binding::JsonRpc, done.method, refused, began.elapsed());
    let Done {
        method,
        id,
        active,
        result,
    } = done;
    let mut response = match result {
        Ok(Reply::Result(json)) => reply::whole(StatusCode::OK, reply::JSON, success(&id, &json)),
        Ok(Reply::Stream(stream)) => {
            sse::open(Wrap::JsonRpc(id), stream, connection, &inner.limits)
        }
        Err(fault) => {
            let streams = method.is_some_and(Method::streams);
            let events = streams && media::accepts_events(&head.headers);
            refuse(&id, &fault, events, &inner.limits)
        }
    };
    active.tell(response.headers_mut());
    response
}

async fn perform(inner: &Inner, visit: Visit<'_>, head: &Parts, body: Bytes) -> Done {
    let envelope = match envelope::read(&body) {
        Ok(envelope) => envelope,
        Err((id, refusal)) => return Done::refused(id, refusal),
    };
    let method = Method::named(&envelope.method);
    let id = envelope.id.to_owned();
    let span = tracing::debug_span!(
        "request",
        binding = Binding::JsonRpc.name(),
        method = meters::label(method),
        task = tracing::field::Empty
    );
    let call = span.in_scope(|| {
        let request = params::read(method, &envelope);
        Call::new(inner, visit, head, request, Absent::Means03)
    });
    // A blocking send may take minutes; what was read is not needed any more.
    drop(body);
    let mut active = Active::default();
    let result = match call {
        Ok(call) => {
            active = call.active.clone();
            call.run(inner).instrument(span).await
        }
        Err(fault) => Err(fault),
    };
    Done {
        method,
        id,
        active,
        result,
    }
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
        return sse::refuse(&Wrap::JsonRpc(id.to_owned()), fault);
    }
    reply::error(fault, status, reply::JSON, fault.json_rpc(id), limits)
}
