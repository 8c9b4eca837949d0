//! The oracle of the kill tests on a real PostgreSQL: what is planted there goes red under its name,
//! and without it all is green. What no database can show is planted in the oracle's own tests.

use a2ad_pgkit::Cluster;
use a2ad_proto::TaskState;
use a2ad_testkit::client::text;
use a2ad_testkit::harness::{Binding, Harness};
use a2ad_testkit::kill::checker::{Checker, Invariant};
use a2ad_testkit::kill::history::History;
use a2ad_testkit::kill::stored;

/// Three tasks of one client, then `planted`.
async fn broken_by(planted: &str) -> Vec<Invariant> {
    let cluster = Cluster::shared();
    let database = cluster.create_database();
    let url = cluster.url(&database);
    let server = Harness::start_on(Binding::JsonRpc, Some(&url)).await;
    let mut history = History::default();
    for n in 0..3 {
        let id = format!("0198a5b2-7c1e-7f3a-9d2e-3b1f5c7a9e1{n}");
        let mut request = text("words a b c");
        request.message.as_mut().unwrap().message_id.clone_from(&id);
        history.sending(&id, "words a b c");
        let task = server.client.send(request).await.unwrap();
        assert_eq!(task.status.state, TaskState::Completed);
        history.acknowledged(&id, &task.id, &task.context_id);
        history.shown(&task, true);
    }
    server.stop().await;
    if !planted.is_empty() {
        cluster.sql(&database, planted);
    }
    let mut checker = Checker::new(&history, "anonymous", true);
    stored::read_shared(&url, "obedient", &mut checker).await;
    let findings = checker.finish();
    // This agent obeys instead of echoing, so its texts are none that the oracle knows.
    let broken = findings.violated.into_keys();
    broken.filter(|it| *it != Invariant::TextOnce).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sound_database_is_green() {
    assert_eq!(broken_by("").await, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_task_is_seen() {
    let planted = "DELETE FROM a2ad.tasks WHERE key = (SELECT max(key) FROM a2ad.tasks)";
    let broken = broken_by(planted).await;
    // And the counters do not agree.
    assert_eq!(broken, [Invariant::NothingLost, Invariant::Sound]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_journal_that_ends_too_early_is_seen() {
    let planted = "DELETE FROM a2ad.runs WHERE id = (SELECT max(id) FROM a2ad.runs)";
    let broken = broken_by(planted).await;
    assert!(broken.contains(&Invariant::NoGap), "{broken:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_end_than_the_journal_tells_is_seen() {
    let planted = "UPDATE a2ad.tasks SET state = 5 WHERE key = (SELECT max(key) FROM a2ad.tasks)";
    let broken = broken_by(planted).await;
    assert!(broken.contains(&Invariant::OneEnd), "{broken:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_byte_is_seen() {
    let planted = "UPDATE a2ad.runs SET bytes = set_byte(bytes, 9, get_byte(bytes, 9) # 1)
        WHERE id = (SELECT max(id) FROM a2ad.runs)";
    let broken = broken_by(planted).await;
    assert!(broken.contains(&Invariant::Sound), "{broken:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_nobody_works_on_is_seen() {
    let planted = "INSERT INTO a2ad.turns
            (task, number, context, agent, holder, due, created_at, attempt, returned, state)
        SELECT t.key, 1, t.context, s.agent, 1, 0, 0, 1, 0, 2
        FROM a2ad.tasks t JOIN a2ad.scopes s ON s.key = t.scope ORDER BY t.key DESC LIMIT 1";
    // An open turn of a task that has ended is unsound as well.
    let broken = [Invariant::Sound, Invariant::NothingLeftOver];
    assert_eq!(broken_by(planted).await, broken);
}
