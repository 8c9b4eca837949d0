use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use a2ad_client::dial::{DialError, Wait};
use http::{HeaderMap, Response, Version};
use http_body::Frame;
use http_body_util::StreamBody;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::task::JoinSet;

use super::*;

/// A host that counts its connections.
fn counting() -> (Host, Arc<AtomicUsize>) {
    // Each connection is answered on a thread of its own.
    let threads = Arc::new(Mutex::new(std::collections::HashSet::new()));
    let count = Arc::new(AtomicUsize::new(0));
    let connections = Arc::clone(&count);
    let host = Host::new(move |stream| {
        if threads.lock().unwrap().insert(std::thread::current().id()) {
            connections.fetch_add(1, Ordering::SeqCst);
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
    });
    (host, count)
}

async fn ask(dialer: &Dialer, url: &str) -> Result<Bytes, DialError> {
    let answer = dialer.send(get(url), &short()).await?;
    answer.into_body().bytes().await
}

#[tokio::test]
async fn connections_are_kept() {
    let (host, connections) = counting();
    let dialer = open();
    for _ in 0..5 {
        assert_eq!(ask(&dialer.clone(), &host.url()).await.unwrap(), "ok");
    }
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_kept_connection_does_not_outlive_the_rules_that_allowed_it() {
    let (host, connections) = counting();
    let port = host.address.port();
    let url = format!("http://agent.example:{port}/");
    let before = dialer_to("agent.example", port);
    ask(&before, &url).await.unwrap();
    // The same host under other rules.
    let after = Builder::guarded(Rules::default()).resolver(Arc::new(Here));
    let refused = ask(&after.build().unwrap(), &url).await;
    assert!(matches!(refused, Err(DialError::Refused(_))), "{refused:?}");
    let unchanged = dialer_to("agent.example", port);
    ask(&unchanged, &url).await.unwrap();
    assert_eq!(connections.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn who_does_not_listen_is_named() {
    let sink = Sink::new();
    let port = sink.port();
    drop(sink);
    let error = ask(&open(), &format!("http://127.0.0.1:{port}/"))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "127.0.0.1: could not connect (connection refused)"
    );
    assert!(error.is_unsent());
}

#[derive(Debug)]
struct Never;

impl Resolver for Never {
    fn resolve<'a>(&'a self, _: &'a str) -> Addresses<'a> {
        Box::pin(std::future::pending())
    }
}

#[derive(Debug)]
struct Failing;

impl Resolver for Failing {
    fn resolve<'a>(&'a self, _: &'a str) -> Addresses<'a> {
        Box::pin(async { Err(std::io::Error::other("secret of the resolver")) })
    }
}

#[tokio::test]
async fn a_slow_name_server_is_not_waited_for() {
    let dialer = Builder::guarded(Rules::default()).resolver(Arc::new(Never));
    let dialer = dialer.build().unwrap();
    let limits = Limits {
        connect: Duration::from_millis(100),
        ..Limits::default()
    };
    let start = Instant::now();
    let answer = dialer.send(get("http://public.example/"), &limits).await;
    let error = answer.unwrap_err();
    assert!(
        matches!(
            error,
            DialError::TimedOut {
                wait: Wait::Connect,
                ..
            }
        ),
        "{error:?}"
    );
    assert!(error.is_unsent());
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_name_that_does_not_resolve_is_named() {
    let dialer = Builder::guarded(Rules::default()).resolver(Arc::new(Failing));
    let error = ask(&dialer.build().unwrap(), "http://public.example/").await;
    let error = error.unwrap_err().to_string();
    assert_eq!(error, "public.example: the name could not be resolved");
}

#[tokio::test]
async fn the_system_resolves_by_default() {
    // No packet leaves the machine for this name.
    let (host, _) = counting();
    let url = format!("http://localhost:{}/", host.address.port());
    assert_eq!(ask(&open(), &url).await.unwrap(), "ok");
}

#[tokio::test]
async fn a_handshake_without_an_end_is_not_waited_for() {
    let silent = Sink::new();
    let url = format!("https://127.0.0.1:{}/", silent.port());
    let limits = Limits {
        connect: Duration::from_millis(100),
        ..Limits::default()
    };
    let start = Instant::now();
    let error = open().send(get(&url), &limits).await.unwrap_err();
    assert!(
        matches!(
            error,
            DialError::TimedOut {
                wait: Wait::Connect,
                ..
            }
        ),
        "{error:?}"
    );
    assert!(start.elapsed() < Duration::from_secs(5));
}

/// Answers over HTTP/2 by prior knowledge; the tasks end with the set.
async fn h2_host(frames: Vec<Frame<Bytes>>) -> (SocketAddr, JoinSet<()>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let frames = Arc::new(Mutex::new(Some(frames)));
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let frames = frames.lock().unwrap().take().unwrap_or_default();
            connections.spawn(serve_h2(stream, frames));
        }
    });
    (address, tasks)
}

async fn serve_h2(stream: tokio::net::TcpStream, frames: Vec<Frame<Bytes>>) {
    let frames = Arc::new(Mutex::new(Some(frames)));
    let service = service_fn(move |request: http::Request<Incoming>| {
        let frames = frames.lock().unwrap().take().unwrap_or_default();
        async move {
            assert_eq!(request.version(), Version::HTTP_2);
            assert_eq!(request.headers()["te"], "trailers");
            let frames = frames.into_iter().map(Ok::<_, Infallible>);
            let frames = futures_util::stream::iter(frames);
            Ok::<_, Infallible>(Response::new(StreamBody::new(frames)))
        }
    });
    let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    drop(server.serve_connection(TokioIo::new(stream), service).await);
}

fn grpc(address: SocketAddr) -> Request<Bytes> {
    Request::post(format!("http://{address}/lf.a2a.v1.A2AService/GetTask"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Bytes::from_static(b"\0\0\0\0\0"))
        .unwrap()
}

#[tokio::test]
async fn http_2_needs_no_upgrade_and_has_trailers() {
    let trailers = HeaderMap::from_iter([("grpc-status".parse().unwrap(), "0".parse().unwrap())]);
    let frames = vec![
        Frame::data(Bytes::from_static(b"he")),
        Frame::data(Bytes::new()),
        Frame::data(Bytes::from_static(b"llo")),
        Frame::trailers(trailers.clone()),
    ];
    let (address, _tasks) = h2_host(frames).await;
    let mut answer = open().send_h2(grpc(address), &short()).await.unwrap();
    assert_eq!(answer.version(), Version::HTTP_2);
    let mut all = Vec::new();
    while let Some(chunk) = answer.body_mut().chunk().await.unwrap() {
        assert!(!chunk.is_empty());
        all.extend_from_slice(&chunk);
    }
    assert_eq!(all, b"hello");
    assert_eq!(answer.body().trailers(), Some(&trailers));
}

#[tokio::test]
async fn pieces_without_a_byte_are_silence() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        // No server library sends such a thing.
        let (mut stream, _) = listener.accept().unwrap();
        let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
        let status_200 = [0, 0, 1, 1, 4, 0, 0, 0, 1, 0x88];
        let no_data = [0, 0, 0, 0, 0, 0, 0, 0, 1];
        // The stream has to be asked for before it is answered.
        stream.read_exact(&mut [0; 128]).unwrap();
        stream.write_all(&settings).unwrap();
        stream.write_all(&status_200).unwrap();
        while stream.write_all(&no_data).is_ok() {
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    let limits = Limits::stream(Duration::from_millis(200));
    let mut answer = open().send_h2(grpc(address), &limits).await.unwrap();
    let chunk = tokio::time::timeout(Duration::from_secs(5), answer.body_mut().chunk());
    let chunk = chunk.await.unwrap();
    assert!(
        matches!(
            chunk,
            Err(DialError::TimedOut {
                wait: Wait::Silence,
                ..
            })
        ),
        "{chunk:?}"
    );
}

#[tokio::test]
async fn http_2_is_bounded_too() {
    let frames = vec![Frame::data(Bytes::from(vec![0; 70_000]))];
    let (address, _tasks) = h2_host(frames).await;
    let answer = open().send_h2(grpc(address), &short()).await.unwrap();
    let got = answer.into_body().bytes().await;
    assert!(matches!(got, Err(DialError::TooLarge { .. })), "{got:?}");

    let bomb = (0..2000).map(|n| {
        (
            format!("x-{n}").parse().unwrap(),
            "y".repeat(100).parse().unwrap(),
        )
    });
    let (address, _tasks) = h2_host(vec![Frame::trailers(HeaderMap::from_iter(bomb))]).await;
    let got = match open().send_h2(grpc(address), &short()).await {
        Ok(answer) => answer.into_body().bytes().await,
        Err(error) => Err(error),
    };
    assert!(matches!(got, Err(DialError::Broken { .. })), "{got:?}");
}
