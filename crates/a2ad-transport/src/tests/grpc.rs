//! gRPC where the engine has to do as the test says.

use std::sync::atomic::Ordering;

use a2ad_proto::pb::Message as _;
use a2ad_proto::{GetTaskRequest, StreamResponse, SubscribeToTaskRequest};
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

use super::*;

struct Client {
    requests: SendRequest<Full<Bytes>>,
    _driving: JoinSet<hyper::Result<()>>,
}

impl Client {
    async fn new(server: &Server) -> Self {
        let socket = TcpStream::connect(server.address).await.unwrap();
        socket.set_nodelay(true).unwrap();
        let (requests, driver) = Builder::new(TokioExecutor::new())
            // What one stream may have in flight; the others are not to starve when it is not read.
            .initial_stream_window_size(65_535)
            .initial_connection_window_size(1 << 20)
            .handshake(TokioIo::new(socket))
            .await
            .unwrap();
        let mut driving = JoinSet::new();
        driving.spawn(driver);
        Self {
            requests,
            _driving: driving,
        }
    }

    async fn open(
        &mut self,
        path: &str,
        headers: &[(&str, &str)],
        message: &[u8],
    ) -> Response<Incoming> {
        let length = u32::try_from(message.len()).unwrap().to_be_bytes();
        let body = [&[0], &length[..], message].concat();
        self.open_raw(path, headers, body).await
    }

    /// The same with a body that need not be one message.
    async fn open_raw(
        &mut self,
        path: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Response<Incoming> {
        let mut request =
            Request::post(format!("http://a/{path}")).header("content-type", "application/grpc");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::from(body)).unwrap();
        let response = timeout(PATIENCE, self.requests.send_request(request));
        response.await.expect("answers in time").unwrap()
    }

    /// The messages and the end of a call.
    async fn call(&mut self, path: &str, message: &[u8]) -> (Vec<Bytes>, HeaderMap) {
        rest(self.open(path, &[], message).await).await
    }
}

async fn rest(response: Response<Incoming>) -> (Vec<Bytes>, HeaderMap) {
    let (head, body) = response.into_parts();
    let body = timeout(PATIENCE, body.collect()).await;
    let body = body.expect("ends in time").expect("ends, not breaks");
    let end = body.trailers().cloned().unwrap_or(head.headers);
    let mut bytes = body.to_bytes();
    let mut messages = Vec::new();
    while !bytes.is_empty() {
        let prefix = bytes.split_to(5);
        let length = u32::from_be_bytes(prefix[1..].try_into().unwrap());
        messages.push(bytes.split_to(length as usize));
    }
    (messages, end)
}

fn method(name: &str) -> String {
    format!("lf.a2a.v1.A2AService/{name}")
}

fn subscribe(id: &str) -> Vec<u8> {
    SubscribeToTaskRequest {
        id: id.to_owned(),
        ..SubscribeToTaskRequest::default()
    }
    .encode_to_vec()
}

fn get(id: &str) -> Vec<u8> {
    GetTaskRequest {
        id: id.to_owned(),
        ..GetTaskRequest::default()
    }
    .encode_to_vec()
}

#[tokio::test]
async fn stream_11_a_late_error_ends_the_stream_with_its_status() {
    let server = Server::start(Limits::default()).await;
    let mut client = Client::new(&server).await;
    let (messages, end) = client
        .call(&method("SubscribeToTask"), &subscribe("event-late"))
        .await;
    assert_eq!(messages.len(), 1);
    assert_eq!(end["grpc-status"], "13");
    assert_eq!(end["grpc-message"], "Internal%20error", "and not the cause");
    assert!(end.contains_key("grpc-status-details-bin"));
    let (messages, end) = client
        .call(&method("SubscribeToTask"), &subscribe("early"))
        .await;
    assert_eq!(
        (messages.len(), end["grpc-status"].as_bytes()),
        (0, &b"5"[..])
    );
}

