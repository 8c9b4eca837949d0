//! Which media types an agent takes and gives.

use std::fmt;

use a2ad_proto::{Part, PartContent};

/// A list of media ranges, such as `text/plain` or `image/*`. An empty one means anything.
///
/// Types and subtypes are compared whatever their case; parameters do not count. In what is wanted a
/// range fits on either side: an agent that gives `text/*` can serve a client that takes
/// `text/html`, and the other way round. A part is of one type. `text`, as cards had it before there were media types in them, is `text/*`;
/// any other word without a slash fits only itself and `*/*`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Modes(Vec<String>);

impl Modes {
    /// Whether something of this type, or one type of this range, is among them.
    #[must_use]
    pub fn include(&self, mode: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|known| overlap(known, mode))
    }

    /// Whether a part of this type is among them. A range is the type of no part.
    #[must_use]
    pub fn include_part(&self, media_type: &str) -> bool {
        !is_range(media_type)
            && (self.0.is_empty() || self.0.iter().any(|known| covers(known, media_type)))
    }

    /// Whether one of `wanted` is among them, or nothing in particular is wanted.
    #[must_use]
    pub fn include_one_of(&self, wanted: &[String]) -> bool {
        wanted.is_empty() || wanted.iter().any(|mode| self.include(mode))
    }
}

impl<S: Into<String>> FromIterator<S> for Modes {
    fn from_iter<I: IntoIterator<Item = S>>(modes: I) -> Self {
        Self(modes.into_iter().map(Into::into).collect())
    }
}

impl fmt::Display for Modes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0[..] {
            [] => f.write_str("*/*"),
            modes => f.write_str(&modes.join(", ")),
        }
    }
}

/// The media type that a part counts as (SEND-09).
#[must_use]
pub fn media_type(part: &Part) -> &str {
    match &part.content {
        _ if !part.media_type.is_empty() => &part.media_type,
        PartContent::Text(_) => "text/plain",
        PartContent::Data(_) => "application/json",
        PartContent::Raw(_) | PartContent::Url(_) => "application/octet-stream",
    }
}

/// Whether this is a range and no type.
pub(crate) fn is_range(mode: &str) -> bool {
    without_parameters(mode).contains('*')
}

/// Whether the type is in the range.
fn covers(known: &str, media_type: &str) -> bool {
    let (known, media_type) = (without_parameters(known), without_parameters(media_type));
    match (range(known), media_type.split_once('/')) {
        // The word for any text does not say which.
        (Some((_, subtype)), None) if media_type.eq_ignore_ascii_case("text") => {
            subtype == "*" && overlap(known, media_type)
        }
        _ => overlap(known, media_type),
    }
}

/// Whether some type is in both ranges.
fn overlap(one: &str, other: &str) -> bool {
    let (one, other) = (without_parameters(one), without_parameters(other));
    if one == "*/*" || other == "*/*" {
        return true;
    }
    match (range(one), range(other)) {
        (Some((kind, subtype)), Some((other_kind, other_subtype))) => {
            kind.eq_ignore_ascii_case(other_kind)
                && (subtype == "*"
                    || other_subtype == "*"
                    || subtype.eq_ignore_ascii_case(other_subtype))
        }
        (Some(_), None) | (None, Some(_)) => false,
        (None, None) => one.eq_ignore_ascii_case(other),
    }
}

fn without_parameters(mode: &str) -> &str {
    mode.split_once(';').map_or(mode, |(range, _)| range).trim()
}

/// Type and subtype.
fn range(mode: &str) -> Option<(&str, &str)> {
    if mode.eq_ignore_ascii_case("text") {
        return Some((mode, "*"));
    }
    mode.split_once('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_overlap_as_they_should() {
        for (one, other) in [
            ("text/plain", "text/plain"),
            ("text/plain", "TEXT/Plain"),
            ("text/plain", "text/plain; charset=utf-8"),
            ("text/plain ;a=b;c=d", " text/plain"),
            ("text/*", "text/html"),
            ("text/*", "text/*"),
            ("*/*", "image/png"),
            ("*/*;q=0.1", "image/png"),
            ("*/*", "*/*"),
            ("*/*", "file"),
            ("text", "text/plain"),
            ("Text", "text/html"),
            ("text", "text/*"),
            ("text", "text"),
            ("file", "FILE"),
            ("application/vnd.a+json", "application/vnd.a+json"),
        ] {
            assert!(overlap(one, other), "{one} and {other}");
            assert!(overlap(other, one), "{other} and {one}");
        }
        for (one, other) in [
            ("text/plain", "text/html"),
            ("text/plain", "application/plain"),
            ("text/*", "image/png"),
            ("text", "image/png"),
            ("text", "application/text"),
            ("text", "texts"),
            ("file", "text"),
            ("file", "file/pdf"),
            ("image", "image/png"),
            ("image", "image/*"),
            ("application/json", "application/vnd.a+json"),
            ("*", "text/plain"),
            ("", "text/plain"),
            ("text/", "text/plain"),
        ] {
            assert!(!overlap(one, other), "{one} and {other}");
            assert!(!overlap(other, one), "{other} and {one}");
        }
    }

    #[test]
    fn send_09_a_part_is_of_one_type() {
        let some: Modes = ["text/plain", "image/*", "file"].into_iter().collect();
        for taken in ["TEXT/plain; a=b*", "image/png", "image/svg+xml", "File"] {
            assert!(some.include_part(taken), "{taken}");
        }
        for refused in [
            "*/*",
            "text/*",
            "image/*",
            "*",
            " */* ;q=1",
            "*/plain",
            "text",
            "image",
        ] {
            assert!(!some.include_part(refused), "{refused}");
        }
        for any_text in ["text", "text/*", "*/*"] {
            let modes: Modes = [any_text].into_iter().collect();
            assert!(modes.include_part("text") && modes.include_part("text/html"));
            assert!(!modes.include_part("text/*"));
        }
        let any = Modes::default();
        assert!(any.include_part("text") && any.include_part("file") && any.include_part("a/b"));
        assert!(!any.include_part("*/*") && !any.include_part("a/*"));
    }

    #[test]
    fn an_empty_list_means_anything() {
        let any = Modes::default();
        assert!(any.include("image/png") && any.include("") && any.include("file"));
        assert!(any.include_one_of(&["image/png".to_owned()]));
        assert_eq!(any.to_string(), "*/*");
        let some: Modes = ["text/plain", "image/*"].into_iter().collect();
        assert!(some.include("image/png") && !some.include("audio/ogg"));
        assert!(some.include_one_of(&[]));
        assert!(some.include_one_of(&["audio/ogg".to_owned(), "text/*".to_owned()]));
        assert!(!some.include_one_of(&["audio/ogg".to_owned()]));
        assert_eq!(some.to_string(), "text/plain, image/*");
    }

    #[test]
    fn send_09_a_part_without_a_media_type_counts_as_its_kind_says() {
        let data = a2ad_proto::Json::from_value(&serde_json::Value::Null);
        for (content, expected) in [
            (PartContent::Text(String::new()), "text/plain"),
            (PartContent::Data(data), "application/json"),
            (PartContent::Raw("x".into()), "application/octet-stream"),
            (PartContent::Url(String::new()), "application/octet-stream"),
        ] {
            let mut part = Part::from(content);
            assert_eq!(media_type(&part), expected);
            part.media_type = "image/png".to_owned();
            assert_eq!(media_type(&part), "image/png");
        }
    }
}
