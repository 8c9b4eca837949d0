//! Putting what was measured into `docs/performance.md`, between the marks that are there for it.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

/// Writes `text` between `<!-- bench: name -->` and the next `<!-- end -->`.
///
/// # Errors
/// When the file has no such marks, or cannot be written.
pub(crate) fn record(file: &Path, name: &str, text: &str) -> Result<()> {
    let before = fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
    let after = replaced(&before, name, text);
    let after = after.with_context(|| format!("{} has no marks for {name}", file.display()))?;
    fs::write(file, after).with_context(|| format!("write {}", file.display()))
}

fn replaced(document: &str, name: &str, text: &str) -> Option<String> {
    let begin = format!("<!-- bench: {name} -->\n");
    let (head, rest) = document.split_once(&begin)?;
    let end = rest.find("<!-- end -->")?;
    Some(format!(
        "{head}{begin}\n{}\n\n{}",
        text.trim(),
        &rest[end..]
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_changes() {
        let document =
            "a\n<!-- bench: x -->\nold\n<!-- end -->\n<!-- bench: y -->\n<!-- end -->\nb\n";
        let after = replaced(document, "x", "new\n").unwrap();
        let expected =
            "a\n<!-- bench: x -->\n\nnew\n\n<!-- end -->\n<!-- bench: y -->\n<!-- end -->\nb\n";
        assert_eq!(after, expected);
        assert_eq!(replaced(document, "z", "new"), None);
    }
}
