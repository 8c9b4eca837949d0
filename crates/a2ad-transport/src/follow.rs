//! Follows a stream: what was fetched and not yet written, and where more comes from.
//!
//! How frames are written is for the bindings to say.

use std::fmt;

use a2ad_core::engine::Frame;
use a2ad_proto::TaskState;
use futures_util::FutureExt as _;
use tokio_util::sync::CancellationToken;

use crate::call::Stream;
use crate::errors::Fault;
use crate::meters::Gauge;
use crate::operations::FrameSource;

/// A stream being written. It holds no queue: a batch is fetched when there is room for it.
pub(crate) struct Follow {
    /// Frames fetched but not yet written; never more than one batch.
    pub(crate) ready: std::vec::IntoIter<Frame>,
    source: Option<Box<dyn FrameSource>>,
    stop: CancellationToken,
    /// Whether the stream is over after a question to the client, too (STREAM-08).
    ends_with_question: bool,
    /// Whether the last frame that told a state told one after which nothing comes.
    ended: bool,
    _open: Gauge,
}

impl fmt::Debug for Follow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Follow")
    }
}

/// What came of asking for more.
#[derive(Debug)]
pub(crate) enum Fetched {
    /// `ready` holds the next frames.
    Frames,
    /// Nothing more comes. It is `early` if the task has not come so far that the stream would be over: the server
    /// stops, or there was nothing to show.
    End {
        early: bool,
    },
    Failed(Fault),
}

impl Follow {
    pub(crate) fn new(stream: Stream, stop: CancellationToken) -> Self {
        let Stream {
            first,
            source,
            ends_with_question,
        } = stream;
        let mut follow = Self {
            ready: Vec::new().into_iter(),
            source,
            stop,
            ends_with_question,
            ended: false,
            _open: Gauge::open_stream(),
        };
        follow.take(first);
        follow
    }

    /// Fetches the next frames. May be given up before it is done.
    pub(crate) async fn fetch(&mut self) -> Fetched {
        let Some(source) = &mut self.source else {
            return Fetched::End { early: !self.ended };
        };
        let batch = tokio::select! {
            biased;
            () = self.stop.cancelled() => {
                // The end of the last turn is often why we stop: what is at hand is still shown.
                let at_hand = source.next().now_or_never();
                self.source = None;
                at_hand.flatten()
            }
            batch = source.next() => batch,
        };
        match batch {
            Some(Ok(frames)) => {
                self.take(frames);
                Fetched::Frames
            }
            Some(Err(error)) => {
                self.source = None;
                Fetched::Failed(error.into())
            }
            None => {
                self.source = None;
                Fetched::End { early: !self.ended }
            }
        }
    }

    /// Whether a frame tells a state after which nothing comes.
    pub(crate) fn ends_with(&self, frame: &Frame) -> bool {
        frame.shape.state.is_some_and(|state| self.is_end(state))
    }

    fn is_end(&self, state: TaskState) -> bool {
        state.is_terminal() || (state == TaskState::InputRequired && self.ends_with_question)
    }

    fn take(&mut self, frames: Vec<Frame>) {
        if let Some(state) = frames.iter().rev().find_map(|frame| frame.shape.state) {
            self.ended = self.is_end(state);
        }
        self.ready = frames.into_iter();
    }
}
