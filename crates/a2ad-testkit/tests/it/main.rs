//! The real server on a free port, driven from outside.
//!
//! A scenario is one text for every binding and every store: see [`scenarios!`].
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on has failed"
)]

mod canceling;
mod conversations;
mod engine;
mod listing;
mod messages;
mod restarts;
mod streams;
mod wire;

/// Runs each scenario over every binding and store. A further binding or store adds a line here.
macro_rules! scenarios {
    ($($name:ident),+ $(,)?) => {
        mod jsonrpc_sqlite {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    let harness = a2ad_testkit::harness::Harness::start(
                        a2ad_testkit::harness::Binding::JsonRpc,
                        a2ad_testkit::harness::StoreKind::Sqlite,
                    )
                    .await;
                    super::$name(harness).await;
                }
            )+
        }
    };
}
pub(crate) use scenarios;
