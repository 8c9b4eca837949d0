//! Every task with its journal and its snapshot.

use a2ad_core::keys::{PublicIds, TaskKey};
use a2ad_proto::TaskState;
use rusqlite::{Connection, Row};

use super::requests::Requests;
use super::{TaskName, VerifyReport};
use crate::hash::Hash;
use crate::run::{self, NO_HASH, Run, unpack_run_id};
use crate::sqlite::fail::Failure;
use crate::sqlite::ids::unpack_id;
use crate::sqlite::open::meta;
use crate::sqlite::runs::{self, hash_column};
use crate::sqlite::snapshots::{self, Stored};

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

/// Where a walk along one journal stands.
#[derive(Default)]
struct Walk {
    /// The number of the entry before.
    last: u64,
    /// The hash of the run before; `None` if that was unreadable.
    chain: Option<Hash>,
    /// The newest state that an entry told of.
    state: Option<TaskState>,
    /// The entry that ended the task.
    ended: Option<u64>,
    /// A run was unreadable, so what entries tell together is not known.
    blind: bool,
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
    let mut walk = Walk {
        chain: Some(NO_HASH),
        ..Walk::default()
    };
    let mut statement = db.prepare_cached(runs::SELECT)?;
    let mut rows = statement.query(run::task_runs(head.key))?;
    while let Some(row) = rows.next()? {
        report.runs += 1;
        let (_, first) = unpack_run_id(row.get(0)?);
        if first != walk.last + 1 {
            let what = format!("it follows entry {}", walk.last);
            report.report_of(&head.name, Some(first), what);
        }
        match runs::read(db, row) {
            Ok(run) => {
                walk.pass(head, &run, report);
                requests.check(db, head.key, &head.name, &run, report)?;
            }
            Err(Failure::Damaged(what)) => {
                report.report_of(&head.name, Some(first), what);
                let count = row.get::<_, i64>(1)?.unsigned_abs().max(1);
                walk.last = first + count - 1;
                walk.chain = None;
                walk.blind = true;
            }
            Err(failure @ Failure::Sql(_)) => return Err(failure),
        }
    }
    if walk.last != head.version {
        let what = format!(
            "its journal ends at entry {}, its head says {}",
            walk.last, head.version
        );
        report.report_of(&head.name, None, what);
    }
    if walk.chain.is_some() && walk.chain != head.chain {
        report.report_of(
            &head.name,
            None,
            "its head has not the hash of its last run",
        );
    }
    if !walk.blind && walk.state.map(|state| state as u8) != Some(head.state) {
        report.report_of(&head.name, None, "its head is not in its journal's state");
    }
    Ok(())
}

impl Walk {
    fn pass(&mut self, head: &Head, run: &Run, report: &mut VerifyReport) {
        if self.chain.is_some_and(|chain| chain != run.prev) {
            let what = "it was not written after the run before it";
            report.report_of(&head.name, Some(run.first), what);
        }
        for entry in &run.entries {
            report.entries += 1;
            report.bytes += entry.bytes.len() as u64;
            let number = entry.number.0;
            if let Err(error) = entry.record() {
                report.report_of(&head.name, Some(number), error.source.to_string());
            }
            if let (Some(ended), true) = (self.ended, entry.shape.visible) {
                let what = format!("it comes after the task ended at entry {ended}");
                report.report_of(&head.name, Some(number), what);
            }
            if let Some(state) = entry.shape.state {
                self.state = Some(state);
                if state.is_terminal() {
                    self.ended.get_or_insert(number);
                }
            }
        }
        self.last = run.last();
        self.chain = Some(run.hash);
    }
}

fn check_snapshot(db: &Connection, head: &Head, report: &mut VerifyReport) -> Result<(), Failure> {
    match snapshots::read(db, TaskKey(head.key), true)? {
        None => {}
        Some(Stored::Damaged) => {
            report.snapshots += 1;
            let what = "its snapshot does not match its hash";
            report.report_of(&head.name, None, what);
        }
        Some(Stored::Sound(snapshot)) => {
            report.snapshots += 1;
            if snapshot.version.0 > head.version {
                let what = format!(
                    "its snapshot is of version {}, its head says {}",
                    snapshot.version, head.version
                );
                report.report_of(&head.name, None, what);
            }
        }
    }
    Ok(())
}
