//! The snapshot of a plain journal, cut and pasted from the bytes of its entries.
//!
//! Folding parses every entry into what it says and writes the outcome as JSON again. Most journals
//! do not need that: a task that was submitted, worked on once, gave whole artifacts and ended is
//! its first entry with the last status in it, and its artifacts stand in their entries as they are.
//! Entries are our own JSON, whose members have one order, so it takes little to find the places.
//! Whatever is not plain, or not written as we write it, is left to [`apply`](super::apply).

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
                status = Some((state, read_status(&entry.bytes)?));
            }
            (true, None) => artifacts.add(read_artifact(&entry.bytes)?)?,
            // A second attempt takes back what the first one said.
            (false, _) if entry.bytes.starts_with(b"{\"attempt\":") && !begun => begun = true,
            (false, _) if entry.bytes.starts_with(b"{\"request\":") => {}
            (false, _) => return None,
        }
    }
    // Before the end there is more to remember than what clients see.
    let (_, status) = status.filter(|(state, _)| state.is_terminal())?;
    Some(Snapshot::ended(
        version,
        with_status(&first.bytes, status)?,
        artifacts.finish(),
    ))
}

/// The first entry's task with another status.
fn with_status(first: &[u8], status: &[u8]) -> Option<Bytes> {
    let mut rest = Rest(first);
    rest.skip(b"{\"task\":")?;
    let task = rest.0;
    rest.skip(b"{\"id\":")?;
    rest.string()?;
    if rest.skip(b",\"contextId\":").is_some() {
        rest.string()?;
    }
    rest.skip(b",\"status\":")?;
    let before = task.strip_suffix(rest.0)?;
    let plain = is_silent(rest.object()?) && !rest.0.starts_with(b",\"artifacts\":");
    let after = rest.0.strip_suffix(b"}").filter(|_| plain)?;
    Some([before, status, after].concat().into())
}

/// Whether a status comes without a message.
fn is_silent(status: &[u8]) -> bool {
    let mut rest = Rest(status);
    let state = rest.skip(b"{\"state\":").and_then(|()| rest.string());
    state.is_some() && !rest.0.starts_with(b",\"message\":")
}

/// The status in an entry that says nothing else. (Its metadata would be the task's.)
fn read_status(entry: &[u8]) -> Option<&[u8]> {
    let mut rest = Rest(entry);
    rest.skip(b"{\"statusUpdate\":{\"taskId\":")?;
    rest.string()?;
    rest.skip(b",\"contextId\":")?;
    rest.string()?;
    rest.skip(b",\"status\":")?;
    let status = rest.object()?;
    (rest.0 == b"}}").then_some(status)
}

/// The artifact in an entry that has all of it.
fn read_artifact(entry: &[u8]) -> Option<&[u8]> {
    let mut rest = Rest(entry);
    rest.skip(b"{\"artifactUpdate\":{\"taskId\":")?;
    rest.string()?;
    rest.skip(b",\"contextId\":")?;
    rest.string()?;
    rest.skip(b",\"artifact\":")?;
    let artifact = rest.object()?;
    (rest.0 == b"}}" || rest.0 == b",\"lastChunk\":true}}").then_some(artifact)
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
            id: text.to_owned(),
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
