//! Reading tasks: heads, folds, and waiting for a head to change.

use std::sync::Arc;

use a2ad_proto::{GetTaskRequest, Message, Task, TaskId, TaskState};
use bytes::Bytes;

use super::hub::Watching;
use super::{Caller, Engine, EngineError, Inner};
use crate::keys::{Number, TaskKey};
use crate::task::{Entry, Fold, Head, Snapshot, apply, splice};

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
        let inner = &self.inner;
        let id: TaskId = request
            .id
            .parse()
            .map_err(|_| EngineError::not_found(&request.id))?;
        let frozen = match inner.cached(caller, &id) {
            Some((key, frozen)) if inner.is_newest(key, frozen.version).await? => Some(frozen),
            Some(_) | None => inner.load(caller, &id).await?,
        };
        let frozen = frozen.ok_or_else(|| EngineError::not_found(&request.id))?;
        render(&frozen, request.history_length)
    }
}

/// The task as 1.0 ProtoJSON, with at most the latest `history_length` messages.
fn render(frozen: &Snapshot, history_length: Option<i32>) -> Result<Bytes, EngineError> {
    let Some(length) = history_length else {
        return Ok(frozen.task_json());
    };
    frozen
        .shortened_json(usize::try_from(length).unwrap_or(0))
        .map_err(|error| EngineError::Internal(Box::new(error)))
}

impl Inner {
    /// The newest head of the caller's task with this id, if this process has heard of it lately.
    pub(super) fn known_head(&self, caller: &Caller, id: &TaskId) -> Option<Arc<Head>> {
        let key = TaskKey(self.store.public_ids().key_of(id.as_str())?);
        let head = self.hub.cached_head(key)?;
        let theirs = head.identity.id == *id && head.identity.scope == caller.scope;
        theirs.then_some(head)
    }

    /// The caller's task with this id, if this process knows by heart the newest version that it
    /// has heard of.
    fn cached(&self, caller: &Caller, id: &TaskId) -> Option<(TaskKey, Arc<Snapshot>)> {
        let head = self.known_head(caller, id)?;
        let key = head.identity.key;
        let frozen = self.hub.cached_snapshot(key)?;
        (frozen.version == head.version).then_some((key, frozen))
    }

    /// Whether nobody has brought the task further than `version`, which is the newest that this
    /// process has heard of.
    async fn is_newest(&self, task: TaskKey, version: Number) -> Result<bool, EngineError> {
        Ok(self.store.exclusive() || self.store.version(task).await? == Some(version))
    }

    /// The caller's task with this id, as it is stored.
    async fn load(
        &self,
        caller: &Caller,
        id: &TaskId,
    ) -> Result<Option<Arc<Snapshot>>, EngineError> {
        let stored = self.store.load(&caller.scope, id, PAGE_BYTES).await?;
        let Some(stored) = stored else {
            return Ok(None);
        };
        self.hub.keep_head(&stored.head);
        let key = stored.head.identity.key;
        let version = stored.head.version;
        let are_all = stored
            .entries
            .last()
            .is_some_and(|last| last.number == version);
        let frozen = match stored.snapshot {
            Some(frozen) if stored.entries.is_empty() => frozen,
            older if are_all => freeze(key, older.as_ref(), &stored.entries)?,
            older => {
                let mut fold = thaw_or_begin(key, older.as_ref());
                fold_in(&mut fold, &stored.entries, None)?;
                self.fold_on(key, &mut fold, Some(version)).await?;
                fold.snapshot()
            }
        };
        let frozen = Arc::new(frozen);
        self.hub.keep_snapshot(key, Arc::clone(&frozen));
        Ok(Some(frozen))
    }

    /// The newest head of a task.
    pub(super) async fn head(&self, task: TaskKey) -> Result<Option<Arc<Head>>, EngineError> {
        if self.store.exclusive()
            && let Some(head) = self.hub.cached_head(task)
        {
            return Ok(Some(head));
        }
        let head = self.store.head(task).await?;
        if let Some(head) = &head {
            self.hub.keep_head(head);
        }
        Ok(head)
    }

