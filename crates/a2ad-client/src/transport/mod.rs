//! The three bindings behind one trait: a request goes out, an answer or a stream of frames comes back.
//!
//! Nothing is retried here, and nothing is resumed.

mod frames;
mod grpc;
mod http_json;
mod jsonrpc;
mod wire;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response, response};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout_at};
use url::Url;

pub use self::frames::Frames;
pub(crate) use self::wire::{Answer, Params, Question, Reply, Wire};

use crate::REPLAY;
use crate::credentials::{Credentials, Shown};
use crate::dial::{Body, Dialer, Limits};
use crate::error::{Error, Refusal};
use crate::interface::{Binding, Interface};
use crate::sse::SseParser;

/// How much is read of an error, and for how long.
const ERROR_BYTES_MAX: usize = 1024 * 1024;
const ERROR_PATIENCE: Duration = Duration::from_secs(10);

/// The eleven operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    SendMessage,
    SendStreamingMessage,
    GetTask,
    ListTasks,
    CancelTask,
    SubscribeToTask,
    CreatePushConfig,
    GetPushConfig,
    ListPushConfigs,
    DeletePushConfig,
    GetExtendedCard,
}

impl Operation {
    /// Its name on JSON-RPC and gRPC.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::SendMessage => "SendMessage",
            Self::SendStreamingMessage => "SendStreamingMessage",
            Self::GetTask => "GetTask",
            Self::ListTasks => "ListTasks",
            Self::CancelTask => "CancelTask",
            Self::SubscribeToTask => "SubscribeToTask",
            Self::CreatePushConfig => "CreateTaskPushNotificationConfig",
            Self::GetPushConfig => "GetTaskPushNotificationConfig",
            Self::ListPushConfigs => "ListTaskPushNotificationConfigs",
            Self::DeletePushConfig => "DeleteTaskPushNotificationConfig",
            Self::GetExtendedCard => "GetExtendedAgentCard",
        }
    }
}

/// One request.
pub(crate) struct Call<'a> {
    pub(crate) operation: Operation,
    pub(crate) params: &'a dyn Params,
    /// For the path of HTTP+JSON; elsewhere it is among the parameters (TEN-02).
    pub(crate) tenant: &'a str,
    /// Where to resume a stream.
    pub(crate) after: Option<u64>,
    pub(crate) options: &'a CallOptions,
    pub(crate) limits: Limits,
}

/// What a single call says beside its request.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CallOptions {
    /// Goes with a message so that it is recognised when it comes again. Without it, its id does that.
    pub idempotency_key: Option<String>,
    /// Extensions to switch on, beside those of the client.
    pub extensions: Vec<String>,
    /// The W3C trace context that the call is part of.
    pub traceparent: Option<String>,
    /// How long to wait for the answer, instead of the client's own timeout.
    pub timeout: Option<Duration>,
}

/// A binding at an address.
pub(crate) trait Transport: Send + Sync + fmt::Debug {
    fn interface(&self) -> &Interface;
    /// Calls an operation that has one answer.
    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Reply, Error>>;
    /// Calls one that has a stream of them.
    fn open<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Frames, Error>>;
}

/// What all bindings have in common: whom to call, what to show, what to switch on.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) dialer: Dialer,
    pub(crate) interface: Interface,
    pub(crate) wire: Wire,
    /// Empty where the interface is not trusted.
    pub(crate) shown: Shown,
    /// To keep out of errors what an agent sends back.
    pub(crate) credentials: Credentials,
    pub(crate) extensions: Vec<String>,
    /// Whether the agent numbers the frames of its streams.
    pub(crate) replay: bool,
    pub(crate) event_bytes_max: usize,
}

/// The transport for the binding of a line.
pub(crate) fn transport(line: Line) -> Arc<dyn Transport> {
    match line.interface.binding {
        Binding::JsonRpc => Arc::new(jsonrpc::JsonRpc(line)),
        Binding::HttpJson => Arc::new(http_json::HttpJson(line)),
        Binding::Grpc => Arc::new(grpc::Grpc(line)),
    }
}

