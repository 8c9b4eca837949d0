//! What is right about an answer. The checks look for bytes, since parsing would cost more than some servers do.

use a2ad_proto::pb::Message as _;
use a2ad_proto::{StreamResponse, TaskState};
use anyhow::{Context as _, Result, bail, ensure};
use memchr::{memchr, memmem};

/// Events in a stream: the task, `working`, the pieces of one artifact, `completed`.
pub const EVENTS: usize = 20;
/// Pieces of the artifact.
pub const PIECES: usize = EVENTS - 3;
/// Tasks on a page.
pub const PAGE: usize = 50;

const COMPLETED: &[u8] = b"TASK_STATE_COMPLETED";

/// What has to be in a task that was answered.
pub(crate) fn task(body: &[u8], mark: &[u8]) -> Result<()> {
    ensure!(has(body, COMPLETED), "not completed: {}", shown(body));
    // The text stands in the message of the history as well, which proves nothing.
    let artifacts = memmem::find(body, b"\"artifacts\"");
    let history = memmem::find(body, b"\"history\"");
    let echoed = match (artifacts, history) {
        (Some(artifacts), Some(history)) if artifacts < history => {
            has(&body[artifacts..history], mark)
        }
        (Some(artifacts), _) => has(&body[artifacts..], mark),
        (None, _) => false,
    };
    ensure!(echoed, "the text is not echoed: {}", shown(body));
    Ok(())
}

/// What has to be on a page.
pub(crate) fn page(body: &[u8], total: Option<u64>) -> Result<()> {
    let tasks = memmem::find_iter(body, b"\"status\"").count();
    ensure!(tasks == PAGE, "{tasks} tasks on a page: {}", shown(body));
    let name = b"\"totalSize\":";
    let found = memmem::rfind(body, name).map(|at| &body[at + name.len()..]);
    let found = found.with_context(|| format!("no total: {}", shown(body)))?;
    let digits = found
        .trim_ascii_start()
        .iter()
        .take_while(|byte| byte.is_ascii_digit());
    let found = digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0'));
    ensure!(
        total.is_none_or(|total| total == found),
        "{found} tasks in all"
    );
    Ok(())
}

/// The events of one stream, checked as they come.
#[derive(Debug, Default)]
pub(crate) struct Events {
    seen: usize,
}

impl Events {
    /// Takes whole lines out of `body` and checks the events in them.
    pub(crate) fn take_lines(&mut self, body: &mut Vec<u8>) -> Result<()> {
        let mut at = 0;
        while let Some(length) = memchr(b'\n', &body[at..]) {
            if let Some(data) = body[at..at + length].strip_prefix(b"data:") {
                self.event(data)?;
            }
            at += length + 1;
        }
        body.drain(..at);
        Ok(())
    }

    /// All of them, and no more?
    pub(crate) fn finish(&self) -> Result<()> {
        let seen = self.seen;
        ensure!(seen == EVENTS, "{seen} events instead of {EVENTS}");
        Ok(())
    }

    /// The next event, as JSON.
    fn event(&mut self, data: &[u8]) -> Result<()> {
        let right = match self.expected()? {
            Expected::Task => has(data, b"\"task\""),
            Expected::Working => has(data, b"TASK_STATE_WORKING"),
            Expected::Piece(number) => has(data, &piece(number)),
            Expected::Completed => has(data, COMPLETED),
        };
        ensure!(right, "event {} is another: {}", self.seen, shown(data));
        self.seen += 1;
        Ok(())
    }

    /// The next event, as protobuf. Pieces, the most of them, are not decoded.
    pub(crate) fn message(&mut self, message: &[u8]) -> Result<()> {
        let in_state = |state| match StreamResponse::decode(message)? {
            StreamResponse::StatusUpdate(update) => anyhow::Ok(update.status.state == state),
            _ => Ok(false),
        };
        let right = match self.expected()? {
            Expected::Task => matches!(StreamResponse::decode(message)?, StreamResponse::Task(_)),
            Expected::Working => in_state(TaskState::Working)?,
            Expected::Piece(number) => has(message, &piece(number)),
            Expected::Completed => in_state(TaskState::Completed)?,
        };
        ensure!(right, "event {} is another", self.seen);
        self.seen += 1;
        Ok(())
    }

    fn expected(&self) -> Result<Expected> {
        Ok(match self.seen {
            0 => Expected::Task,
            1 => Expected::Working,
            index if index < EVENTS - 1 => Expected::Piece(index - 2),
            index if index == EVENTS - 1 => Expected::Completed,
            _ => bail!("more than {EVENTS} events"),
        })
    }
}

/// What an event has to be.
enum Expected {
    Task,
    Working,
    Piece(usize),
    Completed,
}

/// The text that piece `number` of the artifact begins with, without a format machinery.
fn piece(number: usize) -> [u8; 8] {
    let mut text = *b"piece 00";
    text[6] += (number / 10) as u8;
    text[7] += (number % 10) as u8;
    text
}

fn has(body: &[u8], needle: &[u8]) -> bool {
    memmem::find(body, needle).is_some()
}

/// The beginning of a body, for an error.
pub(crate) fn shown(body: &[u8]) -> String {
    let some = &body[..body.len().min(400)];
    String::from_utf8_lossy(some).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(indices: impl IntoIterator<Item = usize>) -> Result<()> {
        let mut events = Events::default();
        let mut body = b": a comment\n\n".to_vec();
        for index in indices {
            let data = match index {
                0 => "{\"task\":{}}".to_owned(),
                1 => "{\"state\": \"TASK_STATE_WORKING\"}".to_owned(),
                19 => "{\"state\":\"TASK_STATE_COMPLETED\"}".to_owned(),
                _ => format!("{{\"text\":\"piece {:02} of it\"}}", index - 2),
            };
            // In two halves, with either kind of line.
            let text = format!("id: {index}\r\ndata: {data}\n\n");
            let (one, other) = text.split_at(text.len() / 2);
            body.extend_from_slice(one.as_bytes());
            events.take_lines(&mut body)?;
            body.extend_from_slice(other.as_bytes());
            events.take_lines(&mut body)?;
        }
        events.finish()
    }

    #[test]
    fn a_stream_has_each_event_once_and_in_order() {
        stream(0..20).unwrap();
        stream(0..19).unwrap_err();
        stream(1..20).unwrap_err();
        stream((0..20).chain([19])).unwrap_err();
        stream([0, 1, 3, 2].into_iter().chain(4..20)).unwrap_err();
    }

    #[test]
    fn an_echo_stands_in_the_artifact() {
        let state = "\"state\":\"TASK_STATE_COMPLETED\"";
        let right = [
            format!("{{{state},\"artifacts\":[\"x-1\"],\"history\":[\"x-1\"]}}"),
            format!("{{{state},\"history\":[\"x-1\"],\"artifacts\":[\"x-1\"]}}"),
        ];
        for body in right {
            task(body.as_bytes(), b"x-1").unwrap();
        }
        let wrong = [
            format!("{{{state},\"artifacts\":[\"x-2\"],\"history\":[\"x-1\"]}}"),
            format!("{{{state},\"history\":[\"x-1\"],\"artifacts\":[\"x-2\"]}}"),
            format!("{{{state},\"history\":[\"x-1\"]}}"),
            "{\"artifacts\":[\"x-1\"]}".to_owned(),
        ];
        for body in wrong {
            task(body.as_bytes(), b"x-1").unwrap_err();
        }
    }
}
