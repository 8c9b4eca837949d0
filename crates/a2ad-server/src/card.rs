//! Agent cards, from what the configuration says of agents.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use a2ad_core::agent::AgentPolicy;
use a2ad_core::modes::Modes;
use a2ad_proto::{
    AgentCapabilities, AgentCard, AgentExtension, AgentSkill, REPLAY, SecurityScheme,
};

use crate::config::{AgentConfig, CardSource, Skill};
use crate::error::StartError;

/// What an agent takes and gives that does not say: all of our back ends can do with anything.
const MODES: [&str; 3] = ["text/plain", "application/json", "*/*"];

/// The card of `agent`, but for where it is served.
///
/// # Errors
/// If its card file cannot be read, or what is written there cannot be served.
pub(crate) fn card(agent: &AgentConfig) -> Result<AgentCard, StartError> {
    let wrong = |what: String| StartError::Card {
        agent: agent.id.clone(),
        what,
    };
    let written = written(agent)?;
    if !written.supported_interfaces.is_empty() || !written.signatures.is_empty() {
        tracing::warn!(
            agent = %agent.id,
            "the card's supportedInterfaces and signatures are left out: where the agent is served follows from `listen` and `public_url`"
        );
    }
    let unknown = |(_, scheme): &(&String, &SecurityScheme)| **scheme == SecurityScheme::Unset;
    if let Some((name, _)) = written.security_schemes.iter().find(unknown) {
        return Err(wrong(format!(
            "securitySchemes.{name}: none of the kinds that A2A 1.0 knows"
        )));
    }
    let capabilities = written.capabilities;
    let push = agent.push.or(capabilities.push_notifications);
    if push == Some(true) {
        return Err(wrong(
            "push notifications are not supported yet; set `push: false`".to_owned(),
        ));
    }
    let mut extensions = capabilities.extensions;
    for (at, extension) in extensions.iter().enumerate() {
        let uri = &extension.uri;
        let in_header = |c: char| c.is_ascii_graphic() && c != ',';
        if uri.is_empty() || !uri.chars().all(in_header) {
            return Err(wrong(format!(
                "capabilities.extensions[{at}].uri: `{uri}` is no URI"
            )));
        }
    }
    if extensions.iter().all(|known| known.uri != REPLAY) {
        extensions.push(AgentExtension {
            uri: REPLAY.to_owned(),
            description: "A stream can be resumed after any event: Last-Event-ID, as header or gRPC metadata, or \
                          afterSequence in the query. Events without an SSE id carry their number in their \
                          metadata under this name, as seq."
                .to_owned(),
            ..AgentExtension::default()
        });
    }
    let described = agent.backend.as_ref().map(|backend| backend.description());
    let skills = skills(agent, written.skills);
    if let Some(skill) = skills.iter().find(|skill| skill.id.is_empty()) {
        return Err(wrong(format!("the skill `{}` has no id", skill.name)));
    }
    Ok(AgentCard {
        name: first([
            agent.name.as_deref(),
            Some(&written.name),
            Some(agent.id.as_str()),
        ]),
        description: first([
            agent.description.as_deref(),
            Some(&written.description),
            described,
            Some(&format!("The agent {}.", agent.id)),
        ]),
        version: first([
            agent.version.as_deref(),
            Some(&written.version),
            Some("1.0.0"),
        ]),
        supported_interfaces: Vec::new(),
        capabilities: AgentCapabilities {
            streaming: Some(agent.streaming.or(capabilities.streaming).unwrap_or(true)),
            push_notifications: Some(false),
            extensions,
            extended_agent_card: Some(
                agent
                    .extended_card
                    .or(capabilities.extended_agent_card)
                    .unwrap_or(false),
            ),
        },
        default_input_modes: or_any(written.default_input_modes),
        default_output_modes: or_any(written.default_output_modes),
        skills,
        signatures: Vec::new(),
        ..written
    })
}

/// Tells the engine which media types the card speaks of: those of the card for skills that name none, and those
/// of the skills (SEND-08, SEND-09).
pub(crate) fn apply_modes(card: &AgentCard, policy: &mut AgentPolicy) {
    let all = |default: &[String], of_skill: fn(&AgentSkill) -> &Vec<String>| -> Modes {
        let of_skills = card.skills.iter().flat_map(of_skill);
        default.iter().chain(of_skills).cloned().collect()
    };
    policy.input_modes = all(&card.default_input_modes, |skill| &skill.input_modes);
    policy.output_modes = all(&card.default_output_modes, |skill| &skill.output_modes);
}

fn written(agent: &AgentConfig) -> Result<AgentCard, StartError> {
    let path = match &agent.card {
        None => return Ok(AgentCard::default()),
        Some(CardSource::Inline(card)) => return Ok((**card).clone()),
        Some(CardSource::File(path)) => path,
    };
    let text = read(path).map_err(|source| StartError::CardFile {
        path: path.clone(),
        source,
    })?;
    CardSource::parse(&text).map_err(|source| StartError::CardYaml {
        path: path.clone(),
        source,
    })
}

/// No card is longer.
const FILE_BYTES_MAX: u64 = 1 << 20;

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let mut file = File::open(path)?.take(FILE_BYTES_MAX + 1);
    if file.read_to_string(&mut text)? as u64 > FILE_BYTES_MAX {
        return Err(io::Error::other("it is larger than 1 MiB"));
    }
    Ok(text)
}

/// The first text that says anything.
fn first<const N: usize>(texts: [Option<&str>; N]) -> String {
    let mut said = texts.into_iter().flatten().filter(|text| !text.is_empty());
    said.next().unwrap_or_default().to_owned()
}

fn or_any(modes: Vec<String>) -> Vec<String> {
    if modes.is_empty() {
        return MODES.map(str::to_owned).to_vec();
    }
    modes
}

/// The skills as configured; what can be talked to can at least chat.
fn skills(agent: &AgentConfig, in_card: Vec<AgentSkill>) -> Vec<AgentSkill> {
    let skill = |skill: &Skill| AgentSkill {
        id: skill.id.clone(),
        name: skill.name.clone(),
        description: skill.description.clone(),
        tags: skill.tags.clone(),
        examples: skill.examples.clone(),
        input_modes: skill.input_modes.clone(),
        output_modes: skill.output_modes.clone(),
        ..AgentSkill::default()
    };
    let mut skills: Vec<AgentSkill> = match agent.skills.is_empty() {
        true => in_card,
        false => agent.skills.iter().map(skill).collect(),
    };
    if skills.is_empty() {
        skills.push(AgentSkill {
            id: "chat".to_owned(),
            name: "Chat".to_owned(),
            description: "General chat.".to_owned(),
            ..AgentSkill::default()
        });
    }
    for skill in &mut skills {
        // The schema asks for at least one of each.
        if skill.tags.is_empty() {
            skill.tags.push(skill.id.clone());
        }
        if skill.name.is_empty() {
            skill.name.clone_from(&skill.id);
        }
        if skill.description.is_empty() {
            skill.description.clone_from(&skill.name);
        }
    }
    skills
}
