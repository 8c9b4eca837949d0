//! What a stream showed against the journal.

use a2ad_core::task::{Fold, Record, apply};
use a2ad_proto::TaskState;

use super::super::history::{Frame, Opened, Part, Stream};
use super::super::stored::StoredTask;
use super::{Checker, Invariant};

impl Checker<'_> {
    /// I5, for one stream.
    pub(super) fn stream(&mut self, task: &StoredTask, records: &[Record], stream: &Stream) {
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
pub(super) fn opening_json(records: &[Record], number: u64) -> Option<String> {
    let count = usize::try_from(number).ok()?;
    let mut fold = Fold::default();
    for record in records.get(..count)? {
        apply(&mut fold, record.clone());
    }
    String::from_utf8(fold.snapshot().task_response().into()).ok()
}
