//! The real server on a free port, driven from outside.
//!
//! A scenario is one text for every binding and every store: see [`scenarios!`].
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on has failed"
)]

mod agents;
mod artifacts;
mod bad_input;
mod canceling;
mod cards;
mod client;
mod configured;
mod conversations;
mod engine;
mod grpc;
mod grpc_input;
mod grpc_tools;
mod http_json;
mod identity;
mod instances;
mod interfaces;
mod listing;
mod messages;
mod monitor;
mod negotiation;
mod oracle;
mod parameters;
mod parity;
mod policies;
mod replies;
mod restarts;
mod retention;
mod shapes;
mod streams;
mod surfaces;
mod tasks;
mod transcripts;
mod v03;
mod v03_grpc;
mod wire;

/// Runs each scenario over every binding and store. A further binding or store adds a line here.
macro_rules! scenarios {
    ($($name:ident),+ $(,)?) => {
        crate::scenarios!(@run jsonrpc_sqlite JsonRpc Sqlite $($name)+);
        crate::scenarios!(@run http_json_sqlite HttpJson Sqlite $($name)+);
        crate::scenarios!(@run grpc_sqlite Grpc Sqlite $($name)+);
        crate::scenarios!(@run jsonrpc_postgres JsonRpc Postgres $($name)+);
    };
    // Those that look into the file.
    (sqlite: $($name:ident),+ $(,)?) => {
        crate::scenarios!(@run jsonrpc_file JsonRpc Sqlite $($name)+);
    };
    (@run $module:ident $binding:ident $store:ident $($name:ident)+) => {
        mod $module {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    let harness = a2ad_testkit::harness::Harness::start(
                        a2ad_testkit::harness::Binding::$binding,
                        a2ad_testkit::harness::StoreKind::$store,
                    )
                    .await;
                    super::$name(harness).await;
                }
            )+
        }
    };
}
pub(crate) use scenarios;
