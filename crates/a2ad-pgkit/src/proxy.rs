//! A proxy that knows PostgreSQL's messages: it cuts connections in the middle of a commit, tells
//! of another version, or deals one connection out to all who ask.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// What happens to the next commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It does not reach the server.
    Question,
    /// The server's answer does not reach the client.
    Answer,
}

/// How the proxy behaves; it can be changed at any time.
#[derive(Debug, Default)]
pub struct Behaviour {
    /// What happens to the next commit.
    pub fault: Mutex<Option<Fault>>,
    /// What the server is said to be.
    pub version: Mutex<Option<&'static str>>,
    /// After that, nobody is let in.
    pub then_close: AtomicBool,
    /// Nothing comes through, but nothing is closed either.
    pub stalled: AtomicBool,
    /// How often a commit was cut.
    pub cuts: Mutex<u32>,
    /// All connections end, and none is let in.
    pub closed: Mutex<CancellationToken>,
}

/// Stands before the server at a port. Dropping it closes all connections.
#[derive(Debug)]
pub struct Proxy {
    /// Where it listens, on 127.0.0.1.
    pub port: u16,
    /// How it behaves.
    pub behaviour: Arc<Behaviour>,
    _running: AbortOnDropHandle<()>,
}

impl Proxy {
    /// Passes everything on to the server at port `server`.
    ///
    /// # Panics
    /// When no port is free.
    pub async fn start(server: u16) -> Self {
        let behaviour = Arc::new(Behaviour::default());
        let shared = Arc::clone(&behaviour);
        Self::serve(behaviour, move |client| {
            pass(client, server, Arc::clone(&shared))
        })
        .await
    }

