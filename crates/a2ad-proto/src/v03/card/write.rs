//! Cards as clients of 0.3 read them.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::is_v03;
use super::schemes::Scheme;
use crate::v03::CARD_VERSION;
use crate::v03::write::Object;
use crate::{
    AgentCapabilities, AgentCard, AgentExtension, AgentInterface, AgentSkill, SecurityRequirement,
    SecurityScheme, to_json,
};

/// Writes a card of 0.3, or nothing if none of its interfaces speaks that (V03-21). Signatures are left out: they are
/// over the form of 1.0.
#[must_use]
pub fn write_card(card: &AgentCard) -> Option<Vec<u8>> {
    let reach = Reach::of(card)?;
    Some(to_json(&Pure { card, reach }))
}

/// Writes a card of 1.0 with what clients of 0.3 look for beside it, as far as an interface of the card speaks that
/// (DUAL-05).
#[must_use]
pub fn write_hybrid_card(card: &AgentCard) -> Vec<u8> {
    match Reach::of(card) {
        Some(reach) => to_json(&Hybrid { card, reach }),
        None => to_json(card),
    }
}

/// Where clients of 0.3 are served: the first place, and the others.
struct Reach<'a>(&'a AgentInterface, Vec<&'a AgentInterface>);

impl<'a> Reach<'a> {
    fn of(card: &'a AgentCard) -> Option<Self> {
        // 0.3 has no tenants, so it cannot be told apart there which one is meant.
        let mut ours = card
            .supported_interfaces
            .iter()
            .filter(|it| is_v03(&it.protocol_version) && it.tenant.is_empty());
        Some(Self(ours.next()?, ours.collect()))
    }
}

/// The members that only 0.3 has.
fn old_members<O: serde::ser::SerializeStruct>(
    object: &mut Object<O>,
    card: &AgentCard,
    reach: &Reach<'_>,
) -> Result<(), O::Error> {
    #[derive(Serialize)]
    struct Place<'a> {
        url: &'a str,
        transport: &'a str,
    }
    let others = reach.1.iter().map(|it| Place {
        url: &it.url,
        transport: &it.protocol_binding,
    });
    object.put("protocolVersion", CARD_VERSION)?;
    object.put("url", &reach.0.url)?;
    object.put("preferredTransport", &reach.0.protocol_binding)?;
    object.list("additionalInterfaces", &others.collect::<Vec<_>>())?;
    object.list("security", &security(&card.security_requirements))?;
    let extended = card.capabilities.extended_agent_card;
    object.some(
        "supportsAuthenticatedExtendedCard",
        extended.filter(|it| *it),
    )
}

fn security(requirements: &[SecurityRequirement]) -> Vec<BTreeMap<&str, &[String]>> {
    requirements
        .iter()
        .map(|requirement| {
            let schemes = requirement.schemes.iter();
            schemes
                .map(|(name, scopes)| (&**name, &*scopes.list))
                .collect()
        })
        .collect()
}

struct Pure<'a> {
    card: &'a AgentCard,
    reach: Reach<'a>,
}

impl Serialize for Pure<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let card = self.card;
        let schemes: BTreeMap<_, _> = card
            .security_schemes
            .iter()
            .filter_map(|(name, scheme)| Some((name, Scheme::of(scheme)?)))
            .collect();
        let skills = card.skills.iter().map(|skill| Skill {
            skill,
            hybrid: false,
        });
        let mut object = Object::begin(serializer)?;
        object.put("name", &card.name)?;
        object.put("description", &card.description)?;
        object.some("provider", card.provider.as_ref())?;
        object.put("version", &card.version)?;
        object.some("documentationUrl", card.documentation_url.as_ref())?;
        object.some("iconUrl", card.icon_url.as_ref())?;
        object.put("capabilities", &Capabilities(&card.capabilities))?;
        object.some("securitySchemes", (!schemes.is_empty()).then_some(schemes))?;
        object.put("defaultInputModes", &card.default_input_modes)?;
        object.put("defaultOutputModes", &card.default_output_modes)?;
        object.put("skills", &skills.collect::<Vec<_>>())?;
        old_members(&mut object, card, &self.reach)?;
        object.end()
    }
}

