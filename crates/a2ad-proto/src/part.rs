//! Pieces of content.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess};
use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

use crate::wire::{Bounds, Field, Leaf, Path, at};
use crate::{Json, Metadata};

/// One piece of a message or artifact.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The content itself.
    pub content: PartContent,
    /// Free content.
    pub metadata: Option<Metadata>,
    /// A file name for it.
    pub filename: String,
    /// Its media type.
    pub media_type: String,
}

/// The content of a [`Part`]: exactly one of these (MODEL-04).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartContent {
    /// Text.
    Text(String),
    /// A file's bytes.
    Raw(Bytes),
    /// Where a file's bytes are.
    Url(String),
    /// Any JSON value, `null` included (JSON-07).
    Data(Json),
}

impl Part {
    /// A part of text.
    pub fn text(text: impl Into<String>) -> Self {
        PartContent::Text(text.into()).into()
    }

    /// A part of structured data.
    #[must_use]
    pub fn data(data: Json) -> Self {
        PartContent::Data(data).into()
    }

    /// The text, if it is a part of text.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match &self.content {
            PartContent::Text(text) => Some(text),
            PartContent::Raw(_) | PartContent::Url(_) | PartContent::Data(_) => None,
        }
    }
}

impl From<PartContent> for Part {
    fn from(content: PartContent) -> Self {
        Self {
            content,
            ..Self::default()
        }
    }
}

impl Default for PartContent {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl Leaf for Part {
    type Wire = Self;

    fn is_default(&self) -> bool {
        false
    }
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Part", 1)?;
        match &self.content {
            PartContent::Text(text) => object.serialize_field("text", text)?,
            PartContent::Raw(raw) => object.serialize_field("raw", &STANDARD.encode(raw))?,
            PartContent::Url(url) => object.serialize_field("url", url)?,
            PartContent::Data(data) => object.serialize_field("data", data)?,
        }
        if !self.metadata.is_absent() {
            object.serialize_field("metadata", &self.metadata)?;
        }
        if !self.filename.is_absent() {
            object.serialize_field("filename", &self.filename)?;
        }
        if !self.media_type.is_absent() {
            object.serialize_field("mediaType", &self.media_type)?;
        }
        object.end()
    }
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PartVisitor)
    }
}

struct PartVisitor;

impl<'de> de::Visitor<'de> for PartVisitor {
    type Value = Part;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with one of text raw url data")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Part, A::Error> {
        let mut content = None;
        let (mut metadata, mut filename, mut media_type) = (None, None, None);
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            match &*name {
                "text" => choose(
                    &mut content,
                    "text",
                    content_of(&mut map, PartContent::Text),
                )?,
                "raw" => choose(
                    &mut content,
                    "raw",
                    content_of(&mut map, |Base64(raw)| PartContent::Raw(raw)),
                )?,
                "url" => choose(&mut content, "url", content_of(&mut map, PartContent::Url))?,
                // Not through `Option`: here `null` is a value.
                "data" => choose(
                    &mut content,
                    "data",
                    map.next_value().map(|data| Some(PartContent::Data(data))),
                )?,
                "metadata" => set(&mut metadata, "metadata", &mut map)?,
                "filename" => set(&mut filename, "filename", &mut map)?,
                "mediaType" | "media_type" => set(&mut media_type, "mediaType", &mut map)?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Part {
            content: content.ok_or_else(|| de::Error::invalid_value(de::Unexpected::Map, &self))?,
            metadata: metadata.unwrap_or_default(),
            filename: filename.unwrap_or_default(),
            media_type: media_type.unwrap_or_default(),
        })
    }
}

fn content_of<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
    map: &mut A,
    make: impl FnOnce(T) -> PartContent,
) -> Result<Option<PartContent>, A::Error> {
    Ok(map.next_value::<Option<T>>()?.map(make))
}

fn choose<E: de::Error>(
    content: &mut Option<PartContent>,
    name: &'static str,
    read: Result<Option<PartContent>, E>,
) -> Result<(), E> {
    let read = read.map_err(|error| at(Path::Name(name), &error))?;
    if read.is_some() && content.is_some() {
        let error = E::custom("excludes another content member that is set");
        return Err(at(Path::Name(name), &error));
    }
    if read.is_some() {
        *content = read;
    }
    Ok(())
}

fn set<'de, T: Field, A: MapAccess<'de>>(
    slot: &mut Option<T>,
    name: &'static str,
    map: &mut A,
) -> Result<(), A::Error> {
    if slot.is_some() {
        return Err(at(Path::Name(name), &de::Error::custom("given twice")));
    }
    *slot =
        Some(T::read(map, Bounds::None, usize::MAX).map_err(|error| at(Path::Name(name), &error))?);
    Ok(())
}

const ANY_PADDING: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
pub(crate) const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, ANY_PADDING);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, ANY_PADDING);

/// Bytes in either alphabet, padded or not (JSON-03).
pub(crate) struct Base64(pub(crate) Bytes);

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Base64;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("base64")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Base64, E> {
                let url_safe = text.contains(['-', '_']);
                let engine = if url_safe { &URL_SAFE } else { &STANDARD };
                let bytes = engine.decode(text);
                Ok(Base64(
                    bytes.map_err(|_| E::custom("expected base64"))?.into(),
                ))
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}
