//! A proxy that cuts connections.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Passes bytes on to one address and back, as long as it is not dropped.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    inner: Arc<Inner>,
    _running: JoinSet<()>,
}

struct Inner {
    to: SocketAddr,
    /// Grows with each cut; a connection lives as long as it stays the same.
    cuts: watch::Sender<u64>,
    /// Nobody gets through.
    closed: AtomicBool,
    /// What the server says does not get through.
    mute: AtomicBool,
    /// After how many bytes of the server the first connection is cut.
    bytes_max: usize,
    /// How many of these have come.
    bytes: AtomicUsize,
    connections: AtomicUsize,
}

impl Proxy {
    /// One that cuts its first connection after so many bytes of the server.
    pub(crate) async fn new(to: SocketAddr, bytes_max: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let inner = Arc::new(Inner {
            to,
            cuts: watch::Sender::new(0),
            closed: AtomicBool::new(false),
            mute: AtomicBool::new(false),
            bytes_max,
            bytes: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
        });
        let mut running = JoinSet::new();
        running.spawn(serve(Arc::clone(&inner), listener));
        Self {
            address,
            inner,
            _running: running,
        }
    }

    /// Cuts all connections. New ones can be made.
    pub(crate) fn cut(&self) {
        self.inner.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Cuts all connections, also those that will be made, until opened.
    pub(crate) fn close(&self) {
        self.inner.closed.store(true, Ordering::SeqCst);
        self.cut();
    }

    /// Keeps back what servers say.
    pub(crate) fn mute(&self) {
        self.inner.mute.store(true, Ordering::SeqCst);
    }

    pub(crate) fn open(&self) {
        self.inner.closed.store(false, Ordering::SeqCst);
    }

    /// How many connections were made.
    pub(crate) fn connections(&self) -> usize {
        self.inner.connections.load(Ordering::SeqCst)
    }

    /// How many bytes the server sent over the first.
    pub(crate) fn bytes(&self) -> usize {
        self.inner.bytes.load(Ordering::SeqCst)
    }
}

async fn serve(inner: Arc<Inner>, listener: TcpListener) {
    let mut connections = JoinSet::new();
    while let Ok((near, _)) = listener.accept().await {
        let first = inner.connections.fetch_add(1, Ordering::SeqCst) == 0;
        connections.spawn(pass(Arc::clone(&inner), near, first));
    }
}

async fn pass(inner: Arc<Inner>, near: TcpStream, first: bool) {
    let mut cuts = inner.cuts.subscribe();
    if inner.closed.load(Ordering::SeqCst) {
        return;
    }
    let Ok(far) = TcpStream::connect(inner.to).await else {
        return;
    };
    let (mut near_read, mut near_write) = near.into_split();
    let (mut far_read, mut far_write) = far.into_split();
    let there = async {
        let _ended = tokio::io::copy(&mut near_read, &mut far_write).await;
        // The client has nothing more to say; the server may.
        let _gone = far_write.shutdown().await;
        std::future::pending::<()>().await;
    };
    let back = async {
        let mut buffer = [0; 4096];
        loop {
            let count = match far_read.read(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(count) => count,
            };
            let mut piece = &buffer[..count];
            let before = match first {
                true => inner.bytes.fetch_add(count, Ordering::SeqCst),
                false => 0,
            };
            let left = inner.bytes_max.saturating_sub(before);
            let cut = first && left < count;
            if cut {
                piece = &piece[..left];
            }
            if inner.mute.load(Ordering::SeqCst) {
                continue;
            }
            if near_write.write_all(piece).await.is_err() || cut {
                return;
            }
        }
    };
    tokio::select! {
        // Rudely: what is on its way may be lost.
        _ = cuts.changed() => return,
        () = there => return,
        () = back => {}
    }
    // Politely: what was let through arrives, and then the end.
    let _gone = near_write.shutdown().await;
    let _ended = tokio::io::copy(&mut near_read, &mut tokio::io::sink()).await;
}
