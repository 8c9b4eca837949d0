//! Every request that stands in a journal can be found by its key.

use std::collections::BTreeSet;

use a2ad_core::keys::TaskKey;
use rusqlite::Connection;

use crate::run::Run;
use crate::sqlite::fail::Failure;
use crate::sqlite::once::{self, Bucket, Pair, decode};
use crate::walk::{TaskName, VerifyReport};

/// Where requests are looked for.
pub(super) struct Requests {
    /// The pairs in the log, which may be in a bucket or not.
    log: BTreeSet<Pair>,
}

impl Requests {
    /// Reads the log and checks the buckets. A pair may lead to a task that is gone.
    pub(super) fn read(db: &Connection, report: &mut VerifyReport) -> Result<Self, Failure> {
        let mut log = BTreeSet::new();
        let mut statement = db.prepare("SELECT seq, pairs FROM once_log")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            match decode(row.get_ref(1)?.as_blob().unwrap_or_default()) {
                Some(pairs) => log.extend(pairs),
                None => {
                    let seq: i64 = row.get(0)?;
                    report.report_all(format!("row {seq} of request keys is cut short"));
                }
            }
        }
        let mut statement = db.prepare(
            "SELECT first, pairs, lead(first) OVER (ORDER BY first) FROM once ORDER BY first",
        )?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let first: i64 = row.get(0)?;
            let next: Option<i64> = row.get(2)?;
            let pairs = decode(row.get_ref(1)?.as_blob().unwrap_or_default());
            let sound = pairs.is_some_and(|pairs| {
                pairs.is_sorted()
                    && pairs.first().is_none_or(|pair| pair.tag >= first)
                    && pairs
                        .last()
                        .is_none_or(|pair| next.is_none_or(|next| pair.tag < next))
            });
            if !sound {
                report.report_all(format!("request keys from {first} on are not in order"));
            }
        }
        Ok(Self { log })
    }

    /// Checks that the requests of a run are found where they are looked for.
    pub(super) fn check(
        &self,
        db: &Connection,
        task: i64,
        name: &TaskName,
        run: &Run,
        report: &mut VerifyReport,
    ) -> Result<(), Failure> {
        for request in once::unpack(&run.once) {
            let pair = once::pair(TaskKey(task), &request);
            let found = self.log.contains(&pair)
                || match Bucket::read(db, pair.tag) {
                    Ok(bucket) => bucket.places(pair.tag).any(|place| place == pair.place),
                    // It was reported as a whole.
                    Err(Failure::Damaged(_)) => true,
                    Err(failure @ Failure::Sql(_)) => return Err(failure),
                };
            if !found {
                let what = "its request would not be recognised if it came again";
                report.report_of(name, Some(request.number.0), what);
            }
        }
        Ok(())
    }
}
