//! What clients see, cut and pasted from bytes that are there already.
//!
//! Folding parses every entry into what it says and writes the outcome as JSON again. Most journals
//! do not need that: a task that was submitted, worked on once, gave whole artifacts and ended is
//! its first entry with the last status in it, and its artifacts stand in their entries as they are.
//! Entries and snapshots are our own JSON, whose members have one order, so it takes little to find
//! the places. Whatever is not plain, or not written as we write it, is left to folding and parsing.

use bytes::Bytes;

use super::entry::Entry;
use super::fold::Snapshot;
use crate::keys::Number;

/// What `entries`, a whole journal, fold to; `None` if only folding tells.
#[must_use]
pub fn splice(entries: &[Entry]) -> Option<Snapshot> {
    let (first, rest) = entries.split_first()?;
    let mut version = Number::FIRST;
    if first.number != version || !first.shape.visible {
        return None;
    }
    let task = Submitted::read(&first.bytes)?;
    let mut status = None;
    let mut begun = false;
    let mut artifacts = Artifacts::default();
    for entry in rest {
        version = version.next();
        if entry.number != version || entry.shape.delta {
            return None;
        }
        match (entry.shape.visible, entry.shape.state) {
            (true, Some(state)) => {
                // What an earlier one said would stand in the history.
                if status.is_some_and(|(_, known)| !is_silent(known)) {
                    return None;
                }
                status = Some((state, task.status(&entry.bytes)?));
            }
            (true, None) => artifacts.add(task.artifact(&entry.bytes)?)?,
            // A second attempt takes back what the first one said.
            (false, _) if entry.bytes.starts_with(b"{\"attempt\":") && !begun => begun = true,
            (false, _) if entry.bytes.starts_with(b"{\"request\":") => {}
            (false, _) => return None,
        }
    }
    // Before the end there is more to remember than what clients see.
    let (_, status) = status.filter(|(state, _)| state.is_terminal())?;
    let body = [task.before, status, task.after].concat();
    Some(Snapshot::ended(version, body.into(), artifacts.finish()))
}

/// A task's first entry.
struct Submitted<'a> {
    /// Its ids as every further entry repeats them.
    id: &'a [u8],
    context_id: &'a [u8],
    /// The task around its status.
    before: &'a [u8],
    after: &'a [u8],
}

impl<'a> Submitted<'a> {
    fn read(entry: &'a [u8]) -> Option<Self> {
        let mut rest = Rest(entry);
        rest.skip(b"{\"task\":")?;
        let task = rest.0;
        rest.skip(b"{\"id\":")?;
        let id = rest.string()?;
        rest.skip(b",\"contextId\":")?;
        let context_id = rest.string()?;
        rest.skip(b",\"status\":")?;
        let before = task.strip_suffix(rest.0)?;
        let plain = is_silent(rest.object()?) && !rest.0.starts_with(b",\"artifacts\":");
        let after = rest.0.strip_suffix(b"}").filter(|_| plain)?;
        Some(Self {
            id,
            context_id,
            before,
            after,
        })
    }

    /// The status in an entry that says nothing else. (Its metadata would be the task's.)
    fn status<'e>(&self, entry: &'e [u8]) -> Option<&'e [u8]> {
        let mut rest = self.update(entry, b"{\"statusUpdate\":{\"taskId\":")?;
        rest.skip(b",\"status\":")?;
        let status = rest.object()?;
        (rest.0 == b"}}").then_some(status)
    }

    /// The artifact in an entry that has all of it.
    fn artifact<'e>(&self, entry: &'e [u8]) -> Option<&'e [u8]> {
        let mut rest = self.update(entry, b"{\"artifactUpdate\":{\"taskId\":")?;
        rest.skip(b",\"artifact\":")?;
        let artifact = rest.object()?;
        (rest.0 == b"}}" || rest.0 == b",\"lastChunk\":true}}").then_some(artifact)
    }

    /// What an entry of this kind says after the ids.
    fn update<'e>(&self, entry: &'e [u8], kind: &[u8]) -> Option<Rest<'e>> {
        let mut rest = Rest(entry);
        rest.skip(kind)?;
        rest.skip(self.id)?;
        rest.skip(b",\"contextId\":")?;
        rest.skip(self.context_id)?;
        Some(rest)
    }
}

/// Whether a status comes without a message.
fn is_silent(status: &[u8]) -> bool {
    let mut rest = Rest(status);
    let state = rest.skip(b"{\"state\":").and_then(|()| rest.string());
    state.is_some() && !rest.0.starts_with(b",\"message\":")
}

