//! What the journal of a task says, by itself and against what clients were told.

use std::collections::BTreeMap;

use a2ad_core::task::{Broken, Hidden, Record};
use a2ad_proto::{Message, TaskState};

use super::super::stored::StoredTask;
use super::{Checker, Invariant};

/// When a task worked.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Span {
    pub(super) worked_at: Option<i64>,
    pub(super) ended_at: Option<i64>,
}

impl Checker<'_> {
    /// I2, and the records if they can be read.
    pub(super) fn numbers_and_records(&mut self, task: &StoredTask) -> Option<Vec<Record>> {
        let numbers: Vec<u64> = task.entries.iter().map(|entry| entry.number.0).collect();
        let gap = numbers
            .iter()
            .zip(1..)
            .find(|(number, expected)| **number != *expected);
        if let Some((number, expected)) = gap {
            let found = format!("entry {number} stands where {expected} is due");
            self.violated(Invariant::NoGap, &task.id, found);
        }
        if numbers.last().copied() != Some(task.version) {
            let last = numbers.last();
            let found = format!("version {}, newest entry {last:?}", task.version);
            self.violated(Invariant::NoGap, &task.id, found);
        }
        let mut records = Vec::with_capacity(task.entries.len());
        for entry in &task.entries {
            match entry.record() {
                Ok(record) => records.push(record),
                Err(error) => {
                    self.violated(Invariant::Sound, &task.id, format!("{error}"));
                    return None;
                }
            }
        }
        Some(records)
    }

    /// I1: who and where.
    pub(super) fn identity(&mut self, task: &StoredTask, records: &[Record]) {
        if task.owner != self.owner {
            let found = format!("it belongs to {}", task.owner);
            self.violated(Invariant::NothingLost, &task.id, found);
        }
        match records.first() {
            Some(Record::Submitted(first))
                if first.id == task.id && first.context_id == task.context_id => {}
            _ => self.violated(
                Invariant::NothingLost,
                &task.id,
                "its first entry is not its own beginning",
            ),
        }
        if let Some(told) = self.history.tasks.get(&task.id)
            && told.context_id != task.context_id
        {
            let found = format!("told context {}, has {}", told.context_id, task.context_id);
            self.violated(Invariant::NothingLost, &task.id, found);
        }
    }

    /// I3.
    pub(super) fn end(&mut self, task: &StoredTask, records: &[Record]) {
        let states: Vec<(usize, TaskState)> = records
            .iter()
            .enumerate()
            .filter_map(|(at, record)| Some((at, state_of(record)?)))
            .collect();
        let ends: Vec<_> = states
            .iter()
            .filter(|(_, state)| state.is_terminal())
            .collect();
        if ends.len() > 1 {
            let found = format!("it ends {} times", ends.len());
            self.violated(Invariant::OneEnd, &task.id, found);
        }
        if let Some((at, _)) = ends.first()
            && at + 1 < records.len()
        {
            let found = format!("{} entries after its end", records.len() - at - 1);
            self.violated(Invariant::OneEnd, &task.id, found);
        }
        if self.settled && ends.is_empty() {
            let found = format!("it is {} and moves no more", task.state.as_str());
            self.violated(Invariant::OneEnd, &task.id, found);
        }
        let last = states.last().map(|(_, state)| *state);
        if last != Some(task.state) {
            let found = format!("its head says {:?}, its journal {last:?}", task.state);
            self.violated(Invariant::OneEnd, &task.id, found);
        }
        if self.settled && task.turns > 0 {
            let found = format!("{} turns are still open", task.turns);
            self.violated(Invariant::NothingLeftOver, &task.id, found);
        }
        let Some(told) = self.history.tasks.get(&task.id) else {
            return;
        };
        for end in &told.ends {
            if end.state != task.state {
                let found = format!("told {:?}, stored {:?}", end.state, task.state);
                self.violated(Invariant::OneEnd, &task.id, found);
            }
        }
        let may_differ = !task.state.is_terminal() || task.state == TaskState::Canceled;
        if told.cancel_taken && !may_differ {
            let found = format!("its cancel was taken, but it ended as {:?}", task.state);
            self.violated(Invariant::OneEnd, &task.id, found);
        }
    }

    /// I4: where messages are.
    pub(super) fn messages(&mut self, task: &StoredTask, records: &[Record]) {
        for (_, message) in asked(records) {
            let id = &message.message_id;
            if let Some(other) = self.message_in.insert(id.clone(), task.id.clone()) {
                let found = format!("in {other} and in {}", task.id);
                self.violated(Invariant::OneTaskPerMessage, id, found);
            }
            if !self.history.messages.contains_key(id) {
                let found = format!("nobody sent it, but it is in {}", task.id);
                self.violated(Invariant::OneTaskPerMessage, id, found);
            }
        }
    }

    /// I7 within a task: turns in order, attempts rising, so no holder that was fenced off spoke.
    pub(super) fn turns(&mut self, task: &StoredTask, records: &[Record]) {
        let mut before = (0, 0);
        for record in records {
            match record {
                Record::Hidden(Hidden::Attempt { turn, attempt }) => {
                    let now = (turn.0, attempt.0);
                    if now <= before {
                        let found = format!("turn and attempt {now:?} began after {before:?}");
                        self.violated(Invariant::InOrder, &task.id, found);
                    }
                    before = now;
                    let attempts = u64::from(attempt.0);
                    self.findings.attempts_max = self.findings.attempts_max.max(attempts);
                }
                Record::Hidden(Hidden::AttemptEnded {
                    reason: Broken::Lost,
                    ..
                }) => self.findings.recovered += 1,
                Record::Hidden(
                    Hidden::AttemptEnded { .. }
                    | Hidden::Message(_)
                    | Hidden::Request { .. }
                    | Hidden::Replied { .. }
                    | Hidden::TurnDropped { .. }
                    | Hidden::CancelRequested { .. },
                )
                | Record::Submitted(_)
                | Record::Status(_)
                | Record::Artifact(_) => {}
            }
        }
        if self.history.contexts.contains_key(&task.context_id) {
            self.spans.insert(task.id.clone(), span(records));
        }
    }

    /// I6.
    pub(super) fn texts(&mut self, task: &StoredTask, records: &[Record]) {
        let texts = fold_texts(records);
        for (number, message) in asked(records) {
            let artifact = match number {
                1 => "response".to_owned(),
                number => format!("response-{number}"),
            };
            let answer = texts.get(&artifact).map_or("", String::as_str);
            let question: String = message
                .parts
                .iter()
                .filter_map(a2ad_proto::Part::as_text)
                .collect();
            let sent = self.history.messages.get(&message.message_id);
            if sent.is_some_and(|sent| sent.text != question) {
                let found = format!("message {} is not as sent", message.message_id);
                self.violated(Invariant::TextOnce, &task.id, found);
            }
            let fine = match task.state {
                TaskState::Completed => answer == question,
                TaskState::Failed | TaskState::Rejected => false,
                // Not at its end, or stopped on the way.
                _ => question.starts_with(answer),
            };
            if !fine {
                let found = format!("{:?}, asked {question:?}, answered {answer:?}", task.state);
                self.violated(Invariant::TextOnce, &task.id, found);
            }
        }
        let Some(told) = self.history.tasks.get(&task.id) else {
            return;
        };
        for end in &told.ends {
            if let Some(told) = &end.texts
                && *told != texts
            {
                let found = format!("told {told:?}, the journal says {texts:?}");
                self.violated(Invariant::TextOnce, &task.id, found);
            }
        }
    }
}

