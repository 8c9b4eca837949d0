//! One agent: what its card says, how it runs, and what it may take.

use std::time::Duration;

use a2ad_backends::{Echo, Script};
use a2ad_core::agent::AgentPolicy;
use a2ad_proto::AgentId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::card::CardSource;
use super::error::ConfigError;
use super::policy::Policy;
use super::units;

/// An agent to serve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Written", into = "Written")]
#[schemars(with = "Written")]
#[non_exhaustive]
pub struct AgentConfig {
    /// The agent's name in paths, the database and logs.
    pub id: AgentId,
    /// A name for people. By default what the card says, or the id.
    pub name: Option<String>,
    /// A description for people and models. By default what the card says, or the back end.
    pub description: Option<String>,
    /// The agent's own version. By default what the card says, or 1.0.0.
    pub version: Option<String>,
    /// What it is good at. By default what the card says, or chatting.
    pub skills: Vec<Skill>,
    /// The rest of its card.
    pub card: Option<CardSource>,
    /// Whether clients can find it. Otherwise it is there for the server's own use only.
    pub expose: bool,
    /// Whether it streams. By default what the card says, or yes.
    pub streaming: Option<bool>,
    /// Whether it takes webhooks. There are none yet, so `true` is refused.
    pub push: Option<bool>,
    /// Whether its card says that there is an extended one. By default what the card says, or no.
    pub extended_card: Option<bool>,
    /// How it runs. An agent that the embedding program brings has none.
    pub backend: Option<Backend>,
    /// What the agent may take.
    pub limits: AgentLimits,
    /// How it behaves where that is its owner's to choose.
    pub policy: Policy,
}

impl AgentConfig {
    /// An agent named `id` that the embedding program runs itself.
    #[must_use]
    pub fn new(id: AgentId) -> Self {
        Self {
            id,
            name: None,
            description: None,
            version: None,
            skills: Vec::new(),
            card: None,
            expose: true,
            streaming: None,
            push: None,
            extended_card: None,
            backend: None,
            limits: AgentLimits::default(),
            policy: Policy::default(),
        }
    }

    /// The agent that is served when nothing is configured.
    #[must_use]
    pub fn echo() -> Self {
        #[expect(
            clippy::expect_used,
            reason = "the literal is a valid id, and a test says so"
        )]
        let id = "echo".parse().expect("a plain word is an id");
        Self {
            name: Some("Echo".to_owned()),
            backend: Some(Backend::Echo(Echo::default())),
            ..Self::new(id)
        }
    }

    /// What the engine has to know; `all` is the policy for all agents.
    #[must_use]
    pub fn for_engine(&self, all: &Policy) -> AgentPolicy {
        let limits = &self.limits;
        AgentPolicy {
            running_max: limits.running,
            context_turns_max: limits.context_turns,
            queue_max: limits.queue,
            context_tasks_max: limits.max_tasks_per_context,
            deadline: Some(limits.deadline),
            tries_max: limits.attempts,
            backoff: limits.backoff,
            cancel_grace: limits.cancel_grace,
            idempotency: match limits.idempotency {
                Idempotency::UniqueIds => a2ad_core::agent::Idempotency::UniqueIds,
                Idempotency::Always => a2ad_core::agent::Idempotency::Always,
            },
            behaviour: self.policy.behaviour(all),
            ..AgentPolicy::default()
        }
    }
}

/// How an agent runs.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Backend {
    /// Answers with what it is told.
    Echo(Echo),
    /// Does what its script says.
    Script(Script),
}

impl Backend {
    pub(crate) const fn description(&self) -> &'static str {
        match self {
            Self::Echo(_) => Echo::DESCRIPTION,
            Self::Script(_) => Script::DESCRIPTION,
        }
    }
}

/// Something an agent is good at, for its card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Skill {
    /// Its name inside the card.
    pub id: String,
    /// A name for people.
    pub name: String,
    /// A description for people and models.
    pub description: String,
    /// Keywords.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Prompts that it handles.
    #[serde(default)]
    pub examples: Vec<String>,
    /// The media types it takes. By default those of the card.
    #[serde(default, alias = "inputModes")]
    pub input_modes: Vec<String>,
    /// The media types it gives. By default those of the card.
    #[serde(default, alias = "outputModes")]
    pub output_modes: Vec<String>,
}

