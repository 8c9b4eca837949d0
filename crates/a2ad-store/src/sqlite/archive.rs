//! Reading a conversation out of a file that a server may have.

use std::path::Path;

use a2ad_core::keys::{Number, Owner, PublicIds, TaskKey};
use a2ad_core::task::Entry;
use a2ad_proto::{AgentId, ContextId};
use rusqlite::Connection;

use crate::archive::Archived;
use crate::sqlite::fail::Failure;
use crate::sqlite::names::find_context;
use crate::sqlite::open::{MIGRATIONS, OpenError, meta, recognise, schemas};
use crate::sqlite::read::Journals;
use crate::sqlite::verify::open_read_only;

/// The conversation of this name with this agent in the file at `path`: of `owner`, or of whoever
/// alone has one.
///
/// # Errors
/// If there is no such file, or it is something else.
pub fn read_context(
    path: &Path,
    agent: &AgentId,
    context: &ContextId,
    owner: Option<&Owner>,
) -> Result<Archived, OpenError> {
    let db = open_read_only(path)?;
    recognise(&db, path)?;
    let (schema, oldest_compatible) = schemas(&db, path)?;
    let known = MIGRATIONS.last().map_or(0, |step| step.schema);
    if schema == 0 {
        return Ok(Archived::Nobodys);
    }
    if oldest_compatible > known {
        return Err(OpenError::Newer {
            path: path.to_owned(),
            found: schema,
            known,
        });
    }
    let read = || {
        let tx = db.unchecked_transaction()?;
        read(&tx, agent, context, owner)
    };
    read().map_err(|failure: Failure| OpenError::Corrupt {
        path: path.to_owned(),
        detail: failure.store_error().to_string(),
    })
}

fn read(
    db: &Connection,
    agent: &AgentId,
    context: &ContextId,
    owner: Option<&Owner>,
) -> Result<Archived, Failure> {
    let secret = meta(db, "secret")?;
    let secret =
        secret.ok_or_else(|| Failure::Damaged("the secret of its ids is missing".to_owned()))?;
    let ids = PublicIds::new(secret);
    let mut found = Vec::new();
    let mut scopes = db.prepare(
        "SELECT s.key, s.owner FROM agents a JOIN scopes s ON s.agent = a.key
         WHERE a.id = ?1 AND (?2 IS NULL OR s.owner = ?2) ORDER BY s.owner",
    )?;
    let mut rows = scopes.query((agent.as_str(), owner.map(Owner::as_str)))?;
    while let Some(row) = rows.next()? {
        let Ok(owner) = row
            .get_ref(1)?
            .as_str()
            .unwrap_or_default()
            .parse::<Owner>()
        else {
            continue;
        };
        if let Some(context) = find_context(db, &ids, row.get(0)?, context)? {
            found.push((owner, context.key));
        }
    }
    match found.as_slice() {
        [] => Ok(Archived::Nobodys),
        [(owner, context)] => Ok(Archived::Found {
            owner: owner.clone(),
            journals: journals(db, *context)?,
        }),
        several => Ok(Archived::Several(
            several.iter().map(|(owner, _)| owner.clone()).collect(),
        )),
    }
}

fn journals(db: &Connection, context: i64) -> Result<Vec<(TaskKey, Vec<Entry>)>, Failure> {
    let mut tasks = db.prepare(
        "SELECT key FROM tasks WHERE key = ?1 AND context = ?1
         UNION ALL
         SELECT key FROM tasks INDEXED BY tasks_in_context WHERE context = ?1 AND context <> key",
    )?;
    let mut rows = tasks.query([context])?;
    let mut journals = Journals::new(db)?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        let key = TaskKey(row.get(0)?);
        all.push((key, journals.entries(key, Number::ZERO, usize::MAX)?));
    }
    Ok(all)
}
