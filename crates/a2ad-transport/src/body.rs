//! Reads request bodies: not too much, and not too slowly.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, EXPECT};
use http_body::{Body, Frame};
use tokio::time::{Instant, timeout};

use crate::errors::Refusal;
use crate::limits::Limits;
use crate::listen::Connection;
use crate::media;

/// How long the rest of a body that is too large is read and thrown away. Closing while the caller still sends
/// makes its kernel drop our answer unread.
const DISCARD: Duration = Duration::from_secs(1);

/// Reads a whole body of one of these media types.
///
/// # Errors
/// If it is of another type or compressed, larger than allowed (checked while reading, so that an absent or false length is no way around), comes
/// slower than allowed, or breaks off.
pub(crate) async fn read<B>(
    mut body: B,
    headers: &HeaderMap,
    types: &[&str],
    connection: &Connection,
    limits: &Limits,
) -> Result<Bytes, Refusal>
where
    B: Body<Data = Bytes> + Unpin,
{
    if !media::is_one_of(headers, types) {
        return Err(Refusal::MediaType);
    }
    if !media::is_plain(headers) {
        return Err(Refusal::ContentEncoding);
    }
    if announced(headers).is_some_and(|length| length > limits.body_bytes_max as u64) {
        // Whoever asks before sending has not begun to send.
        if !headers.contains_key(EXPECT) {
            Box::pin(discard(&mut body, limits)).await;
        }
        return Err(Refusal::BodyTooLarge);
    }
    let mut timer = connection.take_body_timer();
    let began = Instant::now();
    let mut first: Option<Bytes> = None;
    let mut joined = BytesMut::new();
    let mut read = 0;
    loop {
        // What was sent fast earns no right to sit on it: silence is bounded too.
        let mut by = None;
        let next = poll_fn(|cx| match Pin::new(&mut body).poll_frame(cx) {
            Poll::Ready(frame) => Poll::Ready(Some(frame)),
            Poll::Pending => {
                let by = *by.get_or_insert_with(|| {
                    due(began, read, limits).min(Instant::now() + limits.body_grace)
                });
                timer.poll_until(by, cx).map(|()| None)
            }
        });
        let frame = match next.await {
            None => return Err(Refusal::BodyTooSlow),
            Some(Some(Err(_))) => return Err(Refusal::BodyBroken),
            Some(None) => break,
            Some(Some(Ok(frame))) => frame,
        };
        // Trailers say nothing to us.
        let Ok(data) = frame.into_data() else {
            continue;
        };
        read += data.len();
        if read > limits.body_bytes_max {
            drop((first, joined));
            Box::pin(discard(&mut body, limits)).await;
            return Err(Refusal::BodyTooLarge);
        }
        // Nearly all bodies come in one piece, which is then passed on as it is.
        match first.take() {
            None if joined.is_empty() => first = Some(data),
            before => {
                joined.extend_from_slice(&before.unwrap_or_default());
                joined.extend_from_slice(&data);
            }
        }
    }
    connection.return_body_timer(timer);
    Ok(first.unwrap_or_else(|| joined.freeze()))
}

fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// When a body that has brought `read` bytes falls behind.
fn due(began: Instant, read: usize, limits: &Limits) -> Instant {
    let rate = f64::from(limits.body_bytes_per_second_min.max(1));
    #[expect(clippy::cast_precision_loss, reason = "a body is far below 2^52 bytes")]
    let earned = Duration::from_secs_f64(read as f64 / rate);
    began + limits.body_grace + earned
}

async fn discard<B: Body<Data = Bytes> + Unpin>(body: &mut B, limits: &Limits) {
    let mut left = limits.body_bytes_max.saturating_mul(8);
    let reading = async {
        while let Some(Ok(frame)) = next(body).await {
            let size = frame.data_ref().map_or(0, Bytes::len);
            match left.checked_sub(size) {
                Some(rest) => left = rest,
                None => break,
            }
        }
    };
    // However it ends, the answer is the same.
    drop(timeout(DISCARD, reading).await);
}

async fn next<B: Body + Unpin>(body: &mut B) -> Option<Result<Frame<B::Data>, B::Error>> {
    poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await
}
