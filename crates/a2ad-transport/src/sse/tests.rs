use a2ad_core::keys::Number;
use a2ad_core::task::Shape;
use futures_util::StreamExt as _;

use super::*;
use crate::operations::FrameSource;

fn frame(number: u64, bytes: &'static str) -> Frame {
    Frame {
        number: Number(number),
        shape: Shape::from_byte(1),
        bytes: Bytes::from_static(bytes.as_bytes()),
    }
}

fn rpc(id: &str) -> Wrap {
    Wrap::JsonRpc(RawValue::from_string(id.to_owned()).unwrap())
}

fn stream(first: Vec<Frame>, source: Option<Box<dyn FrameSource>>) -> call::Stream {
    call::Stream {
        first,
        source,
        ends_with_question: false,
    }
}

async fn written(wrap: Wrap, frames: Vec<Frame>, limits: &Limits) -> Vec<String> {
    let events = Events::follow(
        wrap,
        Tongue::V10,
        stream(frames, None),
        CancellationToken::new(),
        limits,
    );
    let chunks = events
        .0
        .map(|chunk| String::from_utf8(chunk.to_vec()).unwrap());
    chunks.collect().await
}

/// RPC-07, REST-09.
#[tokio::test]
async fn an_event_has_the_frames_number_and_the_callers_id() {
    let frames = vec![frame(41, r#"{"task":{}}"#)];
    let expected =
        "id: 41\ndata: {\"jsonrpc\":\"2.0\",\"id\":\"\\u00e4\",\"result\":{\"task\":{}}}\n\n";
    let chunks = written(rpc(r#""\u00e4""#), frames, &Limits::default()).await;
    assert_eq!(chunks, [expected]);
    let frames = vec![frame(41, r#"{"task":{}}"#)];
    let chunks = written(Wrap::Bare(Generation::V10), frames, &Limits::default()).await;
    assert_eq!(chunks, ["id: 41\ndata: {\"task\":{}}\n\n"]);
}

#[tokio::test]
async fn chunks_hold_as_many_whole_events_as_fit_and_at_least_one() {
    let frames = || {
        (1..=5)
            .map(|number| frame(number, "{}"))
            .collect::<Vec<_>>()
    };
    let counts = async |sse_chunk_bytes| {
        let limits = Limits {
            sse_chunk_bytes,
            ..Limits::default()
        };
        let chunks = written(rpc("1"), frames(), &limits).await;
        chunks
            .iter()
            .map(|chunk| chunk.matches("id: ").count())
            .collect::<Vec<_>>()
    };
    assert_eq!(counts(64 * 1024).await, [5]);
    assert_eq!(counts(140).await, [2, 2, 1]);
    assert_eq!(counts(0).await, [1, 1, 1, 1, 1]);
}

#[tokio::test]
async fn no_frames_are_no_chunk() {
    assert!(
        written(rpc("1"), Vec::new(), &Limits::default())
            .await
            .is_empty()
    );
}

/// Gives this, then nothing more for ever.
struct Once(Option<Vec<Frame>>);

impl FrameSource for Once {
    fn next(&mut self) -> futures_util::future::BoxFuture<'_, crate::operations::Batch> {
        Box::pin(async {
            match self.0.take() {
                Some(frames) => Some(Ok(frames)),
                None => std::future::pending().await,
            }
        })
    }
}

#[tokio::test]
async fn a_stream_that_stops_shows_what_is_at_hand_and_waits_for_nothing() {
    let stop = CancellationToken::new();
    stop.cancel();
    let source = Box::new(Once(Some(vec![frame(7, "{}")])));
    let limits = Limits::default();
    let events = Events::follow(
        Wrap::Bare(Generation::V10),
        Tongue::V10,
        stream(Vec::new(), Some(source)),
        stop.clone(),
        &limits,
    );
    assert_eq!(events.0.collect::<Vec<_>>().await, ["id: 7\ndata: {}\n\n"]);
    let source = Box::new(Once(None));
    let events = Events::follow(
        Wrap::Bare(Generation::V10),
        Tongue::V10,
        stream(Vec::new(), Some(source)),
        stop,
        &limits,
    );
    assert!(events.0.collect::<Vec<_>>().await.is_empty());
}

/// RPC-08, REST-10.
#[test]
fn an_error_is_one_line_without_a_number() {
    let fault = Fault::from(crate::errors::Refusal::Cursor).about("a\nb");
    for (wrap, start, lines) in [
        (
            rpc("null"),
            "data: {\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{",
            2,
        ),
        (
            Wrap::Bare(Generation::V10),
            "event: error\ndata: {\"error\":{\"code\":400,",
            3,
        ),
    ] {
        let event = wrap.error(&fault);
        let text = std::str::from_utf8(&event).unwrap();
        assert!(text.starts_with(start), "{text}");
        assert_eq!(text.matches('\n').count(), lines);
        assert!(text.ends_with("\n\n"));
    }
}
