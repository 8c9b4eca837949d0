//! What an agent has said and nobody has written down yet.
//!
//! A bounded queue like any channel, but one that costs little to make: most turns are over after a
//! few words.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, Semaphore};

use crate::agent::{Say, TurnOver};

/// How much an agent may say ahead of what is written; beyond, it waits.
pub(crate) const SAY_AHEAD: usize = 256;

#[derive(Debug)]
struct Queue {
    state: Mutex<State>,
    /// One permit per place that is free; closed when nobody listens any more.
    room: Semaphore,
    spoken: Notify,
    /// Something was written, or nobody listens any more.
    written: Notify,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Say>,
    /// How much was said, taken and written so far.
    said: u64,
    taken: u64,
    written: u64,
    /// Up to where somebody waits for it to be written.
    flushing: u64,
    over: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The agent's end. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Speaker(Arc<Queue>);

/// The engine's end; when it is dropped, the turn is over.
#[derive(Debug)]
pub(crate) struct Listener(Arc<Queue>);

/// A queue for what one turn says.
pub(crate) fn said() -> (Speaker, Listener) {
    let queue = Arc::new(Queue {
        state: Mutex::default(),
        room: Semaphore::new(SAY_AHEAD),
        spoken: Notify::new(),
        written: Notify::new(),
    });
    (Speaker(Arc::clone(&queue)), Listener(queue))
}

impl Speaker {
    /// Waits for room. Cancel-safe: if dropped, nothing was said.
    pub(crate) async fn say(&self, say: Say) -> Result<(), TurnOver> {
        let room = self.0.room.acquire().await.map_err(|_| TurnOver)?;
        room.forget();
        let mut state = self.0.lock();
        state.waiting.push_back(say);
        state.said += 1;
        drop(state);
        self.0.spoken.notify_one();
        Ok(())
    }

    /// Resolves when all that was said so far is written. Cancel-safe.
    pub(crate) async fn flush(&self) -> Result<(), TurnOver> {
        let said = {
            let mut state = self.0.lock();
            state.flushing = state.said;
            state.said
        };
        // What is held back for more to come is let out now.
        self.0.spoken.notify_one();
        loop {
            // Registered before looking, so that nothing falls in between.
            let written = self.0.written.notified();
            tokio::pin!(written);
            written.as_mut().enable();
            {
                let state = self.0.lock();
                if state.written >= said {
                    return Ok(());
                }
                if state.over {
                    return Err(TurnOver);
                }
            }
            written.await;
        }
    }
}

impl Listener {
    /// Moves all that was said to the end of `says`.
    pub(crate) fn take(&self, says: &mut Vec<Say>) {
        let mut state = self.0.lock();
        let taken = state.waiting.len();
        says.extend(state.waiting.drain(..));
        state.taken += taken as u64;
        drop(state);
        self.0.room.add_permits(taken);
    }

    /// Says that all that was taken is written.
    pub(crate) fn note_written(&self) {
        let mut state = self.0.lock();
        state.written = state.taken;
        drop(state);
        self.0.written.notify_waiters();
    }

    /// Whether somebody waits for something to be written that is not.
    pub(crate) fn is_flushing(&self) -> bool {
        let state = self.0.lock();
        state.flushing > state.written
    }

    fn is_idle(&self) -> bool {
        let state = self.0.lock();
        state.waiting.is_empty() && state.flushing <= state.written
    }

    /// Resolves when something has been said that was not taken, or is waited for that was not
    /// written. Cancel-safe.
    pub(crate) async fn spoken(&self) {
        while self.is_idle() {
            self.0.spoken.notified().await;
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.room.close();
        self.0.lock().over = true;
        self.0.written.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    fn word(n: usize) -> Say {
        Say::Text(n.to_string())
    }

    #[tokio::test]
    async fn it_comes_out_in_order_and_wakes_the_listener() {
        let (speaker, listener) = said();
        assert!(listener.spoken().now_or_never().is_none());
        speaker.say(word(1)).await.unwrap();
        speaker.say(word(2)).await.unwrap();
        assert!(listener.spoken().now_or_never().is_some());
        let mut says = vec![word(0)];
        listener.take(&mut says);
        assert_eq!(says, [word(0), word(1), word(2)]);
        assert!(listener.spoken().now_or_never().is_none());
    }

    #[tokio::test]
    async fn who_says_too_much_waits_until_it_is_taken() {
        let (speaker, listener) = said();
        for n in 0..SAY_AHEAD {
            speaker.say(word(n)).await.unwrap();
        }
        let mut late = std::pin::pin!(speaker.say(word(SAY_AHEAD)));
        assert!(late.as_mut().now_or_never().is_none());
        let mut says = Vec::new();
        listener.take(&mut says);
        assert_eq!(says.len(), SAY_AHEAD);
        late.await.unwrap();
        listener.take(&mut says);
        assert_eq!(says.last(), Some(&word(SAY_AHEAD)));
    }

    #[tokio::test]
    async fn flushing_waits_for_what_was_said_and_no_more() {
        let (speaker, listener) = said();
        speaker.flush().await.unwrap();
        speaker.say(word(1)).await.unwrap();
        let mut flush = std::pin::pin!(speaker.flush());
        assert!(flush.as_mut().now_or_never().is_none());
        assert!(listener.is_flushing());
        let mut says = Vec::new();
        listener.take(&mut says);
        assert!(listener.spoken().now_or_never().is_some(), "it is urgent");
        assert!(
            flush.as_mut().now_or_never().is_none(),
            "taken, not written"
        );
        speaker.say(word(2)).await.unwrap();
        listener.note_written();
        assert!(!listener.is_flushing());
        assert_eq!(flush.as_mut().now_or_never(), Some(Ok(())));
        assert!(speaker.flush().now_or_never().is_none());
        drop(listener);
        assert_eq!(speaker.flush().await, Err(TurnOver));
    }

    #[tokio::test]
    async fn nobody_speaks_to_nobody() {
        let (speaker, listener) = said();
        drop(listener);
        assert_eq!(speaker.say(word(1)).await, Err(TurnOver));
    }
}
