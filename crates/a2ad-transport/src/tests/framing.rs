use super::wire::{call, rpc};
use super::*;

/// Sends a request and, behind it, one that must never be answered.
async fn check(what: &str, head: &str) {
    let server = Server::start(Limits::default()).await;
    let mut wire = server.connect().await;
    let smuggled = "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n";
    wire.try_send(format!("{head}{smuggled}")).await;
    let answer = wire.rest().await;
    assert!(answer.starts_with("HTTP/1.1 400 "), "{what}: {answer:?}");
    assert_eq!(
        answer.matches("HTTP/1.1 4").count(),
        1,
        "{what}: {answer:?}"
    );
    assert!(!answer.contains("HTTP/1.1 2"), "{what}: {answer:?}");
}

#[tokio::test]
async fn requests_of_doubtful_length_are_refused_and_nothing_after_them_is_read() {
    let chunked = "Transfer-Encoding: chunked\r\n";
    let start = "POST / HTTP/1.1\r\nHost: a\r\n";
    check(
        "length, then chunked",
        &format!("{start}Content-Length: 5\r\n{chunked}\r\n0\r\n\r\n"),
    )
    .await;
    check(
        "chunked, then length",
        &format!("{start}{chunked}Content-Length: 5\r\n\r\n0\r\n\r\n"),
    )
    .await;
    check(
        "two lengths",
        &format!("{start}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello"),
    )
    .await;
    check(
        "a list of lengths",
        &format!("{start}Content-Length: 5, 6\r\n\r\nhello"),
    )
    .await;
    check(
        "a signed length",
        &format!("{start}Content-Length: +5\r\n\r\nhello"),
    )
    .await;
    check(
        "chunked is not last",
        &format!("{start}Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n"),
    )
    .await;
    check(
        "not a coding",
        &format!("{start}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
    )
    .await;
    check(
        "chunked in HTTP/1.0",
        &format!("POST / HTTP/1.0\r\n{chunked}\r\n0\r\n\r\n"),
    )
    .await;
}

#[tokio::test]
async fn what_is_not_http_is_refused() {
    check("junk", "hello there\r\n\r\n").await;
    check("a TLS hello", "\u{16}\u{3}\u{1}\u{2}\r\n\r\n").await;
    check(
        "a folded header",
        "GET /livez HTTP/1.1\r\nHost: a\r\nX: 1\r\n 2\r\n\r\n",
    )
    .await;
    check(
        "a space before the colon",
        "GET /livez HTTP/1.1\r\nHost : a\r\n\r\n",
    )
    .await;
    check("a NUL", "GET /livez HTTP/1.1\r\nHost: a\0b\r\n\r\n").await;
    check("no host", "GET /livez HTTP/1.1\r\n\r\n").await;
    check(
        "two hosts",
        "GET /livez HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    )
    .await;
}

#[tokio::test]
async fn a_length_split_over_packets_is_seen_too() {
    let server = Server::start(Limits::default()).await;
    let mut wire = server.connect().await;
    for piece in [
        "POST / HTTP/1.1\r\nHost: a\r\nConte",
        "nt-Length: 5\r\nTransfer-",
        "Encoding: chunked\r\n\r\n0\r\n\r\n",
    ] {
        wire.send(piece).await;
        // Lets the server read this piece by itself; the result is the same if it does not.
        tokio::task::yield_now().await;
    }
    let answer = wire.rest().await;
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer:?}");
}

#[tokio::test]
async fn the_length_of_one_request_is_not_held_against_the_next() {
    let server = Server::start(Limits::default()).await;
    let mut wire = server.connect().await;
    let body = call("GetTask", r#"{"id":"t1"}"#);
    wire.send(rpc(&body)).await;
    assert_eq!(wire.reply().await.status, 200);
    wire.send(format!(
        "POST / HTTP/1.1\r\nHost: a\r\nA2A-Version: 1.0\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    ))
    .await;
    let reply = wire.reply().await;
    assert_eq!(reply.status, 200, "{}", reply.text());
}

#[tokio::test]
async fn requests_sent_ahead_are_answered_in_turn() {
    let server = Server::start(Limits::default()).await;
    let mut wire = server.connect().await;
    let body = call("GetTask", r#"{"id":"t1"}"#);
    let chunked = format!(
        "POST / HTTP/1.1\r\nHost: a\r\nA2A-Version: 1.0\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    );
    wire.send([rpc(&body), rpc(&body), chunked].concat()).await;
    for _ in 0..3 {
        let reply = wire.reply().await;
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    assert_eq!(wire.rest().await, "");
}

#[tokio::test]
async fn an_upgrade_to_http2_in_clear_text_is_not_taken_up() {
    let server = Server::start(Limits::default()).await;
    let reply = server
        .ask("GET /livez HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n")
        .await;
    assert_eq!((reply.status, reply.text()), (200, "ok\n"));
}

#[tokio::test]
async fn a_head_beyond_the_limits_is_refused() {
    let limits = Limits {
        head_bytes_max: 8192,
        headers_max: 20,
        ..Limits::default()
    };
    let server = Server::start(limits).await;
    let many = "X: 1\r\n".repeat(30);
    let long = format!("X: {}\r\n", "x".repeat(100_000));
    for headers in [many, long] {
        let mut wire = server.connect().await;
        wire.try_send(format!("GET /livez HTTP/1.1\r\nHost: a\r\n{headers}\r\n"))
            .await;
        let answer = wire.rest().await;
        assert!(
            answer.starts_with("HTTP/1.1 431 ") || answer.is_empty(),
            "{answer:?}"
        );
    }
}
