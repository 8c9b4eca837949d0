//! What a field of each kind looks like in protobuf.

use std::collections::BTreeMap;

use super::wire::{put_bytes, put_number};
use super::{DecodeError, Payload, Reader, nested};
use crate::wire::{Bounds, Leaf, Path, too_many};
use crate::{Metadata, Timestamp};

/// A message's content, without its length.
pub(crate) trait Body: Sized {
    fn write(&self, out: &mut Vec<u8>);

    fn read(bytes: &[u8], bounds: Bounds) -> Result<Self, DecodeError>;
}

/// One value with its key, always written.
pub(crate) trait Single: Sized {
    /// Whether several values of one field are pieces of one; else the last one counts.
    const IN_PIECES: bool = false;

    fn put(&self, field: u32, out: &mut Vec<u8>);
    fn take(payload: Payload<'_>, bounds: Bounds) -> Result<Self, DecodeError>;
}

/// A field of a message: nothing, one or many values.
pub(crate) trait Slot {
    fn put_all(&self, field: u32, out: &mut Vec<u8>);

    /// Takes in a value, or sets it aside as one of `pieces`. Of a list at most `most` elements.
    fn add<'a>(
        &mut self,
        pieces: &mut Pieces<'a>,
        payload: Payload<'a>,
        bounds: Bounds,
        most: usize,
    ) -> Result<(), DecodeError>;

    /// Reads what was set aside.
    fn finish(&mut self, _pieces: &Pieces<'_>, _bounds: Bounds) -> Result<(), DecodeError> {
        Ok(())
    }
}

/// The bodies of one message that came in several. Put together they are the body of the whole, so it is read once:
/// reading each piece into what there is would cost what there is, each time.
#[derive(Default)]
pub(crate) enum Pieces<'a> {
    #[default]
    None,
    One(&'a [u8]),
    Many(Vec<u8>),
}

impl<'a> Pieces<'a> {
    pub(crate) fn add(&mut self, payload: Payload<'a>) -> Result<(), DecodeError> {
        let piece = payload.bytes()?;
        match self {
            Self::None => *self = Self::One(piece),
            Self::One(first) => *self = Self::Many([first, piece].concat()),
            Self::Many(all) => all.extend_from_slice(piece),
        }
        Ok(())
    }

    pub(crate) fn whole(&self) -> Option<Payload<'_>> {
        match self {
            Self::None => None,
            Self::One(piece) => Some(Payload::Bytes(piece)),
            Self::Many(all) => Some(Payload::Bytes(all)),
        }
    }
}

impl<T: Body> Single for T {
    const IN_PIECES: bool = true;

    fn put(&self, field: u32, out: &mut Vec<u8>) {
        nested(out, field, |out| self.write(out));
    }

    fn take(payload: Payload<'_>, bounds: Bounds) -> Result<Self, DecodeError> {
        T::read(payload.bytes()?, bounds)
    }
}

impl Single for String {
    fn put(&self, field: u32, out: &mut Vec<u8>) {
        put_bytes(out, field, self.as_bytes());
    }

    fn take(payload: Payload<'_>, _bounds: Bounds) -> Result<Self, DecodeError> {
        payload.text().map(str::to_owned)
    }
}

impl Single for bool {
    fn put(&self, field: u32, out: &mut Vec<u8>) {
        put_number(out, field, u64::from(*self));
    }

    fn take(payload: Payload<'_>, _bounds: Bounds) -> Result<Self, DecodeError> {
        Ok(payload.number()? != 0)
    }
}

impl Single for i32 {
    fn put(&self, field: u32, out: &mut Vec<u8>) {
        // Negative numbers are sign-extended to 64 bits.
        put_number(out, field, i64::from(*self) as u64);
    }

    fn take(payload: Payload<'_>, _bounds: Bounds) -> Result<Self, DecodeError> {
        Ok(payload.number()? as i32)
    }
}

impl Body for Timestamp {
    fn write(&self, out: &mut Vec<u8>) {
        if self.seconds() != 0 {
            put_number(out, 1, self.seconds() as u64);
        }
        if self.nanos() != 0 {
            put_number(out, 2, u64::from(self.nanos()));
        }
    }

