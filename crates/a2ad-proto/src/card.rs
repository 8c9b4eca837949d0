//! What an agent says about itself.

use std::collections::BTreeMap;

use crate::wire::message;
use crate::{Metadata, SecurityRequirement, SecurityScheme};

message! {
    /// An agent's self-description.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct AgentCard {
        /// A name for people.
        pub name: String = 1 "name" R,
        /// A description for people.
        pub description: String = 2 "description" R,
        /// Where and how the agent is served, preferred first.
        pub supported_interfaces: Vec<AgentInterface> = 3 "supportedInterfaces" R,
        /// Who runs it.
        pub provider: Option<AgentProvider> = 4 "provider",
        /// The agent's own version.
        pub version: String = 5 "version" R,
        /// Where its documentation is.
        pub documentation_url: Option<String> = 6 "documentationUrl",
        /// What it can do beyond the basics.
        pub capabilities: AgentCapabilities = 7 "capabilities" R,
        /// The ways to authenticate, by name.
        pub security_schemes: BTreeMap<String, SecurityScheme> = 8 "securitySchemes",
        /// Which of them a call needs; one entry is enough.
        pub security_requirements: Vec<SecurityRequirement> = 9 "securityRequirements",
        /// The media types it takes, unless a skill says otherwise.
        pub default_input_modes: Vec<String> = 10 "defaultInputModes" R,
        /// The media types it produces, unless a skill says otherwise.
        pub default_output_modes: Vec<String> = 11 "defaultOutputModes" R,
        /// What it is good at.
        pub skills: Vec<AgentSkill> = 12 "skills" R,
        /// Who vouches for this card.
        pub signatures: Vec<AgentCardSignature> = 13 "signatures",
        /// Where its icon is.
        pub icon_url: Option<String> = 14 "iconUrl",
    }
}

message! {
    /// One way to reach the agent.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct AgentInterface {
        /// Where.
        pub url: String = 1 "url" R,
        /// `JSONRPC`, `GRPC`, `HTTP+JSON`, or the URI of another binding.
        pub protocol_binding: String = 2 "protocolBinding" R,
        /// The tenant to name in requests.
        pub tenant: String = 3 "tenant",
        /// The protocol version, as `Major.Minor`.
        pub protocol_version: String = 4 "protocolVersion" R,
    }
}

message! {
    /// Who runs an agent.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct AgentProvider {
        /// Their site.
        pub url: String = 1 "url" R,
        /// Their name.
        pub organization: String = 2 "organization" R,
    }
}

message! {
    /// What an agent can do beyond the basics.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct AgentCapabilities {
        /// Streams.
        pub streaming: Option<bool> = 1 "streaming",
        /// Push notifications.
        pub push_notifications: Option<bool> = 2 "pushNotifications",
        /// Protocol extensions.
        pub extensions: Vec<AgentExtension> = 3 "extensions",
        /// Another card for authenticated clients.
        pub extended_agent_card: Option<bool> = 4 "extendedAgentCard",
    }
}

message! {
    /// A protocol extension an agent understands.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct AgentExtension {
        /// Its name.
        pub uri: String = 1 "uri",
        /// How the agent uses it.
        pub description: String = 2 "description",
        /// Whether clients must declare it.
        pub required: bool = 3 "required",
        /// Its settings.
        pub params: Option<Metadata> = 4 "params",
    }
}

message! {
    /// Something an agent is good at.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct AgentSkill {
        /// Its name inside the card.
        pub id: String = 1 "id" R,
        /// A name for people.
        pub name: String = 2 "name" R,
        /// A description for people and models.
        pub description: String = 3 "description" R,
        /// Keywords.
        pub tags: Vec<String> = 4 "tags" R,
        /// Prompts it handles.
        pub examples: Vec<String> = 5 "examples",
        /// The media types it takes, instead of the card's.
        pub input_modes: Vec<String> = 6 "inputModes",
        /// The media types it produces, instead of the card's.
        pub output_modes: Vec<String> = 7 "outputModes",
        /// What using it needs.
        pub security_requirements: Vec<SecurityRequirement> = 8 "securityRequirements",
    }
}

message! {
    /// A JWS over the card (SIGN-01).
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct AgentCardSignature {
        /// The protected header, base64url.
        pub protected: String = 1 "protected" R,
        /// The signature, base64url.
        pub signature: String = 2 "signature" R,
        /// The unprotected header.
        pub header: Option<Metadata> = 3 "header",
    }
}
