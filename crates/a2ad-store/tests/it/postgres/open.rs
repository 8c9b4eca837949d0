//! Opening: whatever is found at the other end, the answer is clear and has no password in it.

use std::sync::Arc;
use std::time::Duration;

use a2ad_core::store::Store as _;
use a2ad_pgkit::proxy::Proxy;
use a2ad_pgkit::{Cluster, Durability, GUARDED_USER, PASSWORD};
use a2ad_store::postgres::OpenError;
use a2ad_store::{PostgresOptions, PostgresStore};

use super::rig::{Ears, Instance};

async fn failure(url: &str) -> OpenError {
    let options = PostgresOptions {
        patience: Duration::from_millis(300),
        connect_timeout: Duration::from_secs(5),
        ..PostgresOptions::at(url)
    };
    let opened = PostgresStore::open(options, Arc::new(Ears::default())).await;
    let error = opened.unwrap_err();
    let told = format!("{error} {error:?}");
    assert!(!told.contains("sesame"), "{told}");
    error
}

fn guarded_url(port: u16, password: &str, database: &str) -> String {
    let password = password.replace(' ', "%20");
    format!("postgres://{GUARDED_USER}:{password}@127.0.0.1:{port}/{database}?sslmode=disable")
}

fn create_guarded_user(cluster: &Cluster) {
    let make = format!(
        "DO $$ BEGIN CREATE ROLE {GUARDED_USER} LOGIN PASSWORD '{PASSWORD}';
         EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
    );
    cluster.sql("postgres", &make);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable() {
    let error = failure("postgres://me:sesame@127.0.0.1:1/a").await;
    assert!(matches!(error, OpenError::Unreachable { .. }), "{error:?}");
    let told = error.to_string();
    assert!(told.contains("127.0.0.1:1/a cannot be reached"), "{told}");
}

#[tokio::test]
async fn a_wrong_password_is_refused_and_the_right_one_is_not() {
    let cluster = Cluster::shared();
    let database = cluster.create_database();
    create_guarded_user(cluster);
    let error = failure(&guarded_url(cluster.port(), "close sesame", &database)).await;
    assert!(matches!(error, OpenError::Refused { .. }), "{error:?}");
    let told = error.to_string();
    assert!(told.contains("check user and password"), "{told}");
    let none = format!(
        "postgres://{GUARDED_USER}@127.0.0.1:{}/{database}?sslmode=disable",
        cluster.port()
    );
    let error = failure(&none).await;
    assert!(matches!(error, OpenError::Refused { .. }), "{error:?}");

    let url = guarded_url(cluster.port(), PASSWORD, &database);
    let error = failure(&url).await;
    assert!(matches!(error, OpenError::Privileges { .. }), "{error:?}");
    let told = error.to_string();
    assert!(told.contains("CREATE SCHEMA a2ad AUTHORIZATION"), "{told}");
    // What the message says helps.
    let help = format!("CREATE SCHEMA a2ad AUTHORIZATION {GUARDED_USER}");
    cluster.sql(&database, &help);
    let instance = Instance::open(&url).await;
    instance.begin().await;
    instance.store.check().await.unwrap();
    instance.store.close().await;

    // Another user's tables are not ours to use, whatever may be read of them.
    let database = cluster.create_database();
    Instance::open(&cluster.url(&database))
        .await
        .store
        .close()
        .await;
    let read = format!(
        "GRANT USAGE ON SCHEMA a2ad TO {GUARDED_USER};
         GRANT SELECT ON ALL TABLES IN SCHEMA a2ad TO {GUARDED_USER}"
    );
    cluster.sql(&database, &read);
    let error = failure(&guarded_url(cluster.port(), PASSWORD, &database)).await;
    assert!(matches!(error, OpenError::Privileges { .. }), "{error:?}");
    let told = error.to_string();
    assert!(told.contains("connect as the user who owns it"), "{told}");
}

#[tokio::test]
async fn a_database_that_does_not_exist_is_named() {
    let error = failure(&Cluster::shared().url("nowhere")).await;
    assert!(matches!(error, OpenError::NoDatabase { .. }), "{error:?}");
    assert!(error.to_string().contains("/nowhere does not exist"));
}

#[tokio::test]
async fn a_server_that_is_too_old_is_not_used() {
    let cluster = Cluster::shared();
    let proxy = Proxy::start(cluster.port()).await;
    let database = cluster.create_database();
    *proxy.behaviour.version.lock().unwrap() = Some("12.22 (Debian 12.22-1)");
    let error = failure(&proxy.url(&database)).await;
    let told = error.to_string();
    assert!(
        told.contains("runs PostgreSQL 12.22 (Debian 12.22-1), a2ad needs 13 or newer"),
        "{told}"
    );
    *proxy.behaviour.version.lock().unwrap() = Some("13.0");
    let instance = Instance::open(&proxy.url(&database)).await;
    instance.store.close().await;
}

#[tokio::test]
async fn a_standby_is_told_from_its_primary() {
    let mut cluster = Cluster::start(Durability::None);
    let database = cluster.create_database();
    cluster.stop();
    std::fs::write(cluster.data().join("standby.signal"), "").unwrap();
    cluster.restart();
    let error = failure(&cluster.url(&database)).await;
    assert!(matches!(error, OpenError::Standby { .. }), "{error:?}");
    assert!(error.to_string().contains("use the address of the primary"));
}

#[tokio::test]
async fn a_pooler_that_deals_by_transaction_is_noticed() {
    let cluster = Cluster::shared();
    let database = cluster.create_database();
    let pooler = Proxy::pooler(cluster.port(), database.clone()).await;
    let error = failure(&pooler.url(&database)).await;
    assert!(matches!(error, OpenError::Pooler { .. }), "{error:?}");
    assert!(error.to_string().contains("session mode"));
}

#[tokio::test]
async fn a_server_that_comes_up_late_is_waited_for() {
    let cluster = Cluster::shared();
    let proxy = Proxy::start(cluster.port()).await;
    let url = proxy.url(&cluster.create_database());
    proxy.close();
    let opening = Instance::open(&url);
    let coming = async {
        tokio::time::sleep(Duration::from_millis(400)).await;
        proxy.reopen();
    };
    let (instance, ()) = tokio::join!(opening, coming);
    instance.store.close().await;
}

#[tokio::test]
async fn a_newer_schema_is_used_if_it_says_that_it_can_be() {
    let cluster = Cluster::shared();
    let database = cluster.create_database();
    let instance = Instance::open(&cluster.url(&database)).await;
    let head = instance.begin().await;
    instance.store.close().await;
    // As a later release would leave it: one more column, which this one does not know.
    let later = "ALTER TABLE a2ad.tasks ADD COLUMN mood text;
                 UPDATE a2ad.meta SET number = 2 WHERE key = 'schema'";
    cluster.sql(&database, later);
    let instance = Instance::open(&cluster.url(&database)).await;
    assert_eq!(
        instance.store.head(head.identity.key).await.unwrap(),
        Some(head)
    );
    instance.begin().await;
    instance.store.close().await;

    let too_new = "UPDATE a2ad.meta SET number = 2 WHERE key = 'oldest_compatible'";
    cluster.sql(&database, too_new);
    let error = failure(&cluster.url(&database)).await;
    let told = error.to_string();
    assert!(
        told.contains("has schema 2, this a2ad knows up to 1"),
        "{told}"
    );
}

#[tokio::test]
async fn instances_that_open_an_empty_database_at_once_agree() {
    let url = Cluster::shared().create();
    let opening = (0..4).map(|_| Instance::open(&url));
    let instances = futures_util::future::join_all(opening).await;
    let head = instances[0].begin().await;
    for instance in &instances {
        let ids = instance.store.public_ids();
        let key = ids.key_of(head.identity.id.as_str());
        assert_eq!(key, Some(head.identity.key.0), "they have one secret");
        instance.store.close().await;
    }
}

#[tokio::test]
async fn a_server_without_a_place_for_us_says_so() {
    let few = [
        "max_connections=4",
        "superuser_reserved_connections=0",
        "max_wal_senders=0",
    ];
    let cluster = Cluster::start_with(Durability::None, &few);
    let url = cluster.create();
    let first = Instance::open(&url).await;
    // Those of its connections that it has by now are all that there are.
    let mut seen = String::new();
    for _ in 0..40 {
        let change = first.submission(None).await;
        if let Err(error) = first.store.commit(change).await {
            seen = error.to_string();
            break;
        }
    }
    assert!(seen.contains("too many clients"), "{seen}");
    // Whoever asks whether it can be used is told, and nobody is sent here.
    let unready = first.store.check().await.unwrap_err().to_string();
    assert!(unready.contains("raise max_connections"), "{unready}");
    let error = failure(&url).await;
    assert!(matches!(error, OpenError::Crowded { .. }), "{error:?}");
    assert!(error.to_string().contains("raise max_connections"));
}
