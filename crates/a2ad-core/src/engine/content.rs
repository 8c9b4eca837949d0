//! Whether an agent can take what a message brings, and give what its sender can use.

use std::fmt::Write as _;

use a2ad_proto::{Message, Part, PartContent, Role, SendMessageRequest, Violations};
use sha2::{Digest, Sha256};

use super::EngineError;
use crate::agent::AgentPolicy;
use crate::behaviour::UnsupportedInput;
use crate::modes::{Modes, is_range, media_type};

/// How many parts are blamed by name; the first is enough to look for the others.
const BLAMED_MAX: usize = 16;
/// How much of a media type is repeated to whoever sent it.
const SHOWN_MAX: usize = 80;

/// Refuses a request whose parts the agent does not take (SEND-09), or to which it cannot answer
/// with anything that the client takes (SEND-08).
pub(super) fn check_content(
    policy: &AgentPolicy,
    request: &SendMessageRequest,
) -> Result<(), EngineError> {
    let mut violations = Violations::default();
    if let Some(message) = &request.message
        && policy.behaviour.unsupported_input == UnsupportedInput::Error
    {
        check_parts(&policy.input_modes, message, &mut violations);
    }
    let output = &policy.output_modes;
    if let Some(asked) = &request.configuration
        && !output.include_one_of(&asked.accepted_output_modes)
    {
        violations.add(
            "configuration.acceptedOutputModes",
            format!("This agent answers with none of these, but with {output}"),
        );
    }
    if violations.0.is_empty() {
        return Ok(());
    }
    Err(EngineError::ContentTypeNotSupported(violations))
}

fn check_parts(input: &Modes, message: &Message, violations: &mut Violations) {
    let refused = message
        .parts
        .iter()
        .enumerate()
        .map(|(at, part)| (at, media_type(part)))
        .filter(|(_, mode)| !input.include_part(mode));
    for (at, mode) in refused.take(BLAMED_MAX) {
        let shown: String = mode.chars().take(SHOWN_MAX).collect();
        let what = if is_range(mode) {
            format!("{shown} is a range of media types, and a part is of one")
        } else {
            format!("This agent does not take {shown}, but {input}")
        };
        violations.add(format!("message.parts[{at}].mediaType"), what);
    }
}

/// Whether there is nothing in a message that the agent could work on.
pub(super) fn nothing_in(policy: &AgentPolicy, message: &Message) -> bool {
    let ignores = policy.behaviour.unsupported_input == UnsupportedInput::Ignore;
    message.parts.iter().all(|part| match &part.content {
        PartContent::Text(text) if text.trim().is_empty() => true,
        PartContent::Text(_) | PartContent::Raw(_) | PartContent::Url(_) | PartContent::Data(_) => {
            ignores && !policy.input_modes.include_part(media_type(part))
        }
    })
}

/// A message as the agent gets it, if that is not as it was sent: parts that it does not take are
/// left out or described, as its owner chose.
pub(super) fn as_shown(policy: &AgentPolicy, message: &Message) -> Option<Message> {
    let rule = policy.behaviour.unsupported_input;
    let taken = |part: &Part| policy.input_modes.include_part(media_type(part));
    if rule == UnsupportedInput::Error || message.parts.iter().all(taken) {
        return None;
    }
    let parts = message.parts.iter().filter_map(|part| match rule {
        _ if taken(part) => Some(part.clone()),
        UnsupportedInput::Manifest => Some(Part::text(manifest(part))),
        UnsupportedInput::Error | UnsupportedInput::Ignore => None,
    });
    Some(Message {
        parts: parts.collect(),
        message_id: message.message_id.clone(),
        context_id: message.context_id.clone(),
        task_id: message.task_id.clone(),
        metadata: message.metadata.clone(),
        extensions: message.extensions.clone(),
        reference_task_ids: message.reference_task_ids.clone(),
        role: message.role,
    })
}

/// The same for the messages before it.
pub(super) fn show_history(policy: &AgentPolicy, history: &mut [Message]) {
    if policy.behaviour.unsupported_input == UnsupportedInput::Error {
        return;
    }
    for said in history.iter_mut().filter(|said| said.role == Role::User) {
        if let Some(shown) = as_shown(policy, said) {
            *said = shown;
        }
    }
}

/// What an agent that cannot take a part is told of it.
fn manifest(part: &Part) -> String {
    let mut text = "A2A multimodal attachment:".to_owned();
    let mut line = |name: &str, value: &str| {
        // One line each, whatever somebody wrote into a name.
        let value: String = value
            .chars()
            .map(|it| if it.is_control() { '_' } else { it })
            .take(SHOWN_MAX * 4)
            .collect();
        let _infallible = write!(text, "\n- {name}={value}");
    };
    if !part.filename.is_empty() {
        line("filename", &part.filename);
    }
    line("mediaType", media_type(part));
    let (bytes, source) = match &part.content {
        PartContent::Text(text) => (text.as_bytes(), "inline"),
        PartContent::Raw(bytes) => (&bytes[..], "inline"),
        PartContent::Data(data) => (data.as_str().as_bytes(), "data"),
        PartContent::Url(url) => {
            let local = url.starts_with("file:");
            line("source", if local { "file uri" } else { "uri" });
            line("uri", url);
            return text;
        }
    };
    line("byteSize", &bytes.len().to_string());
    let digest = Sha256::digest(bytes);
    let digest: String = digest.iter().map(|it| format!("{it:02x}")).collect();
    line("sha256", &digest);
    line("source", source);
    text
}
