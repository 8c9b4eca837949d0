//! `Part`, whose choice of content sits among other fields.

use bytes::Bytes;

use super::wire::put_bytes;
use super::{Body, DecodeError, Reader, Single as _, Slot as _};
use crate::wire::Path;
use crate::{Json, Part, PartContent};

impl Body for Part {
    fn write(&self, out: &mut Vec<u8>) {
        match &self.content {
            PartContent::Text(text) => text.put(1, out),
            PartContent::Raw(raw) => put_bytes(out, 2, raw),
            PartContent::Url(url) => url.put(3, out),
            PartContent::Data(data) => data.put(4, out),
        }
        self.metadata.put_all(5, out);
        self.filename.put_all(6, out);
        self.media_type.put_all(7, out);
    }

    fn read(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut part = Self::default();
        if part.merge_content(bytes)? {
            return Ok(part);
        }
        Err(DecodeError::invalid(
            "invalid value: map, expected an object with one of text raw url data",
        ))
    }

    fn merge(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        self.merge_content(bytes).map(|_| ())
    }
}

impl Part {
    /// Whether there was content.
    fn merge_content(&mut self, bytes: &[u8]) -> Result<bool, DecodeError> {
        let mut chosen = false;
        let mut reader = Reader::new(bytes);
        while let Some((field, payload)) = reader.next()? {
            match field {
                1 => self.content = PartContent::Text(String::take(payload)?),
                2 => self.content = PartContent::Raw(Bytes::copy_from_slice(payload.bytes()?)),
                3 => self.content = PartContent::Url(String::take(payload)?),
                4 => {
                    let data = Json::take(payload).map_err(|error| error.at(Path::Name("data")))?;
                    self.content = PartContent::Data(data);
                }
                5 => {
                    let added = self.metadata.add(payload);
                    added.map_err(|error| error.at(Path::Name("metadata")))?;
                }
                6 => self.filename.add(payload)?,
                7 => self.media_type.add(payload)?,
                _ => {}
            }
            chosen |= (1..=4).contains(&field);
        }
        Ok(chosen)
    }
}
