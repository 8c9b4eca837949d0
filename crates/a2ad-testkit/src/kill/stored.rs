//! What the store holds, read through its own door once nobody changes it any more.

use std::path::Path;
use std::sync::Arc;

use a2ad_core::keys::{Number, Owner, Scope, TaskKey};
use a2ad_core::store::{Committed, ListFilter, ListPlace, Store, StoreError, Wake};
use a2ad_core::task::Entry;
use a2ad_proto::TaskState;
use a2ad_store::{Durability, PostgresOptions, PostgresStore, SqliteOptions, SqliteStore};
use futures_util::StreamExt as _;

use super::checker::Checker;

/// How many tasks are listed at a time.
const PAGE: usize = 200;
/// How much of a journal is read at a time: little, so that reading in pieces is tried as well.
const READ_BYTES: usize = 16 << 10;
/// How many tasks are read at once.
const READ_AT_ONCE: usize = 8;

/// A task as the store holds it.
#[derive(Clone, Debug)]
pub struct StoredTask {
    /// Its public id.
    pub id: String,
    /// Its context's public id.
    pub context_id: String,
    /// Whose it is.
    pub owner: String,
    /// The state in its head.
    pub state: TaskState,
    /// The version in its head.
    pub version: u64,
    /// Its open turns.
    pub turns: usize,
    /// Its journal.
    pub entries: Vec<Entry>,
}

/// Nobody listens while the checker reads.
#[derive(Debug)]
struct Nobody;

impl Wake for Nobody {
    fn committed(&self, _batch: Vec<Committed>) {}
    fn stopped(&self, _reason: &str) {}
}

/// Shows the checker everything that the SQLite file at `path` holds, then what `verify` says of it.
pub async fn read_file(path: &Path, agent: &str, checker: &mut Checker<'_>) {
    match a2ad_store::verify(path) {
        Ok(report) => {
            for problem in &report.problems {
                checker.unsound(format!("verify: {problem}"));
            }
        }
        Err(error) => checker.unsound(format!("verify could not open the database: {error}")),
    }
    let options = SqliteOptions {
        durability: Durability::Os,
        ..SqliteOptions::at(path)
    };
    match SqliteStore::open(options, Arc::new(Nobody)) {
        Ok(store) => read_all(&store, agent, checker).await,
        Err(error) => checker.unsound(format!("the database cannot be opened: {error}")),
    }
}

/// Shows the checker what `verify` says of the PostgreSQL database at `url`, then everything that it
/// holds. Others may use it, as long as nothing changes.
pub async fn read_shared(url: &str, agent: &str, checker: &mut Checker<'_>) {
    match a2ad_store::postgres::verify(PostgresOptions::at(url)).await {
        Ok(report) => {
            for problem in &report.problems {
                checker.unsound(format!("verify: {problem}"));
            }
        }
        Err(error) => checker.unsound(format!("verify could not read the database: {error}")),
    }
    let mut options = PostgresOptions::at(url);
    "checker".clone_into(&mut options.name);
    match PostgresStore::open(options, Arc::new(Nobody)).await {
        Ok(store) => {
            read_all(&store, agent, checker).await;
            store.close().await;
        }
        Err(error) => checker.unsound(format!("the database cannot be opened: {error}")),
    }
}

async fn read_all(store: &dyn Store, agent: &str, checker: &mut Checker<'_>) {
    let scope = Scope {
        owner: Owner::anonymous(),
        agent: agent.parse().expect("the agent's id is one"),
    };
    if let Err(error) = read_tasks(store, &scope, checker).await {
        checker.unsound(format!("the database cannot be read: {error}"));
    }
    match store.stats().await {
        Ok(stats) => checker.turns_left(stats.turns.iter().sum(), stats.dead),
        Err(error) => checker.unsound(format!("turns cannot be counted: {error}")),
    }
}

async fn read_tasks(
    store: &dyn Store,
    scope: &Scope,
    checker: &mut Checker<'_>,
) -> Result<(), StoreError> {
    let mut after: Option<ListPlace> = None;
    let (mut listed, mut total) = (0, 0);
    loop {
        let page = store
            .list(
                scope,
                &ListFilter::default(),
                after,
                PAGE,
                usize::MAX,
                false,
                &mut |_, _| false,
            )
            .await?;
        if after.is_none() {
            total = page.total;
        }
        listed += page.tasks.len() as u64;
        let keys: Vec<TaskKey> = page.tasks.iter().map(|task| task.place.key).collect();
        let mut read = futures_util::stream::iter(keys)
            .map(|key| async move { (key, read_task(store, scope, key).await) })
            .buffered(READ_AT_ONCE);
        while let Some((key, task)) = read.next().await {
            match task {
                Ok(Some((stored, found))) => checker.stored(&stored, found == Some(key)),
                Ok(None) => checker.unsound(format!("task key {} has no head", key.0)),
                Err(error) => checker.unsound(format!("task key {}: {error}", key.0)),
            }
        }
        drop(read);
        after = page.tasks.last().map(|task| task.place);
        if !page.more || after.is_none() {
            break;
        }
    }
    if listed != total {
        checker.unsound(format!("{total} tasks are counted but {listed} listed"));
    }
    Ok(())
}

/// A task, and the key that its id is found by.
async fn read_task(
    store: &dyn Store,
    scope: &Scope,
    key: TaskKey,
) -> Result<Option<(StoredTask, Option<TaskKey>)>, StoreError> {
    let Some(head) = store.head(key).await? else {
        return Ok(None);
    };
    let mut entries: Vec<Entry> = Vec::new();
    loop {
        let after = entries.last().map_or(Number::ZERO, |entry| entry.number);
        let more = store.read(key, after, READ_BYTES).await?;
        if more.is_empty() {
            break;
        }
        entries.extend(more);
    }
    let found = store.find(scope, &head.identity.id).await?;
    let stored = StoredTask {
        id: head.identity.id.as_str().to_owned(),
        context_id: head.identity.context_id.as_str().to_owned(),
        owner: head.identity.scope.owner.as_str().to_owned(),
        state: head.state,
        version: head.version.0,
        turns: head.turns.len(),
        entries,
    };
    Ok(Some((stored, found)))
}
