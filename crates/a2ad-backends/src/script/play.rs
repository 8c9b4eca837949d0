//! Playing a script.

use std::sync::Arc;
use std::time::Duration;

use a2ad_core::agent::{Agent, AgentError, Ending, Say, Turn, TurnOver};
use a2ad_proto::{Artifact, Json, Part, PartContent, Role};
use futures_util::future::BoxFuture;

use super::Script;
use super::fill::Filler;
use super::step::{ArtifactStep, Content, Deltas, PartStep, Pieces, Step, Words};
use crate::echo::words;

/// What a client is told whose message no rule is for.
const NO_RULE: &str = "No rule of the script fits this message.";

/// An agent that does what its script says.
#[derive(Clone, Debug)]
pub struct ScriptAgent {
    script: Arc<Script>,
}

impl ScriptAgent {
    /// An agent that plays `script`.
    #[must_use]
    pub fn new(script: Script) -> Self {
        Self {
            script: Arc::new(script),
        }
    }
}

impl Agent for ScriptAgent {
    fn run(&self, turn: Turn) -> BoxFuture<'_, Result<Ending, AgentError>> {
        Box::pin(async move {
            let said = turn.history().iter();
            let earlier = said.filter(|message| message.role == Role::User);
            let Some(steps) = self.script.steps_for(earlier, turn.message()) else {
                return Ok(Ending::Rejected(vec![Part::text(NO_RULE)]));
            };
            // Whoever ended the turn has said how the task goes on, so what is returned then
            // does not count.
            let ending = Player::new(&turn).play(steps).await;
            Ok(ending.unwrap_or(Ending::Completed(Vec::new())))
        })
    }

    /// Nothing but the turn is touched.
    fn is_pure(&self) -> bool {
        true
    }
}

struct Player<'a> {
    turn: &'a Turn,
    filler: Filler<'a>,
}

impl<'a> Player<'a> {
    fn new(turn: &'a Turn) -> Self {
        Self {
            turn,
            filler: Filler(turn),
        }
    }

    async fn play(&self, steps: &[Step]) -> Result<Ending, TurnOver> {
        for step in steps {
            match step {
                Step::Status(words) => {
                    let say = Say::Status {
                        parts: self.message(words),
                        metadata: None,
                    };
                    self.turn.say(say).await?;
                }
                Step::Text(deltas) => self.text(deltas).await?,
                Step::Artifact(artifact) => self.artifact(artifact).await?,
                Step::Wait(pause) => self.wait(pause.0).await?,
                Step::Ask(words) => return Ok(Ending::InputRequired(self.message(words))),
                Step::Auth(words) => return Ok(Ending::AuthRequired(self.message(words))),
                Step::Message(reply) => return Ok(Ending::Reply(self.parts(&reply.0))),
                Step::Complete(words) => return Ok(Ending::Completed(self.message(words))),
                Step::Fail(words) => return Ok(Ending::Failed(self.message(words))),
                Step::Reject(words) => return Ok(Ending::Rejected(self.message(words))),
                Step::Hold(_) => {
                    self.turn.cancelled().await;
                    return Err(TurnOver);
                }
            }
        }
        Ok(Ending::Completed(Vec::new()))
    }

    async fn text(&self, deltas: &Deltas) -> Result<(), TurnOver> {
        let pieces: Vec<String> = match &deltas.pieces {
            Pieces::Listed(pieces) => pieces.iter().map(|text| self.filler.fill(text)).collect(),
            Pieces::Words(text) => {
                let text = self.filler.fill(text);
                words(&text).map(str::to_owned).collect()
            }
        };
        for (index, piece) in pieces.into_iter().enumerate() {
            if index > 0
                && let Some(every) = deltas.every
            {
                self.wait(every).await?;
            }
            if !piece.is_empty() {
                self.turn.say_text(piece).await?;
            }
            if deltas.flush {
                self.turn.flush().await?;
            }
        }
        Ok(())
    }

    async fn artifact(&self, step: &ArtifactStep) -> Result<(), TurnOver> {
        for (index, chunk) in step.chunks.iter().enumerate() {
            if index > 0
                && let Some(every) = step.every
            {
                self.wait(every).await?;
            }
            let say = Say::Artifact {
                artifact: Artifact {
                    artifact_id: step.id.as_str().to_owned(),
                    name: self.filler.fill(&step.name),
                    description: self.filler.fill(&step.description),
                    parts: self.parts(chunk),
                    ..Artifact::default()
                },
                append: index > 0,
                last_chunk: index + 1 == step.chunks.len(),
            };
            self.turn.say(say).await?;
            if step.flush {
                self.turn.flush().await?;
            }
        }
        Ok(())
    }

    /// Waits, unless the turn is over first.
    async fn wait(&self, time: Duration) -> Result<(), TurnOver> {
        if time.is_zero() {
            tokio::task::yield_now().await;
            return Ok(());
        }
        tokio::select! {
            biased;
            () = self.turn.cancelled() => Err(TurnOver),
            () = tokio::time::sleep(time) => Ok(()),
        }
    }

    fn message(&self, words: &Words) -> Vec<Part> {
        self.parts(&words.0)
    }

    fn parts(&self, parts: &[PartStep]) -> Vec<Part> {
        let fill = |text: &str| self.filler.fill(text);
        let part = |part: &PartStep| Part {
            content: match &part.content {
                Content::Text(text) => PartContent::Text(fill(text)),
                Content::Raw(bytes) => PartContent::Raw(bytes.clone()),
                Content::Url(url) => PartContent::Url(fill(url)),
                Content::Data(data) => PartContent::Data(match &data.always {
                    Some(json) => json.clone(),
                    None => Json::from_value(&self.filler.fill_data(&data.value)),
                }),
            },
            filename: fill(&part.filename),
            media_type: part.media_type.clone(),
            ..Part::default()
        };
        parts.iter().map(part).collect()
    }
}
