//! Filling a database with what another one held, and reading it back.

use a2ad_core::keys::{Scope, TaskKey};

use super::fail::Failure;
use super::journal::run_of;
use super::migrate::{COPYING, meta, set_meta};
use super::names::Names;
use super::open::{self, OpenError};
use super::options::PostgresOptions;
use super::session::{Ground, Session, Sixteen};
use crate::copy::CopyError;
use crate::copy::rows::{Batch, Key, LEASED, Rest, TaskRow};
use crate::request;
use crate::run::{self, NO_HASH};

/// How many rows of turns go into a statement.
const ROWS_MAX: usize = 4096;

/// How many bytes of runs are read back at a time.
const BYTES_MAX: i64 = 4 << 20;
const RUNS_MAX: i64 = 1024;

/// Nobody is this holder: real ones are counted from one. A turn that is leased to it is lost, and rescued.
const NOBODY: i64 = 0;

/// Whoever copies holds this lock, next to the one for migrations.
const LOCK: &str = "SELECT pg_try_advisory_lock(x'61326164'::int8 + 1)";

const COUNT_TASKS: &str = "SELECT count(*) FROM tasks";

const COUNT_ALIVE: &str = "
    SELECT count(*) FROM holders WHERE instance
        AND lease_until > (extract(epoch FROM statement_timestamp()) * 1000)::int8";

/// What may be left of tasks that were there once, or never came to be.
const CLEAR: &str = "
    DELETE FROM contexts; DELETE FROM runs; DELETE FROM snapshots; DELETE FROM requests;
    DELETE FROM turns; DELETE FROM dead_turns; DELETE FROM push_configs; DELETE FROM counters;
    DELETE FROM open_turns; DELETE FROM holders; DELETE FROM lanes";

const PUT_CONTEXTS: &str = "
    INSERT INTO contexts (key, scope, minted, name)
    SELECT * FROM unnest($1::int8[], $2::int8[], $3::uuid[], $4::text[])
    ON CONFLICT (key) DO NOTHING";

const PUT_TASKS: &str = "
    INSERT INTO tasks (key, scope, context, version, status_at, bytes, state, cancel, id, chain,
        artifacts)
    SELECT * FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[], $5::int8[], $6::int8[],
        $7::int2[], $8::bool[], $9::uuid[], $10::uuid[], $11::bytea[])
    ON CONFLICT (key) DO NOTHING";

const PUT_RUNS: &str = "
    INSERT INTO runs (id, count, format, prev, hash, once, bytes)
    SELECT * FROM unnest($1::int8[], $2::int8[], $3::int2[], $4::uuid[], $5::uuid[], $6::bytea[],
        $7::bytea[])
    ON CONFLICT (id) DO NOTHING";

const PUT_REQUESTS: &str = "
    INSERT INTO requests (scope, task, number, key, body)
    SELECT * FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::uuid[], $5::uuid[])
    ON CONFLICT (scope, key) DO NOTHING";

const PUT_SNAPSHOTS: &str = "
    INSERT INTO snapshots (task, version, hash, artifacts_hash, marks, body, artifacts)
    SELECT * FROM unnest($1::int8[], $2::int8[], $3::uuid[], $4::uuid[], $5::bytea[], $6::bytea[],
        $7::bytea[])
    ON CONFLICT (task) DO NOTHING";

const NOTE: &str = "UPDATE meta SET number = $1 WHERE key = 'copying' RETURNING key";

/// When it is due is told by the clock of the database from now on.
const PUT_TURNS: &str = "
    INSERT INTO turns (seq, task, number, context, agent, holder, due, created_at, attempt,
        returned, state, sealed)
    SELECT seq, task, number, context, agent, holder,
        due - $12::int8 + (extract(epoch FROM clock_timestamp()) * 1000)::int8, created_at,
        attempt, returned, state, sealed
    FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[], $5::int8[], $6::int8[],
        $7::int8[], $8::int8[], $9::int4[], $10::int4[], $11::int2[], $13::bytea[])
        AS w (seq, task, number, context, agent, holder, due, created_at, attempt, returned,
            state, sealed)";

const PUT_DEAD: &str = "
    INSERT INTO dead_turns (task, number, context, agent, created_at, died_at, attempt, returned,
        reason)
    SELECT * FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[], $5::int8[], $6::int8[],
        $7::int4[], $8::int4[], $9::text[])";

