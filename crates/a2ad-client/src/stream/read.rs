//! What the frames of a stream mean.

use a2ad_proto::{StreamResponse, TaskStatusUpdateEvent};

use super::{Event, EventStream, Meaning, Purpose, Source};
use crate::error::Error;

/// How many events in a row may be repetitions.
const REPEATED_MAX: u32 = 10_000;
/// How many chunks may come for artifacts that were never begun before they are taken for beginnings.
const ORPHANS_MAX: u32 = 3;

impl EventStream {
    /// Takes in a frame.
    pub(super) async fn take(&mut self, event: Event, bytes: u64) -> Result<(), Error> {
        let Event { response, number } = event;
        self.check_task(&response)?;
        if let (Some(number), Some(cursor)) = (number, self.cursor)
            && number <= cursor
        {
            self.repeated += 1;
            if self.repeated > REPEATED_MAX {
                return Err(Error::not_a2a("a stream that repeats itself", ""));
            }
            return Ok(());
        }
        self.repeated = 0;
        let meaning = match &mut self.source {
            Source::Open(open) => {
                if open.meaning == Meaning::AfterGap
                    && matches!(
                        response,
                        StreamResponse::StatusUpdate(_) | StreamResponse::ArtifactUpdate(_)
                    )
                {
                    open.meaning = Meaning::Hints;
                }
                let meaning = open.meaning;
                if matches!(response, StreamResponse::Task(_)) {
                    open.meaning = match open.overlaps {
                        true => Meaning::AfterSnapshot { doubted: false },
                        false => Meaning::Events,
                    };
                }
                meaning
            }
            _ => Meaning::Events,
        };
        self.weigh(&response, bytes)?;
        match (response, meaning) {
            (StreamResponse::Task(task), Meaning::AfterGap | Meaning::Hints) => {
                self.absorb(task, number)
            }
            (StreamResponse::StatusUpdate(update), Meaning::Hints) => {
                self.taking = Some(Event::new(
                    StreamResponse::StatusUpdate(update.clone()),
                    number,
                ));
                Box::pin(self.catch_up()).await?;
                self.taking = None;
                // The end was announced before it could be read: look again, and wait for it if need be.
                if update.status.state.is_terminal() && !matches!(self.source, Source::Over) {
                    self.cut(false, None);
                }
                Ok(())
            }
            (response @ StreamResponse::ArtifactUpdate(_), Meaning::Hints) => {
                self.taking = Some(Event::new(response, number));
                Box::pin(self.catch_up()).await?;
                self.taking = None;
                Ok(())
            }
            (
                response @ (StreamResponse::StatusUpdate(_) | StreamResponse::ArtifactUpdate(_)),
                Meaning::AfterSnapshot { doubted },
            ) => Box::pin(self.take_after_snapshot(response, doubted)).await,
            (response, _) => {
                self.go_on(response, number);
                Ok(())
            }
        }
    }

    /// Takes in a frame for which the task was asked, and nobody waited for it.
    pub(super) async fn take_again(&mut self) -> Result<(), Error> {
        match self.taking.take() {
            Some(event) => self.take(event, 0).await,
            None => Ok(()),
        }
    }

    /// Takes in the next event in its order.
    fn go_on(&mut self, response: StreamResponse, number: Option<u64>) {
        if self.is_orphan(&response) {
            self.cursor = None;
            let what = "a chunk of an artifact that was never begun";
            self.cut(false, Some(Error::not_a2a(what, "")));
            return;
        }
        self.cursor = number;
        self.deliver(response, number);
    }

