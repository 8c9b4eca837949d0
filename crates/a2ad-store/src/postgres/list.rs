//! Pages of a scope's tasks, newest status first.

use std::collections::BTreeMap;

use a2ad_core::keys::{Number, Scope, TaskKey};
use a2ad_core::store::{Known, ListFilter, ListPage, ListPlace, Listed, SHORT_JOURNAL};
use a2ad_core::task::{Entry, Snapshot};
use tokio_postgres::Row;

use super::fail::Failure;
use super::journal::{Journal, run_of, snapshot_of};
use super::names::{FIND_CONTEXT, context_parameters};
use super::read::Reader;

/// Where nothing comes before.
const TOP: ListPlace = ListPlace {
    status_at: i64::MAX,
    key: TaskKey(i64::MAX),
};

/// A page has the entries of a task that has no snapshot of its newest version, unless there are
/// more bytes of them: then whoever renders the task asks for them.
const LISTED_BYTES: u64 = 16 << 10;

/// What a page is asked for.
#[derive(Debug)]
pub(crate) struct Query<'a> {
    pub(crate) filter: &'a ListFilter,
    pub(crate) after: Option<ListPlace>,
    pub(crate) limit: usize,
    pub(crate) bytes_max: usize,
    pub(crate) artifacts: bool,
}

/// What comes with each place: version, snapshot, and no more of them than fit the bound of bytes.
macro_rules! with_tasks {
    ($places:literal) => {
        concat!(
            "WITH places AS (",
            $places,
            "), sized AS (
                SELECT p.status_at, p.key, t.version, t.bytes, s.task IS NOT NULL AS folded,
                    coalesce(octet_length(s.marks) + octet_length(s.body)
                        + CASE WHEN $7 THEN octet_length(s.artifacts) ELSE 2 END, 0) AS size
                FROM places p JOIN tasks t ON t.key = p.key
                LEFT JOIN snapshots s ON s.task = p.key AND t.bytes > $9
            ), cut AS (
                SELECT *, sum(size) OVER newest AS upto, row_number() OVER newest AS place,
                    count(*) OVER () AS places
                FROM sized WINDOW newest AS (ORDER BY status_at DESC, key DESC)
            )
            SELECT c.status_at, c.key, c.version, c.bytes, c.places,
                s.version, s.hash, s.artifacts_hash, s.marks, s.body,
                CASE WHEN $7 THEN s.artifacts END
            FROM cut c LEFT JOIN snapshots s ON s.task = c.key AND c.folded
            WHERE c.place = 1 OR c.upto <= $8
            ORDER BY c.status_at DESC, c.key DESC"
        )
    };
}

const ALL: &str = with_tasks!(
    "SELECT status_at, key FROM tasks
     WHERE scope = $1 AND $2::int2 IS NULL AND (status_at, key) < ($3, $4) AND status_at >= $5
     ORDER BY status_at DESC, key DESC LIMIT $6"
);

const BY_STATE: &str = with_tasks!(
    "SELECT status_at, key FROM tasks
     WHERE scope = $1 AND state = $2::int2 AND (status_at, key) < ($3, $4) AND status_at >= $5
     ORDER BY status_at DESC, key DESC LIMIT $6"
);

/// The task that opened the context is not in the index of contexts.
const IN_CONTEXT: &str = with_tasks!(
    "SELECT status_at, key FROM (
         SELECT status_at, key, state FROM tasks WHERE key = $1 AND context = $1
         UNION ALL
         SELECT status_at, key, state FROM tasks WHERE context = $1 AND context <> key
     ) AS all_of_it
     WHERE (status_at, key) < ($3, $4) AND status_at >= $5
         AND ($2::int2 IS NULL OR state = $2)
     ORDER BY status_at DESC, key DESC LIMIT $6"
);

