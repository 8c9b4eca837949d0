//! What the edge asks of the engine.
//!
//! One implementation exists, the engine; the trait is here so that the edge's own behaviour on the wire can be
//! tested without a database.

use a2ad_core::engine::{Caller, Engine, EngineError, Frame, Frames};
use a2ad_core::keys::Number;
use a2ad_proto::{
    CancelTaskRequest, GetTaskRequest, ListTasksRequest, SendMessageRequest, SubscribeToTaskRequest,
};
use bytes::Bytes;
use futures_util::future::BoxFuture;

use crate::monitor::Monitor;

pub(crate) type Answered<'a> = BoxFuture<'a, Result<Bytes, EngineError>>;
pub(crate) type Opened<'a> = BoxFuture<'a, Result<Box<dyn FrameSource>, EngineError>>;
pub(crate) type Batch = Option<Result<Vec<Frame>, EngineError>>;

/// The operations of the protocol.
pub(crate) trait Operations: Monitor + Send + Sync {
    fn send<'a>(&'a self, caller: &'a Caller, request: Box<SendMessageRequest>) -> Answered<'a>;
    fn get<'a>(&'a self, caller: &'a Caller, request: GetTaskRequest) -> Answered<'a>;
    fn list<'a>(&'a self, caller: &'a Caller, request: ListTasksRequest) -> Answered<'a>;
    fn cancel<'a>(&'a self, caller: &'a Caller, request: CancelTaskRequest) -> Answered<'a>;
    fn stream<'a>(
        &'a self,
        caller: &'a Caller,
        request: Box<SendMessageRequest>,
        after: Option<Number>,
    ) -> Opened<'a>;
    fn subscribe<'a>(
        &'a self,
        caller: &'a Caller,
        request: SubscribeToTaskRequest,
        after: Option<Number>,
    ) -> Opened<'a>;
    /// The same in 0.3, where a task that has ended can be followed.
    fn resubscribe<'a>(
        &'a self,
        caller: &'a Caller,
        request: SubscribeToTaskRequest,
        after: Option<Number>,
    ) -> Opened<'a>;
    fn ready(&self) -> BoxFuture<'_, Result<(), EngineError>>;
}

/// A stream in progress. A future given up before it is done must lose no frame.
pub(crate) trait FrameSource: Send {
    fn next(&mut self) -> BoxFuture<'_, Batch>;
}

impl FrameSource for Frames {
    fn next(&mut self) -> BoxFuture<'_, Batch> {
        Box::pin(Self::next(self))
    }
}

impl Operations for Engine {
    fn send<'a>(&'a self, caller: &'a Caller, request: Box<SendMessageRequest>) -> Answered<'a> {
        Box::pin(Self::send(self, caller, request))
    }

    fn get<'a>(&'a self, caller: &'a Caller, request: GetTaskRequest) -> Answered<'a> {
        Box::pin(Self::get(self, caller, request))
    }

    fn list<'a>(&'a self, caller: &'a Caller, request: ListTasksRequest) -> Answered<'a> {
        Box::pin(Self::list(self, caller, request))
    }

    fn cancel<'a>(&'a self, caller: &'a Caller, request: CancelTaskRequest) -> Answered<'a> {
        Box::pin(Self::cancel(self, caller, request))
    }

    fn stream<'a>(
        &'a self,
        caller: &'a Caller,
        request: Box<SendMessageRequest>,
        after: Option<Number>,
    ) -> Opened<'a> {
        Box::pin(async move {
            let frames = Self::stream(self, caller, request, after).await?;
            Ok(Box::new(frames) as Box<dyn FrameSource>)
        })
    }

    fn subscribe<'a>(
        &'a self,
        caller: &'a Caller,
        request: SubscribeToTaskRequest,
        after: Option<Number>,
    ) -> Opened<'a> {
        Box::pin(async move {
            let frames = Self::subscribe(self, caller, request, after).await?;
            Ok(Box::new(frames) as Box<dyn FrameSource>)
        })
    }

    fn resubscribe<'a>(
        &'a self,
        caller: &'a Caller,
        request: SubscribeToTaskRequest,
        after: Option<Number>,
    ) -> Opened<'a> {
        Box::pin(async move {
            let frames = Self::resubscribe(self, caller, request, after).await?;
            Ok(Box::new(frames) as Box<dyn FrameSource>)
        })
    }

    fn ready(&self) -> BoxFuture<'_, Result<(), EngineError>> {
        Box::pin(Self::ready(self))
    }
}
