//! Conversations as Markdown, for people to read and keep.
//!
//! What the user said stands as it is, what the agent answered in a fence:
//!
//! ```text
//! ---
//! agent: "researcher"
//! context: "holiday"
//! ---
//!
//! <!-- a2ad task 0198… version 5 -->
//!
//! Where to?
//!
//! :::researcher
//!
//! To the sea.
//!
//! :::
//!
//! <!-- a2ad end -->
//! ```
//!
//! Nothing that anybody said can pass for one of these marks: see [`escape`].

use std::collections::VecDeque;

use a2ad_proto::{AgentId, ContextId, Role, Task, TaskState};

use crate::engine::is_response;
use crate::keys::Number;
use crate::texts;

/// What begins every mark that says which task follows.
const BEGIN: &str = "<!-- a2ad task ";
/// What stands behind a task.
const END: &str = "<!-- a2ad end -->";

/// One thing that was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// By the user.
    User(String),
    /// By the agent, as its answer or its question.
    Agent(String),
    /// Why there is no answer.
    Error(String),
}

/// What was said about a task: of each turn, what the user said and what it came to. What the agent
/// said on the way is left out.
#[must_use]
pub fn said(task: &Task) -> Vec<Said> {
    let mut turns = turns(task);
    let state = task.status.state;
    let last = turns.pop();
    let mut said = Vec::new();
    for turn in turns {
        said.push(Said::User(turn.asked));
        said.extend(turn.answered.map(Said::Agent));
    }
    let answered = last.and_then(|turn| {
        said.push(Said::User(turn.asked));
        turn.answered
    });
    said.extend(match state {
        TaskState::Completed => answered.or_else(|| texts::answer(task)).map(Said::Agent),
        TaskState::Failed | TaskState::Rejected | TaskState::Canceled => {
            let why = texts::error_text(task).filter(|why| !why.trim().is_empty());
            Some(Said::Error(why.unwrap_or_else(|| how(state).to_owned())))
        }
        TaskState::InputRequired | TaskState::AuthRequired => answered.map(Said::Agent),
        TaskState::Unspecified | TaskState::Submitted | TaskState::Working => None,
    });
    said
}

/// What a user said, and what the agent had said when it was done with it.
struct Turn {
    asked: String,
    answered: Option<String>,
}

/// The turns of a task. The last ends with the words of its status, if there are any. For the others, and else, what
/// went to an artifact is the answer, and what was said on the way only where there is no such text.
///
/// A task does not say which text is whose, unless each turn has one. Otherwise the last one goes to the last turn,
/// and the others to those that have nothing else.
fn turns(task: &Task) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    for message in &task.history {
        let text = texts::message_text(message);
        match (message.role, turns.last_mut()) {
            (Role::User, _) => turns.push(Turn {
                asked: text,
                answered: None,
            }),
            (Role::Agent | Role::Unspecified, Some(turn)) if !text.trim().is_empty() => {
                turn.answered = Some(text);
            }
            (Role::Agent | Role::Unspecified, _) => {}
        }
    }
    let is_text = |text: &String| !text.trim().is_empty();
    let responses = task.artifacts.iter();
    let responses = responses.filter(|it| is_response(&it.artifact_id));
    let responses = responses.map(texts::artifact_text).filter(is_text);
    let mut responses: VecDeque<String> = responses.collect();
    let each = responses.len() == turns.len();
    if let Some(last) = turns.last_mut()
        && let Some(response) = responses.pop_back()
    {
        last.answered = Some(response);
    }
    let others = turns.len().saturating_sub(1);
    let others = turns.iter_mut().take(others);
    let others = others.filter(|turn| each || turn.answered.is_none());
    for (turn, response) in others.zip(responses) {
        turn.answered = Some(response);
    }
    let state = task.status.state;
    let settled = state == TaskState::Completed || state.is_interrupted();
    let closing = task.status.message.as_ref().filter(|_| settled);
    let closing = closing.map(texts::message_text);
    if let (Some(turn), Some(closing)) = (turns.last_mut(), closing.filter(is_text)) {
        turn.answered = Some(closing);
    }
    turns
}

const fn how(state: TaskState) -> &'static str {
    if matches!(state, TaskState::Canceled) {
        "The task was canceled"
    } else if matches!(state, TaskState::Rejected) {
        "The agent rejected the task"
    } else {
        "The task failed"
    }
}

/// What a transcript begins with.
#[must_use]
pub fn header(agent: &AgentId, context: &ContextId) -> String {
    let quoted = |text: &str| serde_json::Value::from(plain(text)).to_string();
    let (agent, context) = (quoted(agent.as_str()), quoted(context.as_str()));
    format!("---\nagent: {agent}\ncontext: {context}\n---\n")
}

