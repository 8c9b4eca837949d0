//! Event streams: frames of the journal as server-sent events (RPC-07, SSE-01).

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

use crate::errors::Fault;
use crate::limits::Limits;
use crate::meters::Gauge;
use crate::operations::FrameSource;
use crate::reply::Body;

const COMMENT: &[u8] = b": keep-alive\n\n";

/// The body of a stream. It holds no queue: frames are asked for when the connection has room for them.
pub(crate) struct Events(Pin<Box<dyn Stream<Item = Bytes> + Send>>);

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Events")
    }
}

impl Events {
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.0.as_mut().poll_next(cx)
    }

    /// A stream that shows `first`, then what `source` gives, as answers to the request `id`. It ends with the
    /// source, after an error, or between two frames when `stop` fires.
    pub(crate) fn follow(
        id: Box<RawValue>,
        first: Vec<Frame>,
        source: Option<Box<dyn FrameSource>>,
        stop: CancellationToken,
        limits: &Limits,
    ) -> Self {
        let following = Following {
            id,
            ready: first.into_iter(),
            source,
            stop,
            keep_alive: limits.sse_keep_alive,
            chunk_bytes: limits.sse_chunk_bytes,
            _open: Gauge::open_stream(),
        };
        Self(Box::pin(unfold(following, Following::step)))
    }
}

struct Following {
    id: Box<RawValue>,
    /// Frames fetched but not yet written; never more than one batch.
    ready: std::vec::IntoIter<Frame>,
    source: Option<Box<dyn FrameSource>>,
    stop: CancellationToken,
    keep_alive: Duration,
    chunk_bytes: usize,
    _open: Gauge,
}

impl Following {
    async fn step(mut self) -> Option<(Bytes, Self)> {
        loop {
            if let Some(chunk) = self.chunk() {
                return Some((chunk, self));
            }
            let source = self.source.as_mut()?;
            let batch = tokio::select! {
                biased;
                () = self.stop.cancelled() => return None,
                batch = source.next() => batch,
                () = sleep(self.keep_alive) => return Some((Bytes::from_static(COMMENT), self)),
            };
            match batch? {
                Ok(frames) => self.ready = frames.into_iter(),
                Err(error) => {
                    self.source = None;
                    let event = error_event(&self.id, &Fault::from(error));
                    return Some((event, self));
                }
            }
        }
    }

    /// All frames at hand in one piece, so that a burst is one write.
    fn chunk(&mut self) -> Option<Bytes> {
        let size = |frame: &Frame| frame.bytes.len() + self.id.get().len() + 64;
        let mut room = self.chunk_bytes;
        let fitting = self.ready.as_slice().iter().take_while(|frame| {
            let fits = size(frame) <= room;
            room = room.saturating_sub(size(frame));
            fits
        });
        // The first goes out whatever its size.
        let count = fitting.count().max(1).min(self.ready.len());
        let bytes = self.ready.as_slice()[..count].iter().map(size).sum();
        let mut chunk = Vec::with_capacity(bytes);
        for frame in self.ready.by_ref().take(count) {
            write_event(&mut chunk, &self.id, &frame);
        }
        (!chunk.is_empty()).then(|| Bytes::from(chunk))
    }
}

fn write_event(out: &mut Vec<u8>, id: &RawValue, frame: &Frame) {
    // Stored frames are compact JSON: a line break would end the event early.
    debug_assert!(!frame.bytes.contains(&b'\n') && !frame.bytes.contains(&b'\r'));
    out.extend_from_slice(b"id: ");
    out.extend_from_slice(frame.number.to_string().as_bytes());
    out.extend_from_slice(b"\ndata: {\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.get().as_bytes());
    out.extend_from_slice(b",\"result\":");
    out.extend_from_slice(&frame.bytes);
    out.extend_from_slice(b"}\n\n");
}

/// An error as an event without a name or a number: it is no frame, so nobody resumes after it.
fn error_event(id: &RawValue, fault: &Fault) -> Bytes {
    let mut event = b"data: ".to_vec();
    event.extend_from_slice(&fault.json_rpc(id));
    event.extend_from_slice(b"\n\n");
    event.into()
}

/// The answer that carries a stream.
pub(crate) fn open(events: Events) -> Response<Body> {
    with_headers(Body::Events(events))
}

/// The answer to a failed request of a caller that reads nothing but events (RPC-08).
pub(crate) fn refuse(id: &RawValue, fault: &Fault) -> Response<Body> {
    with_headers(Body::Full(error_event(id, fault)))
}

fn with_headers(body: Body) -> Response<Body> {
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
