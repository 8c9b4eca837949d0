//! Pages of a scope's tasks, newest status first.

use std::collections::BTreeMap;

use a2ad_core::keys::{Number, PublicIds, Scope, TaskKey};
use a2ad_core::store::{Known, ListFilter, ListPage, ListPlace, Listed, SHORT_JOURNAL};
use a2ad_core::task::Snapshot;
use a2ad_proto::ContextId;
use rusqlite::{CachedStatement, Connection, Rows};

use crate::sqlite::fail::Failure;
use crate::sqlite::names::{Context, Names, find_context};
use crate::sqlite::read::Journals;
use crate::sqlite::snapshots;

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

/// A page of the scope's tasks.
pub(crate) fn page(
    db: &Connection,
    names: &mut Names,
    ids: &PublicIds,
    scope: &Scope,
    query: &Query<'_>,
    known: &mut Known<'_>,
) -> Result<ListPage, Failure> {
    let Some(scope) = names.find(db, scope)? else {
        return Ok(ListPage::default());
    };
    let range = Range {
        after: query.after.unwrap_or(TOP),
        at_least: query.filter.status_at_least.unwrap_or(i64::MIN),
    };
    let state = query.filter.state.map(|state| state as u8);
    // One more than asked for tells whether there are more.
    let take = query.limit.saturating_add(1);
    let (mut rows, total) = match &query.filter.context_id {
        Some(id) => in_context(db, ids, scope.scope, id, state, &range, take)?,
        None => {
            let counts = counts(db, scope.scope, state)?;
            let total = match query.filter.status_at_least {
                None => counts.values().sum(),
                Some(at_least) => count_since(db, scope.scope, counts.keys(), at_least)?,
            };
            (merge(db, scope.scope, counts.keys(), &range, take)?, total)
        }
    };
    let mut more = rows.len() > query.limit;
    rows.truncate(query.limit);
    let mut tasks = Vec::with_capacity(rows.len());
    let mut journals = Journals::new(db)?;
    let mut bytes = 0;
    for row in rows {
        let task = if known(row.place.key, row.version) {
            Listed {
                place: row.place,
                version: row.version,
                snapshot: None,
                entries: Vec::new(),
            }
        } else {
            listed(db, &mut journals, &row, query.artifacts)?
        };
        let entries = task.entries.iter().map(|entry| entry.bytes.len());
        bytes += task.snapshot.as_ref().map_or(0, Snapshot::size) + entries.sum::<usize>();
        if bytes > query.bytes_max && !tasks.is_empty() {
            more = true;
            break;
        }
        tasks.push(task);
    }
    Ok(ListPage { tasks, more, total })
}

/// A task that is in the list, and what its row says of its journal.
struct ListedRow {
    place: ListPlace,
    version: Number,
    bytes: u64,
}

struct Range {
    after: ListPlace,
    at_least: i64,
}

/// How many tasks the scope has in each state that has any (or in the one state asked for).
fn counts(db: &Connection, scope: i64, only: Option<u8>) -> Result<BTreeMap<u8, u64>, Failure> {
    let mut statement = db.prepare_cached(
        "SELECT id & 15, n FROM counters WHERE id BETWEEN ?1 AND ?1 + 15 AND n > 0",
    )?;
    let mut rows = statement.query([scope << 4])?;
    let mut counts = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let state: u8 = row.get(0)?;
        if only.is_none_or(|only| only == state) {
            counts.insert(state, row.get::<_, i64>(1)?.unsigned_abs());
        }
    }
    Ok(counts)
}

fn count_since<'a>(
    db: &Connection,
    scope: i64,
    states: impl Iterator<Item = &'a u8>,
    at_least: i64,
) -> Result<u64, Failure> {
    let mut statement = db.prepare_cached(
        "SELECT count(*) FROM tasks WHERE scope = ?1 AND state = ?2 AND status_at >= ?3",
    )?;
    let mut total = 0;
    for state in states {
        let count: i64 = statement.query_row((scope, state, at_least), |row| row.get(0))?;
        total += count.unsigned_abs();
    }
    Ok(total)
}

macro_rules! by_state {
    ($($state:literal)*) => {
        [$(concat!(
            "SELECT status_at, key, version, bytes FROM tasks INDEXED BY tasks_listed
             WHERE scope = ?1 AND state = ", $state, "
                 AND status_at <= ?2 AND status_at >= ?4 AND (status_at < ?2 OR key < ?3)
             ORDER BY status_at DESC, key DESC"
        )),*]
    };
}

/// One text per state, because the statements of all states are open at once and each text has
/// one place in the cache of statements.
const BY_STATE: [&str; 9] = by_state![0 1 2 3 4 5 6 7 8];

