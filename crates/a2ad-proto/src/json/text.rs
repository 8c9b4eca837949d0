//! From JSON text to normalised JSON text.

use std::collections::HashMap;

/// Bounds the recursion below; well inside the 128 levels other readers stop at.
pub(crate) const DEPTH_MAX: usize = 100;

/// Below this many members, comparing all pairs beats hashing.
const PAIRWISE_MAX: usize = 8;

/// Literals shorter than this and without an exponent are finite as doubles.
const FINITE_DIGITS: usize = 300;

/// Why a text is not a JSON value we accept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at byte {offset}")]
pub struct JsonError {
    /// What is wrong.
    pub reason: &'static str,
    /// Where, in bytes from the start of the text.
    pub offset: usize,
}

/// Checks that `text` is one JSON value and writes it the one way we keep values.
pub(crate) fn compact(text: &str) -> Result<String, JsonError> {
    let mut reader = Reader {
        text,
        bytes: text.as_bytes(),
        at: 0,
        out: Builder::with_capacity(text.len()),
    };
    reader.space();
    reader.value(0)?;
    reader.space();
    if reader.at == text.len() {
        Ok(reader.out.finish())
    } else {
        Err(reader.error("text after the value"))
    }
}

/// Writes normalised JSON. Also used to turn protobuf values into text, which can repeat keys as well.
pub(crate) struct Builder {
    out: String,
    /// The members of all objects still open; each object owns the tail from its own start on.
    members: Vec<Member>,
}

#[derive(Clone, Copy)]
struct Member {
    start: usize,
    key_end: usize,
    end: usize,
}

impl Builder {
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self {
            out: String::with_capacity(bytes),
            members: Vec::new(),
        }
    }

    pub(crate) fn finish(self) -> String {
        self.out
    }

    pub(crate) fn raw(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// Writes `text` as a string with its quotes.
    pub(crate) fn string(&mut self, text: &str) {
        self.out.push('"');
        if text.bytes().any(|b| b < 0x20 || b == b'"' || b == b'\\') {
            text.chars().for_each(|c| push_escaped(&mut self.out, c));
        } else {
            self.out.push_str(text);
        }
        self.out.push('"');
    }

    /// Opens an object; the result goes back into the other calls for this object.
    pub(crate) fn begin_object(&mut self) -> usize {
        self.out.push('{');
        self.members.len()
    }

    /// Opens a member, whose key the caller writes next.
    pub(crate) fn begin_member(&mut self, object: usize) {
        if self.members.len() > object {
            self.out.push(',');
        }
        let start = self.out.len();
        self.members.push(Member {
            start,
            key_end: start,
            end: start,
        });
    }

    /// Ends the key. Returns the member, to be closed after its value: the value may open objects of its own.
    pub(crate) fn end_key(&mut self) -> usize {
        let index = self.members.len() - 1;
        self.members[index].key_end = self.out.len();
        self.out.push(':');
        index
    }

    pub(crate) fn end_member(&mut self, member: usize) {
        self.members[member].end = self.out.len();
    }

    /// Closes the object, dropping every member that a later one of the same name overrides.
    pub(crate) fn end_object(&mut self, object: usize) {
        let members = &self.members[object..];
        if let Some(kept) = without_overridden(&self.out, members) {
            let start = members[0].start;
            let text: Vec<&str> = kept.iter().map(|m| &self.out[m.start..m.end]).collect();
            let text = text.join(",");
            self.out.truncate(start);
            self.out.push_str(&text);
        }
        self.members.truncate(object);
        self.out.push('}');
    }
}

/// The members that count, or `None` if all of them do.
fn without_overridden(out: &str, members: &[Member]) -> Option<Vec<Member>> {
    let key = |m: &Member| &out[m.start..m.key_end];
    if members.len() <= PAIRWISE_MAX {
        let overridden =
            |i: usize| (members[i + 1..].iter()).any(|later| key(later) == key(&members[i]));
        if !(0..members.len()).any(overridden) {
            return None;
        }
    }
    let last: HashMap<&str, usize> = (members.iter().enumerate())
        .map(|(i, m)| (key(m), i))
        .collect();
    if last.len() == members.len() {
        return None;
    }
    let kept = (members.iter().enumerate()).filter(|(i, m)| last.get(key(m)) == Some(i));
    Some(kept.map(|(_, m)| *m).collect())
}

