//! Writing what a batch has gathered, and committing it: all in one round trip, one statement per
//! table however many rows there are.

use a2ad_core::keys::{TaskKey, uuid_bits};
use a2ad_core::task::{FORMAT, TurnState};
use futures_util::future::{join, join5};

use super::batch::{Batch, Request};
use super::fail::Failure;
use super::session::Sixteen;
use super::transact::Place;
use crate::hash::hash_bytes;
use crate::packed::pack_artifacts;
use crate::run::Sealed;
use crate::snapshot::hash_body;

const INSERT_CONTEXTS: &str = "INSERT INTO contexts (key, scope, minted)
     SELECT * FROM unnest($1::int8[], $2::int8[], $3::uuid[])";

const INSERT_TASKS: &str = "
    INSERT INTO tasks (key, scope, context, version, status_at, bytes, state, cancel, id, chain,
        artifacts)
    SELECT * FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[], $5::int8[], $6::int8[],
        $7::int2[], $8::bool[], $9::uuid[], $10::uuid[], $11::bytea[])";

const UPDATE_TASKS: &str = "
    UPDATE tasks t SET version = w.version, status_at = w.status_at, bytes = w.bytes,
        state = w.state, cancel = w.cancel, chain = w.chain, artifacts = w.artifacts
    FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[], $5::int2[], $6::bool[], $7::uuid[],
        $8::bytea[]) AS w (key, version, status_at, bytes, state, cancel, chain, artifacts)
    WHERE t.key = w.key";

const INSERT_RUNS: &str = "
    INSERT INTO runs (id, count, format, prev, hash, once, bytes)
    SELECT id, count, $3::int2, prev, hash, once, bytes
    FROM unnest($1::int8[], $2::int8[], $4::uuid[], $5::uuid[], $6::bytea[], $7::bytea[])
        AS w (id, count, prev, hash, once, bytes)";

const INSERT_TURNS: &str = "
    INSERT INTO turns (task, number, context, agent, holder, due, created_at, attempt, returned,
        state)
    SELECT * FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[], $5::int8[], $6::int8[],
        $7::int8[], $8::int4[], $9::int4[], $10::int2[])";

const UPDATE_TURNS: &str = "
    UPDATE turns t SET state = w.state, holder = w.holder, due = w.due, returned = w.returned,
        rescuer = NULL, rescue_until = NULL
    FROM unnest($1::int8[], $2::int2[], $3::int8[], $4::int8[], $5::int4[])
        AS w (seq, state, holder, due, returned)
    WHERE t.seq = w.seq";

const DELETE_TURNS: &str = "DELETE FROM turns WHERE seq = ANY($1::int8[])";

const INSERT_DEAD: &str = "
    INSERT INTO dead_turns (task, number, context, agent, created_at, died_at, attempt, returned,
        reason)
    SELECT task, number, context, agent, created_at, $6::int8, attempt, returned, reason
    FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[], $5::int8[], $7::int4[], $8::int4[],
        $9::text[])
        AS w (task, number, context, agent, created_at, attempt, returned, reason)";

/// Keeps snapshots as their tasks' newest, unless newer ones are there.
const PUT_SNAPSHOTS: &str = "
    INSERT INTO snapshots (task, version, hash, artifacts_hash, marks, body, artifacts)
    SELECT * FROM unnest($1::int8[], $2::int8[], $3::uuid[], $4::uuid[], $5::bytea[], $6::bytea[],
        $7::bytea[])
    ON CONFLICT (task) DO UPDATE SET
        version = excluded.version, hash = excluded.hash,
        artifacts_hash = excluded.artifacts_hash, marks = excluded.marks,
        body = excluded.body, artifacts = excluded.artifacts
    WHERE excluded.version >= snapshots.version";

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
    INSERT_CONTEXTS,
    INSERT_TASKS,
    UPDATE_TASKS,
    INSERT_RUNS,
    INSERT_TURNS,
    UPDATE_TURNS,
    DELETE_TURNS,
    INSERT_DEAD,
    PUT_SNAPSHOTS,
    COUNT_TASKS,
    COUNT_TURNS,
    DELETE_REQUESTS,
    MOVE_REQUESTS,
];

