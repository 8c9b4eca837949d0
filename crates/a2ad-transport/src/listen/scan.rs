//! Finds a `Content-Length` line in the raw head of an HTTP/1 request.

const NAME: &[u8] = b"content-length";

/// Reads the head of one request as it comes, in pieces of any size.
#[derive(Debug, Default)]
pub(super) struct HeadScan {
    line: Line,
    found: bool,
}

#[derive(Debug, Default)]
enum Line {
    /// So many bytes of the line were read, and all agree with the name. Nothing but the colon may follow the
    /// whole of it; white space there is the parser's to refuse.
    Name(usize),
    /// The request line, or a line that is about something else.
    #[default]
    Other,
    /// Only a carriage return so far: this may be the empty line.
    Empty,
    /// The head is over; the rest is body.
    Over,
}

impl HeadScan {
    /// Takes the next bytes and says whether the line was seen by now.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) -> bool {
        while let Some((&byte, rest)) = bytes.split_first() {
            if self.found {
                break;
            }
            match self.line {
                Line::Over => break,
                Line::Other => {
                    let Some(end) = memchr::memchr(b'\n', bytes) else {
                        break;
                    };
                    self.line = Line::Name(0);
                    bytes = &bytes[end + 1..];
                    continue;
                }
                Line::Name(NAME_LEN) if byte == b':' => self.found = true,
                Line::Name(0) if byte == b'\r' => self.line = Line::Empty,
                Line::Name(0) | Line::Empty if byte == b'\n' => self.line = Line::Over,
                Line::Name(at) if NAME.get(at).copied() == Some(byte.to_ascii_lowercase()) => {
                    self.line = Line::Name(at + 1);
                }
                Line::Name(_) | Line::Empty => {
                    self.line = Line::Other;
                    // The byte itself may be the line's end.
                    continue;
                }
            }
            bytes = rest;
        }
        self.found
    }
}

const NAME_LEN: usize = NAME.len();

#[cfg(test)]
mod tests {
    use super::*;

    fn check(head: &str, expected: bool) {
        let mut whole = HeadScan::default();
        assert_eq!(whole.feed(head.as_bytes()), expected, "{head:?} at once");
        let mut bytewise = HeadScan::default();
        for byte in head.as_bytes() {
            bytewise.feed(&[*byte]);
        }
        assert_eq!(bytewise.feed(b""), expected, "{head:?} byte by byte");
    }

    #[test]
    fn the_line_is_found_wherever_it_stands_in_the_head() {
        check(
            "POST / HTTP/1.1\r\nHost: a\r\ncOnTent-Length: 5\r\n\r\n",
            true,
        );
        check("POST / HTTP/1.1\nContent-Length:5\n\n", true);
        check(
            "POST / HTTP/1.1\r\nContent-Lengt: 5\r\nx-content-length: 3\r\n\r\n",
            false,
        );
        check("content-length: 5 HTTP/1.1\r\n\r\n", false);
        check(
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\ncontent-length: 5\r\n",
            false,
        );
        check("POST / HTTP/1.1\r\nc\r\ncontent-length: 5\r\n\r\n", true);
    }
}
