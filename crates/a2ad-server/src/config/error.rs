//! What can be wrong with a configuration, and where.

use std::fmt;

use serde::de;

/// Where a setting came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A line of the configuration file, counted from 1.
    Line(usize),
    /// An environment variable or a flag, by its name.
    Named(String),
}

/// A configuration that cannot be used: what is wrong, where, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    origin: Option<Origin>,
    file: Option<String>,
    /// Keys from the outside in, as far as the error lies inside one.
    path: Vec<String>,
    text: String,
}

impl ConfigError {
    /// Says what is wrong; the place is added on the way out.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self {
            origin: None,
            file: None,
            path: Vec::new(),
            text: text.into(),
        }
    }

    /// Where the setting came from, if that can be said.
    #[must_use]
    pub const fn origin(&self) -> Option<&Origin> {
        self.origin.as_ref()
    }

    /// Fills in the place, unless a narrower one is known.
    pub(super) fn at(mut self, origin: &Origin) -> Self {
        self.origin.get_or_insert_with(|| origin.clone());
        self
    }

    pub(super) fn inside(mut self, key: impl Into<String>) -> Self {
        self.path.insert(0, key.into());
        self
    }

    pub(super) fn in_file(mut self, name: &str) -> Self {
        self.file.get_or_insert_with(|| name.to_owned());
        self
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.origin, &self.file) {
            (Some(Origin::Named(name)), _) => write!(f, "{name}: ")?,
            (Some(Origin::Line(line)), Some(file)) => write!(f, "{file}:{line}: ")?,
            (Some(Origin::Line(line)), None) => write!(f, "line {line}: ")?,
            (None, Some(file)) => write!(f, "{file}: ")?,
            (None, None) => {}
        }
        if !self.path.is_empty() && !matches!(self.origin, Some(Origin::Named(_))) {
            write!(f, "{}: ", self.path.join(".").replace(".[", "["))?;
        }
        f.write_str(&self.text)
    }
}

impl std::error::Error for ConfigError {}

impl de::Error for ConfigError {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Self::new(text.to_string())
    }

    fn invalid_type(found: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        // serde's words for what the file's reader calls by other names.
        let expected = match expected.to_string().as_str() {
            "a string" => "a text".to_owned(),
            other => other.to_owned(),
        };
        Self::new(match found {
            de::Unexpected::Unit => format!("expected {expected}, found nothing"),
            de::Unexpected::Seq => format!("expected {expected}, found a list"),
            de::Unexpected::Map => format!("expected {expected}, found a mapping"),
            found => format!("expected {expected}, found {found}"),
        })
    }

    fn invalid_value(found: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::new(format!("expected {expected}, found {found}"))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::new(unknown("key", field, expected))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self::new(unknown("value", variant, expected))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(format!("the key `{field}` is missing"))
    }
}

/// "unknown key `x`; did you mean `y`?", or the whole choice when nothing is near.
fn unknown(what: &str, word: &str, expected: &[&str]) -> String {
    let near = expected
        .iter()
        .map(|known| (distance(word, known), known))
        .min()
        // A third of the letters wrong is a slip; more is another word.
        .filter(|(steps, known)| *steps <= known.len().max(word.len()).div_ceil(3));
    match near {
        Some((_, known)) => format!("unknown {what} `{word}`; did you mean `{known}`?"),
        None => format!(
            "unknown {what} `{word}`; known here: {}",
            expected.join(", ")
        ),
    }
}

/// How many letters have to be added, dropped, changed or swapped with a neighbour.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let width = b.len() + 1;
    let mut table: Vec<usize> = vec![0; (a.len() + 1) * width];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            let steps = if i == 0 || j == 0 {
                i + j
            } else {
                let changed = usize::from(a[i - 1] != b[j - 1]);
                let mut best = (table[(i - 1) * width + j] + 1)
                    .min(table[i * width + j - 1] + 1)
                    .min(table[(i - 1) * width + j - 1] + changed);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    best = best.min(table[(i - 2) * width + j - 2] + 1);
                }
                best
            };
            table[i * width + j] = steps;
        }
    }
    table[a.len() * width + b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_other_words_are_not() {
        let known = ["listen", "limits", "data_dir"];
        assert_eq!(
            unknown("key", "lisetn", &known),
            "unknown key `lisetn`; did you mean `listen`?"
        );
        assert_eq!(
            unknown("key", "colour", &known),
            "unknown key `colour`; known here: listen, limits, data_dir"
        );
    }

    #[test]
    fn a_swap_of_neighbours_is_one_step() {
        assert_eq!(distance("ehco", "echo"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("same", "same"), 0);
    }
}