struct Capabilities<'a>(&'a AgentCapabilities);

impl Serialize for Capabilities<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let extensions = self.0.extensions.iter().map(Extension);
        let mut object = Object::begin(serializer)?;
        object.some("streaming", self.0.streaming)?;
        object.some("pushNotifications", self.0.push_notifications)?;
        object.list("extensions", &extensions.collect::<Vec<_>>())?;
        object.end()
    }
}

struct Extension<'a>(&'a AgentExtension);

impl Serialize for Extension<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = Object::begin(serializer)?;
        object.put("uri", &self.0.uri)?;
        object.text("description", &self.0.description)?;
        object.some("required", self.0.required.then_some(true))?;
        object.some("params", self.0.params.as_ref())?;
        object.end()
    }
}

struct Skill<'a> {
    skill: &'a AgentSkill,
    /// Whether to write what 1.0 has as well.
    hybrid: bool,
}

impl Serialize for Skill<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let AgentSkill {
            id,
            name,
            description,
            tags,
            examples,
            input_modes,
            output_modes,
            security_requirements,
        } = self.skill;
        let mut object = Object::begin(serializer)?;
        object.put("id", id)?;
        object.put("name", name)?;
        object.put("description", description)?;
        object.put("tags", tags)?;
        object.list("examples", examples)?;
        object.list("inputModes", input_modes)?;
        object.list("outputModes", output_modes)?;
        if self.hybrid {
            object.list("securityRequirements", security_requirements)?;
        }
        object.list("security", &security(security_requirements))?;
        object.end()
    }
}

struct Hybrid<'a> {
    card: &'a AgentCard,
    reach: Reach<'a>,
}

impl Serialize for Hybrid<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Taken apart, so that a new member of cards cannot be forgotten here.
        let AgentCard {
            name,
            description,
            supported_interfaces,
            provider,
            version,
            documentation_url,
            capabilities,
            security_schemes,
            security_requirements,
            default_input_modes,
            default_output_modes,
            skills,
            signatures,
            icon_url,
        } = self.card;
        let schemes: BTreeMap<_, _> = security_schemes
            .iter()
            .map(|(name, scheme)| (name, Both(scheme)))
            .collect();
        let skills = skills.iter().map(|skill| Skill {
            skill,
            hybrid: true,
        });
        let mut object = Object::begin(serializer)?;
        object.put("name", name)?;
        object.put("description", description)?;
        object.put("supportedInterfaces", supported_interfaces)?;
        object.some("provider", provider.as_ref())?;
        object.put("version", version)?;
        object.some("documentationUrl", documentation_url.as_ref())?;
        object.put("capabilities", capabilities)?;
        object.some("securitySchemes", (!schemes.is_empty()).then_some(schemes))?;
        object.list("securityRequirements", security_requirements)?;
        object.put("defaultInputModes", default_input_modes)?;
        object.put("defaultOutputModes", default_output_modes)?;
        object.put("skills", &skills.collect::<Vec<_>>())?;
        object.list("signatures", signatures)?;
        object.some("iconUrl", icon_url.as_ref())?;
        old_members(&mut object, self.card, &self.reach)?;
        object.end()
    }
}

/// A scheme with the members of both versions.
struct Both<'a>(&'a SecurityScheme);

impl Serialize for Both<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = Object::begin(serializer)?;
        match self.0 {
            SecurityScheme::ApiKey(it) => object.put("apiKeySecurityScheme", it)?,
            SecurityScheme::HttpAuth(it) => object.put("httpAuthSecurityScheme", it)?,
            SecurityScheme::OAuth2(it) => object.put("oauth2SecurityScheme", it)?,
            SecurityScheme::OpenIdConnect(it) => object.put("openIdConnectSecurityScheme", it)?,
            SecurityScheme::MutualTls(it) => object.put("mtlsSecurityScheme", it)?,
            SecurityScheme::Unset => {}
        }
        if let Some(scheme) = Scheme::of(self.0) {
            scheme.put_into(&mut object)?;
        }
        object.end()
    }
}
