//! The port to storage: what the engine needs to keep, and what it must be told.
//!
//! One implementation keeps a SQLite file, another will share a PostgreSQL database among many
//! instances; both have to pass [`crate::contract`].

use std::ops::Range;
use std::sync::Arc;

use a2ad_proto::{AgentId, ContextId, TaskId, TaskState, Timestamp};
use futures_util::future::BoxFuture;

use crate::keys::{Attempt, HolderId, Number, PublicIds, Scope, TaskKey, TurnRef};
use crate::task::{Entry, Head, Snapshot, TurnChange, TurnState};

/// A journal of up to so many bytes is folded whenever its task is asked for: reading and folding it
/// costs less than keeping a snapshot of it would.
pub const SHORT_JOURNAL: u64 = 8 << 10;

/// Everything that is decided about one task in one go; committed whole or not at all.
#[derive(Clone, Debug)]
pub struct Change {
    /// The task as it will be after the change: its identity, version, state, artifacts, bytes.
    /// (The turns in it are ignored; `turns` says what happens to them.)
    pub head: Head,
    /// The version the decision was made on. 0 creates the task.
    pub expected: Number,
    /// How a new task's context comes about; ignored for a task that exists.
    pub context: ContextChoice,
    /// New entries, numbered `expected + 1 ..= head.version`.
    pub entries: Vec<Entry>,
    /// What happens to turns.
    pub turns: Vec<TurnChange>,
    /// A turn that this change opens is leased to this holder at once, if it is ready.
    pub lease_to: Option<HolderId>,
    /// The change counts only while this lease of this turn is held.
    pub fence: Option<(Number, Attempt)>,
    /// The change counts only if no earlier one had the same key.
    pub once: Option<Once>,
    /// A fold of the journal up to and including this change. A store does without if the journal
    /// is short ([`SHORT_JOURNAL`]).
    pub snapshot: Option<Snapshot>,
    /// At most this many open turns per context.
    pub context_turns_max: u32,
    /// At most this many open turns of the agent, in all contexts.
    pub agent_turns_max: u32,
    /// If this brings the context above so many tasks, those of its tasks that ended first are
    /// deleted in the same commit, until there are no more than so many, or none that has ended.
    /// The task that the change is about is not deleted.
    pub context_tasks_max: Option<u32>,
}

impl Change {
    /// How many tasks its context may keep, if the change can have brought it above that.
    #[must_use]
    pub fn trims_context_to(&self) -> Option<u32> {
        let is_new = self.expected == Number::ZERO;
        let alone = is_new && self.context == ContextChoice::Minted;
        let grows = is_new || self.head.state.is_terminal();
        self.context_tasks_max.filter(|_| grows && !alone)
    }
}

/// The context of a new task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContextChoice {
    /// A new one, with the ids already in the head's identity.
    Minted,
    /// The owner's context of this name, which may or may not exist; the identity's context key
    /// is replaced by the one found, or stands for the new one.
    Named(ContextId),
}

/// What makes a repeated request recognisable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Once {
    /// Names the request for (owner, agent).
    pub key: [u8; 16],
    /// Says what it asked for.
    pub body: [u8; 16],
    /// The entry that its message made.
    pub number: Number,
}

/// An earlier request with the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnceHit {
    /// The task that it made or continued.
    pub task: TaskKey,
    /// The entry that its message made.
    pub number: Number,
    /// What it asked for.
    pub body: [u8; 16],
}

/// What became of a change.
#[derive(Clone, Debug)]
pub struct Applied {
    /// The task's head after the change, turns included.
    pub head: Arc<Head>,
    /// Agents with turns that the change made ready.
    pub ready: Vec<AgentId>,
}

/// Why a change was not applied. Nothing of it was.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The task, or one of the turns, is not as the decision assumed. Load and decide again.
    #[error("the task changed meanwhile")]
    Conflict,
    /// The lease is over. Stop.
    #[error("the lease is over")]
    Fenced,
    /// The same request was carried out before.
    #[error("the request was carried out before")]
    Repeated(OnceHit),
    /// The context's queue is full.
    #[error("too many messages wait in the context")]
    ContextFull,
    /// The agent's queue is full.
    #[error("too many messages wait for the agent")]
    AgentFull,
    /// The store could not.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What can go wrong in a store.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// No space left, or too much waiting to be written. What is stored can still be read.
    #[error("the store takes no more at the moment: {0}")]
    Full(Arc<str>),
    /// The store cannot be reached or written, for now.
    #[error("the store is not available: {0}")]
    Unavailable(Arc<str>),
    /// What was read is not what was written.
    #[error("stored data is damaged: {0}")]
    Corrupt(Arc<str>),
    /// The store has stopped for good: it no longer knows what is on the disk.
    #[error("the store has stopped: {0}")]
    Stopped(Arc<str>),
}

