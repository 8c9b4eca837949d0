//! Agents that do as the message tells them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use a2ad_core::agent::{Agent, AgentError, Ending, Say, Turn};
use a2ad_proto::{Artifact, Metadata, Part};
use futures_util::future::BoxFuture;
use tokio::sync::Notify;

/// Reads the first word of the message and obeys:
///
/// - `echo TEXT`: answers the text
/// - `words TEXT`: the same, word by word, each in a commit of its own
/// - `chatter N`: N words without a pause
/// - `passes A|B`: says each word by word, and waits in between until it is written
/// - `burst N`: N artifacts in one go
/// - `status TEXT`: a status message, then done
/// - `reply TEXT`: a direct reply
/// - `status-reply TEXT`: the same, but with a status message before it
/// - `status-gate-reply TEXT`: the same, with the gate in between
/// - `gate-reply TEXT`: a direct reply, once [`Obedient::open_gate`] is called; not a word before
/// - `ask TEXT`: asks the client, then answers whatever comes next
/// - `auth`, `reject`, `fail`, `panic`: ends that way
/// - `flaky N`: fails in a way that may pass until the N-th try
/// - `hold`: works until canceled, and stops in good order
/// - `stubborn`: works forever and does not listen
/// - `gate`: works until [`Obedient::open_gate`] is called
/// - `pieces`: an artifact in three pieces, with names, metadata and extensions of their own, and
///   another that is replaced
/// - `notes`: two status messages with metadata
/// - `long N`: N words, and among them chunks of a table and remarks with metadata, each in a commit of its own
/// - `orphan-chunk`: adds to an artifact that it never began
/// - `heard`: answers the metadata of the message
/// - `where`: answers the name of the conversation under which an agent keeps its state
/// - `whoami`: answers what it was told about the caller and the request
#[derive(Debug, Default)]
pub struct Obedient {
    gate: Notify,
    /// Turns that are running now, and the most that ever ran at once.
    running: AtomicU32,
    /// How many turns were begun.
    pub begun: AtomicU32,
    /// The most turns that ran at once.
    pub most: AtomicU32,
    /// Says of itself that a first poll has no effect, so that a turn which ends at once is begun
    /// before its message is written, and is one commit.
    pub pure: AtomicBool,
}

impl Obedient {
    /// Lets the turns that wait at the gate pass.
    pub fn open_gate(&self) {
        self.gate.notify_waiters();
    }

