//! Tasks that have come to rest, whoever owns them.

use a2ad_core::keys::{Number, TaskKey};
use a2ad_core::store::ListPlace;

use super::fail::Failure;
use super::read::Reader;

/// The states that a task rests in.
const STATES: [i16; 6] = [3, 4, 5, 6, 7, 8];

const RESTED: &str = "
    SELECT p.status_at, p.key, p.version FROM unnest($1::int2[]) AS s (state) CROSS JOIN LATERAL (
        SELECT status_at, key, version FROM tasks t
        WHERE state = s.state AND state >= 3 AND (status_at, key) > ($2, $3)
        ORDER BY status_at, key LIMIT $4) p
    ORDER BY p.status_at, p.key LIMIT $4";

impl Reader {
    /// Those after `after`, that which rested first coming first.
    pub(crate) async fn rested(
        &self,
        after: ListPlace,
        limit: usize,
    ) -> Result<Vec<(ListPlace, Number)>, Failure> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self
            .sessions
            .read(
                RESTED,
                &[&&STATES[..], &after.status_at, &after.key.0, &limit],
            )
            .await?;
        rows.iter()
            .map(|row| {
                let place = ListPlace {
                    status_at: row.try_get(0)?,
                    key: TaskKey(row.try_get(1)?),
                };
                Ok((place, Number(row.try_get::<_, i64>(2)?.unsigned_abs())))
            })
            .collect()
    }
}
