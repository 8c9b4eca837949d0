//! gRPC by hand: one connection per call, every header and trailer in sight.

mod status;

pub use status::Status;

use std::net::SocketAddr;
use std::time::Duration;

use a2ad_proto::{Metadata, StreamResponse};
use bytes::{Buf as _, Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::{HeaderMap, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

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
        let own = self.metadata.iter();
        headers.extend(own.map(|(name, value)| (name.as_str(), value.as_str())));
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
