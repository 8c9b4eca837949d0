//! What a run came to, for people and for programs.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use super::checker::Findings;
use super::history::History;

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Report {
    /// Where every choice came from.
    pub seed: u64,
    /// How often the daemon was killed.
    pub kills: u32,
    /// How many of the kills came a while after its start, ready or not.
    pub kills_at_start: u32,
    /// Messages that were acknowledged.
    pub messages: u64,
    /// Tasks that were acknowledged.
    pub acknowledged: u64,
    /// Streams read.
    pub streams: u64,
    /// Calls and messages that were tried again, and the like.
    pub tried: super::history::Tried,
    /// From start to ready, in milliseconds, each time.
    pub ready_ms: Figures,
    /// From ready to the answer, in milliseconds, for operations that a kill had cut (I10). A turn
    /// that was cut more than once waits before it is tried again, by the agent's own rule.
    pub resumed_ms: Figures,
    /// Other faults than kills of instances, by name.
    pub faults: BTreeMap<&'static str, u32>,
    /// From an instance's death to the moment when its work went on elsewhere, in milliseconds.
    pub takeover_ms: Figures,
    /// From the moment when a database that was killed takes questions again until every instance
    /// is ready, in milliseconds.
    pub back_ms: Figures,
    /// From the moment when clients begin nothing new until all work is done, in milliseconds, for
    /// each check in between.
    pub rest_ms: Figures,
    /// How long the work took that was left when nobody killed any more.
    pub settled_in: Duration,
    /// How often the store was read and checked.
    pub checks: u32,
    /// The last check, over everything, with the violations of all.
    pub findings: Findings,
    /// How long it all took.
    pub elapsed: Duration,
    /// Where data, history and log are, if they were kept.
    pub folder: Option<PathBuf>,
    /// How to repeat it.
    pub repeat: String,
}

/// A few numbers about many.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// How many.
    pub count: usize,
    /// Their mean.
    pub mean: u64,
    /// Half are not above this.
    pub median: u64,
    /// All but one in a hundred are not above this.
    pub p99: u64,
    /// The largest.
    pub max: u64,
}

impl Figures {
    /// The figures of `all`.
    #[must_use]
    pub fn of(all: &[u64]) -> Self {
        let mut all = all.to_vec();
        all.sort_unstable();
        let Some(&max) = all.last() else {
            return Self::default();
        };
        Self {
            count: all.len(),
            mean: all.iter().sum::<u64>() / all.len() as u64,
            median: all[all.len() / 2],
            p99: all[(all.len() * 99 / 100).min(all.len() - 1)],
            max,
        }
    }

    fn json(self) -> Value {
        json!({"count": self.count, "mean": self.mean, "median": self.median, "p99": self.p99, "max": self.max})
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "mean {} ms, median {}, p99 {}, max {} (of {})",
            self.mean, self.median, self.p99, self.max, self.count
        )
    }
}

impl Report {
    /// Nothing has happened yet.
    pub(super) fn new(seed: u64, repeat: &str) -> Self {
        Self {
            seed,
            kills: 0,
            kills_at_start: 0,
            messages: 0,
            acknowledged: 0,
            streams: 0,
            tried: super::history::Tried::default(),
            ready_ms: Figures::default(),
            resumed_ms: Figures::default(),
            faults: BTreeMap::new(),
            takeover_ms: Figures::default(),
            back_ms: Figures::default(),
            rest_ms: Figures::default(),
            settled_in: Duration::ZERO,
            checks: 0,
            findings: Findings::default(),
            elapsed: Duration::ZERO,
            folder: None,
            repeat: repeat.to_owned(),
        }
    }

    /// Takes what a history knows.
    pub(super) fn count(&mut self, history: &History) {
        let acknowledged = |sent: &&super::history::Sent| !sent.tasks.is_empty();
        self.messages = history.messages.values().filter(acknowledged).count() as u64;
        self.acknowledged = history.tasks.len() as u64;
        self.streams = history.streams.len() as u64;
        self.tried = history.tried;
        self.resumed_ms = Figures::of(&history.resumed_ms);
        let takeovers = history.takeovers.iter().map(|it| it.took.as_millis());
        let takeovers: Vec<u64> = takeovers
            .map(|millis| u64::try_from(millis).unwrap_or(u64::MAX))
            .collect();
        self.takeover_ms = Figures::of(&takeovers);
    }

