//! Which generation of the protocol a request speaks (VER-01 to VER-07, DUAL-02, DUAL-03).

use std::borrow::Cow;

use http::HeaderName;
use http::request::Parts;

use crate::errors::{Fault, Refusal};
use crate::query;

/// The query parameter that stands in for the header.
pub(crate) const NAME: &str = "a2a-version";
const HEADER: HeaderName = HeaderName::from_static(NAME);
/// What `supportedVersions` in an error's metadata says.
const SUPPORTED: &str = "1.0, 0.3";

/// A generation that is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generation {
    V03,
    V10,
}

/// What the name of a method, a path or a service says of the generation, before any header is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spoken {
    /// It is of 0.3, whatever the header says of 1.0.
    V03,
    /// It is of 1.0, which the header has to confirm: without one it would be 0.3 (VER-02).
    V10,
    /// It is of 1.0, and so is the whole interface: no header is needed (VER-07).
    OnlyV10,
    /// Both know it, so that the header decides.
    Both,
}

/// Finds the generation of a request. The header beats the query. `lenient` takes what is of 1.0 by its name for
/// 1.0, also if its header says otherwise.
///
/// # Errors
/// If that version is not served, what is given is no version, or the name is not of it.
pub(crate) fn negotiate(head: &Parts, spoken: Spoken, lenient: bool) -> Result<Generation, Fault> {
    let said = said(head)?;
    match (spoken, said) {
        (Spoken::V03, _) | (Spoken::Both, None | Some(Generation::V03)) => Ok(Generation::V03),
        (Spoken::OnlyV10, None)
        | (Spoken::V10 | Spoken::OnlyV10 | Spoken::Both, Some(Generation::V10)) => {
            Ok(Generation::V10)
        }
        (Spoken::V10, None | Some(Generation::V03)) if lenient => {
            tracing::debug!("a request of 1.0 by its name has no header that says so");
            Ok(Generation::V10)
        }
        (Spoken::V10 | Spoken::OnlyV10, None | Some(Generation::V03)) => Err(refused()),
    }
}

/// What a request says of its version, if anything.
fn said(head: &Parts) -> Result<Option<Generation>, Fault> {
    let mut lines = head.headers.get_all(HEADER).iter();
    let line = lines.next();
    // Two lines that agree are one statement; two that differ are none.
    if lines.any(|other| Some(other) != line) {
        return Err(refused());
    }
    let asked = match line.map(|value| value.as_bytes().trim_ascii()) {
        Some(text) if !text.is_empty() => Some(Cow::Borrowed(text)),
        Some(_) | None => query::find(head.uri.query(), NAME)
            .map_err(|_differ| refused())?
            .map(|text| Cow::Owned(text.trim().as_bytes().to_vec())),
    };
    match asked.as_deref() {
        None | Some(b"") => Ok(None),
        Some(text) if is_version(text, b"1.0") => Ok(Some(Generation::V10)),
        Some(text) if is_version(text, b"0.3") => Ok(Some(Generation::V03)),
        Some(_) => Err(refused()),
    }
}

fn refused() -> Fault {
    Fault::from(Refusal::Version).with("supportedVersions", SUPPORTED)
}

/// Patch digits do not matter (VER-04).
fn is_version(text: &[u8], version: &[u8]) -> bool {
    let Some(rest) = text.strip_prefix(version) else {
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
    use http::Request;

    fn head(lines: &[&str], query: Option<&str>) -> Parts {
        let mut request = Request::builder().uri(format!("/?{}", query.unwrap_or_default()));
        for line in lines {
            request = request.header(NAME, *line);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn found(spoken: Spoken, lines: &[&str], query: Option<&str>) -> Option<Generation> {
        negotiate(&head(lines, query), spoken, false).ok()
    }

    fn ask(lines: &[&str], query: Option<&str>) -> bool {
        found(Spoken::V10, lines, query).is_some()
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
    fn other_versions_and_nonsense_are_refused_whatever_the_name() {
        for line in [
            "1", "1.", "1.1", "1.00", "01.0", "2.0", "1.0.", "1.0.x", "1.0-rc1", "v1.0",
            "1.0, 1.0", "latest", "1.0.0.0", "1,0", "0.2", "0.2.6", "0.30", "0", "0.3.",
        ] {
            for spoken in [Spoken::V03, Spoken::V10, Spoken::OnlyV10, Spoken::Both] {
                assert_eq!(found(spoken, &[line], None), None, "{line:?} {spoken:?}");
            }
        }
    }

    /// VER-02.
    #[test]
    fn no_version_means_0_3() {
        for (lines, query) in [(&[][..], None), (&[""], None), (&[], Some("A2A-Version="))] {
            assert!(!ask(lines, query));
            assert_eq!(found(Spoken::Both, lines, query), Some(Generation::V03));
        }
    }

    #[test]
    fn dual_02_a_name_of_0_3_decides_and_one_of_1_0_has_to_be_confirmed() {
        for line in ["", "0.3", "0.3.0", "0.3.14", "1.0", "1.0.1"] {
            let found = |spoken| found(spoken, &[line], None);
            assert_eq!(found(Spoken::V03), Some(Generation::V03), "{line:?}");
            let newer = line.starts_with('1').then_some(Generation::V10);
            assert_eq!(found(Spoken::V10), newer, "{line:?}");
            assert_eq!(
                found(Spoken::Both),
                newer.or(Some(Generation::V03)),
                "{line:?}"
            );
        }
    }

    #[test]
    fn dual_02_leniency_takes_a_name_of_1_0_for_1_0() {
        let ask = |line, spoken| negotiate(&head(&[line], None), spoken, true).ok();
        for line in ["", "0.3", "1.0"] {
            assert_eq!(ask(line, Spoken::V10), Some(Generation::V10), "{line:?}");
            assert_eq!(ask(line, Spoken::V03), Some(Generation::V03), "{line:?}");
        }
        assert_eq!(ask("2.0", Spoken::V10), None);
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
        let ask = |lines: &[&str]| found(Spoken::OnlyV10, lines, None).is_some();
        assert!(ask(&[]) && ask(&[""]) && ask(&["1.0"]) && ask(&["1.0.3"]));
        assert!(!ask(&["0.3"]) && !ask(&["1.1"]) && !ask(&["1.0", "0.3"]) && !ask(&["x"]));
    }

    #[test]
    fn repeated_headers_must_agree() {
        assert!(ask(&["1.0", "1.0"], None));
        assert!(!ask(&["1.0", "0.3"], None));
        assert_eq!(found(Spoken::V03, &["1.0", "0.3"], None), None);
    }

    #[test]
    fn repeated_parameters_must_agree() {
        assert!(ask(&[], Some("A2A-Version=1.0&a2a-version=1%2e0")));
        assert!(!ask(&[], Some("A2A-Version=1.0&a2a-version=0.3")));
        assert!(!ask(&[], Some("A2A-Version=0.3&A2A-Version=1.0")));
        assert!(!ask(&[], Some("A2A-Version=1.0&A2A-Version=")));
    }
}
