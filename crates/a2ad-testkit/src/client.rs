//! A client for scenarios: the same operations whatever the binding underneath.

use std::net::SocketAddr;

use a2ad_proto::{
    CancelTaskRequest, GetTaskRequest, ListTasksRequest, ListTasksResponse, Message, Part, Role,
    SendMessageRequest, SendMessageResponse, StreamResponse, Task,
};
use futures_util::future::BoxFuture;
use hyper::Method;
use serde_json::{Value, json};

use crate::http::{self, Broken, SseReader};

/// Why an operation failed.
#[derive(Debug)]
pub enum Failure {
    /// The server said no: its reason (`TASK_NOT_FOUND`), the binding's code, its text.
    Refused {
        /// `ErrorInfo.reason`.
        reason: String,
        /// The binding's own code.
        code: i64,
        /// For people.
        message: String,
    },
    /// No answer came.
    Broken(Broken),
}

impl Failure {
    /// The reason of a refusal.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Self::Refused { reason, .. } => reason,
            Self::Broken(broken) => panic!("not refused but broken: {broken}"),
        }
    }
}

impl From<Broken> for Failure {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

/// One frame of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its number.
    pub number: u64,
    /// What it says.
    pub response: StreamResponse,
}

/// A stream of frames.
pub trait Events: Send {
    /// The next frame; `None` when the server ended the stream.
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Event>, Failure>>;
}

/// All frames until the stream ends.
pub async fn drain(mut events: Box<dyn Events>) -> Result<Vec<Event>, Failure> {
    let mut all = Vec::new();
    while let Some(event) = events.next().await? {
        all.push(event);
    }
    Ok(all)
}

/// The operations, over some binding.
pub trait Client: Send + Sync {
    /// SendMessage.
    fn send_any(
        &self,
        request: SendMessageRequest,
    ) -> BoxFuture<'_, Result<SendMessageResponse, Failure>>;
    /// SendMessage, where a task is expected.
    fn send(&self, request: SendMessageRequest) -> BoxFuture<'_, Result<Task, Failure>> {
        let sent = self.send_any(request);
        Box::pin(async move {
            match sent.await? {
                SendMessageResponse::Task(task) => Ok(task),
                SendMessageResponse::Message(reply) => panic!("a task was expected: {reply:?}"),
            }
        })
    }
    /// SendStreamingMessage.
    fn stream(
        &self,
        request: SendMessageRequest,
        after: Option<u64>,
    ) -> BoxFuture<'_, Result<Box<dyn Events>, Failure>>;
    /// GetTask.
    fn get(&self, request: GetTaskRequest) -> BoxFuture<'_, Result<Task, Failure>>;
    /// ListTasks.
    fn list(&self, request: ListTasksRequest) -> BoxFuture<'_, Result<ListTasksResponse, Failure>>;
    /// CancelTask.
    fn cancel(&self, id: &str) -> BoxFuture<'_, Result<Task, Failure>>;
    /// SubscribeToTask, from now or after a number.
    fn subscribe(
        &self,
        id: &str,
        after: Option<u64>,
    ) -> BoxFuture<'_, Result<Box<dyn Events>, Failure>>;
}

/// A message with one text, under an id that the server does not take for unique.
#[must_use]
pub fn text(said: &str) -> SendMessageRequest {
    SendMessageRequest {
        message: Some(Message {
            message_id: "m".to_owned(),
            role: Role::User,
            parts: vec![Part::text(said)],
            ..Message::default()
        }),
        ..SendMessageRequest::default()
    }
}

/// The same request, answered as soon as the task exists.
#[must_use]
pub fn at_once(mut request: SendMessageRequest) -> SendMessageRequest {
    request
        .configuration
        .get_or_insert_default()
        .return_immediately = true;
    request
}

/// The same, as a further message to a task.
#[must_use]
pub fn text_to(task: &Task, said: &str) -> SendMessageRequest {
    let mut request = text(said);
    if let Some(message) = &mut request.message {
        message.task_id.clone_from(&task.id);
        message.context_id.clone_from(&task.context_id);
    }
    request
}

/// The same, in a context.
#[must_use]
pub fn text_in(context_id: &str, said: &str) -> SendMessageRequest {
    let mut request = text(said);
    if let Some(message) = &mut request.message {
        context_id.clone_into(&mut message.context_id);
    }
    request
}

/// JSON-RPC 2.0 over HTTP.
#[derive(Clone, Debug)]
pub struct JsonRpc {
    /// Where the server listens.
    pub to: SocketAddr,
    /// Further headers for every call.
    pub headers: Vec<(String, String)>,
}

impl JsonRpc {
    /// A client of the server at `to`.
    #[must_use]
    pub fn new(to: SocketAddr) -> Self {
        Self {
            to,
            headers: Vec::new(),
        }
    }

    /// The body of a call.
    #[must_use]
    pub fn body(method: &str, params: &impl serde::Serialize) -> String {
        json!({"jsonrpc": "2.0", "id": "r1", "method": method, "params": params}).to_string()
    }

