//! A balancer as it stands before a fleet: whole connections, dealt out in turn to the instances
//! that say at `/readyz` that they are ready. It looks into nothing and repeats nothing; only a
//! connection that an instance does not even accept goes to the next one.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::Method;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::http;

/// How often instances are asked. What stops gives a second's notice.
const ASK_EVERY: Duration = Duration::from_millis(200);
/// How long an instance may take to answer that it is ready.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// One address for all instances. Dropping it closes all connections.
#[derive(Debug)]
pub struct Balancer {
    to: SocketAddr,
    shared: Arc<Shared>,
    _running: AbortOnDropHandle<()>,
    _asking: AbortOnDropHandle<()>,
}

#[derive(Debug)]
struct Shared {
    /// Where each instance is, if it is anywhere.
    places: Mutex<Vec<Option<SocketAddr>>>,
    /// Those that are ready, by the last answer.
    ready: watch::Sender<Vec<SocketAddr>>,
}

impl Shared {
    fn places(&self) -> MutexGuard<'_, Vec<Option<SocketAddr>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Balancer {
    /// A balancer before `count` instances, none of which is anywhere yet.
    ///
    /// # Panics
    /// When no port is free.
    pub async fn start(count: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a free port");
        let to = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared {
            places: Mutex::new(vec![None; count]),
            ready: watch::Sender::new(Vec::new()),
        });
        #[expect(clippy::disallowed_methods, reason = "aborted when it is dropped")]
        let running = tokio::spawn(deal(listener, Arc::clone(&shared)));
        #[expect(clippy::disallowed_methods, reason = "aborted when it is dropped")]
        let asking = tokio::spawn(ask(Arc::clone(&shared)));
        Self {
            to,
            shared,
            _running: AbortOnDropHandle::new(running),
            _asking: AbortOnDropHandle::new(asking),
        }
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.to
    }

    /// Tells where an instance is now, and waits until it is found to be ready.
    pub async fn add(&self, at: usize, to: SocketAddr) {
        self.shared.places()[at] = Some(to);
        let mut ready = self.shared.ready.subscribe();
        let found = ready.wait_for(|ready| ready.contains(&to)).await;
        found.map(drop).ok();
    }
}

/// Asks each instance, again and again.
async fn ask(shared: Arc<Shared>) {
    loop {
        let places: Vec<SocketAddr> = shared.places().iter().flatten().copied().collect();
        let mut ready = Vec::new();
        for to in places {
            let asked = http::call(to, Method::GET, "/readyz", &[], "");
            if let Ok(Ok(answer)) = timeout(ANSWER_MAX, asked).await
                && answer.status.is_success()
            {
                ready.push(to);
            }
        }
        shared.ready.send_replace(ready);
        sleep(ASK_EVERY).await;
    }
}

async fn deal(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    let mut turn = 0_usize;
    while let Ok((near, _)) = listener.accept().await {
        let ready = shared.ready.borrow().clone();
        turn = turn.wrapping_add(1);
        connections.spawn(async move {
            for step in 0..ready.len() {
                let to = ready[(turn + step) % ready.len()];
                if let Ok(far) = TcpStream::connect(to).await {
                    return pass(near, far).await;
                }
            }
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn pass(mut near: TcpStream, mut far: TcpStream) {
    let delays = near.set_nodelay(true).and(far.set_nodelay(true));
    if delays.is_ok() {
        let _ended = tokio::io::copy_bidirectional(&mut near, &mut far).await;
    }
}
