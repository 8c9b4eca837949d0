//! Looking, once a second, for what nobody has told us.

use std::sync::Arc;
use std::time::Duration;

use a2ad_core::keys::{Number, TaskKey};
use a2ad_core::store::Wake;
use a2ad_proto::AgentId;
use tokio::sync::Notify;

use super::fail::Failure;
use super::holders::time;
use super::read::Reader;
use super::session::Ground;

/// How often.
const PACE: Duration = Duration::from_secs(1);

const NEWER: &str = "
    SELECT t.key, t.version FROM unnest($1::int8[], $2::int8[]) AS w (key, version)
    JOIN tasks t ON t.key = w.key WHERE t.version > w.version";

const READY: &str = "
    SELECT a.key FROM agents a WHERE EXISTS (
        SELECT 1 FROM turns t WHERE t.agent = a.key AND t.state = 1
            AND t.due <= coalesce($1::int8,
                (extract(epoch FROM statement_timestamp()) * 1000)::int8))";

/// Looks until the store is closed, and at once when news were `missed`.
pub(super) async fn watch(
    ground: Arc<Ground>,
    reader: Arc<Reader>,
    wake: Arc<dyn Wake>,
    missed: Arc<Notify>,
) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(PACE) => {}
            () = missed.notified() => {}
            () = ground.stop.cancelled() => return,
        }
        if let Err(failure) = look(&ground, &reader, &*wake).await {
            let error = failure.store_error();
            tracing::debug!(%error, "looking for changes failed");
        }
    }
}

async fn look(ground: &Ground, reader: &Reader, wake: &dyn Wake) -> Result<(), Failure> {
    let watched = wake.watched();
    if !watched.is_empty() {
        let changed = newer(reader, &watched).await?;
        if !changed.is_empty() {
            wake.changed(&changed);
        }
    }
    let rows = reader
        .sessions
        .read(READY, &[&time(&ground.options)])
        .await?;
    let mut ready: Vec<AgentId> = Vec::with_capacity(rows.len());
    for row in &rows {
        ready.push(
            reader
                .names
                .agent(&reader.sessions, row.try_get(0)?)
                .await?,
        );
    }
    if !ready.is_empty() {
        wake.ready(&ready);
    }
    Ok(())
}

/// Those of the tasks that have a newer version.
async fn newer(
    reader: &Reader,
    watched: &[(TaskKey, Number)],
) -> Result<Vec<(TaskKey, Number)>, Failure> {
    let keys: Vec<i64> = watched.iter().map(|(key, _)| key.0).collect();
    let versions: Vec<i64> = watched.iter().map(|(_, it)| it.0.cast_signed()).collect();
    let rows = reader.sessions.read(NEWER, &[&keys, &versions]).await?;
    rows.iter()
        .map(|row| {
            let version = row.try_get::<_, i64>(1)?.unsigned_abs();
            Ok((TaskKey(row.try_get(0)?), Number(version)))
        })
        .collect()
}
