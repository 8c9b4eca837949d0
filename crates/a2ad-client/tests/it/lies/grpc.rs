use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use a2ad_client::{Binding, Client, Error, text};
use a2ad_proto::pb::Message as _;
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::StreamBody;
use hyper::body::{Frame, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use super::soon;

#[derive(Clone, Debug, Default)]
struct Told {
    kind: &'static str,
    body: Vec<Bytes>,
    status: Option<&'static str>,
}

/// A server that speaks HTTP/2 and no more gRPC than the test wants.
async fn start(told: Told) -> (SocketAddr, AbortOnDropHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let to = listener.local_addr().unwrap();
    let told = Arc::new(told);
    let serve = async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let told = Arc::clone(&told);
            connections.spawn(async move {
                let service = hyper::service::service_fn(move |_: Request<Incoming>| {
                    let mut frames: Vec<Result<Frame<Bytes>, Infallible>> = Vec::new();
                    frames.extend(told.body.iter().cloned().map(|it| Ok(Frame::data(it))));
                    if let Some(status) = told.status {
                        let mut trailers = HeaderMap::new();
                        trailers.insert("grpc-status", status.parse().unwrap());
                        frames.push(Ok(Frame::trailers(trailers)));
                    }
                    let body = StreamBody::new(futures_util::stream::iter(frames));
                    let response = Response::builder().header("content-type", told.kind);
                    std::future::ready(response.body(body))
                });
                let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                let _hung_up = builder
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    };
    #[expect(clippy::disallowed_methods, reason = "aborted when it is dropped")]
    let running = tokio::spawn(serve);
    (to, AbortOnDropHandle::new(running))
}

fn client(to: SocketAddr) -> Client {
    let card = super::card(to, &["GRPC"]).to_string();
    let card = a2ad_proto::from_json(card.as_bytes()).unwrap();
    let builder = Client::builder(&format!("http://{to}")).binding(Binding::Grpc);
    let builder = builder.retries(|it| (it.calls, it.resumes) = (0, 0));
    builder.with_card(card).unwrap()
}

async fn fails(kind: &'static str, body: &[&[u8]], status: Option<&'static str>) -> [Error; 2] {
    let body = body.iter().map(|it| Bytes::copy_from_slice(it)).collect();
    let (to, _running) = start(Told { kind, body, status }).await;
    let client = client(to);
    let called = soon(client.get("t")).await.unwrap_err();
    let streamed = soon(client.stream(text("x")).next()).await.unwrap();
    [called, streamed.unwrap_err()]
}

const GRPC: &str = "application/grpc+proto";

/// What an HTTP/2 server says of a request that it has not begun.
#[derive(Clone, Copy, Debug)]
enum Nack {
    GoAway,
    RefusedStream,
}

/// Says so to the first request, breaks off the others, and counts them all.
async fn nack(nack: Nack) -> (SocketAddr, Arc<AtomicUsize>, AbortOnDropHandle<()>) {
    const HEADERS: u8 = 1;
    const RST_STREAM: u8 = 3;
    const SETTINGS: u8 = 4;
    const GOAWAY: u8 = 7;
    const INTERNAL_ERROR: [u8; 4] = [0, 0, 0, 2];
    const REFUSED: [u8; 4] = [0, 0, 0, 7];
    fn frame(kind: u8, flags: u8, stream: [u8; 4], payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&length[1..], &[kind, flags], &stream, payload].concat()
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let to = listener.local_addr().unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let serve = async move {
        let mut connections = JoinSet::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let count = Arc::clone(&count);
            connections.spawn(async move {
                let mut preface = [0; 24];
                stream.read_exact(&mut preface).await.unwrap();
                stream
                    .write_all(&frame(SETTINGS, 0, [0; 4], &[]))
                    .await
                    .unwrap();
                let mut head = [0; 9];
                while stream.read_exact(&mut head).await.is_ok() {
                    let [a, b, c, kind, flags, id @ ..] = head;
                    let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
                    stream.read_exact(&mut payload).await.unwrap();
                    let told = match kind {
                        SETTINGS if flags == 0 => frame(SETTINGS, 1, [0; 4], &[]),
                        HEADERS => match (count.fetch_add(1, Ordering::SeqCst), nack) {
                            (0, Nack::GoAway) => frame(GOAWAY, 0, [0; 4], &[0; 8]),
                            (0, Nack::RefusedStream) => frame(RST_STREAM, 0, id, &REFUSED),
                            _ => frame(RST_STREAM, 0, id, &INTERNAL_ERROR),
                        },
                        _ => continue,
                    };
                    stream.write_all(&told).await.unwrap();
                }
            });
        }
    };
    #[expect(clippy::disallowed_methods, reason = "aborted when it is dropped")]
    let running = tokio::spawn(serve);
    (to, asked, AbortOnDropHandle::new(running))
}

/// A server that restarts says to whoever comes too late that nothing was begun.
#[tokio::test]
async fn what_the_server_has_not_begun_is_asked_again() {
    for why in [Nack::GoAway, Nack::RefusedStream] {
        let (to, asked, _running) = nack(why).await;
        let error = soon(client(to).send(text("x"))).await.unwrap_err();
        // The second time it was begun, for all one knows.
        assert!(
            matches!(error, Error::Network(_)) && !error.is_unsent(),
            "{why:?}: {error}"
        );
        assert_eq!(asked.load(Ordering::SeqCst), 2, "{why:?}");
    }
}

#[tokio::test]
async fn what_is_no_grpc_is_an_error() {
    for error in fails("text/html", &[b"<html>"], None).await {
        assert!(matches!(error, Error::NotA2a { .. }), "{error:?}");
    }
    for error in fails(GRPC, &[b"\x01\x00\x00\x00\x01x"], Some("0")).await {
        assert!(matches!(error, Error::NotA2a { .. }), "{error:?}");
    }
    for error in fails(GRPC, &[b"\x00\x00\x00\x00\x04\xff\xff\xff\xff"], Some("0")).await {
        assert!(matches!(error, Error::NotA2a { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn a_message_without_end_is_refused() {
    for error in fails(GRPC, &[b"\x00\xff\xff\xff\xffxxxx"], Some("0")).await {
        assert!(matches!(error, Error::TooLarge { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn a_call_without_a_status_has_not_ended() {
    // A whole answer, but for its end.
    for error in fails(GRPC, &[b"\x00\x00\x00\x00\x03\x12\x01t"], None).await {
        assert!(
            matches!(error, Error::Network(_) | Error::NotA2a { .. }),
            "{error:?}"
        );
    }
    let begun = super::task("t", "TASK_STATE_WORKING", &[]).to_string();
    let begun: a2ad_proto::Task = a2ad_proto::from_json(begun.as_bytes()).unwrap();
    let frame = a2ad_proto::StreamResponse::Task(begun).encode_to_vec();
    let length = u8::try_from(frame.len()).unwrap();
    let told = Told {
        kind: GRPC,
        body: vec![[&[0, 0, 0, 0, length], &frame[..]].concat().into()],
        status: None,
    };
    let (to, _running) = start(told).await;
    let options = a2ad_client::CallOptions::default();
    let frames = soon(client(to).stream_once(text("x"), None, &options)).await;
    let mut frames = frames.unwrap();
    assert!(soon(frames.next()).await.unwrap().is_some());
    assert!(matches!(soon(frames.next()).await, Err(Error::Network(_))));
    assert!(matches!(soon(frames.next()).await, Ok(None)));
    for error in fails(GRPC, &[b"\x00\x00\x00"], None).await {
        assert!(matches!(error, Error::Network(_)), "{error:?}");
    }
}

#[tokio::test]
async fn grpc_04_a_status_is_an_error() {
    for error in fails(GRPC, &[], Some("5")).await {
        assert_eq!(error.kind(), Some(a2ad_proto::ErrorKind::TaskNotFound));
    }
    let refused = fails(GRPC, &[], Some("nonsense")).await;
    assert!(refused.iter().all(|it| matches!(it, Error::Refused(_))));
}

#[tokio::test]
async fn a_server_of_another_protocol_is_an_error() {
    let liar =
        super::Liar::start(|_, _| super::Lie::Say(b"HTTP/1.1 200 OK\r\n\r\n".to_vec())).await;
    let error = soon(client(liar.to).get("t")).await.unwrap_err();
    assert!(matches!(error, Error::Network(_)), "{error:?}");
}
