//! The edge on a real socket, with a scripted engine behind it.

mod deadlines;
mod engine;
mod framing;
mod grpc;
mod http_json;
mod routes;
mod rpc;
mod stalling;
mod stopping;
mod streams;
mod wire;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use a2ad_proto::{AgentCard, AgentExtension, REPLAY};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::address::Address;
use crate::edge::{App, Inner};
use crate::limits::Limits;
use crate::listen::{Drained, serve};
use crate::meters::Meters;
use crate::mounts::{Exposed, Mounts};
use engine::Scripted;
use wire::Wire;

/// Longer than anything here should take; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// A listener on a port of its own.
struct Server {
    address: SocketAddr,
    engine: Arc<Scripted>,
    draining: CancellationToken,
    stop: CancellationToken,
    serving: JoinSet<Drained>,
}

impl Server {
    async fn start(limits: Limits) -> Self {
        Self::with_streaming(limits, true).await
    }

    async fn with_streaming(limits: Limits, streaming: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let engine = Arc::new(Scripted::default());
        let mut card = AgentCard {
            name: "Echo".to_owned(),
            ..AgentCard::default()
        };
        card.capabilities.streaming = Some(streaming);
        card.capabilities.extensions = vec![AgentExtension {
            uri: REPLAY.to_owned(),
            ..AgentExtension::default()
        }];
        let agents = [Exposed {
            id: "echo".parse().unwrap(),
            card,
        }];
        let address_shown = Address::new("http://127.0.0.1:1", crate::address::Grpc::Here).unwrap();
        let draining = CancellationToken::new();
        let app = App::new(Inner {
            operations: Box::new(Arc::clone(&engine)),
            mounts: Mounts::new(&agents, &address_shown, std::time::SystemTime::UNIX_EPOCH),
            address: address_shown,
            auth: Arc::new(crate::auth::Auth::off()),
            trusted_proxies: vec!["127.0.0.0/8".parse().unwrap()],
            version: "9.9.9".to_owned(),
            metrics: Arc::new(|| "a2ad_up 1\n".to_owned()),
            limits,
            lenient: false,
            file_bytes: crate::tongue::FileBytes::Auto,
            draining: draining.clone(),
            meters: Meters::new(),
        });
        let stop = CancellationToken::new();
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, app, stop.clone()));
        Self {
            address,
            engine,
            draining,
            stop,
            serving,
        }
    }

    async fn connect(&self) -> Wire {
        Wire::open(self.address).await
    }

    /// Asks once, on a connection of its own.
    async fn ask(&self, request: impl AsRef<[u8]>) -> wire::Reply {
        let mut wire = self.connect().await;
        wire.send(request).await;
        wire.reply().await
    }

    /// Waits until the listener has ended.
    async fn drained(&mut self) -> Drained {
        let ended = timeout(PATIENCE, self.serving.join_next()).await;
        ended.expect("drains in time").unwrap().unwrap()
    }
}