/// A turn that was leased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// Which turn.
    pub turn: TurnRef,
    /// For which agent.
    pub agent: AgentId,
    /// Under which lease.
    pub attempt: Attempt,
}

/// What a claim brought.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    /// Turns now leased to the claimer.
    pub turns: Vec<Claimed>,
    /// When the next ready turn of the agents asked for comes due, if none is due now.
    pub next_due: Option<Timestamp>,
}

/// Which tasks a list wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListFilter {
    /// Only this conversation.
    pub context_id: Option<ContextId>,
    /// Only this state.
    pub state: Option<TaskState>,
    /// Only tasks whose status changed at or after this millisecond.
    pub status_at_least: Option<i64>,
}

/// A place in the order of a list: newest status first, then the larger key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListPlace {
    /// Milliseconds of the status timestamp.
    pub status_at: i64,
    /// The task's key.
    pub key: TaskKey,
}

/// A task as it is stored, at one moment.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Its head, open turns included.
    pub head: Arc<Head>,
    /// Its newest snapshot, if there is one.
    pub snapshot: Option<Snapshot>,
    /// The entries after the snapshot, or from the first on: at least one if there is one, then as
    /// many as were asked for.
    pub entries: Vec<Entry>,
}

/// A task in a list.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Where it stands in the order.
    pub place: ListPlace,
    /// Its current version.
    pub version: Number,
    /// Its newest snapshot, if there is one; `artifacts` is `[]` unless they were asked for.
    pub snapshot: Option<Snapshot>,
    /// The entries after the snapshot, or from the first on, if they are few; else none. None
    /// either if the caller has the task already.
    pub entries: Vec<Entry>,
}

/// Says whether the caller of [`Store::list`] has this version of a task already.
pub type Known<'k> = dyn FnMut(TaskKey, Number) -> bool + Send + 'k;

/// A page of a list.
#[derive(Clone, Debug, Default)]
pub struct ListPage {
    /// In order.
    pub tasks: Vec<Listed>,
    /// There are more after these.
    pub more: bool,
    /// How many tasks match in all.
    pub total: u64,
}

/// Counts for gauges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Open turns by state: waiting, ready, leased.
    pub turns: [u64; 3],
    /// Turns that ran out of tries.
    pub dead: u64,
}

/// Where tasks, journals and turns are kept.
///
/// What `commit` has answered is on the disk. Per change, never per batch, it reports a conflict.
/// A turn is ready when nothing unfinished precedes it in its context; the commit that ends one
/// turn makes the next one ready.
pub trait Store: Send + Sync + std::fmt::Debug {
    /// Mints and reads this store's public ids.
    fn public_ids(&self) -> &PublicIds;

    /// Sets `count` task keys aside. They grow; none is ever given twice.
    fn allot(&self, count: u32) -> BoxFuture<'_, Result<Range<i64>, StoreError>>;

    /// Commits a change; answers when it is durable and [`Wake`] has been told.
    fn commit(&self, change: Change) -> BoxFuture<'_, Result<Applied, ChangeError>>;

    /// The key of the task with this id, if it is in this scope. Not yours is not there.
    fn find(
        &self,
        scope: &Scope,
        id: &TaskId,
    ) -> BoxFuture<'_, Result<Option<TaskKey>, StoreError>>;

    /// The task with this id, if it is in this scope, with all that it takes to fold it; of the
    /// entries at least one if there is one, then up to `bytes_max`.
    fn load(
        &self,
        scope: &Scope,
        id: &TaskId,
        bytes_max: usize,
    ) -> BoxFuture<'_, Result<Option<Stored>, StoreError>>;

    /// The head of a task, its open turns included.
    fn head(&self, task: TaskKey) -> BoxFuture<'_, Result<Option<Arc<Head>>, StoreError>>;

    /// Entries after `after`, in order: at least one if there is one, then up to `bytes_max`.
    fn read(
        &self,
        task: TaskKey,
        after: Number,
        bytes_max: usize,
    ) -> BoxFuture<'_, Result<Vec<Entry>, StoreError>>;

    /// The newest snapshot of a task.
    fn snapshot(&self, task: TaskKey) -> BoxFuture<'_, Result<Option<Snapshot>, StoreError>>;

