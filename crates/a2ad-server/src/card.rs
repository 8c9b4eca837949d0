//! The agent card, from what the configuration says of an agent.

use a2ad_proto::{AgentCapabilities, AgentCard, AgentInterface, AgentSkill};

use crate::config::AgentConfig;

/// What an agent takes and gives unless its card could say better.
const MODES: [&str; 3] = ["text/plain", "application/json", "application/octet-stream"];

/// The card of `agent`, which answers at `base` (an address without a trailing slash).
pub(crate) fn card(agent: &AgentConfig, base: &str) -> AgentCard {
    let modes: Vec<String> = MODES.iter().map(|&mode| mode.to_owned()).collect();
    AgentCard {
        name: agent.name.clone(),
        description: agent.description.clone(),
        version: agent.version.clone(),
        // Clients take the first they can (CARD-03). Paths of HTTP+JSON are appended to its address as they are.
        supported_interfaces: vec![
            interface(format!("{base}/"), "JSONRPC"),
            interface(base.to_owned(), "HTTP+JSON"),
        ],
        capabilities: AgentCapabilities {
            streaming: Some(true),
            push_notifications: Some(false),
            extended_agent_card: Some(false),
            ..AgentCapabilities::default()
        },
        default_input_modes: modes.clone(),
        default_output_modes: modes,
        skills: skills(agent),
        ..AgentCard::default()
    }
}

fn interface(url: String, binding: &str) -> AgentInterface {
    AgentInterface {
        url,
        protocol_binding: binding.to_owned(),
        protocol_version: "1.0".to_owned(),
        ..AgentInterface::default()
    }
}

/// The skills as configured; an agent without any is at least good at what it is described as.
fn skills(agent: &AgentConfig) -> Vec<AgentSkill> {
    if agent.skills.is_empty() {
        return vec![AgentSkill {
            id: agent.id.as_str().to_owned(),
            name: agent.name.clone(),
            description: agent.description.clone(),
            tags: vec![agent.id.as_str().to_owned()],
            ..AgentSkill::default()
        }];
    }
    let skill = |skill: &crate::config::Skill| AgentSkill {
        id: skill.id.clone(),
        name: skill.name.clone(),
        description: skill.description.clone(),
        tags: skill.tags.clone(),
        examples: skill.examples.clone(),
        ..AgentSkill::default()
    };
    agent.skills.iter().map(skill).collect()
}
