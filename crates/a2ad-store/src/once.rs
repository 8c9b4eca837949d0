//! Request keys, by which a repeated request is recognised for as long as its task is kept.
//!
//! All knowledge of how they are found is in this file. The keys are random, and an index on
//! random values costs a page per row once it is large; here the rows themselves grow with their
//! tasks and only an eight-byte tag is indexed. Should that one index become the limit, sorted
//! segments that are merged in the background can take its place behind these three functions.

use a2ad_core::keys::{Number, TaskKey};
use a2ad_core::store::{Once, OnceHit};
use rusqlite::Connection;

use crate::fail::Failure;
use crate::run::{run_id, task_runs, unpack_run_id};

/// The request that had `key` in this scope.
pub(crate) fn find(
    db: &Connection,
    scope: i64,
    key: &[u8; 16],
) -> Result<Option<OnceHit>, Failure> {
    let mut statement =
        db.prepare_cached("SELECT id, body, scope, key FROM once WHERE tag = ?1 ORDER BY id")?;
    let mut rows = statement.query([tag(scope, key)])?;
    while let Some(row) = rows.next()? {
        if row.get::<_, i64>(2)? != scope || row.get_ref(3)?.as_blob().ok() != Some(&key[..]) {
            continue;
        }
        let (task, number) = unpack_run_id(row.get(0)?);
        return Ok(Some(OnceHit {
            task: TaskKey(task),
            number: Number(number),
            body: row.get(1)?,
        }));
    }
    Ok(None)
}

/// Remembers a request that was carried out.
pub(crate) fn insert(
    db: &Connection,
    scope: i64,
    task: TaskKey,
    once: &Once,
) -> Result<(), Failure> {
    db.prepare_cached("INSERT INTO once (id, tag, scope, key, body) VALUES (?1, ?2, ?3, ?4, ?5)")?
        .execute((
            run_id(task.0, once.number.0),
            tag(scope, &once.key),
            scope,
            once.key,
            once.body,
        ))?;
    Ok(())
}

/// Forgets the requests of a task.
pub(crate) fn delete(db: &Connection, task: i64) -> Result<(), Failure> {
    db.prepare_cached("DELETE FROM once WHERE id BETWEEN ?1 AND ?2")?
        .execute(task_runs(task))?;
    Ok(())
}

/// Keys are hashes already; the scope is mixed in so that one client's key used by many owners
/// does not pile up under one tag.
fn tag(scope: i64, key: &[u8; 16]) -> i64 {
    let mut low = [0; 8];
    low.copy_from_slice(&key[..8]);
    i64::from_le_bytes(low) ^ scope.wrapping_mul(0x1e37_79b9_7f4a_7c15)
}