/// Adds `body`, a task without artifacts, with at most the latest `length` messages of its history
/// (HIST-02, HIST-03). Adds nothing and says `None` if only parsing tells.
pub(super) fn shorten(body: &[u8], length: usize, out: &mut Vec<u8>) -> Option<()> {
    let mut rest = Rest(body);
    rest.skip(b"{\"id\":")?;
    rest.string()?;
    if rest.skip(b",\"contextId\":").is_some() {
        rest.string()?;
    }
    rest.skip(b",\"status\":")?;
    rest.object()?;
    let before = body.strip_suffix(rest.0)?;
    let mut messages = Vec::new();
    if rest.skip(b",\"history\":[").is_some() {
        loop {
            messages.push(rest.object()?);
            if rest.skip(b",").is_none() {
                break;
            }
        }
        rest.skip(b"]")?;
    }
    out.extend_from_slice(before);
    let surplus = messages.len().saturating_sub(length);
    if let Some((first, others)) = messages.get(surplus..)?.split_first() {
        out.extend_from_slice(b",\"history\":[");
        out.extend_from_slice(first);
        for message in others {
            out.push(b',');
            out.extend_from_slice(message);
        }
        out.push(b']');
    }
    out.extend_from_slice(rest.0);
    Some(())
}

/// Artifacts as a JSON array, as far as they are there.
#[derive(Default)]
struct Artifacts<'a> {
    json: Vec<u8>,
    ids: Vec<&'a [u8]>,
}

impl<'a> Artifacts<'a> {
    /// Adds one, unless it would replace another.
    fn add(&mut self, artifact: &'a [u8]) -> Option<()> {
        let mut rest = Rest(artifact);
        rest.skip(b"{\"artifactId\":")?;
        let id = rest.string()?;
        if self.ids.contains(&id) {
            return None;
        }
        self.json.reserve(artifact.len() + 2);
        self.json
            .push(if self.ids.is_empty() { b'[' } else { b',' });
        self.json.extend_from_slice(artifact);
        self.ids.push(id);
        Some(())
    }

    fn finish(mut self) -> Option<Bytes> {
        if self.ids.is_empty() {
            return None;
        }
        self.json.push(b']');
        Some(self.json.into())
    }
}

/// What is left of some JSON without white space.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn skip(&mut self, expected: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(expected)?;
        Some(())
    }

    /// A string, with its quotes.
    fn string(&mut self) -> Option<&'a [u8]> {
        let end = 1 + string_end(self.0.strip_prefix(b"\"")?)?;
        self.take(end)
    }

    /// An object, with its braces.
    fn object(&mut self) -> Option<&'a [u8]> {
        if !self.0.starts_with(b"{") {
            return None;
        }
        let (mut at, mut depth) = (0, 0_usize);
        loop {
            let byte = *self.0.get(at)?;
            at += 1;
            match byte {
                b'"' => at += string_end(self.0.get(at..)?)?,
                b'{' => depth += 1,
                b'}' => {
                    depth -= 1;
                    if depth == 0 {
                        return self.take(at);
                    }
                }
                _ => {}
            }
        }
    }

    fn take(&mut self, end: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(end)?;
        self.0 = rest;
        Some(taken)
    }
}

