//! Steps as they are written.

use std::borrow::Cow;
use std::fmt;

use a2ad_proto::ArtifactId;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess};

use super::super::step::{ArtifactStep, Deltas, Hold, PartStep, Pause, Pieces, Reply, Step, Words};
use super::{OneOrMore, Script, too_many};
use crate::units;

/// At least one step, and none after one that ends the turn.
pub(in crate::script) fn steps<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<Step>, D::Error> {
    struct Visitor;

    impl<'de> de::Visitor<'de> for Visitor {
        type Value = Vec<Step>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of steps")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<Step>, A::Error> {
            let mut steps: Vec<Step> = Vec::new();
            while let Some(step) = list.next_element_seed(Next {
                ended: steps.last().and_then(Step::ends),
            })? {
                steps.push(step);
            }
            Ok(steps)
        }
    }

    let steps = deserializer.deserialize_seq(Visitor)?;
    if steps.is_empty() {
        return Err(de::Error::custom(
            "there is no step; `- complete:` completes without a word",
        ));
    }
    if steps.len() > Script::STEPS_MAX {
        return Err(too_many("steps", steps.len(), Script::STEPS_MAX));
    }
    Ok(steps)
}

/// The next step, if there may be one. Refusing it here puts the error on its line.
struct Next {
    /// The key of the step before, if that ends the turn.
    ended: Option<&'static str>,
}

impl<'de> DeserializeSeed<'de> for Next {
    type Value = Step;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Step, D::Error> {
        match self.ended {
            Some(key) => Err(de::Error::custom(format_args!(
                "nothing can come after `{key}`, which ends the turn"
            ))),
            None => Step::deserialize(deserializer),
        }
    }
}

/// The key of a step.
#[derive(Clone, Copy, serde::Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum StepKey {
    Status,
    Text,
    Artifact,
    Wait,
    Ask,
    Auth,
    Message,
    Complete,
    Fail,
    Reject,
    Hold,
}

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Step;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping with one key, such as `complete: Done`")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Step, A::Error> {
                let key = map.next_key()?;
                let key = key.ok_or_else(|| de::Error::custom("a step has exactly one key"))?;
                let step = match key {
                    StepKey::Status => Step::Status(map.next_value()?),
                    StepKey::Text => Step::Text(map.next_value()?),
                    StepKey::Artifact => Step::Artifact(map.next_value()?),
                    StepKey::Wait => Step::Wait(map.next_value()?),
                    StepKey::Ask => Step::Ask(map.next_value()?),
                    StepKey::Auth => Step::Auth(map.next_value()?),
                    StepKey::Message => Step::Message(map.next_value()?),
                    StepKey::Complete => Step::Complete(map.next_value()?),
                    StepKey::Fail => Step::Fail(map.next_value()?),
                    StepKey::Reject => Step::Reject(map.next_value()?),
                    StepKey::Hold => Step::Hold(map.next_value()?),
                };
                match map.next_key::<String>()? {
                    None => Ok(step),
                    Some(second) => Err(de::Error::custom(format_args!(
                        "a step has exactly one key, so `{second}` is one too many; begin each step with a dash"
                    ))),
                }
            }
        }

        deserializer.deserialize_string(Visitor)
    }
}

impl<'de> Deserialize<'de> for Hold {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Option::<bool>::deserialize(deserializer)? {
            Some(true) | None => Ok(Self),
            Some(false) => Err(de::Error::custom("`hold` can only be true")),
        }
    }
}

impl JsonSchema for Hold {
    fn schema_name() -> Cow<'static, str> {
        "Hold".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"enum": [true, null]})
    }
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Words;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of parts")
            }

            fn visit_unit<E: de::Error>(self) -> Result<Words, E> {
                Ok(Words::default())
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Words, E> {
                Ok(Words(vec![PartStep::text(text)]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Words, A::Error> {
                let mut parts = Vec::new();
                while let Some(part) = list.next_element()? {
                    parts.push(part);
                }
                Ok(Words(parts))
            }
        }

        deserializer.deserialize_string(Visitor)
    }
}

impl JsonSchema for Words {
    fn schema_name() -> Cow<'static, str> {
        "Words".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let part = generator.subschema_for::<PartStep>();
        json_schema!({
            "description": "A text, a list of parts, or nothing.",
            "anyOf": [{"type": ["string", "null"]}, {"type": "array", "items": part}],
        })
    }
}

impl<'de> Deserialize<'de> for Reply {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Words(parts) = Words::deserialize(deserializer)?;
        if parts.is_empty() {
            return Err(de::Error::custom(
                "a message has to say something; `complete:` ends without a word",
            ));
        }
        Ok(Self(parts))
    }
}

impl JsonSchema for Reply {
    fn schema_name() -> Cow<'static, str> {
        "Reply".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let part = generator.subschema_for::<PartStep>();
        json_schema!({
            "description": "A text, or a list of parts.",
            "anyOf": [{"type": "string"}, {"type": "array", "items": part, "minItems": 1}],
        })
    }
}

