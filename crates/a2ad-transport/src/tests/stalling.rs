//! HTTP/2 peers that are alive but open no window for their answers.

use a2ad_proto::pb::Message as _;
use a2ad_proto::{GetTaskRequest, SubscribeToTaskRequest};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use metrics_exporter_prometheus::PrometheusBuilder;
use tokio::net::TcpStream;

use super::wire::call;
use super::*;

const SHORT: Duration = Duration::from_millis(150);

struct Peer {
    requests: SendRequest<Full<Bytes>>,
    _driving: JoinSet<hyper::Result<()>>,
}

impl Peer {
    /// A client that lets every stream have so many bytes under way.
    async fn new(server: &Server, window: u32) -> Self {
        let socket = TcpStream::connect(server.address).await.unwrap();
        socket.set_nodelay(true).unwrap();
        let (requests, driver) = Builder::new(TokioExecutor::new())
            .initial_stream_window_size(window)
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

    async fn open(&mut self, request: Request<Full<Bytes>>) -> Response<Incoming> {
        let response = timeout(PATIENCE, self.requests.send_request(request));
        response.await.expect("answers in time").unwrap()
    }

    /// Asks something whose answer needs no window.
    async fn is_served(&mut self) {
        let head = Request::head("http://a/livez");
        let live = self.open(head.body(Full::default()).unwrap()).await;
        assert_eq!(live.status(), 200);
    }
}

async fn server(stall: Duration) -> Server {
    Server::start(Limits {
        stall,
        ..Limits::default()
    })
    .await
}

fn rpc(method: &str, id: &str) -> Request<Full<Bytes>> {
    let body = call(method, &format!(r#"{{"id":"{id}"}}"#));
    let request = Request::post("http://a/").header("a2a-version", "1.0");
    request.body(Full::from(body)).unwrap()
}

fn http_json(id: &str) -> Request<Full<Bytes>> {
    let request = Request::get(format!("http://a/tasks/{id}")).header("a2a-version", "1.0");
    request.body(Full::default()).unwrap()
}

fn grpc(method: &str, message: &[u8]) -> Request<Full<Bytes>> {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    let body = [&[0], &length[..], message].concat();
    Request::post(format!("http://a/lf.a2a.v1.A2AService/{method}"))
        .header("content-type", "application/grpc")
        .body(Full::from(body))
        .unwrap()
}

fn grpc_get(id: &str) -> Request<Full<Bytes>> {
    let id = id.to_owned();
    let request = GetTaskRequest {
        id,
        ..GetTaskRequest::default()
    };
    grpc("GetTask", &request.encode_to_vec())
}

fn grpc_subscribe(id: &str) -> Request<Full<Bytes>> {
    let id = id.to_owned();
    let request = SubscribeToTaskRequest {
        id,
        ..SubscribeToTaskRequest::default()
    };
    grpc("SubscribeToTask", &request.encode_to_vec())
}

/// Reads until the answer is cut off. What is read makes room for more, so a peer with a window comes here last.
async fn is_reset(response: &mut Response<Incoming>) {
    let ended = async {
        loop {
            match response.body_mut().frame().await {
                Some(Ok(_data)) => {}
                Some(Err(_reset)) => return true,
                None => return false,
            }
        }
    };
    let ended = timeout(PATIENCE, ended).await;
    assert!(ended.expect("let go in time"), "ended as if it were whole");
}

/// Waits until nobody but the engine has its last large answer.
async fn is_free(server: &Server) {
    let free = async {
        while !server.engine.big.lock().unwrap().is_unique() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, free).await.expect("let go in time");
}

#[tokio::test]
async fn a_whole_answer_that_is_not_taken_is_let_go() {
    let server = server(SHORT).await;
    let mut peer = Peer::new(&server, 0).await;
    for id in ["big-100", "big-4000000"] {
        for request in [rpc("GetTask", id), http_json(id), grpc_get(id)] {
            let mut stalled = peer.open(request).await;
            assert_eq!(stalled.status(), 200);
            is_reset(&mut stalled).await;
            is_free(&server).await;
            peer.is_served().await;
        }
    }
}

/// A little window makes no difference: neither to what waits for it, nor to what HTTP/2 itself holds.
#[tokio::test]
async fn an_answer_of_which_only_the_beginning_is_taken_is_let_go() {
    let server = server(SHORT).await;
    for window in [1, 5_000] {
        let mut peer = Peer::new(&server, window).await;
        for id in ["big-10000", "big-20000", "big-4000000"] {
            let mut stalled = peer.open(http_json(id)).await;
            is_free(&server).await;
            is_reset(&mut stalled).await;
            peer.is_served().await;
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_taken_slowly_comes_whole() {
    let stall = SHORT * 4;
    let server = server(stall).await;
    let mut peer = Peer::new(&server, 20_000).await;
    let mut slow = peer.open(http_json("big-4000000")).await;
    assert_eq!(slow.headers()["content-length"], "4000000");
    let mut ticks = tokio::time::interval(Duration::from_millis(10));
    let began = tokio::time::Instant::now();
    let mut taken = 0;
    while began.elapsed() < stall * 2 {
        ticks.tick().await;
        let data = slow.body_mut().frame().await.unwrap().unwrap();
        taken += data.into_data().unwrap().len();
    }
    let rest = timeout(PATIENCE, slow.into_body().collect()).await;
    let rest = rest.expect("comes in time").expect("is not cut");
    assert_eq!(taken + rest.to_bytes().len(), 4_000_000);
}

/// STREAM-12.
#[tokio::test]
async fn a_stream_that_is_not_taken_is_let_go() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let _local = metrics::set_default_local_recorder(&recorder);
    let shown = |count: u8| {
        let line = format!("a2ad_open_streams {count}\n");
        recorder.handle().render().contains(&line)
    };
    let server = server(SHORT).await;
    let mut peer = Peer::new(&server, 0).await;
    let subscribe = || {
        [
            rpc("SubscribeToTask", "flood"),
            grpc_subscribe("event-flood"),
        ]
    };
    for request in subscribe() {
        let mut stalled = peer.open(request).await;
        assert!(shown(1));
        is_reset(&mut stalled).await;
        assert!(shown(0), "no stream is open");
        assert_eq!(Arc::strong_count(&server.engine.taken), 1, "nor followed");
        peer.is_served().await;
    }
}

/// G-08: silence of the task is no fault of its reader.
#[tokio::test]
async fn a_stream_with_nothing_to_say_is_not_let_go() {
    let server = server(SHORT).await;
    let mut patient = Peer::new(&server, 1 << 20).await;
    let mut open = [
        patient.open(rpc("SubscribeToTask", "open")).await,
        patient.open(grpc_subscribe("event-open")).await,
    ];
    for stream in &mut open {
        assert!(stream.body_mut().frame().await.unwrap().is_ok());
    }
    // What began later was cut: the others had their time.
    let mut stalling = Peer::new(&server, 0).await;
    for _ in 0..2 {
        let mut stalled = stalling.open(rpc("SubscribeToTask", "flood")).await;
        is_reset(&mut stalled).await;
    }
    server.stop.cancel();
    for stream in open {
        let rest = timeout(PATIENCE, stream.into_body().collect()).await;
        assert!(rest.expect("ends in time").is_ok(), "ends, not breaks");
    }
}
