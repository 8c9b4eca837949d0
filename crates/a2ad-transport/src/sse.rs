//! Event streams: frames of the journal as server-sent events (RPC-07, REST-09, SSE-01).

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use a2ad_core::engine::Frame;
use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::unfold;
use http::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response};
use serde_json::value::RawValue;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::call;
use crate::errors::Fault;
use crate::follow::{Fetched, Follow};
use crate::limits::Limits;
use crate::listen::Connection;
use crate::reply::Body;

pub(crate) const COMMENT: &[u8] = b": keep-alive\n\n";

/// What is written around a frame, which differs by binding.
#[derive(Clone, Debug)]
pub(crate) enum Wrap {
    /// A JSON-RPC response to the request of this id (RPC-07).
    JsonRpc(Box<RawValue>),
    /// Nothing (REST-09).
    Bare,
}

impl Wrap {
    /// An upper bound of what it adds to a frame, number included.
    fn bytes(&self) -> usize {
        64 + match self {
            Self::JsonRpc(id) => id.get().len(),
            Self::Bare => 0,
        }
    }

    fn write(&self, out: &mut Vec<u8>, json: &[u8]) {
        match self {
            Self::JsonRpc(id) => {
                out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
                out.extend_from_slice(id.get().as_bytes());
                out.extend_from_slice(b",\"result\":");
                out.extend_from_slice(json);
                out.extend_from_slice(b"}");
            }
            Self::Bare => out.extend_from_slice(json),
        }
    }

    /// An error as an event without a number: it is no frame, so nobody resumes after it. Over JSON-RPC it has no
    /// name either, as clients look for errors in every event (RPC-08); over HTTP+JSON it does (REST-10).
    fn error(&self, fault: &Fault) -> Bytes {
        let (name, json) = match self {
            Self::JsonRpc(id) => ("", fault.json_rpc(id)),
            Self::Bare => ("event: error\n", fault.http_json()),
        };
        [name.as_bytes(), b"data: ", &json, b"\n\n"].concat().into()
    }
}

/// The body of a stream. It holds no queue: frames are asked for when the connection has room for them.
pub(crate) struct Events(Pin<Box<dyn Stream<Item = Bytes> + Send>>);

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Events")
    }
}

impl Events {
    /// The events that `stream` has written.
    pub(crate) fn new(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self(Box::pin(stream))
    }

    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.0.as_mut().poll_next(cx)
    }

    /// The frames of `stream`, each in `wrap`. The body ends with the stream, after an error, or between two frames
    /// when `stop` fires.
    pub(crate) fn follow(
        wrap: Wrap,
        stream: call::Stream,
        stop: CancellationToken,
        limits: &Limits,
    ) -> Self {
        let writing = Writing {
            wrap,
            follow: Follow::new(stream, stop),
            failed: false,
            keep_alive: limits.sse_keep_alive,
            chunk_bytes: limits.sse_chunk_bytes,
        };
        Self::new(unfold(writing, Writing::step))
    }
}

struct Writing {
    wrap: Wrap,
    follow: Follow,
    failed: bool,
    keep_alive: Duration,
    chunk_bytes: usize,
}

impl Writing {
    async fn step(mut self) -> Option<(Bytes, Self)> {
        loop {
            if let Some(chunk) = self.chunk() {
                return Some((chunk, self));
            }
            if self.failed {
                return None;
            }
            let fetched = tokio::select! {
                biased;
                fetched = self.follow.fetch() => fetched,
                () = sleep(self.keep_alive) => return Some((Bytes::from_static(COMMENT), self)),
            };
            match fetched {
                Fetched::Frames => {}
                Fetched::End { .. } => return None,
                Fetched::Failed(fault) => {
                    self.failed = true;
                    let event = self.wrap.error(&fault);
                    return Some((event, self));
                }
            }
        }
    }

    /// All frames at hand in one piece, so that a burst is one write.
    fn chunk(&mut self) -> Option<Bytes> {
        let size = |frame: &Frame| frame.bytes.len() + self.wrap.bytes();
        let mut room = self.chunk_bytes;
        let fitting = self.follow.ready.as_slice().iter().take_while(|frame| {
            let fits = size(frame) <= room;
            room = room.saturating_sub(size(frame));
            fits
        });
        // The first goes out whatever its size.
        let count = fitting.count().max(1).min(self.follow.ready.len());
        let bytes = self.follow.ready.as_slice()[..count].iter().map(size).sum();
        let mut chunk = Vec::with_capacity(bytes);
        for frame in self.follow.ready.by_ref().take(count) {
            write_event(&mut chunk, &self.wrap, &frame);
        }
        (!chunk.is_empty()).then(|| Bytes::from(chunk))
    }
}

fn write_event(out: &mut Vec<u8>, wrap: &Wrap, frame: &Frame) {
    // Stored frames are compact JSON: a line break would end the event early.
    debug_assert!(!frame.bytes.contains(&b'\n') && !frame.bytes.contains(&b'\r'));
    out.extend_from_slice(b"id: ");
    out.extend_from_slice(itoa::Buffer::new().format(frame.number.0).as_bytes());
    out.extend_from_slice(b"\ndata: ");
    wrap.write(out, &frame.bytes);
    out.extend_from_slice(b"\n\n");
}

/// The answer that carries a stream.
pub(crate) fn open(
    wrap: Wrap,
    stream: call::Stream,
    connection: &Connection,
    limits: &Limits,
) -> Response<Body> {
    let stop = connection.stop().clone();
    with_headers(Body::Events(Events::follow(wrap, stream, stop, limits)))
}

/// The answer to a failed request of a caller that reads nothing but events (RPC-08).
pub(crate) fn refuse(wrap: &Wrap, fault: &Fault) -> Response<Body> {
    with_headers(Body::Full(wrap.error(fault)))
}

pub(crate) fn with_headers(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(CONNECTION, HeaderValue::from_static("keep-alive"));
    // nginx would otherwise collect events before it passes them on.
    headers.insert(
        HeaderName::from_static("x-accel-buffering"),
        HeaderValue::from_static("no"),
    );
    response
}

#[cfg(test)]
mod tests;
