//! JSON-RPC 2.0 over HTTP.

use a2ad_proto::StreamResponse;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{self, HeaderValue};
use http::{Method, Request, response};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::frames::{Frames, Wrap};
use super::{
    Answer as _, Call, Line, Reply, Transport, error_body, is_event_stream, read_error,
    with_headers,
};
use crate::dial::Body;
use crate::error::{Error, Refusal};
use crate::interface::Interface;

/// One call per HTTP exchange, so one id will do; a text, because some servers take no other (RPC-05).
const ID: &str = "\"1\"";

#[derive(Debug)]
pub(super) struct JsonRpc(pub(super) Line);

/// A response, or what passes for one.
#[derive(Deserialize)]
pub(super) struct Envelope {
    result: Option<Box<RawValue>>,
    error: Option<Box<RawValue>>,
}

impl Envelope {
    /// Reads a JSON object; its `jsonrpc` and `id` are not looked at, since the exchange says what it answers.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    /// The result; none is one, too, where nothing is to be said (RPC-06).
    pub(super) fn into_result(self, http: u16) -> Result<Option<Bytes>, Error> {
        if let Some(error) = self.error {
            let error = read_error(&error)?;
            return Err(Error::refused(Refusal::of_json_rpc(&error, http)));
        }
        let result = self.result.filter(|result| result.get() != "null");
        Ok(result.map(|result| Bytes::from(Box::<str>::from(result).into_string())))
    }
}

impl JsonRpc {
    fn request(&self, call: &Call<'_>, accept: &'static str) -> Result<Request<Bytes>, Error> {
        let method = self.0.wire.method(call.operation);
        let params = call.params.write(self.0.wire.json_rpc());
        let mut body = Vec::with_capacity(params.len() + 100);
        body.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        body.extend_from_slice(ID.as_bytes());
        body.extend_from_slice(b",\"method\":\"");
        body.extend_from_slice(method.as_bytes());
        body.push(b'"');
        if !params.is_empty() {
            body.extend_from_slice(b",\"params\":");
            body.extend_from_slice(&params);
        }
        body.push(b'}');
        let url = self.0.interface.url.clone();
        let mut request = self.0.request(Method::POST, url, call, body)?;
        let headers = request.headers_mut();
        let json = HeaderValue::from_static("application/json");
        headers.insert(header::CONTENT_TYPE, json);
        headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        Ok(request)
    }

    /// The error in an answer of a bad status, which may be one of JSON-RPC all the same.
    async fn failure(head: &response::Parts, body: Body) -> Error {
        let Ok(bytes) = error_body(head, body).await else {
            return with_headers(Refusal::of_http(head.status.as_u16(), b""), head);
        };
        let error = Envelope::read(&bytes).and_then(|envelope| envelope.error);
        let refusal = match error.and_then(|error| read_error(&error).ok()) {
            Some(error) if error.get("code").is_some() => {
                Refusal::of_json_rpc(&error, head.status.as_u16())
            }
            _ => Refusal::of_http(head.status.as_u16(), &bytes),
        };
        with_headers(refusal, head)
    }

    async fn exchange(&self, call: &Call<'_>) -> Result<Reply, Error> {
        let request = self.request(call, "application/json")?;
        let (head, body) = self.0.send(request, &call.limits).await?.into_parts();
        if !head.status.is_success() {
            return Err(Self::failure(&head, body).await);
        }
        let bytes = body.bytes().await?;
        let envelope = Envelope::read(&bytes).ok_or_else(|| not_json(&bytes))?;
        let result = envelope.into_result(head.status.as_u16())?;
        Ok(Reply {
            bytes: result.unwrap_or(Bytes::from_static(b"{}")),
            form: self.0.wire.json_rpc(),
        })
    }

    async fn stream(&self, call: &Call<'_>) -> Result<Frames, Error> {
        let request = self.request(call, "text/event-stream, application/json;q=0.5")?;
        let (head, body) = self.0.send(request, &call.limits).await?.into_parts();
        if !head.status.is_success() {
            return Err(Self::failure(&head, body).await);
        }
        if is_event_stream(&head.headers) {
            return Ok(Frames::sse(&self.0, body, Wrap::JsonRpc));
        }
        // An error before the first event, or all that there is to say (RPC-08).
        let bytes = super::whole(body, self.0.event_bytes_max).await?;
        let envelope = Envelope::read(&bytes).ok_or_else(|| not_json(&bytes))?;
        let result = envelope.into_result(head.status.as_u16())?;
        let result = result.ok_or_else(|| not_json(&bytes))?;
        let frame = StreamResponse::read(&result, self.0.wire.json_rpc(), "the answer")?;
        Ok(Frames::one(&self.0, frame))
    }
}

fn not_json(bytes: &[u8]) -> Error {
    let begin = String::from_utf8_lossy(&bytes[..bytes.len().min(800)]);
    Error::not_a2a("the answer is no JSON-RPC response", &begin)
}

impl Transport for JsonRpc {
    fn interface(&self) -> &Interface {
        &self.0.interface
    }

    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Reply, Error>> {
        Box::pin(async move { self.exchange(&call).await.map_err(|it| self.0.conceal(it)) })
    }

    fn open<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Frames, Error>> {
        Box::pin(async move { self.stream(&call).await.map_err(|it| self.0.conceal(it)) })
    }
}
