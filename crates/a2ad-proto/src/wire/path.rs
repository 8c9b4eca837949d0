//! Errors that say which member they are about.
//!
//! Serde errors are opaque, so the path travels in the text: a reader that fails puts its member's name before what
//! its own readers said. This costs nothing until something fails.

use std::fmt;

use serde::de;

/// No message about bad input grows beyond this, however long the input.
const DESCRIPTION_BYTES_MAX: usize = 240;

/// One step on the way to a member.
#[derive(Clone, Copy)]
pub(crate) enum Path<'a> {
    Name(&'a str),
    Index(usize),
    Key(&'a str),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Index(index) => write!(f, "[{index}]"),
            // The key is the peer's: keep it from imitating the marks that `split` looks for.
            Self::Key(key) => {
                let plain = |c: char| {
                    if c.is_alphanumeric() || "-_.".contains(c) {
                        c
                    } else {
                        '?'
                    }
                };
                f.write_str("[")?;
                key.chars()
                    .take(64)
                    .try_for_each(|c| fmt::Write::write_char(f, plain(c)))?;
                f.write_str("]")
            }
        }
    }
}

/// Puts `step` before the path of `error`.
#[cold]
pub(crate) fn at<E: de::Error>(step: Path<'_>, error: &E) -> E {
    let text = error.to_string();
    match text.strip_prefix('`') {
        Some(rest) if rest.starts_with('[') => E::custom(format_args!("`{step}{rest}")),
        Some(rest) => E::custom(format_args!("`{step}.{rest}")),
        None => E::custom(format_args!("`{step}`: {}", shorten(&text))),
    }
}

/// Takes an error's text apart into the path, empty for the whole value, and what is wrong there.
pub(crate) fn split(text: &str) -> (&str, &str) {
    let parts = text
        .strip_prefix('`')
        .and_then(|rest| rest.split_once("`: "));
    parts.unwrap_or(("", text))
}

/// Serde quotes the offending value in full; that could be megabytes. The end is kept: it says what was expected.
pub(crate) fn shorten(text: &str) -> std::borrow::Cow<'_, str> {
    if text.len() <= DESCRIPTION_BYTES_MAX {
        return text.into();
    }
    let head = text.floor_char_boundary(DESCRIPTION_BYTES_MAX / 3);
    let tail = text.ceil_char_boundary(text.len() - DESCRIPTION_BYTES_MAX / 2);
    format!("{}…{}", &text[..head], &text[tail..]).into()
}
