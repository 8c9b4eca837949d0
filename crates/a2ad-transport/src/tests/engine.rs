//! An engine that does as the ids in the request say.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use a2ad_core::engine::{Caller, EngineError, Frame, Seen, SeenPage, Sight};
use a2ad_core::keys::Number;
use a2ad_core::task::Shape;
use a2ad_proto::{
    CancelTaskRequest, GetTaskRequest, ListTasksRequest, SendMessageRequest, SubscribeToTaskRequest,
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::Notify;

use crate::monitor::{self, Monitor, SightingSource};
use crate::operations::{Answered, Batch, FrameSource, Opened, Operations};

/// What the tests can see and steer.
#[derive(Debug, Default)]
pub(super) struct Scripted {
    pub(super) unready: AtomicBool,
    /// The callers of sends, in order.
    pub(super) callers: Mutex<Vec<Caller>>,
    /// Lets the operations on `held` go on.
    pub(super) release: Notify,
    /// Somebody waits on `held`.
    pub(super) holding: Notify,
    /// The last answer about a task `big-N`, which has N bytes.
    pub(super) big: Mutex<Bytes>,
    /// Batches taken from `flood`.
    pub(super) taken: Arc<AtomicUsize>,
}

pub(super) fn frame(number: u64, bytes: impl Into<Bytes>) -> Frame {
    Frame {
        number: Number(number),
        shape: Shape::from_byte(1),
        bytes: bytes.into(),
    }
}

type Make = fn(u64) -> Frame;

fn small(number: u64) -> Frame {
    frame(number, format!(r#"{{"n":{number}}}"#))
}

fn large(number: u64) -> Frame {
    frame(number, format!("\"{}\"", "x".repeat(60_000)))
}

/// The same two as events that can be understood.
fn small_event(number: u64) -> Frame {
    frame(
        number,
        r#"{"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}"#,
    )
}

fn large_event(number: u64) -> Frame {
    let text = "x".repeat(60_000);
    frame(
        number,
        format!(
            r#"{{"artifactUpdate":{{"taskId":"t","contextId":"c","artifact":{{"artifactId":"a","parts":[{{"text":"{text}"}}]}}}}}}"#
        ),
    )
}

fn refuse(id: &str) -> EngineError {
    match id {
        "broken" => EngineError::Internal("the secret cause".into()),
        "busy" => EngineError::Exhausted("streams"),
        "down" => EngineError::Unavailable(None),
        "ended" => EngineError::NotCancelable { id: id.to_owned() },
        _ => EngineError::TaskNotFound { id: id.to_owned() },
    }
}

impl Scripted {
    async fn one(&self, id: &str) -> Result<Bytes, EngineError> {
        match id {
            "t1" => Ok(Bytes::from_static(br#"{"id":"t1"}"#)),
            "held" => {
                self.holding.notify_one();
                self.release.notified().await;
                Ok(Bytes::from_static(br#"{"id":"held"}"#))
            }
            _ => {
                let size = id.strip_prefix("big-").and_then(|size| size.parse().ok());
                let size: usize = size.ok_or_else(|| refuse(id))?;
                let task = Bytes::from(format!(r#"{{"id":"{}"}}"#, "x".repeat(size - 9)));
                self.big.lock().unwrap().clone_from(&task);
                Ok(task)
            }
        }
    }

    fn follow(&self, id: &str, after: Option<Number>) -> Result<Box<dyn FrameSource>, EngineError> {
        let first = after.map_or(1, |after| after.0 + 1);
        let (id, small, large): (_, Make, Make) = match id.strip_prefix("event-") {
            Some(id) => (id, small_event, large_event),
            None => (id, small, large),
        };
        let steps = match id {
            "three" => vec![Step::Batch((first..=3).map(small).collect())],
            "late" => vec![
                Step::Batch(vec![small(first)]),
                Step::Fail(refuse("broken")),
            ],
            "early" => vec![Step::Fail(refuse("gone"))],
            "open" => vec![Step::Batch(vec![small(first)]), Step::Silence],
            "silent" => vec![Step::Silence],
            "large" => vec![Step::Batch(
                (1..=10)
                    .map(|number| frame(number, format!("\"{}\"", "x".repeat(20_000))))
                    .collect(),
            )],
            "flood" => vec![Step::Flood(Arc::clone(&self.taken), large)],
            _ => return Err(refuse(id)),
        };
        Ok(Box::new(Script(steps.into())))
    }
}

enum Step {
    Batch(Vec<Frame>),
    Fail(EngineError),
    Silence,
    Flood(Arc<AtomicUsize>, Make),
}

struct Script(VecDeque<Step>);

impl Script {
    async fn next(&mut self) -> Batch {
        match self.0.pop_front()? {
            Step::Batch(frames) if frames.is_empty() => None,
            Step::Batch(frames) => Some(Ok(frames)),
            Step::Fail(error) => Some(Err(error)),
            Step::Silence => {
                self.0.push_front(Step::Silence);
                std::future::pending().await
            }
            Step::Flood(taken, make) => {
                let number = taken.fetch_add(1, Ordering::SeqCst) as u64 + 1;
                self.0.push_front(Step::Flood(taken, make));
                Some(Ok(vec![make(number)]))
            }
        }
    }
}

impl FrameSource for Script {
    fn next(&mut self) -> BoxFuture<'_, Batch> {
        Box::pin(Self::next(self))
    }
}

/// It shows nothing.
impl Monitor for Arc<Scripted> {
    fn look<'a>(
        &'a self,
        _: &'a Sight,
        _: &'a str,
    ) -> BoxFuture<'a, Result<Option<Seen>, EngineError>> {
        Box::pin(async { Ok(None) })
    }

    fn look_over<'a>(
        &'a self,
        _: &'a Sight,
        _: Option<&'a str>,
        _: usize,
    ) -> BoxFuture<'a, Result<SeenPage, EngineError>> {
        Box::pin(async {
            Ok(SeenPage {
                tasks: Vec::new(),
                next_page_token: None,
            })
        })
    }

    fn follow_all(&self, _: Sight) -> Box<dyn SightingSource> {
        Box::new(Nothing)
    }
}

struct Nothing;

impl SightingSource for Nothing {
    fn next(&mut self) -> BoxFuture<'_, monitor::Batch> {
        Box::pin(std::future::pending())
    }
}

impl Operations for Arc<Scripted> {
    fn send<'a>(&'a self, caller: &'a Caller, request: Box<SendMessageRequest>) -> Answered<'a> {
        Box::pin(async move {
            request.check()?;
            self.callers.lock().unwrap().push(caller.clone());
            Ok(Bytes::from_static(br#"{"task":{"id":"t1"}}"#))
        })
    }

    fn get<'a>(&'a self, _: &'a Caller, request: GetTaskRequest) -> Answered<'a> {
        Box::pin(async move { self.one(&request.id).await })
    }

    fn list<'a>(&'a self, _: &'a Caller, _: ListTasksRequest) -> Answered<'a> {
        Box::pin(async { Ok(Bytes::from_static(br#"{"tasks":[]}"#)) })
    }

    fn cancel<'a>(&'a self, _: &'a Caller, request: CancelTaskRequest) -> Answered<'a> {
        Box::pin(async move { self.one(&request.id).await })
    }

    fn stream<'a>(
        &'a self,
        _: &'a Caller,
        request: Box<SendMessageRequest>,
        after: Option<Number>,
    ) -> Opened<'a> {
        Box::pin(async move {
            request.check()?;
            let id = request.message.map(|message| message.message_id);
            self.follow(&id.unwrap_or_default(), after)
        })
    }

    fn subscribe<'a>(
        &'a self,
        _: &'a Caller,
        request: SubscribeToTaskRequest,
        after: Option<Number>,
    ) -> Opened<'a> {
        Box::pin(async move { self.follow(&request.id, after) })
    }

    fn resubscribe<'a>(
        &'a self,
        caller: &'a Caller,
        request: SubscribeToTaskRequest,
        after: Option<Number>,
    ) -> Opened<'a> {
        self.subscribe(caller, request, after)
    }

    fn ready(&self) -> BoxFuture<'_, Result<(), EngineError>> {
        Box::pin(async {
            if self.unready.load(Ordering::SeqCst) {
                Err(EngineError::Unavailable(None))
            } else {
                Ok(())
            }
        })
    }
}
