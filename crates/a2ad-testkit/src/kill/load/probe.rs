//! A long task at one server, followed at the others, to see how soon it goes on after that one was
//! struck.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::super::history::{Frame, Opened, Part, Stream, Takeover};
use super::streams::{Asking, PartEnd, names};
use super::{Client, TRIES_MAX, Up, at_once};

/// How many words a probe says, one every five milliseconds: enough to be at it still when its
/// server is struck, and to be heard again if a server wakes up that was taken for dead.
const WORDS: u64 = 200;

/// A task that a server is at work on.
#[derive(Debug)]
pub struct Probe {
    task: String,
    stream: Stream,
}

impl Client {
    /// Begins a task at this server; `None` if that does not do its part.
    pub async fn begin_probe(&mut self, up: Up) -> Option<Probe> {
        let (id, request) = self.new_message(WORDS);
        let params = json!(request);
        let asking = Asking::new("SendStreamingMessage", &params, None);
        let says = |frame: &Frame| is_first_words(&frame.json);
        let (frames, _) = asking.read_until(&self.shared, up, says).await;
        let Some((task, context_id)) = frames.first().and_then(|frame| names(&frame.json)) else {
            // It may have been heard all the same.
            self.acknowledged(&id, &at_once(request)).await;
            return None;
        };
        let mut history = self.shared.history();
        history.acknowledged(&id, &task, &context_id);
        drop(history);
        self.remember(&task, &context_id);
        let part = Part {
            task: task.clone(),
            opened: Opened::FromStart,
            frames,
            ended: false,
        };
        let stream = Stream { parts: vec![part] };
        Some(Probe { task, stream })
    }

    /// Reads on to the end, wherever there is a server. If the task has to begin anew, that is due
    /// so long after its server was struck.
    pub async fn follow(&mut self, probe: Probe, struck: Instant, due: Duration) {
        let Probe { task, mut stream } = probe;
        let params = json!({"id": task});
        let mut took = None;
        for _ in 0..TRIES_MAX {
            let parts = stream.parts.iter().rev();
            let seen = parts.filter_map(|part| part.frames.last()).next();
            let after = seen.map(|frame| frame.number);
            let up = self.shared.up().await;
            let asking = Asking::new("SubscribeToTask", &params, after);
            let note = |frame: &Frame| {
                if is_first_words(&frame.json) {
                    took.get_or_insert_with(|| struck.elapsed());
                }
                false
            };
            let (frames, end) = asking.read_until(&self.shared, up, note).await;
            self.shared.history().tried.resumes += 1;
            stream.parts.push(Part {
                task: task.clone(),
                opened: after.map_or(Opened::Now, Opened::After),
                frames,
                ended: matches!(end, PartEnd::Ended),
            });
            match end {
                PartEnd::Cut => self.shared.pause(up).await,
                PartEnd::Ended => break,
                PartEnd::Refused(why) => {
                    let surprise = format!("a probe of {task} after {after:?}: {why}");
                    self.shared.history().surprise(surprise);
                    break;
                }
                PartEnd::Stalled => {
                    let surprise = format!("a probe of {task} after {after:?}: nothing comes");
                    self.shared.history().surprise(surprise);
                    break;
                }
            }
        }
        self.keep(stream);
        if let Some(took) = took {
            let takeover = Takeover { task, took, due };
            self.shared.history().taken_over(takeover);
        }
    }
}

/// Whether the agent begins to speak: further words are appended to these.
fn is_first_words(json: &str) -> bool {
    let frame: serde_json::Value = serde_json::from_str(json).unwrap_or_default();
    let update = frame.get("artifactUpdate");
    update.is_some_and(|update| update.get("append") != Some(&json!(true)))
}
