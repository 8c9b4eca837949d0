//! gRPC by hand: one connection per call, every header and trailer in sight.

mod status;

pub use status::Status;

use std::net::SocketAddr;
use std::time::Duration;

use a2ad_proto::pb::Message;
use a2ad_proto::{
    CancelTaskRequest, GetTaskRequest, ListTasksRequest, ListTasksResponse, Metadata,
    SendMessageRequest, SendMessageResponse, StreamResponse, SubscribeToTaskRequest, Task,
};
use bytes::{Buf as _, Bytes, BytesMut};
use futures_util::future::BoxFuture;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::{HeaderMap, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use crate::client::{Client, Event, Events, Failure, borrow};
use crate::http::Broken;

/// The extension by which frames carry their numbers.
pub const REPLAY: &str = "urn:a2ad:replay:v1";
/// The status of a server that stops.
pub const UNAVAILABLE: i32 = 14;

/// How long an answer may keep us waiting. Reached only by a test that fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// The path of an A2A method.
#[must_use]
pub fn path(method: &str) -> String {
    format!("/lf.a2a.v1.A2AService/{method}")
}

/// A message behind its length.
#[must_use]
pub fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).expect("a message of less than 4 GiB");
    [&[0], &length.to_be_bytes()[..], message].concat()
}

/// An answer whose messages are still coming. Dropping it closes the connection.
#[derive(Debug)]
pub struct Open {
    /// Status and headers.
    pub response: Response<Incoming>,
    buffer: BytesMut,
    trailers: Option<HeaderMap>,
    _connection: AbortOnDropHandle<()>,
}

/// A whole answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP status.
    pub http: StatusCode,
    /// The initial metadata.
    pub headers: HeaderMap,
    /// The messages, encoded.
    pub messages: Vec<Bytes>,
    /// The trailing metadata; none if the headers were all there was.
    pub trailers: Option<HeaderMap>,
}

impl Answer {
    /// How the call ended.
    #[must_use]
    pub fn status(&self) -> Status {
        let told = self.trailers.as_ref().unwrap_or(&self.headers);
        Status::read(told).expect("every call ends with a status")
    }
}

impl Open {
    /// The next message; `None` when the call has ended.
    ///
    /// # Errors
    /// When the connection broke, or ended in the middle of a message.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Broken> {
        loop {
            if let Some([flag, length @ ..]) = self.buffer.first_chunk::<5>() {
                assert_eq!(*flag, 0, "nothing is compressed");
                let length = u32::from_be_bytes(*length) as usize;
                if self.buffer.len() >= 5 + length {
                    self.buffer.advance(5);
                    return Ok(Some(self.buffer.split_to(length).freeze()));
                }
            }
            let frame = timeout(PATIENCE, self.response.body_mut().frame());
            match frame.await.expect("the answer goes on or ends") {
                Some(frame) => match frame?.into_data() {
                    Ok(data) => self.buffer.extend_from_slice(&data),
                    Err(frame) => self.trailers = frame.into_trailers().ok(),
                },
                None if self.buffer.is_empty() => return Ok(None),
                None => return Err(Broken("the call ended in the middle of a message".into())),
            }
        }
    }

    /// How the call ended, once it has.
    #[must_use]
    pub fn status(&self) -> Option<Status> {
        Status::read(self.trailers.as_ref().unwrap_or(self.response.headers()))
    }

    /// Reads the rest.
    ///
    /// # Errors
    /// When the connection breaks.
    pub async fn whole(mut self) -> Result<Answer, Broken> {
        let mut messages = Vec::new();
        while let Some(message) = self.next().await? {
            messages.push(message);
        }
        Ok(Answer {
            http: self.response.status(),
            headers: self.response.headers().clone(),
            messages,
            trailers: self.trailers,
        })
    }
}

/// Sends one request, its body as it is, and gives the answer as soon as its head is there.
///
/// # Errors
/// When there is no answer.
pub async fn open(
    to: SocketAddr,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Result<Open, Broken> {
    let stream = TcpStream::connect(to).await?;
    stream.set_nodelay(true)?;
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
    #[expect(
        clippy::disallowed_methods,
        reason = "aborted when the answer is dropped"
    )]
    let connection = AbortOnDropHandle::new(tokio::spawn(async move {
        let _closed = connection.await;
    }));
    let mut request = Request::post(format!("http://{to}{path}")).header("te", "trailers");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(body.into()))?;
    let response = timeout(PATIENCE, sender.send_request(request));
    let response = response.await.expect("there is an answer")?;
    Ok(Open {
        response,
        buffer: BytesMut::new(),
        trailers: None,
        _connection: connection,
    })
}

/// gRPC.
#[derive(Clone, Debug)]
pub struct Grpc {
    /// Where the server listens.
    pub to: SocketAddr,
    /// Further metadata for every call.
    pub metadata: Vec<(String, String)>,
}

impl Grpc {
    /// A client of the server at `to`.
    #[must_use]
    pub fn new(to: SocketAddr) -> Self {
        Self {
            to,
            metadata: Vec::new(),
        }
    }

