use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::time::{Instant, Sleep};

use super::error::{DialError, Wait};
use super::limits::Limits;

/// The body of an answer: a stream of pieces that never gives more than the limits allow, and ends with an error when
/// they are passed. After an error it gives nothing more.
///
/// Dropping it before its end gives up the exchange.
pub struct Body {
    inner: Option<reqwest::Body>,
    host: String,
    left: u64,
    bytes_max: u64,
    silence: Duration,
    /// Runs while somebody waits for a piece.
    quiet: Option<Pin<Box<Sleep>>>,
    end: Option<(Pin<Box<Sleep>>, Duration)>,
    trailers: Option<HeaderMap>,
}

impl Body {
    pub(super) fn new(
        inner: reqwest::Body,
        host: String,
        limits: &Limits,
        deadline: Option<Instant>,
    ) -> Result<Self, DialError> {
        let body = Self {
            left: limits.answer_bytes_max,
            bytes_max: limits.answer_bytes_max,
            silence: limits.silence,
            quiet: None,
            end: deadline.map(|at| {
                let limit = limits.total.unwrap_or_default();
                (Box::pin(tokio::time::sleep_until(at)), limit)
            }),
            trailers: None,
            inner: Some(inner),
            host,
        };
        // What says that it is too long need not be read to be refused.
        if body.size_hint().lower() > body.bytes_max {
            return Err(body.too_large());
        }
        Ok(body)
    }

    /// The next piece; none at the end.
    ///
    /// Cancel safe: a piece is given or it is still to come.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, DialError> {
        while let Some(frame) = self.frame().await {
            if let Ok(data) = frame?.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    /// All of it.
    pub async fn bytes(mut self) -> Result<Bytes, DialError> {
        let Some(first) = self.chunk().await? else {
            return Ok(Bytes::new());
        };
        let Some(second) = self.chunk().await? else {
            return Ok(first);
        };
        let mut all = BytesMut::from(first);
        all.extend_from_slice(&second);
        while let Some(more) = self.chunk().await? {
            all.extend_from_slice(&more);
        }
        Ok(all.freeze())
    }

    /// What came after the body, once its end was read.
    pub fn trailers(&self) -> Option<&HeaderMap> {
        self.trailers.as_ref()
    }

    fn too_large(&self) -> DialError {
        DialError::TooLarge {
            host: self.host.clone(),
            bytes_max: self.bytes_max,
        }
    }

    /// Ends in an error; the exchange is given up.
    fn fail(&mut self, error: DialError) -> Poll<Option<Result<Frame<Bytes>, DialError>>> {
        self.inner = None;
        Poll::Ready(Some(Err(error)))
    }

    /// Waits for the next piece, but not for ever.
    fn poll_silence(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, DialError>>> {
        let limit = self.silence;
        let quiet = self
            .quiet
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        ready!(quiet.as_mut().poll(context));
        self.fail(self.timed_out(Wait::Silence, limit))
    }

    fn timed_out(&self, wait: Wait, limit: Duration) -> DialError {
        DialError::TimedOut {
            host: self.host.clone(),
            wait,
            limit,
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = DialError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, DialError>>> {
        let this = &mut *self;
        let Some(inner) = &mut this.inner else {
            return Poll::Ready(None);
        };
        // Time first: an answer that is always ready must not outlive its deadline.
        if let Some((end, limit)) = &mut this.end
            && end.as_mut().poll(context).is_ready()
        {
            let error = DialError::TimedOut {
                host: this.host.clone(),
                wait: Wait::Total,
                limit: *limit,
            };
            return this.fail(error);
        }
        let Poll::Ready(frame) = Pin::new(inner).poll_frame(context) else {
            return this.poll_silence(context);
        };
        let frame = match frame {
            None => {
                this.inner = None;
                return Poll::Ready(None);
            }
            Some(Err(_)) => {
                let host = this.host.clone();
                return this.fail(DialError::Broken { host });
            }
            Some(Ok(frame)) => frame,
        };
        let Some(data) = frame.data_ref() else {
            if let Some(trailers) = frame.trailers_ref() {
                this.trailers = Some(trailers.clone());
            }
            return Poll::Ready(Some(Ok(frame)));
        };
        // An empty piece is no sign of life; and whoever sends them without end must not hold the thread.
        if data.is_empty() {
            context.waker().wake_by_ref();
            return this.poll_silence(context);
        }
        match this.left.checked_sub(data.len() as u64) {
            Some(left) => this.left = left,
            None => return this.fail(this.too_large()),
        }
        this.quiet = None;
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.inner
            .as_ref()
            .is_none_or(|inner| inner.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            Some(inner) => inner.size_hint(),
            None => SizeHint::with_exact(0),
        }
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Body")
            .field("host", &self.host)
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}