/// Where a string ends, given what follows its opening quote.
fn string_end(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += text
            .get(at..)?
            .iter()
            .position(|byte| matches!(byte, b'"' | b'\\'))?;
        if text.get(at) == Some(&b'"') {
            return Some(at + 1);
        }
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use a2ad_proto::{
        Artifact, Message, Metadata, Part, Task, TaskArtifactUpdateEvent, TaskState, TaskStatus,
        TaskStatusUpdateEvent, Timestamp,
    };
    use proptest::prelude::*;

    use super::*;
    use crate::keys::Attempt;
    use crate::task::{Fold, Hidden, Record, apply};

    fn status(state: TaskState, said: Option<&str>) -> TaskStatus {
        TaskStatus {
            state,
            message: said.map(|text| Message {
                parts: vec![Part::text(text)],
                ..Message::default()
            }),
            timestamp: Some(Timestamp::from_millis(1_000)),
        }
    }

    fn submitted(text: &str) -> Record {
        Record::Submitted(Task {
            id: "t".to_owned(),
            context_id: "c".to_owned(),
            status: status(TaskState::Submitted, None),
            history: vec![Message {
                message_id: "m".to_owned(),
                parts: vec![Part::text(text)],
                ..Message::default()
            }],
            ..Task::default()
        })
    }

    fn update(state: TaskState, said: Option<&str>, metadata: Option<Metadata>) -> Record {
        Record::Status(TaskStatusUpdateEvent {
            task_id: "t".to_owned(),
            context_id: "c".to_owned(),
            status: status(state, said),
            metadata,
        })
    }

    fn artifact(id: &str, text: &str, append: bool, last_chunk: bool) -> Record {
        Record::Artifact(TaskArtifactUpdateEvent {
            task_id: "t".to_owned(),
            context_id: "c".to_owned(),
            artifact: Artifact {
                artifact_id: id.to_owned(),
                parts: vec![Part::text(text)],
                ..Artifact::default()
            },
            append,
            last_chunk,
            metadata: None,
        })
    }

    fn attempt(attempt: Attempt) -> Record {
        let turn = Number::FIRST;
        Record::Hidden(Hidden::Attempt { turn, attempt })
    }

    /// Whether it is spliced; if so, it is what folding makes of it.
    fn is_plain(records: Vec<Record>) -> bool {
        let numbers = std::iter::successors(Some(Number::FIRST), |number| Some(number.next()));
        let entries: Vec<Entry> = numbers
            .zip(&records)
            .map(|(number, record)| Entry::encode(number, record))
            .collect();
        let mut fold = Fold::default();
        for record in records {
            apply(&mut fold, record);
        }
        let spliced = splice(&entries);
        let plain = spliced.is_some();
        assert!(!plain || spliced == Some(fold.snapshot()), "{entries:?}");
        plain
    }

    proptest! {
        #[test]
        fn a_task_that_was_worked_on_once_takes_no_folding(
            texts in proptest::collection::vec(any::<String>(), 4),
            last_chunk in any::<bool>(),
        ) {
            let other = format!("a{}", texts[2]);
            let plain = is_plain(vec![
                submitted(&texts[0]),
                attempt(Attempt::FIRST),
                update(TaskState::Working, None, None),
                artifact("a", &texts[1], false, last_chunk),
                artifact(&other, &texts[3], false, true),
                update(TaskState::Completed, Some(&texts[2]), None),
            ]);
            prop_assert_eq!(plain, other != "a");
        }
    }

    #[test]
    fn what_braces_and_quotes_stand_in_texts_does_not_matter() {
        for text in ["", "}", "{", "\"}", "\\", "\\\"", "\"artifacts\":", "\n}}"] {
            assert!(is_plain(vec![
                submitted(text),
                artifact("a", text, false, false),
                update(TaskState::Failed, Some(text), None),
            ]));
        }
    }

    proptest! {
        #[test]
        fn a_history_is_shortened_as_if_it_were_parsed(
            texts in proptest::collection::vec(any::<String>(), 0..5),
            metadata in any::<bool>(),
            length in 0_usize..6,
        ) {
            let mut task = Task {
                id: texts.concat(),
                context_id: texts.first().cloned().unwrap_or_default(),
                status: status(TaskState::Working, texts.last().map(String::as_str)),
                metadata: metadata.then(|| serde_json::from_str("{\"history\":[]}").unwrap()),
                ..Task::default()
            };
            task.history = texts
                .iter()
                .map(|text| Message {
                    parts: vec![Part::text(text)],
                    ..Message::default()
                })
                .collect();
            let mut shortened = Vec::new();
            prop_assert!(shorten(&a2ad_proto::to_json(&task), length, &mut shortened).is_some());
            task.history.drain(..texts.len().saturating_sub(length));
            prop_assert_eq!(shortened, a2ad_proto::to_json(&task));
        }
    }

    #[test]
    fn what_is_not_plain_is_left_to_folding() {
        let said = Some("so far");
        let metadata: Metadata = serde_json::from_str("{\"of\":\"the task\"}").unwrap();
        let between = [
            vec![],
            vec![update(TaskState::Working, said, None)],
            vec![update(TaskState::Working, None, Some(metadata))],
            vec![artifact("a", "x", true, false)],
            vec![
                artifact("a", "x", false, false),
                artifact("a", "y", false, true),
            ],
            vec![attempt(Attempt::FIRST), attempt(Attempt::FIRST.next())],
            vec![Record::Hidden(Hidden::Message(Message::default()))],
            vec![Record::Hidden(Hidden::Replied {
                turn: Number::FIRST,
            })],
        ];
        for (at, records) in between.into_iter().enumerate() {
            let mut all = vec![submitted("hi")];
            all.extend(records);
            all.push(update(TaskState::Completed, said, None));
            assert_eq!(is_plain(all), at == 0, "{at}");
        }
        assert!(!is_plain(vec![submitted("hi")]));
        assert!(!is_plain(vec![
            submitted("hi"),
            update(TaskState::InputRequired, said, None)
        ]));
    }
}
