//! The first half of a transaction: its locks, and all that its changes are about, in one round
//! trip.

use std::collections::BTreeSet;

use a2ad_core::keys::{Attempt, Number, TaskKey};
use a2ad_core::store::{Change, ContextChoice, Once, OnceHit};
use a2ad_core::task::{TurnChange, TurnHead};
use futures_util::future::{join, join4, join5};
use tokio_postgres::Row;

use super::batch::{Batch, Named, Request, TaskInBatch, TurnInBatch, hit};
use super::fail::Failure;
use super::names::ScopeKey;
use super::read::turn_state;
use super::session::Sixteen;
use super::transact::Place;

/// An agent is looked at more closely when its queue comes so near to being full: so many turns can
/// be opened by others meanwhile, in sixteen lanes.
const NEARLY: i64 = 16 * 512;

const LOCK_CONTEXTS: &str =
    "SELECT key FROM contexts WHERE key = ANY($1::int8[]) ORDER BY key FOR UPDATE";

/// Only a claim changes a turn without having locked its context, and only a ready one.
const LOCK_READY: &str = "SELECT seq FROM turns WHERE task = ANY($1::int8[]) AND state = 1
     ORDER BY seq FOR UPDATE";

/// Before anything is decided: of two who carry out one request, the second waits here for the
/// first.
const MAKE_REQUESTS: &str = "
    INSERT INTO requests (scope, key, body, task, number)
    SELECT * FROM unnest($1::int8[], $2::uuid[], $3::uuid[], $4::int8[], $5::int8[])
    ON CONFLICT DO NOTHING RETURNING scope, key";

const FIND_REQUESTS: &str = "
    SELECT r.scope, r.key, r.task, r.number, r.body
    FROM unnest($1::int8[], $2::uuid[]) AS w (scope, key)
    JOIN requests r ON r.scope = w.scope AND r.key = w.key";

const TASKS: &str = "SELECT key, scope, context, version, state, chain
     FROM tasks WHERE key = ANY($1::int8[])";

const TURNS: &str = "
    SELECT seq, task, number, context, agent, state, attempt, returned, holder, due, created_at
    FROM turns WHERE context = ANY($1::int8[]) ORDER BY seq";

/// The mark that tells afterwards whether the transaction was committed, and the time.
const MARK: &str = "
    INSERT INTO lanes (instance, lane, mark) VALUES ($2, $3, $4)
    ON CONFLICT (instance, lane) DO UPDATE SET mark = excluded.mark
    RETURNING coalesce($1::int8, (extract(epoch FROM statement_timestamp()) * 1000)::int8)";

/// Whether the newest transaction of a lane has this mark.
pub(super) const IS_MARKED: &str =
    "SELECT 1 FROM lanes WHERE instance = $1 AND lane = $2 AND mark = $3";

const OPEN_OF_AGENTS: &str =
    "SELECT agent, sum(n)::int8 FROM open_turns WHERE agent = ANY($1::int8[]) GROUP BY agent";

const LOCK_AGENTS: &str = "
    SELECT pg_advisory_xact_lock(x'61326164'::int4, agent::int4)
    FROM (SELECT unnest($1::int8[]) AS agent ORDER BY 1) AS w";

const HOLDERS: &str = "
    SELECT id FROM holders WHERE id = ANY($2::int8[])
        AND lease_until > coalesce($1::int8, (extract(epoch FROM statement_timestamp()) * 1000)::int8)";

/// All that a lane sends while others wait, to be prepared beforehand.
pub(super) const STATEMENTS: &[&str] = &[
    LOCK_CONTEXTS,
    LOCK_READY,
    MAKE_REQUESTS,
    FIND_REQUESTS,
    TASKS,
    TURNS,
    MARK,
    OPEN_OF_AGENTS,
    LOCK_AGENTS,
    HOLDERS,
];

/// What is asked for, in columns.
#[derive(Debug, Default)]
struct Asked {
    contexts: Vec<i64>,
    tasks: Vec<i64>,
    agents: Vec<i64>,
    holders: Vec<i64>,
    /// In order, and each key once: the first change that has it.
    requests: Vec<(i64, Once, TaskKey)>,
    /// Some of the tasks may be there already.
    follow_ups: bool,
}

