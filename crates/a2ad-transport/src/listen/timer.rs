//! A timer that is seldom moved.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::time::{Instant, Sleep, sleep_until};

/// Ends a wait at some time. Moving a timer costs a lock, so one that is due too early is left alone and moved when
/// it fires: whoever waits again and again, for a moment each time, touches it once in a while.
#[derive(Debug, Default)]
pub(crate) struct Timer(Option<Pin<Box<Sleep>>>);

impl Timer {
    /// Ready when `by` has passed; until then, sees to it that the task is woken.
    pub(crate) fn poll_until(&mut self, by: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let timer = self.0.get_or_insert_with(|| Box::pin(sleep_until(by)));
        if timer.deadline() > by {
            timer.as_mut().reset(by);
        }
        loop {
            ready!(timer.as_mut().poll(cx));
            if Instant::now() >= by {
                return Poll::Ready(());
            }
            timer.as_mut().reset(by);
        }
    }
}
