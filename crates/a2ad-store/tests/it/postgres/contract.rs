//! Every fact of the store contract, each in a database of its own.

use std::sync::{Arc, Mutex};

use a2ad_core::clock::Surroundings;
use a2ad_core::contract::Harness;
use a2ad_core::store::{Store, Wake};
use a2ad_pgkit::Cluster;
use a2ad_store::postgres::TimeSource;
use a2ad_store::{PostgresOptions, PostgresStore};
use futures_util::future::BoxFuture;

struct Database {
    url: String,
    open: Mutex<Option<Arc<PostgresStore>>>,
}

impl Database {
    fn new() -> Self {
        Self {
            url: Cluster::shared().create(),
            open: Mutex::default(),
        }
    }
}

impl Harness for Database {
    fn open(
        &self,
        surroundings: Surroundings,
        wake: Arc<dyn Wake>,
    ) -> BoxFuture<'_, Arc<dyn Store>> {
        let options = PostgresOptions {
            surroundings,
            // The facts turn the hands of the clock themselves.
            time: TimeSource::Surroundings,
            ..PostgresOptions::at(&self.url)
        };
        Box::pin(async move {
            let store = Arc::new(PostgresStore::open(options, wake).await.unwrap());
            *self.open.lock().unwrap() = Some(Arc::clone(&store));
            store as Arc<dyn Store>
        })
    }

    fn close(&self, store: Arc<dyn Store>) -> BoxFuture<'_, ()> {
        assert_eq!(Arc::strong_count(&store), 2, "nobody else has the store");
        drop(store);
        let store = self.open.lock().unwrap().take();
        Box::pin(async move { store.unwrap().close().await })
    }
}

a2ad_core::store_contract!(Database::new);
