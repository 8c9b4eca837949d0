//! YAML as a tree that remembers where each piece stands.
//!
//! The detour through a tree of our own buys what serde's usual path loses: a line for every
//! error, `${VAR}` that cannot change the file's structure, and settings from the environment and
//! the command line laid over the file.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput};

use super::error::{ConfigError, Origin};

/// How deep lists and mappings may nest; a configuration needs five.
const DEPTH_MAX: usize = 32;
/// How many nodes `*alias` may add, so that a few lines cannot become gigabytes.
const ALIASED_MAX: usize = 10_000;

/// One value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) origin: Origin,
    pub(super) kind: Kind,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Null,
    Scalar { text: String, plain: bool },
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) origin: Origin,
    pub(super) text: String,
}

impl Node {
    /// Reads one YAML document. `variable` looks up what `${NAME}` stands for.
    pub(super) fn parse(
        text: &str,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        if text.contains([REFERENCE, REFERENCE_END, LITERAL, BROKEN]) {
            return Err(ConfigError::new(
                "the characters U+E000 to U+E003 cannot be used here",
            ));
        }
        Self::build(&mark_references(text), Some(variable))
    }

    /// The same without references: `${` is just that.
    pub(super) fn parse_plain(text: &str) -> Result<Self, ConfigError> {
        Self::build(text, None)
    }

    fn build(text: &str, variable: Option<Lookup<'_>>) -> Result<Self, ConfigError> {
        let mut builder = Builder {
            events: Parser::new_from_str(text),
            anchors: HashMap::new(),
            aliased: 0,
            variable,
        };
        builder.document()
    }

    /// Lays a setting over the tree; `path` names it from the outside in.
    pub(super) fn set(&mut self, path: &[&str], text: &str, origin: &Origin) {
        let Some((first, rest)) = path.split_first() else {
            self.origin = origin.clone();
            self.kind = Kind::Scalar {
                text: text.to_owned(),
                plain: false,
            };
            return;
        };
        if !matches!(self.kind, Kind::Map(_)) {
            self.kind = Kind::Map(Vec::new());
        }
        if let Kind::Map(entries) = &mut self.kind {
            let known = entries
                .iter()
                .position(|(key, _)| underscored(&key.text) == *first);
            let index = known.unwrap_or_else(|| {
                let key = Key {
                    origin: origin.clone(),
                    text: (*first).to_owned(),
                };
                let empty = Self {
                    origin: origin.clone(),
                    kind: Kind::Null,
                };
                entries.push((key, empty));
                entries.len() - 1
            });
            entries[index].1.set(rest, text, origin);
        }
    }

    fn count(&self) -> usize {
        1 + match &self.kind {
            Kind::Null | Kind::Scalar { .. } => 0,
            Kind::List(items) => items.iter().map(Self::count).sum(),
            Kind::Map(entries) => entries.iter().map(|(_, node)| node.count()).sum(),
        }
    }
}

/// Keys may be written with dash or underscore; inside they have underscores.
pub(super) fn underscored(key: &str) -> String {
    key.replace('-', "_")
}

/// Looks up an environment variable.
type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

struct Builder<'a> {
    events: Parser<'a, StrInput<'a>>,
    anchors: HashMap<usize, Node>,
    aliased: usize,
    variable: Option<Lookup<'a>>,
}

