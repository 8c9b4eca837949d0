//! From a request, whatever binding it came by, to the engine and back.

use a2ad_core::engine::{Caller, Frame};
use a2ad_core::keys::Number;
use a2ad_proto::{
    CancelTaskRequest, GetExtendedAgentCardRequest, GetTaskRequest, ListTasksRequest, Message,
    Metadata, SendMessageRequest, SubscribeToTaskRequest, Violations,
};
use bytes::Bytes;
use http::request::Parts;
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::time::{Instant, timeout};
use tracing::{Instrument as _, Span};

use crate::caller;
use crate::door::{Admitted, admit};
use crate::edge::Inner;
use crate::errors::{Fault, Refusal};
use crate::extensions::Active;
use crate::limits::Limits;
use crate::meters::Binding;
use crate::method::Method;
use crate::mounts::{Mount, Visit};
use crate::operations::{FrameSource, Opened};
use crate::tongue::Tongue;
use crate::version::Generation;

/// A call that can be made.
pub(crate) struct Call {
    /// What the answer has to say it went by.
    pub(crate) active: Active,
    caller: Caller,
    generation: Generation,
    request: Request,
    /// The last frame the caller has.
    after: Option<Number>,
}

/// A request that has been read, and what the log and the counters will want to know of it.
pub(crate) struct Asked {
    pub(crate) began: Instant,
    pub(crate) method: Option<Method>,
    pub(crate) span: Span,
    /// The words for the answer.
    pub(crate) tongue: Tongue,
    /// What it asks for, or why it asks for nothing.
    pub(crate) call: Result<Call, Fault>,
}

impl Asked {
    /// Does what was asked and counts it. The extensions are those that the answer has to say it went by.
    pub(crate) async fn perform(
        self,
        inner: &Inner,
        binding: Binding,
    ) -> (Active, Result<Reply, Fault>) {
        let Self {
            began,
            method,
            span,
            tongue,
            call,
        } = self;
        let mut active = Active::default();
        let result = match call {
            Ok(call) => {
                active.clone_from(&call.active);
                call.run(inner).instrument(span).await
            }
            Err(fault) => Err(fault),
        };
        let result = match result {
            Ok(Reply::Result(json)) => tongue.result(method, json).map(Reply::Result),
            other => other,
        };
        let refused = result.as_ref().err().map(|fault| fault.kind.reason());
        inner
            .meters
            .count(binding, method, refused, began.elapsed());
        (active, result)
    }
}

/// What is asked for.
#[derive(Debug)]
pub(crate) enum Request {
    // Boxed, as it is the largest by far and is passed on a few times.
    Send(Box<SendMessageRequest>),
    Stream(Box<SendMessageRequest>),
    Get(GetTaskRequest),
    List(ListTasksRequest),
    Cancel(CancelTaskRequest),
    /// With what metadata came along, for which 1.0 has no place.
    Subscribe(SubscribeToTaskRequest, Option<Metadata>),
    Push(PushRequest),
    ExtendedCard(GetExtendedAgentCardRequest),
    /// 0.3 has a method for it over gRPC.
    PublicCard,
}

/// Any request about push configurations: there are none yet, so all that matters is whose they would be.
#[derive(Debug)]
pub(crate) struct PushRequest {
    tenant: String,
    task_id: String,
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

/// Refuses a send of 1.0 that says in the words of 0.3 whether to wait. Other members that nobody knows are passed over,
/// but this one would have the caller wait who said not to. What lacks a message or its parts may have them under the
/// names of 0.3, so that this is found here and not by the engine.
pub(crate) fn check_send(request: &SendMessageRequest, json: &[u8]) -> Result<(), Violations> {
    #[derive(Deserialize)]
    struct Send {
        configuration: Option<Configuration>,
    }
    #[derive(Deserialize)]
    struct Configuration {
        blocking: Option<IgnoredAny>,
    }
    let is_empty = |message: &Message| message.parts.is_empty();
    if request.message.as_ref().is_none_or(is_empty) {
        request.check()?;
    }
    if request.configuration.is_none() {
        return Ok(());
    }
    let send = serde_json::from_slice::<Send>(json).ok();
    let configuration = send.and_then(|send| send.configuration);
    if configuration.is_some_and(|it| it.blocking.is_some()) {
        let what = "is of protocol 0.3; this is protocol 1.0, which has `returnImmediately`, which says the opposite";
        return Err(Violations::one("configuration.blocking", what));
    }
    Ok(())
}

/// The metadata of a request for which the schema has none, if there is any.
pub(crate) fn metadata_of(json: &[u8]) -> Option<Metadata> {
    #[derive(Deserialize)]
    struct Any {
        metadata: Option<Metadata>,
    }
    serde_json::from_slice::<Any>(json).ok()?.metadata
}

impl Request {
    pub(crate) fn push(tenant: String, task_id: String) -> Self {
        Self::Push(PushRequest { tenant, task_id })
    }

