//! Server-sent events, read as the WHATWG describes them (SSE-02).
//!
//! The parser takes bytes as the network gives them, however they are cut, and holds no more than the event that is
//! being read.

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// The `id` that stood in this event. Unlike a browser, we do not let an event inherit the id of an earlier one:
    /// an id is where a stream can be resumed, and only the server can say that.
    pub id: Option<String>,
    /// The `event` that stood in it.
    pub name: Option<String>,
    /// The lines of `data`, joined by line feeds.
    pub data: String,
}

/// An event is larger than the reader takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event is larger than {max} bytes")]
pub struct EventTooLarge {
    /// The most that is taken.
    pub max: usize,
}

/// Reads events from bytes.
///
/// ```
/// use a2ad_client::sse::SseParser;
/// let mut parser = SseParser::new(1024);
/// let mut input: &[u8] = b"data: one\n\ndata: two";
/// assert_eq!(parser.next(&mut input)?.unwrap().data, "one");
/// assert_eq!(parser.next(&mut input)?, None, "the second is not complete");
/// let mut input: &[u8] = b" and a half\r\n\r\n";
/// assert_eq!(parser.next(&mut input)?.unwrap().data, "two and a half");
/// # Ok::<(), a2ad_client::sse::EventTooLarge>(())
/// ```
#[derive(Debug)]
pub struct SseParser {
    event_bytes_max: usize,
    /// The line being read, without its end. Of a comment no more than the colon is kept.
    line: Vec<u8>,
    /// The last line ended with CR: an LF that follows belongs to it.
    after_cr: bool,
    /// A byte order mark may still come.
    at_start: bool,
    data: Vec<u8>,
    id: Option<String>,
    name: Option<String>,
    retry_ms: Option<u64>,
}

impl SseParser {
    /// A parser that takes events of up to this many bytes.
    #[must_use]
    pub fn new(event_bytes_max: usize) -> Self {
        Self {
            event_bytes_max,
            line: Vec::new(),
            after_cr: false,
            at_start: true,
            data: Vec::new(),
            id: None,
            name: None,
            retry_ms: None,
        }
    }