const PUT_PUSH: &str = "
    INSERT INTO push_configs (task, cursor, due, events, attempt, state, id, url, sealed)
    SELECT * FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[], $5::int4[], $6::int2[],
        $7::text[], $8::text[], $9::bytea[])";

/// Counters say how many there are; turns to come are numbered after those that are there.
const COUNT_AGAIN: &str = "
    DELETE FROM counters;
    INSERT INTO counters (scope, state, shard, n)
        SELECT scope, state, 0, count(*) FROM tasks GROUP BY scope, state;
    DELETE FROM open_turns;
    INSERT INTO open_turns (agent, shard, n) SELECT agent, 0, count(*) FROM turns GROUP BY agent;
    SELECT setval(pg_get_serial_sequence('a2ad.turns', 'seq'),
        (SELECT coalesce(max(seq), 0) + 1 FROM turns), false)";

const HEADS: &str = "
    SELECT key, scope, context, version, status_at, bytes, state, cancel, id, chain, artifacts
    FROM tasks WHERE key > $1 ORDER BY key LIMIT $2";

const RUNS: &str = "
    SELECT id, count, format, prev, hash, once, bytes FROM (
        SELECT *, sum(octet_length(bytes)) OVER (ORDER BY id) - octet_length(bytes) AS before
        FROM (SELECT * FROM runs WHERE id >= $1 AND id < $2 ORDER BY id LIMIT $3) AS page
    ) AS sized WHERE before < $4 ORDER BY id";

const COUNTS: &str = "
    SELECT (SELECT count(*) FROM snapshots), (SELECT count(*) FROM requests),
        (SELECT count(*) FROM turns), (SELECT count(*) FROM dead_turns),
        (SELECT count(*) FROM tasks t WHERE NOT EXISTS
            (SELECT 1 FROM contexts c WHERE c.key = t.context AND c.scope = t.scope))";

/// A database that is being filled.
#[derive(Debug)]
pub(crate) struct Target {
    ground: Ground,
    session: Session,
    names: Names,
}

/// Whether a copy can go on.
pub(crate) enum Begun {
    /// After the task with this key.
    From(i64),
    /// Not at all.
    Refused(CopyError),
}

/// What a walk over journals met.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Walked {
    pub(crate) runs: u64,
    pub(crate) bytes: u64,
    pub(crate) requests: u64,
}

/// How many rows there are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) snapshots: u64,
    pub(crate) requests: u64,
    pub(crate) turns: u64,
    pub(crate) dead_turns: u64,
    /// Tasks without a conversation.
    pub(crate) strays: u64,
}

impl Target {
    /// Connects, and makes the tables if there are none.
    pub(crate) async fn open(options: PostgresOptions) -> Result<Self, OpenError> {
        let ground = Ground::new(options)?;
        let opened = async {
            open::prepare_for_copy(&ground).await?;
            open::connect(&ground).await
        };
        match opened.await {
            Ok(session) => Ok(Self {
                ground,
                session,
                names: Names::default(),
            }),
            Err(error) => {
                ground.close().await;
                Err(error)
            }
        }
    }

    pub(crate) async fn close(&self) {
        self.ground.close().await;
    }

    /// Host, port and database.
    pub(crate) fn server(&self) -> &str {
        &self.ground.target.server
    }

    fn told<T>(&self, result: Result<T, Failure>) -> Result<T, OpenError> {
        result.map_err(|failure| match failure {
            Failure::Damaged(detail) => OpenError::Corrupt {
                server: self.server().to_owned(),
                detail,
            },
            failure => OpenError::from_failure(self.server(), &failure),
        })
    }

    async fn number(&self, sql: &'static str) -> Result<u64, Failure> {
        let rows = self.session.query(sql, &[]).await?;
        let row = rows.first();
        let row = row.ok_or_else(|| Failure::Damaged("a count has no row".to_owned()))?;
        Ok(row.try_get::<_, i64>(0)?.unsigned_abs())
    }

    /// Takes the database for a copy of the one with this secret, or goes on with that.
    pub(crate) async fn begin(&self, secret: [u8; 16], next_key: i64) -> Result<Begun, OpenError> {
        self.told(self.try_begin(secret, next_key).await)
    }

