//! Parts and messages.

use bytes::Bytes;
use serde_json::value::RawValue;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as PADDED;

use super::Reader;
use crate::part::Base64;
use crate::v03::Dialect;
use crate::v03::raw::{Read, free, list, members, modern, read, text, texts};
use crate::v03::words::{AnyRole, WRAPPED};
use crate::wire::Path;
use crate::{Json, Message, Metadata, Part, PartContent, Violations};

/// A message, and the name under which its parts were found.
pub(super) struct Found {
    pub(super) message: Message,
    pub(super) parts: &'static str,
}

impl Reader {
    pub(super) fn message(self, value: &RawValue) -> Read<Found> {
        let mut message = Message::default();
        let mut parts = if self.dialect == Dialect::Kinds {
            "parts"
        } else {
            "content"
        };
        members(value, |name, value| {
            Ok(Some(match name {
                "kind" => {
                    kind(value, &["message"])?;
                    "kind"
                }
                "messageId" | "message_id" => {
                    message.message_id = text(value)?;
                    "messageId"
                }
                "contextId" | "context_id" => {
                    message.context_id = text(value)?;
                    "contextId"
                }
                "taskId" | "task_id" => {
                    message.task_id = text(value)?;
                    "taskId"
                }
                "role" => {
                    message.role = read::<AnyRole>(value)?.0;
                    "role"
                }
                "parts" | "content" => {
                    parts = if name == "parts" { "parts" } else { "content" };
                    let most = self.bounds.most(Message::PARTS_MAX);
                    message.parts = list(value, most, |part| self.part(part))?;
                    "parts"
                }
                "metadata" => {
                    message.metadata = free(value)?;
                    "metadata"
                }
                "extensions" => {
                    message.extensions = texts(value, self.bounds.most(Message::EXTENSIONS_MAX))?;
                    "extensions"
                }
                "referenceTaskIds" | "reference_task_ids" => {
                    let most = self.bounds.most(Message::REFERENCES_MAX);
                    message.reference_task_ids = texts(value, most)?;
                    "referenceTaskIds"
                }
                _ => return Ok(None),
            }))
        })?;
        Ok(Found { message, parts })
    }

    pub(super) fn part(self, value: &RawValue) -> Read<Part> {
        let mut found = Pieces::default();
        members(value, |name, value| {
            Ok(Some(match name {
                "kind" => {
                    found.kind = Some(kind(value, &["text", "file", "data"])?);
                    "kind"
                }
                "type" => {
                    found.r#type = Some(value);
                    "type"
                }
                "text" => {
                    found.text = Some(text(value)?);
                    "text"
                }
                "file" => {
                    found.file = Some(self.file(value)?);
                    "file"
                }
                "data" => {
                    found.data = Some(value);
                    "data"
                }
                "metadata" => {
                    found.metadata = free(value)?;
                    "metadata"
                }
                "raw" => found.modern("raw"),
                "url" => found.modern("url"),
                "filename" => found.modern("filename"),
                "mediaType" | "media_type" => found.modern("mediaType"),
                _ => return Ok(None),
            }))
        })?;
        found.part(self.dialect)
    }

    /// A file's content, and its name and type.
    fn file(self, value: &RawValue) -> Read<Part> {
        let mut part = Part::default();
        let mut content = None;
        let mut choose = |chosen| match content.replace(chosen) {
            None => Ok(()),
            Some(_) => Err(Violations::one(
                "",
                "excludes another content member that is set",
            )),
        };
        members(value, |name, value| {
            Ok(Some(match name {
                "bytes" => {
                    choose(PartContent::Raw(read::<Base64>(value)?.0))?;
                    "bytes"
                }
                "fileWithBytes" | "file_with_bytes" => {
                    let bytes = read::<Base64>(value)?.0;
                    choose(PartContent::Raw(unpacked(bytes, self.dialect)))?;
                    "fileWithBytes"
                }
                "uri" | "fileWithUri" | "file_with_uri" => {
                    choose(PartContent::Url(text(value)?))?;
                    "uri"
                }
                "name" => {
                    part.filename = text(value)?;
                    "name"
                }
                "mimeType" | "mime_type" => {
                    part.media_type = text(value)?;
                    "mimeType"
                }
                _ => return Ok(None),
            }))
        })?;
        let expected = "expected an object with one of bytes uri";
        part.content = content.ok_or_else(|| Violations::one("", expected))?;
        Ok(part)
    }
}

