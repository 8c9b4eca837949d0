//! What became of a commit whose answer never came.
//!
//! Not by the number of the transaction: after a crash the server gives numbers again that it had
//! not written down. So each transaction leaves something that only it can have left, and who wants
//! to know looks for that, as soon as the backend that worked on it is gone.

use std::time::Duration;

use tokio_postgres::Row;
use tokio_util::sync::CancellationToken;

use super::fail::Failure;
use super::session::{Backend, Parameter};
use super::sessions::Slot;

/// How long between two questions.
const PAUSE: Duration = Duration::from_millis(20);

/// Ends the backend, if it is still there: its client is gone, and it would keep its locks until it
/// notices.
const END: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE pid = $1 AND backend_start::text = $2";

/// What `sql` answers once nobody works on the transaction any more. Asks for as long as it takes,
/// since either answer would be wrong if it were guessed; `None` if the store is closed meanwhile.
/// While the server is away, `away` is told each time.
pub(super) async fn find(
    slot: &Slot,
    stop: &CancellationToken,
    backend: &Backend,
    sql: &'static str,
    parameters: &[Parameter<'_>],
    away: impl Fn(&Failure),
) -> Option<Vec<Row>> {
    loop {
        match ask(slot, backend, sql, parameters).await {
            Ok(Some(rows)) => return Some(rows),
            Ok(None) => {}
            Err(failure) => {
                let error = failure.store_error();
                tracing::debug!(%error, "what became of a commit cannot be found out yet");
                away(&failure);
            }
        }
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            () = stop.cancelled() => return None,
        }
    }
}

async fn ask(
    slot: &Slot,
    backend: &Backend,
    sql: &'static str,
    parameters: &[Parameter<'_>],
) -> Result<Option<Vec<Row>>, Failure> {
    let there = slot.query(END, &[&backend.pid, &backend.since]).await?;
    if !there.is_empty() {
        return Ok(None);
    }
    slot.query(sql, parameters).await.map(Some)
}
