//! Cards of agents that know 0.3 only.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::v03::raw::{Read, list, members, read, text, texts, value};
use crate::v03::{CARD_VERSION, VERSION};
use crate::wire::Path;
use crate::{
    AgentCapabilities, AgentCard, AgentInterface, AgentSkill, ApiKeySecurityScheme,
    HttpAuthSecurityScheme, MutualTlsSecurityScheme, OAuth2SecurityScheme, OAuthFlows,
    OpenIdConnectSecurityScheme, SecurityRequirement, SecurityScheme, StringList, Violations,
};

/// The transport of a card that names none.
const DEFAULT_TRANSPORT: &str = "JSONRPC";

/// Reads a card of 0.3: its interfaces, the preferred one first, become those of 1.0 with the card's version
/// (V03-22). Signatures are left out: they are over the form of 0.3.
///
/// # Errors
/// With the first violation found.
pub fn read_card(json: &[u8]) -> Result<AgentCard, Violations> {
    let mut card = AgentCard::default();
    let (mut url, mut transport) = (String::new(), DEFAULT_TRANSPORT.to_owned());
    let mut version = CARD_VERSION.to_owned();
    let mut others = Vec::new();
    let mut extended = None;
    members(value(json)?, |name, value| {
        Ok(Some(match name {
            "name" => {
                card.name = text(value)?;
                "name"
            }
            "description" => {
                card.description = text(value)?;
                "description"
            }
            "url" => {
                url = text(value)?;
                "url"
            }
            "preferredTransport" | "preferred_transport" => {
                let said = text(value)?;
                if !said.is_empty() {
                    transport = said;
                }
                "preferredTransport"
            }
            "additionalInterfaces" | "additional_interfaces" => {
                others = list(value, usize::MAX, place)?;
                "additionalInterfaces"
            }
            "protocolVersion" | "protocol_version" => {
                version = text(value)?;
                "protocolVersion"
            }
            "provider" => {
                card.provider = Some(read(value)?);
                "provider"
            }
            "version" => {
                card.version = text(value)?;
                "version"
            }
            "documentationUrl" | "documentation_url" => {
                card.documentation_url = Some(text(value)?).filter(|url| !url.is_empty());
                "documentationUrl"
            }
            "iconUrl" | "icon_url" => {
                card.icon_url = Some(text(value)?).filter(|url| !url.is_empty());
                "iconUrl"
            }
            "capabilities" => {
                card.capabilities = read::<AgentCapabilities>(value)?;
                "capabilities"
            }
            "securitySchemes" | "security_schemes" => {
                card.security_schemes = named(value, scheme)?;
                "securitySchemes"
            }
            "security" => {
                card.security_requirements = list(value, usize::MAX, requirement)?;
                "security"
            }
            "defaultInputModes" | "default_input_modes" => {
                card.default_input_modes = texts(value, usize::MAX)?;
                "defaultInputModes"
            }
            "defaultOutputModes" | "default_output_modes" => {
                card.default_output_modes = texts(value, usize::MAX)?;
                "defaultOutputModes"
            }
            "skills" => {
                card.skills = list(value, usize::MAX, skill)?;
                "skills"
            }
            "supportsAuthenticatedExtendedCard" | "supports_authenticated_extended_card" => {
                extended = Some(read(value)?);
                "supportsAuthenticatedExtendedCard"
            }
            _ => return Ok(None),
        }))
    })?;
    card.capabilities.extended_agent_card = extended;
    if !url.is_empty() {
        others.insert(0, (url, transport));
    }
    card.supported_interfaces = interfaces(others, wire_version(&version));
    Ok(card)
}

/// As interfaces of 1.0 name it: without the patch.
fn wire_version(version: &str) -> &str {
    match version.match_indices('.').nth(1) {
        Some((at, _)) => version.get(..at).unwrap_or(version),
        None if version.is_empty() => VERSION,
        None => version,
    }
}

/// Cards repeat the preferred interface among the others, as the specification advises.
fn interfaces(places: Vec<(String, String)>, version: &str) -> Vec<AgentInterface> {
    let mut interfaces: Vec<AgentInterface> = Vec::new();
    for (url, protocol_binding) in places {
        let interface = AgentInterface {
            url,
            protocol_binding,
            protocol_version: version.to_owned(),
            ..AgentInterface::default()
        };
        if !interfaces.contains(&interface) {
            interfaces.push(interface);
        }
    }
    interfaces
}

/// An address and the transport spoken there.
fn place(value: &RawValue) -> Read<(String, String)> {
    let (mut url, mut transport) = (String::new(), String::new());
    members(value, |name, value| {
        Ok(Some(match name {
            "url" => {
                url = text(value)?;
                "url"
            }
            "transport" => {
                transport = text(value)?;
                "transport"
            }
            _ => return Ok(None),
        }))
    })?;
    Ok((url, transport))
}