    /// A page of the scope's tasks, strictly after `after`: at most `limit`, and snapshots and
    /// entries of at most `bytes_max`, but at least one if there is one and one is asked for.
    ///
    /// `known` is asked about each task of the page, in order, and says whether the caller has this
    /// version of it already. Then neither its snapshot nor its entries are brought.
    #[expect(
        clippy::too_many_arguments,
        reason = "each is a thing of its own, and the engine is the only caller"
    )]
    fn list<'a>(
        &'a self,
        scope: &'a Scope,
        filter: &'a ListFilter,
        after: Option<ListPlace>,
        limit: usize,
        bytes_max: usize,
        artifacts: bool,
        known: &'a mut Known<'_>,
    ) -> BoxFuture<'a, Result<ListPage, StoreError>>;

    /// Up to `limit` tasks of anybody that have ended or wait for their client, with their
    /// versions: those strictly after `after`, the one that has rested for longest coming first.
    fn rested(
        &self,
        after: ListPlace,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<(ListPlace, Number)>, StoreError>>;

    /// The request that had this key in this scope.
    fn once(
        &self,
        scope: &Scope,
        key: [u8; 16],
    ) -> BoxFuture<'_, Result<Option<OnceHit>, StoreError>>;

    /// Registers a holder of leases.
    fn open_holder(&self) -> BoxFuture<'_, Result<HolderId, StoreError>>;

    /// Leases ready turns that are due: up to so many for each agent, oldest first.
    fn claim(
        &self,
        holder: HolderId,
        wanted: Vec<(AgentId, u32)>,
    ) -> BoxFuture<'_, Result<Claims, StoreError>>;

    /// The open turns of a task and of all others in its context, in the order in which they came;
    /// none if the task has none.
    fn line(&self, task: TaskKey) -> BoxFuture<'_, Result<Vec<TurnRef>, StoreError>>;

    /// Leased turns whose holder is gone, oldest first.
    fn orphans(&self, limit: u32) -> BoxFuture<'_, Result<Vec<Claimed>, StoreError>>;

    /// Tasks that wait for their client since before `before`, oldest first.
    fn idle(
        &self,
        before: Timestamp,
        limit: u32,
    ) -> BoxFuture<'_, Result<Vec<TaskKey>, StoreError>>;

    /// Deletes up to `limit` tasks that ended before `before`, with all that belongs to them.
    fn purge(
        &self,
        before: Timestamp,
        limit: u32,
    ) -> BoxFuture<'_, Result<Vec<TaskKey>, StoreError>>;

    /// Counts for gauges.
    fn stats(&self) -> BoxFuture<'_, Result<StoreStats, StoreError>>;

    /// Whether writing works: what readiness asks.
    fn check(&self) -> BoxFuture<'_, Result<(), StoreError>>;

    /// The current version of a task, if it is there: one cheap read.
    fn version(&self, task: TaskKey) -> BoxFuture<'_, Result<Option<Number>, StoreError>>;

    /// Whether nobody else writes what is stored. If so, what was read or committed once stays true
    /// until [`Wake::committed`] says otherwise; if not, another instance may have changed it, and
    /// [`Wake::changed`] says so a moment later.
    fn exclusive(&self) -> bool {
        true
    }
}

/// What a commit has made true, told to the engine before anybody is answered.
#[derive(Clone, Debug)]
pub struct Committed {
    /// The task's new head.
    pub head: Arc<Head>,
    /// The entries that the commit added.
    pub entries: Vec<Entry>,
    /// The fold that came with the change, if one did.
    pub snapshot: Option<Snapshot>,
    /// Agents with turns that became ready.
    pub ready: Vec<AgentId>,
}

impl Committed {
    /// Whether the commit holds all of a task, from its beginning to its end.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let begins = self.entries.first().map(|entry| entry.number) == Some(Number::FIRST);
        begins && self.head.state.is_terminal()
    }
}

/// Who has to hear of commits: the engine's caches, cursors and runner. Called by the store, in
/// commit order, from whatever thread it has; must not block.
pub trait Wake: Send + Sync + std::fmt::Debug {
    /// A batch was committed.
    fn committed(&self, batch: Vec<Committed>);

    /// A batch was committed that deleted these tasks, which had ended.
    fn deleted(&self, _tasks: &[TaskKey]) {}

    /// The store has stopped for good.
    fn stopped(&self, reason: &str);

    /// Another instance has brought these tasks to at least these versions.
    fn changed(&self, _tasks: &[(TaskKey, Number)]) {}

    /// Another instance has made turns of these agents ready, or ready turns were found waiting.
    fn ready(&self, _agents: &[AgentId]) {}

    /// The tasks that somebody follows right now, with the newest version that is known here. A
    /// store that is shared asks about once a second and looks whether there is anything newer,
    /// so that a notification that got lost costs a moment and no entry.
    fn watched(&self) -> Vec<(TaskKey, Number)> {
        Vec::new()
    }

    /// The leases of this holder are over: it could not be kept alive in time, so others may have
    /// taken its turns. Whoever works under it has to stop, and to open another.
    fn holder_lost(&self, _holder: HolderId) {}
}

/// Where a newborn turn stands, given what is open in its context.
///
/// One rule for all stores, so that it is tested once: nothing may overtake.
#[must_use]
pub fn birth(anything_open: bool, lease_to: Option<HolderId>) -> TurnState {
    match (anything_open, lease_to) {
        (true, _) => TurnState::Waiting,
        (false, Some(_)) => TurnState::Leased,
        (false, None) => TurnState::Ready,
    }
}
