//! `grpc.health.v1.Health`: the readiness probe for those who ask by gRPC.

use std::sync::Arc;

use a2ad_core::engine::EngineError;
use a2ad_proto::{pb, v03};
use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt as _, unfold};
use http::Response;
use http::request::Parts;
use http_body_util::Full;
use prost::Message as _;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tonic::codegen::Service as _;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use super::{deadline, message, read_body, within};
use crate::edge::Inner;
use crate::errors::{Fault, Refusal};
use crate::listen::Connection;
use crate::probes;

pub(super) fn has(method: &str) -> bool {
    matches!(method, "Check" | "Watch")
}

/// Answers one request. What tonic would take for a fault of ours is refused before it sees it.
pub(super) async fn answer<B>(
    inner: &Arc<Inner>,
    head: Parts,
    body: B,
    connection: &Connection,
) -> Result<Response<tonic::body::Body>, Status>
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    let limits = &inner.limits;
    let refuse = |refusal| super::status(refusal, limits);
    let deadline = deadline::read(&head.headers, Instant::now())
        .map_err(|fault| fault.status(limits.retry_after))?;
    let body = within(deadline, read_body(body, &head.headers, connection, limits)).await;
    let body = body.ok_or_else(too_late)?.map_err(refuse)?;
    let message = message::check(&head.headers, &body).map_err(refuse)?;
    HealthCheckRequest::decode(message).map_err(|_| refuse(Refusal::NotProtobuf))?;
    let mut server = HealthServer::new(Probe {
        inner: Arc::clone(inner),
        stop: connection.stop().clone(),
        deadline,
    });
    let request = http::Request::from_parts(head, Full::new(body));
    match within(deadline, server.call(request)).await {
        Some(Ok(response)) => Ok(response),
        Some(Err(never)) => match never {},
        None => Err(too_late()),
    }
}

fn too_late() -> Status {
    Status::deadline_exceeded("The deadline passed")
}

#[derive(Clone)]
struct Probe {
    inner: Arc<Inner>,
    stop: CancellationToken,
    deadline: Option<Instant>,
}

impl Probe {
    /// How a service stands; there is one for each generation, and the server as a whole.
    async fn status(&self, service: &str) -> ServingStatus {
        if !matches!(service, "" | pb::SERVICE | v03::pb::SERVICE) {
            return ServingStatus::ServiceUnknown;
        }
        match probes::readiness(&self.inner).await {
            Ok(()) => ServingStatus::Serving,
            Err(_why) => ServingStatus::NotServing,
        }
    }

    /// Ends when it is time to look again. Nobody tells when the engine becomes ready or stops being so.
    async fn rest(&self) {
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = self.inner.draining.cancelled(), if !self.inner.draining.is_cancelled() => {}
            () = sleep(self.inner.limits.health_watch) => {}
        }
    }
}

#[tonic::async_trait]
impl Health for Probe {
    type WatchStream = BoxStream<'static, Result<HealthCheckResponse, Status>>;

    async fn check(
        &self,
        request: tonic::Request<HealthCheckRequest>,
    ) -> Result<tonic::Response<HealthCheckResponse>, Status> {
        match self.status(&request.get_ref().service).await {
            ServingStatus::ServiceUnknown => Err(Status::not_found("There is no such service")),
            status => Ok(tonic::Response::new(shown(status))),
        }
    }

    async fn watch(
        &self,
        request: tonic::Request<HealthCheckRequest>,
    ) -> Result<tonic::Response<Self::WatchStream>, Status> {
        let service = request.into_inner().service;
        let watching = Watching {
            probe: self.clone(),
            service,
            told: None,
        };
        let statuses = unfold(Some(watching), |watching| async {
            let mut watching = watching?;
            let next = within(watching.probe.deadline, watching.next()).await;
            Some(match next.unwrap_or_else(|| Err(too_late())) {
                Ok(status) => (Ok(shown(status)), Some(watching)),
                Err(over) => (Err(over), None),
            })
        });
        Ok(tonic::Response::new(statuses.boxed()))
    }
}

fn shown(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse {
        status: status.into(),
    }
}

struct Watching {
    probe: Probe,
    service: String,
    /// What the watcher knows.
    told: Option<ServingStatus>,
}

impl Watching {
    /// The next status that differs from the last one told.
    async fn next(&mut self) -> Result<ServingStatus, Status> {
        loop {
            let status = self.probe.status(&self.service).await;
            if self.told != Some(status) {
                self.told = Some(status);
                return Ok(status);
            }
            if self.probe.stop.is_cancelled() {
                let retry_after = self.probe.inner.limits.retry_after;
                return Err(Fault::from(EngineError::Unavailable(None)).status(retry_after));
            }
            self.probe.rest().await;
        }
    }
}
