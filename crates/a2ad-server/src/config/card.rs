//! What a configuration says of an agent's card: all of it that A2A knows, here or in a file of its own.

use std::borrow::Cow;
use std::path::PathBuf;

use a2ad_proto::{AgentCard, v03};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

use super::error::ConfigError;
use super::tree::Node;

/// Where an agent's card is written down. Names of members may be in camelCase or `snake_case`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CardSource {
    /// In the configuration.
    Inline(Box<AgentCard>),
    /// In a YAML or JSON file; a relative path is relative to the configuration file.
    File(PathBuf),
}

impl CardSource {
    /// Reads the text of a card file. It is no configuration: `${` means nothing in it.
    pub(crate) fn parse(text: &str) -> Result<AgentCard, ConfigError> {
        // JSON is nearly YAML; what it has beyond, such as pairs of escapes, is read as JSON.
        if let Ok(value) = serde_json::from_str(text) {
            return card(&value);
        }
        let tree = Node::parse_plain(text)?;
        let value = Value::deserialize(&tree).map_err(|error| error.at(&tree.origin))?;
        card(&value)
    }
}

fn card(value: &Value) -> Result<AgentCard, ConfigError> {
    if !value.is_object() {
        return Err(ConfigError::new("a card is a mapping of its members"));
    }
    let text = value.to_string();
    let read = if is_v03(value) {
        v03::read_card(text.as_bytes())
    } else {
        a2ad_proto::from_json(text.as_bytes())
    };
    read.map_err(|violations| {
        let said = |violation: &a2ad_proto::FieldViolation| {
            format!("{}: {}", violation.field, violation.description)
        };
        let all: Vec<String> = violations.0.iter().map(said).collect();
        ConfigError::new(all.join("; "))
    })
}

/// Whether a card says in the words of 0.3 how to authenticate, or what else 1.0 says otherwise. The rest is the same in
/// both, and a card of both is one of 1.0.
fn is_v03(card: &Value) -> bool {
    let has = |names: &[&str]| names.iter().any(|name| card.get(name).is_some());
    let schemes = ["securitySchemes", "security_schemes"].map(|name| card.get(name));
    let schemes = schemes.into_iter().flatten().filter_map(Value::as_object);
    let is_older = |scheme: &Value| {
        let members = scheme.as_object();
        members.is_some_and(|members| members.contains_key("type") && !has_newer(members))
    };
    schemes.flat_map(|schemes| schemes.values()).any(is_older)
        || has(&["security", "supportsAuthenticatedExtendedCard"])
            && !has(&[
                "securityRequirements",
                "security_requirements",
                "supportedInterfaces",
            ])
}

fn has_newer(scheme: &serde_json::Map<String, Value>) -> bool {
    scheme
        .keys()
        .any(|name| name.ends_with("SecurityScheme") || name.ends_with("_security_scheme"))
}

impl<'de> Deserialize<'de> for CardSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(path) if !path.is_empty() => Ok(Self::File(path.into())),
            value @ Value::Object(_) => match card(&value) {
                Ok(card) => Ok(Self::Inline(Box::new(card))),
                Err(error) => Err(de::Error::custom(error)),
            },
            _ => Err(de::Error::custom(
                "expected the path of a card file, or the card's members",
            )),
        }
    }
}

impl Serialize for CardSource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Inline(card) => card.serialize(serializer),
            Self::File(path) => path.serialize(serializer),
        }
    }
}

impl JsonSchema for CardSource {
    fn schema_name() -> Cow<'static, str> {
        "Card".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The members of an A2A agent card, or the path of a file with them.",
            "type": ["string", "object"],
        })
    }
}
