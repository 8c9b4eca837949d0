//! The oracle: what clients were told against what the store holds.
//!
//! It folds texts and frames by itself, from journal entries alone, so that a mistake in the
//! engine's own folding or streaming cannot hide behind itself.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

use a2ad_core::task::{Broken, Fold, Hidden, Record, apply};
use a2ad_proto::{Message, TaskState};

use super::history::{Frame, History, Opened, Part, Stream, Takeover};
use super::stored::StoredTask;

/// How many violations of each invariant are kept; a broken build breaks everywhere.
const VIOLATIONS_KEPT: usize = 10;

/// What must hold, whatever is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Invariant {
    /// I1: an acknowledged task is there, with the told id, owner and context.
    NothingLost,
    /// I2: journal numbers are 1, 2, … n, and the head's version is n.
    NoGap,
    /// I3: exactly one terminal entry, nothing after it, and it says what clients were told.
    OneEnd,
    /// I4: one task per message.
    OneTaskPerMessage,
    /// I5: streams show the journal's visible entries, byte for byte, none missing or repeated.
    ExactStreams,
    /// I6: what was answered is what was asked, each word once.
    TextOnce,
    /// I7: in a context and in a task one turn runs at a time, in order.
    InOrder,
    /// I8: the database is sound.
    Sound,
    /// I9: no turn is left over once everything has settled.
    NothingLeftOver,
    /// I10: what a dead instance worked on goes on elsewhere in time. (How soon cut work goes on
    /// after a restart of the only instance is only reported.)
    TakenOver,
    /// I11: no answer that should not have been given: an internal error, a stall, a task that a
    /// list leaves out.
    NoSurprise,
}

impl Invariant {
    /// Its number, as in the report.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::NothingLost => "I1",
            Self::NoGap => "I2",
            Self::OneEnd => "I3",
            Self::OneTaskPerMessage => "I4",
            Self::ExactStreams => "I5",
            Self::TextOnce => "I6",
            Self::InOrder => "I7",
            Self::Sound => "I8",
            Self::NothingLeftOver => "I9",
            Self::TakenOver => "I10",
            Self::NoSurprise => "I11",
        }
    }
}

/// Something that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What was to hold.
    pub invariant: Invariant,
    /// About which task, context or message.
    pub about: String,
    /// What was found.
    pub found: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {:?}: {}: {}",
            self.invariant.code(),
            self.invariant,
            self.about,
            self.found
        )
    }
}

/// What a check came to.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The first violations of each kind.
    pub violations: Vec<Violation>,
    /// How many there are in all, by invariant.
    pub violated: BTreeMap<Invariant, u64>,
    /// Tasks looked at.
    pub tasks: u64,
    /// Journal entries looked at.
    pub entries: u64,
    /// Frames compared.
    pub frames: u64,
    /// Attempts that a kill cut off and that were taken over.
    pub recovered: u64,
    /// The most attempts that one turn took.
    pub attempts_max: u64,
}

impl Findings {
    /// How many violations there are in all.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.violated.values().sum()
    }

    /// Keeps a violation, unless it is known or there are enough of its kind.
    pub(super) fn keep(&mut self, violation: Violation) {
        let same_kind = self
            .violations
            .iter()
            .filter(|known| known.invariant == violation.invariant);
        if same_kind.count() < VIOLATIONS_KEPT && !self.violations.contains(&violation) {
            self.violations.push(violation);
        }
    }
}

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

#[derive(Clone, Copy, Debug, Default)]
struct Span {
    worked_at: Option<i64>,
    ended_at: Option<i64>,
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

    /// I2, and the records if they can be read.
    fn numbers_and_records(&mut self, task: &StoredTask) -> Option<Vec<Record>> {
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
    fn identity(&mut self, task: &StoredTask, records: &[Record]) {
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
    fn end(&mut self, task: &StoredTask, records: &[Record]) {
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
    fn messages(&mut self, task: &StoredTask, records: &[Record]) {
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
    fn turns(&mut self, task: &StoredTask, records: &[Record]) {
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
    fn texts(&mut self, task: &StoredTask, records: &[Record]) {
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

    /// I5, for one stream.
    fn stream(&mut self, task: &StoredTask, records: &[Record], stream: &Stream) {
        let visible: Vec<Frame> = task
            .entries
            .iter()
            .filter(|entry| entry.shape.visible)
            .map(|entry| Frame {
                number: entry.number.0,
                json: String::from_utf8_lossy(&entry.bytes).into_owned(),
            })
            .collect();
        let mut newest: Option<u64> = None;
        for part in &stream.parts {
            self.findings.frames += part.frames.len() as u64;
            if let Opened::After(after) = part.opened
                && newest.is_some_and(|newest| newest != after)
            {
                let found = format!("resumed after {after}, not after {newest:?}");
                self.violated(Invariant::ExactStreams, &task.id, found);
            }
            if let Some(wrong) = compare(part, &visible, records, task.state) {
                self.violated(Invariant::ExactStreams, &task.id, wrong);
            }
            newest = part.frames.last().map(|frame| frame.number).or(newest);
        }
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

/// What is wrong with a part of a stream, if anything is.
fn compare(part: &Part, visible: &[Frame], records: &[Record], state: TaskState) -> Option<String> {
    let mut frames = part.frames.iter();
    let after = match part.opened {
        Opened::FromStart => 0,
        Opened::After(after) => after,
        Opened::Now => {
            let opening = frames.next()?;
            let wanted = opening_json(records, opening.number);
            if wanted.as_ref() != Some(&opening.json) {
                return Some(format!(
                    "the opening at {} shows {}, the journal makes {wanted:?}",
                    opening.number, opening.json
                ));
            }
            opening.number
        }
    };
    let mut due = visible.iter().filter(|frame| frame.number > after);
    for frame in frames {
        match due.next() {
            Some(wanted) if wanted == frame => {}
            Some(wanted) if wanted.number == frame.number => {
                return Some(format!(
                    "frame {} is not its entry: {} but {}",
                    frame.number, frame.json, wanted.json
                ));
            }
            Some(wanted) => {
                return Some(format!(
                    "{:?}: frame {} came where {} was due",
                    part.opened, frame.number, wanted.number
                ));
            }
            None => {
                return Some(format!(
                    "{:?}: frame {} came after the last entry",
                    part.opened, frame.number
                ));
            }
        }
    }
    if part.ended
        && let Some(missing) = due.next()
    {
        return Some(format!(
            "{:?}: it ended before frame {}",
            part.opened, missing.number
        ));
    }
    if part.ended && !state.is_terminal() {
        return Some(format!("{:?}: it ended, the task did not", part.opened));
    }
    None
}

/// The frame that shows the task as of entry `number`.
fn opening_json(records: &[Record], number: u64) -> Option<String> {
    let count = usize::try_from(number).ok()?;
    let mut fold = Fold::default();
    for record in records.get(..count)? {
        apply(&mut fold, record.clone());
    }
    String::from_utf8(fold.snapshot().task_response().into()).ok()
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

#[cfg(test)]
mod tests;
