//! Query parameters.

use std::borrow::Cow;

use a2ad_proto::Violations;

use crate::percent::{Plus, decode};

/// The value of a parameter, decoded. Names are compared without regard to case (PARAM-01).
///
/// # Errors
/// If it is malformed, or given twice and not the same: whoever reads only one of them may read the other.
pub(crate) fn find<'a>(
    query: Option<&'a str>,
    name: &str,
) -> Result<Option<Cow<'a, str>>, Violations> {
    let Some(query) = query else {
        return Ok(None);
    };
    let pairs = query.split('&');
    let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let is_named = |key: &str| {
        let key = decode(key, Plus::Space);
        key.is_some_and(|key| key.eq_ignore_ascii_case(name))
    };
    let mut first = None;
    for (_, value) in pairs.filter(|(key, _)| is_named(key)) {
        let Some(value) = decode(value, Plus::Space) else {
            return Err(Violations::one(name, "expected percent-encoded UTF-8"));
        };
        if first.as_ref().is_some_and(|first| *first != value) {
            return Err(Violations::one(name, "given twice with different values"));
        }
        first = Some(value);
    }
    Ok(first)
}