    /// The result of a call, or the error it got.
    ///
    /// # Errors
    /// When the server refuses or does not answer.
    pub async fn call(
        &self,
        method: &str,
        params: &impl serde::Serialize,
    ) -> Result<Value, Failure> {
        let headers = self.headers_with(&[]);
        let answer = http::call(
            self.to,
            Method::POST,
            "/",
            &borrow(&headers),
            Self::body(method, params),
        )
        .await?;
        unwrap_answer(answer.json())
    }

    async fn open(
        &self,
        method: &str,
        params: &impl serde::Serialize,
        after: Option<u64>,
    ) -> Result<Box<dyn Events>, Failure> {
        let mut more = vec![("accept".to_owned(), "text/event-stream".to_owned())];
        more.extend(after.map(|number| ("last-event-id".to_owned(), number.to_string())));
        let headers = self.headers_with(&more);
        let body = Self::body(method, params);
        let open = http::open(self.to, Method::POST, "/", &borrow(&headers), body).await?;
        let kind = open.response.headers().get("content-type").cloned();
        assert_eq!(
            kind.as_ref().map(|kind| kind.as_bytes()),
            Some(&b"text/event-stream"[..])
        );
        let mut events = JsonRpcEvents {
            sse: SseReader::new(open),
            first: None,
        };
        // An error that came instead of a stream shows in the first event.
        events.first = Some(events.read().await?);
        Ok(Box::new(events))
    }

    fn headers_with(&self, more: &[(String, String)]) -> Vec<(String, String)> {
        let mut headers = vec![
            ("content-type".to_owned(), "application/json".to_owned()),
            ("a2a-version".to_owned(), "1.0".to_owned()),
        ];
        headers.extend(self.headers.iter().cloned());
        headers.extend(more.iter().cloned());
        headers
    }
}

pub(crate) fn borrow(headers: &[(String, String)]) -> Vec<(&str, &str)> {
    headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect()
}

fn unwrap_answer(mut answer: Value) -> Result<Value, Failure> {
    if let Some(error) = answer.get("error") {
        return Err(Failure::Refused {
            reason: error["data"][0]["reason"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            code: error["code"].as_i64().unwrap_or_default(),
            message: error["message"].as_str().unwrap_or_default().to_owned(),
        });
    }
    assert_eq!(answer["jsonrpc"], "2.0");
    assert_eq!(answer["id"], "r1");
    Ok(answer["result"].take())
}

pub(crate) fn typed<T: serde::de::DeserializeOwned>(value: &Value) -> T {
    let text = value.to_string();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

struct JsonRpcEvents {
    sse: SseReader,
    first: Option<Option<Event>>,
}

impl JsonRpcEvents {
    async fn read(&mut self) -> Result<Option<Event>, Failure> {
        let Some(event) = self.sse.next().await? else {
            return Ok(None);
        };
        assert_eq!(event.name, None, "RPC-08");
        let value: Value = serde_json::from_str(&event.data).expect("data is JSON");
        let result = unwrap_answer(value)?;
        let number = event.id.expect("every frame has an id");
        Ok(Some(Event {
            number: number.parse().expect("ids are numbers"),
            response: typed(&result),
        }))
    }
}

impl Events for JsonRpcEvents {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Event>, Failure>> {
        Box::pin(async move {
            match self.first.take() {
                Some(first) => Ok(first),
                None => self.read().await,
            }
        })
    }
}

impl Client for JsonRpc {
    fn send_any(
        &self,
        request: SendMessageRequest,
    ) -> BoxFuture<'_, Result<SendMessageResponse, Failure>> {
        Box::pin(async move { Ok(typed(&self.call("SendMessage", &request).await?)) })
    }

    fn stream(
        &self,
        request: SendMessageRequest,
        after: Option<u64>,
    ) -> BoxFuture<'_, Result<Box<dyn Events>, Failure>> {
        Box::pin(async move { self.open("SendStreamingMessage", &request, after).await })
    }

    fn get(&self, request: GetTaskRequest) -> BoxFuture<'_, Result<Task, Failure>> {
        Box::pin(async move { Ok(typed(&self.call("GetTask", &request).await?)) })
    }

    fn list(&self, request: ListTasksRequest) -> BoxFuture<'_, Result<ListTasksResponse, Failure>> {
        Box::pin(async move { Ok(typed(&self.call("ListTasks", &request).await?)) })
    }

    fn cancel(&self, id: &str) -> BoxFuture<'_, Result<Task, Failure>> {
        let request = CancelTaskRequest {
            id: id.to_owned(),
            ..CancelTaskRequest::default()
        };
        Box::pin(async move { Ok(typed(&self.call("CancelTask", &request).await?)) })
    }

    fn subscribe(
        &self,
        id: &str,
        after: Option<u64>,
    ) -> BoxFuture<'_, Result<Box<dyn Events>, Failure>> {
        let params = json!({"id": id});
        Box::pin(async move { self.open("SubscribeToTask", &params, after).await })
    }
}