const COUNT_IN_CONTEXT: &str = "
    SELECT count(*) FROM (
        SELECT status_at, state FROM tasks WHERE key = $1 AND context = $1
        UNION ALL
        SELECT status_at, state FROM tasks WHERE context = $1 AND context <> key
    ) AS all_of_it
    WHERE status_at >= $2 AND ($3::int2 IS NULL OR state = $3)";

const COUNTERS: &str = "SELECT coalesce(sum(n), 0)::int8 FROM counters
     WHERE scope = $1 AND ($2::int2 IS NULL OR state = $2)";

const COUNT_SINCE: &str = "SELECT count(*) FROM tasks
     WHERE scope = $1 AND status_at >= $2 AND $3::int2 IS NULL";

const COUNT_SINCE_BY_STATE: &str = "SELECT count(*) FROM tasks
     WHERE scope = $1 AND status_at >= $2 AND state = $3::int2";

/// The runs of several tasks, each from the entry after its snapshot on.
const RUNS: &str = "
    SELECT r.id, r.count, r.format, r.prev, r.hash, r.once, r.bytes
    FROM unnest($1::int8[], $2::int8[]) AS w (task, after)
    JOIN LATERAL (
        SELECT * FROM runs
        WHERE id >= (SELECT max(id) FROM runs WHERE id BETWEEN w.task << 22
                AND (w.task << 22) | (w.after + 1))
            AND id < (w.task + 1) << 22
        ORDER BY id LIMIT 64) r ON true
    ORDER BY r.id";

impl Reader {
    /// A page of the scope's tasks.
    pub(crate) async fn list(
        &self,
        scope: &Scope,
        query: &Query<'_>,
        known: &mut Known<'_>,
    ) -> Result<ListPage, Failure> {
        let Some(scope) = self.names.find(&self.sessions, scope).await? else {
            return Ok(ListPage::default());
        };
        let filter = query.filter;
        let at_least = filter.status_at_least.unwrap_or(i64::MIN);
        let only = filter.state.map(|state| state as i16);
        let (sql, of, total) = match &filter.context_id {
            Some(id) => {
                let (key, bits, name) = context_parameters(self.ids.key_of(id.as_str()), id);
                let rows = self
                    .sessions
                    .read(FIND_CONTEXT, &[&key, &scope.scope, &bits, &name])
                    .await?;
                let Some(row) = rows.first() else {
                    return Ok(ListPage::default());
                };
                let context: i64 = row.try_get(0)?;
                let total = self
                    .count(COUNT_IN_CONTEXT, &[&context, &at_least, &only])
                    .await?;
                (IN_CONTEXT, context, total)
            }
            None => {
                let of = scope.scope;
                let total = match (filter.status_at_least, only) {
                    (None, _) => self.count(COUNTERS, &[&of, &only]).await?,
                    (Some(since), None) => self.count(COUNT_SINCE, &[&of, &since, &only]).await?,
                    (Some(since), Some(_)) => {
                        self.count(COUNT_SINCE_BY_STATE, &[&of, &since, &only])
                            .await?
                    }
                };
                (if only.is_some() { BY_STATE } else { ALL }, of, total)
            }
        };
        let after = query.after.unwrap_or(TOP);
        // One more than asked for tells whether there are more.
        let take = i64::try_from(query.limit).unwrap_or(i64::MAX - 1) + 1;
        let bytes_max = i64::try_from(query.bytes_max).unwrap_or(i64::MAX);
        let folded = SHORT_JOURNAL.cast_signed();
        let rows = self
            .sessions
            .read(
                sql,
                &[
                    &of,
                    &only,
                    &after.status_at,
                    &after.key.0,
                    &at_least,
                    &take,
                    &query.artifacts,
                    &bytes_max,
                    &folded,
                ],
            )
            .await?;
        let (tasks, more) = self.page(&rows, query, known).await?;
        Ok(ListPage { tasks, more, total })
    }

