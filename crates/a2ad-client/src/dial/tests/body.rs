use std::convert::Infallible;

use futures_util::{StreamExt, stream};
use http_body::Frame;
use http_body_util::StreamBody;

use super::*;

fn body(chunks: impl futures_util::Stream<Item = &'static str> + Send + Sync + 'static) -> Body {
    let frames = chunks.map(|chunk| Ok::<_, Infallible>(Frame::data(Bytes::from(chunk))));
    let inner = reqwest::Body::wrap(StreamBody::new(frames));
    let limits = Limits::stream(Duration::from_secs(1));
    Body::new(inner, "agent.example".into(), &limits, None).unwrap()
}

#[tokio::test(start_paused = true)]
async fn empty_pieces_are_passed_over() {
    let read = body(stream::iter(["", "a", "", "", "b", ""])).bytes();
    assert_eq!(read.await.unwrap(), "ab");
}

#[tokio::test(start_paused = true)]
async fn empty_pieces_are_silence() {
    let dripping = stream::unfold((), |()| async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        Some(("", ()))
    });
    let mut body = body(Box::pin(dripping));
    let chunk = tokio::time::timeout(Duration::from_secs(60), body.chunk());
    let chunk = chunk.await.unwrap();
    let silent = DialError::TimedOut {
        host: "agent.example".into(),
        wait: Wait::Silence,
        limit: Duration::from_secs(1),
    };
    assert_eq!(chunk, Err(silent));
}
