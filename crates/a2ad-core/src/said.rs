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
    waiting: Mutex<VecDeque<Say>>,
    /// One permit per place that is free; closed when nobody listens any more.
    room: Semaphore,
    spoken: Notify,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Say>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
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
        waiting: Mutex::default(),
        room: Semaphore::new(SAY_AHEAD),
        spoken: Notify::new(),
    });
    (Speaker(Arc::clone(&queue)), Listener(queue))
}

impl Speaker {
    /// Waits for room. Cancel-safe: if dropped, nothing was said.
    pub(crate) async fn say(&self, say: Say) -> Result<(), TurnOver> {
        let room = self.0.room.acquire().await.map_err(|_| TurnOver)?;
        room.forget();
        self.0.lock().push_back(say);
        self.0.spoken.notify_one();
        Ok(())
    }
}

impl Listener {
    /// Moves all that was said to the end of `says`.
    pub(crate) fn take(&self, says: &mut Vec<Say>) {
        let mut waiting = self.0.lock();
        let taken = waiting.len();
        says.extend(waiting.drain(..));
        drop(waiting);
        self.0.room.add_permits(taken);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// Resolves when something has been said that was not taken. Cancel-safe.
    pub(crate) async fn spoken(&self) {
        while self.is_empty() {
            self.0.spoken.notified().await;
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.room.close();
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
        assert!(listener.is_empty());
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
    async fn nobody_speaks_to_nobody() {
        let (speaker, listener) = said();
        drop(listener);
        assert_eq!(speaker.say(word(1)).await, Err(TurnOver));
    }
}
