//! Whether an agent can take what a message brings, and give what its sender can use.

use a2ad_proto::{Message, SendMessageRequest, Violations};

use super::EngineError;
use crate::agent::AgentPolicy;
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
    if let Some(message) = &request.message {
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