    /// Takes in an event that may be in the snapshot before it. If it looks so, the task tells; once there is one that
    /// is new, all are.
    async fn take_after_snapshot(
        &mut self,
        response: StreamResponse,
        doubted: bool,
    ) -> Result<(), Error> {
        let known = self.is_known(&response);
        if known || doubted {
            self.set_meaning(Meaning::AfterSnapshot { doubted: true });
            // Old or new, there is nothing in it.
            let is_bare = |update: &TaskStatusUpdateEvent| update.metadata.is_none();
            if known && matches!(&response, StreamResponse::StatusUpdate(it) if is_bare(it)) {
                return Ok(());
            }
            self.taking = Some(Event::new(response.clone(), None));
            self.catch_up().await?;
            self.taking = None;
            let is_open = matches!(self.source, Source::Open(_));
            if known || !is_open || self.is_known(&response) {
                return Ok(());
            }
        }
        // A status proves nothing: it need not have a time.
        if matches!(response, StreamResponse::ArtifactUpdate(_)) {
            self.set_meaning(Meaning::Events);
        }
        self.go_on(response, None);
        Ok(())
    }

    fn set_meaning(&mut self, meaning: Meaning) {
        if let Source::Open(open) = &mut self.source {
            open.meaning = meaning;
        }
    }

    /// Whether what was delivered has all that this event says, so that it may be an old one.
    fn is_known(&self, response: &StreamResponse) -> bool {
        let Some(task) = self.assembly.task() else {
            return false;
        };
        match response {
            // A task that can be followed had not ended.
            StreamResponse::StatusUpdate(update) => {
                let (new, old) = (&update.status, &task.status);
                let is_older = new.timestamp.is_some() && new.timestamp < old.timestamp;
                !new.state.is_terminal() && (new == old || is_older)
            }
            StreamResponse::ArtifactUpdate(update) => {
                let new = &update.artifact;
                let mut known = task.artifacts.iter();
                let known = known.find(|known| known.artifact_id == new.artifact_id);
                known.is_some_and(|known| match update.append {
                    false => known.parts.starts_with(&new.parts),
                    true => {
                        let count = new.parts.len().max(1);
                        known.parts.windows(count).any(|parts| parts == new.parts)
                    }
                })
            }
            StreamResponse::Task(_) | StreamResponse::Message(_) => false,
        }
    }

    /// Whether events before this one were missed (ART-03).
    fn is_orphan(&mut self, response: &StreamResponse) -> bool {
        let StreamResponse::ArtifactUpdate(update) = response else {
            return false;
        };
        let known = self.assembly.task().is_some_and(|task| {
            let mut ids = task.artifacts.iter().map(|artifact| &artifact.artifact_id);
            ids.any(|id| *id == update.artifact.artifact_id)
        });
        if !update.append || known || matches!(self.purpose, Purpose::Resume) {
            return false;
        }
        // An agent that does this again and again does it itself; there is nothing to be found by asking.
        self.orphans += 1;
        self.orphans <= ORPHANS_MAX
    }

    /// A stream is of one task, and nobody gets to put another's events into it.
    pub(super) fn check_task(&mut self, response: &StreamResponse) -> Result<(), Error> {
        let id = match response {
            StreamResponse::Task(task) => &task.id,
            StreamResponse::StatusUpdate(update) => &update.task_id,
            StreamResponse::ArtifactUpdate(update) => &update.task_id,
            StreamResponse::Message(_) if self.task_id.is_none() => return Ok(()),
            StreamResponse::Message(_) => {
                return Err(Error::not_a2a("a reply in the stream of a task", ""));
            }
        };
        match &self.task_id {
            Some(known) if known != id && !id.is_empty() => {
                Err(Error::not_a2a("an event of another task", ""))
            }
            None if !id.is_empty() => {
                self.task_id = Some(id.clone());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A task is not put together without an end.
    fn weigh(&mut self, response: &StreamResponse, bytes: u64) -> Result<(), Error> {
        if matches!(response, StreamResponse::Task(_)) {
            self.bytes = 0;
        }
        self.bytes = self.bytes.saturating_add(bytes);
        let bytes_max = self.client.settings().sizes.task_bytes;
        if self.bytes > bytes_max {
            // What was replaced since it was last weighed counts no more.
            let task = self.assembly.task().map(a2ad_proto::to_json);
            self.bytes = bytes.saturating_add(task.map_or(0, |task| task.len() as u64));
        }
        if self.bytes > bytes_max {
            return Err(Error::TooLarge {
                what: "the task",
                bytes_max,
            });
        }
        Ok(())
    }
}
