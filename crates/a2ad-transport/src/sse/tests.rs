use a2ad_core::keys::Number;
use a2ad_core::task::Shape;
use futures_util::StreamExt as _;

use super::*;

fn frame(number: u64, bytes: &'static str) -> Frame {
    Frame {
        number: Number(number),
        shape: Shape::from_byte(1),
        bytes: Bytes::from_static(bytes.as_bytes()),
    }
}

async fn written(id: &str, frames: Vec<Frame>, limits: &Limits) -> Vec<String> {
    let id = RawValue::from_string(id.to_owned()).unwrap();
    let events = Events::follow(id, frames, None, CancellationToken::new(), limits);
    let chunks = events
        .0
        .map(|chunk| String::from_utf8(chunk.to_vec()).unwrap());
    chunks.collect().await
}

#[tokio::test]
async fn an_event_has_the_frames_number_and_the_callers_id() {
    let frames = vec![frame(41, r#"{"task":{}}"#)];
    let expected =
        "id: 41\ndata: {\"jsonrpc\":\"2.0\",\"id\":\"\\u00e4\",\"result\":{\"task\":{}}}\n\n";
    let chunks = written(r#""\u00e4""#, frames, &Limits::default()).await;
    assert_eq!(chunks, [expected]);
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
        let chunks = written("1", frames(), &limits).await;
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
        written("1", Vec::new(), &Limits::default())
            .await
            .is_empty()
    );
}

#[test]
fn an_error_is_one_line_without_a_number() {
    let fault = Fault::from(crate::errors::Refusal::Cursor).about("a\nb");
    let event = error_event(RawValue::NULL, &fault);
    let text = std::str::from_utf8(&event).unwrap();
    assert!(text.starts_with("data: {\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{"));
    assert_eq!(text.matches('\n').count(), 2);
    assert!(text.ends_with("\n\n"));
}