    /// Whether everything held.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.findings.count() == 0
    }

    /// As JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        let violated: serde_json::Map<String, Value> = self
            .findings
            .violated
            .iter()
            .map(|(invariant, count)| (invariant.code().to_owned(), json!(count)))
            .collect();
        let violations: Vec<String> = self
            .findings
            .violations
            .iter()
            .map(ToString::to_string)
            .collect();
        json!({
            "seed": self.seed,
            "kills": self.kills,
            "kills_at_start": self.kills_at_start,
            "faults": self.faults,
            "messages": self.messages,
            "tasks_acknowledged": self.acknowledged,
            "tasks_checked": self.findings.tasks,
            "entries_checked": self.findings.entries,
            "streams": self.streams,
            "frames_checked": self.findings.frames,
            "streams_resumed": self.tried.resumes,
            "repeats": self.tried.repeats,
            "retries": self.tried.retries,
            "cancels": self.tried.cancels,
            "follow_ups": self.tried.follow_ups,
            "reads": self.tried.reads,
            "recovered_turns": self.findings.recovered,
            "attempts_max": self.findings.attempts_max,
            "ready_ms": self.ready_ms.json(),
            "resumed_ms": self.resumed_ms.json(),
            "takeover_ms": self.takeover_ms.json(),
            "back_ms": self.back_ms.json(),
            "rest_ms": self.rest_ms.json(),
            "settled_ms": u64::try_from(self.settled_in.as_millis()).unwrap_or(u64::MAX),
            "checks": self.checks,
            "violations": self.findings.count(),
            "violated": violated,
            "first_violations": violations,
            "elapsed_s": self.elapsed.as_secs(),
            "folder": self.folder,
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            tried, findings, ..
        } = self;
        writeln!(f, "seed              {}", self.seed)?;
        writeln!(
            f,
            "kills             {} ({} while it was starting)",
            self.kills, self.kills_at_start
        )?;
        if !self.faults.is_empty() {
            let faults = self.faults.iter();
            let faults: Vec<_> = faults
                .map(|(name, count)| format!("{count} {name}"))
                .collect();
            writeln!(f, "other faults      {}", faults.join(", "))?;
        }
        writeln!(
            f,
            "acknowledged      {} messages, {} tasks; {} cancels, {} follow-ups",
            self.messages, self.acknowledged, tried.cancels, tried.follow_ups
        )?;
        writeln!(
            f,
            "checked           {} tasks, {} entries, {} streams, {} frames, {} times",
            findings.tasks, findings.entries, self.streams, findings.frames, self.checks
        )?;
        writeln!(
            f,
            "tried again       {} calls cut, {} repeats, {} streams resumed; {} reads",
            tried.retries, tried.repeats, tried.resumes, tried.reads
        )?;
        writeln!(
            f,
            "recovered         {} turns, at most {} attempts for one",
            findings.recovered, findings.attempts_max
        )?;
        writeln!(f, "start to ready    {}", self.ready_ms)?;
        writeln!(f, "ready to answer   {}", self.resumed_ms)?;
        if self.takeover_ms.count > 0 {
            writeln!(f, "death to takeover {}", self.takeover_ms)?;
        }
        if self.back_ms.count > 0 {
            writeln!(f, "database to ready {}", self.back_ms)?;
        }
        if self.rest_ms.count > 0 {
            writeln!(f, "fault to rest     {}", self.rest_ms)?;
        }
        writeln!(f, "settled in        {:.1?}", self.settled_in)?;
        writeln!(f, "elapsed           {:.1?}", self.elapsed)?;
        write!(f, "violations        {}", findings.count())?;
        for (invariant, count) in &findings.violated {
            write!(f, "\n  {} {invariant:?}: {count}", invariant.code())?;
        }
        for violation in &findings.violations {
            let text: String = violation.to_string().chars().take(600).collect();
            write!(f, "\n  - {text}")?;
        }
        if !self.is_clean() {
            if let Some(folder) = &self.folder {
                write!(f, "\nkept              {}", folder.display())?;
            }
            write!(f, "\nrepeat with       {}", self.repeat)?;
        }
        Ok(())
    }
}