/// Text in pieces.
#[derive(serde::Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Deltas", extend("oneOf" = [{"required": ["deltas"]}, {"required": ["words"]}]))]
pub(in crate::script) struct WrittenDeltas {
    /// The pieces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "OneOrMore")]
    deltas: Option<OneOrMore>,
    /// A text that is said word by word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    words: Option<String>,
    /// The pause between two pieces; `0s` just lets others go on. Without one, pieces arrive together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "units::DurationText")]
    every: Option<Pause>,
    /// Each piece is written down and told before the next is said.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    flush: bool,
}

impl From<Deltas> for WrittenDeltas {
    fn from(deltas: Deltas) -> Self {
        let (listed, words) = match deltas.pieces {
            Pieces::Listed(pieces) => (Some(OneOrMore(pieces)), None),
            Pieces::Words(text) => (None, Some(text)),
        };
        Self {
            deltas: listed,
            words,
            every: deltas.every.map(Pause),
            flush: deltas.flush,
        }
    }
}

impl<'de> Deserialize<'de> for Deltas {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl Visitor {
            fn listed(pieces: Vec<String>) -> Deltas {
                Deltas {
                    pieces: Pieces::Listed(pieces),
                    every: None,
                    flush: false,
                }
            }
        }

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Deltas;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, a list of texts, or a mapping with `deltas` or `words`")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Deltas, E> {
                Ok(Self::listed(vec![text.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Deltas, A::Error> {
                let list = SeqAccessDeserializer::new(list);
                Ok(Self::listed(OneOrMore::deserialize(list)?.0))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Deltas, A::Error> {
                let written = WrittenDeltas::deserialize(MapAccessDeserializer::new(map))?;
                let pieces = match (written.deltas, written.words) {
                    (Some(OneOrMore(pieces)), None) => Pieces::Listed(pieces),
                    (None, Some(text)) => Pieces::Words(text),
                    (None, None) | (Some(_), Some(_)) => {
                        return Err(de::Error::custom(
                            "either `deltas` or `words` has to say the text",
                        ));
                    }
                };
                Ok(Deltas {
                    pieces,
                    every: written.every.map(|Pause(time)| time),
                    flush: written.flush,
                })
            }
        }

        deserializer.deserialize_string(Visitor)
    }
}

impl JsonSchema for Deltas {
    fn schema_name() -> Cow<'static, str> {
        "Text".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let texts = generator.subschema_for::<OneOrMore>();
        let mapping = generator.subschema_for::<WrittenDeltas>();
        json_schema!({
            "description": "A text, its pieces, or pieces with a pause between them.",
            "anyOf": [texts, mapping],
        })
    }
}

/// What the schema says of a chunk.
struct Chunk;

impl JsonSchema for Chunk {
    fn schema_name() -> Cow<'static, str> {
        "Chunk".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let part = generator.subschema_for::<PartStep>();
        json_schema!({"type": "array", "items": part, "minItems": 1})
    }
}

/// An artifact.
#[derive(serde::Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [{"required": ["parts"]}, {"required": ["chunks"]}]))]
pub(in crate::script) struct WrittenArtifact {
    /// Its name inside the task.
    #[schemars(with = "String")]
    id: ArtifactId,
    /// A name for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    name: String,
    /// A description for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    description: String,
    /// The content, at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<PartStep>", length(min = 1))]
    parts: Option<Vec<PartStep>>,
    /// The content in chunks, each a list of parts that is added to what is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<Chunk>", length(min = 1))]
    chunks: Option<Vec<Vec<PartStep>>>,
    /// The pause between two chunks; `0s` just lets others go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "units::DurationText")]
    every: Option<Pause>,
    /// Each chunk is written down and told before the next is said.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    flush: bool,
}

impl TryFrom<WrittenArtifact> for ArtifactStep {
    type Error = &'static str;

    fn try_from(written: WrittenArtifact) -> Result<Self, &'static str> {
        let chunks = match (written.parts, written.chunks) {
            (Some(parts), None) => vec![parts],
            (None, Some(chunks)) => chunks,
            (None, None) => return Err("an artifact needs `parts` or `chunks`"),
            (Some(_), Some(_)) => return Err("an artifact has either `parts` or `chunks`"),
        };
        if chunks.is_empty() || chunks.iter().any(Vec::is_empty) {
            return Err("an artifact needs at least one part, and so does each chunk");
        }
        Ok(Self {
            id: written.id,
            name: written.name,
            description: written.description,
            chunks,
            every: written.every.map(|Pause(time)| time),
            flush: written.flush,
        })
    }
}

impl From<ArtifactStep> for WrittenArtifact {
    fn from(artifact: ArtifactStep) -> Self {
        Self {
            id: artifact.id,
            name: artifact.name,
            description: artifact.description,
            parts: None,
            chunks: Some(artifact.chunks),
            every: artifact.every.map(Pause),
            flush: artifact.flush,
        }
    }
}
