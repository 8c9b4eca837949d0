//! From a request, whatever binding it came by, to the engine and back.

use a2ad_core::engine::{Caller, Frame};
use a2ad_core::keys::Number;
use a2ad_proto::{
    CancelTaskRequest, GetTaskRequest, ListTasksRequest, SendMessageRequest, SubscribeToTaskRequest,
};
use bytes::Bytes;
use http::request::Parts;
use tokio::time::timeout;

use crate::caller;
use crate::edge::{Inner, Mount};
use crate::errors::{Fault, Refusal};
use crate::limits::Limits;
use crate::operations::{FrameSource, Opened};

/// A call that can be made.
pub(crate) struct Call {
    pub(crate) caller: Caller,
    pub(crate) request: Request,
}

/// What is asked for.
#[derive(Debug)]
pub(crate) enum Request {
    Send(SendMessageRequest),
    Stream(SendMessageRequest, Option<Number>),
    Get(GetTaskRequest),
    List(ListTasksRequest),
    Cancel(CancelTaskRequest),
    Subscribe(SubscribeToTaskRequest, Option<Number>),
}

/// What comes of a call.
pub(crate) enum Reply {
    /// The result's JSON.
    Result(Bytes),
    Stream(Stream),
}

/// A stream that has been opened: its first frames, if there are any yet, and where the others come from, if there
/// can be any.
pub(crate) struct Stream {
    pub(crate) first: Vec<Frame>,
    pub(crate) source: Option<Box<dyn FrameSource>>,
    /// Whether a question to the client ends it (STREAM-08).
    pub(crate) ends_with_question: bool,
}

impl Request {
    /// Notes in the log which task this is about.
    pub(crate) fn note(&self) {
        let id = match self {
            Self::Send(request) | Self::Stream(request, _) => {
                request.message.as_ref().map(|message| &message.task_id)
            }
            Self::Get(request) => Some(&request.id),
            Self::Cancel(request) => Some(&request.id),
            Self::Subscribe(request, _) => Some(&request.id),
            Self::List(_) => None,
        };
        if let Some(id) = id.filter(|id| !id.is_empty()) {
            // Quoted and cut: it is whatever the caller sent.
            let shown: String = id.chars().take(64).collect();
            tracing::Span::current().record("task", tracing::field::debug(shown));
        }
    }
}

/// Where a stream is to start, if this agent streams at all.
pub(crate) fn opening(mount: &Mount, head: &Parts) -> Result<Option<Number>, Fault> {
    if !mount.streaming {
        return Err(Refusal::NoStreaming.into());
    }
    caller::cursor(head)
}

impl Call {
    /// Makes the call.
    pub(crate) async fn run(self, inner: &Inner) -> Result<Reply, Fault> {
        let Self { caller, request } = self;
        let engine = &*inner.operations;
        let answered = match request {
            Request::Send(request) => engine.send(&caller, request),
            Request::Get(request) => engine.get(&caller, request),
            Request::List(request) => engine.list(&caller, request),
            Request::Cancel(request) => engine.cancel(&caller, request),
            Request::Stream(request, after) => {
                let opened = engine.stream(&caller, request, after);
                return open(opened, true, &inner.limits).await;
            }
            Request::Subscribe(request, after) => {
                let opened = engine.subscribe(&caller, request, after);
                return open(opened, false, &inner.limits).await;
            }
        };
        Ok(Reply::Result(answered.await?))
    }
}

/// Waits for the first frames, as the form of the answer depends on whether there are any (STREAM-11).
async fn open(
    opened: Opened<'_>,
    ends_with_question: bool,
    limits: &Limits,
) -> Result<Reply, Fault> {
    let mut source = opened.await?;
    let first = timeout(limits.first_frame, source.next()).await;
    let (first, source) = match first {
        Ok(Some(Ok(frames))) => (frames, Some(source)),
        Ok(Some(Err(error))) => return Err(error.into()),
        Ok(None) => (Vec::new(), None),
        Err(_late) => (Vec::new(), Some(source)),
    };
    Ok(Reply::Stream(Stream {
        first,
        source,
        ends_with_question,
    }))
}