fn state_of(record: &Record) -> Option<TaskState> {
    match record {
        Record::Submitted(task) => Some(task.status.state),
        Record::Status(update) => Some(update.status.state),
        Record::Artifact(_) | Record::Hidden(_) => None,
    }
}

/// The client's messages with the numbers of their entries.
fn asked(records: &[Record]) -> Vec<(u64, &Message)> {
    let mut asked = Vec::new();
    for (number, record) in (1..).zip(records) {
        match record {
            Record::Submitted(task) => {
                asked.extend(task.history.iter().map(|message| (number, message)));
            }
            Record::Hidden(Hidden::Message(message)) => asked.push((number, message)),
            Record::Hidden(_) | Record::Status(_) | Record::Artifact(_) => {}
        }
    }
    asked
}

/// The text of each artifact, by the protocol's rule: a chunk replaces unless it says `append`.
fn fold_texts(records: &[Record]) -> BTreeMap<String, String> {
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    for record in records {
        if let Record::Artifact(update) = record {
            let text = texts
                .entry(update.artifact.artifact_id.clone())
                .or_default();
            if !update.append {
                text.clear();
            }
            for part in &update.artifact.parts {
                text.push_str(part.as_text().unwrap_or_default());
            }
        }
    }
    texts
}

/// When a task began to work and when it ended.
fn span(records: &[Record]) -> Span {
    let mut span = Span::default();
    for record in records {
        if let Record::Status(update) = record {
            let at = update.status.timestamp.map(|at| at.as_millis());
            if update.status.state == TaskState::Working {
                span.worked_at = span.worked_at.or(at);
            } else if update.status.state.is_terminal() {
                span.ended_at = span.ended_at.or(at);
            }
        }
    }
    span
}
