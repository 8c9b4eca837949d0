//! A proxy that cuts connections where a seed says.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

/// Which connections to cut, and where.
#[derive(Clone, Debug)]
pub struct Cuts {
    /// Settles all of it.
    pub seed: u64,
    /// How many there are.
    pub count: u32,
    /// After how many bytes of answers a connection is cut.
    pub after: Range<u64>,
    /// Whether some are cut while the request is on its way.
    pub requests: bool,
}

/// Passes bytes on and cuts connections. Dropping it closes all of them.
#[derive(Debug)]
pub struct Proxy {
    to: SocketAddr,
    shared: Arc<Shared>,
    _running: AbortOnDropHandle<()>,
}

#[derive(Debug)]
struct Shared {
    target: Mutex<SocketAddr>,
    made: AtomicU32,
    cuts: Cuts,
    dice: Mutex<u64>,
}

/// What becomes of one connection.
#[derive(Clone, Copy, Debug)]
struct Fate {
    request_bytes: u64,
    answer_bytes: u64,
}

impl Proxy {
    /// A proxy before the server at `target`.
    ///
    /// # Panics
    /// When no port is free.
    pub async fn start(target: SocketAddr, cuts: Cuts) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a free port");
        let shared = Arc::new(Shared {
            target: Mutex::new(target),
            made: AtomicU32::new(0),
            dice: Mutex::new(cuts.seed),
            cuts,
        });
        let to = listener.local_addr().expect("an address");
        let running = run(listener, Arc::clone(&shared));
        #[expect(
            clippy::disallowed_methods,
            reason = "aborted when the proxy is dropped"
        )]
        let running = AbortOnDropHandle::new(tokio::spawn(running));
        Self {
            to,
            shared,
            _running: running,
        }
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.to
    }

    /// How many connections were cut.
    #[must_use]
    pub fn made(&self) -> u32 {
        let made = self.shared.made.load(Ordering::SeqCst);
        made.min(self.shared.cuts.count)
    }

    /// Passes new connections on to another server.
    pub fn retarget(&self, target: SocketAddr) {
        *lock(&self.shared.target) = target;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// A number in the range, by the seed (splitmix64).
    fn roll(&self, range: Range<u64>) -> u64 {
        let mut state = lock(&self.dice);
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        range.start + mixed % (range.end - range.start).max(1)
    }

    fn fate(&self) -> Fate {
        let by_request = self.cuts.requests && self.roll(0..4) == 0;
        Fate {
            request_bytes: if by_request {
                self.roll(0..300)
            } else {
                u64::MAX
            },
            answer_bytes: self.roll(self.cuts.after.clone()),
        }
    }

    /// Whether one more connection is to be cut.
    fn cut(&self) -> bool {
        self.made.fetch_add(1, Ordering::SeqCst) < self.cuts.count
    }
}

async fn run(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((near, _)) = listener.accept().await {
        let target = *lock(&shared.target);
        let (fate, shared) = (shared.fate(), Arc::clone(&shared));
        connections.spawn(async move {
            // Whoever is not there cannot be passed on to: the connection closes.
            if let Ok(far) = TcpStream::connect(target).await {
                pass(near, far, fate, &shared).await;
            }
        });
        while connections.try_join_next().is_some() {}
    }
}

/// Passes bytes on, both ways, until one side ends or it is time to cut.
async fn pass(mut near: TcpStream, mut far: TcpStream, fate: Fate, shared: &Shared) {
    let (mut asked, mut answered) = (0, 0);
    let (mut request, mut answer) = (vec![0; 4096], vec![0; 4096]);
    loop {
        let (from_near, length) = tokio::select! {
            read = near.read(&mut request) => (true, read),
            read = far.read(&mut answer) => (false, read),
        };
        let Ok(length @ 1..) = length else {
            return;
        };
        let (sum, most) = if from_near {
            (&mut asked, fate.request_bytes)
        } else {
            (&mut answered, fate.answer_bytes)
        };
        let rest = most.saturating_sub(*sum);
        *sum += length as u64;
        // Not all of what came is passed on before the cut.
        let cut = *sum > most && shared.cut();
        let passed = if cut {
            usize::try_from(rest).unwrap_or(length)
        } else {
            length
        };
        let written = if from_near {
            far.write_all(&request[..passed]).await
        } else {
            near.write_all(&answer[..passed]).await
        };
        if cut || written.is_err() {
            return;
        }
    }
}
