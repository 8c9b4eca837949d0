//! What happens to tasks, as server-sent events.

use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::unfold;
use http::Response;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{SightingSource, view};
use crate::errors::Fault;
use crate::limits::Limits;
use crate::listen::Connection;
use crate::meters::Gauge;
use crate::reply::Body;
use crate::sse::{self, COMMENT, Events};

/// A stream being written. It holds no queue: sightings are asked for when the connection has room for them.
struct Writing {
    hello: Option<Vec<u8>>,
    /// Nowhere once it has failed.
    source: Option<Box<dyn SightingSource>>,
    stop: CancellationToken,
    keep_alive: Duration,
    _open: Gauge,
}

/// The answer that carries a stream.
pub(super) fn open(
    hello: Vec<u8>,
    source: Box<dyn SightingSource>,
    connection: &Connection,
    limits: &Limits,
) -> Response<Body> {
    let writing = Writing {
        hello: Some(hello),
        source: Some(source),
        stop: connection.stop().clone(),
        keep_alive: limits.sse_keep_alive,
        _open: Gauge::open_stream(),
    };
    let events = Events::new(unfold(writing, Writing::step));
    sse::with_headers(Body::Events(events))
}

impl Writing {
    async fn step(mut self) -> Option<(Bytes, Self)> {
        if let Some(hello) = self.hello.take() {
            return Some((event("", &hello).into(), self));
        }
        let source = self.source.as_mut()?;
        let batch = tokio::select! {
            biased;
            () = self.stop.cancelled() => return None,
            batch = source.next() => batch?,
            () = sleep(self.keep_alive) => return Some((Bytes::from_static(COMMENT), self)),
        };
        match batch {
            Ok(sightings) => {
                let frames = sightings.iter();
                let frames = frames.flat_map(|it| event("", &view::sighting(it)));
                Some((frames.collect::<Vec<u8>>().into(), self))
            }
            Err(error) => {
                self.source = None;
                let error = Fault::from(error).http_json();
                Some((event("event: error\n", &error).into(), self))
            }
        }
    }
}

/// JSON is one line, so it is one event.
fn event(name: &str, json: &[u8]) -> Vec<u8> {
    [name.as_bytes(), b"data: ", json, b"\n\n"].concat()
}
