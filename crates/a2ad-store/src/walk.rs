//! What a walk over a database looks for, whichever it is, and what it says.

use std::fmt;

use a2ad_core::keys::Number;
use a2ad_proto::TaskState;

use crate::hash::Hash;
use crate::run::{NO_HASH, Run};

/// More problems than this are counted but not listed: whoever has so many restores a backup.
const PROBLEMS_MAX: usize = 1_000;

/// What a walk over a database found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Tasks.
    pub tasks: u64,
    /// Runs of entries.
    pub runs: u64,
    /// Entries in all journals.
    pub entries: u64,
    /// Bytes in all entries.
    pub bytes: u64,
    /// Snapshots.
    pub snapshots: u64,
    /// Open turns.
    pub turns: u64,
    /// What is wrong, as far as it is listed.
    pub problems: Vec<Problem>,
    /// How much is wrong in all.
    pub problem_count: u64,
}

impl VerifyReport {
    /// Nothing is wrong.
    #[must_use]
    pub const fn is_sound(&self) -> bool {
        self.problem_count == 0
    }

    pub(crate) fn report(&mut self, problem: Problem) {
        self.problem_count += 1;
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem);
        }
    }

    pub(crate) fn report_of(
        &mut self,
        task: &TaskName,
        entry: Option<u64>,
        what: impl Into<String>,
    ) {
        self.report(Problem {
            task: Some(task.0.clone()),
            entry,
            what: what.into(),
        });
    }

    /// A snapshot was met: of which version, if it is sound.
    pub(crate) fn snapshot(&mut self, task: &TaskName, head: u64, version: Option<Number>) {
        self.snapshots += 1;
        match version {
            None => self.report_of(task, None, "its snapshot does not match its hash"),
            Some(version) if version.0 > head => {
                let what = format!("its snapshot is of version {version}, its head says {head}");
                self.report_of(task, None, what);
            }
            Some(_) => {}
        }
    }

    pub(crate) fn report_all(&mut self, what: impl Into<String>) {
        self.report(Problem {
            task: None,
            entry: None,
            what: what.into(),
        });
    }
}

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The public id of the task it concerns, or `key N` if that cannot be read.
    pub task: Option<String>,
    /// The number of the entry it concerns.
    pub entry: Option<u64>,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(task) = &self.task {
            write!(f, "task {task}: ")?;
        }
        if let Some(entry) = self.entry {
            write!(f, "entry {entry}: ")?;
        }
        f.write_str(&self.what)
    }
}

/// How a problem names a task.
pub(crate) struct TaskName(pub(crate) String);

impl TaskName {
    pub(crate) fn new(key: i64, id: Option<String>) -> Self {
        Self(id.unwrap_or_else(|| format!("key {key}")))
    }
}

/// What a task's row tells of its journal.
pub(crate) struct Told<'a> {
    pub(crate) name: &'a TaskName,
    pub(crate) version: u64,
    pub(crate) state: u8,
    pub(crate) chain: Option<Hash>,
}

/// Where a walk along one journal stands.
pub(crate) struct Walk {
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

impl Walk {
    pub(crate) const fn new() -> Self {
        Self {
            last: 0,
            chain: Some(NO_HASH),
            state: None,
            ended: None,
            blind: false,
        }
    }

    fn meet(&self, head: &Told<'_>, first: u64, report: &mut VerifyReport) {
        report.runs += 1;
        if first != self.last + 1 {
            let what = format!("it follows entry {}", self.last);
            report.report_of(head.name, Some(first), what);
        }
    }

    /// Passes a run of `count` entries that cannot be read.
    pub(crate) fn stumble(
        &mut self,
        head: &Told<'_>,
        first: u64,
        count: u64,
        what: String,
        report: &mut VerifyReport,
    ) {
        self.meet(head, first, report);
        report.report_of(head.name, Some(first), what);
        self.last = first + count.max(1) - 1;
        self.chain = None;
        self.blind = true;
    }

    /// Passes a run.
    pub(crate) fn pass(&mut self, head: &Told<'_>, run: &Run, report: &mut VerifyReport) {
        self.meet(head, run.first, report);
        if self.chain.is_some_and(|chain| chain != run.prev) {
            let what = "it was not written after the run before it";
            report.report_of(head.name, Some(run.first), what);
        }
        for entry in &run.entries {
            report.entries += 1;
            report.bytes += entry.bytes.len() as u64;
            let number = entry.number.0;
            if let Err(error) = entry.record() {
                report.report_of(head.name, Some(number), error.source.to_string());
            }
            if let (Some(ended), true) = (self.ended, entry.shape.visible) {
                let what = format!("it comes after the task ended at entry {ended}");
                report.report_of(head.name, Some(number), what);
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

    /// Compares where it came to with what the task's row tells.
    pub(crate) fn end(&self, head: &Told<'_>, report: &mut VerifyReport) {
        if self.last != head.version {
            let what = format!(
                "its journal ends at entry {}, its head says {}",
                self.last, head.version
            );
            report.report_of(head.name, None, what);
        }
        if self.chain.is_some() && self.chain != head.chain {
            let what = "its head has not the hash of its last run";
            report.report_of(head.name, None, what);
        }
        if !self.blind && self.state.map(|state| state as u8) != Some(head.state) {
            let what = "its head is not in its journal's state";
            report.report_of(head.name, None, what);
        }
    }
}
