//! What the guard lets through, without a packet to anyone: these tests sit between the guard and the socket.

mod addresses;
mod body;
mod corpus;
mod rebinding;
mod rules;

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::{fmt, io};

use super::*;

/// Where a test steps in.
pub(super) trait Seam: fmt::Debug + Send + Sync {
    /// A connection is about to be made. False: it is not.
    fn connecting(&self) -> bool;

    /// These addresses passed the guard. Gives those to connect to.
    fn judged(&self, name: &str, addresses: Vec<IpAddr>) -> Vec<SocketAddr>;
}

/// Opens no socket, and counts how often one was asked for.
#[derive(Debug, Default)]
struct NoSocket {
    asked: AtomicUsize,
}

impl Seam for NoSocket {
    fn connecting(&self) -> bool {
        self.asked.fetch_add(1, Ordering::SeqCst);
        false
    }

    fn judged(&self, _: &str, _: Vec<IpAddr>) -> Vec<SocketAddr> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        Vec::new()
    }
}

/// A little internet: addresses stand for listeners of the test; the others do not exist.
#[derive(Debug, Default)]
struct Internet {
    routes: HashMap<IpAddr, SocketAddr>,
    judged: Mutex<Vec<Vec<IpAddr>>>,
}

impl Internet {
    fn new(routes: impl IntoIterator<Item = (&'static str, SocketAddr)>) -> Arc<Self> {
        Arc::new(Self {
            routes: routes
                .into_iter()
                .map(|(from, to)| (ip(from), to))
                .collect(),
            judged: Mutex::default(),
        })
    }
}

impl Seam for Internet {
    fn connecting(&self) -> bool {
        true
    }

    fn judged(&self, _: &str, addresses: Vec<IpAddr>) -> Vec<SocketAddr> {
        let routed = addresses.iter().filter_map(|ip| self.routes.get(ip));
        let routed = routed.copied().collect();
        self.judged.lock().unwrap().push(addresses);
        routed
    }
}

/// Answers by turns; the last answer stays. Counts how often it was asked.
#[derive(Debug)]
struct Answers {
    turns: Vec<Vec<IpAddr>>,
    asked: AtomicUsize,
}

impl Answers {
    fn new(turns: &[&[&str]]) -> Arc<Self> {
        let turn = |turn: &&[&str]| turn.iter().map(|text| ip(text)).collect();
        Arc::new(Self {
            turns: turns.iter().map(turn).collect(),
            asked: AtomicUsize::new(0),
        })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Resolver for Answers {
    fn resolve<'a>(&'a self, _: &'a str) -> Addresses<'a> {
        let turn = self.asked.fetch_add(1, Ordering::SeqCst);
        let turn = turn.min(self.turns.len() - 1);
        let answer = self.turns[turn].clone();
        Box::pin(async move { io::Result::Ok(answer) })
    }
}

/// A listener on loopback that must see no connection.
struct Sink(TcpListener);

impl Sink {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Self(listener)
    }

    fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }

    #[track_caller]
    fn saw_nothing(&self) {
        let seen = self.0.accept();
        assert!(
            matches!(&seen, Err(error) if error.kind() == ErrorKind::WouldBlock),
            "a connection came through: {seen:?}"
        );
    }
}

/// A listener on loopback that stands for a public host: answers 204 and closes, and counts.
fn public_host() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&seen);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            count.fetch_add(1, Ordering::SeqCst);
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
                head.push(byte[0]);
            }
            let answer = b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";
            drop(stream.write_all(answer));
        }
    });
    (address, seen)
}

fn guarded(resolver: Arc<dyn Resolver>, seam: Arc<dyn Seam>) -> Dialer {
    with_rules(Rules::default(), resolver, seam)
}

fn with_rules(rules: Rules, resolver: Arc<dyn Resolver>, seam: Arc<dyn Seam>) -> Dialer {
    let mut builder = Builder::guarded(rules).resolver(resolver);
    builder.seam = Some(seam);
    builder.build().unwrap()
}

fn get(url: &str) -> Request<Bytes> {
    Request::get(url).body(Bytes::new()).unwrap()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}
