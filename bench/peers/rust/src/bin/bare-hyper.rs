//! The bare agent on hyper alone: what A2A costs when nothing is in the way.
#![allow(
    clippy::disallowed_methods,
    reason = "this is what the servers are compared with, not one of them"
)]

use std::convert::Infallible;

use a2ad_bench_peers::bare::{Agent, Reply};
use a2ad_bench_peers::{Wish, listen, say_ready};
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;

type Events = StreamBody<BoxStream<'static, Result<Frame<Bytes>, Infallible>>>;
type Body = http_body_util::Either<Full<Bytes>, Events>;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let listener = listen().await?;
    say_ready(&listener, "/")?;
    let agent = Agent::default();
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let agent = agent.clone();
        let service = hyper::service::service_fn(move |request| answer(agent.clone(), request));
        tokio::spawn(async move {
            let served = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
            // Clients come and go.
            drop(served);
        });
    }
}

async fn answer(agent: Agent, request: Request<Incoming>) -> Result<Response<Body>, hyper::Error> {
    let body = request.into_body().collect().await?.to_bytes();
    Ok(match agent.call(&body) {
        Reply::Json(json) => response("application/json", whole(json.into())),
        Reply::Events { events, wish } => response("text/event-stream", streamed(events, wish)),
        Reply::Malformed => {
            let mut response = response("text/plain", whole(Bytes::new()));
            *response.status_mut() = StatusCode::BAD_REQUEST;
            response
        }
    })
}

fn response(content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let content_type = hyper::header::HeaderValue::from_static(content_type);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

fn whole(bytes: Bytes) -> Body {
    http_body_util::Either::Left(Full::new(bytes))
}

fn streamed(events: Vec<Vec<u8>>, wish: Wish) -> Body {
    let frames = stream::iter(events).map(|event| {
        let mut frame = Vec::with_capacity(event.len() + 8);
        frame.extend_from_slice(b"data: ");
        frame.extend_from_slice(&event);
        frame.extend_from_slice(b"\n\n");
        Ok(Frame::data(Bytes::from(frame)))
    });
    let frames = match wish {
        Wish::Hold => frames.chain(stream::pending()).boxed(),
        Wish::Flush => frames.enumerate().then(paused).boxed(),
        Wish::Echo | Wish::Burst => frames.boxed(),
    };
    http_body_util::Either::Right(StreamBody::new(frames))
}

async fn paused<T>((index, frame): (usize, T)) -> T {
    Wish::Flush.pause(index).await;
    frame
}
