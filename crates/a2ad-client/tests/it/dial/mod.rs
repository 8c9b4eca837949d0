//! The dialer against listeners of the tests' own on loopback.

mod answers;
mod connections;
mod environment;
mod requests;
mod tls;

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use a2ad_client::dial::{Addresses, Builder, Dialer, Limits, Resolver, Rules};
use bytes::Bytes;
use http::Request;

/// A listener that must see no connection.
struct Sink(TcpListener);

impl Sink {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Self(listener)
    }

    fn port(&self) -> u16 {
        self.0.local_addr().unwrap().port()
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

/// A host that speaks no more HTTP than the test wants, and remembers what it was asked.
struct Host {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Host {
    /// Each connection is given to `answer` once the head of its request has come.
    fn new(answer: impl Fn(&mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (heads, answer) = (Arc::clone(&seen), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, heads, answer) = (stream.unwrap(), heads.clone(), answer.clone());
                std::thread::spawn(move || {
                    while let Some(head) = read_head(&mut stream) {
                        heads.lock().unwrap().push(head);
                        // That the other side hangs up is what most of these tests are about.
                        if answer(&mut stream).is_err() {
                            break;
                        }
                    }
                });
            }
        });
        Self { address, seen }
    }

    /// Answers the same to all, and leaves the connection open.
    fn fixed(answer: impl Into<String>) -> Self {
        let answer = answer.into();
        Self::new(move |stream| stream.write_all(answer.as_bytes()))
    }

    /// Answers the same to all, and closes.
    fn closing(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::new(move |stream| {
            stream.write_all(&answer)?;
            Err(ErrorKind::ConnectionAborted.into())
        })
    }

    fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    Some(String::from_utf8(head).unwrap())
}

/// Every name is this machine.
#[derive(Debug)]
struct Here;

impl Resolver for Here {
    fn resolve<'a>(&'a self, _: &'a str) -> Addresses<'a> {
        Box::pin(async { Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]) })
    }
}

/// A dialer that may reach one host here, by a name.
fn dialer_to(name: &str, port: u16) -> Dialer {
    let rules = Rules {
        endpoints: vec![(name.into(), port)],
        ..Rules::default()
    };
    let builder = Builder::guarded(rules).resolver(Arc::new(Here));
    builder.build().unwrap()
}

/// A dialer that may reach everything.
fn open() -> Dialer {
    Dialer::unguarded().unwrap()
}

fn get(url: &str) -> Request<Bytes> {
    Request::get(url).body(Bytes::new()).unwrap()
}

/// Short ones, so that a test shows that they hold.
fn short() -> Limits {
    Limits {
        connect: Duration::from_millis(300),
        head: Duration::from_millis(300),
        silence: Duration::from_millis(300),
        total: Some(Duration::from_millis(1_000)),
        answer_bytes_max: 64 * 1024,
    }
}
