//! Keys, varints and lengths.

use super::DecodeError;

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH: u64 = 2;
const FIXED32: u64 = 5;

pub(crate) fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

pub(crate) fn put_number(out: &mut Vec<u8>, field: u32, number: u64) {
    put_varint(out, u64::from(field) << 3 | VARINT);
    put_varint(out, number);
}

pub(crate) fn put_double(out: &mut Vec<u8>, field: u32, number: f64) {
    put_varint(out, u64::from(field) << 3 | FIXED64);
    out.extend_from_slice(&number.to_le_bytes());
}

pub(crate) fn put_bytes(out: &mut Vec<u8>, field: u32, bytes: &[u8]) {
    put_varint(out, u64::from(field) << 3 | LENGTH);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Writes a message inside a message. The length comes first but is known last: one byte is set aside, and a longer
/// body moves up. That is cheaper than computing the lengths of all inner messages beforehand, once per level.
pub(crate) fn nested(out: &mut Vec<u8>, field: u32, write: impl FnOnce(&mut Vec<u8>)) {
    put_varint(out, u64::from(field) << 3 | LENGTH);
    let length_at = out.len();
    out.push(0);
    let start = out.len();
    write(out);
    let end = out.len();
    let mut length = end - start;
    if length >= 0x80 {
        let extra = length.ilog2() as usize / 7;
        out.resize(end + extra, 0);
        out.copy_within(start..end, start + extra);
    }
    let mut at = length_at;
    while length >= 0x80 {
        out[at] = length as u8 | 0x80;
        length >>= 7;
        at += 1;
    }
    out[at] = length as u8;
}

/// The value of one field as it stands in the bytes.
#[derive(Clone, Copy)]
pub(crate) enum Payload<'a> {
    Number(u64),
    Fixed64([u8; 8]),
    Fixed32,
    Bytes(&'a [u8]),
}

impl<'a> Payload<'a> {
    pub(crate) fn number(self) -> Result<u64, DecodeError> {
        match self {
            Self::Number(number) => Ok(number),
            Self::Fixed64(_) | Self::Fixed32 | Self::Bytes(_) => Err(WRONG_TYPE),
        }
    }

    pub(crate) fn double(self) -> Result<f64, DecodeError> {
        match self {
            Self::Fixed64(bytes) => Ok(f64::from_le_bytes(bytes)),
            Self::Number(_) | Self::Fixed32 | Self::Bytes(_) => Err(WRONG_TYPE),
        }
    }

    pub(crate) fn bytes(self) -> Result<&'a [u8], DecodeError> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Number(_) | Self::Fixed64(_) | Self::Fixed32 => Err(WRONG_TYPE),
        }
    }

    pub(crate) fn text(self) -> Result<&'a str, DecodeError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| DecodeError::Malformed("text is not UTF-8"))
    }
}

const WRONG_TYPE: DecodeError = DecodeError::Malformed("field has the wrong wire type");
const TRUNCATED: DecodeError = DecodeError::Malformed("unexpected end");

/// Walks the fields of one message.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The next field, or `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<(u32, Payload<'a>)>, DecodeError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let key = self.varint()?;
        let field = u32::try_from(key >> 3).ok().filter(|field| *field != 0);
        let field = field.ok_or(DecodeError::Malformed("field number out of range"))?;
        let payload = match key & 7 {
            VARINT => Payload::Number(self.varint()?),
            FIXED64 => Payload::Fixed64(self.array()?),
            LENGTH => {
                let length = usize::try_from(self.varint()?).map_err(|_| TRUNCATED)?;
                let (bytes, rest) = self.rest.split_at_checked(length).ok_or(TRUNCATED)?;
                self.rest = rest;
                Payload::Bytes(bytes)
            }
            FIXED32 => {
                self.array::<4>()?;
                Payload::Fixed32
            }
            // Groups ended with proto2; no A2A message ever had one.
            _ => {
                return Err(DecodeError::Malformed("unknown wire type"));
            }
        };
        Ok(Some((field, payload)))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(TRUNCATED)?;
        self.rest = rest;
        Ok(*bytes)
    }

    fn varint(&mut self) -> Result<u64, DecodeError> {
        let mut number = 0;
        for (i, byte) in self.rest.iter().enumerate().take(10) {
            number |= u64::from(byte & 0x7f) << (7 * i);
            if *byte < 0x80 {
                self.rest = &self.rest[i + 1..];
                return Ok(number);
            }
        }
        Err(if self.rest.len() < 10 {
            TRUNCATED
        } else {
            DecodeError::Malformed("number longer than 64 bits")
        })
    }
}
