//! Parts as they are written.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserialize, Deserializer, MapAccess};
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::super::step::{Content, PartStep};

/// A part: exactly one of `text`, `raw`, `url` and `data`.
#[derive(Default, serde::Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "PartMapping", extend("oneOf" = [
    {"required": ["text"]}, {"required": ["raw"]}, {"required": ["url"]}, {"required": ["data"]}
]))]
pub(in crate::script) struct WrittenPart {
    /// Text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    text: Option<String>,
    /// A file's bytes, in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    raw: Option<Base64>,
    /// Where a file's bytes are.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    url: Option<String>,
    /// Any value, as JSON has them.
    #[serde(
        deserialize_with = "any_value",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Value")]
    data: Option<Value>,
    /// The media type.
    #[serde(skip_serializing_if = "String::is_empty")]
    media_type: String,
    /// A file name.
    #[serde(skip_serializing_if = "String::is_empty")]
    filename: String,
}

/// A value that is there, also if it is `null`.
fn any_value<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl TryFrom<WrittenPart> for PartStep {
    type Error = &'static str;

    fn try_from(written: WrittenPart) -> Result<Self, &'static str> {
        let mut contents = [
            written.text.map(Content::Text),
            written.raw.map(|Base64(bytes)| Content::Raw(bytes.into())),
            written.url.map(Content::Url),
            written.data.map(|data| Content::Data(data.into())),
        ]
        .into_iter()
        .flatten();
        match (contents.next(), contents.next()) {
            (Some(content), None) => Ok(Self {
                content,
                media_type: written.media_type,
                filename: written.filename,
            }),
            (None, _) => Err("a part needs one of text, raw, url, data"),
            (Some(_), Some(_)) => Err("a part has only one of text, raw, url, data"),
        }
    }
}

impl From<PartStep> for WrittenPart {
    fn from(part: PartStep) -> Self {
        let mut written = Self {
            media_type: part.media_type,
            filename: part.filename,
            ..Self::default()
        };
        match part.content {
            Content::Text(text) => written.text = Some(text),
            Content::Raw(bytes) => written.raw = Some(Base64(bytes.into())),
            Content::Url(url) => written.url = Some(url),
            Content::Data(data) => written.data = Some(data.value),
        }
        written
    }
}

impl<'de> Deserialize<'de> for PartStep {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = PartStep;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, or a mapping with one of text, raw, url, data")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<PartStep, E> {
                Ok(PartStep::text(text))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<PartStep, A::Error> {
                let written = WrittenPart::deserialize(MapAccessDeserializer::new(map))?;
                written.try_into().map_err(de::Error::custom)
            }
        }

        deserializer.deserialize_string(Visitor)
    }
}

impl JsonSchema for PartStep {
    fn schema_name() -> Cow<'static, str> {
        "Part".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mapping = generator.subschema_for::<WrittenPart>();
        json_schema!({
            "description": "A text, or a part with one of `text`, `raw`, `url` and `data`.",
            "anyOf": [{"type": "string"}, mapping],
        })
    }
}

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Bytes, written in base64.
struct Base64(Vec<u8>);

impl Serialize for Base64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        // Long ones are broken into lines.
        let compact: String = text.split_whitespace().collect();
        let bytes = BASE64.decode(compact);
        bytes.map(Self).map_err(|_| {
            de::Error::custom("not base64; `base64 <file>` writes it, and `text` needs none")
        })
    }
}