/// Writes one character of a string, escaping only what JSON requires.
fn push_escaped(out: &mut String, c: char) {
    match c {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        c if (c as u32) < 0x20 => {
            const HEX: [char; 16] = [
                '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
            ];
            out.push_str("\\u00");
            out.push(HEX[c as usize >> 4]);
            out.push(HEX[c as usize & 15]);
        }
        c => out.push(c),
    }
}

struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    out: Builder,
}

impl Reader<'_> {
    fn error(&self, reason: &'static str) -> JsonError {
        JsonError {
            reason,
            offset: self.at,
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Result<(), JsonError> {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'{') => self.object(self.deeper(depth)?),
            Some(b'[') => self.array(self.deeper(depth)?),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            Some(_) => Err(self.error("expected a value")),
            None => Err(self.error("unexpected end")),
        }
    }

    fn deeper(&self, depth: usize) -> Result<usize, JsonError> {
        if depth < DEPTH_MAX {
            Ok(depth + 1)
        } else {
            Err(self.error("nested too deeply"))
        }
    }

    fn word(&mut self, word: &'static str) -> Result<(), JsonError> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return Err(self.error("expected a value"));
        }
        self.at += word.len();
        self.out.raw(word);
        Ok(())
    }

    fn object(&mut self, depth: usize) -> Result<(), JsonError> {
        let object = self.out.begin_object();
        self.at += 1;
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            self.out.end_object(object);
            return Ok(());
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return Err(self.error("expected a member name"));
            }
            self.out.begin_member(object);
            self.string()?;
            let member = self.out.end_key();
            self.space();
            if self.peek() != Some(b':') {
                return Err(self.error("expected a colon"));
            }
            self.at += 1;
            self.space();
            self.value(depth)?;
            self.out.end_member(member);
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return Err(self.error("expected a comma or a closing brace")),
            }
        }
        self.at += 1;
        self.out.end_object(object);
        Ok(())
    }

    fn array(&mut self, depth: usize) -> Result<(), JsonError> {
        self.out.raw("[");
        self.at += 1;
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            self.out.raw("]");
            return Ok(());
        }
        loop {
            self.space();
            self.value(depth)?;
            self.space();
            match self.peek() {
                Some(b',') => self.out.raw(","),
                Some(b']') => break,
                _ => return Err(self.error("expected a comma or a closing bracket")),
            }
            self.at += 1;
        }
        self.at += 1;
        self.out.raw("]");
        Ok(())
    }

    fn number(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        let exponent = matches!(self.peek(), Some(b'e' | b'E'));
        if exponent {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        let literal = &self.text[start..self.at];
        if (exponent || literal.len() > FINITE_DIGITS)
            && !literal.parse::<f64>().is_ok_and(f64::is_finite)
        {
            return Err(self.error("number out of range"));
        }
        self.out.raw(literal);
        Ok(())
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at > start {
            Ok(())
        } else {
            Err(self.error("expected a digit"))
        }
    }

    /// Copies a string, from its opening quote to its closing one. Runs between escapes are copied whole.
    fn string(&mut self) -> Result<(), JsonError> {
        let mut run = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    self.out.raw(&self.text[run..self.at]);
                    let c = self.escape()?;
                    push_escaped(&mut self.out.out, c);
                    run = self.at;
                }
                Some(0..0x20) => return Err(self.error("control character in a string")),
                Some(_) => self.at += 1,
                None => return Err(self.error("unexpected end")),
            }
        }
        self.at += 1;
        self.out.raw(&self.text[run..self.at]);
        Ok(())
    }

    fn escape(&mut self) -> Result<char, JsonError> {
        self.at += 1;
        let c = match self.peek() {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                return self.unicode();
            }
            _ => return Err(self.error("unknown escape")),
        };
        self.at += 1;
        Ok(c)
    }

    fn unicode(&mut self) -> Result<char, JsonError> {
        let high = self.hex()?;
        let mut code = high;
        if let 0xd800..0xdc00 = high {
            if !self.bytes[self.at..].starts_with(b"\\u") {
                return Err(self.error("lone surrogate"));
            }
            self.at += 2;
            let low = self.hex()?;
            if !(0xdc00..0xe000).contains(&low) {
                return Err(self.error("lone surrogate"));
            }
            code = 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00);
        }
        char::from_u32(code).ok_or_else(|| self.error("lone surrogate"))
    }

    fn hex(&mut self) -> Result<u32, JsonError> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|b| char::from(b).to_digit(16));
            code = code * 16 + digit.ok_or_else(|| self.error("expected a hexadecimal digit"))?;
            self.at += 1;
        }
        Ok(code)
    }
}
