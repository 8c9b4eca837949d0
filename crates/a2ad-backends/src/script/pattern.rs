//! Patterns: text in which `*` stands for anything.

/// Whether `pattern` describes the whole of `text`. `*` stands for any run of characters, also
/// none; `\*` is an asterisk and `\\` a backslash.
pub(super) fn fits(pattern: &str, text: &str) -> bool {
    // Bytes will do: UTF-8 characters begin nowhere but where they begin.
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut at, mut read) = (0, 0);
    // The last `*`: what follows it in the pattern, and where in the text to try that next.
    let mut star: Option<(usize, usize)> = None;
    loop {
        match token(pattern, at) {
            Some((Token::Any, next)) => {
                if next == pattern.len() {
                    return true;
                }
                star = Some((next, read));
                at = next;
                continue;
            }
            Some((Token::Byte(byte), next)) if text.get(read) == Some(&byte) => {
                at = next;
                read += 1;
                continue;
            }
            None if read == text.len() => return true,
            Some((Token::Byte(_), _)) | None => {}
        }
        match star {
            Some((after, from)) if from < text.len() => {
                star = Some((after, from + 1));
                at = after;
                read = from + 1;
            }
            Some(_) | None => return false,
        }
    }
}

enum Token {
    Any,
    Byte(u8),
}

/// What stands at `at`, and where the next begins.
fn token(pattern: &[u8], at: usize) -> Option<(Token, usize)> {
    match (pattern.get(at)?, pattern.get(at + 1)) {
        (b'*', _) => Some((Token::Any, at + 1)),
        (b'\\', Some(escaped @ (b'*' | b'\\'))) => Some((Token::Byte(*escaped), at + 2)),
        (byte, _) => Some((Token::Byte(*byte), at + 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn an_asterisk_stands_for_anything() {
        for (pattern, text) in [
            ("", ""),
            ("*", ""),
            ("*", "any\nthing"),
            ("done", "done"),
            ("done*", "done"),
            ("done*", "done, thanks"),
            ("*done", "all done"),
            ("*help*", "please help me"),
            ("*help*", "help"),
            ("a*b*c", "a-b-b-c"),
            ("a*bc", "abbbc"),
            ("**", "x"),
            ("image/*", "image/png"),
            (r"5 \* 2", "5 * 2"),
            (r"a\\*", r"a\b"),
            (r"a\b", r"a\b"),
            ("*ß*", "große"),
        ] {
            assert!(fits(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn everything_else_stands_for_itself() {
        for (pattern, text) in [
            ("", "x"),
            ("done", "done, thanks"),
            ("done", "not done"),
            ("done*", "Done"),
            ("done*", " done"),
            ("*done", "done."),
            ("a*b*c", "a-c-b"),
            (r"5 \* 2", "5 + 2"),
            (r"\*", "x"),
            ("a?c", "abc"),
            ("*é", "\u{a9}"),
        ] {
            assert!(!fits(pattern, text), "{pattern} {text}");
        }
    }
}
