//! Messages, parts and artifacts.

use base64::Engine as _;

use super::blob::Blob;
use super::enums::Role;
use crate::part::STANDARD;
use crate::v03::Dialect;
use crate::v03::write::wrapped;
use crate::wire::message;
use crate::{Metadata, PartContent};

message! {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Message of V03 {
        pub message_id: String = 1 "messageId",
        pub context_id: String = 2 "contextId",
        pub task_id: String = 3 "taskId",
        pub role: Role = 4 "role",
        pub content: Vec<Part> = 5 "content" [crate::Message::PARTS_MAX],
        pub metadata: Option<Metadata> = 6 "metadata",
        pub extensions: Vec<String> = 7 "extensions" [crate::Message::EXTENSIONS_MAX],
    }
}

message! {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Part of V03 choice "part" {
        pub text: Option<String> = 1 "text" C,
        pub file: Option<FilePart> = 2 "file" C,
        pub data: Option<DataPart> = 3 "data" C,
        pub metadata: Option<Metadata> = 4 "metadata",
    }
}

message! {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct FilePart of V03 choice "file" {
        pub file_with_uri: Option<String> = 1 "fileWithUri" C,
        pub file_with_bytes: Option<Blob> = 2 "fileWithBytes" C,
        pub mime_type: String = 3 "mimeType",
        pub name: String = 4 "name",
    }
}

message! {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct DataPart of V03 {
        pub data: Option<Metadata> = 1 "data",
    }
}

message! {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Artifact of V03 {
        pub artifact_id: String = 1 "artifactId",
        pub name: String = 3 "name",
        pub description: String = 4 "description",
        pub parts: Vec<Part> = 5 "parts",
        pub metadata: Option<Metadata> = 6 "metadata",
        pub extensions: Vec<String> = 7 "extensions",
    }
}

impl Message {
    pub(super) fn of(message: &crate::Message, dialect: Dialect) -> Self {
        Self {
            message_id: message.message_id.clone(),
            context_id: message.context_id.clone(),
            task_id: message.task_id.clone(),
            role: message.role.into(),
            content: parts(&message.parts, dialect),
            metadata: message.metadata.clone(),
            extensions: message.extensions.clone(),
        }
    }
}

impl Artifact {
    pub(super) fn of(artifact: &crate::Artifact, dialect: Dialect) -> Self {
        Self {
            artifact_id: artifact.artifact_id.clone(),
            name: artifact.name.clone(),
            description: artifact.description.clone(),
            parts: parts(&artifact.parts, dialect),
            metadata: artifact.metadata.clone(),
            extensions: artifact.extensions.clone(),
        }
    }
}

fn parts(parts: &[crate::Part], dialect: Dialect) -> Vec<Part> {
    parts.iter().map(|part| Part::of(part, dialect)).collect()
}

impl Part {
    fn of(part: &crate::Part, dialect: Dialect) -> Self {
        let mut made = Self {
            metadata: part.metadata.clone(),
            ..Self::default()
        };
        match &part.content {
            PartContent::Text(text) => made.text = Some(text.clone()),
            PartContent::Raw(raw) => {
                let bytes = match dialect {
                    Dialect::Kinds | Dialect::Proto => STANDARD.encode(raw).into(),
                    Dialect::ProtoPlain => raw.clone(),
                };
                made.file = Some(FilePart {
                    file_with_bytes: Some(Blob(bytes)),
                    ..FilePart::about(part)
                });
            }
            PartContent::Url(url) => {
                made.file = Some(FilePart {
                    file_with_uri: Some(url.clone()),
                    ..FilePart::about(part)
                });
            }
            PartContent::Data(data) => {
                let data = match wrapped(data, part.metadata.as_ref()) {
                    Some((data, marked)) => {
                        made.metadata = Some(marked);
                        data
                    }
                    None => Metadata::try_from(data.clone()).unwrap_or_default(),
                };
                made.data = Some(DataPart { data: Some(data) });
            }
        }
        made
    }
}

impl FilePart {
    fn about(part: &crate::Part) -> Self {
        Self {
            mime_type: part.media_type.clone(),
            name: part.filename.clone(),
            ..Self::default()
        }
    }
}
