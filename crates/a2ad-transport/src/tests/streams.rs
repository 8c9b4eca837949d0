use super::wire::{call, post};
use super::*;

fn subscribe(id: &str, headers: &str) -> String {
    let body = call("SubscribeToTask", &format!(r#"{{"id":"{id}"}}"#));
    post(&format!("A2A-Version: 1.0\r\n{headers}"), &body)
}

fn event(number: u64) -> String {
    format!(
        "id: {number}\ndata: {{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"n\":{number}}}}}\n\n"
    )
}

/// RPC-07, SSE-01.
#[tokio::test]
async fn a_burst_is_one_write_and_the_stream_ends_with_its_source() {
    let server = Server::start(Limits::default()).await;
    let mut wire = server.connect().await;
    let params = r#"{"message":{"messageId":"three","role":"ROLE_USER","parts":[{"text":"hi"}]}}"#;
    wire.send(post(
        "A2A-Version: 1.0\r\n",
        &call("SendStreamingMessage", params),
    ))
    .await;
    let head = wire.until("\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    for line in [
        "content-type: text/event-stream",
        "cache-control: no-cache",
        "connection: keep-alive",
        "x-accel-buffering: no",
    ] {
        assert!(head.contains(&format!("{line}\r\n")), "{line} in {head}");
    }
    assert_eq!(wire.chunk().await, [event(1), event(2), event(3)].concat());
    assert_eq!(wire.chunk().await, "", "the end");
    // And the connection goes on.
    wire.send(subscribe("three", "")).await;
    wire.until("\r\n\r\n").await;
}

#[tokio::test]
async fn many_bytes_go_out_in_pieces_of_whole_events() {
    let server = Server::start(Limits::default()).await;
    let mut wire = server.connect().await;
    wire.send(subscribe("large", "")).await;
    wire.until("\r\n\r\n").await;
    let mut events = 0;
    loop {
        let chunk = wire.chunk().await;
        if chunk.is_empty() {
            break;
        }
        assert!(chunk.len() <= 64 * 1024, "{}", chunk.len());
        assert!(chunk.starts_with("id: ") && chunk.ends_with("\n\n"));
        events += chunk.matches("id: ").count();
    }
    assert_eq!(events, 10);
}

#[tokio::test]
async fn a_frame_larger_than_a_piece_goes_alone() {
    let server = Server::start(Limits {
        sse_chunk_bytes: 100,
        ..Limits::default()
    })
    .await;
    let mut wire = server.connect().await;
    wire.send(subscribe("large", "")).await;
    wire.until("\r\n\r\n").await;
    for _ in 0..10 {
        let chunk = wire.chunk().await;
        assert_eq!(chunk.matches("id: ").count(), 1);
        assert!(chunk.len() > 20_000);
    }
    assert_eq!(wire.chunk().await, "");
}

#[tokio::test]
async fn a_stream_resumes_after_what_the_caller_has() {
    let server = Server::start(Limits::default()).await;
    let by_query = subscribe("three", "").replace("POST / ", "POST /?afterSequence=1 ");
    for request in [subscribe("three", "Last-Event-ID: 1\r\n"), by_query] {
        let mut wire = server.connect().await;
        wire.send(request).await;
        wire.until("\r\n\r\n").await;
        assert_eq!(wire.chunk().await, [event(2), event(3)].concat());
    }
    let mut wire = server.connect().await;
    wire.send(subscribe("three", "Last-Event-ID: 3\r\n")).await;
    wire.until("\r\n\r\n").await;
    assert_eq!(wire.chunk().await, "", "nothing left is an empty stream");

    let reply = server.ask(subscribe("three", "Last-Event-ID: x\r\n")).await;
    assert_eq!(reply.json()["error"]["code"], -32602);
    let violations = &reply.json()["error"]["data"][1]["fieldViolations"];
    assert_eq!(violations[0]["field"], "Last-Event-ID");
}

/// RPC-08, STREAM-11.
#[tokio::test]
async fn an_early_error_is_json_unless_the_caller_reads_events() {
    let server = Server::start(Limits::default()).await;
    // One fails when opened, the other at its first frame: the caller cannot tell.
    for id in ["gone", "early"] {
        let reply = server.ask(subscribe(id, "")).await;
        assert_eq!(
            (reply.status, reply.header("content-type")),
            (200, Some("application/json"))
        );
        assert_eq!(reply.json()["error"]["code"], -32001);

        let accept = "Accept: application/json, Text/Event-Stream;q=0.9\r\n";
        let reply = server.ask(subscribe(id, accept)).await;
        assert_eq!(
            (reply.status, reply.header("content-type")),
            (200, Some("text/event-stream"))
        );
        let event = reply.text();
        let data = event
            .strip_prefix("data: ")
            .and_then(|rest| rest.strip_suffix("\n\n"));
        let error: serde_json::Value = serde_json::from_str(data.unwrap()).unwrap();
        assert_eq!(
            (&error["id"], &error["error"]["code"]),
            (&1.into(), &(-32001).into())
        );
    }
    let version = "POST / HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n";
    let body = call("SubscribeToTask", r#"{"id":"three"}"#);
    let reply = server
        .ask(format!(
            "{version}Content-Length: {}\r\n\r\n{body}",
            body.len()
        ))
        .await;
    assert!(reply.text().starts_with("data: ") && reply.text().contains("-32009"));
    // An error with a status of its own stays plain.
    let reply = server
        .ask(subscribe("busy", "Accept: text/event-stream\r\n"))
        .await;
    assert_eq!(
        (reply.status, reply.header("content-type")),
        (429, Some("application/json"))
    );
}

/// RPC-08, STREAM-11.
#[tokio::test]
async fn a_late_error_is_the_last_event() {
    let server = Server::start(Limits::default()).await;
    let mut wire = server.connect().await;
    wire.send(subscribe("late", "")).await;
    wire.until("\r\n\r\n").await;
    assert_eq!(wire.chunk().await, event(1));
    let last = wire.chunk().await;
    assert!(
        last.starts_with(r#"data: {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"#),
        "{last}"
    );
    assert!(!last.contains("secret"));
    assert_eq!(wire.chunk().await, "");
}

/// SSE-01.
#[tokio::test]
async fn a_quiet_stream_opens_and_shows_that_it_lives() {
    let limits = Limits {
        first_frame: Duration::from_millis(20),
        sse_keep_alive: Duration::from_millis(20),
        ..Limits::default()
    };
    let server = Server::start(limits).await;
    let mut wire = server.connect().await;
    wire.send(subscribe("silent", "Last-Event-ID: 7\r\n")).await;
    wire.until("\r\n\r\n").await;
    assert_eq!(wire.chunk().await, ": keep-alive\n\n");
    assert_eq!(wire.chunk().await, ": keep-alive\n\n");
}

/// OPS-02.
#[tokio::test]
async fn streaming_is_refused_where_the_card_does_not_offer_it() {
    let server = Server::with_streaming(Limits::default(), false).await;
    let reply = server.ask(subscribe("three", "")).await;
    assert_eq!(reply.json()["error"]["code"], -32004);
}

#[tokio::test]
async fn a_stream_that_its_reader_leaves_is_dropped() {
    let server = Server::start(Limits::default()).await;
    let mut wire = server.connect().await;
    wire.send(subscribe("flood", "")).await;
    wire.until("\r\n\r\n").await;
    assert!(Arc::strong_count(&server.engine.taken) > 1);
    drop(wire);
    let gone = async {
        while Arc::strong_count(&server.engine.taken) > 1 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, gone)
        .await
        .expect("the stream is dropped");
}