impl Asked {
    fn new(named: &[Named<'_>]) -> Self {
        let mut contexts = BTreeSet::new();
        let mut tasks = BTreeSet::new();
        let mut agents = BTreeSet::new();
        let mut holders = BTreeSet::new();
        let mut requests = Vec::new();
        let mut follow_ups = false;
        for Named {
            change,
            scope,
            context,
        } in named
        {
            let key = change.head.identity.key;
            let is_new = change.expected == Number::ZERO;
            if !is_new || matches!(change.context, ContextChoice::Named(_)) {
                contexts.insert(*context);
            }
            follow_ups |= !is_new;
            tasks.insert(key.0);
            if opens_any(change) {
                agents.insert(scope.agent);
            }
            holders.extend(change.lease_to.map(|holder| holder.0));
            requests.extend(change.once.map(|once| (scope.scope, once, key)));
        }
        // A stable sort: of several with one key, the first stays the first.
        requests.sort_by_key(|(scope, once, _)| (*scope, once.key));
        requests.dedup_by_key(|(scope, once, _)| (*scope, once.key));
        Self {
            contexts: contexts.into_iter().collect(),
            tasks: tasks.into_iter().collect(),
            agents: agents.into_iter().collect(),
            holders: holders.into_iter().collect(),
            requests,
            follow_ups,
        }
    }
}

fn opens_any(change: &Change) -> bool {
    let mut turns = change.turns.iter();
    turns.any(|turn| matches!(turn, TurnChange::Open { .. }))
}

/// Begins the transaction, takes its locks and reads what its changes are about.
pub(super) async fn gather(place: &Place<'_>, named: &[Named<'_>]) -> Result<Batch, Failure> {
    let session = place.session;
    let asked = Asked::new(named);
    let scopes: Vec<i64> = asked.requests.iter().map(|(scope, _, _)| *scope).collect();
    let once = || asked.requests.iter().map(|(_, once, _)| once);
    let keys: Vec<Sixteen> = once().map(|once| Sixteen(once.key)).collect();
    let bodies: Vec<Sixteen> = once().map(|once| Sixteen(once.body)).collect();
    let numbers: Vec<i64> = once().map(|once| once.number.0.cast_signed()).collect();
    let makers: Vec<i64> = asked.requests.iter().map(|(_, _, task)| task.0).collect();
    let has_contexts = !asked.contexts.is_empty();
    let ((begun, locked, ready, made, tasks), (turns, facts, open, holders)) = join(
        join5(
            session.run("BEGIN"),
            session.query_if(has_contexts, LOCK_CONTEXTS, &[&asked.contexts]),
            session.query_if(asked.follow_ups, LOCK_READY, &[&asked.tasks]),
            session.query_if(
                !scopes.is_empty(),
                MAKE_REQUESTS,
                &[&scopes, &keys, &bodies, &makers, &numbers],
            ),
            session.query(TASKS, &[&asked.tasks]),
        ),
        join4(
            session.query_if(has_contexts, TURNS, &[&asked.contexts]),
            session.query(
                MARK,
                &[&place.time, &place.instance, &place.lane, &place.mark],
            ),
            session.query_if(!asked.agents.is_empty(), OPEN_OF_AGENTS, &[&asked.agents]),
            session.query_if(
                !asked.holders.is_empty(),
                HOLDERS,
                &[&place.time, &asked.holders],
            ),
        ),
    )
    .await;
    // The first error is the cause of those after it.
    begun?;
    let locked = locked?;
    ready?;
    let made = made?;
    let mut batch = Batch::default();
    for row in &locked {
        batch.contexts.insert(row.try_get(0)?, Vec::new());
    }
    add_tasks(&mut batch, &tasks?)?;
    add_turns(&mut batch, &turns?)?;
    let facts = facts?;
    let fact = facts
        .first()
        .ok_or_else(|| Failure::Damaged("the server does not tell its time".to_owned()))?;
    batch.now_ms = fact.try_get(0)?;
    batch.ahead_ms = batch.now_ms - place.now.as_millis();
    for row in &open? {
        batch.open_of_agent.insert(row.try_get(0)?, row.try_get(1)?);
    }
    for row in &holders? {
        batch.holders.insert(row.try_get(0)?);
    }
    for row in &made {
        let key: Sixteen = row.try_get(1)?;
        let scope: i64 = row.try_get(0)?;
        let asked = asked
            .requests
            .iter()
            .find(|(in_scope, once, _)| *in_scope == scope && once.key == key.0);
        if let Some((_, once, task)) = asked {
            let made = Request::Made(hit(*task, once));
            batch.requests.insert((scope, key.0), made);
        }
    }
    if made.len() < asked.requests.len() {
        let rows = session.query(FIND_REQUESTS, &[&scopes, &keys]).await?;
        add_requests(&mut batch, &rows)?;
    }
    look_closely(place, &mut batch, named).await?;
    Ok(batch)
}

