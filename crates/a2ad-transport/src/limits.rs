//! How much a caller may take, and for how long.

use std::time::Duration;

/// The bounds of the edge. Every field has a default that suits a public listener; tests shorten them.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections open at once. Further ones wait in the kernel's queue. Default 16,384.
    pub connections_max: usize,
    /// How long a fresh connection may stay silent before it is closed. Default 10 s.
    pub first_byte: Duration,
    /// How long the head of an HTTP/1 request may take from its first byte on. Default 10 s.
    pub head: Duration,
    /// How long a connection may idle between requests. Default 60 s.
    pub keep_alive: Duration,
    /// How long a peer may take nothing of what is ready for it before the connection (HTTP/2: the one answer) is
    /// cut; whoever followed a stream can resume. Default 60 s.
    pub stall: Duration,
    /// Size of a request's head. Default 64 KiB.
    pub head_bytes_max: usize,
    /// Header lines of a request. Default 100.
    pub headers_max: usize,
    /// Size of a request's body. Default 16 MiB.
    pub body_bytes_max: usize,
    /// How long a body may come at any speed. Default 10 s.
    pub body_grace: Duration,
    /// How many bytes per second a body must have brought on average since its grace ended. Default 1,024.
    pub body_bytes_per_second_min: u32,
    /// Requests at once on one HTTP/2 connection. Default 256.
    pub http2_streams_max: u32,
    /// How often an HTTP/2 peer is asked whether it is alive, and how long it may take to say so. Default 30 s.
    pub http2_ping: Duration,
    /// How long the head of an event stream waits for its first frame, so that an error known by then can
    /// still choose the answer's form. A resumed stream may have nothing to say for hours. Default 250 ms.
    pub first_frame: Duration,
    /// After how much silence an event stream sends a comment: before the official Python client's five seconds are over. Default 4 s.
    pub sse_keep_alive: Duration,
    /// How many bytes of ready frames go out in one write; a single larger frame goes alone. Default 64 KiB.
    pub sse_chunk_bytes: usize,
    /// Size of an `Idempotency-Key`. Default 256 bytes.
    pub idempotency_key_bytes_max: usize,
    /// How long the readiness probe waits for the engine. Default 2 s.
    pub ready: Duration,
    /// How often the readiness is looked at for whoever watches it by gRPC. Default 2 s.
    pub health_watch: Duration,
    /// What `Retry-After` says to a caller refused for load, in whole seconds. Default 1 s.
    pub retry_after: Duration,
    /// How long the accept loop rests after an error such as running out of file descriptors. Default 50 ms.
    pub accept_pause: Duration,
    /// How long connections may take to finish once the listener stops; then they are cut. Default 10 s.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 16 * 1024,
            first_byte: Duration::from_secs(10),
            head: Duration::from_secs(10),
            keep_alive: Duration::from_secs(60),
            stall: Duration::from_secs(60),
            head_bytes_max: 64 * 1024,
            headers_max: 100,
            body_bytes_max: 16 * 1024 * 1024,
            body_grace: Duration::from_secs(10),
            body_bytes_per_second_min: 1024,
            http2_streams_max: 256,
            http2_ping: Duration::from_secs(30),
            first_frame: Duration::from_millis(250),
            sse_keep_alive: Duration::from_secs(4),
            sse_chunk_bytes: 64 * 1024,
            idempotency_key_bytes_max: 256,
            ready: Duration::from_secs(2),
            health_watch: Duration::from_secs(2),
            retry_after: Duration::from_secs(1),
            accept_pause: Duration::from_millis(50),
            drain: Duration::from_secs(10),
        }
    }
}
