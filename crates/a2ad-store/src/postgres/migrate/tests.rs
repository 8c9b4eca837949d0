//! Schemas: older instances go on where the newer schema lets them, and are not left behind unasked.

use std::sync::Arc;
use std::time::Duration;

use a2ad_core::clock::{Clock as _, SystemClock, SystemRandom};
use a2ad_core::contract::Recorder;
use a2ad_core::contract::sample::{alice, change, finish, submit, unborn};
use a2ad_core::store::{ListFilter, Store as _};
use a2ad_core::task::{Head, Outcome};
use a2ad_pgkit::Cluster;

use super::*;
use crate::postgres::open::{self, OpenError};
use crate::{PostgresOptions, PostgresStore};

/// As a later release could have it: more columns and a table that this one does not know.
const SECOND: Migration = Migration {
    schema: 2,
    oldest_compatible: 1,
    sql: "ALTER TABLE tasks ADD COLUMN mood text;
          ALTER TABLE runs ADD COLUMN sealed boolean NOT NULL DEFAULT false;
          ALTER TABLE turns ADD COLUMN priority integer NOT NULL DEFAULT 0;
          ALTER TABLE contexts ADD COLUMN title text;
          ALTER TABLE snapshots ADD COLUMN made_at bigint;
          ALTER TABLE holders ADD COLUMN place text;
          ALTER TABLE requests ADD COLUMN seen_at bigint;
          CREATE TABLE notes (task bigint PRIMARY KEY, text text NOT NULL);
          CREATE INDEX tasks_by_mood ON tasks (mood) WHERE mood IS NOT NULL;",
};

/// And one that older code would stumble over.
const THIRD: Migration = Migration {
    schema: 3,
    oldest_compatible: 3,
    sql: "ALTER TABLE turns RENAME COLUMN due TO due_at;",
};

/// Does what a release with these further steps does when it starts.
async fn start_later(url: &str, later: &[Migration]) -> Result<Database, OpenError> {
    let steps: Vec<Migration> = MIGRATIONS.iter().chain(later).copied().collect();
    let ground = Ground::new(PostgresOptions::at(url))?;
    let migrated = async {
        let session = open::connect(&ground).await?;
        migrate(&ground, &session, &steps).await
    };
    let migrated = migrated.await;
    ground.close().await;
    migrated
}

async fn start(url: &str) -> Result<PostgresStore, OpenError> {
    let options = PostgresOptions {
        patience: Duration::from_millis(200),
        ..PostgresOptions::at(url)
    };
    PostgresStore::open(options, Arc::new(Recorder::default())).await
}

async fn begin(store: &PostgresStore) -> Arc<Head> {
    let key = store.allot(1).await.unwrap().start;
    let head = unborn(store.public_ids(), key, &SystemRandom, &alice());
    let change = change(&head, &[submit("hello")], SystemClock.now());
    store.commit(change).await.unwrap().head
}

/// Everything that a server does: takes in, claims, finishes, shows, lists.
async fn serve(store: &PostgresStore) {
    let begun = begin(store).await;
    let (key, id) = (begun.identity.key, begun.identity.id.clone());
    let holder = store.open_holder().await.unwrap();
    let wanted = vec![(alice().agent, 10)];
    let claims = store.claim(holder, wanted).await.unwrap();
    assert!(claims.turns.iter().any(|claimed| claimed.turn.task == key));
    let head = store.head(key).await.unwrap().unwrap();
    let end = change(
        &head,
        &[finish(&head, Outcome::Completed(None))],
        SystemClock.now(),
    );
    let ended = store.commit(end).await.unwrap().head;
    let stored = store.load(&alice(), &id, 1 << 20).await.unwrap().unwrap();
    assert_eq!(stored.head.version, ended.version);
    assert_eq!(stored.entries.len() as u64, ended.version.0);
    let filter = ListFilter::default();
    let scope = alice();
    let mut unknown = |_, _| false;
    let page = store.list(&scope, &filter, None, 10, 1 << 20, true, &mut unknown);
    assert!(!page.await.unwrap().tasks.is_empty());
    assert!(store.orphans(10).await.unwrap().is_empty());
    store.check().await.unwrap();
}

#[test]
fn migrations_are_numbered_without_gap_and_say_why() {
    for (at, step) in MIGRATIONS.iter().enumerate() {
        assert_eq!(step.schema as usize, at + 1);
        assert!(step.oldest_compatible <= step.schema);
        assert!(step.sql.starts_with("-- "), "it opens with why");
    }
}

#[tokio::test]
async fn an_older_instance_goes_on_while_a_newer_one_changes_the_schema() {
    let url = Cluster::shared().create();
    let older = start(&url).await.unwrap();
    // With statements prepared and names known, as in the middle of its life.
    serve(&older).await;
    let migrated = start_later(&url, &[SECOND]).await.unwrap();
    assert_eq!((migrated.found, migrated.schema), (1, 2));
    serve(&older).await;
    // One that starts only now, too.
    let late = start(&url).await.unwrap();
    serve(&late).await;
    serve(&older).await;
    // The newer one starts again: there is nothing left to do.
    let again = start_later(&url, &[SECOND]).await.unwrap();
    assert_eq!((again.found, again.schema), (2, 2));
    late.close().await;
    older.close().await;
}

#[tokio::test]
async fn a_schema_that_leaves_older_ones_behind_waits_until_they_are_gone() {
    let url = Cluster::shared().create();
    let older = start(&url).await.unwrap();
    serve(&older).await;
    let error = start_later(&url, &[SECOND, THIRD]).await.unwrap_err();
    assert!(
        matches!(
            error,
            OpenError::OlderInstances {
                count: 1,
                needed: 3,
                ..
            }
        ),
        "{error:?}"
    );
    let told = error.to_string();
    assert!(told.contains("stop them first"), "{told}");
    // Nothing of it was done, not even what it could have borne.
    serve(&older).await;
    let status = crate::postgres::status(PostgresOptions::at(&url))
        .await
        .unwrap();
    assert_eq!(status.schema, 1);
    older.close().await;

    start_later(&url, &[SECOND, THIRD]).await.unwrap();
    let error = start(&url).await.unwrap_err();
    let told = error.to_string();
    assert!(
        told.contains("has schema 3, this a2ad knows up to 1: use a newer a2ad"),
        "{told}"
    );
    let status = crate::postgres::status(PostgresOptions::at(&url))
        .await
        .unwrap();
    assert_eq!((status.schema, status.oldest_compatible), (3, 3));
    assert!(!status.is_usable());
}

#[tokio::test]
async fn a_step_that_fails_leaves_the_database_as_it_was() {
    let url = Cluster::shared().create();
    start(&url).await.unwrap().close().await;
    let broken = Migration {
        sql: "DROP TABLE push_configs; DROP TABLE no_such_table;",
        ..SECOND
    };
    start_later(&url, &[broken]).await.unwrap_err();
    let store = start(&url).await.unwrap();
    serve(&store).await;
    store.close().await;
    let status = crate::postgres::status(PostgresOptions::at(&url))
        .await
        .unwrap();
    assert_eq!(status.schema, 1);
    assert_eq!(status.task_count(), 1);
}
