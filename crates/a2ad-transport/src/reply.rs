//! Answers: their bodies and the headers they share.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{HeaderMap, Response, StatusCode};
use http_body::{Frame, SizeHint};

use crate::errors::{self, Fault};
use crate::limits::Limits;
use crate::listen::InFlight;
use crate::sse::Events;

pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub(crate) const A2A_JSON: HeaderValue = HeaderValue::from_static("application/a2a+json");
pub(crate) const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// The body of an answer.
#[derive(Debug)]
pub(crate) enum Body {
    /// Bytes at hand; empty once taken.
    Full(Bytes),
    /// Events as they come.
    Events(Events),
    /// gRPC messages as they come, and a status behind them.
    Grpc(tonic::body::Body),
}

/// A body together with the mark that its request is in flight, which goes when the body is done.
#[derive(Debug)]
pub(crate) struct Answer {
    body: Body,
    _in_flight: InFlight,
}

impl Answer {
    pub(crate) fn new(body: Body, in_flight: InFlight) -> Self {
        Self {
            body,
            _in_flight: in_flight,
        }
    }
}

/// An answer with a whole body.
pub(crate) fn whole(
    status: StatusCode,
    content_type: HeaderValue,
    body: impl Into<Bytes>,
) -> Response<Body> {
    let mut response = Response::new(Body::Full(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// The answer to a request that failed: `body` shows the fault in the form of some binding.
pub(crate) fn error(
    fault: &Fault,
    status: StatusCode,
    content_type: HeaderValue,
    body: Vec<u8>,
    limits: &Limits,
) -> Response<Body> {
    let mut response = whole(status, content_type, body);
    let headers = response.headers_mut();
    if errors::is_transient(fault.kind) {
        headers.insert(RETRY_AFTER, limits.retry_after.as_secs().max(1).into());
    }
    if fault.close {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// The same answer without its body, as HEAD wants it.
pub(crate) fn without_body(mut response: Response<Body>) -> Response<Body> {
    if let Body::Full(bytes) = response.body() {
        let length = HeaderValue::from(bytes.len());
        response.headers_mut().insert(CONTENT_LENGTH, length);
    }
    response.map(|_| Body::Full(Bytes::new()))
}

fn trailers(status: &tonic::Status) -> Frame<Bytes> {
    let mut trailers = HeaderMap::new();
    // Fails for a status that is no header, and then there is none to tell.
    drop(status.add_header(&mut trailers));
    Frame::trailers(trailers)
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match &mut self.body {
            Body::Full(bytes) if bytes.is_empty() => Poll::Ready(None),
            Body::Full(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Body::Events(events) => events
                .poll_next(cx)
                .map(|chunk| chunk.map(|bytes| Ok(Frame::data(bytes)))),
            Body::Grpc(messages) => {
                let frame = ready!(Pin::new(messages).poll_frame(cx));
                // A body of tonic's own says what went wrong in its trailers; if it ever does otherwise, so do we.
                Poll::Ready(frame.map(|frame| Ok(frame.unwrap_or_else(|status| trailers(&status)))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.body {
            Body::Full(bytes) => bytes.is_empty(),
            Body::Events(_) => false,
            Body::Grpc(messages) => messages.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            Body::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Body::Events(_) | Body::Grpc(_) => SizeHint::default(),
        }
    }
}