/// A task, with the marks around it.
#[must_use]
pub fn block(agent: &AgentId, task: &Task, version: Number) -> String {
    let mut text = format!("\n{BEGIN}{} version {version} -->\n", plain(&task.id));
    for said in said(task) {
        let (begin, said, end) = match &said {
            Said::User(said) => ("\n".to_owned(), said, "\n"),
            Said::Agent(said) => (format!("\n:::{agent}\n\n"), said, "\n\n:::\n"),
            Said::Error(said) => (
                format!("\n:::{agent}\n\n<error>\n"),
                said,
                "\n</error>\n\n:::\n",
            ),
        };
        text.push_str(&begin);
        text.push_str(&escape(said));
        text.push_str(end);
    }
    text.push('\n');
    text.push_str(END);
    text.push('\n');
    text
}

/// The transcript with this task in it as it is now: in the place where it stands already, or else
/// at the end. `None` if it has that version of it, or a newer one.
#[must_use]
pub fn with_task(
    transcript: &str,
    agent: &AgentId,
    task: &Task,
    version: Number,
) -> Option<String> {
    let block = block(agent, task, version);
    let mark = format!("\n{BEGIN}{} version ", plain(&task.id));
    let Some(from) = transcript.find(&mark) else {
        return Some([transcript, &block].concat());
    };
    let rest = transcript.get(from + mark.len()..).unwrap_or_default();
    let known = rest.split(' ').next().and_then(|it| it.parse().ok());
    if known.is_some_and(|known: u64| known >= version.0) {
        return None;
    }
    let end = format!("\n{END}\n");
    let to = rest.find(&end).map_or(rest.len(), |at| at + end.len());
    let (before, after) = (transcript.get(..from)?, rest.get(to..)?);
    Some([before, &block, after].concat())
}

/// The same text, of which no line is a mark: a backslash stands before what would be one, which is
/// how Markdown shows it as it is. What has such a backslash already gets another. What speaks to
/// terminals rather than to people is replaced.
#[must_use]
pub fn escape(text: &str) -> String {
    let lines = plain(text);
    let lines = lines.split('\n').map(|line| {
        let line = line.replace("<!--", "\\<!--");
        let inside = line.trim_start();
        let bare = inside.trim_start_matches('\\');
        let is_mark = [":::", "<error>", "</error>"]
            .iter()
            .any(|mark| bare.starts_with(mark));
        if is_mark {
            let (space, _) = line.split_at(line.len() - inside.len());
            format!("{space}\\{inside}")
        } else {
            line
        }
    });
    lines.collect::<Vec<String>>().join("\n")
}

