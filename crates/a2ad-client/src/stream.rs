//! A stream that heals itself.
//!
//! What was delivered is put together as it goes. When the connection is cut, the stream is taken up again: after the
//! number of the last event, where the agent has numbers, and otherwise by a snapshot of the task, of which everything
//! that was delivered already is subtracted. Either way no chunk of an artifact is lost, and none comes twice.

use std::collections::VecDeque;
use std::time::Duration;

use a2ad_proto::{
    ErrorKind, GetTaskRequest, SendMessageRequest, SendMessageResponse, StreamResponse,
    SubscribeToTaskRequest, Task, TaskState, TaskStatus,
};
use futures_util::Stream;
use tokio::time::Instant;

use crate::assemble::{Applied, Assembly};
use crate::client::Client;
use crate::error::Error;
use crate::transport::{CallOptions, Frames, Operation};

/// How many events in a row may be repetitions.
const REPEATED_MAX: u32 = 10_000;
/// How many chunks may come for artifacts that were never begun before they are taken for beginnings.
const ORPHANS_MAX: u32 = 3;
/// A stream that lived this long was no failure, even if it brought nothing: proxies cut quiet ones.
const LIVED: Duration = Duration::from_secs(10);

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
    deadline: Instant,
    /// The status with which a task that is continued began: a question in it is the old one.
    opening: Option<TaskStatus>,
    bytes: u64,
    repeated: u32,
    orphans: u32,
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
    Open(Box<Open>),
    /// The task is asked for now and then; it was the same so many times.
    Polling(u32),
    Over,
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
            deadline: now + client.settings().timeouts.follow,
            client,
            purpose,
            source: Source::Closed,
            assembly: Assembly::default(),
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
                    () = tokio::time::sleep_until(deadline) => Err(Error::Timeout {
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

    async fn step(&mut self) -> Result<(), Error> {
        match &mut self.source {
            Source::Over => Ok(()),
            // What happens seldom is not part of every future.
            Source::Closed => Box::pin(self.open()).await,
            Source::Polling(unchanged) => {
                let unchanged = *unchanged;
                Box::pin(self.poll(unchanged)).await
            }
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

    fn cut(&mut self, over: bool, error: Option<Error>) {
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
    async fn open(&mut self) -> Result<(), Error> {
        let retries = &self.client.settings().retries;
        if self.attempts > retries.resumes {
            return Err(self.give_up());
        }
        if self.attempts > 0 {
            let delay = retries.delay(self.attempts, self.last_error.as_ref());
            tracing::debug!(attempt = self.attempts, ?delay, "resuming a stream");
            tokio::time::sleep(delay).await;
        }
        self.attempts += 1;
        self.opened = Instant::now();
        match self.task_id.clone() {
            None => self.begin().await,
            Some(id) => self.attach(&id).await,
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

    /// Sends the message, for the first time or again.
    async fn begin(&mut self) -> Result<(), Error> {
        let Purpose::Send(request, options) = &self.purpose else {
            return Err(Error::invalid("a stream of nothing"));
        };
        if self.sent && !self.client.is_repeatable(request, options) {
            return Err(self.give_up());
        }
        if !self.client.state().streaming {
            return self.begin_polling().await;
        }
        let operation = Operation::SendStreamingMessage;
        let opened = self.client.open(operation, &**request, None, options).await;
        match opened {
            Ok(frames) => {
                self.sent = true;
                self.opened = Instant::now();
                self.source = Source::Open(Box::new(Open {
                    frames,
                    fresh: true,
                    resumed: false,
                    meaning: Meaning::Events,
                    overlaps: false,
                }));
                Ok(())
            }
            Err(error) => {
                self.sent |= !error.is_unsent() && !matches!(error, Error::Refused(_));
                self.refused(error, false).await
            }
        }
    }

    /// Sends the message to an agent that does not stream.
    async fn begin_polling(&mut self) -> Result<(), Error> {
        let Purpose::Send(request, options) = &self.purpose else {
            return Err(Error::invalid("a stream of nothing"));
        };
        let mut request = (**request).clone();
        let configuration = request.configuration.get_or_insert_default();
        configuration.return_immediately = true;
        let options = options.clone();
        match self.client.send_with(request, &options).await? {
            SendMessageResponse::Message(message) => {
                self.deliver(StreamResponse::Message(message), None);
                self.source = Source::Over;
            }
            SendMessageResponse::Task(task) => {
                self.source = Source::Polling(0);
                self.absorb(task, None)?;
            }
        }
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
        let (operation, options) = (Operation::SubscribeToTask, CallOptions::default());
        let opened = self
            .client
            .open(operation, &request, self.cursor, &options)
            .await;
        // Before the first event there is nothing to compare with.
        let resumed = self.assembly != Assembly::default();
        match opened {
            Ok(frames) => {
                self.opened = Instant::now();
                let gap = resumed && self.cursor.is_none();
                self.source = Source::Open(Box::new(Open {
                    frames,
                    fresh: true,
                    resumed,
                    meaning: if gap {
                        Meaning::AfterGap
                    } else {
                        Meaning::Events
                    },
                    // Where events are numbered, one that comes twice shows.
                    overlaps: !state.replay,
                }));
                Ok(())
            }
            Err(error) => self.refused(error, resumed).await,
        }
    }

    /// What to do when no stream comes.
    async fn refused(&mut self, error: Error, resumed: bool) -> Result<(), Error> {
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
            Purpose::Send(..) if self.task_id.is_none() && not_offered => {
                self.begin_polling().await
            }
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

    /// Looks at the task itself if `error` may mean that it has ended: then it cannot be followed, and servers say so
    /// in many ways (AMB-05, AMB-06).
    async fn look_instead(&mut self, error: Error) -> Result<(), Error> {
        match error.kind() {
            Some(
                ErrorKind::UnsupportedOperation
                | ErrorKind::MethodNotFound
                | ErrorKind::InvalidParams
                | ErrorKind::TaskNotFound,
            ) => {
                self.source = Source::Polling(0);
                self.catch_up().await
            }
            _ => Err(error),
        }
    }

    async fn poll(&mut self, unchanged: u32) -> Result<(), Error> {
        let delay = self.client.settings().retries.poll(unchanged);
        tokio::time::sleep(delay).await;
        self.source = Source::Polling(unchanged.saturating_add(1));
        self.catch_up().await
    }

    /// Asks for the task and delivers what is new. If it cannot be had now, what follows is another attempt.
    async fn catch_up(&mut self) -> Result<(), Error> {
        let Some(id) = self.task_id.clone() else {
            return Err(Error::invalid("a task without an id"));
        };
        let request = GetTaskRequest {
            id,
            ..GetTaskRequest::default()
        };
        match self.client.get_with(request).await {
            Ok(task) => self.absorb(task, None),
            Err(error) if heals(&error) => {
                self.cut(false, Some(error));
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Takes in a frame.
    async fn take(&mut self, event: Event, bytes: u64) -> Result<(), Error> {
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
                Box::pin(self.catch_up()).await?;
                // The end was announced before it could be read: look again, and wait for it if need be.
                if update.status.state.is_terminal() && !matches!(self.source, Source::Over) {
                    self.cut(false, None);
                }
                Ok(())
            }
            (StreamResponse::ArtifactUpdate(_), Meaning::Hints) => Box::pin(self.catch_up()).await,
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
            self.catch_up().await?;
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
    fn check_task(&mut self, response: &StreamResponse) -> Result<(), Error> {
        let id = match response {
            StreamResponse::Task(task) => &task.id,
            StreamResponse::StatusUpdate(update) => &update.task_id,
            StreamResponse::ArtifactUpdate(update) => &update.task_id,
            StreamResponse::Message(_) => return Ok(()),
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
            return Err(Error::TooLarge {
                what: "the task",
                bytes_max,
            });
        }
        Ok(())
    }

    /// Delivers the difference between what was delivered and the task as it is.
    fn absorb(&mut self, task: Task, number: Option<u64>) -> Result<(), Error> {
        let snapshot = StreamResponse::Task(task);
        self.check_task(&snapshot)?;
        let StreamResponse::Task(task) = snapshot else {
            return Ok(());
        };
        let missed = self.assembly.difference(&task);
        let last = missed.len().saturating_sub(1);
        let news = !missed.is_empty();
        for (index, response) in missed.into_iter().enumerate() {
            self.deliver(response, number.filter(|_| index == last));
        }
        self.cursor = number.or(self.cursor);
        if let Source::Polling(unchanged) = &mut self.source
            && news
        {
            *unchanged = 0;
        }
        if self.is_settled(false) {
            self.source = Source::Over;
        }
        Ok(())
    }

    fn deliver(&mut self, response: StreamResponse, number: Option<u64>) {
        self.attempts = 1;
        self.last_error = None;
        if let (StreamResponse::Task(task), None) = (&response, self.assembly.task())
            && self.continues()
        {
            self.opening = Some(task.status.clone());
        }
        let fits = self.assembly.apply(&response);
        debug_assert!(fits == Applied::Fits || self.orphans > 0 || self.is_partial());
        let asked = match &response {
            StreamResponse::StatusUpdate(update) => update.status.state == TaskState::InputRequired,
            // The question with which a continued task opens is the old one.
            StreamResponse::Task(task) => {
                task.status.state == TaskState::InputRequired
                    && self.opening.as_ref() != Some(&task.status)
            }
            StreamResponse::Message(_) | StreamResponse::ArtifactUpdate(_) => false,
        };
        let over = match &response {
            StreamResponse::Message(_) => true,
            _ => self.assembly.state().is_some_and(TaskState::is_terminal),
        };
        if over || (asked && self.ends_with_question()) {
            self.source = Source::Over;
        }
        self.ready.push_back(Event::new(response, number));
    }

    fn is_partial(&self) -> bool {
        matches!(self.purpose, Purpose::Resume)
    }

    /// Whether the message went to a task that was there before.
    fn continues(&self) -> bool {
        match &self.purpose {
            Purpose::Send(request, _) => {
                let message = request.message.as_ref();
                message.is_some_and(|message| !message.task_id.is_empty())
            }
            Purpose::Follow { .. } | Purpose::Resume => false,
        }
    }

    fn ends_with_question(&self) -> bool {
        match self.purpose {
            Purpose::Send(..) => true,
            Purpose::Follow { asks } => asks,
            Purpose::Resume => false,
        }
    }

    /// Whether nothing more is to come, if the stream is over: in good order, or not.
    fn is_settled(&self, in_order: bool) -> bool {
        let Some(task) = self.assembly.task() else {
            return self.assembly.reply().is_some();
        };
        let state = task.status.state;
        if state.is_terminal() {
            return true;
        }
        if !self.ends_with_question() {
            return false;
        }
        // A server that numbers its events closes at a question and nowhere else, and stops in good order, too.
        let trusted_end = in_order && self.cursor.is_none();
        match state {
            TaskState::InputRequired => {
                let is_new = self.opening.as_ref() != Some(&task.status);
                is_new || trusted_end
            }
            TaskState::AuthRequired => trusted_end,
            _ => false,
        }
    }
}

/// Whether an error is one after which a stream is worth resuming.
fn heals(error: &Error) -> bool {
    error.is_transient()
}