impl Line {
    /// A request with everything but what is the binding's own.
    fn request(
        &self,
        method: Method,
        mut url: Url,
        call: &Call<'_>,
        body: impl Into<Bytes>,
    ) -> Result<Request<Bytes>, Error> {
        for (name, key) in &self.shown.query {
            url.query_pairs_mut().append_pair(name, key);
        }
        let mut request = Request::builder()
            .method(method)
            .uri(url.as_str())
            .body(body.into())
            .map_err(|_| Error::invalid("the URL of the interface"))?;
        let headers = request.headers_mut();
        headers.extend(self.shown.headers.clone());
        let version = HeaderValue::from_static(self.wire.version());
        headers.insert(HeaderName::from_static("a2a-version"), version);
        let mut extensions: Vec<&str> = Vec::new();
        let streams = matches!(
            call.operation,
            Operation::SendStreamingMessage | Operation::SubscribeToTask
        );
        let replay = (self.replay && streams).then_some(REPLAY);
        let asked = self.extensions.iter().chain(&call.options.extensions);
        for uri in asked.map(String::as_str).chain(replay) {
            if !extensions.contains(&uri) {
                extensions.push(uri);
            }
        }
        if !extensions.is_empty() {
            let list = value(&extensions.join(","), "an extension's URI")?;
            if let Wire::Old(_) = self.wire {
                // Its name in 0.3 (V03-19).
                headers.insert(HeaderName::from_static("x-a2a-extensions"), list.clone());
            }
            headers.insert(HeaderName::from_static("a2a-extensions"), list);
        }
        if let Some(key) = &call.options.idempotency_key {
            let key = value(key, "the idempotency key")?;
            headers.insert(HeaderName::from_static("idempotency-key"), key);
        }
        if let Some(trace) = &call.options.traceparent {
            let trace = value(trace, "the trace context")?;
            headers.insert(HeaderName::from_static("traceparent"), trace);
        }
        if let Some(after) = call.after {
            headers.insert(HeaderName::from_static("last-event-id"), after.into());
        }
        Ok(request)
    }

    /// What an error may say.
    fn conceal(&self, error: Error) -> Error {
        error.map_text(|text| self.credentials.conceal(text))
    }

    async fn send(
        &self,
        request: Request<Bytes>,
        limits: &Limits,
    ) -> Result<Response<Body>, Error> {
        let response = self.dialer.send(request, limits).await?;
        if response.status().is_redirection() {
            return Err(redirect(response.headers()));
        }
        Ok(response)
    }

    /// The host alone, for errors.
    fn host(&self) -> String {
        self.interface.url.host_str().unwrap_or_default().to_owned()
    }
}

fn value(text: &str, what: &'static str) -> Result<HeaderValue, Error> {
    HeaderValue::from_str(text).map_err(|_| Error::invalid(what))
}

/// The error that a redirect is: whoever it leads to was not asked for, and our credentials are not for them.
pub(crate) fn redirect(headers: &HeaderMap) -> Error {
    let to = headers.get(header::LOCATION);
    let to = to.and_then(|to| Url::parse(to.to_str().ok()?).ok());
    let host = to.as_ref().and_then(Url::host_str).unwrap_or("elsewhere");
    Error::not_a2a(format!("a redirect to {host}, which is not followed"), "")
}

/// Whether a body is a stream of events.
fn is_event_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("text/event-stream")
}

/// The body of an answer that is an error. In a stream of events it is the first one.
///
/// It need not be there when the status is: what has not come in time does not matter.
async fn error_body(head: &response::Parts, mut body: Body) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let mut parser = SseParser::new(ERROR_BYTES_MAX);
    let end = Instant::now() + ERROR_PATIENCE;
    let mut read = 0;
    while let Ok(chunk) = timeout_at(end, body.chunk()).await {
        let Some(chunk) = chunk? else { break };
        read += chunk.len();
        if is_event_stream(&head.headers) {
            let event = parser.next(&mut &chunk[..]);
            if let Ok(Some(event)) = event {
                return Ok(event.data.into_bytes());
            }
        } else {
            bytes.extend_from_slice(&chunk);
        }
        if read > ERROR_BYTES_MAX {
            break;
        }
    }
    Ok(bytes)
}

/// The error in an answer or event. It is read whole, so it is not for the agent to say how long it is.
fn read_error(error: &RawValue) -> Result<Value, Error> {
    if error.get().len() > ERROR_BYTES_MAX {
        return Err(Error::TooLarge {
            what: "an error",
            bytes_max: ERROR_BYTES_MAX as u64,
        });
    }
    Ok(serde_json::from_str(error.get()).unwrap_or_default())
}

/// When to try again, as a header says it.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?;
    seconds.trim().parse().ok().map(Duration::from_secs)
}

/// The refusal with what the headers say beside it.
fn with_headers(mut refusal: Refusal, head: &response::Parts) -> Error {
    refusal.retry_after = retry_after(&head.headers).or(refusal.retry_after);
    Error::refused(refusal)
}

/// The error that an answer without success is, whatever its body.
async fn http_failure(head: &response::Parts, body: Body) -> Error {
    // The status is known, whatever became of the rest.
    let body = error_body(head, body).await.unwrap_or_default();
    with_headers(Refusal::of_http(head.status.as_u16(), &body), head)
}

/// All of a body that was to be a stream and is not.
async fn whole(mut body: Body, bytes_max: usize) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    while let Some(chunk) = body.chunk().await? {
        if bytes.len() + chunk.len() > bytes_max {
            return Err(Error::TooLarge {
                what: "the agent's answer",
                bytes_max: bytes_max as u64,
            });
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}
