//! An engine that has done its last turn, while connections to it are still open.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use a2ad_core::agent::AgentPolicy;
use a2ad_core::engine::{AgentSpec, Engine, EngineError, EngineOptions, Hub};
use a2ad_core::store::Store;
use a2ad_pgkit::Cluster;
use a2ad_pgkit::proxy::Proxy;
use a2ad_proto::{GetTaskRequest, SendMessageRequest, SendMessageResponse, Task, TaskState};
use a2ad_store::{PostgresOptions, PostgresStore, SqliteOptions, SqliteStore};
use a2ad_testkit::agents::obedient;
use a2ad_testkit::client::{at_once, text};
use tempfile::TempDir;
use tokio::time::timeout;

use super::caller;

async fn engine(store: Arc<dyn Store>, hub: Arc<Hub>) -> Engine {
    let options = EngineOptions::new(vec![AgentSpec {
        id: "obedient".parse().unwrap(),
        agent: obedient(),
        policy: AgentPolicy::default(),
    }]);
    Engine::start(options, store, hub).await.unwrap()
}

async fn instance(url: &str) -> Engine {
    let hub = Hub::new();
    let store = PostgresStore::open(PostgresOptions::at(url), Arc::clone(&hub) as _).await;
    engine(Arc::new(store.unwrap()), hub).await
}

async fn send(engine: &Engine, request: SendMessageRequest) -> Task {
    let answer = engine.send(&caller(), request).await.unwrap();
    match serde_json::from_slice(&answer).unwrap() {
        SendMessageResponse::Task(task) => task,
        SendMessageResponse::Message(reply) => panic!("a task was expected: {reply:?}"),
    }
}

/// Whoever uses an old connection again in the last moment of a restart is not refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_in_last_is_taken_for_the_others() {
    let url = Cluster::shared().create();
    let leaving = instance(&url).await;
    let staying = instance(&url).await;
    leaving.drain(Duration::ZERO).await;
    // Nothing is waited for any more: the task is answered as it is.
    for request in [text("words a 1"), at_once(text("words a 2"))] {
        let task = send(&leaving, request).await;
        let until = tokio::time::Instant::now() + Duration::from_secs(20);
        loop {
            let request = GetTaskRequest {
                id: task.id.clone(),
                ..GetTaskRequest::default()
            };
            let shown = staying.get(&caller(), request).await.unwrap();
            let shown: Task = serde_json::from_slice(&shown).unwrap();
            if shown.status.state == TaskState::Completed {
                break;
            }
            assert!(tokio::time::Instant::now() < until, "{shown:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// What comes in last is not waited for: there might always be more of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_ends_though_a_message_is_on_its_way_to_the_database() {
    let cluster = Cluster::shared();
    let proxy = Proxy::start(cluster.port()).await;
    let database = cluster.create_database();
    let leaving = instance(&proxy.url(&database)).await;
    // By now all its connections are there.
    for _ in 0..32 {
        send(&leaving, text("words a 1")).await;
    }
    leaving.drain(Duration::ZERO).await;
    proxy.behaviour.stalled.store(true, Ordering::Relaxed);
    let is_on_its_way = async {
        let condition = "EXISTS (SELECT 1 FROM pg_stat_activity
            WHERE state = 'idle in transaction' AND datname = current_database())";
        while !cluster.holds(&database, condition) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let ended = timeout(Duration::from_secs(1), leaving.drain(Duration::ZERO)).await;
        assert!(ended.is_ok(), "it waits");
        proxy.behaviour.stalled.store(false, Ordering::Relaxed);
    };
    // Whether it is kept is another matter.
    let caller = caller();
    let late = leaving.send(&caller, text("words a 2"));
    let (_told, ()) = tokio::join!(late, is_on_its_way);
}

/// Where there are no others, it is refused, and the client tries again with the next start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_in_last_is_refused_where_nobody_else_could_work_on_it() {
    let folder = TempDir::new().unwrap();
    let hub = Hub::new();
    let options = SqliteOptions::at(folder.path().join("a2ad.db"));
    let store = SqliteStore::open(options, Arc::clone(&hub) as _).unwrap();
    let engine = engine(Arc::new(store), hub).await;
    engine.drain(Duration::ZERO).await;
    let refused = engine.send(&caller(), text("words a 1")).await.unwrap_err();
    assert!(
        matches!(refused, EngineError::Unavailable(None)),
        "{refused:?}"
    );
}