/// What an object says it is, if that is one of those it may be.
pub(super) fn kind(value: &RawValue, may_be: &'static [&'static str]) -> Read<&'static str> {
    let said = text(value)?;
    let known = may_be.iter().find(|kind| **kind == said);
    known
        .copied()
        .ok_or_else(|| Violations::one("", format!("expected {}", may_be.join(" or "))))
}

/// What was found in a part.
#[derive(Default)]
struct Pieces<'a> {
    kind: Option<&'static str>,
    /// Some have it in place of `kind`.
    r#type: Option<&'a RawValue>,
    text: Option<String>,
    file: Option<Part>,
    data: Option<&'a RawValue>,
    metadata: Option<Metadata>,
    /// A member that only parts of 1.0 have.
    modern: Option<&'static str>,
}

impl Pieces<'_> {
    /// Keeps it in mind. A tagged part is of 0.3, whatever else is in it.
    fn modern(&mut self, name: &'static str) -> &'static str {
        if !matches!(self.modern, Some("raw" | "url")) {
            self.modern = Some(name);
        }
        name
    }

    fn part(self, dialect: Dialect) -> Read<Part> {
        let tag = match (self.kind, self.r#type) {
            (Some(said), _) => Some((said, "kind")),
            (None, Some(said)) => {
                let said = kind(said, &["text", "file", "data"]);
                Some((said.map_err(|wrong| wrong.at(Path::Name("type")))?, "type"))
            }
            (None, None) => None,
        };
        if let (None, Some(member)) = (tag, self.modern) {
            let instead = "`text`, `file` with `bytes` or `uri`, and `data`";
            return modern(instead).map_err(|wrong| wrong.at(Path::Name(member)));
        }
        let (name, part) = match (self.text, self.file, self.data) {
            (Some(text), None, None) => ("text", Part::text(text)),
            (None, Some(file), None) => ("file", file),
            (None, None, Some(data)) => {
                let wrapped = tag.is_none() && dialect.without_presence();
                let data = data_of(data, wrapped).map_err(|wrong| wrong.at(Path::Name("data")))?;
                ("data", data)
            }
            (None, None, None) => {
                let (said, _) = tag.ok_or_else(|| {
                    Violations::one("", "expected an object with one of text file data")
                })?;
                return Err(Violations::one(said, "is required"));
            }
            _ => {
                let excludes = "has more than one of text file data";
                return Err(Violations::one("", excludes));
            }
        };
        if let Some((said, member)) = tag.filter(|(said, _)| *said != name) {
            let description = format!("says `{said}`, but the part has `{name}`");
            return Err(Violations::one(member, description));
        }
        Ok(Part {
            metadata: self.metadata,
            ..part
        }
        .unwrapped())
    }
}

/// Data, which 0.3 has as objects only. In the schema's JSON the object is inside another.
fn data_of(value: &RawValue, wrapped: bool) -> Read<Part> {
    let mut data: Metadata = read(value)?;
    if wrapped {
        let mut inner = data.members();
        if let (Some((r#""data""#, object)), None) = (inner.next(), inner.next())
            && object.starts_with('{')
        {
            let object = Json::from_compact(object.to_owned());
            data = Metadata::try_from(object).unwrap_or_default();
        }
    }
    Ok(Part::data(data.into()))
}

/// The bytes that a peer meant: its base64 text stands where the bytes should (V03-16).
pub(in crate::v03) fn unpacked(bytes: Bytes, dialect: Dialect) -> Bytes {
    match dialect {
        // Peers that do this pad, which keeps most other text from being taken for base64.
        Dialect::Kinds | Dialect::Proto => match PADDED.decode(&bytes) {
            Ok(inner) => inner.into(),
            Err(_) => bytes,
        },
        Dialect::ProtoPlain => bytes,
    }
}

impl Part {
    /// Takes data that is no object out of the object that 0.3 needs around it.
    pub(in crate::v03) fn unwrapped(mut self) -> Self {
        let PartContent::Data(data) = &self.content else {
            return self;
        };
        let marked = self.metadata.as_ref().and_then(|it| it.get(WRAPPED));
        if marked.is_none_or(|mark| mark.as_str() != "true") {
            return self;
        }
        let value = Metadata::try_from(data.clone())
            .ok()
            .and_then(|it| it.get("value"));
        if let Some(value) = value {
            self.content = PartContent::Data(value);
            self.metadata = self.metadata.and_then(|it| it.without(WRAPPED));
        }
        self
    }
}
