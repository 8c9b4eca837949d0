//! What the facts are written with: a store, a clock that stands still, and real decisions.

use std::sync::{Arc, Mutex, PoisonError};

use a2ad_proto::Timestamp;

use super::Harness;
use super::sample::{change, finish, submit, unborn};
use crate::clock::manual::{ManualClock, Seeded};
use crate::clock::{Clock, Surroundings};
use crate::keys::{HolderId, Number, Scope, TaskKey};
use crate::store::{Applied, Change, ChangeError, Committed, ContextChoice, Store, Wake};
use crate::task::{Command, Entry, Fold, Head, Identity, Outcome, TurnState, apply};

/// When the clock of a test stands at first.
pub(super) const DAWN: i64 = 1_700_000_000_000;

/// Remembers what a store told the engine.
#[derive(Debug, Default)]
pub struct Recorder {
    heard: Mutex<Vec<Committed>>,
    deleted: Mutex<Vec<TaskKey>>,
    stopped: Mutex<Vec<String>>,
}

impl Recorder {
    /// Everything committed so far, in order.
    #[must_use]
    pub fn heard(&self) -> Vec<Committed> {
        lock(&self.heard).clone()
    }

    /// The tasks that it said it had deleted, in order.
    #[must_use]
    pub fn deleted(&self) -> Vec<TaskKey> {
        lock(&self.deleted).clone()
    }

    /// How often, and why, the store said it had stopped.
    #[must_use]
    pub fn stopped(&self) -> Vec<String> {
        lock(&self.stopped).clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Wake for Recorder {
    fn committed(&self, batch: Vec<Committed>) {
        lock(&self.heard).extend(batch);
    }

    fn deleted(&self, tasks: &[TaskKey]) {
        lock(&self.deleted).extend(tasks);
    }

    fn stopped(&self, reason: &str) {
        lock(&self.stopped).push(reason.to_owned());
    }
}

pub(super) struct World<'a> {
    harness: &'a dyn Harness,
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Arc<ManualClock>,
    pub(super) wake: Arc<Recorder>,
    random: Arc<Seeded>,
}

impl<'a> World<'a> {
    pub(super) async fn open(harness: &'a dyn Harness) -> Self {
        let clock = Arc::new(ManualClock::at(DAWN));
        let random = Arc::new(Seeded::new(7));
        Self::on(harness, clock, random, Arc::new(Recorder::default())).await
    }

    /// Restarts the store in the same place.
    pub(super) async fn reopen(self) -> Self {
        self.harness.close(self.store).await;
        Self::on(self.harness, self.clock, self.random, self.wake).await
    }

    async fn on(
        harness: &'a dyn Harness,
        clock: Arc<ManualClock>,
        random: Arc<Seeded>,
        wake: Arc<Recorder>,
    ) -> Self {
        let surroundings = Surroundings {
            clock: clock.clone(),
            random: random.clone(),
        };
        let store = harness.open(surroundings, wake.clone()).await;
        Self {
            harness,
            store,
            clock,
            wake,
            random,
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A submission in a context of its own, not yet committed.
    pub(super) async fn submission(&self, scope: &Scope) -> Change {
        let head = self.unborn(scope, None).await;
        self.decide(&head, &[submit("hello")])
    }

    /// A submission in the context with this name, not yet committed.
    pub(super) async fn submission_in(&self, scope: &Scope, context: &str) -> Change {
        let head = self.unborn(scope, Some(context)).await;
        let mut change = self.decide(&head, &[submit("hello")]);
        change.context = ContextChoice::Named(context.parse().unwrap());
        change
    }

    async fn unborn(&self, scope: &Scope, context: Option<&str>) -> Head {
        let key = self.store.allot(1).await.unwrap().start;
        let head = unborn(self.store.public_ids(), key, &*self.random, scope);
        let Some(name) = context else { return head };
        Head::unborn(Identity {
            context_id: name.parse().unwrap(),
            ..(*head.identity).clone()
        })
    }

    /// What `commands`, one after the other, mean for the task with this head.
    pub(super) fn decide(&self, head: &Head, commands: &[Command]) -> Change {
        change(head, commands, self.now())
    }

    /// Commits what must succeed.
    pub(super) async fn commit(&self, change: Change) -> Applied {
        self.store.commit(change).await.expect("it is committed")
    }

    /// Commits what must be refused, and says why it was.
    pub(super) async fn refusal(&self, change: Change) -> ChangeError {
        self.store
            .commit(change)
            .await
            .expect_err("it must not be committed")
    }

    /// A new task in a context of its own.
    pub(super) async fn begin(&self, scope: &Scope) -> Arc<Head> {
        let change = self.submission(scope).await;
        self.commit(change).await.head
    }

    /// A new task in a named context.
    pub(super) async fn begin_in(&self, scope: &Scope, context: &str) -> Arc<Head> {
        let change = self.submission_in(scope, context).await;
        self.commit(change).await.head
    }

    /// A new task whose turn `holder` has leased.
    pub(super) async fn begin_leased(&self, scope: &Scope, holder: HolderId) -> Arc<Head> {
        let mut change = self.submission(scope).await;
        change.lease_to = Some(holder);
        let head = self.commit(change).await.head;
        assert_eq!(head.turns[0].state, TurnState::Leased);
        head
    }

    /// A task that has ended with this outcome.
    pub(super) async fn ended(&self, scope: &Scope, outcome: Outcome) -> Arc<Head> {
        let holder = self.store.open_holder().await.unwrap();
        let head = self.begin_leased(scope, holder).await;
        self.commit(self.decide(&head, &[finish(&head, outcome)]))
            .await
            .head
    }

    /// The stored head.
    pub(super) async fn head(&self, task: TaskKey) -> Arc<Head> {
        self.store
            .head(task)
            .await
            .unwrap()
            .expect("the task is there")
    }

    /// The whole journal, in pages of `bytes_max`.
    pub(super) async fn journal(&self, task: TaskKey, bytes_max: usize) -> Vec<Entry> {
        let mut entries: Vec<Entry> = Vec::new();
        loop {
            let after = entries.last().map_or(Number::ZERO, |entry| entry.number);
            let page = self.store.read(task, after, bytes_max).await.unwrap();
            if page.is_empty() {
                return entries;
            }
            entries.extend(page);
        }
    }

    /// The task that its journal tells of.
    pub(super) async fn fold(&self, task: TaskKey) -> Fold {
        let mut fold = Fold::default();
        for entry in self.journal(task, 1 << 20).await {
            apply(&mut fold, entry.record().unwrap());
        }
        fold
    }
}

pub(super) fn states(head: &Head) -> Vec<TurnState> {
    head.turns.iter().map(|turn| turn.state).collect()
}

pub(super) fn assert_journal(entries: &[Entry], version: Number) {
    let numbers: Vec<u64> = entries.iter().map(|entry| entry.number.0).collect();
    let expected: Vec<u64> = (1..=version.0).collect();
    assert_eq!(numbers, expected, "numbers have no gap");
}

pub(super) const COMPLETED: a2ad_proto::TaskState = a2ad_proto::TaskState::Completed;