    /// The tenant it names, or nothing.
    pub(crate) fn tenant(&self) -> &str {
        match self {
            Self::Send(request) | Self::Stream(request) => &request.tenant,
            Self::Get(request) => &request.tenant,
            Self::List(request) => &request.tenant,
            Self::Cancel(request) => &request.tenant,
            Self::Subscribe(request, _) => &request.tenant,
            Self::Push(request) => &request.tenant,
            Self::ExtendedCard(request) => &request.tenant,
            Self::PublicCard => "",
        }
    }

    /// The task it is about, if it is about one.
    pub(crate) fn task(&self) -> Option<&str> {
        let id = match self {
            Self::Send(request) | Self::Stream(request) => &request.message.as_ref()?.task_id,
            Self::Get(request) => &request.id,
            Self::Cancel(request) => &request.id,
            Self::Subscribe(request, _) => &request.id,
            Self::Push(request) => &request.task_id,
            Self::List(_) | Self::ExtendedCard(_) | Self::PublicCard => return None,
        };
        (!id.is_empty()).then_some(id)
    }

    /// Notes in the log which task this is about.
    fn note(&self) {
        if let Some(id) = self.task() {
            // Quoted and cut: it is whatever the caller sent.
            let shown: String = id.chars().take(64).collect();
            tracing::Span::current().record("task", tracing::field::debug(shown));
        }
    }
}

impl Mount {
    /// Whether the agent has what is asked for (OPS-02).
    fn offers(&self, request: &Request) -> Result<(), Refusal> {
        match request {
            Request::Send(_)
            | Request::Get(_)
            | Request::List(_)
            | Request::Cancel(_)
            | Request::PublicCard => Ok(()),
            Request::Stream(_) | Request::Subscribe(..) if self.streaming => Ok(()),
            Request::Stream(_) | Request::Subscribe(..) => Err(Refusal::NoStreaming),
            Request::Push(_) => Err(Refusal::NoPush),
            Request::ExtendedCard(_) if self.extended_card => {
                Err(Refusal::ExtendedCardNotConfigured)
            }
            Request::ExtendedCard(_) => Err(Refusal::NoExtendedCard),
        }
    }
}

impl Call {
    /// The call that a request makes, if its version is served, it is let in, could be read, and is for something the
    /// agent has.
    pub(crate) fn new(
        inner: &Inner,
        visit: Visit<'_>,
        head: &Parts,
        generation: Result<Generation, Fault>,
        request: Result<Request, Fault>,
    ) -> Result<Self, Fault> {
        let generation = generation?;
        let admitted = admit(inner, visit, head, request.as_ref().ok())?;
        let Admitted {
            mount,
            caller,
            active,
        } = admitted;
        let request = request?;
        request.note();
        mount.offers(&request)?;
        let after = match request {
            Request::Stream(ref request) => caller::cursor(head, request.metadata.as_ref())?,
            Request::Subscribe(_, ref metadata) => caller::cursor(head, metadata.as_ref())?,
            _ => None,
        };
        Ok(Self {
            active,
            caller,
            generation,
            request,
            after,
        })
    }

    /// Makes the call.
    pub(crate) async fn run(self, inner: &Inner) -> Result<Reply, Fault> {
        let Self {
            caller,
            generation,
            request,
            after,
            ..
        } = self;
        let engine = &*inner.operations;
        let sent = |fault: Fault| match generation {
            Generation::V03 => fault.of_send_in_v03(),
            Generation::V10 => fault,
        };
        let answered = match request {
            Request::Send(request) => {
                let answered = engine.send(&caller, request).await;
                return answered
                    .map(Reply::Result)
                    .map_err(|error| sent(error.into()));
            }
            Request::Get(request) => engine.get(&caller, request),
            Request::List(request) => engine.list(&caller, request),
            Request::Cancel(request) => engine.cancel(&caller, request),
            Request::Stream(request) => {
                let opened = engine.stream(&caller, request, after);
                let opened = Box::pin(open(opened, true, &inner.limits)).await;
                return opened.map_err(sent);
            }
            // There is nothing behind them yet; `offers` has said so.
            Request::Push(_) => return Err(Refusal::NoPush.into()),
            Request::ExtendedCard(_) => return Err(Refusal::NoExtendedCard.into()),
            Request::PublicCard => {
                let mount = inner.mounts.find(caller.scope.agent.as_str());
                let mount = mount.ok_or(Refusal::NoSuchTenant)?;
                return Ok(Reply::Result(mount.card.plain(&inner.address)));
            }
            Request::Subscribe(request, _) => {
                let opened = match generation {
                    Generation::V10 => engine.subscribe(&caller, request, after),
                    Generation::V03 => engine.resubscribe(&caller, request, after),
                };
                return Box::pin(open(opened, false, &inner.limits)).await;
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
