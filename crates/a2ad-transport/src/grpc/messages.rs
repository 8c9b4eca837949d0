//! The body of an answer: messages, each behind its length, and a status behind them all.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::Stream;
use http::HeaderMap;
use http_body::Frame;
use tonic::Status;

use super::message::PREFIX;

/// What is still to be sent.
pub(crate) enum Messages {
    /// One message, and that all is well.
    One(Bytes),
    /// Messages as they come, the last of which may be a status that is not OK.
    Many(Pin<Box<dyn Stream<Item = Result<Bytes, Status>> + Send>>),
    /// That all is well.
    Ok,
    /// Nothing.
    Over,
}

impl fmt::Debug for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Messages")
    }
}

impl Messages {
    pub(crate) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Frame<Bytes>>> {
        let status = match self {
            Self::One(message) => {
                let message = std::mem::take(message);
                *self = Self::Ok;
                return Poll::Ready(Some(Frame::data(message)));
            }
            Self::Many(messages) => match ready!(messages.as_mut().poll_next(cx)) {
                Some(Ok(chunk)) => return Poll::Ready(Some(Frame::data(chunk))),
                Some(Err(status)) => status,
                None => Status::ok(""),
            },
            Self::Ok => Status::ok(""),
            Self::Over => return Poll::Ready(None),
        };
        *self = Self::Over;
        Poll::Ready(Some(trailers(&status)))
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(self, Self::Over)
    }
}

/// A status behind an answer that has begun.
pub(crate) fn trailers(status: &Status) -> Frame<Bytes> {
    let mut trailers = HeaderMap::new();
    // Fails for a status that is no header, and then there is none to tell.
    drop(status.add_header(&mut trailers));
    Frame::trailers(trailers)
}

/// Appends a message that `encode` writes, behind its length.
pub(super) fn append(out: &mut Vec<u8>, encode: impl FnOnce(&mut Vec<u8>)) {
    let from = out.len();
    out.extend_from_slice(&[0; PREFIX]);
    encode(out);
    let length = out.len() - from - PREFIX;
    // Nothing we say comes near four gigabytes: it has all been in memory as JSON.
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    out[from + 1..from + PREFIX].copy_from_slice(&length.to_be_bytes());
}
