//! What was said, as plain text for people: monitors and transcripts.

use a2ad_proto::{Artifact, Message, Part, Role, Task, TaskState};

use crate::engine::is_response;

/// The text of a message: its parts of text, one below the other. Other parts are left out.
#[must_use]
pub fn message_text(message: &Message) -> String {
    let texts: Vec<&str> = message.parts.iter().filter_map(Part::as_text).collect();
    tidy(&texts.join("\n"))
}

/// The text of an artifact. Its parts are what was streamed, so they run on.
#[must_use]
pub fn artifact_text(artifact: &Artifact) -> String {
    let texts: Vec<&str> = artifact.parts.iter().filter_map(Part::as_text).collect();
    tidy(&texts.concat())
}

/// One piece of what the agent said, and the id of the message or artifact that it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// The message's or artifact's id.
    pub id: &'a str,
    /// The text, which is not blank.
    pub text: String,
}

/// What the agent said so far: its messages in order, then its artifacts. Why a task ended without
/// an answer is not among it; see [`error_text`].
#[must_use]
pub fn chunks(task: &Task) -> Vec<Chunk<'_>> {
    let last = task.status.message.as_ref();
    let last = last.filter(|_| !ended_badly(task.status.state));
    let messages = task.history.iter().chain(last);
    let messages = messages
        .filter(|said| said.role == Role::Agent)
        .map(|said| (said.message_id.as_str(), message_text(said)));
    let artifacts = task.artifacts.iter();
    let artifacts = artifacts.map(|it| (it.artifact_id.as_str(), artifact_text(it)));
    messages
        .chain(artifacts)
        .filter(|(_, text)| !text.trim().is_empty())
        .map(|(id, text)| Chunk { id, text })
        .collect()
}

/// What a completed task came to: what the agent said at its end, or else its artifacts, or else
/// what it said last. Nothing before that.
#[must_use]
pub fn answer(task: &Task) -> Option<String> {
    if task.status.state != TaskState::Completed {
        return None;
    }
    let said = |text: &String| !text.trim().is_empty();
    let closing = task.status.message.as_ref().map(message_text).filter(said);
    let artifacts = || {
        // Of the texts of its turns, the last is the answer.
        let mut ids = task.artifacts.iter().map(|it| it.artifact_id.as_str());
        let last = ids.rfind(|id| is_response(id));
        let is_earlier = |id: &str| is_response(id) && Some(id) != last;
        let shown = task.artifacts.iter();
        let shown = shown.filter(|it| !is_earlier(&it.artifact_id));
        let texts: Vec<String> = shown.map(artifact_text).collect();
        let texts: Vec<String> = texts.into_iter().filter(said).collect();
        (!texts.is_empty()).then(|| texts.join("\n"))
    };
    let earlier = || {
        let mut agents = task.history.iter().rev();
        let last = agents.find(|message| message.role == Role::Agent);
        last.map(message_text).filter(said)
    };
    closing.or_else(artifacts).or_else(earlier)
}

/// Why a task ended without an answer, as far as that was said.
#[must_use]
pub fn error_text(task: &Task) -> Option<String> {
    let said = task.status.message.as_ref();
    said.filter(|_| ended_badly(task.status.state))
        .map(message_text)
}

const fn ended_badly(state: TaskState) -> bool {
    matches!(
        state,
        TaskState::Failed | TaskState::Canceled | TaskState::Rejected
    )
}

/// The same text with line feeds alone as line ends, and without white space at its end.
#[must_use]
pub fn tidy(text: &str) -> String {
    let mut text = text.replace("\r\n", "\n");
    text.truncate(text.trim_end().len());
    text
}

#[cfg(test)]
mod tests {
    use a2ad_proto::TaskStatus;

    use super::*;

    fn message(role: Role, id: &str, texts: &[&str]) -> Message {
        Message {
            message_id: id.to_owned(),
            role,
            parts: texts.iter().map(|text| Part::text(*text)).collect(),
            ..Message::default()
        }
    }

    fn task(state: TaskState, said: Option<Message>) -> Task {
        Task {
            status: TaskStatus {
                state,
                message: said,
                timestamp: None,
            },
            history: vec![
                message(Role::User, "u", &["question"]),
                message(Role::Agent, "a1", &["first", "pass"]),
                message(Role::Agent, "a2", &[" \r\n"]),
            ],
            artifacts: vec![Artifact {
                artifact_id: "response".to_owned(),
                parts: vec![Part::text("  one "), Part::text("two\r\n")],
                ..Artifact::default()
            }],
            ..Task::default()
        }
    }

    /// K-09: line ends and trailing white space are put right, what leads stays, and a blank pass is none.
    #[test]
    fn k_09_what_the_agent_said_is_put_right() {
        let task = task(TaskState::Working, None);
        let said: Vec<(&str, String)> = chunks(&task)
            .into_iter()
            .map(|chunk| (chunk.id, chunk.text))
            .collect();
        let expected = [("a1", "first\npass"), ("response", "  one two")];
        assert_eq!(said, expected.map(|(id, text)| (id, text.to_owned())));
        assert_eq!(answer(&task), None, "it has not ended");
    }

    #[test]
    fn an_answer_is_what_stands_last() {
        let mut done = task(
            TaskState::Completed,
            Some(message(Role::Agent, "z", &["done"])),
        );
        assert_eq!(answer(&done).as_deref(), Some("done"));
        done.status.message = None;
        assert_eq!(answer(&done).as_deref(), Some("  one two"));
        done.artifacts.clear();
        done.history.pop();
        assert_eq!(answer(&done).as_deref(), Some("first\npass"));
        done.history.clear();
        assert_eq!(answer(&done), None);
    }

    #[test]
    fn why_a_task_failed_is_no_answer() {
        let failed = task(
            TaskState::Failed,
            Some(message(Role::Agent, "z", &["could not"])),
        );
        assert_eq!(error_text(&failed).as_deref(), Some("could not"));
        assert!(chunks(&failed).iter().all(|chunk| chunk.id != "z"));
        assert_eq!(answer(&failed), None);
    }
}
