//! Every task with its journal and its snapshot.

use a2ad_core::keys::{PublicIds, TaskKey};
use rusqlite::{Connection, Row};

use super::requests::Requests;
use crate::hash::Hash;
use crate::run::{self, unpack_run_id};
use crate::sqlite::fail::Failure;
use crate::sqlite::ids::unpack_id;
use crate::sqlite::open::meta;
use crate::sqlite::runs::{self, hash_column};
use crate::sqlite::snapshots::{self, Stored};
use crate::walk::{TaskName, Told, VerifyReport, Walk};

/// A task's row, as far as the journal has to agree with it.
struct Head {
    name: TaskName,
    key: i64,
    version: u64,
    state: u8,
    chain: Option<Hash>,
    context: i64,
    /// The id of its context, if we minted it.
    context_id: Option<String>,
}

impl Head {
    fn read(row: &Row<'_>) -> Result<Self, Failure> {
        let key = row.get(0)?;
        Ok(Self {
            name: TaskName::new(key, unpack_id(row.get_ref(1)?)),
            key,
            version: row.get::<_, i64>(2)?.unsigned_abs(),
            state: row.get(3)?,
            chain: hash_column(row, 4),
            context: row.get(5)?,
            context_id: unpack_id(row.get_ref(6)?),
        })
    }
}

pub(super) fn tasks(db: &Connection, report: &mut VerifyReport) -> Result<(), Failure> {
    let mut statement = db.prepare(
        "SELECT key, id, version, state, chain, context, context_id FROM tasks ORDER BY key",
    )?;
    let ids = meta(db, "secret")?.map(PublicIds::new);
    if ids.is_none() {
        report.report_all("the secret of its ids is missing");
    }
    let requests = Requests::read(db, report)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let head = Head::read(row)?;
        report.tasks += 1;
        if let Some(ids) = &ids {
            if ids.key_of(&head.name.0) != Some(head.key) {
                report.report_of(&head.name, None, "its id does not lead to it");
            }
            if let Some(id) = &head.context_id
                && ids.key_of(id) != Some(head.context)
            {
                report.report_of(&head.name, None, "its context's id does not lead there");
            }
        }
        journal(db, &head, &requests, report)?;
        check_snapshot(db, &head, report)?;
    }
    Ok(())
}

fn journal(
    db: &Connection,
    head: &Head,
    requests: &Requests,
    report: &mut VerifyReport,
) -> Result<(), Failure> {
    let told = Told {
        name: &head.name,
        version: head.version,
        state: head.state,
        chain: head.chain,
    };
    let mut walk = Walk::new();
    let mut statement = db.prepare_cached(runs::SELECT)?;
    let mut rows = statement.query(run::task_runs(head.key))?;
    while let Some(row) = rows.next()? {
        let (_, first) = unpack_run_id(row.get(0)?);
        match runs::read(db, row) {
            Ok(run) => {
                walk.pass(&told, &run, report);
                requests.check(db, head.key, &head.name, &run, report)?;
            }
            Err(Failure::Damaged(what)) => {
                let count = row.get::<_, i64>(1)?.unsigned_abs();
                walk.stumble(&told, first, count, what, report);
            }
            Err(failure @ Failure::Sql(_)) => return Err(failure),
        }
    }
    walk.end(&told, report);
    Ok(())
}

fn check_snapshot(db: &Connection, head: &Head, report: &mut VerifyReport) -> Result<(), Failure> {
    let version = match snapshots::read(db, TaskKey(head.key), true)? {
        None => return Ok(()),
        Some(Stored::Damaged) => None,
        Some(Stored::Sound(snapshot)) => Some(snapshot.version),
    };
    report.snapshot(&head.name, head.version, version);
    Ok(())
}
