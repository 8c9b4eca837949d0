//! `Part`, whose choice of content sits among other fields.

use bytes::Bytes;

use super::wire::put_bytes;
use super::{Body, DecodeError, Pieces, Reader, Single as _, Slot as _};
use crate::wire::{Bounds, Path};
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

    fn read(bytes: &[u8], bounds: Bounds) -> Result<Self, DecodeError> {
        let mut part = Self::default();
        let mut chosen = false;
        let mut metadata = Pieces::default();
        let mut reader = Reader::new(bytes);
        while let Some((field, payload)) = reader.next()? {
            match field {
                1 => part.content = PartContent::Text(String::take(payload, bounds)?),
                2 => part.content = PartContent::Raw(Bytes::copy_from_slice(payload.bytes()?)),
                3 => part.content = PartContent::Url(String::take(payload, bounds)?),
                4 => {
                    let data = Json::take(payload, bounds)
                        .map_err(|error| error.at(Path::Name("data")))?;
                    part.content = PartContent::Data(data);
                }
                5 => metadata.add(payload)?,
                6 => part.filename = String::take(payload, bounds)?,
                7 => part.media_type = String::take(payload, bounds)?,
                _ => {}
            }
            chosen |= (1..=4).contains(&field);
        }
        if !chosen {
            return Err(DecodeError::invalid(
                "invalid value: map, expected an object with one of text raw url data",
            ));
        }
        let finished = part.metadata.finish(&metadata, bounds);
        finished.map_err(|error| error.at(Path::Name("metadata")))?;
        Ok(part)
    }
}
