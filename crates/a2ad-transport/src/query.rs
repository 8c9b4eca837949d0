//! Query parameters.

use std::borrow::Cow;

use a2ad_proto::Violations;

/// The value of a parameter, decoded. Names are compared without regard to case (PARAM-01).
///
/// # Errors
/// If it is given twice and not the same: whoever reads only one of them may read the other.
pub(crate) fn find<'a>(
    query: Option<&'a str>,
    name: &str,
) -> Result<Option<Cow<'a, str>>, Violations> {
    let Some(query) = query else {
        return Ok(None);
    };
    let mut values = form_urlencoded::parse(query.as_bytes())
        .filter(|(key, _)| key.eq_ignore_ascii_case(name))
        .map(|(_, value)| value);
    let first = values.next();
    if values.any(|other| Some(other) != first) {
        return Err(Violations::one(name, "given twice with different values"));
    }
    Ok(first)
}
