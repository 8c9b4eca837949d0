//! Walking the database and saying what is wrong with it. All that is read is of one moment, so
//! instances may go on meanwhile.

use std::time::Duration;

use a2ad_core::keys::{PublicIds, TaskKey, uuid_text};
use a2ad_proto::TaskState;

use super::fail::Failure;
use super::journal::{run_of, snapshot_of};
use super::migrate::{COPYING, MIGRATIONS, meta, schemas};
use super::open::{self, OpenError};
use super::options::PostgresOptions;
use super::session::{Ground, Session, Sixteen};
use crate::hash::Hash;
use crate::request;
use crate::run::{self, Run};
use crate::walk::{TaskName, Told, VerifyReport, Walk};

/// Some statements go over a whole table.
const STATEMENT_MAX: Duration = Duration::from_secs(3_600);
/// How long the walk may think between two statements, times four.
const THINK_MAX: Duration = Duration::from_secs(240);
/// How many tasks are looked at together.
const TASKS_MAX: i64 = 500;
/// How many runs are read at a time.
const RUNS_MAX: i64 = 64;

/// One moment; and whole tables are best read as they lie.
const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
    SET LOCAL enable_seqscan = on;
    SET LOCAL enable_hashjoin = on;
    SET LOCAL enable_mergejoin = on";

const TASKS: &str = "
    SELECT t.key, t.id, t.version, t.state, t.chain, t.scope, t.context, c.minted
    FROM tasks t LEFT JOIN contexts c ON c.key = t.context
    WHERE t.key > $1 ORDER BY t.key LIMIT $2";

const RUNS: &str = "
    SELECT id, count, format, prev, hash, once, bytes FROM runs
    WHERE id >= $1 AND id <= $2 ORDER BY id LIMIT $3";

const SNAPSHOTS: &str = "
    SELECT task, version, hash, artifacts_hash, marks, body, artifacts FROM snapshots
    WHERE task BETWEEN $1 AND $2 ORDER BY task";

/// Requests that stand in journals and are not found by their keys as they stand there.
const REQUESTS: &str = "
    SELECT w.task, w.number
    FROM unnest($1::int8[], $2::uuid[], $3::uuid[], $4::int8[], $5::int8[])
        AS w (scope, key, body, task, number)
    LEFT JOIN requests r ON r.scope = w.scope AND r.key = w.key
    WHERE (r.task, r.number, r.body) IS DISTINCT FROM (w.task, w.number, w.body)";

/// Rows that belong to nothing: the key of the task, if it is there its id, and what is wrong.
const STRAYS: &str = "
    SELECT s.task, t.id, s.what FROM (
        SELECT DISTINCT id >> 22, 'entries of a task that is not there' FROM runs
            WHERE NOT EXISTS (SELECT 1 FROM tasks WHERE key = runs.id >> 22)
        UNION ALL SELECT task, 'a snapshot of a task that is not there' FROM snapshots
            WHERE NOT EXISTS (SELECT 1 FROM tasks WHERE key = task)
        UNION ALL SELECT task, 'a dead turn of a task that is not there' FROM dead_turns
            WHERE NOT EXISTS (SELECT 1 FROM tasks WHERE key = task)
        UNION ALL SELECT task, 'a request of a task that is not there' FROM requests
            WHERE NOT EXISTS (SELECT 1 FROM tasks WHERE tasks.key = task)
        UNION ALL SELECT t.key, 'its context is missing or another owner''s'
            FROM tasks t LEFT JOIN contexts c ON c.key = t.context
            WHERE c.key IS NULL OR c.scope <> t.scope
        UNION ALL SELECT t.key, 'its owner or agent is missing'
            FROM tasks t LEFT JOIN scopes s ON s.key = t.scope
                LEFT JOIN agents a ON a.key = s.agent WHERE a.key IS NULL
    ) AS s (task, what) LEFT JOIN tasks t ON t.key = s.task ORDER BY 1";