    fn read(bytes: &[u8], _bounds: Bounds) -> Result<Self, DecodeError> {
        let (mut seconds, mut nanos) = (0, 0);
        let mut reader = Reader::new(bytes);
        while let Some((field, payload)) = reader.next()? {
            match field {
                1 => seconds = payload.number()? as i64,
                2 => nanos = payload.number()? as u32,
                _ => {}
            }
        }
        Self::from_parts(seconds, nanos).map_err(|_| DecodeError::invalid("time out of range"))
    }
}

impl<T: Single + Leaf + Default> Slot for T {
    fn put_all(&self, field: u32, out: &mut Vec<u8>) {
        if !self.is_default() {
            self.put(field, out);
        }
    }

    fn add<'a>(
        &mut self,
        pieces: &mut Pieces<'a>,
        payload: Payload<'a>,
        bounds: Bounds,
        _most: usize,
    ) -> Result<(), DecodeError> {
        if T::IN_PIECES {
            return pieces.add(payload);
        }
        *self = T::take(payload, bounds)?;
        Ok(())
    }

    fn finish(&mut self, pieces: &Pieces<'_>, bounds: Bounds) -> Result<(), DecodeError> {
        if let Some(whole) = pieces.whole() {
            *self = T::take(whole, bounds)?;
        }
        Ok(())
    }
}

impl<T: Single + Leaf> Slot for Option<T> {
    fn put_all(&self, field: u32, out: &mut Vec<u8>) {
        if let Some(value) = self {
            value.put(field, out);
        }
    }

    fn add<'a>(
        &mut self,
        pieces: &mut Pieces<'a>,
        payload: Payload<'a>,
        bounds: Bounds,
        _most: usize,
    ) -> Result<(), DecodeError> {
        if T::IN_PIECES {
            return pieces.add(payload);
        }
        *self = Some(T::take(payload, bounds)?);
        Ok(())
    }

    fn finish(&mut self, pieces: &Pieces<'_>, bounds: Bounds) -> Result<(), DecodeError> {
        if let Some(whole) = pieces.whole() {
            *self = Some(T::take(whole, bounds)?);
        }
        Ok(())
    }
}

impl<T: Single + Leaf> Slot for Vec<T> {
    fn put_all(&self, field: u32, out: &mut Vec<u8>) {
        for value in self {
            value.put(field, out);
        }
    }

    fn add<'a>(
        &mut self,
        _pieces: &mut Pieces<'a>,
        payload: Payload<'a>,
        bounds: Bounds,
        most: usize,
    ) -> Result<(), DecodeError> {
        let index = self.len();
        if index == most {
            return Err(DecodeError::invalid(too_many(most)));
        }
        let value = T::take(payload, bounds).map_err(|error| error.at(Path::Index(index)))?;
        self.push(value);
        Ok(())
    }
}

impl<T: Single + Leaf + Default> Slot for BTreeMap<String, T> {
    fn put_all(&self, field: u32, out: &mut Vec<u8>) {
        for (key, value) in self {
            nested(out, field, |out| {
                key.put(1, out);
                value.put(2, out);
            });
        }
    }

    fn add<'a>(
        &mut self,
        _pieces: &mut Pieces<'a>,
        payload: Payload<'a>,
        bounds: Bounds,
        _most: usize,
    ) -> Result<(), DecodeError> {
        let (mut key, mut value) = (String::new(), T::default());
        let mut reader = Reader::new(payload.bytes()?);
        while let Some((field, payload)) = reader.next()? {
            match field {
                1 => key = String::take(payload, bounds)?,
                2 => value = T::take(payload, bounds).map_err(|error| error.at(Path::Key(&key)))?,
                _ => {}
            }
        }
        self.insert(key, value);
        Ok(())
    }
}

impl Body for Metadata {
    fn write(&self, out: &mut Vec<u8>) {
        super::value::write_struct(self.as_str(), out);
    }

    fn read(bytes: &[u8], _bounds: Bounds) -> Result<Self, DecodeError> {
        super::value::read_struct(bytes)
    }
}
