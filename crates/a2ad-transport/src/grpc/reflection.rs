//! Reflection, v1 and v1alpha: what we speak, for tools such as grpcurl.

use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{Context, Poll};

use a2ad_proto::{pb, v03};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::request::Parts;
use http::{Request, Response};
use http_body::Frame;
use tokio::time::{Sleep, sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::Status;
use tonic::codegen::Service;
use tonic_reflection::server::Builder;

use crate::limits::Limits;
use crate::listen::Connection;

const V1: &str = "grpc.reflection.v1.ServerReflection";
const V1ALPHA: &str = "grpc.reflection.v1alpha.ServerReflection";
/// No question is longer than a name.
const QUESTION_BYTES_MAX: usize = 16 * 1024;

type Ask = Box<dyn Fn(Request<tonic::body::Body>) -> Answering + Send + Sync>;
type Answering = BoxFuture<'static, Response<tonic::body::Body>>;

pub(super) fn is_served(service: &str) -> bool {
    matches!(service, V1 | V1ALPHA)
}

/// Answers one request. Questions and answers take turns, so the body is read as it comes.
pub(super) async fn answer<B>(
    head: Parts,
    body: B,
    connection: &Connection,
    limits: &Limits,
) -> Response<tonic::body::Body>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    // Built at the first question: most servers are never asked.
    static SERVICES: LazyLock<Option<(Ask, Ask)>> = LazyLock::new(services);
    let Some((v1, v1alpha)) = &*SERVICES else {
        return Status::internal("There is no description").into_http();
    };
    let ask = if head.uri.path().contains(V1ALPHA) {
        v1alpha
    } else {
        v1
    };
    let body = Conversation::new(body, connection.stop().clone(), limits);
    ask(Request::from_parts(head, tonic::body::Body::new(body))).await
}

fn services() -> Option<(Ask, Ask)> {
    let ours = pb::descriptor_set();
    let older = v03::pb::descriptor_set();
    let builder = || {
        Builder::configure()
            .register_encoded_file_descriptor_set(&ours)
            .register_encoded_file_descriptor_set(&older)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let built = builder().build_v1().and_then(|v1| {
        let v1alpha = builder().build_v1alpha()?;
        Ok((
            ask(v1.max_decoding_message_size(QUESTION_BYTES_MAX)),
            ask(v1alpha.max_decoding_message_size(QUESTION_BYTES_MAX)),
        ))
    });
    built
        .inspect_err(|error| tracing::error!(error = %error, "no reflection"))
        .ok()
}

fn ask<S>(service: S) -> Ask
where
    S: Service<
            Request<tonic::body::Body>,
            Response = Response<tonic::body::Body>,
            Error = std::convert::Infallible,
        > + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send + 'static,
{
    Box::new(move |request| {
        let answering = service.clone().call(request);
        Box::pin(async {
            match answering.await {
                Ok(response) => response,
                Err(never) => match never {},
            }
        })
    })
}

/// The questions of one caller. They end when the listener stops, or when none has come for a while: whoever asks
/// has a task to itself.
struct Conversation<B> {
    body: B,
    stop: Pin<Box<WaitForCancellationFutureOwned>>,
    silence: Pin<Box<Sleep>>,
    patience: std::time::Duration,
}

impl<B> Conversation<B> {
    fn new(body: B, stop: CancellationToken, limits: &Limits) -> Self {
        Self {
            body,
            stop: Box::pin(stop.cancelled_owned()),
            silence: Box::pin(sleep(limits.keep_alive)),
            patience: limits.keep_alive,
        }
    }
}

impl<B: http_body::Body<Data = Bytes> + Unpin> http_body::Body for Conversation<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            let until = tokio::time::Instant::now() + self.patience;
            self.silence.as_mut().reset(until);
            return Poll::Ready(frame);
        }
        let stopped = self.stop.as_mut().poll(cx).is_ready();
        if stopped || self.silence.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}