/// What we stored and cannot read is our fault, before a stream and in it.
#[tokio::test]
async fn a_frame_that_makes_no_sense_is_an_internal_error() {
    let server = Server::start(Limits::default()).await;
    let mut client = Client::new(&server).await;
    let (messages, end) = client
        .call(&method("SubscribeToTask"), &subscribe("three"))
        .await;
    assert_eq!(
        (messages.len(), end["grpc-status"].as_bytes()),
        (0, &b"13"[..])
    );
}

#[tokio::test]
async fn transient_errors_say_when_to_come_back() {
    let server = Server::start(Limits::default()).await;
    let mut client = Client::new(&server).await;
    for (id, code) in [("busy", "8"), ("down", "14")] {
        for name in ["GetTask", "SubscribeToTask"] {
            let (_, end) = client.call(&method(name), &get(id)).await;
            assert_eq!(end["grpc-status"], code);
            assert_eq!(end["grpc-retry-pushback-ms"], "1000");
        }
    }
    let (_, end) = client.call(&method("GetTask"), &get("gone")).await;
    assert!(!end.contains_key("grpc-retry-pushback-ms"));
}

#[tokio::test]
async fn streaming_is_refused_where_the_card_does_not_offer_it() {
    let server = Server::with_streaming(Limits::default(), false).await;
    let mut client = Client::new(&server).await;
    for name in ["SubscribeToTask", "SendStreamingMessage"] {
        let (_, end) = client.call(&method(name), &[]).await;
        assert_eq!(end["grpc-status"], "9");
    }
}

