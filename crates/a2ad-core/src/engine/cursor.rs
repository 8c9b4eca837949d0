//! Streams: read the journal after N, then wait for N+1.
//!
//! A subscriber has no queue. A slow one costs nothing and loses nothing: it reads on from where
//! it is, from the shared tail while that reaches back far enough, else from the store.

use std::sync::Arc;

use a2ad_proto::{Message, SubscribeToTaskRequest, TaskState};
use bytes::Bytes;

use super::hub::{Tailed, Watching};
use super::read::{check_next, limit_history, wrap_message};
use super::{Caller, Engine, EngineError, Inner};
use crate::behaviour::Finished;
use crate::keys::{Number, TaskKey};
use crate::task::{Entry, Fold, Head, Shape, Snapshot};

/// How much is read for one batch of frames.
const BATCH_BYTES: usize = 64 << 10;

/// One frame of a stream.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The number of the entry it shows, or up to which a snapshot reaches.
    pub number: Number,
    /// What can be known without parsing.
    pub shape: Shape,
    /// The 1.0 ProtoJSON of a `StreamResponse`.
    pub bytes: Bytes,
}

/// Where a stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndsAt {
    /// When the task has ended.
    Terminal,
    /// Also when the agent asks the client for input (STREAM-08): the next message brings the
    /// next stream.
    InputRequired,
}

/// A stream in progress.
#[derive(Debug)]
pub struct Frames {
    inner: Arc<Inner>,
    task: TaskKey,
    /// Where more comes from; nowhere if nothing more can come.
    watching: Option<Watching>,
    after: Number,
    /// What is known from the start.
    opening: Vec<Frame>,
    ends_at: EndsAt,
    ended: bool,
    /// Up to where the reader has seen everything, if that is beyond `after`.
    seen: Number,
}

impl Engine {
    /// SubscribeToTask. With `after`, the stream goes on after that entry, also on a task that has
    /// ended; without, it opens with the task as it is now.
    pub async fn subscribe(
        &self,
        caller: &Caller,
        request: SubscribeToTaskRequest,
        after: Option<Number>,
    ) -> Result<Frames, EngineError> {
        self.follow(caller, request, after, false).await
    }

    /// The same for a generation of the protocol in which a task that has ended can be followed:
    /// where its owner has chosen nothing else, the stream is the task and its last event.
    pub async fn resubscribe(
        &self,
        caller: &Caller,
        request: SubscribeToTaskRequest,
        after: Option<Number>,
    ) -> Result<Frames, EngineError> {
        self.follow(caller, request, after, true).await
    }

    async fn follow(
        &self,
        caller: &Caller,
        request: SubscribeToTaskRequest,
        after: Option<Number>,
        finished_as_stream: bool,
    ) -> Result<Frames, EngineError> {
        request.check()?;
        let inner = &self.inner;
        let served = inner.served(&caller.scope.agent)?;
        let task = inner.find(caller, &request.id).await?;
        let watching = inner.hub.watch(task);
        let head = inner
            .head(task)
            .await?
            .ok_or_else(|| EngineError::not_found(&request.id))?;
        if let Some(after) = after {
            check_cursor(after, &head)?;
            return Ok(Frames::after(inner, watching, after, EndsAt::Terminal));
        }
        match served.policy.behaviour.finished {
            Finished::NotFound if head.is_settled() => {
                return Err(EngineError::not_found(&request.id));
            }
            Finished::Replay if head.state.is_terminal() => {
                let ends_at = EndsAt::Terminal;
                return Ok(Frames::after(inner, watching, Number::ZERO, ends_at));
            }
            Finished::Spec | Finished::Replay | Finished::NotFound => {}
        }
        if head.state.is_terminal() && !finished_as_stream {
            return Err(EngineError::Unsupported(
                "The task has ended; GetTask shows its result, and Last-Event-ID replays its events"
                    .to_owned(),
            ));
        }
        let frozen = inner.frozen(&head).await?;
        let mut frames = Frames::from_snapshot(inner, watching, &head, &frozen);
        if head.state.is_terminal() {
            // The last entry of a task that has ended is its end.
            let before = Number(frozen.version.0.saturating_sub(1));
            frames.after = before;
            let end = inner.store.read(task, before, 1).await?;
            let end = frames.show(end);
            frames.opening.extend(end);
        }
        Ok(frames)
    }
}

/// Nothing comes after what is not there yet: the cursor is another task's.
pub(super) fn check_cursor(after: Number, head: &Head) -> Result<(), EngineError> {
    if after <= head.version {
        return Ok(());
    }
    // Each binding has names of its own for it.
    let what = format!("The task has only {} entries", head.version);
    Err(EngineError::invalid("cursor", what))
}

impl Frames {
    /// Everything after `after`, without an opening.
    pub(super) fn after(
        inner: &Arc<Inner>,
        watching: Watching,
        after: Number,
        ends_at: EndsAt,
    ) -> Self {
        Self {
            inner: Arc::clone(inner),
            task: watching.task,
            watching: Some(watching),
            after,
            opening: Vec::new(),
            ends_at,
            ended: false,
            seen: Number::ZERO,
        }
    }

    /// What is left of the stream of the message at `number` for a reader that has all of it up to `seen`. It may be
    /// over by then, though the task goes on.
    pub(super) fn of_message(
        inner: &Arc<Inner>,
        watching: Watching,
        number: Number,
        seen: Number,
    ) -> Self {
        Self {
            seen,
            ..Self::after(inner, watching, number, EndsAt::InputRequired)
        }
    }

