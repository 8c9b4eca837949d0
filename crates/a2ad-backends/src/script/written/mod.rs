//! Scripts as they are written: reading, checking, and what the JSON Schema says.
//!
//! Where a text or something else may stand, a string is asked for and whatever comes is taken:
//! the configuration's reader then gives words as they stand, so that `text: 007` needs no quotes.

mod part;
mod steps;

pub(super) use part::WrittenPart;
pub(super) use steps::{WrittenArtifact, WrittenDeltas, steps};

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess};

use super::step::Step;
use super::when::When;
use super::{Rule, Script};

/// What an agent does with which messages.
#[derive(serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Script", extend("minProperties" = 1))]
pub(super) struct WrittenScript {
    /// The first rule that fits a message is played.
    #[serde(default, deserialize_with = "rules")]
    #[schemars(length(min = 1))]
    rules: Vec<Rule>,
    /// The steps for messages that no rule fits. Without it, they are rejected.
    #[serde(default, deserialize_with = "otherwise")]
    #[schemars(with = "Vec<Step>", length(min = 1))]
    otherwise: Option<Vec<Step>>,
}

/// Why a script cannot be played.
#[derive(Debug, thiserror::Error)]
pub(super) enum Mistake {
    #[error("a script needs `rules` or `otherwise`")]
    Nothing,
    #[error("rules[{rule}].when.after: no rule is named `{name}`; {known}")]
    NoSuchRule {
        rule: usize,
        name: String,
        known: String,
    },
    #[error("rules[{second}].name: rules[{first}] is named `{name}` too")]
    SameName {
        first: usize,
        second: usize,
        name: String,
    },
    #[error("the script has {0} bytes, more than the {max} that are allowed", max = Script::BYTES_MAX)]
    TooLarge(usize),
}

impl TryFrom<WrittenScript> for Script {
    type Error = Mistake;

    fn try_from(written: WrittenScript) -> Result<Self, Mistake> {
        let WrittenScript { rules, otherwise } = written;
        if rules.is_empty() && otherwise.is_none() {
            return Err(Mistake::Nothing);
        }
        let mut names: Vec<(&str, usize)> = Vec::new();
        for (second, rule) in rules.iter().enumerate() {
            let Some(name) = rule.name.as_deref() else {
                continue;
            };
            if let Some((_, first)) = names.iter().find(|(known, _)| *known == name) {
                return Err(Mistake::SameName {
                    first: *first,
                    second,
                    name: name.to_owned(),
                });
            }
            names.push((name, second));
        }
        for (index, rule) in rules.iter().enumerate() {
            for name in rule.when.iter().flat_map(When::after) {
                if !names.iter().any(|(known, _)| known == name) {
                    let known: Vec<&str> = names.iter().map(|(known, _)| *known).collect();
                    return Err(Mistake::NoSuchRule {
                        rule: index,
                        name: name.clone(),
                        known: match known.as_slice() {
                            [] => "give one a `name`".to_owned(),
                            known => format!("named are: {}", known.join(", ")),
                        },
                    });
                }
            }
        }
        let script = Self { rules, otherwise };
        let bytes = serde_json::to_string(&script).map_or(usize::MAX, |text| text.len());
        if bytes > Self::BYTES_MAX {
            return Err(Mistake::TooLarge(bytes));
        }
        Ok(script)
    }
}

fn rules<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Rule>, D::Error> {
    let rules = Vec::<Rule>::deserialize(deserializer)?;
    if rules.is_empty() {
        return Err(de::Error::custom(
            "there is no rule; leave out `rules` if `otherwise` says it all",
        ));
    }
    if rules.len() > Script::RULES_MAX {
        return Err(too_many("rules", rules.len(), Script::RULES_MAX));
    }
    Ok(rules)
}

fn too_many<E: de::Error>(what: &str, count: usize, max: usize) -> E {
    E::custom(format_args!(
        "{count} {what} are too many; {max} are allowed"
    ))
}

fn otherwise<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Step>>, D::Error> {
    steps(deserializer).map(Some)
}

/// One or more conditions, of which one has to hold.
pub(super) fn conditions<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<When>, D::Error> {
    struct Visitor;

    impl<'de> de::Visitor<'de> for Visitor {
        type Value = Vec<When>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a mapping or a list of mappings")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Vec<When>, A::Error> {
            Ok(vec![When::deserialize(MapAccessDeserializer::new(map))?])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<When>, A::Error> {
            let mut all = Vec::new();
            while let Some(when) = list.next_element()? {
                all.push(when);
            }
            Ok(all)
        }
    }

    let all = deserializer.deserialize_string(Visitor)?;
    if all.is_empty() || all.iter().any(When::is_empty) {
        return Err(de::Error::custom(
            "there is no condition; `otherwise` is for all messages that no rule fits",
        ));
    }
    Ok(all)
}

pub(super) fn conditions_schema(generator: &mut SchemaGenerator) -> Schema {
    let one = generator.subschema_for::<When>();
    json_schema!({
        "description": "Which messages: all that is said has to hold. A list of these fits if one of them does.",
        "anyOf": [one, {"type": "array", "items": one, "minItems": 1}],
    })
}

/// A text, or a list of texts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(super) struct OneOrMore(pub(super) Vec<String>);

impl<'de> Deserialize<'de> for OneOrMore {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = OneOrMore;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of texts")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<OneOrMore, E> {
                Ok(OneOrMore(vec![text.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<OneOrMore, A::Error> {
                let mut texts = Vec::new();
                while let Some(text) = list.next_element()? {
                    texts.push(text);
                }
                if texts.is_empty() {
                    return Err(de::Error::custom("the list is empty"));
                }
                Ok(OneOrMore(texts))
            }
        }

        deserializer.deserialize_string(Visitor)
    }
}

impl JsonSchema for OneOrMore {
    fn schema_name() -> Cow<'static, str> {
        "Texts".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A text, or a list of texts.",
            "anyOf": [
                {"type": "string"},
                {"type": "array", "items": {"type": "string"}, "minItems": 1},
            ],
        })
    }
}