/// Turns with what has to hold of them.
const TURNS: &str = "
    SELECT u.task, t.id, u.number, u.state, u.attempt, u.holder IS NOT NULL, t.state,
        u.context = t.context, u.number <= t.version,
        u.seq = min(u.seq) OVER (PARTITION BY u.context)
    FROM turns u LEFT JOIN tasks t ON t.key = u.task ORDER BY u.seq";

/// Counters that do not say how many there are.
const COUNTERS: &str = "
    SELECT 'scope ' || coalesce(c.scope, t.scope) || ' has ' || coalesce(t.n, 0) || ' tasks in state '
        || coalesce(c.state, t.state) || ', its counters say ' || coalesce(c.n, 0)
    FROM (SELECT scope, state, sum(n)::int8 AS n FROM counters GROUP BY 1, 2) c
    FULL JOIN (SELECT scope, state, count(*) AS n FROM tasks GROUP BY 1, 2) t
        ON t.scope = c.scope AND t.state = c.state
    WHERE coalesce(c.n, 0) <> coalesce(t.n, 0)
    UNION ALL
    SELECT 'agent ' || coalesce(c.agent, t.agent) || ' has ' || coalesce(t.n, 0)
        || ' open turns, its counters say ' || coalesce(c.n, 0)
    FROM (SELECT agent, sum(n)::int8 AS n FROM open_turns GROUP BY 1) c
    FULL JOIN (SELECT agent, count(*) AS n FROM turns GROUP BY 1) t ON t.agent = c.agent
    WHERE coalesce(c.n, 0) <> coalesce(t.n, 0)";

const NEWEST: &str = "SELECT coalesce(max(key), 0) FROM tasks";

/// Reads the whole database and checks everything that must hold in it. Writes nothing; instances
/// may serve from it.
///
/// # Errors
/// If the database cannot be read at all. What is wrong inside is in the report.
pub async fn verify(options: PostgresOptions) -> Result<VerifyReport, OpenError> {
    let ground = Ground::new(PostgresOptions {
        statement_timeout: STATEMENT_MAX,
        lock_timeout: THINK_MAX,
        ..options
    })?;
    let verified = verify_on(&ground).await;
    ground.close().await;
    verified
}

async fn verify_on(ground: &Ground) -> Result<VerifyReport, OpenError> {
    let server = ground.target.server.as_str();
    let session = open::connect(ground).await?;
    let (found, oldest) = schemas(server, &session).await?;
    let known = MIGRATIONS.last().map_or(0, |step| step.schema);
    if found == 0 {
        let server = server.to_owned();
        return Err(OpenError::Empty { server });
    }
    if oldest > known {
        let server = server.to_owned();
        return Err(OpenError::Newer {
            server,
            found,
            known,
        });
    }
    let mut report = VerifyReport::default();
    match walk(&session, &mut report).await {
        Ok(()) => {}
        Err(failure) if failure.is_lost() => {
            return Err(OpenError::from_failure(server, &failure));
        }
        // Damage that stops the walk is the worst of findings, not a failure to look.
        Err(failure) => {
            report.report_all(format!("the rest could not be read: {}", failure.reason()));
        }
    }
    Ok(report)
}

async fn walk(session: &Session, report: &mut VerifyReport) -> Result<(), Failure> {
    session.run(BEGIN).await?;
    if meta(session, COPYING).await?.is_some() {
        report.report_all("it is half a copy: run `a2ad db copy` again");
    }
    tasks(session, report).await?;
    for row in session.query(STRAYS, &[]).await? {
        let name = name(row.try_get(0)?, row.try_get(1)?);
        let what: String = row.try_get(2)?;
        report.report_of(&name, None, what);
    }
    turns(session, report).await?;
    for row in session.query(COUNTERS, &[]).await? {
        let what: String = row.try_get(0)?;
        report.report_all(what);
    }
    keys(session, report).await
}

