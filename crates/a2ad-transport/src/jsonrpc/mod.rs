//! The JSON-RPC binding: one POST, one call.

mod envelope;
mod params;

use bytes::Bytes;
use http::request::Parts;
use http::{Response, StatusCode};
use serde_json::value::RawValue;
use tokio::time::Instant;
use tracing::Span;

use crate::call::{self, Call, Reply};
use crate::edge::Inner;
use crate::errors::{Fault, Refusal};
use crate::limits::Limits;
use crate::listen::Connection;
use crate::meters::{self, Binding};
use crate::method::Method;
use crate::mounts::Visit;
use crate::reply::{self, Body};
use crate::sse::{self, Wrap};
use crate::tongue::Tongue;
use crate::version::{self, Spoken};
use crate::{body, media};

/// A request that has been read.
pub(crate) struct Asked {
    asked: call::Asked,
    id: Box<RawValue>,
    /// Whether an error is to be told as an event (RPC-08).
    as_event: bool,
}

/// Reads one POST to an agent's JSON-RPC endpoint.
pub(crate) async fn read<B>(
    inner: &Inner,
    visit: Visit<'_>,
    head: &Parts,
    body: B,
    connection: &Connection,
) -> Asked
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    let began = Instant::now();
    let refused = |id: &RawValue, refusal: Refusal| Asked {
        asked: call::Asked {
            began,
            method: None,
            span: Span::none(),
            tongue: Tongue::V10,
            call: Err(refusal.into()),
        },
        id: id.to_owned(),
        as_event: false,
    };
    let types = &[media::JSON_NAME];
    let read = body::read(body, &head.headers, types, connection, &inner.limits);
    let body = match read.await {
        Ok(body) => body,
        Err(refusal) => return refused(RawValue::NULL, refusal),
    };
    let envelope = match envelope::read(&body) {
        Ok(envelope) => envelope,
        Err((id, refusal)) => return refused(id, refusal),
    };
    let (method, spoken) = match Method::spoken(&envelope.method) {
        Some((method, spoken)) => (Some(method), spoken),
        // Whoever asks in another version may know methods that we do not: that comes first (OPS-04).
        None => (None, Spoken::Both),
    };
    let generation = version::negotiate(head, spoken, inner.lenient);
    let tongue = match &generation {
        Ok(generation) => Tongue::of_json_rpc(*generation),
        Err(_) => Tongue::V10,
    };
    let span = tracing::debug_span!(
        "request",
        binding = Binding::JsonRpc.name(),
        method = meters::label(method),
        task = tracing::field::Empty
    );
    let call = span.in_scope(|| {
        let request = params::read(method, tongue.generation(), &envelope);
        Call::new(inner, visit, head, generation, request)
    });
    Asked {
        asked: call::Asked {
            began,
            method,
            span,
            tongue,
            call,
        },
        id: envelope.id.to_owned(),
        as_event: method.is_some_and(Method::streams) && media::accepts_events(&head.headers),
    }
}

impl Asked {
    /// Does what was asked, and says what came of it.
    pub(crate) async fn answer(self, inner: &Inner, connection: &Connection) -> Response<Body> {
        let Self {
            asked,
            id,
            as_event,
        } = self;
        let tongue = asked.tongue;
        let (active, result) = asked.perform(inner, Binding::JsonRpc).await;
        let mut response = match result {
            Ok(Reply::Result(json)) => {
                reply::whole(StatusCode::OK, reply::JSON, success(&id, &json))
            }
            Ok(Reply::Stream(stream)) => {
                sse::open(Wrap::JsonRpc(id), tongue, stream, connection, &inner.limits)
            }
            Err(fault) => refuse(&id, &fault, as_event, &inner.limits),
        };
        active.tell(tongue.generation(), response.headers_mut());
        response
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
