//! What a field of each kind looks like in protobuf.

use std::collections::BTreeMap;

use super::wire::{put_bytes, put_number};
use super::{DecodeError, Payload, Reader, nested};
use crate::wire::{Leaf, Path};
use crate::{Metadata, Timestamp};

/// A message's content, without its length.
pub(crate) trait Body: Sized {
    fn write(&self, out: &mut Vec<u8>);

    fn read(bytes: &[u8]) -> Result<Self, DecodeError>;

    /// Reads more of the same: a message may come in pieces.
    fn merge(&mut self, bytes: &[u8]) -> Result<(), DecodeError>;
}

/// One value with its key, always written.
pub(crate) trait Single: Sized {
    fn put(&self, field: u32, out: &mut Vec<u8>);
    fn take(payload: Payload<'_>) -> Result<Self, DecodeError>;

    /// Takes in a later value of the same field. The last one wins, except for messages.
    fn merge_from(&mut self, payload: Payload<'_>) -> Result<(), DecodeError> {
        *self = Self::take(payload)?;
        Ok(())
    }
}

/// A field of a message: nothing, one or many values.
pub(crate) trait Slot {
    fn put_all(&self, field: u32, out: &mut Vec<u8>);
    fn add(&mut self, payload: Payload<'_>) -> Result<(), DecodeError>;
}

impl<T: Body> Single for T {
    fn put(&self, field: u32, out: &mut Vec<u8>) {
        nested(out, field, |out| self.write(out));
    }

    fn take(payload: Payload<'_>) -> Result<Self, DecodeError> {
        T::read(payload.bytes()?)
    }

    fn merge_from(&mut self, payload: Payload<'_>) -> Result<(), DecodeError> {
        self.merge(payload.bytes()?)
    }
}

impl Single for String {
    fn put(&self, field: u32, out: &mut Vec<u8>) {
        put_bytes(out, field, self.as_bytes());
    }

    fn take(payload: Payload<'_>) -> Result<Self, DecodeError> {
        payload.text().map(str::to_owned)
    }
}

impl Single for bool {
    fn put(&self, field: u32, out: &mut Vec<u8>) {
        put_number(out, field, u64::from(*self));
    }

    fn take(payload: Payload<'_>) -> Result<Self, DecodeError> {
        Ok(payload.number()? != 0)
    }
}

impl Single for i32 {
    fn put(&self, field: u32, out: &mut Vec<u8>) {
        // Negative numbers are sign-extended to 64 bits.
        put_number(out, field, i64::from(*self) as u64);
    }

    fn take(payload: Payload<'_>) -> Result<Self, DecodeError> {
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

    fn read(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut time = Self::from_millis(0);
        time.merge(bytes)?;
        Ok(time)
    }

    fn merge(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        let (mut seconds, mut nanos) = (self.seconds(), self.nanos());
        let mut reader = Reader::new(bytes);
        while let Some((field, payload)) = reader.next()? {
            match field {
                1 => seconds = payload.number()? as i64,
                2 => nanos = payload.number()? as u32,
                _ => {}
            }
        }
        *self = Self::from_parts(seconds, nanos)
            .map_err(|_| DecodeError::invalid("time out of range"))?;
        Ok(())
    }
}

impl<T: Single + Leaf + Default> Slot for T {
    fn put_all(&self, field: u32, out: &mut Vec<u8>) {
        if !self.is_default() {
            self.put(field, out);
        }
    }

    fn add(&mut self, payload: Payload<'_>) -> Result<(), DecodeError> {
        self.merge_from(payload)
    }
}

impl<T: Single + Leaf> Slot for Option<T> {
    fn put_all(&self, field: u32, out: &mut Vec<u8>) {
        if let Some(value) = self {
            value.put(field, out);
        }
    }

    fn add(&mut self, payload: Payload<'_>) -> Result<(), DecodeError> {
        match self {
            Some(value) => value.merge_from(payload)?,
            None => *self = Some(T::take(payload)?),
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

    fn add(&mut self, payload: Payload<'_>) -> Result<(), DecodeError> {
        let index = self.len();
        let value = T::take(payload).map_err(|error| error.at(Path::Index(index)))?;
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

    fn add(&mut self, payload: Payload<'_>) -> Result<(), DecodeError> {
        let (mut key, mut value) = (String::new(), T::default());
        let mut reader = Reader::new(payload.bytes()?);
        while let Some((field, payload)) = reader.next()? {
            match field {
                1 => key = String::take(payload)?,
                2 => value = T::take(payload).map_err(|error| error.at(Path::Key(&key)))?,
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

    fn read(bytes: &[u8]) -> Result<Self, DecodeError> {
        super::value::read_struct(bytes)
    }

    fn merge(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        *self = self.merged(&Self::read(bytes)?);
        Ok(())
    }
}
