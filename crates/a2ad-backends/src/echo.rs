//! The echo back end: answers with what it is told. For trying things out, and for tests that
//! want an agent whose answer they know.

use std::time::Duration;

use a2ad_core::agent::{Agent, AgentError, Ending, Say, Turn, TurnOver};
use a2ad_proto::{Artifact, Part};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units;

/// The artifact that carries back what is not text.
const ATTACHMENTS: &str = "attachments";

/// The echo back end: answers with what it is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Echo {
    /// Answers word by word instead of all at once.
    pub words: bool,
    /// The pause before each word, or before the whole answer.
    #[serde(with = "units::duration")]
    #[schemars(with = "units::DurationText")]
    pub delay: Duration,
}

impl Echo {
    /// What it says of itself on a card.
    pub const DESCRIPTION: &'static str = "Answers with what it is told.";

    /// Word by word, with a pause before each.
    #[must_use]
    pub fn words(delay: Duration) -> Self {
        Self { words: true, delay }
    }
}

impl Default for Echo {
    fn default() -> Self {
        Self {
            words: false,
            delay: Duration::ZERO,
        }
    }
}

/// Answers each message with its own text, and with its other parts as they came.
#[derive(Clone, Debug, Default)]
pub struct EchoAgent {
    words: bool,
    delay: Duration,
}

impl EchoAgent {
    /// An echo that answers as `echo` says.
    #[must_use]
    pub const fn new(echo: &Echo) -> Self {
        Self {
            words: echo.words,
            delay: echo.delay,
        }
    }

    async fn answer(&self, turn: &Turn) -> Result<(), TurnOver> {
        let text = turn.text();
        if self.words {
            for word in words(&text) {
                self.pause(turn).await?;
                turn.say_text(word).await?;
            }
        } else {
            self.pause(turn).await?;
            if !text.is_empty() {
                turn.say_text(text).await?;
            }
        }
        let parts: Vec<Part> = turn
            .message()
            .parts
            .iter()
            .filter(|part| part.as_text().is_none())
            .cloned()
            .collect();
        if !parts.is_empty() {
            turn.say(Say::Artifact {
                artifact: Artifact {
                    artifact_id: ATTACHMENTS.to_owned(),
                    parts,
                    ..Artifact::default()
                },
                append: false,
                last_chunk: true,
            })
            .await?;
        }
        Ok(())
    }

    /// Waits, unless the turn is over first.
    async fn pause(&self, turn: &Turn) -> Result<(), TurnOver> {
        if self.delay.is_zero() {
            return Ok(());
        }
        tokio::select! {
            biased;
            () = turn.cancelled() => Err(TurnOver),
            () = tokio::time::sleep(self.delay) => Ok(()),
        }
    }
}

impl Agent for EchoAgent {
    fn run(&self, turn: Turn) -> BoxFuture<'_, Result<Ending, AgentError>> {
        Box::pin(async move {
            // Whoever ended the turn has said how the task goes on, so what is returned then
            // does not count.
            let _over = self.answer(&turn).await;
            Ok(Ending::Completed(Vec::new()))
        })
    }

    fn is_pure(&self) -> bool {
        true
    }
}

/// Cuts a text before each word; put together, the pieces are the text again.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let word = rest.find(|c: char| !c.is_whitespace()).unwrap_or(0);
        let space = rest[word..].find(char::is_whitespace);
        let end = space.map_or(rest.len(), |space| word + space);
        // Blanks at the end belong to the last word.
        let end = if rest[end..].trim_start().is_empty() {
            rest.len()
        } else {
            end
        };
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn the_pieces_are_the_words_with_their_blanks() {
        let check = |text: &str, pieces: &[&str]| {
            assert_eq!(words(text).collect::<Vec<_>>(), pieces);
            assert_eq!(words(text).collect::<String>(), text);
        };
        check("", &[]);
        check("one", &["one"]);
        check("one two  three", &["one", " two", "  three"]);
        check(" lead and trail \n", &[" lead", " and", " trail \n"]);
        check("  ", &["  "]);
        check("grüße\u{2003}世界", &["grüße", "\u{2003}世界"]);
    }
}
