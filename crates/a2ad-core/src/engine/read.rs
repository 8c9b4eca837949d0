//! Reading tasks: heads, folds, and waiting for a head to change.

use std::sync::Arc;

use a2ad_proto::{GetTaskRequest, Message, Task, TaskState};
use bytes::Bytes;

use super::hub::Watching;
use super::{Caller, Engine, EngineError, Inner};
use crate::keys::{Number, TaskKey};
use crate::task::{Entry, Fold, Head, Snapshot, apply};

/// How much of a journal is read at a time.
pub(super) const PAGE_BYTES: usize = 1 << 20;

impl Engine {
    /// GetTask. Answers a `Task` as JSON.
    pub async fn get(
        &self,
        caller: &Caller,
        request: GetTaskRequest,
    ) -> Result<Bytes, EngineError> {
        request.check()?;
        let task = self.inner.find(caller, &request.id).await?;
        self.inner.task_json(task, request.history_length).await
    }
}

impl Inner {
    /// The head of a task: the newest that this process has heard of, or what is stored.
    pub(super) async fn head(&self, task: TaskKey) -> Result<Option<Arc<Head>>, EngineError> {
        if let Some(head) = self.hub.cached_head(task) {
            return Ok(Some(head));
        }
        let head = self.store.head(task).await?;
        if let Some(head) = &head {
            self.hub.keep_head(head);
        }
        Ok(head)
    }

    /// The task as its journal tells it, up to `upto` or to its end.
    pub(super) async fn fold(
        &self,
        task: TaskKey,
        upto: Option<Number>,
    ) -> Result<Fold, EngineError> {
        let snapshot = self.snapshot(task).await?;
        let usable = snapshot.filter(|frozen| upto.is_none_or(|upto| frozen.version <= upto));
        let mut fold = match usable {
            Some(frozen) => match Fold::thaw(&frozen) {
                Ok(fold) => fold,
                // The journal is the truth; a snapshot only saves reading it.
                Err(error) => {
                    tracing::error!(task = task.0, %error, "a damaged snapshot is passed over");
                    Fold::default()
                }
            },
            None => Fold::default(),
        };
        loop {
            if upto.is_some_and(|upto| fold.version >= upto) {
                return Ok(fold);
            }
            let entries = self.store.read(task, fold.version, PAGE_BYTES).await?;
            if entries.is_empty() {
                return Ok(fold);
            }
            for entry in entries {
                if upto.is_some_and(|upto| entry.number > upto) {
                    return Ok(fold);
                }
                check_next(fold.version, &entry)?;
                let record = entry
                    .record()
                    .map_err(|error| EngineError::Internal(Box::new(error)))?;
                apply(&mut fold, record);
            }
        }
    }

    async fn snapshot(&self, task: TaskKey) -> Result<Option<Arc<Snapshot>>, EngineError> {
        if let Some(snapshot) = self.hub.cached_snapshot(task) {
            return Ok(Some(snapshot));
        }
        let stored = self.store.snapshot(task).await?.map(Arc::new);
        if let Some(snapshot) = &stored {
            self.hub.keep_snapshot(task, Arc::clone(snapshot));
        }
        Ok(stored)
    }

    /// The task as 1.0 ProtoJSON, with at most the latest `history_length` messages.
    pub(super) async fn task_json(
        &self,
        task: TaskKey,
        history_length: Option<i32>,
    ) -> Result<Bytes, EngineError> {
        if history_length.is_none()
            && let Some(head) = self.head(task).await?
            && let Some(snapshot) = self.snapshot(task).await?
            && snapshot.version == head.version
        {
            return Ok(snapshot.task_json());
        }
        let mut fold = self.fold(task, None).await?;
        if fold.version == Number::ZERO {
            return Err(EngineError::not_found(""));
        }
        limit_history(&mut fold.task, history_length);
        Ok(a2ad_proto::to_json(&fold.task).into())
    }

    /// The direct reply that the task came to, if it did, and the number of the entry that says it.
    pub(super) async fn direct_reply(
        &self,
        task: TaskKey,
    ) -> Result<Option<(Number, Message)>, EngineError> {
        let head = self.head(task).await?;
        let Some(head) = head.filter(|head| head.state == TaskState::Completed) else {
            return Ok(None);
        };
        // Few tasks are replies, and those that are not say so without being read.
        if let Some(snapshot) = self.snapshot(task).await?
            && snapshot.version == head.version
            && !snapshot.may_be_reply()
        {
            return Ok(None);
        }
        let fold = self.fold(task, None).await?;
        Ok(fold.reply().map(|reply| (fold.version, reply.clone())))
    }

    /// Waits until the watched task's head is as wanted, or the engine is over.
    pub(super) async fn wait_until(
        &self,
        watching: &Watching,
        wanted: impl Fn(&Head) -> bool,
    ) -> Result<(), EngineError> {
        loop {
            let changed = watching.changed();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let head = match watching.head() {
                Some(head) => Some(head),
                None => self.head(watching.task).await?,
            };
            match head {
                Some(head) if wanted(&head) => return Ok(()),
                Some(_) => {}
                None => return Err(EngineError::not_found("")),
            }
            tokio::select! {
                () = changed => {}
                () = self.life.over.cancelled() => return Ok(()),
            }
        }
    }
}

/// A journal has no gaps; one that shows one is damaged, and must not be passed off as whole.
pub(super) fn check_next(last: Number, entry: &Entry) -> Result<(), EngineError> {
    if entry.number == last.next() {
        return Ok(());
    }
    let what = format!("after entry {last} comes entry {}", entry.number);
    Err(EngineError::Internal(what.into()))
}

/// A task's JSON as the `task` member of a response or frame.
pub(super) fn wrap_task(task: &[u8]) -> Bytes {
    [&b"{\"task\":"[..], task, b"}"].concat().into()
}

/// A message as the `message` member of a response or frame.
pub(super) fn wrap_message(message: &Message) -> Bytes {
    let message = a2ad_proto::to_json(message);
    [&b"{\"message\":"[..], &message, b"}"].concat().into()
}

/// HIST-02, HIST-03: the latest so many messages, none at all for 0.
pub(super) fn limit_history(task: &mut Task, history_length: Option<i32>) {
    let Some(length) = history_length else { return };
    let length = usize::try_from(length).unwrap_or(0);
    let surplus = task.history.len().saturating_sub(length);
    task.history.drain(..surplus);
}