fn name(key: i64, id: Option<Sixteen>) -> TaskName {
    TaskName::new(key, id.map(text))
}

fn text(id: Sixteen) -> String {
    uuid_text(u128::from_be_bytes(id.0))
}

/// A task's row.
struct Head {
    name: TaskName,
    key: i64,
    scope: i64,
    version: u64,
    state: u8,
    chain: Hash,
}

impl Head {
    fn told(&self) -> Told<'_> {
        Told {
            name: &self.name,
            version: self.version,
            state: self.state,
            chain: Some(self.chain),
        }
    }
}

/// Every task with its journal, its requests and its snapshot.
async fn tasks(session: &Session, report: &mut VerifyReport) -> Result<(), Failure> {
    let secret = meta(session, "secret").await?;
    let secret: Option<Vec<u8>> = secret.and_then(|row| row.try_get(1).ok().flatten());
    let ids = secret
        .and_then(|secret| secret.try_into().ok())
        .map(PublicIds::new);
    if ids.is_none() {
        report.report_all("the secret of its ids is missing");
    }
    let mut after = i64::MIN;
    loop {
        let mut heads = Vec::new();
        for row in session.query(TASKS, &[&after, &TASKS_MAX]).await? {
            let key = row.try_get(0)?;
            let head = Head {
                name: name(key, Some(row.try_get(1)?)),
                key,
                scope: row.try_get(5)?,
                version: row.try_get::<_, i64>(2)?.unsigned_abs(),
                state: u8::try_from(row.try_get::<_, i16>(3)?).unwrap_or(u8::MAX),
                chain: row.try_get::<_, Sixteen>(4)?.0,
            };
            let context: i64 = row.try_get(6)?;
            let minted: Option<Sixteen> = row.try_get(7)?;
            if let Some(ids) = &ids {
                if ids.key_of(&head.name.0) != Some(key) {
                    report.report_of(&head.name, None, "its id does not lead to it");
                }
                if minted.is_some_and(|id| ids.key_of(&text(id)) != Some(context)) {
                    let what = "its context's id does not lead there";
                    report.report_of(&head.name, None, what);
                }
            }
            heads.push(head);
        }
        let (Some(first), Some(last)) = (heads.first(), heads.last()) else {
            return Ok(());
        };
        after = last.key;
        report.tasks += heads.len() as u64;
        journals(session, &heads, report).await?;
        for row in session.query(SNAPSHOTS, &[&first.key, &last.key]).await? {
            let key: i64 = row.try_get(0)?;
            if let Ok(at) = heads.binary_search_by_key(&key, |head| head.key) {
                let sound = snapshot_of(TaskKey(key), &row, 1, true)?;
                let version = sound.map(|snapshot| snapshot.version);
                report.snapshot(&heads[at].name, heads[at].version, version);
            }
        }
    }
}

/// The journals of tasks that follow each other.
async fn journals(
    session: &Session,
    heads: &[Head],
    report: &mut VerifyReport,
) -> Result<(), Failure> {
    let (Some(first), Some(last)) = (heads.first(), heads.last()) else {
        return Ok(());
    };
    let (mut from, _) = run::task_runs(first.key);
    let (_, to) = run::task_runs(last.key);
    let mut walks: Vec<Walk> = heads.iter().map(|_| Walk::new()).collect();
    let mut requests = Requests::default();
    loop {
        let rows = session.query(RUNS, &[&from, &to, &RUNS_MAX]).await?;
        let Some(row) = rows.last() else { break };
        from = row.try_get::<_, i64>(0)? + 1;
        for row in &rows {
            let (task, first) = run::unpack_run_id(row.try_get(0)?);
            let Ok(at) = heads.binary_search_by_key(&task, |head| head.key) else {
                // Told as a stray.
                continue;
            };
            let told = heads[at].told();
            match run_of(TaskKey(task), row) {
                Ok(run) => {
                    walks[at].pass(&told, &run, report);
                    requests.add(&heads[at], &run);
                }
                Err(Failure::Damaged(what)) => {
                    let count = row.try_get::<_, i64>(1)?.unsigned_abs();
                    walks[at].stumble(&told, first, count, what, report);
                }
                Err(failure) => return Err(failure),
            }
        }
    }
    for (head, walk) in heads.iter().zip(walks) {
        walk.end(&head.told(), report);
    }
    requests.check(session, heads, report).await
}

