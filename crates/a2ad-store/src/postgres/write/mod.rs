//! Writing what a batch has gathered, and committing it: all in one round trip, one statement per
//! table however many rows there are.

mod tasks;
mod turns;

use a2ad_core::keys::TaskKey;
use futures_util::future::{join, join5};

use super::batch::{Batch, Request};
use super::fail::Failure;
use super::purge::{self, Deleted};
use super::session::Sixteen;
use super::transact::Place;
use tasks::Tasks;
use turns::Turns;

const COUNT_TASKS: &str = "
    INSERT INTO counters (scope, state, shard, n)
    SELECT scope, state, $3::int2, n FROM unnest($1::int8[], $2::int2[], $4::int8[])
        AS w (scope, state, n)
    ON CONFLICT (scope, state, shard) DO UPDATE SET n = counters.n + excluded.n";

const COUNT_TURNS: &str = "
    INSERT INTO open_turns (agent, shard, n)
    SELECT agent, $2::int2, n FROM unnest($1::int8[], $3::int8[]) AS w (agent, n)
    ON CONFLICT (agent, shard) DO UPDATE SET n = open_turns.n + excluded.n";

/// Request keys that got a row for a change which then was not applied.
const DELETE_REQUESTS: &str = "
    DELETE FROM requests r USING unnest($1::int8[], $2::uuid[]) AS w (scope, key)
    WHERE r.scope = w.scope AND r.key = w.key";

/// … and those that another change of the same batch has carried out instead.
const MOVE_REQUESTS: &str = "
    UPDATE requests r SET task = w.task, number = w.number, body = w.body
    FROM unnest($1::int8[], $2::uuid[], $3::int8[], $4::int8[], $5::uuid[])
        AS w (scope, key, task, number, body)
    WHERE r.scope = w.scope AND r.key = w.key";

/// All that is sent while others wait, to be prepared beforehand.
pub(super) const STATEMENTS: &[&str] = &[
    tasks::INSERT_CONTEXTS,
    tasks::INSERT_TASKS,
    tasks::UPDATE_TASKS,
    tasks::INSERT_RUNS,
    turns::INSERT_TURNS,
    turns::UPDATE_TURNS,
    turns::DELETE_TURNS,
    turns::INSERT_DEAD,
    tasks::PUT_SNAPSHOTS,
    COUNT_TASKS,
    COUNT_TURNS,
    DELETE_REQUESTS,
    MOVE_REQUESTS,
];

/// Writes the batch and commits. If nothing of it can be applied, it is rolled back. Returns the
/// tasks that were deleted because their contexts have too many.
pub(super) async fn flush(place: &Place<'_>, batch: &Batch) -> Result<Vec<TaskKey>, Failure> {
    let session = place.session;
    if batch.is_idle() {
        return session.run("ROLLBACK").await.map(|()| Vec::new());
    }
    if batch.trims.is_empty() {
        // Everything is sent before the first answer comes; an error makes the commit a rollback.
        let (rows, end) = join(
            write(place, batch),
            commit(place, batch, &Deleted::default()),
        )
        .await;
        return cause([rows, end]).map(|()| Vec::new());
    }
    // What there is too much of is known when all is written; counters come last all the same.
    write(place, batch).await?;
    let deleted = purge::trim(session, &batch.trims).await?;
    commit(place, batch, &deleted).await?;
    Ok(deleted.tasks)
}

async fn write(place: &Place<'_>, batch: &Batch) -> Result<(), Failure> {
    let task_rows = Tasks::new(batch);
    let turn_rows = Turns::new(batch);
    let (journals, turned) = join(
        join5(
            task_rows.insert_contexts(place, batch),
            task_rows.insert(place),
            task_rows.update(place),
            task_rows.insert_runs(place),
            task_rows.put_snapshots(place),
        ),
        join5(
            turn_rows.delete(place, batch),
            turn_rows.update(place),
            turn_rows.insert(place),
            turns::bury(place, batch),
            settle_requests(place, batch),
        ),
    )
    .await;
    cause([
        journals.0, journals.1, journals.2, journals.3, journals.4, turned.0, turned.1, turned.2,
        turned.3, turned.4,
    ])
}

async fn commit(place: &Place<'_>, batch: &Batch, deleted: &Deleted) -> Result<(), Failure> {
    let (tasks, (turns, committed)) = join(
        count_tasks(place, batch, deleted),
        join(count_turns(place, batch), place.session.run("COMMIT")),
    )
    .await;
    cause([tasks, turns, committed])
}

/// The first error that is not a lost connection is the cause, if there is one: a server that could
/// say so has not committed.
fn cause<const N: usize>(results: [Result<(), Failure>; N]) -> Result<(), Failure> {
    let mut lost = None;
    for result in results {
        match result {
            Ok(()) => {}
            Err(failure) if failure.is_lost() => lost = lost.or(Some(failure)),
            Err(failure) => return Err(failure),
        }
    }
    lost.map_or(Ok(()), Err)
}

async fn count_tasks(place: &Place<'_>, batch: &Batch, deleted: &Deleted) -> Result<(), Failure> {
    let mut counters = batch.counters();
    for counter in deleted.counters() {
        *counters.entry(counter).or_default() -= 1;
    }
    let scopes: Vec<i64> = counters.keys().map(|(scope, _)| *scope).collect();
    let states: Vec<i16> = counters.keys().map(|(_, state)| *state).collect();
    let by: Vec<i64> = counters.values().copied().collect();
    place
        .session
        .query_if(
            !by.is_empty(),
            COUNT_TASKS,
            &[&scopes, &states, &place.shard, &by],
        )
        .await
        .map(drop)
}

async fn count_turns(place: &Place<'_>, batch: &Batch) -> Result<(), Failure> {
    let moved = || batch.opened.iter().filter(|(_, by)| **by != 0);
    let agents: Vec<i64> = moved().map(|(agent, _)| *agent).collect();
    let by: Vec<i64> = moved().map(|(_, by)| *by).collect();
    place
        .session
        .query_if(!by.is_empty(), COUNT_TURNS, &[&agents, &place.shard, &by])
        .await
        .map(drop)
}

/// Makes the rows of request keys say what has become of the requests.
async fn settle_requests(place: &Place<'_>, batch: &Batch) -> Result<(), Failure> {
    let mut gone: (Vec<i64>, Vec<Sixteen>) = Default::default();
    let mut moved: (Vec<i64>, Vec<Sixteen>) = Default::default();
    let mut to: (Vec<i64>, Vec<i64>, Vec<Sixteen>) = Default::default();
    for ((scope, key), request) in &batch.requests {
        let Request::Made(made) = request else {
            continue;
        };
        match batch.carried_out.get(&(*scope, *key)) {
            Some(hit) if hit == made => {}
            Some(hit) => {
                moved.0.push(*scope);
                moved.1.push(Sixteen(*key));
                to.0.push(hit.task.0);
                to.1.push(hit.number.0.cast_signed());
                to.2.push(Sixteen(hit.body));
            }
            None => {
                gone.0.push(*scope);
                gone.1.push(Sixteen(*key));
            }
        }
    }
    let session = place.session;
    let (gone, moved) = join(
        session.query_if(!gone.0.is_empty(), DELETE_REQUESTS, &[&gone.0, &gone.1]),
        session.query_if(
            !moved.0.is_empty(),
            MOVE_REQUESTS,
            &[&moved.0, &moved.1, &to.0, &to.1, &to.2],
        ),
    )
    .await;
    gone.and(moved).map(drop)
}
