//! What became of a commit whose answer never came.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::fail::Failure;
use super::sessions::Slot;

/// How long between two questions.
const PAUSE: Duration = Duration::from_millis(50);

const STATUS: &str = "SELECT pg_xact_status($1::text::xid8)";

/// Whoever still works on a transaction whose client is gone would keep its locks until he notices.
const END: &str = "
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE backend_xid = ($1::text::xid8)::xid AND pid <> pg_backend_pid()";

/// Whether the transaction with this number was committed. Asks for as long as it takes, since
/// either answer would be wrong if it were guessed; `None` if the store is closed meanwhile.
pub(super) async fn find(slot: &Slot, stop: &CancellationToken, transaction: &str) -> Option<bool> {
    loop {
        match slot.query(STATUS, &[&transaction]).await {
            Ok(rows) => {
                let status: Option<String> = rows.first().and_then(|row| row.try_get(0).ok());
                match status.as_deref() {
                    Some("committed") => return Some(true),
                    Some("aborted") => return Some(false),
                    _ => {}
                }
                if let Err(failure) = slot.query(END, &[&transaction]).await {
                    let error = failure.store_error();
                    tracing::warn!(%error, "an abandoned transaction could not be ended");
                }
            }
            // The server has never heard of it: after a failover, it was lost with the old server.
            Err(failure @ Failure::Sql(_)) if !failure.is_lost() => return Some(false),
            Err(_) => {}
        }
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            () = stop.cancelled() => return None,
        }
    }
}
