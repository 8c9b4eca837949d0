//! The bare agent on axum, as most would write it.

use std::convert::Infallible;

use a2ad_bench_peers::bare::{Agent, Reply};
use a2ad_bench_peers::{Wish, listen, say_ready};
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::serve::ListenerExt as _;
use futures_util::StreamExt as _;
use futures_util::stream;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let listener = listen().await?;
    say_ready(&listener, "/")?;
    let routes = axum::Router::new()
        .route("/", post(answer))
        .with_state(Agent::default());
    // Left alone, axum has Nagle's algorithm on, and the first event of a stream is 40 ms late.
    let listener = listener.tap_io(|stream| {
        if let Err(error) = stream.set_nodelay(true) {
            eprintln!("set TCP_NODELAY: {error}");
        }
    });
    axum::serve(listener, routes).await
}

async fn answer(State(agent): State<Agent>, body: Bytes) -> Response {
    match agent.call(&body) {
        Reply::Json(json) => ([(header::CONTENT_TYPE, "application/json")], json).into_response(),
        Reply::Events { events, wish } => streamed(events, wish),
        Reply::Malformed => StatusCode::BAD_REQUEST.into_response(),
    }
}

fn streamed(events: Vec<Vec<u8>>, wish: Wish) -> Response {
    let events = stream::iter(events).map(|event| {
        let data = String::from_utf8(event).expect("JSON is text");
        Ok::<_, Infallible>(Event::default().data(data))
    });
    match wish {
        Wish::Hold => Sse::new(events.chain(stream::pending())).into_response(),
        Wish::Flush => Sse::new(events.enumerate().then(paused)).into_response(),
        Wish::Echo | Wish::Burst => Sse::new(events).into_response(),
    }
}

async fn paused<T>((index, event): (usize, T)) -> T {
    Wish::Flush.pause(index).await;
    event
}