    async fn try_begin(&self, secret: [u8; 16], next_key: i64) -> Result<Begun, Failure> {
        let session = &self.session;
        let server = || self.server().to_owned();
        if !self.lock().await? {
            return Ok(Begun::Refused(CopyError::UnderWay { server: server() }));
        }
        let noted = match meta(session, COPYING).await? {
            Some(row) => {
                let number: Option<i64> = row.try_get(0)?;
                let of: Option<Vec<u8>> = row.try_get(1)?;
                if of.as_deref() != Some(&secret[..]) {
                    return Ok(Begun::Refused(CopyError::OtherFile { server: server() }));
                }
                number
            }
            None => {
                let count = self.number(COUNT_TASKS).await?;
                if count > 0 {
                    let server = server();
                    return Ok(Begun::Refused(CopyError::HasTasks { server, count }));
                }
                set_meta(session, COPYING, None, Some(&secret)).await?;
                None
            }
        };
        // Whoever comes after this sees the note; who came before is seen here.
        let count = self.number(COUNT_ALIVE).await?;
        if count > 0 {
            if noted.is_none() {
                session
                    .run("DELETE FROM meta WHERE key = 'copying'")
                    .await?;
            }
            let server = server();
            return Ok(Begun::Refused(CopyError::InUse { server, count }));
        }
        // No commit but the last needs to be on the disk: they are there in their order, or not at all.
        session.run("SET synchronous_commit = off").await?;
        if let Some(after) = noted {
            return Ok(Begun::From(after));
        }
        // Somebody may have served for a moment between our two looks.
        let count = self.number(COUNT_TASKS).await?;
        if count > 0 {
            session
                .run("DELETE FROM meta WHERE key = 'copying'")
                .await?;
            let server = server();
            return Ok(Begun::Refused(CopyError::HasTasks { server, count }));
        }
        session.run("BEGIN").await?;
        session.run(CLEAR).await?;
        set_meta(session, "secret", None, Some(&secret)).await?;
        set_meta(session, "next_key", Some(next_key), None).await?;
        set_meta(session, COPYING, Some(i64::MIN), Some(&secret)).await?;
        session.run("COMMIT").await?;
        Ok(Begun::From(i64::MIN))
    }

