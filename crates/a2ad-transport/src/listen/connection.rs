//! What is known of one connection while it is served.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use super::timer::Timer;

/// State that a connection's socket, its requests and their answers share.
#[derive(Debug)]
pub(crate) struct Connection {
    peer: IpAddr,
    stop: CancellationToken,
    // Relaxed throughout: the counts steer deadlines, and no other memory is published through them.
    begun: AtomicUsize,
    in_flight: AtomicUsize,
    length_seen: AtomicBool,
    body_timer: Mutex<Timer>,
}

impl Connection {
    /// A connection from `peer` that ends its streams when `stop` fires.
    pub(crate) fn new(peer: IpAddr, stop: CancellationToken) -> Arc<Self> {
        Arc::new(Self {
            // An IPv4 caller of a socket that listens on both is still one.
            peer: peer.to_canonical(),
            stop,
            begun: AtomicUsize::new(0),
            in_flight: AtomicUsize::new(0),
            length_seen: AtomicBool::new(false),
            body_timer: Mutex::default(),
        })
    }

    /// Who connected: the caller, or the proxy before us.
    pub(crate) fn peer(&self) -> IpAddr {
        self.peer
    }

    /// Fires when the listener stops: streams end after a whole frame.
    pub(crate) fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Counts a request in; it counts as in flight until the guard is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> InFlight {
        self.begun.fetch_add(1, Ordering::Relaxed);
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(Arc::clone(self))
    }

    /// How many requests have begun so far.
    pub(crate) fn begun(&self) -> usize {
        self.begun.load(Ordering::Relaxed)
    }

    /// Whether a request is being answered.
    pub(crate) fn is_busy(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed) > 0
    }

    /// Notes whether the head being read has a `Content-Length` line.
    pub(crate) fn note_length(&self, seen: bool) {
        self.length_seen.store(seen, Ordering::Relaxed);
    }

    /// Whether the head of the request that begins now had a `Content-Length` line, as far as that was seen: a
    /// request sent ahead of its turn is not looked at. The HTTP parser removes the line where there is a
    /// `Transfer-Encoding`, so the request itself cannot tell.
    pub(crate) fn take_length_seen(&self) -> bool {
        self.length_seen.swap(false, Ordering::Relaxed)
    }

    /// A timer for reading a body, to be given back for the next one. Requests that come at once over HTTP/2 get
    /// timers of their own, of which one is kept.
    pub(crate) fn take_body_timer(&self) -> Timer {
        std::mem::take(&mut self.lock_body_timer())
    }

    pub(crate) fn return_body_timer(&self, timer: Timer) {
        *self.lock_body_timer() = timer;
    }

    fn lock_body_timer(&self) -> MutexGuard<'_, Timer> {
        self.body_timer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request being answered; held by the answer's body.
#[derive(Debug)]
pub(crate) struct InFlight(Arc<Connection>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
