//! What the tests are written with: stores on one database, and an engine that only listens.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use a2ad_core::clock::{Clock as _, SystemClock, SystemRandom};
use a2ad_core::contract::sample::{alice, change, finish, submit, unborn};
use a2ad_core::keys::{HolderId, Number, TaskKey};
use a2ad_core::store::{Change, Committed, ContextChoice, Store as _, Wake};
use a2ad_core::task::{Head, Identity, Outcome};
use a2ad_proto::AgentId;
use a2ad_store::{PostgresOptions, PostgresStore};
use tokio::time::{Instant, sleep};

/// How long anything may take that has to happen.
const PATIENCE: Duration = Duration::from_secs(20);

/// Remembers what a store told it.
#[derive(Debug, Default)]
pub(crate) struct Ears {
    pub(crate) committed: Mutex<Vec<(TaskKey, Number)>>,
    pub(crate) changed: Mutex<Vec<(TaskKey, Number)>>,
    pub(crate) ready: Mutex<Vec<AgentId>>,
    pub(crate) lost: Mutex<Vec<HolderId>>,
    /// What it is asked for.
    pub(crate) watched: Mutex<Vec<(TaskKey, Number)>>,
}

impl Wake for Ears {
    fn committed(&self, batch: Vec<Committed>) {
        let heads = batch.iter().map(|one| &one.head);
        let news = heads.map(|head| (head.identity.key, head.version));
        self.committed.lock().unwrap().extend(news);
    }

    fn stopped(&self, reason: &str) {
        panic!("{reason}");
    }

    fn changed(&self, tasks: &[(TaskKey, Number)]) {
        self.changed.lock().unwrap().extend(tasks);
    }

    fn ready(&self, agents: &[AgentId]) {
        self.ready.lock().unwrap().extend(agents.iter().cloned());
    }

    fn watched(&self) -> Vec<(TaskKey, Number)> {
        self.watched.lock().unwrap().clone()
    }

    fn holder_lost(&self, holder: HolderId) {
        self.lost.lock().unwrap().push(holder);
    }
}

/// A store and who listens to it.
#[derive(Clone, Debug)]
pub(crate) struct Instance {
    pub(crate) store: Arc<PostgresStore>,
    pub(crate) ears: Arc<Ears>,
}

impl Instance {
    pub(crate) async fn open(url: &str) -> Self {
        Self::open_with(PostgresOptions::at(url)).await
    }

    pub(crate) async fn open_with(options: PostgresOptions) -> Self {
        let ears = Arc::new(Ears::default());
        let store = PostgresStore::open(options, ears.clone()).await.unwrap();
        Self {
            store: Arc::new(store),
            ears,
        }
    }

    /// A submission in a context of its own, or in one with this name.
    pub(crate) async fn submission(&self, context: Option<&str>) -> Change {
        let key = self.store.allot(1).await.unwrap().start;
        let head = unborn(self.store.public_ids(), key, &SystemRandom, &alice());
        let Some(name) = context else {
            return change(&head, &[submit("hello")], SystemClock.now());
        };
        let head = Head::unborn(Identity {
            context_id: name.parse().unwrap(),
            ..(*head.identity).clone()
        });
        let mut change = change(&head, &[submit("hello")], SystemClock.now());
        change.context = ContextChoice::Named(name.parse().unwrap());
        change
    }

    /// A new task whose turn anybody may claim.
    pub(crate) async fn begin(&self) -> Arc<Head> {
        let change = self.submission(None).await;
        self.store.commit(change).await.unwrap().head
    }

    /// A new task whose turn `holder` has.
    pub(crate) async fn begin_leased(&self, holder: HolderId) -> Arc<Head> {
        let mut change = self.submission(None).await;
        change.lease_to = Some(holder);
        self.store.commit(change).await.unwrap().head
    }
}

/// The end of a task's turn.
pub(crate) fn end(head: &Head) -> Change {
    change(
        head,
        &[finish(head, Outcome::Completed(None))],
        SystemClock.now(),
    )
}

/// Waits for something that has to happen.
pub(crate) async fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "{what}: it did not happen");
        sleep(Duration::from_millis(5)).await;
    }
}

/// Waits for something that a question tells.
pub(crate) async fn eventually_asked<F: Future<Output = bool>>(
    what: &str,
    mut ask: impl FnMut() -> F,
) {
    let until = Instant::now() + PATIENCE;
    while !ask().await {
        assert!(Instant::now() < until, "{what}: it did not happen");
        sleep(Duration::from_millis(20)).await;
    }
}