/// The first `take` tasks over several states. Each state's range of the index is in list order
/// already; the next task is the first among the heads of the ranges, and no range is read
/// further than that.
fn merge<'a>(
    db: &Connection,
    scope: i64,
    states: impl Iterator<Item = &'a u8>,
    range: &Range,
    take: usize,
) -> Result<Vec<ListedRow>, Failure> {
    let mut statements: Vec<CachedStatement<'_>> = states
        .filter_map(|state| BY_STATE.get(usize::from(*state)))
        .map(|sql| db.prepare_cached(sql))
        .collect::<Result<_, _>>()?;
    let mut heads: Vec<(ListedRow, Rows<'_>)> = Vec::with_capacity(statements.len());
    for statement in &mut statements {
        let after = range.after;
        let mut rows = statement.query((scope, after.status_at, after.key.0, range.at_least))?;
        if let Some(first) = next_row(&mut rows)? {
            heads.push((first, rows));
        }
    }
    let mut merged = Vec::new();
    while merged.len() < take
        && let Some(newest) = (0..heads.len()).max_by_key(|&at| heads[at].0.place)
    {
        let (head, rows) = &mut heads[newest];
        merged.push(match next_row(rows)? {
            Some(next) => std::mem::replace(head, next),
            None => heads.swap_remove(newest).0,
        });
    }
    Ok(merged)
}

fn next_row(rows: &mut Rows<'_>) -> Result<Option<ListedRow>, Failure> {
    match rows.next()? {
        Some(row) => Ok(Some(ListedRow {
            place: ListPlace {
                status_at: row.get(0)?,
                key: TaskKey(row.get(1)?),
            },
            version: Number(row.get::<_, i64>(2)?.unsigned_abs()),
            bytes: row.get::<_, i64>(3)?.unsigned_abs(),
        })),
        None => Ok(None),
    }
}

/// Tasks and total of one conversation; a conversation is small enough to count.
fn in_context(
    db: &Connection,
    ids: &PublicIds,
    scope: i64,
    id: &ContextId,
    state: Option<u8>,
    range: &Range,
    take: usize,
) -> Result<(Vec<ListedRow>, u64), Failure> {
    let Some(Context { key: context, .. }) = find_context(db, ids, scope, id)? else {
        return Ok((Vec::new(), 0));
    };
    let total: i64 = db
        .prepare_cached(
            "SELECT (SELECT count(*) FROM tasks INDEXED BY tasks_in_context
                     WHERE context = ?1 AND context <> key
                         AND status_at >= ?2 AND (?3 IS NULL OR state = ?3))
                  + (SELECT count(*) FROM tasks
                     WHERE key = ?1 AND context = ?1
                         AND status_at >= ?2 AND (?3 IS NULL OR state = ?3))",
        )?
        .query_row((context, range.at_least, state), |row| row.get(0))?;
    // The task that opened the context is not in the index.
    let mut statement = db.prepare_cached(
        "SELECT status_at, key, version, bytes FROM tasks
         WHERE key = ?1 AND context = ?1 AND status_at <= ?2 AND status_at >= ?4
             AND (status_at < ?2 OR key < ?3) AND (?5 IS NULL OR state = ?5)
         UNION ALL
         SELECT status_at, key, version, bytes FROM tasks INDEXED BY tasks_in_context
         WHERE context = ?1 AND context <> key AND status_at <= ?2 AND status_at >= ?4
             AND (status_at < ?2 OR key < ?3) AND (?5 IS NULL OR state = ?5)
         ORDER BY status_at DESC, key DESC LIMIT ?6",
    )?;
    let mut rows = statement.query((
        context,
        range.after.status_at,
        range.after.key.0,
        range.at_least,
        state,
        i64::try_from(take).unwrap_or(i64::MAX),
    ))?;
    let mut found = Vec::new();
    while let Some(row) = next_row(&mut rows)? {
        found.push(row);
    }
    Ok((found, total.unsigned_abs()))
}

fn listed(
    db: &Connection,
    journals: &mut Journals<'_>,
    row: &ListedRow,
    artifacts: bool,
) -> Result<Listed, Failure> {
    let ListedRow {
        place,
        version,
        bytes,
    } = *row;
    let snapshot = if bytes > SHORT_JOURNAL {
        snapshots::find(db, place.key, artifacts)?
    } else {
        None
    };
    let after = snapshot.as_ref().map_or(Number::ZERO, |it| it.version);
    let mut entries = Vec::new();
    if after < version && (snapshot.is_some() || bytes <= LISTED_BYTES) {
        // A damaged journal must not hide the other tasks of the page.
        entries = match journals.entries(place.key, after, LISTED_BYTES as usize) {
            Ok(entries) if entries.last().is_some_and(|last| last.number == version) => entries,
            Ok(_) | Err(Failure::Damaged(_)) => Vec::new(),
            Err(failure @ Failure::Sql(_)) => return Err(failure),
        };
    }
    Ok(Listed {
        place,
        version,
        snapshot,
        entries,
    })
}