    /// Calls a method with a message already encoded.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn open(
        &self,
        method: &str,
        metadata: &[(&str, &str)],
        message: &[u8],
    ) -> Result<Open, Broken> {
        let mut headers = vec![("content-type", "application/grpc")];
        headers.extend(borrow(&self.metadata));
        headers.extend(metadata);
        open(self.to, &path(method), &headers, framed(message)).await
    }

    /// Calls a method and reads the whole answer.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn call(
        &self,
        method: &str,
        metadata: &[(&str, &str)],
        message: &[u8],
    ) -> Result<Answer, Broken> {
        self.open(method, metadata, message).await?.whole().await
    }

    async fn one<T: Message>(&self, method: &str, request: &impl Message) -> Result<T, Failure> {
        let metadata = [("a2a-version", "1.0")];
        let answer = self
            .call(method, &metadata, &request.encode_to_vec())
            .await?;
        let status = answer.status();
        if status.code != 0 {
            assert!(answer.messages.is_empty(), "an error or an answer");
            assert!(answer.trailers.is_none(), "an error is all there is");
            return Err(status.failure());
        }
        let [message] = &answer.messages[..] else {
            panic!("{} answers to {method}", answer.messages.len());
        };
        Ok(T::decode(message).expect("an answer is of its type"))
    }

    async fn many(
        &self,
        method: &str,
        request: &impl Message,
        after: Option<u64>,
    ) -> Result<Box<dyn Events>, Failure> {
        let after = after.map(|number| number.to_string());
        let mut metadata = vec![("a2a-version", "1.0"), ("a2a-extensions", REPLAY)];
        metadata.extend(
            after
                .iter()
                .map(|number| ("last-event-id", number.as_str())),
        );
        let open = self
            .open(method, &metadata, &request.encode_to_vec())
            .await?;
        // An error that came instead of a stream is in the head (STREAM-11).
        if let Some(status) = Status::read(open.response.headers()) {
            return Err(status.failure());
        }
        assert_eq!(open.response.headers()["a2a-extensions"], REPLAY, "EXT-05");
        Ok(Box::new(GrpcEvents(open)))
    }
}

struct GrpcEvents(Open);

impl GrpcEvents {
    async fn read(&mut self) -> Result<Option<Event>, Failure> {
        let Some(message) = self.0.next().await? else {
            let status = self.0.status().expect("every call ends with a status");
            // A server that stops says so; on the other bindings the stream just ends.
            return match status.code {
                0 | UNAVAILABLE => Ok(None),
                _ => Err(status.failure()),
            };
        };
        let mut response = StreamResponse::decode(&message).expect("a frame is of its type");
        let number = take_number(&mut response).expect("every frame has a number");
        Ok(Some(Event { number, response }))
    }
}

impl Events for GrpcEvents {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Event>, Failure>> {
        Box::pin(self.read())
    }
}

/// Takes what the replay extension added out of a frame.
pub fn take_number(response: &mut StreamResponse) -> Option<u64> {
    let metadata = match response {
        StreamResponse::Task(task) => &mut task.metadata,
        StreamResponse::Message(message) => &mut message.metadata,
        StreamResponse::StatusUpdate(update) => &mut update.metadata,
        StreamResponse::ArtifactUpdate(update) => &mut update.metadata,
    };
    let mut map = metadata.as_ref()?.to_map();
    let number = map.remove(REPLAY)?["seq"].as_u64();
    *metadata = (!map.is_empty()).then(|| Metadata::from_map(&map));
    number
}

impl Client for Grpc {
    fn send_any(
        &self,
        request: SendMessageRequest,
    ) -> BoxFuture<'_, Result<SendMessageResponse, Failure>> {
        Box::pin(async move { self.one("SendMessage", &request).await })
    }

    fn stream(
        &self,
        request: SendMessageRequest,
        after: Option<u64>,
    ) -> BoxFuture<'_, Result<Box<dyn Events>, Failure>> {
        Box::pin(async move { self.many("SendStreamingMessage", &request, after).await })
    }

    fn get(&self, request: GetTaskRequest) -> BoxFuture<'_, Result<Task, Failure>> {
        Box::pin(async move { self.one("GetTask", &request).await })
    }

    fn list(&self, request: ListTasksRequest) -> BoxFuture<'_, Result<ListTasksResponse, Failure>> {
        Box::pin(async move { self.one("ListTasks", &request).await })
    }

    fn cancel(&self, id: &str) -> BoxFuture<'_, Result<Task, Failure>> {
        let request = CancelTaskRequest {
            id: id.to_owned(),
            ..CancelTaskRequest::default()
        };
        Box::pin(async move { self.one("CancelTask", &request).await })
    }

    fn subscribe(
        &self,
        id: &str,
        after: Option<u64>,
    ) -> BoxFuture<'_, Result<Box<dyn Events>, Failure>> {
        let request = SubscribeToTaskRequest {
            id: id.to_owned(),
            ..SubscribeToTaskRequest::default()
        };
        Box::pin(async move { self.many("SubscribeToTask", &request, after).await })
    }
}