    /// One connection for all, each of which has it for a transaction.
    ///
    /// # Panics
    /// When the server does not answer.
    pub async fn pooler(server: u16, database: String) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", server))
            .await
            .expect("a server");
        let (mut read, mut write) = stream.into_split();
        let names = format!("user\0{}\0database\0{database}\0\0", crate::USER);
        let mut startup = (names.len() as u32 + 8).to_be_bytes().to_vec();
        startup.extend(196_608_u32.to_be_bytes());
        startup.extend(names.as_bytes());
        write.write_all(&startup).await.expect("a server");
        let mut greeting = Vec::new();
        loop {
            let (kind, message) = message(&mut read).await.expect("a greeting");
            greeting.extend(&message);
            if kind == b'Z' {
                break;
            }
        }
        let pooled = Arc::new(tokio::sync::Mutex::new((read, write)));
        Self::serve(Arc::default(), move |client| {
            deal(client, Arc::clone(&pooled), greeting.clone())
        })
        .await
    }

    async fn serve<F>(
        behaviour: Arc<Behaviour>,
        connection: impl Fn(TcpStream) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = Option<()>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let shared = Arc::clone(&behaviour);
        #[expect(clippy::disallowed_methods, reason = "its handle ends it")]
        let running = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (client, _) = listener.accept().await.expect("a connection");
                let closed = lock(&shared.closed).clone();
                let connection = connection(client);
                connections.spawn(closed.run_until_cancelled_owned(connection));
            }
        });
        Self {
            port,
            behaviour,
            _running: AbortOnDropHandle::new(running),
        }
    }

    /// The URL of a database behind it.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        crate::url(self.port, database)
    }

    /// Cuts all connections and lets none in.
    pub fn close(&self) {
        lock(&self.behaviour.closed).cancel();
    }

    /// Cuts the next commit in this way; whether one came within `patience`.
    pub async fn cut_next_commit(&self, fault: Fault, patience: Duration) -> bool {
        let cuts = || *lock(&self.behaviour.cuts);
        let before = cuts();
        *lock(&self.behaviour.fault) = Some(fault);
        let cut = async {
            while cuts() == before {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let in_time = tokio::time::timeout(patience, cut).await.is_ok();
        *lock(&self.behaviour.fault) = None;
        in_time
    }

    /// Lets connections in again.
    pub fn reopen(&self) {
        *lock(&self.behaviour.closed) = CancellationToken::new();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A message with its head: kind, length, body.
async fn message(from: &mut OwnedReadHalf) -> Option<(u8, Vec<u8>)> {
    let mut head = [0; 5];
    from.read_exact(&mut head).await.ok()?;
    let [kind, length @ ..] = head;
    let mut message = head.to_vec();
    message.resize(1 + u32::from_be_bytes(length) as usize, 0);
    from.read_exact(&mut message[5..]).await.ok()?;
    Some((kind, message))
}

/// The first message has no kind.
async fn startup(from: &mut OwnedReadHalf) -> Option<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length).await.ok()?;
    let mut message = length.to_vec();
    message.resize(u32::from_be_bytes(length) as usize, 0);
    from.read_exact(&mut message[4..]).await.ok()?;
    Some(message)
}

async fn pass(client: TcpStream, server: u16, behaviour: Arc<Behaviour>) -> Option<()> {
    let server = TcpStream::connect(("127.0.0.1", server)).await.ok()?;
    // Message by message, each at once.
    server.set_nodelay(true).ok()?;
    client.set_nodelay(true).ok()?;
    let (client_read, client_write) = client.into_split();
    let (server_read, server_write) = server.into_split();
    let silent = CancellationToken::new();
    tokio::select! {
        done = questions(client_read, server_write, &behaviour, &silent) => done,
        done = answers(server_read, client_write, &behaviour, &silent) => done,
    }
}

async fn questions(
    mut client: OwnedReadHalf,
    mut server: OwnedWriteHalf,
    behaviour: &Behaviour,
    silent: &CancellationToken,
) -> Option<()> {
    let startup = startup(&mut client).await?;
    server.write_all(&startup).await.ok()?;
    loop {
        let (kind, message) = message(&mut client).await?;
        if kind == b'Q' && message[5..].starts_with(b"COMMIT") {
            let fault = lock(&behaviour.fault).take();
            if let Some(fault) = fault {
                *lock(&behaviour.cuts) += 1;
                if fault == Fault::Answer {
                    silent.cancel();
                    server.write_all(&message).await.ok()?;
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                if behaviour.then_close.load(Ordering::Relaxed) {
                    lock(&behaviour.closed).cancel();
                }
                return None;
            }
        }
        server.write_all(&message).await.ok()?;
    }
}

async fn answers(
    mut server: OwnedReadHalf,
    mut client: OwnedWriteHalf,
    behaviour: &Behaviour,
    silent: &CancellationToken,
) -> Option<()> {
    loop {
        let (kind, mut message) = message(&mut server).await?;
        let version = *lock(&behaviour.version);
        if let Some(version) = version
            && kind == b'S'
            && message[5..].starts_with(b"server_version\0")
        {
            let body = format!("server_version\0{version}\0");
            message.truncate(1);
            message.extend((body.len() as u32 + 4).to_be_bytes());
            message.extend(body.as_bytes());
        }
        while behaviour.stalled.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        if silent.is_cancelled() {
            // Not a word more.
            std::future::pending::<()>().await;
        }
        client.write_all(&message).await.ok()?;
    }
}

type Pooled = Arc<tokio::sync::Mutex<(OwnedReadHalf, OwnedWriteHalf)>>;

async fn deal(client: TcpStream, pooled: Pooled, greeting: Vec<u8>) -> Option<()> {
    let (mut read, mut write) = client.into_split();
    startup(&mut read).await?;
    write.write_all(&greeting).await.ok()?;
    loop {
        let mut question = message(&mut read).await?;
        let mut server = pooled.lock().await;
        // For as long as the transaction lasts.
        loop {
            server.1.write_all(&question.1).await.ok()?;
            if matches!(question.0, b'Q' | b'S') {
                let idle = loop {
                    let (kind, answer) = message(&mut server.0).await?;
                    write.write_all(&answer).await.ok()?;
                    if kind == b'Z' {
                        break answer[5] == b'I';
                    }
                };
                if idle {
                    break;
                }
            }
            question = message(&mut read).await?;
        }
    }
}
