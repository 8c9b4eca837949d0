//! The oracle: what clients were told against what the store holds.
//!
//! It folds texts and frames by itself, from journal entries alone, so that a mistake in the
//! engine's own folding or streaming cannot hide behind itself.

mod findings;
mod journal;
mod streams;

use std::collections::{HashMap, HashSet};

use super::history::{History, Stream, Takeover};
use super::stored::StoredTask;
pub use findings::{Findings, Invariant, Violation};
use journal::Span;

/// Looks at one stored task after the other, then at what they have in common.
#[derive(Debug)]
pub struct Checker<'a> {
    history: &'a History,
    owner: &'a str,
    /// Everything has come to rest, so every task must have ended.
    settled: bool,
    findings: Findings,
    streams: HashMap<&'a str, Vec<&'a Stream>>,
    seen: HashSet<String>,
    /// In which task each message was found.
    message_in: HashMap<String, String>,
    /// When tasks of told contexts began to work and ended.
    spans: HashMap<String, Span>,
}

impl<'a> Checker<'a> {
    /// A checker of what `history` says, for tasks of `owner`.
    #[must_use]
    pub fn new(history: &'a History, owner: &'a str, settled: bool) -> Self {
        let mut streams: HashMap<&str, Vec<&Stream>> = HashMap::new();
        for stream in &history.streams {
            if let Some(part) = stream.parts.first() {
                streams.entry(&part.task).or_default().push(stream);
            }
        }
        Self {
            history,
            owner,
            settled,
            findings: Findings::default(),
            streams,
            seen: HashSet::new(),
            message_in: HashMap::new(),
            spans: HashMap::new(),
        }
    }

    /// Looks at a task. `found`: a lookup by its id and owner brings it.
    pub fn stored(&mut self, task: &StoredTask, found: bool) {
        self.findings.tasks += 1;
        self.findings.entries += task.entries.len() as u64;
        if !self.seen.insert(task.id.clone()) {
            self.violated(Invariant::Sound, &task.id, "the store holds it twice");
        }
        if !found {
            self.violated(Invariant::NothingLost, &task.id, "its id does not find it");
        }
        let Some(records) = self.numbers_and_records(task) else {
            return;
        };
        self.identity(task, &records);
        self.end(task, &records);
        self.messages(task, &records);
        self.turns(task, &records);
        self.texts(task, &records);
        for stream in self.streams.remove(task.id.as_str()).unwrap_or_default() {
            self.stream(task, &records, stream);
        }
    }

    /// The database is not sound.
    pub fn unsound(&mut self, what: String) {
        self.violated(Invariant::Sound, "the database", what);
    }

    /// So many turns are open and so many died.
    pub fn turns_left(&mut self, open: u64, dead: u64) {
        if self.settled && open > 0 {
            let found = format!("{open} turns are still open");
            self.violated(Invariant::NothingLeftOver, "the database", found);
        }
        if dead > 0 {
            let found = format!("{dead} turns ran out of tries though they have plenty");
            self.violated(Invariant::NothingLeftOver, "the database", found);
        }
    }

    /// Looks at what only all tasks together can show.
    #[must_use]
    pub fn finish(mut self) -> Findings {
        let history = self.history;
        for (id, sent) in &history.messages {
            if sent.tasks.len() > 1 {
                let found = format!("acknowledged as several tasks: {:?}", sent.tasks);
                self.violated(Invariant::OneTaskPerMessage, id, found);
            }
            if let Some(task) = sent.tasks.first() {
                match self.message_in.get(id) {
                    Some(holder) if holder == task => {}
                    Some(holder) => {
                        let found = format!("acknowledged as {task} but it is in {holder}");
                        self.violated(Invariant::OneTaskPerMessage, id, found);
                    }
                    None => {
                        let found = format!("acknowledged as {task} but in no journal");
                        self.violated(Invariant::NothingLost, id, found);
                    }
                }
            }
            if sent.refused && self.message_in.contains_key(id) {
                let found = "refused, but in a journal";
                self.violated(Invariant::OneTaskPerMessage, id, found);
            }
        }
        for id in history.tasks.keys() {
            if !self.seen.contains(id) {
                self.violated(Invariant::NothingLost, id, "told, but not stored");
            }
        }
        self.contexts();
        for Takeover { task, took, due } in &history.takeovers {
            if took > due {
                let found = format!("it went on after {took:.1?}, due after {due:.1?}");
                self.violated(Invariant::TakenOver, task, found);
            }
        }
        for surprise in &history.surprises {
            self.violated(Invariant::NoSurprise, "a client", surprise);
        }
        self.findings
    }

    fn violated(&mut self, invariant: Invariant, about: &str, found: impl Into<String>) {
        *self.findings.violated.entry(invariant).or_default() += 1;
        self.findings.keep(Violation {
            invariant,
            about: about.to_owned(),
            found: found.into(),
        });
    }

    /// I7 between the tasks of a context.
    fn contexts(&mut self) {
        for (context, tasks) in &self.history.contexts {
            let mut before: Option<(&str, i64)> = None;
            for id in tasks {
                let Some(Span {
                    worked_at: Some(worked_at),
                    ended_at,
                }) = self.spans.get(id).copied()
                else {
                    continue;
                };
                if let Some((earlier, ended_at)) = before
                    && worked_at < ended_at
                {
                    let found = format!("{id} ran at {worked_at}, {earlier} until {ended_at}");
                    self.violated(Invariant::InOrder, context, found);
                }
                before = Some((id, ended_at.unwrap_or(i64::MAX)));
            }
        }
    }
}

#[cfg(test)]
mod tests;