/// The requests that stand in journals.
#[derive(Default)]
struct Requests {
    scopes: Vec<i64>,
    keys: Vec<Sixteen>,
    bodies: Vec<Sixteen>,
    tasks: Vec<i64>,
    numbers: Vec<i64>,
}

impl Requests {
    fn add(&mut self, head: &Head, run: &Run) {
        for once in request::unpack(&run.once) {
            self.scopes.push(head.scope);
            self.keys.push(Sixteen(once.key));
            self.bodies.push(Sixteen(once.body));
            self.tasks.push(head.key);
            self.numbers.push(once.number.0.cast_signed());
        }
    }

    async fn check(
        &self,
        session: &Session,
        heads: &[Head],
        report: &mut VerifyReport,
    ) -> Result<(), Failure> {
        let Self {
            scopes,
            keys,
            bodies,
            tasks,
            numbers,
        } = self;
        for row in session
            .query(REQUESTS, &[scopes, keys, bodies, tasks, numbers])
            .await?
        {
            let task: i64 = row.try_get(0)?;
            let number = row.try_get::<_, i64>(1)?.unsigned_abs();
            if let Ok(at) = heads.binary_search_by_key(&task, |head| head.key) {
                let what = "its request would not be recognised if it came again";
                report.report_of(&heads[at].name, Some(number), what);
            }
        }
        Ok(())
    }
}

/// Turns belong to living tasks; in each context the oldest may be worked on and the others wait.
async fn turns(session: &Session, report: &mut VerifyReport) -> Result<(), Failure> {
    for row in session.query(TURNS, &[]).await? {
        report.turns += 1;
        let name = name(row.try_get(0)?, row.try_get(1)?);
        let number = row.try_get::<_, i64>(2)?.unsigned_abs();
        let mut complain = |what: &str| report.report_of(&name, Some(number), what);
        let (state, attempt): (i16, i32) = (row.try_get(3)?, row.try_get(4)?);
        let held: bool = row.try_get(5)?;
        let Some(task_state) = row.try_get::<_, Option<i16>>(6)? else {
            complain("a turn of a task that is not there");
            continue;
        };
        let task_state = TaskState::from_number(i32::from(task_state));
        if task_state.is_some_and(TaskState::is_terminal) {
            complain("an open turn of a task that has ended");
        }
        if !row.try_get::<_, bool>(7)? {
            complain("its turn is in another context than the task");
        }
        if !row.try_get::<_, bool>(8)? {
            complain("its turn is of an entry that is not there");
        }
        match (row.try_get::<_, bool>(9)?, state) {
            (true, 0) => complain("its turn waits although nothing is before it"),
            (false, 1 | 2) => complain("its turn has overtaken another"),
            (_, 0..=2) => {}
            _ => complain("its turn is in an unknown state"),
        }
        if (state == 2) != held || (state == 2 && attempt == 0) {
            complain("its turn's lease has no holder, or the holder no lease");
        }
    }
    Ok(())
}

/// The next key is above all that were given.
async fn keys(session: &Session, report: &mut VerifyReport) -> Result<(), Failure> {
    let rows = session.query(NEWEST, &[]).await?;
    let newest: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
    let next = meta(session, "next_key").await?;
    let next: Option<i64> = next.and_then(|row| row.try_get(0).ok().flatten());
    match next {
        Some(next) if next > newest => {}
        Some(next) => report.report_all(format!("the next key is {next}, but {newest} is used")),
        None => report.report_all("the next key is missing"),
    }
    Ok(())
}
