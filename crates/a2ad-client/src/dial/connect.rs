//! A limit for connecting that each request brings along.
//!
//! The HTTP client has one such limit for all requests, and asks for a connection within the future of the request that
//! needs it. So the limit travels in a task-local, and is read when the connection is asked for; the connection may go
//! on in the background after that.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tower_layer::Layer;
use tower_service::Service;

tokio::task_local! {
    pub(super) static CONNECT_LIMIT: Duration;
}

/// Marks it among the HTTP client's errors.
#[derive(Debug, thiserror::Error)]
#[error("connecting took too long")]
pub(super) struct ConnectTimedOut;

#[derive(Clone, Debug)]
pub(super) struct LimitConnect {
    #[cfg(test)]
    pub(super) seam: Option<std::sync::Arc<dyn super::tests::Seam>>,
}

impl<S> Layer<S> for LimitConnect {
    type Service = Limited<S>;

    fn layer(&self, inner: S) -> Limited<S> {
        Limited {
            inner,
            #[cfg(test)]
            seam: self.seam.clone(),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Limited<S> {
    inner: S,
    #[cfg(test)]
    seam: Option<std::sync::Arc<dyn super::tests::Seam>>,
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl<S, Target> Service<Target> for Limited<S>
where
    S: Service<Target, Error = BoxError>,
    S::Future: Send + 'static,
    S::Response: 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, target: Target) -> Self::Future {
        let limit = CONNECT_LIMIT.try_with(|limit| *limit).ok();
        #[cfg(test)]
        if self.seam.as_ref().is_some_and(|seam| !seam.connecting()) {
            return Box::pin(async { Err("no socket in this test".into()) });
        }
        let connecting = self.inner.call(target);
        Box::pin(async move {
            match limit {
                Some(limit) => tokio::time::timeout(limit, connecting)
                    .await
                    .map_err(|_| ConnectTimedOut)?,
                None => connecting.await,
            }
        })
    }
}
