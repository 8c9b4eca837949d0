//! Cards, which gRPC alone has in this form.

use std::collections::BTreeMap;

use super::security::{Security, SecurityScheme};
use crate::Metadata;
use crate::pb::{Body, DecodeError};
use crate::v03::card::Reach;
use crate::v03::{CARD_VERSION, card};
use crate::wire::{Bounds, message};

message! {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct AgentCard of V03 {
        pub name: String = 1 "name",
        pub description: String = 2 "description",
        pub url: String = 3 "url",
        pub provider: Option<AgentProvider> = 4 "provider",
        pub version: String = 5 "version",
        pub documentation_url: String = 6 "documentationUrl",
        pub capabilities: Option<AgentCapabilities> = 7 "capabilities",
        pub security_schemes: BTreeMap<String, SecurityScheme> = 8 "securitySchemes",
        pub security: Vec<Security> = 9 "security",
        pub default_input_modes: Vec<String> = 10 "defaultInputModes",
        pub default_output_modes: Vec<String> = 11 "defaultOutputModes",
        pub skills: Vec<AgentSkill> = 12 "skills",
        pub supports_authenticated_extended_card: bool = 13 "supportsAuthenticatedExtendedCard",
        pub preferred_transport: String = 14 "preferredTransport",
        pub additional_interfaces: Vec<AgentInterface> = 15 "additionalInterfaces",
        pub protocol_version: String = 16 "protocolVersion",
        pub signatures: Vec<AgentCardSignature> = 17 "signatures",
        pub icon_url: String = 18 "iconUrl",
    }
}

message! {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct AgentInterface of V03 {
        pub url: String = 1 "url",
        pub transport: String = 2 "transport",
    }
}

message! {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct AgentProvider of V03 {
        pub url: String = 1 "url",
        pub organization: String = 2 "organization",
    }
}

message! {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct AgentCapabilities of V03 {
        pub streaming: bool = 1 "streaming",
        pub push_notifications: bool = 2 "pushNotifications",
        pub extensions: Vec<AgentExtension> = 3 "extensions",
    }
}

message! {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct AgentExtension of V03 {
        pub uri: String = 1 "uri",
        pub description: String = 2 "description",
        pub required: bool = 3 "required",
        pub params: Option<Metadata> = 4 "params",
    }
}

message! {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct AgentSkill of V03 {
        pub id: String = 1 "id",
        pub name: String = 2 "name",
        pub description: String = 3 "description",
        pub tags: Vec<String> = 4 "tags",
        pub examples: Vec<String> = 5 "examples",
        pub input_modes: Vec<String> = 6 "inputModes",
        pub output_modes: Vec<String> = 7 "outputModes",
        pub security: Vec<Security> = 8 "security",
    }
}

message! {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct AgentCardSignature of V03 {
        pub protected: String = 1 "protected",
        pub signature: String = 2 "signature",
        pub header: Option<Metadata> = 3 "header",
    }
}

/// A message as one of the other version's that has the same numbers: what it does not know is left out.
fn recode<From: Body, To: Body>(from: &From) -> Result<To, DecodeError> {
    let mut bytes = Vec::new();
    from.write(&mut bytes);
    To::read(&bytes, Bounds::None)
}

fn recode_all<From: Body, To: Body>(from: &[From]) -> Result<Vec<To>, DecodeError> {
    from.iter().map(recode).collect()
}

fn recode_map<From: Body, To: Body>(
    from: &BTreeMap<String, From>,
) -> Result<BTreeMap<String, To>, DecodeError> {
    let each = from.iter();
    each.map(|(name, value)| Ok((name.clone(), recode(value)?)))
        .collect()
}

impl AgentCard {
    /// Nothing if no interface of the card speaks 0.3.
    pub(in crate::v03) fn of(card: &crate::AgentCard) -> Result<Option<Self>, DecodeError> {
        let Some(Reach(first, others)) = Reach::of(card) else {
            return Ok(None);
        };
        let others = others.into_iter().map(|it| AgentInterface {
            url: it.url.clone(),
            transport: it.protocol_binding.clone(),
        });
        Ok(Some(Self {
            name: card.name.clone(),
            description: card.description.clone(),
            url: first.url.clone(),
            provider: card.provider.as_ref().map(recode).transpose()?,
            version: card.version.clone(),
            documentation_url: card.documentation_url.clone().unwrap_or_default(),
            capabilities: Some(recode(&card.capabilities)?),
            security_schemes: recode_map(&card.security_schemes)?,
            security: recode_all(&card.security_requirements)?,
            default_input_modes: card.default_input_modes.clone(),
            default_output_modes: card.default_output_modes.clone(),
            skills: recode_all(&card.skills)?,
            supports_authenticated_extended_card: card.capabilities.extended_agent_card
                == Some(true),
            preferred_transport: first.protocol_binding.clone(),
            additional_interfaces: others.collect(),
            protocol_version: CARD_VERSION.to_owned(),
            signatures: Vec::new(),
            icon_url: card.icon_url.clone().unwrap_or_default(),
        }))
    }

    pub(in crate::v03) fn into_core(self) -> Result<crate::AgentCard, DecodeError> {
        let text = |text: String| Some(text).filter(|text| !text.is_empty());
        let others = self.additional_interfaces.into_iter();
        let others = others.map(|it| (it.url, it.transport)).collect();
        let mut capabilities: crate::AgentCapabilities =
            recode(&self.capabilities.unwrap_or_default())?;
        capabilities.extended_agent_card = Some(self.supports_authenticated_extended_card);
        Ok(crate::AgentCard {
            name: self.name,
            description: self.description,
            supported_interfaces: card::interfaces(
                self.url,
                self.preferred_transport,
                others,
                &self.protocol_version,
            ),
            provider: self.provider.as_ref().map(recode).transpose()?,
            version: self.version,
            documentation_url: text(self.documentation_url),
            capabilities,
            security_schemes: recode_map(&self.security_schemes)?,
            security_requirements: recode_all(&self.security)?,
            default_input_modes: self.default_input_modes,
            default_output_modes: self.default_output_modes,
            skills: recode_all(&self.skills)?,
            signatures: Vec::new(),
            icon_url: text(self.icon_url),
        })
    }
}
