//! `google.protobuf.Struct` and `Value`, straight from and to JSON text.

use super::wire::{put_bytes, put_double, put_number};
use super::{Body, DecodeError, Payload, Reader, nested};
use crate::json::text::{Builder, DEPTH_MAX};
use crate::wire::Bounds;
use crate::{Json, Metadata};

// The members of `Value`; `Struct`, its entries and `ListValue` only have fields 1 and 2.
const NULL: u32 = 1;
const NUMBER: u32 = 2;
const STRING: u32 = 3;
const BOOL: u32 = 4;
const STRUCT: u32 = 5;
const LIST: u32 = 6;

/// Integers up to here are doubles exactly and are written without a fraction.
const INTEGER_MAX: f64 = 9_007_199_254_740_991.0;

impl Body for Json {
    fn write(&self, out: &mut Vec<u8>) {
        Source {
            rest: self.as_str(),
        }
        .value(out);
    }

    fn read(bytes: &[u8], _bounds: Bounds) -> Result<Self, DecodeError> {
        let mut text = Builder::with_capacity(bytes.len());
        read_value(bytes, &mut text, 0)?;
        Ok(Self::from_compact(text.finish()))
    }
}

/// Writes the body of a `Struct` for the text of an object.
pub(super) fn write_struct(text: &str, out: &mut Vec<u8>) {
    Source { rest: text }.object(out);
}

pub(super) fn read_struct(bytes: &[u8]) -> Result<Metadata, DecodeError> {
    let mut text = Builder::with_capacity(bytes.len());
    read_object(bytes, &mut text, 1)?;
    Metadata::try_from(Json::from_compact(text.finish()))
        .map_err(|_| DecodeError::Malformed("not an object"))
}

/// Normalised JSON text, read once from left to right. Being normalised, it needs no checks: what cannot happen
/// ends the loop it is in.
struct Source<'a> {
    rest: &'a str,
}

impl<'a> Source<'a> {
    fn first(&self) -> u8 {
        self.rest.as_bytes().first().copied().unwrap_or(b'}')
    }

    fn cut(&mut self, at: usize) -> &'a str {
        let (head, rest) = self.rest.split_at_checked(at).unwrap_or((self.rest, ""));
        self.rest = rest;
        head
    }

    fn value(&mut self, out: &mut Vec<u8>) {
        match self.first() {
            b'"' => self.string(STRING, out),
            b'{' => nested(out, STRUCT, |out| self.object(out)),
            b'[' => nested(out, LIST, |out| self.list(out)),
            b't' => {
                self.cut(4);
                put_number(out, BOOL, 1);
            }
            b'f' => {
                self.cut(5);
                put_number(out, BOOL, 0);
            }
            b'n' => {
                self.cut(4);
                put_number(out, NULL, 0);
            }
            _ => {
                let end = self.rest.find([',', '}', ']']).unwrap_or(self.rest.len());
                put_double(out, NUMBER, self.cut(end).parse().unwrap_or_default());
            }
        }
    }

    fn object(&mut self, out: &mut Vec<u8>) {
        self.cut(1);
        while self.first() == b'"' {
            nested(out, 1, |out| {
                self.string(1, out);
                self.cut(1);
                nested(out, 2, |out| self.value(out));
            });
            if self.first() == b',' {
                self.cut(1);
            }
        }
        self.cut(1);
    }

    fn list(&mut self, out: &mut Vec<u8>) {
        self.cut(1);
        while !matches!(self.first(), b']' | b'}') {
            nested(out, 1, |out| self.value(out));
            if self.first() == b',' {
                self.cut(1);
            }
        }
        self.cut(1);
    }

    fn string(&mut self, field: u32, out: &mut Vec<u8>) {
        let mut escaped = false;
        let mut at = 1;
        loop {
            match self.rest.as_bytes().get(at) {
                Some(b'\\') => {
                    escaped = true;
                    at += 2;
                }
                Some(b'"') | None => break,
                Some(_) => at += 1,
            }
        }
        let quoted = self.cut(at + 1);
        if escaped {
            let text: String = serde_json::from_str(quoted).unwrap_or_default();
            put_bytes(out, field, text.as_bytes());
        } else {
            let text = quoted.get(1..quoted.len() - 1).unwrap_or_default();
            put_bytes(out, field, text.as_bytes());
        }
    }
}

fn read_value(bytes: &[u8], text: &mut Builder, depth: usize) -> Result<(), DecodeError> {
    // The last member wins. A value without any counts as null.
    let mut last = (NULL, Payload::Number(0));
    let mut reader = Reader::new(bytes);
    while let Some(member) = reader.next()? {
        if let NULL..=LIST = member.0 {
            last = member;
        }
    }
    let (kind, payload) = last;
    match kind {
        NUMBER => write_number(payload.double()?, text)?,
        STRING => text.string(payload.text()?),
        BOOL if payload.number()? != 0 => text.raw("true"),
        BOOL => text.raw("false"),
        STRUCT => read_object(payload.bytes()?, text, deeper(depth)?)?,
        LIST => read_list(payload.bytes()?, text, deeper(depth)?)?,
        _ => text.raw("null"),
    }
    Ok(())
}

fn deeper(depth: usize) -> Result<usize, DecodeError> {
    if depth < DEPTH_MAX {
        return Ok(depth + 1);
    }
    Err(DecodeError::invalid("nested too deeply"))
}

fn read_object(bytes: &[u8], text: &mut Builder, depth: usize) -> Result<(), DecodeError> {
    let object = text.begin_object();
    let mut reader = Reader::new(bytes);
    while let Some((field, payload)) = reader.next()? {
        if field == 1 {
            let (mut key, mut value) = ("", &[][..]);
            let mut entry = Reader::new(payload.bytes()?);
            while let Some((field, payload)) = entry.next()? {
                match field {
                    1 => key = payload.text()?,
                    2 => value = payload.bytes()?,
                    _ => {}
                }
            }
            text.begin_member(object);
            text.string(key);
            let member = text.end_key();
            read_value(value, text, depth)?;
            text.end_member(member);
        }
    }
    text.end_object(object);
    Ok(())
}

fn read_list(bytes: &[u8], text: &mut Builder, depth: usize) -> Result<(), DecodeError> {
    text.raw("[");
    let mut first = true;
    let mut reader = Reader::new(bytes);
    while let Some((field, payload)) = reader.next()? {
        if field == 1 {
            if !std::mem::take(&mut first) {
                text.raw(",");
            }
            read_value(payload.bytes()?, text, depth)?;
        }
    }
    text.raw("]");
    Ok(())
}

#[expect(clippy::cast_possible_truncation, reason = "guarded by the comparison")]
fn write_number(number: f64, text: &mut Builder) -> Result<(), DecodeError> {
    if !number.is_finite() {
        return Err(DecodeError::invalid("number out of range"));
    }
    let minus_zero = number == 0.0 && number.is_sign_negative();
    if number.trunc() == number && number.abs() <= INTEGER_MAX && !minus_zero {
        text.raw(&(number as i64).to_string());
    } else {
        text.raw(&serde_json::to_string(&number).unwrap_or_default());
    }
    Ok(())
}