    /// The task as it was at `head`.
    pub(super) async fn frozen(&self, head: &Head) -> Result<Arc<Snapshot>, EngineError> {
        let task = head.identity.key;
        let cached = self.hub.cached_snapshot(task);
        if let Some(frozen) = cached.filter(|frozen| frozen.version == head.version) {
            return Ok(frozen);
        }
        let mut fold = self.fold(task, Some(head.version)).await?;
        let frozen = Arc::new(fold.snapshot());
        self.hub.keep_snapshot(task, Arc::clone(&frozen));
        Ok(frozen)
    }

    /// The task as its journal tells it, up to `upto` or to its end.
    pub(super) async fn fold(
        &self,
        task: TaskKey,
        upto: Option<Number>,
    ) -> Result<Fold, EngineError> {
        let snapshot = self.snapshot(task).await?;
        let usable = snapshot.filter(|frozen| upto.is_none_or(|upto| frozen.version <= upto));
        let mut fold = thaw_or_begin(task, usable.as_deref());
        self.fold_on(task, &mut fold, upto).await?;
        Ok(fold)
    }

    /// Folds what the journal has after `fold`, up to `upto` or to its end.
    async fn fold_on(
        &self,
        task: TaskKey,
        fold: &mut Fold,
        upto: Option<Number>,
    ) -> Result<(), EngineError> {
        while upto.is_none_or(|upto| fold.version < upto) {
            let entries = self.store.read(task, fold.version, PAGE_BYTES).await?;
            if entries.is_empty() {
                return Ok(());
            }
            fold_in(fold, &entries, upto)?;
        }
        Ok(())
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
        let head = self.head(task).await?;
        let head = head.ok_or_else(|| EngineError::not_found(""))?;
        let frozen = match self.snapshot(task).await? {
            Some(frozen) if frozen.version >= head.version => frozen,
            older => {
                let mut fold = thaw_or_begin(task, older.as_deref());
                self.fold_on(task, &mut fold, None).await?;
                let frozen = Arc::new(fold.snapshot());
                self.hub.keep_snapshot(task, Arc::clone(&frozen));
                frozen
            }
        };
        render(&frozen, history_length)
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
        // Where others may bring it about, a stop leaves it the time that turns have.
        let _waited_for = (!self.store.exclusive()).then(|| self.waited_for().token());
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

/// The fold that a snapshot holds, or one that has yet to begin.
pub(super) fn thaw_or_begin(task: TaskKey, frozen: Option<&Snapshot>) -> Fold {
    match frozen.map(Fold::thaw) {
        Some(Ok(fold)) => fold,
        // The journal is the truth; a snapshot only saves reading it.
        Some(Err(error)) => {
            tracing::error!(task = task.0, %error, "a damaged snapshot is passed over");
            Fold::default()
        }
        None => Fold::default(),
    }
}

/// The task as a snapshot and all entries after it tell it.
pub(super) fn freeze(
    task: TaskKey,
    frozen: Option<&Snapshot>,
    entries: &[Entry],
) -> Result<Snapshot, EngineError> {
    if let (None, Some(spliced)) = (frozen, splice(entries)) {
        return Ok(spliced);
    }
    let mut fold = thaw_or_begin(task, frozen);
    fold_in(&mut fold, entries, None)?;
    Ok(fold.snapshot())
}

/// Folds `entries`, which come next, up to `upto` or all.
pub(super) fn fold_in(
    fold: &mut Fold,
    entries: &[Entry],
    upto: Option<Number>,
) -> Result<(), EngineError> {
    for entry in entries {
        if upto.is_some_and(|upto| entry.number > upto) {
            break;
        }
        check_next(fold.version, entry)?;
        let record = entry
            .record()
            .map_err(|error| EngineError::Internal(Box::new(error)))?;
        apply(fold, record);
    }
    Ok(())
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
pub(super) fn wrap_task_json(task: &[u8]) -> Bytes {
    [&b"{\"task\":"[..], task, b"}"].concat().into()
}

/// A task as the `task` member of a response or frame.
pub(super) fn wrap_task(task: &Task) -> Bytes {
    let mut json = Vec::with_capacity(1024);
    json.extend_from_slice(b"{\"task\":");
    a2ad_proto::write_json(task, &mut json);
    json.push(b'}');
    json.into()
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
