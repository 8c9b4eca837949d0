//! Percent-encoding, read strictly: what is malformed is refused rather than guessed at.

use std::borrow::Cow;

/// What a plus sign stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plus {
    /// Itself, as in a path.
    Plus,
    /// A space, as in a query.
    Space,
}

/// The text that is encoded; `None` if a percent sign is not followed by two hexadecimal digits or the bytes are not
/// UTF-8.
pub(crate) fn decode(text: &str, plus: Plus) -> Option<Cow<'_, str>> {
    let is_special = |byte| byte == b'%' || (byte == b'+' && plus == Plus::Space);
    if !text.bytes().any(is_special) {
        return Some(Cow::Borrowed(text));
    }
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => hex(bytes.next()?)? << 4 | hex(bytes.next()?)?,
            b'+' if plus == Plus::Space => b' ',
            byte => byte,
        });
    }
    String::from_utf8(decoded).ok().map(Cow::Owned)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_encoded_is_decoded_once() {
        for (text, plain) in [
            ("", ""),
            ("abc", "abc"),
            ("a%20b", "a b"),
            ("%c3%A4", "ä"),
            ("a%2Fb%3Ac", "a/b:c"),
            ("%2525", "%25"),
            ("%00", "\0"),
            ("a+b", "a+b"),
        ] {
            assert_eq!(decode(text, Plus::Plus).as_deref(), Some(plain), "{text}");
        }
        assert_eq!(decode("a+b%2B", Plus::Space).as_deref(), Some("a b+"));
    }

    #[test]
    fn what_is_malformed_is_refused() {
        for text in [
            "%",
            "a%",
            "%4",
            "%zz",
            "%4g",
            "%+1",
            "%ff",
            "%c3",
            "%ed%a0%80",
        ] {
            assert_eq!(decode(text, Plus::Plus), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_comes_back_from_its_encoding(text in any::<String>()) {
            let encoded: String = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
            for plus in [Plus::Plus, Plus::Space] {
                prop_assert_eq!(decode(&encoded, plus), Some(Cow::Borrowed(text.as_str())));
            }
        }

        #[test]
        fn no_text_is_too_much(text in any::<String>()) {
            drop(decode(&text, Plus::Plus));
            drop(decode(&text, Plus::Space));
        }
    }
}
