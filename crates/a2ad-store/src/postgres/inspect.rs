//! Looking at a database without serving from it.

use std::time::{Duration, Instant};

use a2ad_proto::Timestamp;

use super::fail::Failure;
use super::migrate::{COPYING, MIGRATIONS, meta, schemas};
use super::open::{self, OpenError};
use super::options::PostgresOptions;
use super::session::{Ground, Session};
use crate::status::{InstanceStatus, Migrated, Status};

/// So often is each thing done whose time is taken; the one in the middle counts.
const TIMES: usize = 5;

const COUNT_TASKS: &str = "
    SELECT state::int8, sum(n)::int8 FROM counters GROUP BY state ORDER BY state";

const COUNT_TURNS: &str = "
    SELECT count(*) FILTER (WHERE state = 0), count(*) FILTER (WHERE state = 1),
        count(*) FILTER (WHERE state = 2), (SELECT count(*) FROM dead_turns)
    FROM turns";

const SIZE: &str = "
    SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::int8 FROM pg_class
    WHERE relnamespace = to_regnamespace('a2ad') AND relkind = 'r'";

const INSTANCES: &str = "
    SELECT name, opened_at, beat_at, clock.now - beat_at, lease_until > clock.now
    FROM holders, (SELECT (extract(epoch FROM statement_timestamp()) * 1000)::int8 AS now) AS clock
    WHERE instance ORDER BY id";

/// What the database holds and who shares it. Changes nothing.
///
/// # Errors
/// If the database cannot be reached or is none that we could use.
pub async fn status(options: PostgresOptions) -> Result<Status, OpenError> {
    let ground = Ground::new(options)?;
    let status = async {
        let session = open::connect(&ground).await?;
        look(&ground, &session).await
    };
    let status = status.await;
    ground.close().await;
    status
}

async fn look(ground: &Ground, session: &Session) -> Result<Status, OpenError> {
    let server = ground.target.server.as_str();
    let mut status = Status {
        server: format!("PostgreSQL {}", session.version),
        known: MIGRATIONS.last().map_or(0, |step| step.schema),
        ..Status::default()
    };
    (status.schema, status.oldest_compatible) = schemas(server, session).await?;
    if status.schema > 0 && status.oldest_compatible <= status.known {
        let counted = count(session, &mut status).await;
        counted.map_err(|failure| OpenError::from_failure(server, &failure))?;
    }
    Ok(status)
}

async fn count(session: &Session, status: &mut Status) -> Result<(), Failure> {
    status.half_copied = meta(session, COPYING).await?.is_some();
    for row in session.query(COUNT_TASKS, &[]).await? {
        status.add_tasks(row.try_get(0)?, row.try_get(1)?);
    }
    if let Some(row) = session.query(COUNT_TURNS, &[]).await?.first() {
        for (at, count) in status.turns.iter_mut().enumerate() {
            *count = row.try_get::<_, i64>(at)?.unsigned_abs();
        }
        status.dead_turns = row.try_get::<_, i64>(3)?.unsigned_abs();
    }
    if let Some(row) = session.query(SIZE, &[]).await?.first() {
        status.bytes = row.try_get::<_, i64>(0)?.unsigned_abs();
    }
    for row in session.query(INSTANCES, &[]).await? {
        status.instances.push(InstanceStatus {
            name: row.try_get(0)?,
            opened_at: Timestamp::from_millis(row.try_get(1)?),
            beat_at: Timestamp::from_millis(row.try_get(2)?),
            silent_ms: row.try_get(3)?,
            alive: row.try_get(4)?,
        });
    }
    status.in_use = status.instances.iter().any(|instance| instance.alive);
    Ok(())
}

/// Brings the database to the newest schema; makes the tables if there are none.
///
/// # Errors
/// If the database cannot be reached or used; see [`OpenError`].
pub async fn migrate(options: PostgresOptions) -> Result<Migrated, OpenError> {
    let ground = Ground::new(options)?;
    let prepared = open::prepare_for_copy(&ground).await;
    ground.close().await;
    let database = prepared?;
    Ok(Migrated {
        from: database.found,
        to: database.schema,
    })
}