/// A subscriber is a cursor: what it does not read is not fetched (STREAM-12).
#[tokio::test]
async fn a_reader_that_stalls_holds_no_memory() {
    let server = Server::start(Limits::default()).await;
    let mut client = Client::new(&server).await;
    let stalled = client
        .open(&method("SubscribeToTask"), &[], &subscribe("event-flood"))
        .await;
    // Each answer on the same connection is a chance to run away.
    for _ in 0..200 {
        let (messages, _) = client.call(&method("GetTask"), &get("t1")).await;
        assert_eq!(messages.len(), 1);
    }
    let taken = server.engine.taken.load(Ordering::SeqCst);
    // The peer's window, our buffer for the stream, and the piece that waits for room: each some 64 kB.
    assert!((1..=6).contains(&taken), "{taken} frames of 60 kB");

    let mut body = stalled.into_body();
    for _ in 0..100 {
        let frame = timeout(PATIENCE, body.frame())
            .await
            .expect("goes on once it is read");
        assert!(frame.unwrap().unwrap().is_data());
    }
    assert!(server.engine.taken.load(Ordering::SeqCst) > taken);
    drop(body);
    let gone = async {
        while Arc::strong_count(&server.engine.taken) > 1 {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, gone)
        .await
        .expect("a stream that its reader leaves is dropped");
}

#[tokio::test]
async fn a_stream_shows_what_is_at_hand_and_then_that_the_server_stops() {
    let mut server = Server::start(Limits::default()).await;
    let mut client = Client::new(&server).await;
    let stream = client
        .open(&method("SubscribeToTask"), &[], &subscribe("event-open"))
        .await;
    server.stop.cancel();
    let (messages, end) = rest(stream).await;
    let [message] = &messages[..] else {
        panic!("{}", messages.len());
    };
    let event = StreamResponse::decode(message).unwrap();
    assert!(matches!(event, StreamResponse::StatusUpdate(_)));
    assert_eq!(end["grpc-status"], "14");
    assert!(end.contains_key("grpc-retry-pushback-ms"));
    assert_eq!(server.drained().await, Drained { cut: 0 });
}

/// A deadline that passes while nothing happens at all, or too much.
#[tokio::test]
async fn grpc_05_a_deadline_ends_any_stream() {
    let server = Server::start(Limits::default()).await;
    let mut client = Client::new(&server).await;
    let soon = [("grpc-timeout", "20m")];
    let stream = client
        .open(&method("SubscribeToTask"), &soon, &subscribe("silent"))
        .await;
    let (messages, end) = rest(stream).await;
    assert_eq!(
        (messages.len(), end["grpc-status"].as_bytes()),
        (0, &b"4"[..])
    );
    let held = client.open(&method("GetTask"), &soon, &get("held")).await;
    assert_eq!(rest(held).await.1["grpc-status"], "4");
    let busy = client
        .open(&method("SubscribeToTask"), &soon, &subscribe("event-flood"))
        .await;
    let (messages, end) = rest(busy).await;
    assert!(!messages.is_empty());
    assert_eq!(end["grpc-status"], "4");
    let never = [("grpc-timeout", "0S")];
    let never = client.open(&method("GetTask"), &never, &get("t1")).await;
    assert_eq!(rest(never).await.1["grpc-status"], "4");
}

/// EXT-05, on every binding: errors of the operation say what was on, and those found before that was settled do not.
#[tokio::test]
async fn errors_say_which_extensions_were_on() {
    let server = Server::start(Limits::default()).await;
    let asked = format!("A2A-Version: 1.0\r\nA2A-Extensions: {REPLAY}\r\n");
    let rpc = async |method: &str, id: &str| {
        let body = wire::call(method, &format!(r#"{{"id":{id}}}"#));
        let reply = server.ask(wire::post(&asked, &body)).await;
        assert!(reply.json()["error"].is_object());
        reply.header("a2a-extensions").map(str::to_owned)
    };
    let plain = async |path: &str| {
        let reply = server.ask(wire::plain("GET", path, &asked)).await;
        assert!(reply.json()["error"].is_object());
        reply.header("a2a-extensions").map(str::to_owned)
    };
    let mut client = Client::new(&server).await;
    let mut grpc = async |name: &str, headers: &[(&str, &str)], message: &[u8]| {
        let headers = [&[("a2a-extensions", REPLAY)], headers].concat();
        let response = client.open(&method(name), &headers, message).await;
        let (_, end) = rest(response).await;
        assert_ne!(end["grpc-status"], "0");
        let told = end.get("a2a-extensions");
        told.map(|told| told.to_str().unwrap().to_owned())
    };
    let soon = [("grpc-timeout", "20m")];
    let on = [
        rpc("GetTask", "\"none\"").await,
        rpc("SubscribeToTask", "\"early\"").await,
        plain("/tasks/none").await,
        plain("/tasks/early:subscribe").await,
        grpc("GetTask", &[], &get("none")).await,
        grpc("SubscribeToTask", &[], &subscribe("early")).await,
        grpc("GetTask", &soon, &get("held")).await,
    ];
    for told in on {
        assert_eq!(told.as_deref(), Some(REPLAY));
    }
    let off = [
        rpc("GetTask", "5").await,
        plain("/tasks/t1?historyLength=x").await,
        plain("/tasks/t1?tenant=nope").await,
        grpc("GetTask", &[], b"\xff").await,
        grpc("CreateTaskPushNotificationConfig", &[], b"").await,
    ];
    for told in off {
        assert_eq!(told, None);
    }
}

const CHECK: &str = "grpc.health.v1.Health/Check";

#[tokio::test]
async fn health_follows_the_engine() {
    let limits = Limits {
        health_watch: Duration::from_millis(5),
        ..Limits::default()
    };
    let server = Server::start(limits).await;
    let mut client = Client::new(&server).await;
    let mut watch = client.open("grpc.health.v1.Health/Watch", &[], b"").await;
    let next = async |watch: &mut Response<Incoming>| {
        let frame = timeout(PATIENCE, watch.body_mut().frame()).await;
        let data = frame.expect("told in time").unwrap().unwrap().into_data();
        data.unwrap().slice(5..)
    };
    let (serving, not_serving) = (&b"\x08\x01"[..], &b"\x08\x02"[..]);
    assert_eq!(next(&mut watch).await, serving);
    for (unready, expected) in [(true, not_serving), (false, serving), (true, not_serving)] {
        server.engine.unready.store(unready, Ordering::SeqCst);
        assert_eq!(next(&mut watch).await, expected);
        let (messages, _) = client.call(CHECK, b"").await;
        assert_eq!(messages, [expected]);
    }
    server.stop.cancel();
    let (messages, end) = rest(watch).await;
    assert_eq!(
        (messages.len(), end["grpc-status"].as_bytes()),
        (0, &b"14"[..])
    );
    let message = end["grpc-message"].to_str().unwrap();
    assert!(!message.contains("frame"), "{message}: there are none here");
    assert!(end.contains_key("grpc-retry-pushback-ms"));
}

/// GRPC-05.
#[tokio::test]
async fn health_takes_deadlines_and_messages_as_the_rest_does() {
    const WATCH: &str = "grpc.health.v1.Health/Watch";
    let server = Server::start(Limits::default()).await;
    let mut client = Client::new(&server).await;
    for (path, timeout, code) in [
        (CHECK, "0S", "4"),
        (CHECK, "1x", "3"),
        (WATCH, "0S", "4"),
        (WATCH, "20m", "4"),
    ] {
        let stream = client.open(path, &[("grpc-timeout", timeout)], b"").await;
        let (_, end) = rest(stream).await;
        assert_eq!(end["grpc-status"], code, "{path} {timeout}");
    }
    for path in [CHECK, WATCH] {
        let mut ask = async |headers: &[(&str, &str)], body: &[u8]| {
            let response = client.open_raw(path, headers, body.to_vec()).await;
            rest(response).await.1
        };
        let mut compressed = [
            ask(&[], b"\x01\0\0\0\0").await,
            ask(&[("grpc-encoding", "gzip")], b"\x01\0\0\0\0").await,
        ];
        for end in &mut compressed {
            assert_eq!(end["grpc-status"], "12", "{path}");
            assert_eq!(end["grpc-accept-encoding"], "identity");
        }
        for body in [&b""[..], b"\0\0\0\0\0\0\0\0\0\0", b"\0\0\0\0\x01\xff"] {
            assert_eq!(ask(&[], body).await["grpc-status"], "3", "{path} {body:?}");
        }
    }
}

/// What is too large once is too large for ever: nobody is told to come back with it.
#[tokio::test]
async fn a_message_over_the_limit_is_not_to_be_sent_again() {
    let server = Server::start(Limits {
        body_bytes_max: 100,
        ..Limits::default()
    })
    .await;
    let mut client = Client::new(&server).await;
    for path in [CHECK, &method("GetTask")] {
        let (_, end) = client.call(path, &[0; 200]).await;
        assert_eq!(end["grpc-status"], "3", "INVALID_ARGUMENT");
        assert!(!end.contains_key("grpc-retry-pushback-ms"));
    }
}

/// Whoever keeps a reflection stream open does not keep the server from stopping, nor a task for ever.
#[tokio::test]
async fn an_idle_reflection_ends_by_itself() {
    const REFLECTION: &str = "grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
    async fn ask(server: &Server) -> (Response<Incoming>, JoinSet<hyper::Result<()>>) {
        let socket = TcpStream::connect(server.address).await.unwrap();
        let (mut requests, driver) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(socket))
                .await
                .unwrap();
        let mut driving = JoinSet::new();
        driving.spawn(driver);
        // One question, and then silence without an end.
        let question = Bytes::from_static(b"\0\0\0\0\x02\x3a\0");
        let question = futures_util::stream::iter([Ok::<_, std::convert::Infallible>(
            http_body::Frame::data(question),
        )]);
        let silence = futures_util::stream::pending();
        let body = futures_util::StreamExt::chain(question, silence);
        let request = Request::post(format!("http://a/{REFLECTION}"))
            .header("content-type", "application/grpc")
            .body(http_body_util::StreamBody::new(body))
            .unwrap();
        let response = timeout(PATIENCE, requests.send_request(request));
        let mut response = response.await.expect("answers").unwrap();
        let first = response.body_mut().frame().await.unwrap().unwrap();
        assert!(first.is_data(), "an answer while the questions go on");
        (response, driving)
    }
    let mut server = Server::start(Limits::default()).await;
    let (open, _driving) = ask(&server).await;
    server.stop.cancel();
    assert_eq!(rest(open).await.1["grpc-status"], "0");
    assert_eq!(server.drained().await, Drained { cut: 0 });

    let server = Server::start(Limits {
        keep_alive: Duration::from_millis(50),
        ..Limits::default()
    })
    .await;
    let (open, _driving) = ask(&server).await;
    assert_eq!(rest(open).await.1["grpc-status"], "0");
}
