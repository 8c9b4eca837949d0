//! Golden files: what goes over the wire, written down and compared.

use std::fmt::Write as _;
use std::path::Path;

/// Compares `actual` with the golden file; with `UPDATE_GOLDEN=1` writes it instead.
///
/// # Panics
/// When they differ.
pub fn compare(golden: &Path, actual: &str) {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(golden, actual).expect("the golden file can be written");
        return;
    }
    let expected = std::fs::read_to_string(golden).unwrap_or_default();
    if expected == actual {
        return;
    }
    let mut difference = String::new();
    let (mut old, mut new) = (expected.lines(), actual.lines());
    loop {
        match (old.next(), new.next()) {
            (None, None) => break,
            (old, new) if old == new => {}
            (old, new) => {
                let _infallible = writeln!(difference, "- {old:?}\n+ {new:?}");
            }
        }
    }
    panic!(
        "{} differs; if that is right, run again with UPDATE_GOLDEN=1\n{difference}",
        golden.display()
    );
}

/// Replaces what differs from run to run: UUIDs, by `<uuid-1>`, `<uuid-2>` … in order of
/// appearance, timestamps and error ids.
#[must_use]
pub fn redact(text: &str) -> String {
    let mut seen: Vec<String> = Vec::new();
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some(uuid) = rest.get(..36).filter(|it| is_uuid(it)) {
            let at = seen.iter().position(|known| known == uuid);
            let at = at.unwrap_or_else(|| {
                seen.push(uuid.to_owned());
                seen.len() - 1
            });
            let _infallible = write!(out, "<uuid-{}>", at + 1);
            rest = &rest[36..];
        } else if rest.get(..24).is_some_and(is_timestamp) {
            out.push_str("<time>");
            rest = &rest[24..];
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    out
}

fn is_uuid(text: &str) -> bool {
    matches(text, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")
}

fn is_timestamp(text: &str) -> bool {
    matches(text, "dddd-dd-ddTdd:dd:dd.dddZ")
}

fn matches(text: &str, pattern: &str) -> bool {
    text.len() == pattern.len()
        && text
            .bytes()
            .zip(pattern.bytes())
            .all(|(byte, want)| match want {
                b'x' => byte.is_ascii_hexdigit(),
                b'd' => byte.is_ascii_digit(),
                want => byte == want,
            })
}
