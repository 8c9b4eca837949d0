//! Drives one connection with hyper: HTTP/1 or HTTP/2.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use ::http::{Request, Response, Version};
use futures_util::future::BoxFuture;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::gather::Gather;
use super::guard::Guard;
use super::{Connection, Listening, stall};
use crate::edge::App;
use crate::reply::Answer;

pub(super) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Serves HTTP/1 until the peer or a deadline ends it, or, once the listener stops, until the request under way
/// is answered.
pub(super) async fn one(
    socket: Guard<TcpStream>,
    connection: Arc<Connection>,
    listening: &Listening,
) -> Result<(), BoxError> {
    let limits = listening.app.limits();
    let mut http = http1::Builder::new();
    http.header_read_timeout(None) // the guard's business
        .max_headers(limits.headers_max)
        .max_header_size(limits.head_bytes_max)
        .max_buf_size(limits.head_bytes_max.max(64 * 1024));
    let requests = Requests {
        app: listening.app.clone(),
        connection,
    };
    let mut serving = pin!(http.serve_connection(TokioIo::new(socket), requests));
    tokio::select! {
        ended = serving.as_mut() => return Ok(ended?),
        () = listening.stop.cancelled() => serving.as_mut().graceful_shutdown(),
    }
    Ok(serving.await?)
}

/// Serves HTTP/2 until the peer goes, it idles too long, or the listener stops and the requests under way are
/// answered.
pub(super) async fn two(
    socket: Guard<TcpStream>,
    connection: Arc<Connection>,
    listening: &Listening,
) -> Result<(), BoxError> {
    let limits = listening.app.limits();
    let mut http = http2::Builder::new(Tracked {
        open: listening.open.clone(),
        cut: listening.cut.clone(),
        stall: limits.stall,
    });
    http.timer(TokioTimer::new())
        .keep_alive_interval(limits.http2_ping)
        .keep_alive_timeout(limits.http2_ping)
        .max_concurrent_streams(limits.http2_streams_max)
        .max_header_list_size(u32::try_from(limits.head_bytes_max).unwrap_or(u32::MAX))
        // More would only move a slow reader's frames from the journal into memory.
        .max_send_buf_size(limits.sse_chunk_bytes);
    let requests = Requests {
        app: listening.app.clone(),
        connection: Arc::clone(&connection),
    };
    let socket = Gather::new(socket);
    let mut serving = pin!(http.serve_connection(TokioIo::new(socket.clone()), requests));
    tokio::select! {
        ended = socket.drive(serving.as_mut()) => return ended,
        () = leaving(listening) => {
            serving.as_mut().graceful_shutdown();
            return socket.drive(serving).await;
        }
        () = idle(&connection, limits.keep_alive) => {}
    }
    serving.as_mut().graceful_shutdown();
    // A good peer answers the farewell; one that does not is left, unless a last request crossed it on the way.
    match timeout(limits.head, socket.drive(serving.as_mut())).await {
        Ok(ended) => ended,
        Err(_late) if connection.is_busy() => socket.drive(serving).await,
        Err(_late) => Ok(()),
    }
}

/// The requests of one connection.
struct Requests {
    app: App,
    connection: Arc<Connection>,
}

impl Service<Request<Incoming>> for Requests {
    type Response = Response<Answer>;
    type Error = Infallible;
    // Boxed: the future's size would otherwise be part of every idle connection.
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        // Counted here and not in the future, so that the guard never sees a gap between head and request.
        let in_flight = self.connection.begin();
        let in_pieces = request.version() == Version::HTTP_2;
        let (app, connection) = (self.app.clone(), Arc::clone(&self.connection));
        let (head, body) = request.into_parts();
        Box::pin(async move {
            let answer = app.answer(head, body, &connection).await;
            Ok(answer.map(|body| Answer::new(body, in_flight, in_pieces)))
        })
    }
}

/// Ends when a connection should be told to go elsewhere for its next request: when draining begins, or, for a
/// connection made later than that, when the listener stops.
async fn leaving(listening: &Listening) {
    let draining = listening.app.draining();
    if draining.is_cancelled() {
        return listening.stop.cancelled().await;
    }
    tokio::select! {
        () = listening.stop.cancelled() => {}
        () = draining.cancelled() => {}
    }
}

/// Ends when the connection has had no request for `patience`.
async fn idle(connection: &Connection, patience: Duration) {
    let mut begun = connection.begun();
    let mut since = Instant::now();
    // Looks rarely instead of being told: an idle connection may last up to twice its time.
    loop {
        sleep_until(since + patience).await;
        let now_begun = connection.begun();
        if !connection.is_busy() && now_begun == begun {
            return;
        }
        begun = now_begun;
        since = Instant::now();
    }
}

/// Runs the requests of HTTP/2 connections as tasks that the listener waits for.
#[derive(Clone, Debug)]
struct Tracked {
    open: TaskTracker,
    cut: CancellationToken,
    stall: Duration,
}

impl<F> hyper::rt::Executor<F> for Tracked
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, future: F) {
        let cut = self.cut.clone();
        let future = stall::watch(future, self.stall);
        self.open.spawn(async move {
            tokio::select! {
                biased;
                () = cut.cancelled() => {}
                () = future => {}
            }
        });
    }
}
