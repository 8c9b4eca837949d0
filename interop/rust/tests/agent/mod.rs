//! The served agent, as a user of the official Rust client sees it over one binding.

use std::fmt::Debug;
use std::sync::Arc;

use a2a::{
    A2AError, AgentCard, CancelTaskRequest, GetTaskRequest, ListTasksRequest, Message, Part, Role,
    SendMessageConfiguration, SendMessageRequest, SendMessageResponse, StreamResponse,
    SubscribeToTaskRequest, TRANSPORT_PROTOCOL_GRPC, TRANSPORT_PROTOCOL_HTTP_JSON,
    TRANSPORT_PROTOCOL_JSONRPC, Task, TaskPushNotificationConfig,
};
use a2a_client::agent_card::AgentCardResolver;
use a2a_client::jsonrpc::JsonRpcTransportFactory;
use a2a_client::rest::RestTransportFactory;
use a2a_client::{A2AClient, A2AClientFactory, BoxStream, Transport, TransportFactory};
use a2a_grpc::GrpcTransportFactory;
use futures_util::StreamExt as _;
use serde_json::Value;

pub(crate) type Frames = BoxStream<'static, Result<StreamResponse, A2AError>>;

pub(crate) struct Agent {
    pub(crate) card: AgentCard,
    pub(crate) client: A2AClient<Box<dyn Transport>>,
}

impl Agent {
    /// A client made from the card that the server gives out.
    pub(crate) async fn over(url: &str, binding: &str) -> Self {
        let card = AgentCardResolver::new(None).resolve(url).await.unwrap();
        let transport: Arc<dyn TransportFactory> = match binding {
            TRANSPORT_PROTOCOL_JSONRPC => Arc::new(JsonRpcTransportFactory::new(None)),
            TRANSPORT_PROTOCOL_HTTP_JSON => Arc::new(RestTransportFactory::new(None)),
            TRANSPORT_PROTOCOL_GRPC => Arc::new(GrpcTransportFactory::new()),
            other => panic!("the client has no binding {other}"),
        };
        // Nothing to fall back to: a binding that the card lacks is an error.
        let factory = A2AClientFactory::builder()
            .no_defaults()
            .register(transport)
            .preferred_bindings(vec![binding.to_owned()])
            .build();
        let client = factory.create_from_card(&card).await.unwrap();
        Self { card, client }
    }

    /// SendMessage, where a task is the answer.
    pub(crate) async fn send(&self, send: Send) -> Result<Task, A2AError> {
        match self.client.send_message(&send.request()).await? {
            SendMessageResponse::Task(task) => Ok(task),
            SendMessageResponse::Message(message) => panic!("a message came: {message:?}"),
        }
    }

    pub(crate) async fn stream(&self, send: Send) -> Result<Frames, A2AError> {
        self.client.send_streaming_message(&send.request()).await
    }

    pub(crate) async fn subscribe(&self, id: &str) -> Result<Frames, A2AError> {
        let request = SubscribeToTaskRequest {
            id: id.to_owned(),
            tenant: None,
        };
        self.client.subscribe_to_task(&request).await
    }

    pub(crate) async fn get(&self, id: &str, history: Option<i32>) -> Result<Task, A2AError> {
        let request = GetTaskRequest {
            id: id.to_owned(),
            history_length: history,
            tenant: None,
        };
        self.client.get_task(&request).await
    }

    pub(crate) async fn cancel(&self, id: &str) -> Result<Task, A2AError> {
        let request = CancelTaskRequest {
            id: id.to_owned(),
            metadata: None,
            tenant: None,
        };
        self.client.cancel_task(&request).await
    }
}

/// A message to send.
pub(crate) struct Send(SendMessageRequest);

impl Send {
    pub(crate) fn text(text: &str) -> Self {
        Self::parts(vec![Part::text(text)])
    }

    /// A message that has no parts, which is wrong.
    pub(crate) fn nothing() -> Self {
        Self::parts(Vec::new())
    }

    fn parts(parts: Vec<Part>) -> Self {
        Self(SendMessageRequest {
            message: Message::new(Role::User, parts),
            configuration: None,
            metadata: None,
            tenant: None,
        })
    }

    pub(crate) fn message_id(mut self, id: &str) -> Self {
        self.0.message.message_id = id.to_owned();
        self
    }

    pub(crate) fn for_task(mut self, id: &str) -> Self {
        self.0.message.task_id = Some(id.to_owned());
        self
    }

    pub(crate) fn in_context(mut self, id: &str) -> Self {
        self.0.message.context_id = Some(id.to_owned());
        self
    }