fn add_tasks(batch: &mut Batch, rows: &[Row]) -> Result<(), Failure> {
    for row in rows {
        let chain: Sixteen = row.try_get(5)?;
        let task = TaskInBatch::stored(
            row.try_get(1)?,
            row.try_get(2)?,
            Number(row.try_get::<_, i64>(3)?.unsigned_abs()),
            row.try_get(4)?,
            chain.0,
        );
        batch.tasks.insert(TaskKey(row.try_get(0)?), task);
    }
    Ok(())
}

fn add_turns(batch: &mut Batch, rows: &[Row]) -> Result<(), Failure> {
    for row in rows {
        let context: i64 = row.try_get(3)?;
        batch
            .contexts
            .entry(context)
            .or_default()
            .push(TurnInBatch {
                seq: row.try_get(0)?,
                task: TaskKey(row.try_get(1)?),
                agent: row.try_get(4)?,
                head: TurnHead {
                    number: Number(row.try_get::<_, i64>(2)?.unsigned_abs()),
                    state: turn_state(row.try_get(5)?)?,
                    attempt: Attempt(row.try_get::<_, i32>(6)?.unsigned_abs()),
                    returned: row.try_get::<_, i32>(7)?.unsigned_abs(),
                },
                holder: row.try_get(8)?,
                due: row.try_get(9)?,
                created_at: row.try_get(10)?,
                changed: false,
            });
    }
    Ok(())
}

fn add_requests(batch: &mut Batch, rows: &[Row]) -> Result<(), Failure> {
    for row in rows {
        let key: Sixteen = row.try_get(1)?;
        let body: Sixteen = row.try_get(4)?;
        let hit = OnceHit {
            task: TaskKey(row.try_get(2)?),
            number: Number(row.try_get::<_, i64>(3)?.unsigned_abs()),
            body: body.0,
        };
        batch
            .requests
            .entry((row.try_get(0)?, key.0))
            .or_insert(Request::Stored(hit));
    }
    Ok(())
}

/// Counts the turns of agents that are nearly full once more, with nobody else opening any.
async fn look_closely(
    place: &Place<'_>,
    batch: &mut Batch,
    named: &[Named<'_>],
) -> Result<(), Failure> {
    let nearly = |change: &Change, ScopeKey { agent, .. }: ScopeKey| {
        let open = batch.open_of_agent.get(&agent).copied().unwrap_or(0);
        (opens_any(change) && open + NEARLY >= i64::from(change.agent_turns_max)).then_some(agent)
    };
    let agents: BTreeSet<i64> = named
        .iter()
        .filter_map(|one| nearly(one.change, one.scope))
        .collect();
    if agents.is_empty() {
        return Ok(());
    }
    let agents: Vec<i64> = agents.into_iter().collect();
    let (locked, open) = join(
        place.session.query(LOCK_AGENTS, &[&agents]),
        place.session.query(OPEN_OF_AGENTS, &[&agents]),
    )
    .await;
    locked?;
    for row in &open? {
        batch.open_of_agent.insert(row.try_get(0)?, row.try_get(1)?);
    }
    Ok(())
}