    async fn page(
        &self,
        rows: &[Row],
        query: &Query<'_>,
        known: &mut Known<'_>,
    ) -> Result<(Vec<Listed>, bool), Failure> {
        let places = match rows.first() {
            Some(row) => row.try_get::<_, i64>(4)?.unsigned_abs() as usize,
            None => 0,
        };
        let mut tasks = Vec::with_capacity(rows.len());
        for row in rows.iter().take(query.limit) {
            let mut task = listed(row, query.artifacts)?;
            let bytes = if known(task.place.key, task.version) {
                task.snapshot = None;
                None
            } else {
                Some(row.try_get::<_, i64>(3)?.unsigned_abs())
            };
            tasks.push((task, bytes));
        }
        self.add_entries(&mut tasks).await?;
        let mut bytes = 0;
        let mut page = Vec::with_capacity(tasks.len());
        for (task, _) in tasks {
            let entries = task.entries.iter().map(|entry| entry.bytes.len());
            bytes += task.snapshot.as_ref().map_or(0, Snapshot::size) + entries.sum::<usize>();
            if bytes > query.bytes_max && !page.is_empty() {
                break;
            }
            page.push(task);
        }
        let more = page.len() < places;
        Ok((page, more))
    }

    /// Adds the entries after the snapshot, or from the first on, where they are few and the caller does not have
    /// them; `bytes` is then how long the journal is.
    async fn add_entries(&self, tasks: &mut [(Listed, Option<u64>)]) -> Result<(), Failure> {
        let mut keys = Vec::new();
        let mut afters = Vec::new();
        for (task, bytes) in &*tasks {
            let Some(bytes) = bytes else { continue };
            let after = task.snapshot.as_ref().map_or(Number::ZERO, |it| it.version);
            let few = task.snapshot.is_some() || *bytes <= LISTED_BYTES;
            if after < task.version && few {
                keys.push(task.place.key.0);
                afters.push(after.0.cast_signed());
            }
        }
        if keys.is_empty() {
            return Ok(());
        }
        let rows = self.sessions.read(RUNS, &[&keys, &afters]).await?;
        let mut journals: BTreeMap<i64, Vec<&Row>> = BTreeMap::new();
        for row in &rows {
            let (task, _) = crate::run::unpack_run_id(row.try_get(0)?);
            journals.entry(task).or_default().push(row);
        }
        for (task, _) in tasks {
            let after = task.snapshot.as_ref().map_or(Number::ZERO, |it| it.version);
            if let Some(rows) = journals.get(&task.place.key.0) {
                // A damaged journal must not hide the other tasks of the page.
                let mut entries = match journal(task.place.key, after, rows) {
                    Ok(entries) => entries,
                    Err(Failure::Damaged(_)) => Vec::new(),
                    Err(failure) => return Err(failure),
                };
                // What was added meanwhile is not of the same moment.
                entries.retain(|entry| entry.number <= task.version);
                if entries.last().is_some_and(|it| it.number == task.version) {
                    task.entries = entries;
                }
            }
        }
        Ok(())
    }

    async fn count(
        &self,
        sql: &'static str,
        parameters: &[super::session::Parameter<'_>],
    ) -> Result<u64, Failure> {
        let rows = self.sessions.read(sql, parameters).await?;
        match rows.first() {
            Some(row) => Ok(row.try_get::<_, i64>(0)?.unsigned_abs()),
            None => Ok(0),
        }
    }
}

fn listed(row: &Row, artifacts: bool) -> Result<Listed, Failure> {
    let key = TaskKey(row.try_get(1)?);
    Ok(Listed {
        place: ListPlace {
            status_at: row.try_get(0)?,
            key,
        },
        version: Number(row.try_get::<_, i64>(2)?.unsigned_abs()),
        snapshot: snapshot_of(key, row, 5, artifacts)?,
        entries: Vec::new(),
    })
}

fn journal(task: TaskKey, after: Number, rows: &[&Row]) -> Result<Vec<Entry>, Failure> {
    let mut journal = Journal::new(task, after, LISTED_BYTES as usize);
    for row in rows {
        if !journal.add(run_of(task, row)?)? {
            break;
        }
    }
    Ok(journal.entries)
}
