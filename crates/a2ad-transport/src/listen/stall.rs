//! HTTP/2: ends answers whose reader takes nothing of what is ready for it.
//!
//! The socket cannot see this: a peer may read all that is sent, answer pings, and open no window for a stream. hyper
//! then holds the next piece of the answer and does not ask for another, so only the task that runs both can tell that
//! a piece was given out and that nobody comes back for more. When the task is dropped, the stream is reset and all
//! that was held for it is free.

use std::cell::Cell;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

tokio::task_local! {
    /// When the answer that this task sends gave out the piece that it was not asked to follow up yet.
    static GIVEN: Cell<Option<Instant>>;
}

/// Notes that the answer under way gave out a piece. On HTTP/1 nobody listens: its socket is its stream.
pub(crate) fn note_given() {
    note(Some(Instant::now()));
}

/// Notes that the answer under way was asked for more: whatever it gave out is on its way.
pub(crate) fn note_asked() {
    note(None);
}

fn note(given: Option<Instant>) {
    let _not_http2 = GIVEN.try_with(|cell| cell.set(given));
}

/// Runs the task of one HTTP/2 request until it ends, or until its peer has taken nothing for `patience`.
pub(super) fn watch<F>(task: F, patience: Duration) -> impl Future<Output = ()> + Send + 'static
where
    F: Future<Output = ()> + Send + 'static,
{
    let watched = Watched {
        task: Box::pin(task),
        patience,
        timer: None,
    };
    GIVEN.scope(Cell::new(None), watched)
}

struct Watched<F> {
    task: Pin<Box<F>>,
    patience: Duration,
    /// There is none before a piece has had to wait, which most answers never do.
    timer: Option<Pin<Box<Sleep>>>,
}

impl<F: Future<Output = ()>> Future for Watched<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        if this.task.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        // No piece waits: the answer is being found, or has nothing to say. That may take as long as it takes.
        let Some(given) = GIVEN.with(Cell::get) else {
            return Poll::Pending;
        };
        let due = given + this.patience;
        let timer = this.timer.get_or_insert_with(|| Box::pin(sleep_until(due)));
        loop {
            ready!(timer.as_mut().poll(cx));
            if timer.deadline() >= due {
                tracing::debug!("an answer was not taken");
                return Poll::Ready(());
            }
            // It was set for an earlier piece.
            timer.as_mut().reset(due);
        }
    }
}