/// Writes the batch and commits. If nothing of it can be applied, it is rolled back.
pub(super) async fn flush(place: &Place<'_>, batch: &Batch) -> Result<(), Failure> {
    let session = place.session;
    if batch.is_idle() {
        return session.run("ROLLBACK").await;
    }
    let tasks = Tasks::new(batch);
    let turns = Turns::new(batch);
    // Everything is sent before the first answer comes; an error makes the commit a rollback.
    let (journals, (turned, (others, committed))) = join(
        join5(
            tasks.insert_contexts(place, batch),
            tasks.insert(place),
            tasks.update(place),
            tasks.insert_runs(place),
            tasks.put_snapshots(place),
        ),
        join(
            join5(
                turns.delete(place, batch),
                turns.update(place),
                turns.insert(place),
                bury(place, batch),
                settle_requests(place, batch),
            ),
            join(
                join(count_tasks(place, batch), count_turns(place, batch)),
                session.run("COMMIT"),
            ),
        ),
    )
    .await;
    let results = [
        journals.0, journals.1, journals.2, journals.3, journals.4, turned.0, turned.1, turned.2,
        turned.3, turned.4, others.0, others.1, committed,
    ];
    // The first error that is not a lost connection is the cause, if there is one: a server that
    // could say so has not committed.
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

/// The rows of tasks, in columns.
#[derive(Debug, Default)]
struct Tasks<'a> {
    new: Heads,
    old: Heads,
    runs: Vec<(Sealed<'a>, Sixteen)>,
    snapshots: Vec<(TaskKey, &'a a2ad_core::task::Snapshot)>,
}

#[derive(Debug, Default)]
struct Heads {
    keys: Vec<i64>,
    scopes: Vec<i64>,
    contexts: Vec<i64>,
    versions: Vec<i64>,
    status_at: Vec<i64>,
    bytes: Vec<i64>,
    states: Vec<i16>,
    cancels: Vec<bool>,
    ids: Vec<Sixteen>,
    chains: Vec<Sixteen>,
    artifacts: Vec<Vec<u8>>,
}

impl<'a> Tasks<'a> {
    fn new(batch: &'a Batch) -> Self {
        let mut tasks = Self::default();
        for (key, task) in &batch.tasks {
            let Some(head) = &task.head else { continue };
            let mut chain = task.chain;
            if !task.run.is_empty() {
                let sealed = task.run.seal(*key, task.chain);
                chain = sealed.hash;
                tasks.runs.push((sealed, Sixteen(task.chain)));
            }
            tasks
                .snapshots
                .extend(task.snapshot.as_ref().map(|it| (*key, it)));
            let heads = match task.stored_state {
                Some(_) => &mut tasks.old,
                None => &mut tasks.new,
            };
            let id = uuid_bits(head.identity.id.as_str()).unwrap_or_default();
            heads.keys.push(key.0);
            heads.scopes.push(task.scope);
            heads.contexts.push(task.context);
            heads.versions.push(head.version.0.cast_signed());
            heads.status_at.push(head.status_at.as_millis());
            heads
                .bytes
                .push(i64::try_from(head.bytes).unwrap_or(i64::MAX));
            heads.states.push(head.state as i16);
            heads.cancels.push(head.cancel_requested);
            heads.ids.push(Sixteen(id.to_be_bytes()));
            heads.chains.push(Sixteen(chain));
            heads.artifacts.push(pack_artifacts(&head.artifacts));
        }
        tasks
    }

    async fn insert_contexts(&self, place: &Place<'_>, batch: &Batch) -> Result<(), Failure> {
        let keys: Vec<i64> = batch.minted.iter().map(|(key, _, _)| *key).collect();
        let scopes: Vec<i64> = batch.minted.iter().map(|(_, scope, _)| *scope).collect();
        let ids = batch.minted.iter();
        let ids: Vec<Sixteen> = ids.map(|(_, _, id)| Sixteen(id.to_be_bytes())).collect();
        let needed = !keys.is_empty();
        place
            .session
            .query_if(needed, INSERT_CONTEXTS, &[&keys, &scopes, &ids])
            .await
            .map(drop)
    }

    async fn insert(&self, place: &Place<'_>) -> Result<(), Failure> {
        let it = &self.new;
        place
            .session
            .query_if(
                !it.keys.is_empty(),
                INSERT_TASKS,
                &[
                    &it.keys,
                    &it.scopes,
                    &it.contexts,
                    &it.versions,
                    &it.status_at,
                    &it.bytes,
                    &it.states,
                    &it.cancels,
                    &it.ids,
                    &it.chains,
                    &it.artifacts,
                ],
            )
            .await
            .map(drop)
    }

    async fn update(&self, place: &Place<'_>) -> Result<(), Failure> {
        let it = &self.old;
        place
            .session
            .query_if(
                !it.keys.is_empty(),
                UPDATE_TASKS,
                &[
                    &it.keys,
                    &it.versions,
                    &it.status_at,
                    &it.bytes,
                    &it.states,
                    &it.cancels,
                    &it.chains,
                    &it.artifacts,
                ],
            )
            .await
            .map(drop)
    }

    async fn insert_runs(&self, place: &Place<'_>) -> Result<(), Failure> {
        let runs = || self.runs.iter().map(|(run, _)| run);
        let ids: Vec<i64> = runs().map(|run| run.id).collect();
        let counts: Vec<i64> = runs().map(|run| run.count.cast_signed()).collect();
        let prevs: Vec<Sixteen> = self.runs.iter().map(|(_, prev)| *prev).collect();
        let hashes: Vec<Sixteen> = runs().map(|run| Sixteen(run.hash)).collect();
        let once: Vec<Option<&[u8]>> = runs().map(|run| run.once).collect();
        let bytes: Vec<&[u8]> = runs().map(|run| run.bytes).collect();
        let format = i16::from(FORMAT);
        place
            .session
            .query_if(
                !ids.is_empty(),
                INSERT_RUNS,
                &[&ids, &counts, &format, &prevs, &hashes, &once, &bytes],
            )
            .await
            .map(drop)
    }

    async fn put_snapshots(&self, place: &Place<'_>) -> Result<(), Failure> {
        let mut keys = Vec::new();
        let mut versions = Vec::new();
        let mut hashes = Vec::new();
        let mut artifacts_hashes = Vec::new();
        let mut marks: Vec<&[u8]> = Vec::new();
        let mut bodies: Vec<&[u8]> = Vec::new();
        let mut artifacts: Vec<&[u8]> = Vec::new();
        for (key, snapshot) in &self.snapshots {
            let artifacts_hash = hash_bytes(&snapshot.artifacts);
            keys.push(key.0);
            versions.push(snapshot.version.0.cast_signed());
            hashes.push(Sixteen(hash_body(*key, snapshot, artifacts_hash)));
            artifacts_hashes.push(Sixteen(artifacts_hash));
            marks.push(&snapshot.marks);
            bodies.push(&snapshot.body);
            artifacts.push(&snapshot.artifacts);
        }
        place
            .session
            .query_if(
                !keys.is_empty(),
                PUT_SNAPSHOTS,
                &[
                    &keys,
                    &versions,
                    &hashes,
                    &artifacts_hashes,
                    &marks,
                    &bodies,
                    &artifacts,
                ],
            )
            .await
            .map(drop)
    }
}

/// The rows of turns, in columns.
#[derive(Debug, Default)]
struct Turns {
    new: Columns,
    old: Columns,
}

#[derive(Debug, Default)]
struct Columns {
    seqs: Vec<i64>,
    tasks: Vec<i64>,
    numbers: Vec<i64>,
    contexts: Vec<i64>,
    agents: Vec<i64>,
    holders: Vec<Option<i64>>,
    dues: Vec<i64>,
    created_at: Vec<i64>,
    attempts: Vec<i32>,
    returned: Vec<i32>,
    states: Vec<i16>,
}

impl Turns {
    fn new(batch: &Batch) -> Self {
        let mut turns = Self::default();
        for (context, open) in &batch.contexts {
            for turn in open.iter().filter(|turn| turn.changed) {
                let columns = if turn.seq > 0 {
                    &mut turns.old
                } else {
                    &mut turns.new
                };
                columns.seqs.push(turn.seq);
                columns.tasks.push(turn.task.0);
                columns.numbers.push(turn.head.number.0.cast_signed());
                columns.contexts.push(*context);
                columns.agents.push(turn.agent);
                columns.holders.push(turn.holder);
                columns.dues.push(turn.due);
                columns.created_at.push(turn.created_at);
                columns.attempts.push(turn.head.attempt.0.cast_signed());
                columns.returned.push(turn.head.returned.cast_signed());
                columns.states.push(turn_state_number(turn.head.state));
            }
        }
        turns
    }

    async fn delete(&self, place: &Place<'_>, batch: &Batch) -> Result<(), Failure> {
        let ended = &batch.ended;
        place
            .session
            .query_if(!ended.is_empty(), DELETE_TURNS, &[ended])
            .await
            .map(drop)
    }

    async fn update(&self, place: &Place<'_>) -> Result<(), Failure> {
        let it = &self.old;
        place
            .session
            .query_if(
                !it.seqs.is_empty(),
                UPDATE_TURNS,
                &[&it.seqs, &it.states, &it.holders, &it.dues, &it.returned],
            )
            .await
            .map(drop)
    }

    async fn insert(&self, place: &Place<'_>) -> Result<(), Failure> {
        let it = &self.new;
        place
            .session
            .query_if(
                !it.tasks.is_empty(),
                INSERT_TURNS,
                &[
                    &it.tasks,
                    &it.numbers,
                    &it.contexts,
                    &it.agents,
                    &it.holders,
                    &it.dues,
                    &it.created_at,
                    &it.attempts,
                    &it.returned,
                    &it.states,
                ],
            )
            .await
            .map(drop)
    }
}

/// Keeps turns that ran out of tries. What was sealed in them is not kept.
async fn bury(place: &Place<'_>, batch: &Batch) -> Result<(), Failure> {
    let mut columns = Columns::default();
    let mut reasons: Vec<Option<&str>> = Vec::new();
    for dead in &batch.dead {
        columns.tasks.push(dead.turn.task.0);
        columns.numbers.push(dead.turn.head.number.0.cast_signed());
        columns.contexts.push(dead.context);
        columns.agents.push(dead.turn.agent);
        columns.created_at.push(dead.turn.created_at);
        columns
            .attempts
            .push(dead.turn.head.attempt.0.cast_signed());
        columns.returned.push(dead.turn.head.returned.cast_signed());
        reasons.push(dead.reason.as_deref());
    }
    place
        .session
        .query_if(
            !columns.tasks.is_empty(),
            INSERT_DEAD,
            &[
                &columns.tasks,
                &columns.numbers,
                &columns.contexts,
                &columns.agents,
                &columns.created_at,
                &batch.now_ms,
                &columns.attempts,
                &columns.returned,
                &reasons,
            ],
        )
        .await
        .map(drop)
}

async fn count_tasks(place: &Place<'_>, batch: &Batch) -> Result<(), Failure> {
    let counters = batch.counters();
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

/// The state of a turn in a column.
pub(super) const fn turn_state_number(state: TurnState) -> i16 {
    match state {
        TurnState::Waiting => 0,
        TurnState::Ready => 1,
        TurnState::Leased => 2,
    }
}
