//! Which messages a rule is for.

use a2ad_proto::{Message, Part, PartContent};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pattern::fits;
use super::written::OneOrMore;

/// Conditions; all that are there have to hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("minProperties" = 1))]
pub(super) struct When {
    /// The message's id: a pattern, in which `*` stands for anything, or several.
    #[serde(skip_serializing_if = "Option::is_none")]
    message_id: Option<OneOrMore>,
    /// The message's text, its text parts joined by line breaks: a pattern or several.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<OneOrMore>,
    /// The media type of one of the message's parts: a pattern or several. Text without one is
    /// text/plain, data application/json, bytes application/octet-stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    media_type: Option<OneOrMore>,
    /// Whether the message begins its task.
    #[serde(skip_serializing_if = "Option::is_none")]
    turn: Option<Position>,
    /// The name of the rule that answered the task's message before this one, or several.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<OneOrMore>,
}

/// Where in its task a message stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Position {
    /// It begins the task.
    First,
    /// It follows others.
    Later,
}

/// What came before a message in its task.
#[derive(Clone, Copy, Debug)]
pub(super) enum Before<'a> {
    /// It is the first.
    Nothing,
    /// Another, answered by the rule of this name, if it has one.
    Rule(Option<&'a str>),
}

impl When {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The rules it has to come after.
    pub(super) fn after(&self) -> &[String] {
        self.after.as_ref().map_or(&[], |names| &names.0)
    }

    pub(super) fn fits(&self, message: &Message, before: Before<'_>) -> bool {
        // What costs least first; texts may be long.
        self.turn.is_none_or(|turn| turn.fits(before))
            && self.after.as_ref().is_none_or(|names| match before {
                Before::Rule(Some(name)) => names.0.iter().any(|known| known == name),
                Before::Rule(None) | Before::Nothing => false,
            })
            && one_of(self.message_id.as_ref(), || [message.message_id.as_str()])
            && one_of(self.media_type.as_ref(), || {
                message.parts.iter().map(media_type)
            })
            && one_of(self.text.as_ref(), || [text_of(message)])
    }
}

impl Position {
    fn fits(self, before: Before<'_>) -> bool {
        match self {
            Self::First => matches!(before, Before::Nothing),
            Self::Later => matches!(before, Before::Rule(_)),
        }
    }
}

/// Whether nothing is asked, or one of the patterns fits one of the texts.
fn one_of<T: AsRef<str>, I: IntoIterator<Item = T>>(
    patterns: Option<&OneOrMore>,
    texts: impl FnOnce() -> I,
) -> bool {
    patterns.is_none_or(|patterns| {
        let fits = |text: T| {
            patterns
                .0
                .iter()
                .any(|pattern| fits(pattern, text.as_ref()))
        };
        texts().into_iter().any(fits)
    })
}

/// The text parts, joined by line breaks.
pub(super) fn text_of(message: &Message) -> String {
    let texts: Vec<&str> = message.parts.iter().filter_map(Part::as_text).collect();
    texts.join("\n")
}

fn media_type(part: &Part) -> &str {
    match &part.content {
        _ if !part.media_type.is_empty() => &part.media_type,
        PartContent::Text(_) => "text/plain",
        PartContent::Data(_) => "application/json",
        PartContent::Raw(_) => "application/octet-stream",
        PartContent::Url(_) => "",
    }
}
