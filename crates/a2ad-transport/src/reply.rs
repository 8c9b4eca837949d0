//! Answers: their bodies and the headers they share.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use http_body::{Body as _, Frame, SizeHint};

use crate::errors::{self, Fault};
use crate::grpc;
use crate::limits::Limits;
use crate::listen::{InFlight, note_asked, note_given};
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
    Grpc(grpc::Messages),
    /// What tonic answers for its own services.
    Tonic(tonic::body::Body),
}

/// How much of an answer HTTP/2 is given at once. It asks for more when what it has fits into the peer's window, so
/// this is also how much a peer must take to be seen taking something.
const PIECE_BYTES: usize = 16 * 1024;
/// How much the last piece of a frame has at most. HTTP/2 sends as much of it as the window allows and is done with
/// it; the rest stays in memory for as long as the peer likes.
const LAST_PIECE_BYTES: usize = 4 * 1024;

/// A body together with the mark that its request is in flight, which goes when the body is done.
#[derive(Debug)]
pub(crate) struct Answer {
    body: Body,
    /// What the body gave that was not passed on yet.
    rest: Bytes,
    /// HTTP/1 has a socket to itself and is not helped by pieces.
    in_pieces: bool,
    _in_flight: InFlight,
}

impl Answer {
    pub(crate) fn new(body: Body, in_flight: InFlight, in_pieces: bool) -> Self {
        Self {
            body,
            rest: Bytes::new(),
            in_pieces,
            _in_flight: in_flight,
        }
    }
}

impl Body {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Frame<Bytes>>> {
        match self {
            Self::Full(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Full(bytes) => Poll::Ready(Some(Frame::data(std::mem::take(bytes)))),
            Self::Events(events) => events.poll_next(cx).map(|chunk| chunk.map(Frame::data)),
            Self::Grpc(messages) => messages.poll_frame(cx),
            Self::Tonic(messages) => {
                let frame = ready!(Pin::new(messages).poll_frame(cx));
                // A body of tonic's own says what went wrong in its trailers; if it ever does otherwise, so do we.
                Poll::Ready(
                    frame.map(|frame| frame.unwrap_or_else(|status| grpc::trailers(&status))),
                )
            }
        }
    }
}

/// Takes the next piece.
fn piece(rest: &mut Bytes) -> Bytes {
    let size = match rest.len().checked_sub(LAST_PIECE_BYTES) {
        None | Some(0) => rest.len(),
        Some(before_last) => before_last.min(PIECE_BYTES),
    };
    rest.split_to(size)
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

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = &mut *self;
        if !this.in_pieces {
            return this.body.poll_frame(cx).map(|frame| frame.map(Ok));
        }
        note_asked();
        if this.rest.is_empty() {
            match ready!(this.body.poll_frame(cx)).map(Frame::into_data) {
                Some(Ok(data)) => this.rest = data,
                Some(Err(other)) => return Poll::Ready(Some(Ok(other))),
                None => return Poll::Ready(None),
            }
        }
        note_given();
        Poll::Ready(Some(Ok(Frame::data(piece(&mut this.rest)))))
    }

    fn is_end_stream(&self) -> bool {
        let over = match &self.body {
            Body::Full(bytes) => bytes.is_empty(),
            Body::Events(_) => false,
            Body::Grpc(messages) => messages.is_over(),
            Body::Tonic(messages) => messages.is_end_stream(),
        };
        over && self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            Body::Full(bytes) => SizeHint::with_exact((bytes.len() + self.rest.len()) as u64),
            Body::Events(_) | Body::Grpc(_) | Body::Tonic(_) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_small_and_the_last_is_smaller() {
        for size in [0, 1, 4095, 4096, 4097, 16_384, 20_480, 20_481, 1_000_000] {
            let mut rest = Bytes::from(vec![b'x'; size]);
            let mut pieces = Vec::new();
            while !rest.is_empty() {
                pieces.push(piece(&mut rest).len());
            }
            assert_eq!(pieces.iter().sum::<usize>(), size);
            assert!(pieces.iter().all(|piece| (1..=PIECE_BYTES).contains(piece)));
            assert!(pieces.last().is_none_or(|last| *last <= LAST_PIECE_BYTES));
        }
    }
}
