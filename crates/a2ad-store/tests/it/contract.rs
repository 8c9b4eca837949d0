//! Every fact of the store contract, over a temporary file.

use std::sync::Arc;

use a2ad_core::clock::Surroundings;
use a2ad_core::contract::Harness;
use a2ad_core::store::{Store, Wake};
use a2ad_store::{Durability, SqliteOptions, SqliteStore};
use futures_util::future::BoxFuture;

struct TempFile(tempfile::TempDir);

impl TempFile {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
}

impl Harness for TempFile {
    fn open(
        &self,
        surroundings: Surroundings,
        wake: Arc<dyn Wake>,
    ) -> BoxFuture<'_, Arc<dyn Store>> {
        let options = SqliteOptions {
            path: self.0.path().join("a2ad.db"),
            // No power is cut here, and without syncs the suite takes seconds, not minutes.
            durability: Durability::Os,
            surroundings,
            ..SqliteOptions::default()
        };
        let store = SqliteStore::open(options, wake).unwrap();
        Box::pin(std::future::ready(Arc::new(store) as Arc<dyn Store>))
    }

    fn close(&self, store: Arc<dyn Store>) -> BoxFuture<'_, ()> {
        assert_eq!(Arc::strong_count(&store), 1, "nobody else has the store");
        drop(store);
        Box::pin(std::future::ready(()))
    }
}

a2ad_core::store_contract!(TempFile::new);