/// How a database does.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Probe {
    /// What it holds.
    pub status: Status,
    /// How long a question takes that needs no work.
    pub round_trip: Duration,
    /// How long `COMMIT` takes after a small change; not known if there are no tables.
    pub commit: Option<Duration>,
    /// How far the database's clock is ahead of this machine's, in milliseconds.
    pub ahead_ms: i64,
    /// How many connections the server takes from everybody, and how many of them are taken.
    pub connections: (u64, u64),
    /// Whether nobody on the way can read along: it is encrypted, or stays on one machine.
    pub private: bool,
    /// Whether we may make our tables, where there are none.
    pub may_create: bool,
    /// Settings of the server that are not as they should be, with the value they have.
    pub unsafe_settings: Vec<(String, String)>,
    /// How many connections an instance needs.
    pub connections_needed: u64,
}

pub(super) const CONNECTIONS: &str = "
    SELECT current_setting('max_connections')::int8
            - current_setting('superuser_reserved_connections')::int8,
        (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')";

const PRIVATE: &str = "
    SELECT coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false)
        OR coalesce(inet_server_addr() <<= '127.0.0.0/8'::inet
            OR inet_server_addr() = '::1'::inet, true)";

/// A database that can lose what it has confirmed, or tear pages, whatever our sessions ask for.
const UNSAFE: &str = "
    SELECT name, setting FROM pg_settings
    WHERE name IN ('fsync', 'full_page_writes') AND setting = 'off' ORDER BY name";

const MAY_CREATE: &str = "
    SELECT to_regnamespace('a2ad') IS NOT NULL
        OR has_database_privilege(current_database(), 'CREATE')";

const CLOCK: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::int8";

/// Something that is written and changes nothing.
const TOUCH: &str = "UPDATE meta SET number = number WHERE key = 'schema'";

/// Finds out how the database does: times, clock, settings. Changes nothing.
///
/// # Errors
/// If the database cannot be reached or is none that we could use.
pub async fn probe(options: PostgresOptions) -> Result<Probe, OpenError> {
    let ground = Ground::new(options)?;
    let probed = async {
        let session = open::connect(&ground).await?;
        let status = look(&ground, &session).await?;
        let probed = examine(&ground, &session, status).await;
        probed.map_err(|failure| OpenError::from_failure(&ground.target.server, &failure))
    };
    let probed = probed.await;
    ground.close().await;
    probed
}

async fn examine(ground: &Ground, session: &Session, status: Status) -> Result<Probe, Failure> {
    let clock = &ground.options.surroundings.clock;
    let mut trips = Vec::new();
    let mut ahead = Vec::new();
    session.statement(CLOCK).await?;
    for _ in 0..TIMES {
        let (before, begun) = (clock.now().as_millis(), Instant::now());
        let rows = session.query(CLOCK, &[]).await?;
        let trip = begun.elapsed();
        trips.push(trip);
        if let Some(row) = rows.first() {
            let there: i64 = row.try_get(0)?;
            // It was read about half way.
            let half = i64::try_from(trip.as_millis() / 2).unwrap_or_default();
            ahead.push(there - before - half);
        }
    }
    let mut commits = Vec::new();
    if status.schema > 0 && status.oldest_compatible <= status.known {
        for _ in 0..TIMES {
            session.run("BEGIN").await?;
            session.run(TOUCH).await?;
            let begun = Instant::now();
            session.run("COMMIT").await?;
            commits.push(begun.elapsed());
        }
    }
    let mut connections = (0, 0);
    if let Some(row) = session.query(CONNECTIONS, &[]).await?.first() {
        let number = |at| row.try_get::<_, i64>(at).map(i64::unsigned_abs);
        connections = (number(0)?, number(1)?);
    }
    let flag = |rows: Vec<tokio_postgres::Row>| {
        let first = rows.first();
        first.and_then(|row| row.try_get(0).ok()).unwrap_or(false)
    };
    let mut unsafe_settings = Vec::new();
    for row in session.query(UNSAFE, &[]).await? {
        unsafe_settings.push((row.try_get(0)?, row.try_get(1)?));
    }
    Ok(Probe {
        round_trip: middle(trips).unwrap_or_default(),
        commit: middle(commits),
        ahead_ms: middle(ahead).unwrap_or_default(),
        connections,
        private: flag(session.query(PRIVATE, &[]).await?),
        may_create: flag(session.query(MAY_CREATE, &[]).await?),
        unsafe_settings,
        connections_needed: ground.options.connections(),
        status,
    })
}

fn middle<T: Ord>(mut all: Vec<T>) -> Option<T> {
    all.sort();
    let at = all.len() / 2;
    all.into_iter().nth(at)
}
