use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

use super::wire::{call, plain, rpc};
use super::*;

#[tokio::test]
async fn an_idle_connection_closes_when_the_listener_stops() {
    let mut server = Server::start(Limits::default()).await;
    let mut used = server.connect().await;
    used.send(plain("GET", "/livez", "")).await;
    used.reply().await;
    let mut fresh = server.connect().await;
    // An answer on a later connection shows that the fresh one was accepted.
    server.ask(plain("GET", "/livez", "")).await;
    server.stop.cancel();
    assert_eq!(used.rest().await, "");
    assert_eq!(fresh.rest().await, "");
    assert_eq!(server.drained().await, Drained { cut: 0 });
    assert!(
        TcpStream::connect(server.address).await.is_err(),
        "nobody listens"
    );
}

#[tokio::test]
async fn a_request_under_way_is_answered_and_then_the_connection_closes() {
    let mut server = Server::start(Limits::default()).await;
    let mut wire = server.connect().await;
    wire.send(rpc(&call("GetTask", r#"{"id":"held"}"#))).await;
    server.engine.holding.notified().await;
    server.stop.cancel();
    server.engine.release.notify_one();
    let reply = wire.reply().await;
    assert_eq!(
        (reply.status, reply.closes()),
        (200, true),
        "{}",
        reply.head
    );
    assert_eq!(reply.json()["result"]["id"], "held");
    assert_eq!(wire.rest().await, "");
    assert_eq!(server.drained().await, Drained { cut: 0 });
}

#[tokio::test]
async fn a_stream_ends_after_a_whole_event() {
    let mut server = Server::start(Limits::default()).await;
    let mut wire = server.connect().await;
    wire.send(rpc(&call("SubscribeToTask", r#"{"id":"open"}"#)))
        .await;
    wire.until("\r\n\r\n").await;
    assert!(wire.chunk().await.ends_with("\n\n"));
    server.stop.cancel();
    assert_eq!(wire.chunk().await, "", "the body ends properly");
    assert_eq!(wire.rest().await, "");
    assert_eq!(server.drained().await, Drained { cut: 0 });
}

#[tokio::test]
async fn what_does_not_end_in_time_is_cut() {
    let drain = Duration::from_millis(50);
    let mut server = Server::start(Limits {
        drain,
        ..Limits::default()
    })
    .await;
    let mut wire = server.connect().await;
    wire.send(rpc(&call("GetTask", r#"{"id":"held"}"#))).await;
    server.engine.holding.notified().await;
    server.stop.cancel();
    assert_eq!(server.drained().await, Drained { cut: 1 });
    assert_eq!(wire.rest().await, "");
}

#[tokio::test]
async fn at_the_cap_a_connection_waits_for_another_to_end() {
    let server = Server::start(Limits {
        connections_max: 1,
        ..Limits::default()
    })
    .await;
    let mut first = server.connect().await;
    first.send(plain("GET", "/livez", "")).await;
    first.reply().await;
    let mut second = server.connect().await;
    second.send(plain("GET", "/livez", "")).await;
    let early = timeout(Duration::from_millis(100), second.reply()).await;
    assert!(early.is_err(), "served beyond the cap");
    drop(first);
    assert_eq!(second.reply().await.status, 200);
}

type Requests = hyper::client::conn::http2::SendRequest<Full<bytes::Bytes>>;

/// An HTTP/2 connection and the task that ends with it.
async fn http2(server: &Server) -> (Requests, JoinSet<hyper::Result<()>>) {
    let socket = TcpStream::connect(server.address).await.unwrap();
    let (requests, driver) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(socket))
            .await
            .unwrap();
    let mut driving = JoinSet::new();
    driving.spawn(driver);
    (requests, driving)
}

async fn ended(mut driving: JoinSet<hyper::Result<()>>) {
    let ended = timeout(PATIENCE, driving.join_next()).await;
    let ended = ended
        .expect("the connection ends in time")
        .unwrap()
        .unwrap();
    ended.expect("the connection ends in good order");
}

fn subscribe() -> http::Request<Full<bytes::Bytes>> {
    http::Request::post("http://a/")
        .header("a2a-version", "1.0")
        .body(Full::from(call("SubscribeToTask", r#"{"id":"open"}"#)))
        .unwrap()
}

fn live() -> http::Request<Full<bytes::Bytes>> {
    http::Request::get("http://a/livez")
        .body(Full::default())
        .unwrap()
}

/// HTTP/1.1 would not send it; HTTP/2 sends whatever there is, and clients break off.
#[tokio::test]
async fn no_answer_to_head_has_a_body() {
    let server = Server::start(Limits::default()).await;
    let (mut requests, _driving) = http2(&server).await;
    for (path, status) in [("/livez", 200), ("/tasks", 405), ("/nope", 404)] {
        let uri = format!("http://a{path}");
        let request = http::Request::head(uri).body(Full::default()).unwrap();
        let answer = requests.send_request(request).await.unwrap();
        assert_eq!(answer.status(), status, "{path}");
        assert_ne!(answer.headers()["content-length"], "0");
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        assert!(body.is_empty(), "{path}: {body:?}");
    }
}

#[tokio::test]
async fn http2_serves_the_same_and_goes_away_in_good_order() {
    let mut server = Server::start(Limits::default()).await;
    let (mut requests, driving) = http2(&server).await;
    let mut stream = requests.send_request(subscribe()).await.unwrap();
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    assert!(!stream.headers().contains_key("connection"));
    let first = stream.body_mut().frame().await.unwrap().unwrap();
    assert!(first.into_data().unwrap().starts_with(b"id: 1\ndata: "));
    let live = requests.send_request(live()).await.unwrap();
    assert_eq!(live.status(), 200);

    server.stop.cancel();
    let rest = stream.into_body().collect().await;
    assert_eq!(rest.expect("the stream ends, not breaks").to_bytes(), "");
    ended(driving).await;
    assert_eq!(server.drained().await, Drained { cut: 0 });
}

#[tokio::test]
async fn while_draining_http2_clients_are_sent_away_but_their_streams_go_on() {
    let server = Server::start(Limits::default()).await;
    let (mut requests, driving) = http2(&server).await;
    let mut stream = requests.send_request(subscribe()).await.unwrap();
    stream.body_mut().frame().await.unwrap().unwrap();
    server.draining.cancel();
    let refused = async { while requests.send_request(live()).await.is_ok() {} };
    timeout(PATIENCE, refused)
        .await
        .expect("no more requests on this connection");

    let (mut newer, _driving) = http2(&server).await;
    assert_eq!(newer.send_request(live()).await.unwrap().status(), 200);
    assert!(newer.send_request(live()).await.is_ok());

    server.stop.cancel();
    let rest = stream.into_body().collect().await;
    assert_eq!(rest.expect("the stream went on until now").to_bytes(), "");
    ended(driving).await;
}
