//! Tasks that have come to rest, whoever owns them.

use a2ad_core::keys::{Number, TaskKey};
use a2ad_core::store::ListPlace;
use rusqlite::Connection;

use crate::sqlite::fail::Failure;

/// The first state that is in the index, and the last.
const STATES: std::ops::RangeInclusive<u8> = 3..=8;

/// Those after `after`, that which rested first coming first.
pub(crate) fn rested(
    db: &Connection,
    after: ListPlace,
    limit: usize,
) -> Result<Vec<(ListPlace, Number)>, Failure> {
    // The constant lets the planner see that the partial index covers the question.
    let mut statement = db.prepare_cached(
        "SELECT status_at, key, version FROM tasks INDEXED BY tasks_at_rest
         WHERE state = ?1 AND state >= 3 AND status_at >= ?2 AND (status_at > ?2 OR key > ?3)
         ORDER BY status_at, key LIMIT ?4",
    )?;
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut found = Vec::new();
    for state in STATES {
        let mut rows = statement.query((state, after.status_at, after.key.0, most))?;
        while let Some(row) = rows.next()? {
            let place = ListPlace {
                status_at: row.get(0)?,
                key: TaskKey(row.get(1)?),
            };
            found.push((place, Number(row.get::<_, i64>(2)?.unsigned_abs())));
        }
    }
    found.sort_unstable();
    found.truncate(limit);
    Ok(found)
}