/// What an agent may take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct AgentLimits {
    /// Turns that run at once.
    #[serde(deserialize_with = "units::above_zero::count")]
    #[schemars(range(min = 1))]
    pub running: u32,
    /// Turns that may be open in one conversation.
    #[serde(deserialize_with = "units::above_zero::count")]
    #[schemars(range(min = 1))]
    pub context_turns: u32,
    /// Turns that may be open in all; beyond, messages are refused.
    #[serde(deserialize_with = "units::above_zero::count")]
    #[schemars(range(min = 1))]
    pub queue: u32,
    /// Tasks that are kept of one conversation; beyond, those that ended first are deleted. By
    /// default there is no such bound, and `retention` alone counts.
    #[serde(
        deserialize_with = "units::above_zero::some_count",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 1))]
    pub max_tasks_per_context: Option<u32>,
    /// How long a turn may take.
    #[serde(
        serialize_with = "units::duration::serialize",
        deserialize_with = "units::above_zero::duration"
    )]
    #[schemars(with = "units::DurationText")]
    pub deadline: Duration,
    /// How often a turn is tried before its task fails.
    #[serde(deserialize_with = "units::above_zero::count")]
    #[schemars(range(min = 1))]
    pub attempts: u32,
    /// The wait before the second try; it doubles from there, up to a minute.
    #[serde(with = "units::duration")]
    #[schemars(with = "units::DurationText")]
    pub backoff: Duration,
    /// How long the agent may take to stop after a cancel; then the turn is taken away.
    #[serde(with = "units::duration")]
    #[schemars(with = "units::DurationText")]
    pub cancel_grace: Duration,
    /// Which message ids make a repeated message recognisable.
    pub idempotency: Idempotency,
}

impl Default for AgentLimits {
    fn default() -> Self {
        let policy = AgentPolicy::default();
        Self {
            running: policy.running_max,
            context_turns: policy.context_turns_max,
            queue: policy.queue_max,
            max_tasks_per_context: policy.context_tasks_max,
            deadline: policy.deadline.unwrap_or(Duration::from_secs(3600)),
            attempts: policy.tries_max,
            backoff: policy.backoff,
            cancel_grace: policy.cancel_grace,
            idempotency: Idempotency::default(),
        }
    }
}

/// Which message ids make a repeated message recognisable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Idempotency {
    /// UUIDs and ULIDs; people type others by hand and use them again.
    #[default]
    UniqueIds,
    /// All ids.
    Always,
}

/// An agent as it stands in the file: beside the common keys, one for its back end.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Agent", extend("oneOf" = [{"required": ["echo"]}, {"required": ["script"]}]))]
struct Written {
    /// The agent's name in paths, the database and logs: letters, digits, `.`, `_` and `-`.
    #[schemars(with = "String")]
    id: AgentId,
    /// A name for people. By default the id.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// A description for people and models.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// The agent's own version. By default 1.0.0.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// What it is good at. By default, chatting.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    skills: Vec<Skill>,
    /// The rest of its card: the members of an A2A agent card, or the path of a YAML or JSON file
    /// with them.
    #[serde(skip_serializing_if = "Option::is_none")]
    card: Option<CardSource>,
    /// Whether clients can find it.
    #[serde(default = "yes")]
    expose: bool,
    /// Whether it streams. By default, yes.
    #[serde(skip_serializing_if = "Option::is_none")]
    streaming: Option<bool>,
    /// Whether it takes webhooks. There are none yet, so only `false` is accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    push: Option<bool>,
    /// Whether its card says that there is an extended one. By default, no.
    #[serde(skip_serializing_if = "Option::is_none")]
    extended_card: Option<bool>,
    /// Back end: answers with what it is told.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    echo: Option<Echo>,
    /// Back end: does what its script says.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Script")]
    script: Option<Script>,
    /// What the agent may take.
    #[serde(default)]
    limits: AgentLimits,
    /// How it behaves where that is its owner's to choose.
    #[serde(default)]
    policy: Policy,
}

const fn yes() -> bool {
    true
}

/// A key that is there counts, also with nothing after it.
fn present<'de, T: Deserialize<'de>, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

impl TryFrom<Written> for AgentConfig {
    type Error = ConfigError;

    fn try_from(written: Written) -> Result<Self, ConfigError> {
        let backend = match (written.echo, written.script) {
            (Some(echo), None) => Backend::Echo(echo),
            (None, Some(script)) => Backend::Script(script),
            (None, None) | (Some(_), Some(_)) => {
                return Err(ConfigError::new(format!(
                    "the agent `{}` needs exactly one back end; known: echo, script",
                    written.id
                )));
            }
        };
        Ok(Self {
            id: written.id,
            name: written.name,
            description: written.description,
            version: written.version,
            skills: written.skills,
            card: written.card,
            expose: written.expose,
            streaming: written.streaming,
            push: written.push,
            extended_card: written.extended_card,
            backend: Some(backend),
            limits: written.limits,
            policy: written.policy,
        })
    }
}

impl From<AgentConfig> for Written {
    fn from(agent: AgentConfig) -> Self {
        let (echo, script) = match agent.backend {
            Some(Backend::Echo(echo)) => (Some(echo), None),
            Some(Backend::Script(script)) => (None, Some(script)),
            None => (None, None),
        };
        Self {
            id: agent.id,
            name: agent.name,
            description: agent.description,
            version: agent.version,
            skills: agent.skills,
            card: agent.card,
            expose: agent.expose,
            streaming: agent.streaming,
            push: agent.push,
            extended_card: agent.extended_card,
            echo,
            script,
            limits: agent.limits,
            policy: agent.policy,
        }
    }
}
