//! Opening a stream: the first, and those in place of ones that were cut.

use std::time::Duration;

use a2ad_proto::{ErrorKind, SendMessageResponse, StreamResponse, SubscribeToTaskRequest};
use tokio::time::Instant;

use super::{EventStream, Kept, Meaning, Open, Opened, Opening, Purpose, Source};
use crate::assemble::Assembly;
use crate::error::Error;
use crate::transport::{CallOptions, Operation};

/// A stream that lived this long was no failure, even if it brought nothing: proxies cut quiet ones.
const LIVED: Duration = Duration::from_secs(10);

impl EventStream {
    pub(super) fn cut(&mut self, over: bool, error: Option<Error>) {
        if over {
            self.source = Source::Over;
            return;
        }
        if self.opened.elapsed() >= LIVED {
            self.attempts = 1;
        }
        if let Some(error) = error {
            self.last_error = Some(error);
        }
        self.source = Source::Closed;
    }

    /// Opens a stream: the first, or one in place of one that was cut.
    pub(super) async fn open(&mut self) -> Result<(), Error> {
        let retries = &self.client.settings().retries;
        if self.attempts > retries.resumes || self.is_lost() {
            return Err(self.give_up());
        }
        if self.attempts > 0 {
            let delay = retries.delay(self.attempts, self.last_error.as_ref());
            // Nobody is called as fast as they hang up, whatever they say before.
            let delay = match self.assembly == Assembly::default() {
                true => delay,
                false => delay.max(retries.first.saturating_sub(self.opened.elapsed())),
            };
            self.pause(delay).await;
            tracing::debug!(attempt = self.attempts, "resuming a stream");
        }
        self.attempts += 1;
        self.opened = Instant::now();
        match self.task_id.clone() {
            None => self.begin(self.client.state().streaming),
            Some(id) => self.attach(&id).await,
        }
    }

    /// Whether the message may have arrived, nothing came back, and it must not be sent again.
    fn is_lost(&self) -> bool {
        match &self.purpose {
            Purpose::Send(request, options) if self.task_id.is_none() => {
                self.sent && !self.client.is_repeatable(request, options)
            }
            _ => false,
        }
    }

    /// Why there is nothing more to try.
    fn give_up(&mut self) -> Error {
        let nothing = || Error::not_a2a("the stream ended before its first event", "");
        let last = self.last_error.take();
        if self.assembly == Assembly::default() {
            return last.unwrap_or_else(nothing);
        }
        let nothing = || Error::not_a2a("streams end before the task, and bring nothing new", "");
        Error::Cut {
            attempts: self.attempts.saturating_sub(1),
            last: Box::new(last.unwrap_or_else(nothing)),
        }
    }

    /// Sends the message, for the first time or again; if it `streams`, to follow what it comes to.
    fn begin(&mut self, streams: bool) -> Result<(), Error> {
        let Purpose::Send(request, options) = &self.purpose else {
            return Err(Error::invalid("a stream of nothing"));
        };
        let (client, options) = (self.client.clone(), options.clone());
        let mut request = request.clone();
        let outcome = async move {
            if streams {
                let operation = Operation::SendStreamingMessage;
                let frames = client.open(operation, &*request, None, &options).await?;
                return Ok(Opened::Stream(frames));
            }
            let configuration = request.configuration.get_or_insert_default();
            configuration.return_immediately = true;
            let answer = client.send_with(*request, &options).await?;
            Ok(Opened::Answer(answer))
        };
        self.source = Source::Opening(Opening::Message { streams }, Kept::new(outcome));
        Ok(())
    }

    /// Follows a task that is known, from where we are.
    async fn attach(&mut self, id: &str) -> Result<(), Error> {
        let state = self.client.state();
        if !state.streaming {
            self.source = Source::Polling(0);
            return self.catch_up().await;
        }
        if !state.replay {
            if matches!(self.purpose, Purpose::Resume) {
                return Err(Error::invalid("a number, since this agent has none; it"));
            }
            self.cursor = None;
        }
        let request = SubscribeToTaskRequest {
            id: id.to_owned(),
            ..SubscribeToTaskRequest::default()
        };
        let (client, cursor) = (self.client.clone(), self.cursor);
        let outcome = async move {
            let (operation, options) = (Operation::SubscribeToTask, CallOptions::default());
            let frames = client.open(operation, &request, cursor, &options).await?;
            Ok(Opened::Stream(frames))
        };
        let replay = state.replay;
        self.source = Source::Opening(Opening::Task { replay }, Kept::new(outcome));
        Ok(())
    }

    /// What to do when it is known what became of the message, or of the wish to follow the task.
    pub(super) async fn opened(
        &mut self,
        opening: Opening,
        opened: Result<Opened, Error>,
    ) -> Result<(), Error> {
        self.source = Source::Closed;
        if let Opening::Message { .. } = opening {
            self.sent |= !opened.as_ref().is_err_and(Error::is_unheard);
        }
        // Before the first event there is nothing to compare with.
        let resumed =
            matches!(opening, Opening::Task { .. }) && self.assembly != Assembly::default();
        match opened {
            Ok(Opened::Stream(frames)) => {
                self.opened = Instant::now();
                self.looked = false;
                let gap = resumed && self.cursor.is_none();
                self.source = Source::Open(Box::new(Open {
                    frames,
                    fresh: true,
                    resumed,
                    meaning: match gap {
                        true => Meaning::AfterGap,
                        false => Meaning::Events,
                    },
                    // Where events are numbered, one that comes twice shows.
                    overlaps: matches!(opening, Opening::Task { replay: false }),
                }));
                Ok(())
            }
            Ok(Opened::Answer(SendMessageResponse::Message(message))) => {
                self.deliver(StreamResponse::Message(message), None);
                Ok(())
            }
            Ok(Opened::Answer(SendMessageResponse::Task(task))) => {
                self.source = Source::Polling(0);
                self.absorb(task, None)
            }
            // It was sent as often as it may be.
            Err(error) if matches!(opening, Opening::Message { streams: false }) => Err(error),
            Err(error) => self.refused(error, resumed).await,
        }
    }

    /// What to do when no stream comes.
    pub(super) async fn refused(&mut self, error: Error, resumed: bool) -> Result<(), Error> {
        if heals(&error) {
            self.last_error = Some(error);
            return Ok(());
        }
        let Error::Refused(refusal) = &error else {
            return Err(error);
        };
        let not_offered = matches!(
            refusal.kind,
            Some(ErrorKind::UnsupportedOperation | ErrorKind::MethodNotFound)
        );
        match &self.purpose {
            Purpose::Resume => Err(error),
            // It may not stream whatever its card says. If it refuses the message for another reason, it will say so
            // again.
            Purpose::Send(..) if self.task_id.is_none() && not_offered => self.begin(false),
            // Whoever waits for the end knows that the task was there a moment ago.
            Purpose::Follow { asks: true } if !resumed => self.look_instead(error).await,
            _ if !resumed => Err(error),
            // The number means nothing to this server: it may have another history now.
            _ if self.cursor.is_some() && refusal.kind == Some(ErrorKind::InvalidParams) => {
                self.cursor = None;
                self.last_error = Some(error);
                Ok(())
            }
            _ => self.look_instead(error).await,
        }
    }
}

/// Whether an error is one after which a stream is worth resuming.
pub(super) fn heals(error: &Error) -> bool {
    error.is_transient()
}
