//! Schemas of the database, old and new.

use tokio_postgres::Row;

use super::fail::Failure;
use super::open::OpenError;
use super::session::{Ground, Session};

/// What belongs to the database as a whole.
#[derive(Debug)]
pub(crate) struct Database {
    /// Masks the keys in public ids.
    pub(crate) secret: [u8; 16],
    /// The schema that was found; 0 if there was none.
    pub(crate) found: u32,
    /// The schema that it has now.
    pub(crate) schema: u32,
    /// A copy into it has begun and not come to its end.
    pub(crate) half_copied: bool,
}

/// The key in `meta` that is there while a copy is under way: the newest task that was copied, and
/// the secret of the database that it comes from.
pub(crate) const COPYING: &str = "copying";

/// A step from one schema to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Migration {
    /// The schema after the step.
    pub(crate) schema: u32,
    /// The oldest code that can still use the database after it, by the schema it knows.
    pub(crate) oldest_compatible: u32,
    /// What the step does.
    pub(crate) sql: &'static str,
}

/// All steps, oldest first. A released one never changes.
pub(crate) const MIGRATIONS: &[Migration] = &[Migration {
    schema: 1,
    oldest_compatible: 1,
    sql: include_str!("../../migrations/postgres/0001_tasks_journals_turns.sql"),
}];

/// Whoever migrates holds this advisory lock, "a2ad" in letters.
const LOCK: &str = "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '60s'; \
                    SELECT pg_advisory_xact_lock(x'61326164'::int8)";

/// Brings the database to the newest schema of `steps`, all in one transaction and one instance at
/// a time.
pub(crate) async fn migrate(
    ground: &Ground,
    session: &Session,
    steps: &[Migration],
) -> Result<Database, OpenError> {
    let server = ground.target.server.as_str();
    let failed = |failure: Failure| OpenError::from_failure(server, &failure);
    let known = steps.last().map_or(0, |step| step.schema);
    session.run("BEGIN").await.map_err(failed)?;
    session.run(LOCK).await.map_err(failed)?;
    let found = schema(server, session, known).await?;
    let outdated: Vec<_> = steps.iter().filter(|step| step.schema > found).collect();
    let needed = outdated.iter().map(|step| step.oldest_compatible).max();
    if found > 0 && needed.is_some_and(|needed| needed > found) {
        check_alone(server, session, needed.unwrap_or_default()).await?;
    }
    if found == 0 {
        let create = "CREATE SCHEMA IF NOT EXISTS a2ad";
        // Creating it asks for more than using it, even if it is there.
        if !has_schema(session).await.map_err(failed)? {
            session.run(create).await.map_err(failed)?;
        }
    }
    for step in &outdated {
        session.run(step.sql).await.map_err(failed)?;
        for (key, number) in [
            ("schema", step.schema),
            ("oldest_compatible", step.oldest_compatible),
        ] {
            set_meta(session, key, Some(i64::from(number)), None)
                .await
                .map_err(failed)?;
        }
    }
    if found == 0 {
        let secret = ground.options.surroundings.random.bits().to_le_bytes();
        set_meta(session, "secret", None, Some(&secret))
            .await
            .map_err(failed)?;
        set_meta(session, "next_key", Some(1), None)
            .await
            .map_err(failed)?;
    }
    session.run("COMMIT").await.map_err(failed)?;
    if !outdated.is_empty() {
        tracing::info!(from = found, to = known, "the database has a new schema");
    }
    let damaged = || OpenError::Corrupt {
        server: server.to_owned(),
        detail: "the secret of its ids is missing".to_owned(),
    };
    let row = meta(session, "secret").await.map_err(failed)?;
    let secret: Option<Vec<u8>> = row.and_then(|row| row.try_get(1).ok());
    let secret = secret.and_then(|secret| secret.try_into().ok());
    let half_copied = meta(session, COPYING).await.map_err(failed)?.is_some();
    Ok(Database {
        secret: secret.ok_or_else(damaged)?,
        found,
        schema: found.max(known),
        half_copied,
    })
}

/// Whoever runs now knows the schema that was found. If a step would leave him behind, he has to
/// stop first.
async fn check_alone(server: &str, session: &Session, needed: u32) -> Result<(), OpenError> {
    const ALIVE: &str = "
        SELECT count(*) FROM a2ad.holders WHERE instance
            AND lease_until > (extract(epoch FROM statement_timestamp()) * 1000)::int8";
    let rows = session.query(ALIVE, &[]).await;
    let rows = rows.map_err(|failure| OpenError::from_failure(server, &failure))?;
    let count: i64 = rows
        .first()
        .and_then(|row| row.try_get(0).ok())
        .unwrap_or_default();
    if count > 0 {
        return Err(OpenError::OlderInstances {
            server: server.to_owned(),
            count: count.unsigned_abs(),
            needed,
        });
    }
    Ok(())
}

/// The schema of a database, unless code that knows schemas up to `known` cannot use it; 0 if there
/// is nothing of ours.
async fn schema(server: &str, session: &Session, known: u32) -> Result<u32, OpenError> {
    let (found, oldest) = schemas(server, session).await?;
    if oldest > known {
        return Err(OpenError::Newer {
            server: server.to_owned(),
            found,
            known,
        });
    }
    Ok(found)
}

/// The schema of a database, and the oldest code that can use it; zeros if there is nothing of ours.
pub(crate) async fn schemas(server: &str, session: &Session) -> Result<(u32, u32), OpenError> {
    let failed = |failure: Failure| OpenError::from_failure(server, &failure);
    let rows = session
        .query("SELECT to_regclass('a2ad.meta') IS NOT NULL", &[])
        .await
        .map_err(failed)?;
    if !flag(&rows) {
        return Ok((0, 0));
    }
    let mut numbers = [0; 2];
    for (number, key) in numbers.iter_mut().zip(["schema", "oldest_compatible"]) {
        let row = meta(session, key).await.map_err(failed)?;
        let found: Option<i64> = row.and_then(|row| row.try_get(0).ok());
        *number = found
            .and_then(|found| u32::try_from(found).ok())
            .ok_or_else(|| OpenError::Corrupt {
                server: server.to_owned(),
                detail: "its schema number is missing".to_owned(),
            })?;
    }
    let [found, oldest] = numbers;
    Ok((found, oldest))
}

async fn has_schema(session: &Session) -> Result<bool, Failure> {
    let rows = session
        .query("SELECT to_regnamespace('a2ad') IS NOT NULL", &[])
        .await?;
    Ok(flag(&rows))
}

fn flag(rows: &[Row]) -> bool {
    rows.first()
        .and_then(|row| row.try_get(0).ok())
        .unwrap_or_default()
}

pub(crate) async fn meta(session: &Session, key: &str) -> Result<Option<Row>, Failure> {
    let rows = session
        .query(
            "SELECT number, bytes FROM a2ad.meta WHERE key = $1",
            &[&key],
        )
        .await?;
    Ok(rows.into_iter().next())
}

pub(crate) async fn set_meta(
    session: &Session,
    key: &str,
    number: Option<i64>,
    bytes: Option<&[u8]>,
) -> Result<(), Failure> {
    session
        .query(
            "INSERT INTO a2ad.meta (key, number, bytes) VALUES ($1, $2, $3)
             ON CONFLICT (key) DO UPDATE SET number = excluded.number, bytes = excluded.bytes",
            &[&key, &number, &bytes],
        )
        .await
        .map(drop)
}

#[cfg(test)]
mod tests;
