//! Which version of the protocol a request speaks (VER-01 to VER-06).

use std::borrow::Cow;

use http::{HeaderMap, HeaderName};

use crate::errors::{Fault, Refusal};
use crate::query;

/// The query parameter that stands in for the header.
pub(crate) const NAME: &str = "a2a-version";
const HEADER: HeaderName = HeaderName::from_static(NAME);
/// What `supportedVersions` in an error's metadata says.
const SUPPORTED: &str = "1.0";

/// A version that is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// Protocol 1.0.
    V1,
}

/// What a request without a version means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absent {
    /// It speaks 0.3 (VER-02).
    Means03,
    /// It speaks 1.0, as its interface is of that version alone (VER-07).
    Means10,
}

/// Finds the version a request asks for. The header beats the query.
///
/// # Errors
/// If that version is not served, or what is given is no version.
pub(crate) fn negotiate(
    headers: &HeaderMap,
    query: Option<&str>,
    absent: Absent,
) -> Result<Version, Fault> {
    let mut lines = headers.get_all(HEADER).iter();
    let line = lines.next();
    // Two lines that agree are one statement; two that differ are none.
    if lines.any(|other| Some(other) != line) {
        return Err(refused());
    }
    let asked = match line.map(|value| value.as_bytes().trim_ascii()) {
        Some(text) if !text.is_empty() => Some(Cow::Borrowed(text)),
        Some(_) | None => query::find(query, NAME)
            .map_err(|_differ| refused())?
            .map(|text| Cow::Owned(text.trim().as_bytes().to_vec())),
    };
    let asked = asked.filter(|text| !text.is_empty());
    match asked.as_deref() {
        Some(text) if is_1_0(text) => Ok(Version::V1),
        Some(_) => Err(refused()),
        None => match absent {
            Absent::Means03 => Err(refused()),
            Absent::Means10 => Ok(Version::V1),
        },
    }
}

fn refused() -> Fault {
    Fault::from(Refusal::Version).with("supportedVersions", SUPPORTED)
}

/// Patch digits do not matter (VER-04).
fn is_1_0(text: &[u8]) -> bool {
    let Some(rest) = text.strip_prefix(b"1.0") else {
        return false;
    };
    match rest.split_first() {
        None => true,
        Some((b'.', patch)) => {
            (1..=9).contains(&patch.len()) && patch.iter().all(u8::is_ascii_digit)
        }
        Some(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn ask(lines: &[&str], query: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(NAME, HeaderValue::from_str(line).unwrap());
        }
        negotiate(&headers, query, Absent::Means03).is_ok()
    }

    /// VER-04.
    #[test]
    fn version_1_0_is_served_whatever_its_patch() {
        for line in ["1.0", "1.0.0", "1.0.17", " 1.0 "] {
            assert!(ask(&[line], None), "{line:?}");
        }
    }

    /// VER-03, VER-06.
    #[test]
    fn other_versions_and_nonsense_are_refused() {
        for line in [
            "0.3", "0.3.0", "1", "1.", "1.1", "1.00", "01.0", "2.0", "1.0.", "1.0.x", "1.0-rc1",
            "v1.0", "1.0, 1.0", "latest", "1.0.0.0", "1,0",
        ] {
            assert!(!ask(&[line], None), "{line:?}");
        }
    }

    /// VER-02.
    #[test]
    fn no_version_means_0_3() {
        assert!(!ask(&[], None));
        assert!(!ask(&[""], None));
        assert!(!ask(&[], Some("A2A-Version=")));
    }

    /// VER-06, REST-08.
    #[test]
    fn the_query_stands_in_for_the_header_but_never_beats_it() {
        assert!(ask(&[], Some("A2A-Version=1.0")));
        assert!(ask(&[], Some("x=1&a2a-version=1%2E0")));
        assert!(ask(&[""], Some("A2A-Version=1.0")));
        assert!(ask(&["1.0"], Some("A2A-Version=0.3")));
        assert!(!ask(&["0.3"], Some("A2A-Version=1.0")));
    }

    #[test]
    fn ver_07_an_interface_of_one_version_needs_no_header_but_believes_it() {
        let ask = |lines: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(NAME, HeaderValue::from_static(line));
            }
            negotiate(&headers, None, Absent::Means10).is_ok()
        };
        assert!(ask(&[]) && ask(&[""]) && ask(&["1.0"]) && ask(&["1.0.3"]));
        assert!(!ask(&["0.3"]) && !ask(&["1.1"]) && !ask(&["1.0", "0.3"]) && !ask(&["x"]));
    }

    #[test]
    fn repeated_headers_must_agree() {
        assert!(ask(&["1.0", "1.0"], None));
        assert!(!ask(&["1.0", "0.3"], None));
    }

    #[test]
    fn repeated_parameters_must_agree() {
        assert!(ask(&[], Some("A2A-Version=1.0&a2a-version=1%2e0")));
        assert!(!ask(&[], Some("A2A-Version=1.0&a2a-version=0.3")));
        assert!(!ask(&[], Some("A2A-Version=0.3&A2A-Version=1.0")));
        assert!(!ask(&[], Some("A2A-Version=1.0&A2A-Version=")));
    }
}