    /// A journal that is known from its first entry on, then everything after.
    pub(super) fn known(
        inner: &Arc<Inner>,
        task: TaskKey,
        entries: Vec<Entry>,
        ends_at: EndsAt,
    ) -> Self {
        let mut frames = Self {
            inner: Arc::clone(inner),
            task,
            watching: None,
            after: Number::ZERO,
            opening: Vec::new(),
            ends_at,
            ended: false,
            seen: Number::ZERO,
        };
        frames.opening = frames.show(entries);
        if !frames.ended {
            frames.watching = Some(inner.hub.watch(task));
        }
        frames
    }

    /// The task as folded, then everything after.
    pub(super) fn from_fold(
        inner: &Arc<Inner>,
        watching: Watching,
        mut fold: Fold,
        history_length: Option<i32>,
        ends_at: EndsAt,
    ) -> Self {
        limit_history(&mut fold.task, history_length);
        let state = fold.task.status.state;
        let opening = Frame {
            number: fold.version,
            shape: Shape {
                visible: true,
                delta: false,
                extension: false,
                state: Some(state),
            },
            bytes: fold.snapshot().task_response(),
        };
        Self {
            after: fold.version,
            opening: vec![opening],
            ended: state.is_terminal(),
            ..Self::after(inner, watching, fold.version, ends_at)
        }
    }

    /// A running task as it was at `head`, then everything after.
    fn from_snapshot(
        inner: &Arc<Inner>,
        watching: Watching,
        head: &Head,
        frozen: &Snapshot,
    ) -> Self {
        let opening = Frame {
            number: frozen.version,
            shape: Shape {
                visible: true,
                delta: false,
                extension: false,
                state: Some(head.state),
            },
            bytes: frozen.task_response(),
        };
        Self {
            opening: vec![opening],
            ..Self::after(inner, watching, frozen.version, EndsAt::Terminal)
        }
    }

    /// A direct reply, which is all there is to say (STREAM-01).
    pub(super) fn reply(
        inner: &Arc<Inner>,
        task: TaskKey,
        number: Number,
        reply: &Message,
    ) -> Self {
        let opening = Frame {
            number,
            shape: Shape {
                visible: true,
                delta: false,
                extension: !reply.extensions.is_empty(),
                state: Some(TaskState::Completed),
            },
            bytes: wrap_message(reply),
        };
        Self {
            inner: Arc::clone(inner),
            task,
            watching: None,
            after: number,
            opening: vec![opening],
            ends_at: EndsAt::Terminal,
            ended: true,
            seen: Number::ZERO,
        }
    }

    /// The task that the stream is about.
    #[must_use]
    pub fn task(&self) -> TaskKey {
        self.task
    }

    /// The next frames: at least one, and whatever else is already there. `None` ends the stream:
    /// the task has ended, it waits for its client, or the server is stopping (then the caller can
    /// resume after the last frame). Cancel-safe.
    pub async fn next(&mut self) -> Option<Result<Vec<Frame>, EngineError>> {
        if !self.opening.is_empty() {
            let mut frames = std::mem::take(&mut self.opening);
            if !self.ended
                && let Some(watching) = &self.watching
                && let Tailed::Entries(entries) = watching.after(self.after, BATCH_BYTES)
            {
                frames.extend(self.show(entries));
            }
            return Some(Ok(frames));
        }
        while !self.ended
            && let Some(watching) = &self.watching
        {
            let entries = match self.entries(watching).await {
                Ok(Some(entries)) => entries,
                Ok(None) => return None,
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error));
                }
            };
            let frames = self.show(entries);
            if !frames.is_empty() {
                return Some(Ok(frames));
            }
        }
        None
    }

    /// The entries after the cursor, waiting for one if need be.
    async fn entries(&self, watching: &Watching) -> Result<Option<Vec<Entry>>, EngineError> {
        loop {
            // Registered before looking, so that no commit falls in between.
            let changed = watching.changed();
            tokio::pin!(changed);
            changed.as_mut().enable();
            match watching.after(self.after, BATCH_BYTES) {
                Tailed::Entries(entries) => return Ok(Some(entries)),
                Tailed::Nothing => {}
                Tailed::End => return Ok(None),
                Tailed::AskStore => match self.inner.head(self.task).await? {
                    Some(head) if head.version > self.after => {
                        let store = &self.inner.store;
                        let stored = store.read(self.task, self.after, BATCH_BYTES).await?;
                        let Some(first) = stored.first() else {
                            let what = "the journal is shorter than its head says";
                            return Err(EngineError::Internal(what.into()));
                        };
                        check_next(self.after, first)?;
                        return Ok(Some(stored));
                    }
                    // A cursor at the end of an ended journal waits for nothing.
                    Some(head) if head.state.is_terminal() => return Ok(None),
                    // Whatever is newer than the newest head has yet to be told, to the tail too.
                    Some(_) => {}
                    None => return Ok(None),
                },
            }
            tokio::select! {
                () = changed => {}
                () = self.inner.life.over.cancelled() => return Ok(None),
            }
        }
    }

    /// Moves the cursor over `entries` and turns the visible ones into frames.
    fn show(&mut self, entries: Vec<Entry>) -> Vec<Frame> {
        let mut frames = Vec::with_capacity(entries.len());
        for entry in entries {
            if self.ended || entry.number <= self.after {
                continue;
            }
            self.after = entry.number;
            self.ended = match entry.shape.state {
                Some(TaskState::InputRequired) => self.ends_at == EndsAt::InputRequired,
                Some(state) => state.is_terminal(),
                None => false,
            };
            if entry.shape.visible && entry.number > self.seen {
                frames.push(Frame {
                    number: entry.number,
                    shape: entry.shape,
                    bytes: entry.bytes,
                });
            }
        }
        frames
    }
}
