//! The HTTP+JSON binding, from the client's side.

use std::fmt::Write as _;
use std::net::SocketAddr;

use a2ad_proto::{
    GetTaskRequest, ListTasksRequest, ListTasksResponse, SendMessageRequest, SendMessageResponse,
    Task,
};
use futures_util::future::BoxFuture;
use hyper::Method;
use serde_json::Value;

use crate::client::{Client, Event, Events, Failure, borrow, typed};
use crate::http::{self, Answer, SseReader};

const MEDIA_TYPE: &str = "application/a2a+json";

/// HTTP+JSON.
#[derive(Clone, Debug)]
pub struct HttpJson {
    /// Where the server listens.
    pub to: SocketAddr,
    /// Further headers for every call.
    pub headers: Vec<(String, String)>,
}

impl HttpJson {
    /// A client of the server at `to`.
    #[must_use]
    pub fn new(to: SocketAddr) -> Self {
        Self {
            to,
            headers: Vec::new(),
        }
    }

    /// The result of a request, or the error it got.
    ///
    /// # Errors
    /// When the server refuses or does not answer.
    pub async fn call(&self, verb: Method, path: &str, body: String) -> Result<Value, Failure> {
        let headers = self.headers_with(&body, &[("accept", MEDIA_TYPE)]);
        let answer = http::call(self.to, verb, path, &borrow(&headers), body).await?;
        assert_eq!(answer.headers["content-type"], MEDIA_TYPE);
        if answer.status != 200 {
            return Err(refusal(&answer));
        }
        Ok(answer.json())
    }

    async fn open(
        &self,
        path: &str,
        body: String,
        after: Option<u64>,
    ) -> Result<Box<dyn Events>, Failure> {
        let after = after.map(|number| number.to_string());
        let mut more = vec![("accept", "text/event-stream")];
        more.extend(
            after
                .iter()
                .map(|number| ("last-event-id", number.as_str())),
        );
        let headers = self.headers_with(&body, &more);
        let open = http::open(self.to, Method::POST, path, &borrow(&headers), body).await?;
        // An error that came instead of a stream has its own status and type.
        if open.response.status() != 200 {
            let answer = open.whole().await?;
            assert_eq!(answer.headers["content-type"], "application/json");
            return Err(refusal(&answer));
        }
        assert_eq!(open.response.headers()["content-type"], "text/event-stream");
        Ok(Box::new(HttpJsonEvents(SseReader::new(open))))
    }

    fn headers_with(&self, body: &str, more: &[(&str, &str)]) -> Vec<(String, String)> {
        let kind = (!body.is_empty()).then_some(("content-type", MEDIA_TYPE));
        let fixed = [("a2a-version", "1.0")].into_iter().chain(kind);
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let fixed = fixed.chain(more.iter().copied()).map(owned);
        fixed.chain(self.headers.iter().cloned()).collect()
    }
}

/// Text as one segment of a path or one value in a query.
#[must_use]
pub fn encode(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _infallible = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// The members of a request as a query, but for its id.
fn query(request: &impl serde::Serialize) -> String {
    let request = serde_json::to_value(request).expect("requests are JSON");
    let members = request.as_object().expect("requests are objects");
    let mut query = String::new();
    for (name, value) in members.iter().filter(|(name, _)| *name != "id") {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        let between = if query.is_empty() { '?' } else { '&' };
        let _infallible = write!(query, "{between}{name}={}", encode(&text));
    }
    query
}

/// What an answer that is an error says.
fn refusal(answer: &Answer) -> Failure {
    let failure = failure(&answer.json());
    if let Failure::Refused { code, .. } = &failure {
        assert_eq!(*code, i64::from(answer.status.as_u16()), "REST-11");
    }
    failure
}

fn failure(answer: &Value) -> Failure {
    let error = &answer["error"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Failure::Refused {
        reason: text(&error["details"][0]["reason"]),
        code: error["code"].as_i64().unwrap_or_default(),
        message: text(&error["message"]),
    }
}

struct HttpJsonEvents(SseReader);

impl HttpJsonEvents {
    async fn read(&mut self) -> Result<Option<Event>, Failure> {
        let Some(event) = self.0.next().await? else {
            return Ok(None);
        };
        let value: Value = serde_json::from_str(&event.data).expect("data is JSON");
        let is_error = value.get("error").is_some();
        assert_eq!(event.name.as_deref() == Some("error"), is_error, "REST-10");
        if is_error {
            return Err(failure(&value));
        }
        let number = event.id.expect("every frame has an id");
        Ok(Some(Event {
            number: number.parse().expect("ids are numbers"),
            response: typed(&value),
        }))
    }
}

impl Events for HttpJsonEvents {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Event>, Failure>> {
        Box::pin(self.read())
    }
}

fn json(request: &impl serde::Serialize) -> String {
    serde_json::to_string(request).expect("requests are JSON")
}

impl Client for HttpJson {
    fn send_any(
        &self,
        request: SendMessageRequest,
    ) -> BoxFuture<'_, Result<SendMessageResponse, Failure>> {
        Box::pin(async move {
            let sent = self.call(Method::POST, "/message:send", json(&request));
            Ok(typed(&sent.await?))
        })
    }

    fn stream(
        &self,
        request: SendMessageRequest,
        after: Option<u64>,
    ) -> BoxFuture<'_, Result<Box<dyn Events>, Failure>> {
        Box::pin(async move { self.open("/message:stream", json(&request), after).await })
    }

    fn get(&self, request: GetTaskRequest) -> BoxFuture<'_, Result<Task, Failure>> {
        let path = format!("/tasks/{}{}", encode(&request.id), query(&request));
        Box::pin(async move { Ok(typed(&self.call(Method::GET, &path, String::new()).await?)) })
    }

    fn list(&self, request: ListTasksRequest) -> BoxFuture<'_, Result<ListTasksResponse, Failure>> {
        let path = format!("/tasks{}", query(&request));
        Box::pin(async move { Ok(typed(&self.call(Method::GET, &path, String::new()).await?)) })
    }

    fn cancel(&self, id: &str) -> BoxFuture<'_, Result<Task, Failure>> {
        let path = format!("/tasks/{}:cancel", encode(id));
        Box::pin(async move { Ok(typed(&self.call(Method::POST, &path, String::new()).await?)) })
    }

    fn subscribe(
        &self,
        id: &str,
        after: Option<u64>,
    ) -> BoxFuture<'_, Result<Box<dyn Events>, Failure>> {
        let path = format!("/tasks/{}:subscribe", encode(id));
        Box::pin(async move { self.open(&path, String::new(), after).await })
    }
}
