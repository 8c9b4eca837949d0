//! Query parameters.

use std::borrow::Cow;

/// The first value of a parameter, decoded. Names are compared without regard to case (PARAM-01).
pub(crate) fn find<'a>(query: Option<&'a str>, name: &str) -> Option<Cow<'a, str>> {
    form_urlencoded::parse(query?.as_bytes())
        .find(|(key, _)| key.eq_ignore_ascii_case(name))
        .map(|(_, value)| value)
}
