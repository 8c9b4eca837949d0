//! A stream that heals itself.
//!
//! What was delivered is put together as it goes. When the connection is cut, the stream is taken up again: after the
//! number of the last event, where the agent has numbers, and otherwise by a snapshot of the task, of which everything
//! that was delivered already is subtracted. Either way no chunk of an artifact is lost, and none comes twice.

mod deliver;
mod heal;
mod kept;
mod poll;
mod read;

use std::collections::VecDeque;
use std::time::Duration;

use a2ad_proto::{SendMessageRequest, SendMessageResponse, StreamResponse, Task, TaskStatus};
use futures_util::Stream;
use tokio::time::Instant;

use crate::assemble::Assembly;
use crate::client::Client;
use crate::error::Error;
use crate::transport::{CallOptions, Frames};
use heal::heals;
use kept::Kept;

/// One event of a stream.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Event {
    /// What it says.
    pub response: StreamResponse,
    /// Its number, from agents that number them: where [`Client::subscribe_after`] can go on. Events that make up for
    /// a gap have none, but for the last of them.
    pub number: Option<u64>,
}

impl Event {
    pub(crate) fn new(response: StreamResponse, number: Option<u64>) -> Self {
        Self { response, number }
    }
}

/// The events of a task, until it has ended or, if they are those of a message, asks for input.
///
/// Every stream ends with the end of the task or with an error: a cut is never the end.
#[derive(Debug)]
pub struct EventStream {
    client: Client,
    purpose: Purpose,
    source: Source,
    assembly: Assembly,
    /// Until when nothing is asked for.
    pause: Option<Kept<()>>,
    /// The task, which was asked for.
    looking: Option<Kept<Result<Task, Error>>>,
    /// A frame that is taken in with the help of the task.
    taking: Option<Event>,
    /// Events to deliver before more are read: those of one snapshot at most.
    ready: VecDeque<Event>,
    task_id: Option<String>,
    /// The number of the last event, if it had one.
    cursor: Option<u64>,
    /// The message may have arrived.
    sent: bool,
    /// How many streams were opened for the next event, the one before which it was expected included.
    attempts: u32,
    last_error: Option<Error>,
    opened: Instant,
    /// None: never.
    deadline: Option<Instant>,
    /// The status with which a task that is continued began: a question in it is the old one.
    opening: Option<TaskStatus>,
    bytes: u64,
    repeated: u32,
    orphans: u32,
    /// The task was asked for since a stream was last open, because streams of this agent need not begin with it.
    looked: bool,
}

#[derive(Debug)]
enum Purpose {
    /// A message was sent: a question ends the stream.
    Send(Box<SendMessageRequest>, CallOptions),
    /// A task is followed to its end, or if it `asks` until it does.
    Follow { asks: bool },
    /// The same from the middle: what was before is not known, and cannot be compared.
    Resume,
}

#[derive(Debug)]
enum Source {
    /// To be opened.
    Closed,
    /// The message, or the wish to follow the task, is on its way.
    Opening(Opening, Kept<Result<Opened, Error>>),
    Open(Box<Open>),
    /// The task is asked for now and then; it was the same so many times.
    Polling(u32),
    Over,
}

/// What is on its way.
#[derive(Clone, Copy, Debug)]
enum Opening {
    /// A message; if it `streams`, to follow what it comes to.
    Message { streams: bool },
    /// A task to follow.
    Task { replay: bool },
}

/// What came of it.
enum Opened {
    Stream(Frames),
    Answer(SendMessageResponse),
}

#[derive(Debug)]
struct Open {
    frames: Frames,
    /// No frame has come yet.
    fresh: bool,
    /// It follows a stream that was cut.
    resumed: bool,
    /// What its frames mean.
    meaning: Meaning,
    /// What follows a snapshot may be in it already.
    overlaps: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// What they say.
    Events,
    /// There may be a gap before them, which the first, a snapshot, fills.
    AfterGap,
    /// A snapshot came, and what they say may be in it: many servers begin to listen before they look. `doubted` if
    /// one came that may be.
    AfterSnapshot { doubted: bool },
    /// There is a gap, and nothing says whether it comes before or after them: they show that something happened, and
    /// the task shows what.
    Hints,
}

impl EventStream {
    pub(crate) fn sending(
        client: Client,
        request: SendMessageRequest,
        options: CallOptions,
    ) -> Self {
        Self::new(client, Purpose::Send(Box::new(request), options))
    }