    async fn obey(&self, turn: &Turn) -> Result<Ending, AgentError> {
        let said = turn.text();
        let (verb, rest) = said.split_once(' ').unwrap_or((&said, ""));
        match verb {
            "words" => {
                for word in rest.split_inclusive(' ') {
                    over(turn.say_text(word).await)?;
                    // A word that waits for the next one would run together with it.
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
            "chatter" => {
                for n in 0..rest.parse().unwrap_or(0_u32) {
                    over(turn.say_text(format!("{n} ")).await)?;
                }
            }
            "passes" => {
                for pass in rest.split('|') {
                    for word in pass.split_inclusive(' ') {
                        over(turn.say_text(word).await)?;
                        tokio::time::sleep(Duration::from_millis(2)).await;
                    }
                    over(turn.flush().await)?;
                }
            }
            "burst" => {
                for n in 0..rest.parse().unwrap_or(0) {
                    over(
                        turn.say(artifact(&format!("a{n}"), &format!("part {n}")))
                            .await,
                    )?;
                }
            }
            "status" => over(turn.say(status(rest)).await)?,
            "reply" => return Ok(Ending::Reply(vec![Part::text(rest)])),
            "status-reply" => {
                over(turn.say(status("thinking")).await)?;
                return Ok(Ending::Reply(vec![Part::text(rest)]));
            }
            "status-gate-reply" => {
                over(turn.say(status("thinking")).await)?;
                self.gate.notified().await;
                return Ok(Ending::Reply(vec![Part::text(rest)]));
            }
            "gate-reply" => {
                self.gate.notified().await;
                return Ok(Ending::Reply(vec![Part::text(rest)]));
            }
            "ask" => return Ok(Ending::InputRequired(vec![Part::text(rest)])),
            "auth" => return Ok(Ending::AuthRequired(vec![Part::text("who are you?")])),
            "reject" => return Ok(Ending::Rejected(vec![Part::text("not for me")])),
            "fail" => return Ok(Ending::Failed(vec![Part::text("could not")])),
            "panic" => panic!("as told"),
            "flaky" => {
                if turn.attempt().0 < rest.parse().unwrap_or(0) {
                    over(turn.say_text(format!("try {} ", turn.attempt().0)).await)?;
                    return Err(AgentError {
                        public: "come back later".to_owned(),
                        retryable: true,
                        source: None,
                    });
                }
                over(turn.say_text("made it").await)?;
            }
            "hold" => {
                turn.cancelled().await;
                over(turn.say_text("stopped").await)?;
            }
            "stubborn" => std::future::pending().await,
            "gate" => {
                let passed = self.gate.notified();
                over(turn.say_text("waiting ").await)?;
                passed.await;
                over(turn.say_text("passed").await)?;
            }
            "pieces" => {
                for piece in pieces() {
                    over(turn.say(piece).await)?;
                }
            }
            "notes" => {
                for (text, metadata) in [("one", r#"{"a":"1","b":"1"}"#), ("two", r#"{"b":"2"}"#)] {
                    over(
                        turn.say(Say::Status {
                            parts: vec![Part::text(text)],
                            metadata: Metadata::parse(metadata).ok(),
                        })
                        .await,
                    )?;
                }
            }
            "long" => {
                for n in 0..rest.parse().unwrap_or(0_u32) {
                    over(turn.say_text(format!("word {n} ")).await)?;
                    if n % 4 == 0 {
                        over(turn.say(row(n)).await)?;
                    }
                    if n % 9 == 0 {
                        over(
                            turn.say(Say::Status {
                                parts: vec![Part::text(format!("at {n}"))],
                                metadata: Metadata::parse(&format!(r#"{{"at":{n}}}"#)).ok(),
                            })
                            .await,
                        )?;
                    }
                    tokio::time::sleep(Duration::from_millis(3)).await;
                }
            }
            "orphan-chunk" => {
                let Say::Artifact { artifact, .. } = artifact("never-begun", "x") else {
                    return Ok(Ending::Completed(Vec::new()));
                };
                let chunk = Say::Artifact {
                    artifact,
                    append: true,
                    last_chunk: false,
                };
                over(turn.say(chunk).await)?;
            }
            "heard" => {
                let metadata = turn.message().metadata.as_ref();
                let metadata = metadata.map_or("none", |it| it.as_str());
                over(turn.say_text(metadata).await)?;
            }
            "where" => over(turn.say_text(turn.context_key()).await)?,
            "whoami" => {
                let metadata = turn.request_metadata().map_or("none", |it| it.as_str());
                let history = turn.history().len();
                let text = format!("{} {metadata} {history}", turn.owner().as_str());
                over(turn.say_text(text).await)?;
            }
            _ => over(turn.say_text(rest).await)?,
        }
        Ok(Ending::Completed(Vec::new()))
    }
}

impl Agent for Obedient {
    fn run(&self, turn: Turn) -> BoxFuture<'_, Result<Ending, AgentError>> {
        Box::pin(async move {
            let now = self.running.fetch_add(1, Ordering::SeqCst) + 1;
            self.begun.fetch_add(1, Ordering::SeqCst);
            self.most.fetch_max(now, Ordering::SeqCst);
            // Counted down also when the turn is taken away.
            let _guard = Running(&self.running);
            self.obey(&turn).await
        })
    }

    fn is_pure(&self) -> bool {
        self.pure.load(Ordering::SeqCst)
    }
}

struct Running<'a>(&'a AtomicU32);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// An agent behind an `Arc`, so that a test can watch it.
#[must_use]
pub fn obedient() -> Arc<Obedient> {
    Arc::new(Obedient::default())
}

fn artifact(id: &str, text: &str) -> Say {
    Say::Artifact {
        artifact: Artifact {
            artifact_id: id.to_owned(),
            parts: vec![Part::text(text)],
            ..Artifact::default()
        },
        append: false,
        last_chunk: true,
    }
}

/// The next row of a table.
fn row(n: u32) -> Say {
    Say::Artifact {
        artifact: Artifact {
            artifact_id: "table".to_owned(),
            parts: vec![Part::text(format!("row {n} ")), Part::text("same ")],
            metadata: Metadata::parse(&format!(r#"{{"rows":{n}}}"#)).ok(),
            ..Artifact::default()
        },
        append: n > 0,
        last_chunk: false,
    }
}

fn pieces() -> Vec<Say> {
    let piece = |id: &str, n: u8, append, last_chunk| Say::Artifact {
        artifact: Artifact {
            artifact_id: id.to_owned(),
            name: format!("name {n}"),
            description: format!("description {n}"),
            parts: vec![Part::text(format!("piece {n}"))],
            metadata: Metadata::parse(&format!(r#"{{"last":"{n}","{n}":true}}"#)).ok(),
            extensions: vec!["urn:x:all".to_owned(), format!("urn:x:{n}")],
        },
        append,
        last_chunk,
    };
    vec![
        piece("whole", 1, false, false),
        piece("whole", 2, true, false),
        piece("whole", 3, true, true),
        piece("other", 4, false, true),
        piece("other", 5, false, true),
    ]
}

fn status(text: &str) -> Say {
    Say::Status {
        parts: vec![Part::text(text)],
        metadata: None,
    }
}

fn over(result: Result<(), a2ad_core::agent::TurnOver>) -> Result<(), AgentError> {
    result.map_err(|over| AgentError {
        public: "the turn is over".to_owned(),
        retryable: false,
        source: Some(Box::new(over)),
    })
}
