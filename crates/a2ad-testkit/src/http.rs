//! HTTP/1.1 by hand: one connection per call, nothing retried, nothing hidden.

use std::fmt::Write as _;
use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_util::task::AbortOnDropHandle;

/// Why a call got no answer.
#[derive(Debug)]
pub struct Broken(pub String);

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl<E: std::error::Error> From<E> for Broken {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// A whole answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl Answer {
    /// The body as JSON.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("no JSON: {error}: {:?}", self.body))
    }
}

/// An answer whose body is still coming. Dropping it closes the connection.
#[derive(Debug)]
pub struct Open {
    /// Status and headers, and the body to read.
    pub response: Response<Incoming>,
    _connection: AbortOnDropHandle<()>,
}

impl Open {
    /// Reads the rest.
    ///
    /// # Errors
    /// When the connection breaks.
    pub async fn whole(self) -> Result<Answer, Broken> {
        let (head, body) = self.response.into_parts();
        Ok(Answer {
            status: head.status,
            headers: head.headers,
            body: body.collect().await?.to_bytes(),
        })
    }
}

/// Sends one request and gives the answer as soon as its head is there.
pub async fn open(
    to: SocketAddr,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Result<Open, Broken> {
    let stream = TcpStream::connect(to).await?;
    stream.set_nodelay(true)?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    #[expect(
        clippy::disallowed_methods,
        reason = "aborted when the answer is dropped"
    )]
    let connection = AbortOnDropHandle::new(tokio::spawn(async move {
        let _closed = connection.await;
    }));
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", to.to_string());
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(body.into()))?;
    let response = sender.send_request(request).await?;
    Ok(Open {
        response,
        _connection: connection,
    })
}

/// Sends one request and reads the whole answer.
pub async fn call(
    to: SocketAddr,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Result<Answer, Broken> {
    open(to, method, path, headers, body).await?.whole().await
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

/// One server-sent event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// The `event:` field.
    pub name: Option<String>,
    /// The `id:` field.
    pub id: Option<String>,
    /// The `data:` fields, joined.
    pub data: String,
}

/// Reads server-sent events from an open answer.
#[derive(Debug)]
pub struct SseReader {
    open: Open,
    buffer: BytesMut,
    /// Comment lines seen so far.
    pub comments: usize,
}

impl SseReader {
    /// Reads the body of `open`.
    #[must_use]
    pub fn new(open: Open) -> Self {
        Self {
            open,
            buffer: BytesMut::new(),
            comments: 0,
        }
    }

    /// The next event; `None` when the server ended the stream in good order.
    ///
    /// # Errors
    /// When the connection broke, or ended in the middle of an event.
    pub async fn next(&mut self) -> Result<Option<SseEvent>, Broken> {
        loop {
            if let Some(event) = self.take_event() {
                return Ok(Some(event));
            }
            match self.open.response.body_mut().frame().await {
                Some(frame) => {
                    if let Some(data) = frame?.data_ref() {
                        self.buffer.extend_from_slice(data);
                    }
                }
                None if self.buffer.is_empty() => return Ok(None),
                None => return Err(Broken("the stream ended in the middle of an event".into())),
            }
        }
    }

    fn take_event(&mut self) -> Option<SseEvent> {
        loop {
            let end = self.buffer.windows(2).position(|pair| pair == b"\n\n")?;
            let block = self.buffer.split_to(end + 2);
            let text = std::str::from_utf8(&block).expect("a stream is UTF-8");
            let mut event = SseEvent::default();
            let mut has_data = false;
            for line in text.lines().filter(|line| !line.is_empty()) {
                if line.starts_with(':') {
                    self.comments += 1;
                } else if let Some(id) = line.strip_prefix("id: ") {
                    event.id = Some(id.to_owned());
                } else if let Some(name) = line.strip_prefix("event: ") {
                    event.name = Some(name.to_owned());
                } else if let Some(data) = line.strip_prefix("data: ") {
                    assert!(!has_data, "data in one line (SSE-01)");
                    has_data = true;
                    event.data = data.to_owned();
                } else {
                    panic!("unexpected line in a stream: {line:?}");
                }
            }
            if has_data {
                return Some(event);
            }
        }
    }
}
