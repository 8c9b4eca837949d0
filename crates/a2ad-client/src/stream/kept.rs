use std::fmt;
use std::sync::{Mutex, PoisonError};

use futures_util::future::{BoxFuture, FutureExt as _};

/// Something that is waited for. It goes on where it was when whoever waits comes back: they need not wait at once
/// for as long as it takes, and a message that is on its way is not sent again.
pub(super) struct Kept<T> {
    /// Nobody ever waits for the lock: it is what lets a stream be shared.
    future: Mutex<BoxFuture<'static, T>>,
}

impl<T> Kept<T> {
    pub(super) fn new(future: impl Future<Output = T> + Send + 'static) -> Self {
        Self {
            future: Mutex::new(future.boxed()),
        }
    }

    /// To be let go of at the end.
    pub(super) async fn done(&mut self) -> T {
        let future = self.future.get_mut();
        future.unwrap_or_else(PoisonError::into_inner).await
    }
}

impl<T> fmt::Debug for Kept<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Kept")
    }
}