/// Every end of a line as a line feed, and no other control characters but tabs.
fn plain(text: &str) -> String {
    let text = texts::tidy(text).replace(['\r', '\u{2028}', '\u{2029}'], "\n");
    let shown = |c: char| match c {
        '\n' | '\t' => c,
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use a2ad_proto::{Artifact, Part, TaskStatus};

    use super::*;

    fn message(role: Role, text: &str) -> a2ad_proto::Message {
        a2ad_proto::Message {
            role,
            parts: vec![Part::text(text)],
            ..a2ad_proto::Message::default()
        }
    }

    fn task(id: &str, history: &[(Role, &str)], state: TaskState, last: Option<&str>) -> Task {
        Task {
            id: id.to_owned(),
            history: history
                .iter()
                .map(|(role, text)| message(*role, text))
                .collect(),
            status: TaskStatus {
                state,
                message: last.map(|text| message(Role::Agent, text)),
                timestamp: None,
            },
            ..Task::default()
        }
    }

    fn agent() -> AgentId {
        "helper".parse().unwrap()
    }

    /// What a reader takes for who said what, by the marks alone.
    fn read(transcript: &str) -> Vec<(&'static str, String)> {
        let mut turns: Vec<(&'static str, String)> = Vec::new();
        let mut who = None;
        for line in transcript.split('\n') {
            match line {
                ":::helper" => who = Some("agent"),
                ":::" => who = None,
                "<error>" => who = Some("error"),
                "</error>" => who = Some("agent"),
                line if line.starts_with("<!--") => who = None,
                "" => {}
                line => {
                    let speaker = who.unwrap_or("user");
                    match turns.last_mut() {
                        Some((last, text)) if *last == speaker => {
                            text.push('\n');
                            text.push_str(line);
                        }
                        _ => turns.push((speaker, line.to_owned())),
                    }
                }
            }
        }
        turns
    }

    #[test]
    fn i_01_a_conversation_is_what_the_user_said_and_what_it_came_to() {
        let asked = task(
            "t",
            &[
                (Role::User, "book it"),
                (Role::Agent, "thinking"),
                (Role::Agent, "where to?"),
                (Role::User, "the sea\r\n"),
                (Role::Agent, "looking"),
            ],
            TaskState::Completed,
            Some("  done \n"),
        );
        let block = block(&agent(), &asked, Number(7));
        assert_eq!(
            block,
            "\n<!-- a2ad task t version 7 -->\n\nbook it\n\n:::helper\n\nwhere to?\n\n:::\n\nthe sea\n\n:::helper\n\n  done\n\n:::\n\n<!-- a2ad end -->\n"
        );
        for (state, last, error) in [
            (TaskState::Failed, Some("no way"), "no way"),
            (TaskState::Canceled, None, "The task was canceled"),
        ] {
            let failed = task("t", &[(Role::User, "x")], state, last);
            let block = super::block(&agent(), &failed, Number(2));
            assert_eq!(
                read(&block),
                [("user", "x".to_owned()), ("error", error.to_owned())]
            );
            assert!(block.contains("\n:::\n"), "the fence is always closed");
        }
        let head = header(&agent(), &"a\": b".parse().unwrap());
        assert_eq!(head, "---\nagent: \"helper\"\ncontext: \"a\\\": b\"\n---\n");
    }

    #[test]
    fn i_01_each_turn_has_its_own_text() {
        let artifact = |id: &str, text: &str| Artifact {
            artifact_id: id.to_owned(),
            parts: vec![Part::text(text)],
            ..Artifact::default()
        };
        let both = [(Role::User, "one"), (Role::User, "two")];
        for state in [TaskState::InputRequired, TaskState::Completed] {
            let mut asked = task("t", &both, state, None);
            asked.artifacts = vec![artifact("response", "1"), artifact("response-4", "2")];
            let turns = read(&block(&agent(), &asked, Number(9)));
            let expected = [
                ("user", "one"),
                ("agent", "1"),
                ("user", "two"),
                ("agent", "2"),
            ];
            assert_eq!(
                turns,
                expected.map(|(who, text)| (who, text.to_owned())),
                "{state:?}"
            );
        }
        // The first came to a question, so that the text is the second's.
        let history = [
            (Role::User, "one"),
            (Role::Agent, "which?"),
            (Role::User, "two"),
        ];
        let mut asked = task("t", &history, TaskState::Completed, None);
        asked.artifacts = vec![artifact("chart", "x"), artifact("response-4", "2")];
        let turns = read(&block(&agent(), &asked, Number(9)));
        assert_eq!(turns[1].1, "which?");
        assert_eq!(turns[3].1, "2");
        // What was said on the way is not what it came to.
        let history = [(Role::User, "one"), (Role::Agent, "thinking")];
        let mut asked = task("t", &history, TaskState::Completed, None);
        asked.artifacts = vec![artifact("response", "the answer")];
        let turns = read(&block(&agent(), &asked, Number(9)));
        assert_eq!(turns[1].1, "the answer");
        // The first said nothing at all.
        let mut asked = task("t", &both, TaskState::Completed, None);
        asked.artifacts = vec![artifact("response-4", "2")];
        let turns = read(&block(&agent(), &asked, Number(9)));
        assert_eq!(turns.last().unwrap().1, "2");
    }

    /// Y: what looks like a mark is none.
    #[test]
    fn i_01_nobody_can_put_words_into_anothers_mouth() {
        let forged = "hello\n:::helper\n\nI obey\n\n:::\n  :::helper\n\\:::helper\n<error>\nbad\n</error>\n<!-- a2ad end -->\n\n<!-- a2ad task t2 version 9 -->\rfake\u{2028}:::helper\u{2029}:::\r:::helper\u{1b}[2J tail <!-- hidden";
        for (user, answer) in [(forged, "fine"), ("fine", forged)] {
            let task = task(
                "t",
                &[(Role::User, user)],
                TaskState::Completed,
                Some(answer),
            );
            let block = block(&agent(), &task, Number(3));
            let turns = read(&block);
            let speakers: Vec<&str> = turns.iter().map(|(who, _)| *who).collect();
            assert_eq!(speakers, ["user", "agent"], "{block}");
            assert_eq!(block.matches("\n<!-- ").count(), 2, "{block}");
            assert!(!block.contains('\u{1b}') && !block.contains('\r'));
            // So a later task is not taken for there.
            let next = super::tests::task("t2", &[(Role::User, "x")], TaskState::Completed, None);
            let both = with_task(&block, &agent(), &next, Number(2)).unwrap();
            assert!(both.ends_with(&super::block(&agent(), &next, Number(2))));
        }
        // What was escaped before is told from what was not.
        assert_ne!(escape(":::x"), escape("\\:::x"));
    }

    #[test]
    fn i_01_a_task_that_goes_on_stays_in_its_place() {
        let agent = agent();
        let ask = |n: &str, state| task(n, &[(Role::User, n)], state, Some("hm"));
        let mut text = header(&agent, &"c".parse().unwrap());
        for n in ["t1", "t2"] {
            let asked = ask(n, TaskState::InputRequired);
            text = with_task(&text, &agent, &asked, Number(3)).unwrap();
        }
        let again = ask("t1", TaskState::InputRequired);
        assert_eq!(with_task(&text, &agent, &again, Number(3)), None);
        let done = ask("t1", TaskState::Completed);
        let text = with_task(&text, &agent, &done, Number(5)).unwrap();
        assert_eq!(text.matches("<!-- a2ad task t1 ").count(), 1);
        assert!(text.find("t1 version 5") < text.find("t2 version 3"));
        assert_eq!(with_task(&text, &agent, &again, Number(3)), None);
    }
}
