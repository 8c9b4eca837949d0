//! Health, readiness and metrics, for orchestrators rather than for A2A clients.

use std::time::SystemTime;

use a2ad_proto::Timestamp;
use http::{HeaderValue, Response, StatusCode};
use serde::Serialize;
use tokio::time::timeout;

use crate::edge::Inner;
use crate::reply::{self, Body, JSON, TEXT};

const PROMETHEUS: HeaderValue =
    HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// The process answers at all.
pub(crate) fn live() -> Response<Body> {
    reply::whole(StatusCode::OK, TEXT, "ok\n")
}

/// Whether requests should be sent here: the engine takes work and we are not about to stop.
pub(crate) async fn ready(inner: &Inner) -> Response<Body> {
    match readiness(inner).await {
        Ok(()) => reply::whole(StatusCode::OK, TEXT, "ok\n"),
        Err(why) => reply::whole(StatusCode::SERVICE_UNAVAILABLE, TEXT, why),
    }
}

/// The same without its form; an error says why not.
pub(crate) async fn readiness(inner: &Inner) -> Result<(), &'static str> {
    if inner.draining.is_cancelled() {
        return Err("draining\n");
    }
    match timeout(inner.limits.ready, inner.operations.ready()).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => {
            tracing::debug!(error = %error, "not ready");
            Err("not ready\n")
        }
        Err(_late) => Err("not ready\n"),
    }
}

/// What other A2A servers answer here.
#[expect(
    clippy::disallowed_methods,
    reason = "the machine's own time is what is asked for"
)]
pub(crate) fn health(inner: &Inner) -> Response<Body> {
    #[derive(Serialize)]
    struct Health<'a> {
        status: &'static str,
        service: &'static str,
        version: &'a str,
        /// Servers built with an SDK name its version; ours is its own.
        a2a_sdk_version: &'a str,
        protocol_versions: [&'static str; 2],
        timestamp: Timestamp,
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let millis = now.map_or(0, |since| since.as_millis());
    let health = Health {
        status: "healthy",
        service: "a2ad",
        version: &inner.version,
        a2a_sdk_version: &inner.version,
        protocol_versions: ["1.0", "0.3"],
        timestamp: Timestamp::from_millis(i64::try_from(millis).unwrap_or(i64::MAX)),
    };
    reply::whole(StatusCode::OK, JSON, a2ad_proto::to_json(&health))
}

/// The metrics as text.
pub(crate) fn metrics(inner: &Inner) -> Response<Body> {
    reply::whole(StatusCode::OK, PROMETHEUS, (inner.metrics)())
}