impl<'a> Builder<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Origin), ConfigError> {
        match self.events.next() {
            Some(Ok((event, span))) => Ok((event, place(&span))),
            Some(Err(error)) => Err(scan_error(&error)),
            None => Err(ConfigError::new("the file ends in the middle of a value")),
        }
    }

    fn document(&mut self) -> Result<Node, ConfigError> {
        let mut root = None;
        loop {
            let (event, origin) = self.next()?;
            match event {
                Event::StreamStart | Event::DocumentEnd | Event::Nothing => {}
                Event::StreamEnd => {
                    return Ok(root.unwrap_or(Node {
                        origin,
                        kind: Kind::Null,
                    }));
                }
                Event::DocumentStart(_) => {
                    let (event, origin) = self.next()?;
                    let node = self.node(event, origin, 0)?;
                    if root.is_some() {
                        return Err(
                            ConfigError::new("only one YAML document is read").at(&node.origin)
                        );
                    }
                    root = Some(node);
                }
                Event::Alias(_)
                | Event::Scalar(..)
                | Event::SequenceStart(..)
                | Event::SequenceEnd
                | Event::MappingStart(..)
                | Event::MappingEnd => {
                    return Err(
                        ConfigError::new("a value stands outside of the document").at(&origin)
                    );
                }
            }
        }
    }

    fn node(
        &mut self,
        event: Event<'a>,
        origin: Origin,
        depth: usize,
    ) -> Result<Node, ConfigError> {
        if depth > DEPTH_MAX {
            return Err(ConfigError::new("too deeply nested").at(&origin));
        }
        let (anchor, kind) = match event {
            Event::Scalar(text, style, anchor, _) => {
                let plain = style == ScalarStyle::Plain;
                let text = self.expand(&text).map_err(|error| error.at(&origin))?;
                let null = plain && matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL");
                let kind = if null {
                    Kind::Null
                } else {
                    Kind::Scalar { text, plain }
                };
                (anchor, kind)
            }
            Event::SequenceStart(anchor, _) => (anchor, Kind::List(self.list(depth)?)),
            Event::MappingStart(anchor, _) => (anchor, Kind::Map(self.map(depth)?)),
            Event::Alias(anchor) => {
                let node = self.anchors.get(&anchor).cloned();
                let node = node.ok_or_else(|| {
                    ConfigError::new("an alias inside its own anchor").at(&origin)
                })?;
                self.aliased += node.count();
                if self.aliased > ALIASED_MAX {
                    return Err(ConfigError::new("too much is repeated by aliases").at(&origin));
                }
                return Ok(node);
            }
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd
            | Event::SequenceEnd
            | Event::MappingEnd => (0, Kind::Null),
        };
        let node = Node { origin, kind };
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Node>, ConfigError> {
        let mut items = Vec::new();
        loop {
            let (event, origin) = self.next()?;
            if event == Event::SequenceEnd {
                return Ok(items);
            }
            items.push(self.node(event, origin, depth + 1)?);
        }
    }

    fn map(&mut self, depth: usize) -> Result<Vec<(Key, Node)>, ConfigError> {
        let mut entries: Vec<(Key, Node)> = Vec::new();
        let mut seen: HashMap<String, Origin> = HashMap::new();
        loop {
            let (event, origin) = self.next()?;
            let text = match event {
                Event::MappingEnd => return Ok(entries),
                Event::Scalar(text, ..) if self.variable.is_none() => text.into_owned(),
                Event::Scalar(text, ..) => unmark(&text),
                Event::Nothing
                | Event::StreamStart
                | Event::StreamEnd
                | Event::DocumentStart(_)
                | Event::DocumentEnd
                | Event::Alias(_)
                | Event::SequenceStart(..)
                | Event::SequenceEnd
                | Event::MappingStart(..) => {
                    return Err(ConfigError::new("a key has to be a plain word").at(&origin));
                }
            };
            if let Some(first) = seen.insert(underscored(&text), origin.clone()) {
                let before = match &first {
                    Origin::Line(line) => format!(" (first on line {line})"),
                    Origin::Named(_) => String::new(),
                };
                let error = ConfigError::new(format!("the key `{text}` stands twice{before}"));
                return Err(error.at(&origin));
            }
            let (event, value_origin) = self.next()?;
            let value = self.node(event, value_origin, depth + 1)?;
            entries.push((Key { origin, text }, value));
        }
    }

    /// Puts in what the references that [`mark_references`] marked stand for.
    fn expand(&self, text: &str) -> Result<String, ConfigError> {
        let Some(variable) = self.variable else {
            return Ok(text.to_owned());
        };
        let mut expanded = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once(REFERENCE) {
            let Some((inner, behind)) = after.split_once(REFERENCE_END) else {
                break;
            };
            expanded.push_str(before);
            let (name, default) = match inner.split_once(":-") {
                Some((name, default)) => (name, Some(default)),
                None => (inner, None),
            };
            let value = variable(name).filter(|value| !(value.is_empty() && default.is_some()));
            match (value, default) {
                (Some(value), _) => expanded.push_str(&value),
                (None, Some(default)) => expanded.push_str(default),
                (None, None) => {
                    return Err(ConfigError::new(format!(
                        "the environment variable `{name}` is not set; set it, or write ${{{name}:-default}}"
                    )));
                }
            }
            rest = behind;
        }
        expanded.push_str(rest);
        if expanded.contains(BROKEN) {
            return Err(ConfigError::new(
                "`${` begins a variable: write ${NAME} or ${NAME:-default}, or $${ for the characters themselves",
            ));
        }
        Ok(expanded.replace(LITERAL, "${"))
    }
}

fn place(span: &Span) -> Origin {
    Origin::Line(span.start.line())
}

fn scan_error(error: &ScanError) -> ConfigError {
    ConfigError::new(format!("not YAML: {}", error.info())).at(&Origin::Line(error.marker().line()))
}

// `${NAME}` is not a plain word inside YAML's `{…}` and `[…]`, where people like to write it. So
// references are marked with characters for private use before the parser sees the text, and
// replaced in the scalars after it: what a variable holds never becomes structure.
const REFERENCE: char = '\u{E000}';
const REFERENCE_END: char = '\u{E001}';
const LITERAL: char = '\u{E002}';
const BROKEN: char = '\u{E003}';

fn mark_references(text: &str) -> String {
    let mut marked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, after) = (&rest[..at], &rest[at + 2..]);
        if let Some(before) = before.strip_suffix('$') {
            marked.push_str(before);
            marked.push(LITERAL);
            rest = after;
            continue;
        }
        marked.push_str(before);
        match reference(after) {
            Some((inner, behind)) => {
                marked.push(REFERENCE);
                marked.push_str(inner);
                marked.push(REFERENCE_END);
                rest = behind;
            }
            None => {
                marked.push(BROKEN);
                rest = after;
            }
        }
    }
    marked.push_str(rest);
    marked
}

/// Splits `NAME}` or `NAME:-default}` from what follows.
fn reference(after: &str) -> Option<(&str, &str)> {
    let line = after.lines().next().unwrap_or_default();
    let inner = &after[..line.find('}')?];
    let name = inner.split(":-").next().unwrap_or_default();
    let first = name.chars().next()?;
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (!first.is_ascii_digit() && name.chars().all(word)).then(|| (inner, &after[inner.len() + 1..]))
}

/// The text as it stood in the file.
fn unmark(text: &str) -> String {
    text.replace([REFERENCE, BROKEN], "${")
        .replace(REFERENCE_END, "}")
        .replace(LITERAL, "$${")
}
