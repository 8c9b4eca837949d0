//! A client for scenarios: the same operations whatever the binding underneath. It is `a2ad_client`, with nothing
//! retried and nothing resumed: a scenario sees what the server does.

use std::net::SocketAddr;

use a2ad_client::dial::Dialer;
use a2ad_client::{Binding, Builder, CallOptions, Error, Frames, REPLAY};
use a2ad_proto::{
    AgentCapabilities, AgentCard, AgentExtension, AgentInterface, ErrorKind, GetTaskRequest,
    ListTasksRequest, ListTasksResponse, Message, Part, Role, SendMessageRequest,
    SendMessageResponse, StreamResponse, Task,
};
use futures_util::future::BoxFuture;
use hyper::Method;

use crate::http::{self, Broken, encode};

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

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused(refusal) => Self::Refused {
                reason: refusal.reason.clone(),
                code: refusal.code,
                message: refusal.message.clone(),
            },
            Error::NotA2a { .. } => panic!("{error}"),
            other => Self::Broken(Broken(with_causes(&other))),
        }
    }
}

/// An error with all that led to it, in a line.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
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

/// The real client, at one binding.
#[derive(Clone, Debug)]
pub struct Driven {
    /// The client itself, for what only it can do.
    pub client: a2ad_client::Client,
    binding: Binding,
    to: SocketAddr,
}

impl Driven {
    /// A client of the server at `to`, by the way of its card.
    ///
    /// # Panics
    /// When there is no card, or the card does not list the binding.
    pub async fn connect(to: SocketAddr, binding: Binding) -> Self {
        let dialer = Dialer::unguarded().expect("a dialer");
        let client = plain(to, binding, dialer).connect().await;
        Self {
            client: client.expect("the server has a card"),
            binding,
            to,
        }
    }

    /// A client of the server at `to`, without asking it for anything.
    #[must_use]
    pub fn at(to: SocketAddr, binding: Binding, dialer: Dialer) -> Self {
        let interface = AgentInterface {
            url: format!("http://{to}/"),
            protocol_binding: binding.name().to_owned(),
            protocol_version: "1.0".to_owned(),
            tenant: String::new(),
        };
        let replay = AgentExtension {
            uri: REPLAY.to_owned(),
            ..AgentExtension::default()
        };
        let card = AgentCard {
            supported_interfaces: vec![interface],
            capabilities: AgentCapabilities {
                streaming: Some(true),
                extensions: vec![replay],
                ..AgentCapabilities::default()
            },
            ..AgentCard::default()
        };
        let client = plain(to, binding, dialer).with_card(card);
        Self {
            client: client.expect("the card lists the binding"),
            binding,
            to,
        }
    }

    /// A task, or the answer to a call with an id that the client does not put into a URL: it is empty, or too long.
    /// The server has to answer it all the same.
    async fn or_by_hand(
        &self,
        task: Result<Task, Error>,
        verb: Method,
        path: String,
    ) -> Result<Task, Failure> {
        match task {
            Err(Error::Invalid { .. } | Error::Forbidden(_))
                if self.binding == Binding::HttpJson =>
            {
                let headers = [("a2a-version", "1.0")];
                let answer = http::call(self.to, verb, &path, &headers, "").await;
                let answer = answer.map_err(Failure::Broken)?.json();
                let reason = answer["error"]["details"][0]["reason"].as_str();
                Err(Failure::Refused {
                    reason: reason.expect("a refusal").to_owned(),
                    code: answer["error"]["code"].as_i64().unwrap_or_default(),
                    message: String::new(),
                })
            }
            task => Ok(task?),
        }
    }
}

fn plain(to: SocketAddr, binding: Binding, dialer: Dialer) -> Builder {
    a2ad_client::Client::builder(&format!("http://{to}"))
        .dialer(dialer)
        .binding(binding)
        .retries(|retries| retries.calls = 0)
}

struct DrivenEvents {
    frames: Frames,
    binding: Binding,
    first: Option<Option<Event>>,
}

impl DrivenEvents {
    async fn open(frames: Frames, binding: Binding) -> Result<Box<dyn Events>, Failure> {
        let mut events = Self {
            frames,
            binding,
            first: None,
        };
        // Over JSON-RPC, an error that came instead of a stream shows in the first event.
        if binding == Binding::JsonRpc {
            events.first = Some(events.read().await?);
        }
        Ok(Box::new(events))
    }

    async fn read(&mut self) -> Result<Option<Event>, Failure> {
        match self.frames.next().await {
            Ok(Some(event)) => Ok(Some(Event {
                number: event.number.expect("every frame has a number"),
                response: event.response,
            })),
            Ok(None) => Ok(None),
            // A server that stops says so; on the other bindings the stream just ends.
            Err(error)
                if self.binding == Binding::Grpc
                    && error.kind() == Some(ErrorKind::Unavailable) =>
            {
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl Events for DrivenEvents {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Event>, Failure>> {
        Box::pin(async move {
            match self.first.take() {
                Some(first) => Ok(first),
                None => self.read().await,
            }
        })
    }
}

impl Client for Driven {
    fn send_any(
        &self,
        request: SendMessageRequest,
    ) -> BoxFuture<'_, Result<SendMessageResponse, Failure>> {
        Box::pin(async move {
            let options = CallOptions::default();
            Ok(self.client.send_once(request, &options).await?)
        })
    }

    fn stream(
        &self,
        request: SendMessageRequest,
        after: Option<u64>,
    ) -> BoxFuture<'_, Result<Box<dyn Events>, Failure>> {
        Box::pin(async move {
            let options = CallOptions::default();
            let frames = self.client.stream_once(request, after, &options).await?;
            DrivenEvents::open(frames, self.binding).await
        })
    }

    fn get(&self, request: GetTaskRequest) -> BoxFuture<'_, Result<Task, Failure>> {
        Box::pin(async move {
            let path = format!("/tasks/{}", encode(&request.id));
            let task = self.client.get_with(request).await;
            self.or_by_hand(task, Method::GET, path).await
        })
    }

    fn list(&self, request: ListTasksRequest) -> BoxFuture<'_, Result<ListTasksResponse, Failure>> {
        Box::pin(async move { Ok(self.client.list(request).await?) })
    }

    fn cancel(&self, id: &str) -> BoxFuture<'_, Result<Task, Failure>> {
        let id = id.to_owned();
        Box::pin(async move {
            let path = format!("/tasks/{}:cancel", encode(&id));
            let task = self.client.cancel(&id).await;
            self.or_by_hand(task, Method::POST, path).await
        })
    }

    fn subscribe(
        &self,
        id: &str,
        after: Option<u64>,
    ) -> BoxFuture<'_, Result<Box<dyn Events>, Failure>> {
        let id = id.to_owned();
        Box::pin(async move {
            let options = CallOptions::default();
            let frames = self.client.subscribe_once(&id, after, &options).await?;
            DrivenEvents::open(frames, self.binding).await
        })
    }
}
