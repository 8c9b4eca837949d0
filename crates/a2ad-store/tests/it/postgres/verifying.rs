//! What a walk over the database finds: nothing where nothing is wrong, and whatever is planted.

use a2ad_core::contract::sample::once;
use a2ad_core::store::Store as _;
use a2ad_pgkit::Cluster;
use a2ad_store::postgres::verify;
use a2ad_store::{PostgresOptions, VerifyReport};

use super::rig::{Instance, end};

async fn verified(url: &str) -> VerifyReport {
    verify(PostgresOptions::at(url)).await.unwrap()
}

/// A database with a task that has ended, one at work, and three in one conversation.
async fn filled(cluster: &Cluster) -> (String, Instance) {
    let database = cluster.create_database();
    let instance = Instance::open(&cluster.url(&database)).await;
    let holder = instance.store.open_holder().await.unwrap();
    let mut change = instance.submission(None).await;
    change.once = Some(once(1, 7, 1));
    change.lease_to = Some(holder);
    let head = instance.store.commit(change).await.unwrap().head;
    instance.store.commit(end(&head)).await.unwrap();
    instance.begin_leased(holder).await;
    for _ in 0..3 {
        let change = instance.submission(Some("a holiday")).await;
        instance.store.commit(change).await.unwrap();
    }
    (database, instance)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sound_database_is_found_sound_while_it_is_in_use() {
    let cluster = Cluster::shared();
    let (database, _instance) = filled(cluster).await;
    let report = verified(&cluster.url(&database)).await;
    assert!(report.is_sound(), "{report:?}");
    assert_eq!((report.tasks, report.turns), (5, 4));
    assert_eq!((report.runs, report.entries), (6, 6));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_wrong_is_found_and_named() {
    let cluster = Cluster::shared();
    for (damage, found) in [
        (
            "UPDATE a2ad.runs SET bytes = set_byte(bytes, 9, get_byte(bytes, 9) # 1)
             WHERE id = (SELECT min(id) FROM a2ad.runs)",
            "do not match their hash",
        ),
        (
            "DELETE FROM a2ad.runs WHERE id = (SELECT min(id) FROM a2ad.runs)",
            "it follows entry 0",
        ),
        (
            "UPDATE a2ad.tasks SET version = version + 1",
            "its head says",
        ),
        (
            "UPDATE a2ad.tasks SET chain = gen_random_uuid()",
            "not the hash of its last run",
        ),
        (
            "UPDATE a2ad.tasks SET state = 4 WHERE state = 3",
            "not in its journal's state",
        ),
        (
            "UPDATE a2ad.tasks SET id = gen_random_uuid()",
            "its id does not lead to it",
        ),
        ("DELETE FROM a2ad.requests", "would not be recognised"),
        (
            "DELETE FROM a2ad.tasks WHERE key = (SELECT min(key) FROM a2ad.tasks)",
            "entries of a task that is not there",
        ),
        (
            "DELETE FROM a2ad.contexts",
            "its context is missing or another owner's",
        ),
        ("UPDATE a2ad.counters SET n = n + 1", "its counters say"),
        (
            "UPDATE a2ad.open_turns SET n = n + 1",
            "open turns, its counters say",
        ),
        (
            "UPDATE a2ad.turns SET state = 1",
            "its turn has overtaken another",
        ),
        (
            "UPDATE a2ad.turns SET holder = NULL",
            "its turn's lease has no holder",
        ),
        (
            "UPDATE a2ad.meta SET number = 1 WHERE key = 'next_key'",
            "the next key is 1",
        ),
        (
            "DELETE FROM a2ad.meta WHERE key = 'secret'",
            "the secret of its ids is missing",
        ),
    ] {
        let (database, instance) = filled(cluster).await;
        instance.store.close().await;
        cluster.sql(&database, damage);
        let report = verified(&cluster.url(&database)).await;
        let named = |problem: &a2ad_store::Problem| problem.to_string().contains(found);
        assert!(report.problems.iter().any(named), "{damage}: {report:?}");
    }
}

#[tokio::test]
async fn a_database_without_our_tables_is_not_called_sound() {
    let url = Cluster::shared().create();
    let error = verify(PostgresOptions::at(&url)).await.unwrap_err();
    assert!(
        error.to_string().contains("has no tables of a2ad"),
        "{error}"
    );
}
