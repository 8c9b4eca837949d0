use std::sync::atomic::Ordering;

use tokio::time::Instant;

use super::wire::{call, plain, rpc};
use super::*;

const SHORT: Duration = Duration::from_millis(150);
/// So much longer than `SHORT` that the two cannot be mistaken for each other.
const LONG: Duration = Duration::from_secs(60);

fn patient() -> Limits {
    Limits {
        first_byte: LONG,
        head: LONG,
        keep_alive: LONG,
        stall: LONG,
        body_grace: LONG,
        ..Limits::default()
    }
}

#[tokio::test]
async fn a_silent_connection_is_closed() {
    let server = Server::start(Limits {
        first_byte: SHORT,
        ..patient()
    })
    .await;
    let began = Instant::now();
    let mut wire = server.connect().await;
    assert_eq!(wire.rest().await, "");
    assert!(began.elapsed() >= SHORT);
}

#[tokio::test]
async fn half_a_head_is_not_waited_for() {
    let server = Server::start(Limits {
        head: SHORT,
        ..patient()
    })
    .await;
    for start in ["G", "PRI * HT", "GET /livez HTTP/1.1\r\nHost: a\r\n"] {
        let mut wire = server.connect().await;
        let began = Instant::now();
        wire.send(start).await;
        assert_eq!(wire.rest().await, "", "{start}");
        assert!(began.elapsed() >= SHORT);
    }
}

#[tokio::test]
async fn a_dripping_head_gains_no_time() {
    let server = Server::start(Limits {
        head: SHORT,
        ..patient()
    })
    .await;
    let mut wire = server.connect().await;
    wire.send("GET /livez HTTP/1.1\r\nX: ").await;
    let mut ticks = tokio::time::interval(Duration::from_millis(10));
    let dripping = async {
        loop {
            ticks.tick().await;
            if !wire.try_send("x").await {
                break;
            }
        }
    };
    timeout(PATIENCE, dripping)
        .await
        .expect("the server closes while it still comes");
}

#[tokio::test]
async fn between_requests_the_longer_deadline_holds() {
    let limits = Limits {
        first_byte: SHORT / 3,
        head: SHORT / 3,
        keep_alive: SHORT,
        ..patient()
    };
    let server = Server::start(limits).await;
    let mut wire = server.connect().await;
    for _ in 0..3 {
        wire.send(plain("GET", "/livez", "")).await;
        assert_eq!(wire.reply().await.status, 200);
    }
    let idle = Instant::now();
    assert_eq!(wire.rest().await, "");
    assert!(
        idle.elapsed() >= SHORT - Duration::from_millis(5),
        "{:?}",
        idle.elapsed()
    );
}

#[tokio::test]
async fn a_slow_head_on_a_used_connection_is_not_waited_for() {
    let server = Server::start(Limits {
        head: SHORT,
        ..patient()
    })
    .await;
    let mut wire = server.connect().await;
    wire.send(plain("GET", "/livez", "")).await;
    assert_eq!(wire.reply().await.status, 200);
    wire.send("GET /li").await;
    assert_eq!(wire.rest().await, "");
}

#[tokio::test]
async fn an_answer_may_take_longer_than_any_deadline_for_reading() {
    let limits = Limits {
        first_byte: SHORT,
        head: SHORT,
        keep_alive: SHORT,
        ..patient()
    };
    let server = Server::start(limits).await;
    let mut wire = server.connect().await;
    wire.send(rpc(&call("GetTask", r#"{"id":"held"}"#))).await;
    server.engine.holding.notified().await;
    // The deadlines of another connection, begun later, have all passed by the time it is closed.
    assert_eq!(server.connect().await.rest().await, "");
    server.engine.release.notify_one();
    assert_eq!(wire.reply().await.status, 200);
}

#[tokio::test]
async fn a_body_that_stops_coming_is_a_408() {
    let server = Server::start(Limits {
        body_grace: SHORT,
        ..patient()
    })
    .await;
    for head in [
        "Content-Length: 100\r\n\r\n{",
        "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
    ] {
        let mut wire = server.connect().await;
        wire.send(format!("POST / HTTP/1.1\r\nHost: a\r\n{head}"))
            .await;
        let reply = wire.reply().await;
        assert_eq!((reply.status, reply.closes()), (408, true));
        assert_eq!(reply.json()["error"]["code"], -32600);
        assert_eq!(wire.rest().await, "", "closed afterwards");
    }
}

#[tokio::test]
async fn a_dripping_body_is_a_408_and_a_brisk_one_is_not() {
    let limits = Limits {
        body_grace: SHORT,
        body_bytes_per_second_min: 1000,
        ..patient()
    };
    let server = Server::start(limits).await;
    let mut wire = server.connect().await;
    wire.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n")
        .await;
    let mut ticks = tokio::time::interval(Duration::from_millis(10));
    for _ in 0..40 {
        ticks.tick().await;
        wire.try_send("x").await;
    }
    assert_eq!(wire.reply().await.status, 408);

    // 40 pieces of 100 bytes, 10 ms apart: ten times the rate, and longer than the grace.
    let body = format!("{:<4000}", call("GetTask", r#"{"id":"t1"}"#));
    let request = rpc(&body);
    let (head, body) = request.split_at(request.len() - body.len());
    let mut wire = server.connect().await;
    wire.send(head).await;
    for piece in body.as_bytes().chunks(100) {
        ticks.tick().await;
        wire.send(piece).await;
    }
    assert_eq!(wire.reply().await.status, 200);
}

/// STREAM-12.
#[tokio::test]
async fn a_reader_that_stops_reading_costs_little_and_is_let_go() {
    let server = Server::start(Limits {
        stall: SHORT * 2,
        ..patient()
    })
    .await;
    let mut wire = server.connect().await;
    wire.send(rpc(&call("SubscribeToTask", r#"{"id":"flood"}"#)))
        .await;
    wire.until("\r\n\r\n").await;
    // Nothing is read. What is taken of the endless source is what the kernel buffers.
    let taken = &server.engine.taken;
    let settled = async {
        let mut before = 0;
        loop {
            tokio::time::sleep(SHORT).await;
            let now = taken.load(Ordering::SeqCst);
            if now == before {
                break now;
            }
            before = now;
        }
    };
    let taken = timeout(PATIENCE, settled)
        .await
        .expect("stops taking frames");
    assert!(taken < 500, "{taken} frames of 60 kB");
    // The source is dropped with the connection, so its count is held once: by the engine.
    let gone = async {
        while Arc::strong_count(&server.engine.taken) > 1 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, gone)
        .await
        .expect("the stream is dropped");
}

#[tokio::test]
async fn an_http2_connection_without_requests_is_closed() {
    let server = Server::start(Limits {
        keep_alive: SHORT,
        head: SHORT,
        ..patient()
    })
    .await;
    let mut wire = server.connect().await;
    // The peer does not even answer the farewell.
    // The preface, an empty SETTINGS, and an acknowledgement of the server's.
    wire.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\0\x04\x01\0\0\0\0")
        .await;
    let began = Instant::now();
    assert!(wire.closed().await);
    assert!(began.elapsed() >= SHORT / 2);
}
