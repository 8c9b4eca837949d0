//! The listener: accepts connections, bounds them, and lets them finish when it stops.
//!
//! The loop is our own because the ready-made ones leave Nagle's algorithm on, wait for ever on a peer that says
//! nothing, and pay for protocol detection with memory on each connection (see `docs/adr/0004-http-edge.md`).

mod connection;
mod gather;
mod guard;
mod http;
mod scan;
mod stall;
mod timer;

pub(crate) use connection::{Connection, InFlight};
pub(crate) use stall::{note_asked, note_given};

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::edge::App;
use crate::limits::Limits;
use crate::meters;
use guard::{Guard, Protocol};

/// How a listener ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// Connections and HTTP/2 requests that did not finish within [`Limits::drain`] and were cut.
    pub cut: usize,
}

/// What all connections of a listener share.
#[derive(Clone, Debug)]
struct Listening {
    app: App,
    /// Finish what you are at.
    stop: CancellationToken,
    /// Patience is over.
    cut: CancellationToken,
    open: TaskTracker,
}

/// Serves `app` on `listener` until `stop` fires, then lets what is under way finish.
///
/// After `stop`, no connection is accepted, idle ones close, requests under way are answered with
/// `Connection: close` (HTTP/2: GOAWAY) and event streams end after a whole frame. What is still open after
/// [`Limits::drain`] is cut. Every task it started has ended when it returns.
pub async fn serve(listener: TcpListener, app: App, stop: CancellationToken) -> Drained {
    let limits = app.limits().clone();
    let slots = Arc::new(Semaphore::new(limits.connections_max));
    let listening = Listening {
        app,
        stop: stop.clone(),
        cut: CancellationToken::new(),
        open: TaskTracker::new(),
    };
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        () = accept(&listener, &slots, &listening, &limits) => {}
    }
    // Closed at once, so that the kernel refuses newcomers instead of queueing them for nobody.
    drop(listener);

    listening.open.close();
    if timeout(limits.drain, listening.open.wait()).await.is_ok() {
        return Drained::default();
    }
    let cut = listening.open.len();
    tracing::warn!(cut, "connections did not finish in time");
    listening.cut.cancel();
    listening.open.wait().await;
    Drained { cut }
}

async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
    listening: &Listening,
    limits: &Limits,
) {
    // A slot is taken first: at the cap, newcomers wait in the kernel's queue at no cost to us.
    while let Ok(slot) = Arc::clone(slots).acquire_owned().await {
        match listener.accept().await {
            Ok((socket, peer)) => {
                let listening = listening.clone();
                let open = listening.open.clone();
                open.spawn(hold(socket, peer.ip(), listening, slot));
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                // Out of file descriptors or memory. Connections that end will free some.
                tracing::warn!(error = %error, "could not accept a connection");
                sleep(limits.accept_pause).await;
            }
        }
    }
}

/// Whether an accept error concerns only the connection that was to be accepted.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}

/// Serves one connection for as long as it lasts.
async fn hold(socket: TcpStream, peer: IpAddr, listening: Listening, slot: OwnedSemaphorePermit) {
    let _open = meters::Gauge::open_connection();
    tokio::select! {
        biased;
        () = listening.cut.cancelled() => {}
        ended = talk(socket, peer, &listening) => {
            if let Err(error) = ended {
                tracing::debug!(error = %error, "a connection broke");
            }
        }
    }
    drop(slot);
}

async fn talk(
    socket: TcpStream,
    peer: IpAddr,
    listening: &Listening,
) -> Result<(), http::BoxError> {
    let limits = listening.app.limits();
    prepare(&socket, limits)?;
    let connection = Connection::new(peer, listening.stop.clone());
    let mut socket = Guard::new(socket, Arc::clone(&connection), limits);
    let protocol = tokio::select! {
        biased;
        () = listening.stop.cancelled() => return Ok(()),
        protocol = socket.protocol() => protocol?,
    };
    match protocol {
        Protocol::Http1 => http::one(socket, connection, listening).await,
        // Boxed, so that HTTP/1 connections do not carry the size of this one.
        Protocol::Http2 => Box::pin(http::two(socket, connection, listening)).await,
    }
}

fn prepare(socket: &TcpStream, limits: &Limits) -> io::Result<()> {
    // With Nagle's algorithm the first frame of a stream was measured 44 ms late.
    socket.set_nodelay(true)?;
    // A peer that vanished without a word leaves our bytes in the kernel's buffer, where the guard cannot see that
    // they do not move; the kernel can.
    #[cfg(target_os = "linux")]
    socket2::SockRef::from(socket).set_tcp_user_timeout(Some(limits.stall))?;
    #[cfg(not(target_os = "linux"))]
    let _: &Limits = limits;
    Ok(())
}