    pub(crate) fn following(client: Client, task_id: &str, after: Option<u64>) -> Self {
        let purpose = match after {
            Some(_) => Purpose::Resume,
            None => Purpose::Follow { asks: false },
        };
        Self {
            task_id: Some(task_id.to_owned()),
            cursor: after,
            ..Self::new(client, purpose)
        }
    }

    /// Until the task has ended or asks for something.
    pub(crate) fn waiting(client: Client, task_id: &str) -> Self {
        Self {
            task_id: Some(task_id.to_owned()),
            ..Self::new(client, Purpose::Follow { asks: true })
        }
    }

    fn new(client: Client, purpose: Purpose) -> Self {
        let now = Instant::now();
        Self {
            deadline: now.checked_add(client.settings().timeouts.follow),
            client,
            purpose,
            source: Source::Closed,
            assembly: Assembly::default(),
            pause: None,
            looking: None,
            taking: None,
            ready: VecDeque::new(),
            task_id: None,
            cursor: None,
            sent: false,
            attempts: 0,
            last_error: None,
            opened: now,
            opening: None,
            bytes: 0,
            repeated: 0,
            orphans: 0,
            looked: false,
        }
    }

    /// The next event; `None` after the last one, or after an error.
    ///
    /// Cancel safe.
    pub async fn next(&mut self) -> Option<Result<Event, Error>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            if matches!(self.source, Source::Over) {
                return None;
            }
            let client = self.client.clone();
            let (deadline, limit) = (self.deadline, client.settings().timeouts.follow);
            let step = client.unless_canceled(async {
                tokio::select! {
                    step = self.step() => step,
                    () = until(deadline) => Err(Error::Timeout {
                        what: "following the task",
                        limit,
                        sent: true,
                    }),
                }
            });
            if let Err(error) = step.await {
                self.source = Source::Over;
                self.ready.clear();
                return Some(Err(error));
            }
        }
    }

    /// What the events delivered so far come to.
    #[must_use]
    pub fn assembly(&self) -> &Assembly {
        &self.assembly
    }

    /// Reads all events and gives what they come to.
    ///
    /// # Errors
    /// When the stream ends with one.
    pub async fn finish(mut self) -> Result<Assembly, Error> {
        while let Some(event) = self.next().await {
            event?;
        }
        Ok(self.assembly)
    }

    /// The same as a [`Stream`].
    pub fn into_stream(self) -> impl Stream<Item = Result<Event, Error>> + Send {
        futures_util::stream::unfold(self, |mut events| async {
            let event = events.next().await?;
            Some((event, events))
        })
    }

    /// Waits so long, from the first time on that it is asked to.
    async fn pause(&mut self, time: Duration) {
        let pause = self
            .pause
            .get_or_insert_with(|| Kept::new(tokio::time::sleep(time)));
        pause.done().await;
        self.pause = None;
    }

    async fn step(&mut self) -> Result<(), Error> {
        match &mut self.source {
            Source::Over => Ok(()),
            // What happens seldom is not part of every future.
            Source::Closed => match self.looks_first() {
                true => Box::pin(self.look_before()).await,
                false => Box::pin(self.open()).await,
            },
            Source::Opening(opening, outcome) => {
                let opening = *opening;
                let outcome = outcome.done().await;
                Box::pin(self.opened(opening, outcome)).await
            }
            Source::Polling(unchanged) => {
                let unchanged = *unchanged;
                Box::pin(self.poll(unchanged)).await
            }
            Source::Open(_) if self.taking.is_some() => Box::pin(self.take_again()).await,
            Source::Open(open) => {
                let next = open.frames.next().await;
                let bytes = open.frames.bytes;
                let fresh = std::mem::take(&mut open.fresh);
                let resumed = open.resumed;
                match next {
                    Ok(Some(event)) => self.take(event, bytes).await,
                    Ok(None) => {
                        let over = self.is_settled(true);
                        self.cut(over, None);
                        Ok(())
                    }
                    Err(error) if heals(&error) => {
                        let over = self.is_settled(false);
                        self.cut(over, Some(error));
                        Ok(())
                    }
                    // JSON-RPC may say in the first frame what the others say at once.
                    Err(error) if fresh => {
                        self.source = Source::Closed;
                        Box::pin(self.refused(error, resumed)).await
                    }
                    Err(error) => Err(error),
                }
            }
        }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