/// An object with names that the agent chose.
fn named<T>(
    value: &RawValue,
    mut each: impl FnMut(&RawValue) -> Read<T>,
) -> Read<BTreeMap<String, T>> {
    let entries: BTreeMap<String, &RawValue> = read(value)?;
    entries
        .into_iter()
        .map(|(name, value)| match each(value) {
            Ok(value) => Ok((name, value)),
            Err(wrong) => Err(wrong.at(Path::Key(&name))),
        })
        .collect()
}

/// The scopes needed by scheme, or the schema's form of it, which is that of 1.0.
fn requirement(value: &RawValue) -> Read<SecurityRequirement> {
    let entries: BTreeMap<String, &RawValue> = read(value)?;
    if let Some(schemes) = entries
        .get("schemes")
        .filter(|it| it.get().starts_with('{'))
    {
        return Ok(SecurityRequirement {
            schemes: named(schemes, |scopes| read(scopes))?,
        });
    }
    let scopes = |value: &RawValue| {
        let list = texts(value, usize::MAX)?;
        Ok(StringList { list })
    };
    let schemes = named(value, scopes)?;
    Ok(SecurityRequirement { schemes })
}

fn skill(value: &RawValue) -> Read<AgentSkill> {
    // All but one member are as in 1.0.
    let mut skill: AgentSkill = read(value)?;
    skill.security_requirements.clear();
    members(value, |name, value| {
        if name != "security" {
            return Ok(None);
        }
        skill.security_requirements = list(value, usize::MAX, requirement)?;
        Ok(Some("security"))
    })?;
    Ok(skill)
}

/// A scheme as OpenAPI has it; the schema's form is that of 1.0. One that nobody knows is no reason not to read the
/// card.
fn scheme(value: &RawValue) -> Read<SecurityScheme> {
    let mut found = Found::default();
    members(value, |name, value| {
        let slot = match name {
            "type" => (&mut found.r#type, "type"),
            "description" => (&mut found.description, "description"),
            "in" => (&mut found.location, "in"),
            "name" => (&mut found.name, "name"),
            "scheme" => (&mut found.scheme, "scheme"),
            "bearerFormat" => (&mut found.bearer_format, "bearerFormat"),
            "openIdConnectUrl" => (&mut found.open_id_connect_url, "openIdConnectUrl"),
            "oauth2MetadataUrl" => (&mut found.oauth2_metadata_url, "oauth2MetadataUrl"),
            "flows" => {
                found.flows = flows(value)?;
                return Ok(Some("flows"));
            }
            _ => return Ok(None),
        };
        *slot.0 = text(value)?;
        Ok(Some(slot.1))
    })?;
    Ok(match &*found.r#type {
        "apiKey" => SecurityScheme::ApiKey(ApiKeySecurityScheme {
            description: found.description,
            location: found.location,
            name: found.name,
        }),
        "http" => SecurityScheme::HttpAuth(HttpAuthSecurityScheme {
            description: found.description,
            scheme: found.scheme,
            bearer_format: found.bearer_format,
        }),
        "oauth2" => SecurityScheme::OAuth2(OAuth2SecurityScheme {
            description: found.description,
            flows: found.flows,
            oauth2_metadata_url: found.oauth2_metadata_url,
        }),
        "openIdConnect" => SecurityScheme::OpenIdConnect(OpenIdConnectSecurityScheme {
            description: found.description,
            open_id_connect_url: found.open_id_connect_url,
        }),
        "mutualTLS" => SecurityScheme::MutualTls(MutualTlsSecurityScheme {
            description: found.description,
        }),
        "" => read(value)?,
        _ => SecurityScheme::Unset,
    })
}

#[derive(Default)]
struct Found {
    r#type: String,
    description: String,
    location: String,
    name: String,
    scheme: String,
    bearer_format: String,
    open_id_connect_url: String,
    oauth2_metadata_url: String,
    flows: OAuthFlows,
}

/// 0.3 may offer several flows, 1.0 has one: the one that a client can do most with.
fn flows(value: &RawValue) -> Read<OAuthFlows> {
    let mut found: [Option<OAuthFlows>; 4] = Default::default();
    members(value, |name, value| {
        let (rank, flow, name) = match name {
            "authorizationCode" => {
                let flow = OAuthFlows::AuthorizationCode(read(value)?);
                (0, flow, "authorizationCode")
            }
            "clientCredentials" => {
                let flow = OAuthFlows::ClientCredentials(read(value)?);
                (1, flow, "clientCredentials")
            }
            "implicit" => (2, OAuthFlows::Implicit(read(value)?), "implicit"),
            "password" => (3, OAuthFlows::Password(read(value)?), "password"),
            _ => return Ok(None),
        };
        if let Some(slot) = found.get_mut(rank) {
            *slot = Some(flow);
        }
        Ok(Some(name))
    })?;
    Ok(found.into_iter().flatten().next().unwrap_or_default())
}
