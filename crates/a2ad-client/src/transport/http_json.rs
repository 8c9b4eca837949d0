//! HTTP+JSON.

use std::fmt::Write as _;

use a2ad_proto::StreamResponse;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{self, HeaderValue};
use http::{Method, Request, StatusCode, response};
use serde_json::{Map, Value};
use url::Url;

use super::frames::{Frames, Wrap, bare_error};
use super::wire::Form;
use super::{
    Answer as _, Call, Line, Operation, Reply, Transport, Wire, error_body, http_failure,
    is_event_stream, with_headers,
};
use crate::dial::Body;
use crate::error::{Error, Refusal};
use crate::interface::Interface;

const MEDIA_TYPE: &str = "application/a2a+json";
/// 0.3 has no type of its own.
const OLD_MEDIA_TYPE: &str = "application/json";
/// Where 0.3 has its paths.
const OLD_PREFIX: &str = "/v1";

#[derive(Debug)]
pub(super) struct HttpJson(pub(super) Line);

/// Where an operation is, and what of its request goes into the body.
struct Route {
    verb: Method,
    path: String,
    has_body: bool,
}

impl Route {
    fn of(operation: Operation, members: &Map<String, Value>) -> Result<Self, Error> {
        let id = |name: &str| {
            let id = members.get(name).and_then(Value::as_str);
            segment(id.unwrap_or_default())
        };
        let configs =
            || Ok::<_, Error>(format!("/tasks/{}/pushNotificationConfigs", id("taskId")?));
        let (verb, path, has_body) = match operation {
            Operation::SendMessage => (Method::POST, "/message:send".to_owned(), true),
            Operation::SendStreamingMessage => (Method::POST, "/message:stream".to_owned(), true),
            Operation::GetTask => (Method::GET, format!("/tasks/{}", id("id")?), false),
            Operation::ListTasks => (Method::GET, "/tasks".to_owned(), false),
            Operation::CancelTask => (Method::POST, format!("/tasks/{}:cancel", id("id")?), true),
            Operation::SubscribeToTask => (
                Method::POST,
                format!("/tasks/{}:subscribe", id("id")?),
                false,
            ),
            Operation::CreatePushConfig => (Method::POST, configs()?, true),
            Operation::ListPushConfigs => (Method::GET, configs()?, false),
            Operation::GetPushConfig => {
                let path = format!("{}/{}", configs()?, id("id")?);
                (Method::GET, path, false)
            }
            Operation::DeletePushConfig => {
                let path = format!("{}/{}", configs()?, id("id")?);
                (Method::DELETE, path, false)
            }
            Operation::GetExtendedCard => (Method::GET, "/extendedAgentCard".to_owned(), false),
        };
        Ok(Self {
            verb,
            path,
            has_body,
        })
    }
}

/// Text as one segment of a path, or one value in a query.
fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _infallible = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// An id as a segment. Dots would be taken for a way up, whatever their spelling.
fn segment(id: &str) -> Result<String, Error> {
    if matches!(id, "" | "." | "..") {
        return Err(Error::invalid("the id"));
    }
    Ok(encode(id))
}

impl HttpJson {
    fn request(
        &self,
        call: &Call<'_>,
        verb: Option<Method>,
        accept: &'static str,
    ) -> Result<Request<Bytes>, Error> {
        let old = matches!(self.0.wire, Wire::Old(_));
        let json = call.params.write(Form::Json);
        // Only ids and what goes into a query are looked at here; bodies go out as they were written.
        let members: Map<String, Value> = serde_json::from_slice(&json).unwrap_or_default();
        let route = Route::of(call.operation, &members)?;
        let mut url: Url = self.0.interface.url.clone();
        let mut path = url.path().trim_end_matches('/').to_owned();
        if !call.tenant.is_empty() {
            path = format!("{path}/{}", segment(call.tenant)?);
        }
        url.set_path(&match (old, call.operation) {
            (false, _) => format!("{path}{}", route.path),
            (true, Operation::GetExtendedCard) => format!("{path}{OLD_PREFIX}/card"),
            (true, _) => format!("{path}{OLD_PREFIX}{}", route.path),
        });
        let in_path = ["id", "taskId", "tenant"];
        let asked = members
            .iter()
            .filter(|(name, _)| route.verb == Method::GET && !in_path.contains(&name.as_str()));
        for (name, value) in asked {
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            url.query_pairs_mut().append_pair(name, &text);
        }
        let body = match call.operation {
            _ if !route.has_body => Vec::new(),
            // The id is in the path.
            Operation::CancelTask => {
                let metadata = members.get("metadata");
                metadata.map_or_else(
                    || b"{}".to_vec(),
                    |it| format!("{{\"metadata\":{it}}}").into_bytes(),
                )
            }
            _ if old => call.params.write(self.0.wire.http_json()),
            _ => json,
        };
        let has_body = !body.is_empty();
        let verb = verb.unwrap_or(route.verb);
        let mut request = self.0.request(verb, url, call, body)?;
        let headers = request.headers_mut();
        if has_body {
            let media_type = if old { OLD_MEDIA_TYPE } else { MEDIA_TYPE };
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
        }
        headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        Ok(request)
    }

    async fn failure(&self, head: &response::Parts, body: Body) -> Error {
        if self.0.wire == Wire::Modern {
            return http_failure(head, body).await;
        }
        let body = error_body(head, body).await.unwrap_or_default();
        with_headers(Refusal::of_old_http(head.status.as_u16(), &body), head)
    }

    async fn exchange(&self, call: &Call<'_>) -> Result<Reply, Error> {
        let request = self.request(call, None, "application/a2a+json, application/json;q=0.9")?;
        let (head, body) = self.0.send(request, &call.limits).await?.into_parts();
        if !head.status.is_success() {
            return Err(self.failure(&head, body).await);
        }
        let bytes = body.bytes().await?;
        let form = self.0.wire.http_json();
        // Nothing is an answer where nothing is to be said (REST-07).
        if bytes.is_empty() {
            let bytes = Bytes::from_static(b"{}");
            return Ok(Reply { bytes, form });
        }
        Ok(Reply { bytes, form })
    }

    async fn stream(&self, call: &Call<'_>) -> Result<Frames, Error> {
        let accept = "text/event-stream, application/json;q=0.5";
        let mut request = self.request(call, None, accept)?;
        let (mut head, mut body) = self.0.send(request, &call.limits).await?.into_parts();
        let wrong_verb = [StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED];
        // Servers differ in how one subscribes (AMB-02).
        if call.operation == Operation::SubscribeToTask && wrong_verb.contains(&head.status) {
            let refused = self.failure(&head, body).await;
            if refused.kind() != Some(a2ad_proto::ErrorKind::MethodNotFound) {
                return Err(refused);
            }
            request = self.request(call, Some(Method::GET), accept)?;
            (head, body) = self.0.send(request, &call.limits).await?.into_parts();
        }
        if !head.status.is_success() {
            return Err(self.failure(&head, body).await);
        }
        if is_event_stream(&head.headers) {
            return Ok(Frames::sse(&self.0, body, Wrap::Bare));
        }
        let bytes = super::whole(body, self.0.event_bytes_max).await?;
        if let Some(error) = bare_error(&bytes, head.status.as_u16()) {
            return Err(error);
        }
        let frame = StreamResponse::read(&bytes, self.0.wire.http_json(), "the answer")?;
        Ok(Frames::one(&self.0, frame))
    }
}

impl Transport for HttpJson {
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