    /// Reads on until an event is complete, and takes what it has read from `input`. `None` means that all of the
    /// input is read and more is needed.
    ///
    /// # Errors
    /// When the event being read is too large. Nothing sensible can be read after that.
    pub fn next(&mut self, input: &mut &[u8]) -> Result<Option<SseEvent>, EventTooLarge> {
        while let Some((&first, rest)) = input.split_first() {
            if std::mem::take(&mut self.after_cr) && first == b'\n' {
                *input = rest;
                continue;
            }
            let end = input.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
            let piece = &input[..end.unwrap_or(input.len())];
            self.extend_line(piece)?;
            let Some(end) = end else {
                *input = &[];
                return Ok(None);
            };
            self.after_cr = input[end] == b'\r';
            *input = &input[end + 1..];
            if let Some(event) = self.end_line() {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// How long the server wishes clients to wait before they connect again, in milliseconds.
    #[must_use]
    pub fn retry_ms(&self) -> Option<u64> {
        self.retry_ms
    }

    /// Whether all input so far was whole events and comments.
    #[must_use]
    pub fn is_between(&self) -> bool {
        let in_line = !self.line.is_empty() && self.line[0] != b':';
        !in_line && self.data.is_empty() && self.id.is_none() && self.name.is_none()
    }

    fn extend_line(&mut self, piece: &[u8]) -> Result<(), EventTooLarge> {
        let is_comment = self.line.first().or(piece.first()) == Some(&b':');
        if is_comment {
            self.line.clear();
            self.line.push(b':');
            return Ok(());
        }
        if self.line.len() + self.data.len() + piece.len() > self.event_bytes_max {
            return Err(EventTooLarge {
                max: self.event_bytes_max,
            });
        }
        self.line.extend_from_slice(piece);
        Ok(())
    }

    /// Takes the line that has just ended into account; gives the event if the line was its last.
    fn end_line(&mut self) -> Option<SseEvent> {
        let mut line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.at_start) && line.starts_with("\u{feff}".as_bytes()) {
            line.drain(..3);
        }
        if line.is_empty() {
            return self.dispatch();
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (&line[..], &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            b"id" if !value.contains(&0) => self.id = Some(text(value)),
            b"event" => self.name = Some(text(value)),
            b"retry" if value.iter().all(u8::is_ascii_digit) => {
                self.retry_ms = text(value).parse().ok().or(self.retry_ms);
            }
            _ => {}
        }
        // The memory of the line serves the next one.
        line.clear();
        self.line = line;
        None
    }

    fn dispatch(&mut self) -> Option<SseEvent> {
        let (id, name) = (self.id.take(), self.name.take());
        let mut data = std::mem::take(&mut self.data);
        // Without data there is no event; a single empty line of it is one, with nothing in it.
        data.pop()?;
        Some(SseEvent {
            id,
            name: name.filter(|name| !name.is_empty()),
            data: String::from_utf8(data)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
        })
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<SseEvent> {
        let mut parser = SseParser::new(1 << 20);
        let mut events = Vec::new();
        for piece in pieces {
            let mut input = *piece;
            while let Some(event) = parser.next(&mut input).unwrap() {
                events.push(event);
            }
            assert!(input.is_empty());
        }
        events
    }

    fn data(text: &str) -> Vec<String> {
        let events = read(&[text.as_bytes()]);
        events.into_iter().map(|event| event.data).collect()
    }

    #[test]
    fn sse_02_lines_fields_and_comments_mean_what_the_standard_says() {
        assert_eq!(data("data: a\ndata: b\n\n"), ["a\nb"]);
        assert_eq!(data("data:a\rdata:  b\r\r"), ["a\n b"]);
        assert_eq!(data("data: a\r\n\r\ndata: b\r\n\r\n"), ["a", "b"]);
        assert_eq!(data(": ping\n\n:\n\ndata: a\n: x\n\n"), ["a"]);
        assert_eq!(data("\u{feff}data: a\n\n"), ["a"]);
        assert_eq!(data("\u{feff}: hi\n\ndata: \u{feff}a\n\n"), ["\u{feff}a"]);
        assert_eq!(data("data\n\n"), [""]);
        assert_eq!(data("data:\ndata\n\n"), ["\n"]);
        assert_eq!(data("event: x\n\nid: 4\n\n"), [""; 0], "no data, no event");
        assert_eq!(data("colour: red\ndata: a\n\n"), ["a"]);
        assert_eq!(data("data: cut off\n"), [""; 0]);
        assert_eq!(data("data: a:b: c\n\n"), ["a:b: c"]);
    }

    #[test]
    fn sse_02_ids_and_names_belong_to_their_event() {
        let events =
            read(&[b"id: 7\nevent: error\ndata: a\n\ndata: b\n\nid: 1\0\nid\ndata: c\n\n"]);
        let seen: Vec<_> = events
            .iter()
            .map(|event| (event.id.as_deref(), event.name.as_deref()))
            .collect();
        assert_eq!(
            seen,
            [(Some("7"), Some("error")), (None, None), (Some(""), None)]
        );
    }

    #[test]
    fn sse_02_retry_is_digits() {
        let mut parser = SseParser::new(100);
        let mut input: &[u8] = b"retry: 1500\nretry: 2s\n\n";
        assert_eq!(parser.next(&mut input), Ok(None));
        assert_eq!(parser.retry_ms(), Some(1500));
    }

    #[test]
    fn an_event_without_end_is_refused_and_not_kept() {
        let mut parser = SseParser::new(1_000);
        let mut refused = false;
        for _ in 0..1_000 {
            let mut input: &[u8] = b"data: xxxxxxxxxxxxxxxxxxxxxxxxx";
            refused |= parser.next(&mut input).is_err();
        }
        assert!(refused);
        assert!(parser.line.len() + parser.data.len() <= 1_000);

        let mut parser = SseParser::new(1_000);
        let mut lines = 0;
        while parser.next(&mut &b"data\n"[..]).is_ok() {
            lines += 1;
            assert!(lines < 2_000, "empty lines count, too");
        }
    }

    #[test]
    fn a_comment_without_end_takes_no_memory() {
        let mut parser = SseParser::new(10);
        for _ in 0..10_000 {
            assert_eq!(parser.next(&mut &b": and on and on"[..]), Ok(None));
        }
        assert!(parser.line.capacity() < 100);
        let mut input: &[u8] = b"\n\ndata: a\n\n";
        assert_eq!(parser.next(&mut input).unwrap().unwrap().data, "a");
    }

    /// A stream as a list of lines with their ends, so that every kind of end meets every kind of line.
    fn stream() -> impl Strategy<Value = String> {
        let line = prop_oneof![
            4 => Just(String::new()),
            4 => "data: ?[a-z\u{e9}\u{1f600}:\u{feff}]{0,6}",
            1 => "id: ?[0-9]{0,3}",
            1 => "event: [a-z]{0,3}",
            1 => ":[a-z ]{0,5}",
            1 => "[a-z:]{0,6}",
        ];
        let end = prop_oneof![Just("\n"), Just("\r"), Just("\r\n")];
        let bom = prop_oneof![3 => Just(""), 1 => Just("\u{feff}")];
        (bom, prop::collection::vec((line, end), 0..24)).prop_map(|(bom, lines)| {
            let lines = lines.into_iter().map(|(line, end)| line + end);
            bom.to_owned() + &lines.collect::<String>()
        })
    }

    /// The same by other means: all at once, on text.
    fn expected(text: &str) -> Vec<SseEvent> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let mut events = Vec::new();
        let (mut event, mut lines) = (SseEvent::default(), Vec::new());
        // What follows the last line end is no line.
        for line in text
            .rsplit_once('\n')
            .map_or("", |(whole, _)| whole)
            .split('\n')
        {
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
            match field {
                "" if line.is_empty() => {
                    if !lines.is_empty() {
                        event.data = lines.join("\n");
                        event.name = event.name.filter(|name| !name.is_empty());
                        events.push(event);
                    }
                    (event, lines) = (SseEvent::default(), Vec::new());
                }
                "data" => lines.push(value),
                "id" => event.id = Some(value),
                "event" => event.name = Some(value),
                _ => {}
            }
        }
        events
    }

    proptest! {
        #[test]
        fn sse_02_it_does_not_matter_where_the_bytes_are_cut(
            text in stream(),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
            let whole = expected(&text);
            prop_assert_eq!(&read(&pieces), &whole);
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            prop_assert_eq!(&read(&single), &whole);
        }
    }
}