    /// Waits a little, since one that was just killed may still be there for the server.
    async fn lock(&self) -> Result<bool, Failure> {
        let until = tokio::time::Instant::now() + self.ground.options.patience;
        loop {
            let rows = self.session.query(LOCK, &[]).await?;
            let taken = rows.first().and_then(|row| row.try_get(0).ok());
            if taken == Some(true) {
                return Ok(true);
            }
            if tokio::time::Instant::now() >= until {
                return Ok(false);
            }
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
    }

    /// The numbers of a scope, which get a row if they have none.
    pub(crate) async fn name(&self, scope: &Scope) -> Result<Key, OpenError> {
        let found = self.names.find_or_create(&self.session, scope).await;
        let key = self.told(found)?;
        Ok(Key {
            scope: key.scope,
            agent: key.agent,
        })
    }

    /// Writes a batch, and how far it goes.
    pub(crate) async fn put(&self, batch: &Batch) -> Result<(), OpenError> {
        self.told(self.try_put(batch).await)
    }

    async fn try_put(&self, batch: &Batch) -> Result<(), Failure> {
        let session = &self.session;
        session.run("BEGIN").await?;
        self.put_contexts(batch).await?;
        self.put_tasks(batch).await?;
        self.put_runs(batch).await?;
        self.put_requests(batch).await?;
        self.put_snapshots(batch).await?;
        if session.query(NOTE, &[&batch.through]).await?.is_empty() {
            return Err(Failure::Damaged("somebody has ended the copy".to_owned()));
        }
        session.run("COMMIT").await
    }

    async fn put_contexts(&self, batch: &Batch) -> Result<(), Failure> {
        let all = &batch.contexts;
        let keys: Vec<i64> = all.iter().map(|it| it.key).collect();
        let scopes: Vec<i64> = all.iter().map(|it| it.scope).collect();
        let minted: Vec<Option<Sixteen>> = all.iter().map(|it| it.minted.map(Sixteen)).collect();
        let names: Vec<Option<&str>> = all.iter().map(|it| it.name.as_deref()).collect();
        let parameters: [super::session::Parameter<'_>; 4] = [&keys, &scopes, &minted, &names];
        let put = self.session.query(PUT_CONTEXTS, &parameters);
        put.await.map(drop)
    }

    async fn put_tasks(&self, batch: &Batch) -> Result<(), Failure> {
        let all = &batch.tasks;
        let keys: Vec<i64> = all.iter().map(|it| it.key).collect();
        let scopes: Vec<i64> = all.iter().map(|it| it.scope).collect();
        let contexts: Vec<i64> = all.iter().map(|it| it.context).collect();
        let versions: Vec<i64> = all.iter().map(|it| it.version).collect();
        let status_at: Vec<i64> = all.iter().map(|it| it.status_at).collect();
        let bytes: Vec<i64> = all.iter().map(|it| it.bytes).collect();
        let states: Vec<i16> = all.iter().map(|it| it.state).collect();
        let cancels: Vec<bool> = all.iter().map(|it| it.cancel).collect();
        let ids: Vec<Sixteen> = all.iter().map(|it| Sixteen(it.id)).collect();
        let chains: Vec<Sixteen> = all.iter().map(|it| Sixteen(it.chain)).collect();
        let artifacts: Vec<&[u8]> = all.iter().map(|it| &it.artifacts[..]).collect();
        let parameters: [super::session::Parameter<'_>; 11] = [
            &keys, &scopes, &contexts, &versions, &status_at, &bytes, &states, &cancels, &ids,
            &chains, &artifacts,
        ];
        let put = self.session.query(PUT_TASKS, &parameters);
        put.await.map(drop)
    }

    async fn put_runs(&self, batch: &Batch) -> Result<(), Failure> {
        let all = &batch.runs;
        let ids: Vec<i64> = all.iter().map(|it| it.id).collect();
        let counts: Vec<i64> = all.iter().map(|it| it.count).collect();
        let formats: Vec<i16> = all.iter().map(|it| i16::from(it.format)).collect();
        let prevs: Vec<Sixteen> = all.iter().map(|it| Sixteen(it.prev)).collect();
        let hashes: Vec<Sixteen> = all.iter().map(|it| Sixteen(it.hash)).collect();
        let once = all
            .iter()
            .map(|it| Some(&it.once[..]).filter(|it| !it.is_empty()));
        let once: Vec<Option<&[u8]>> = once.collect();
        let bytes: Vec<&[u8]> = all.iter().map(|it| &it.bytes[..]).collect();
        let parameters: [super::session::Parameter<'_>; 7] =
            [&ids, &counts, &formats, &prevs, &hashes, &once, &bytes];
        let put = self.session.query(PUT_RUNS, &parameters);
        put.await.map(drop)
    }

    async fn put_requests(&self, batch: &Batch) -> Result<(), Failure> {
        let all = &batch.requests;
        let scopes: Vec<i64> = all.iter().map(|it| it.scope).collect();
        let tasks: Vec<i64> = all.iter().map(|it| it.task).collect();
        let numbers: Vec<i64> = all.iter().map(|it| it.number).collect();
        let keys: Vec<Sixteen> = all.iter().map(|it| Sixteen(it.key)).collect();
        let bodies: Vec<Sixteen> = all.iter().map(|it| Sixteen(it.body)).collect();
        let parameters: [super::session::Parameter<'_>; 5] =
            [&scopes, &tasks, &numbers, &keys, &bodies];
        let put = self.session.query(PUT_REQUESTS, &parameters);
        put.await.map(drop)
    }

    async fn put_snapshots(&self, batch: &Batch) -> Result<(), Failure> {
        let all = &batch.snapshots;
        let tasks: Vec<i64> = all.iter().map(|it| it.task).collect();
        let versions: Vec<i64> = all.iter().map(|it| it.version).collect();
        let hashes: Vec<Sixteen> = all.iter().map(|it| Sixteen(it.hash)).collect();
        let artifacts_hashes: Vec<Sixteen> =
            all.iter().map(|it| Sixteen(it.artifacts_hash)).collect();
        let marks: Vec<&[u8]> = all.iter().map(|it| &it.marks[..]).collect();
        let bodies: Vec<&[u8]> = all.iter().map(|it| &it.body[..]).collect();
        let artifacts: Vec<&[u8]> = all.iter().map(|it| &it.artifacts[..]).collect();
        let parameters: [super::session::Parameter<'_>; 7] = [
            &tasks,
            &versions,
            &hashes,
            &artifacts_hashes,
            &marks,
            &bodies,
            &artifacts,
        ];
        let put = self.session.query(PUT_SNAPSHOTS, &parameters);
        put.await.map(drop)
    }

    /// Writes what belongs to no task's story, in place of what an earlier run may have written.
    pub(crate) async fn put_rest(&self, rest: &Rest) -> Result<(), OpenError> {
        self.told(self.try_put_rest(rest).await)
    }

    async fn try_put_rest(&self, rest: &Rest) -> Result<(), Failure> {
        let session = &self.session;
        session.run("BEGIN").await?;
        let clear = "DELETE FROM turns; DELETE FROM dead_turns; DELETE FROM push_configs";
        session.run(clear).await?;
        for all in rest.turns.chunks(ROWS_MAX) {
            let seqs: Vec<i64> = all.iter().map(|it| it.seq).collect();
            let tasks: Vec<i64> = all.iter().map(|it| it.task).collect();
            let numbers: Vec<i64> = all.iter().map(|it| it.number).collect();
            let contexts: Vec<i64> = all.iter().map(|it| it.context).collect();
            let agents: Vec<i64> = all.iter().map(|it| it.agent).collect();
            let leased = |state| (state == LEASED).then_some(NOBODY);
            let holders: Vec<Option<i64>> = all.iter().map(|it| leased(it.state)).collect();
            let dues: Vec<i64> = all.iter().map(|it| it.due).collect();
            let created_at: Vec<i64> = all.iter().map(|it| it.created_at).collect();
            let attempts: Vec<i32> = all.iter().map(|it| it.attempt).collect();
            let returned: Vec<i32> = all.iter().map(|it| it.returned).collect();
            let states: Vec<i16> = all.iter().map(|it| it.state).collect();
            let sealed: Vec<Option<&[u8]>> = all.iter().map(|it| it.sealed.as_deref()).collect();
            let parameters: [super::session::Parameter<'_>; 13] = [
                &seqs,
                &tasks,
                &numbers,
                &contexts,
                &agents,
                &holders,
                &dues,
                &created_at,
                &attempts,
                &returned,
                &states,
                &rest.now,
                &sealed,
            ];
            session.query(PUT_TURNS, &parameters).await?;
        }
        for all in rest.dead.chunks(ROWS_MAX) {
            let tasks: Vec<i64> = all.iter().map(|it| it.task).collect();
            let numbers: Vec<i64> = all.iter().map(|it| it.number).collect();
            let contexts: Vec<i64> = all.iter().map(|it| it.context).collect();
            let agents: Vec<i64> = all.iter().map(|it| it.agent).collect();
            let created_at: Vec<i64> = all.iter().map(|it| it.created_at).collect();
            let died_at: Vec<i64> = all.iter().map(|it| it.died_at).collect();
            let attempts: Vec<i32> = all.iter().map(|it| it.attempt).collect();
            let returned: Vec<i32> = all.iter().map(|it| it.returned).collect();
            let reasons: Vec<Option<&str>> = all.iter().map(|it| it.reason.as_deref()).collect();
            let parameters: [super::session::Parameter<'_>; 9] = [
                &tasks,
                &numbers,
                &contexts,
                &agents,
                &created_at,
                &died_at,
                &attempts,
                &returned,
                &reasons,
            ];
            session.query(PUT_DEAD, &parameters).await?;
        }
        for all in rest.push.chunks(ROWS_MAX) {
            let tasks: Vec<i64> = all.iter().map(|it| it.task).collect();
            let cursors: Vec<i64> = all.iter().map(|it| it.cursor).collect();
            let dues: Vec<i64> = all.iter().map(|it| it.due).collect();
            let events: Vec<i64> = all.iter().map(|it| it.events).collect();
            let attempts: Vec<i32> = all.iter().map(|it| it.attempt).collect();
            let states: Vec<i16> = all.iter().map(|it| it.state).collect();
            let ids: Vec<&str> = all.iter().map(|it| it.id.as_str()).collect();
            let urls: Vec<&str> = all.iter().map(|it| it.url.as_str()).collect();
            let sealed: Vec<Option<&[u8]>> = all.iter().map(|it| it.sealed.as_deref()).collect();
            let parameters: [super::session::Parameter<'_>; 9] = [
                &tasks, &cursors, &dues, &events, &attempts, &states, &ids, &urls, &sealed,
            ];
            session.query(PUT_PUSH, &parameters).await?;
        }
        session.run(COUNT_AGAIN).await?;
        session.run("COMMIT").await
    }

    /// Some heads after this key.
    pub(crate) async fn heads(&self, after: i64) -> Result<Vec<TaskRow>, OpenError> {
        self.told(self.try_heads(after).await)
    }

    async fn try_heads(&self, after: i64) -> Result<Vec<TaskRow>, Failure> {
        let limit = crate::copy::HEADS_MAX;
        let rows = self.session.query(HEADS, &[&after, &limit]).await?;
        let head = |row: &tokio_postgres::Row| -> Result<TaskRow, Failure> {
            Ok(TaskRow {
                key: row.try_get(0)?,
                scope: row.try_get(1)?,
                context: row.try_get(2)?,
                version: row.try_get(3)?,
                status_at: row.try_get(4)?,
                bytes: row.try_get(5)?,
                state: row.try_get(6)?,
                cancel: row.try_get(7)?,
                id: row.try_get::<_, Sixteen>(8)?.0,
                chain: row.try_get::<_, Sixteen>(9)?.0,
                artifacts: row.try_get(10)?,
            })
        };
        rows.iter().map(head).collect()
    }

    /// Reads the journals of these tasks, which follow each other, and checks every hash. The inner error says what is
    /// wrong with them.
    pub(crate) async fn walk(
        &self,
        heads: &[TaskRow],
    ) -> Result<Result<Walked, String>, OpenError> {
        self.told(self.try_walk(heads).await)
    }

    async fn try_walk(&self, heads: &[TaskRow]) -> Result<Result<Walked, String>, Failure> {
        let mut walked = Walked::default();
        let (Some(first), Some(last)) = (heads.first(), heads.last()) else {
            return Ok(Ok(walked));
        };
        let mut from = run::run_id(first.key, 0);
        let end = run::run_id(last.key + 1, 0);
        let mut heads = heads.iter();
        let mut at = heads.next();
        let (mut entry, mut chain) = (0, NO_HASH);
        let whole = |head: &TaskRow, entry: u64, chain| {
            entry.cast_signed() == head.version && chain == head.chain
        };
        loop {
            let rows = self
                .session
                .query(RUNS, &[&from, &end, &RUNS_MAX, &BYTES_MAX])
                .await?;
            for row in &rows {
                let id: i64 = row.try_get(0)?;
                let (task, _) = run::unpack_run_id(id);
                while let Some(head) = at.filter(|head| head.key != task) {
                    if !whole(head, entry, chain) {
                        return Ok(Err(format!(
                            "the journal of the task with key {}",
                            head.key
                        )));
                    }
                    at = heads.next();
                    (entry, chain) = (0, NO_HASH);
                }
                let run = match run_of(TaskKey(task), row) {
                    Ok(run) => run,
                    Err(Failure::Damaged(what)) => return Ok(Err(what)),
                    Err(failure) => return Err(failure),
                };
                if at.is_none() || run.first != entry + 1 || run.prev != chain {
                    return Ok(Err(format!("the journal of the task with key {task}")));
                }
                (entry, chain) = (run.last(), run.hash);
                walked.runs += 1;
                walked.bytes += row.try_get::<_, &[u8]>(6)?.len() as u64;
                walked.requests += request::unpack(&run.once).count() as u64;
                from = id + 1;
            }
            if rows.is_empty() {
                break;
            }
        }
        while let Some(head) = at {
            if !whole(head, entry, chain) {
                return Ok(Err(format!(
                    "the journal of the task with key {}",
                    head.key
                )));
            }
            at = heads.next();
            (entry, chain) = (0, NO_HASH);
        }
        Ok(Ok(walked))
    }

    /// Counts rows.
    pub(crate) async fn counts(&self) -> Result<Counts, OpenError> {
        self.told(self.try_counts().await)
    }

    async fn try_counts(&self) -> Result<Counts, Failure> {
        let rows = self.session.query(COUNTS, &[]).await?;
        let row = rows.first();
        let row = row.ok_or_else(|| Failure::Damaged("counts have no row".to_owned()))?;
        let count = |at| row.try_get::<_, i64>(at).map(i64::unsigned_abs);
        Ok(Counts {
            snapshots: count(0)?,
            requests: count(1)?,
            turns: count(2)?,
            dead_turns: count(3)?,
            strays: count(4)?,
        })
    }

    /// Lets others use the database.
    pub(crate) async fn finish(&self) -> Result<(), OpenError> {
        self.told(self.try_finish().await)
    }

    async fn try_finish(&self) -> Result<(), Failure> {
        let session = &self.session;
        // Plans are made once, so what they are made from has to be right when the first instance comes.
        session
            .run("ANALYZE tasks, runs, turns, contexts, requests, snapshots")
            .await?;
        session.run("SET synchronous_commit = on").await?;
        session.run("DELETE FROM meta WHERE key = 'copying'").await
    }
}