    pub(crate) fn in_task(self, task: &Task) -> Self {
        self.for_task(&task.id).in_context(&task.context_id)
    }

    pub(crate) fn at_once(mut self) -> Self {
        self.configuration().return_immediately = Some(true);
        self
    }

    pub(crate) fn push(mut self, url: &str) -> Self {
        self.configuration().task_push_notification_config = Some(TaskPushNotificationConfig {
            url: url.to_owned(),
            id: None,
            task_id: String::new(),
            token: None,
            authentication: None,
            tenant: None,
        });
        self
    }

    fn configuration(&mut self) -> &mut SendMessageConfiguration {
        let none = SendMessageConfiguration {
            accepted_output_modes: None,
            task_push_notification_config: None,
            history_length: None,
            return_immediately: None,
        };
        self.0.configuration.get_or_insert(none)
    }

    pub(crate) fn request(self) -> SendMessageRequest {
        self.0
    }
}

/// A request for the tasks of a context.
pub(crate) fn listing(context: &str) -> ListTasksRequest {
    ListTasksRequest {
        context_id: Some(context.to_owned()),
        status: None,
        page_size: None,
        page_token: None,
        history_length: None,
        status_timestamp_after: None,
        include_artifacts: None,
        tenant: None,
    }
}

pub(crate) fn words(parts: &[Part]) -> String {
    let words: Vec<_> = parts.iter().filter_map(Part::as_text).collect();
    words.join("|")
}

/// A frame as a line that is easy to compare. Every frame has to be of the task.
pub(crate) fn shown(frame: StreamResponse, task: &Task) -> String {
    let (ids, line) = match frame {
        StreamResponse::Task(it) => {
            let line = format!("task {:?}", it.status.state);
            ((it.id, it.context_id), line)
        }
        StreamResponse::StatusUpdate(it) => {
            let mut line = format!("status {:?}", it.status.state);
            if let Some(message) = it.status.message {
                line = format!("{line}: {}", words(&message.parts));
            }
            ((it.task_id, it.context_id), line)
        }
        StreamResponse::ArtifactUpdate(it) => {
            let append = if it.append == Some(true) {
                "append"
            } else {
                "new"
            };
            let last = if it.last_chunk == Some(true) {
                " last"
            } else {
                ""
            };
            let words = words(&it.artifact.parts);
            let line = format!(
                "artifact {} {append}{last}: {words}",
                it.artifact.artifact_id
            );
            ((it.task_id, it.context_id), line)
        }
        StreamResponse::Message(it) => panic!("a message came: {it:?}"),
    };
    assert_eq!(ids, (task.id.clone(), task.context_id.clone()));
    line
}

/// The next frame of a stream that is not to end yet.
pub(crate) async fn next(frames: &mut Frames) -> StreamResponse {
    let frame = frames.next().await.expect("the stream ended too early");
    frame.unwrap()
}

/// The task that a stream opens with.
pub(crate) async fn opening(frames: &mut Frames) -> Task {
    match next(frames).await {
        StreamResponse::Task(task) => task,
        other => panic!("the stream opened with {other:?}"),
    }
}

/// What is left of a stream, up to its end.
pub(crate) async fn rest(mut frames: Frames, task: &Task) -> Vec<String> {
    let mut seen = Vec::new();
    while let Some(frame) = frames.next().await {
        seen.push(shown(frame.unwrap(), task));
    }
    seen
}

/// Nothing is left of a stream.
pub(crate) async fn ended(mut frames: Frames) {
    let frame = frames.next().await;
    assert!(frame.is_none(), "{frame:?}");
}

/// A call that failed so.
pub(crate) fn refused<T: Debug>(code: i32, answer: Result<T, A2AError>) {
    let error = answer.expect_err("a refusal");
    assert_eq!(error.code, code, "{error:?}");
}

/// A stream that failed so before its first frame, and then is over.
pub(crate) async fn refused_stream(code: i32, answer: Result<Frames, A2AError>) {
    match answer {
        Err(error) => assert_eq!(error.code, code, "{error:?}"),
        Ok(mut frames) => {
            let first = frames.next().await.expect("an error, not an empty stream");
            refused(code, first);
            ended(frames).await;
        }
    }
}

/// The value with every number as a floating one.
pub(crate) fn floats(value: &Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().into(),
        Value::Array(values) => values.iter().map(floats).collect(),
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(name, value)| (name.clone(), floats(value)));
            Value::Object(members.collect())
        }
        other => other.clone(),
    }
}
