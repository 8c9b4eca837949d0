//! From an envelope to the engine and back.

use a2ad_core::engine::Caller;
use a2ad_core::keys::Number;
use a2ad_proto::{
    CancelTaskRequest, GetTaskRequest, ListTasksRequest, SendMessageRequest,
    SubscribeToTaskRequest, from_json,
};
use http::request::Parts;
use serde_json::value::RawValue;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::envelope::Envelope;
use super::{Method, Reply};
use crate::edge::{Inner, Mount};
use crate::errors::{Fault, Refusal};
use crate::limits::Limits;
use crate::operations::Opened;
use crate::sse::Events;
use crate::{caller, version};

/// A call that can be made.
pub(super) struct Call {
    caller: Caller,
    request: Request,
}

enum Request {
    Send(SendMessageRequest),
    Stream(SendMessageRequest, Option<Number>),
    Get(GetTaskRequest),
    List(ListTasksRequest),
    Cancel(CancelTaskRequest),
    Subscribe(SubscribeToTaskRequest, Option<Number>),
}

/// Finds out what a request asks for, in the order of OPS-04.
pub(super) fn read(
    mount: &Mount,
    head: &Parts,
    method: Option<Method>,
    envelope: &Envelope<'_>,
    limits: &Limits,
) -> Result<Call, Fault> {
    let caller = caller::identify(head, &mount.agent, limits)?;
    let version::Version::V1 = version::negotiate(&head.headers, head.uri.query())?;
    let method = method.ok_or(Refusal::UnknownMethod)?;
    let params = envelope.params()?;
    let request = match method {
        Method::SendMessage => Request::Send(message(params)?),
        Method::SendStreamingMessage => {
            let request = message(params)?;
            Request::Stream(request, opening(mount, head)?)
        }
        Method::GetTask => {
            let request: GetTaskRequest = from_json(params)?;
            note_task(&request.id);
            Request::Get(request)
        }
        Method::ListTasks => Request::List(from_json(params)?),
        Method::CancelTask => {
            let request: CancelTaskRequest = from_json(params)?;
            note_task(&request.id);
            Request::Cancel(request)
        }
        Method::SubscribeToTask => {
            let request: SubscribeToTaskRequest = from_json(params)?;
            note_task(&request.id);
            Request::Subscribe(request, opening(mount, head)?)
        }
        Method::CreateTaskPushNotificationConfig
        | Method::GetTaskPushNotificationConfig
        | Method::ListTaskPushNotificationConfigs
        | Method::DeleteTaskPushNotificationConfig => return Err(Refusal::NoPush.into()),
        Method::GetExtendedAgentCard => return Err(Refusal::NoExtendedCard.into()),
    };
    Ok(Call { caller, request })
}

fn message(params: &[u8]) -> Result<SendMessageRequest, Fault> {
    let request: SendMessageRequest = from_json(params)?;
    if let Some(message) = &request.message {
        note_task(&message.task_id);
    }
    Ok(request)
}

/// Where a stream is to start, if this agent streams at all.
fn opening(mount: &Mount, head: &Parts) -> Result<Option<Number>, Fault> {
    if !mount.streaming {
        return Err(Refusal::NoStreaming.into());
    }
    caller::cursor(head)
}

fn note_task(id: &str) {
    // Quoted and cut: it is whatever the caller sent.
    if !id.is_empty() {
        let shown: String = id.chars().take(64).collect();
        tracing::Span::current().record("task", tracing::field::debug(shown));
    }
}

impl Call {
    /// Makes the call.
    pub(super) async fn run(
        self,
        inner: &Inner,
        id: &RawValue,
        stop: &CancellationToken,
    ) -> Result<Reply, Fault> {
        let Self { caller, request } = self;
        let engine = &*inner.operations;
        let answered = match request {
            Request::Send(request) => engine.send(&caller, request),
            Request::Get(request) => engine.get(&caller, request),
            Request::List(request) => engine.list(&caller, request),
            Request::Cancel(request) => engine.cancel(&caller, request),
            Request::Stream(request, after) => {
                let opened = engine.stream(&caller, request, after);
                return open(opened, id, stop, &inner.limits).await;
            }
            Request::Subscribe(request, after) => {
                let opened = engine.subscribe(&caller, request, after);
                return open(opened, id, stop, &inner.limits).await;
            }
        };
        Ok(Reply::Result(answered.await?))
    }
}

/// Waits for the first frames, as the form of the answer depends on whether there are any (STREAM-11).
async fn open(
    opened: Opened<'_>,
    id: &RawValue,
    stop: &CancellationToken,
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
    let events = Events::follow(id.to_owned(), first, source, stop.clone(), limits);
    Ok(Reply::Stream(events))
}
