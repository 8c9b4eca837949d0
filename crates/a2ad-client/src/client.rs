//! The operations.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use a2ad_proto::{
    AgentCard, CancelTaskRequest, DeleteTaskPushNotificationConfigRequest, ErrorKind,
    GetExtendedAgentCardRequest, GetTaskPushNotificationConfigRequest, GetTaskRequest,
    ListTaskPushNotificationConfigsRequest, ListTaskPushNotificationConfigsResponse,
    ListTasksRequest, ListTasksResponse, Message, Part, Role, SendMessageRequest,
    SendMessageResponse, SubscribeToTaskRequest, Task, TaskPushNotificationConfig, TaskState, pb,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use url::Url;

use crate::REPLAY;
use crate::builder::Builder;
use crate::card::{FoundCard, read_card};
use crate::credentials::Shown;
use crate::dial::{Dialer, Limits};
use crate::error::Error;
use crate::interface::{Binding, Interface};
use crate::settings::random;
use crate::stream::EventStream;
use crate::transport::{Call, CallOptions, Frames, Line, Operation, Reply, Transport, transport};

/// How many pages of a list are asked for.
const PAGES_MAX: u32 = 100_000;

/// A client of one agent. Cheap to clone; clones share their connections.
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    setup: Setup,
    state: Mutex<Arc<State>>,
}

/// Not all of it: addresses may hold keys.
impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.setup.base.host_str();
        f.debug_struct("Inner")
            .field("host", &host)
            .finish_non_exhaustive()
    }
}

/// What the caller said.
pub(crate) struct Setup {
    settings: Builder,
    base: Url,
}

/// What follows from the card.
#[derive(Debug)]
pub(crate) struct State {
    found: FoundCard,
    /// Those that can be used, preferred first; never empty.
    transports: Vec<Arc<dyn Transport>>,
    /// The one that worked last.
    current: AtomicUsize,
    /// Whether the agent numbers its frames and recognises messages that come again.
    pub(crate) replay: bool,
    pub(crate) streaming: bool,
}

/// A request that names a tenant.
pub(crate) trait Asking: Clone + Serialize + pb::Message + Send + Sync {
    fn tenant(&mut self) -> &mut String;
}

macro_rules! asking {
    ($($name:ident)+) => {$(
        impl Asking for $name {
            fn tenant(&mut self) -> &mut String {
                &mut self.tenant
            }
        }
    )+};
}

asking! {
    SendMessageRequest GetTaskRequest ListTasksRequest CancelTaskRequest SubscribeToTaskRequest
    TaskPushNotificationConfig GetTaskPushNotificationConfigRequest ListTaskPushNotificationConfigsRequest
    DeleteTaskPushNotificationConfigRequest GetExtendedAgentCardRequest
}

/// A message of one text, under an id of its own, to begin a task with.
///
/// ```
/// let request = a2ad_client::text("Hello");
/// assert_eq!(request.message.unwrap().parts[0].as_text(), Some("Hello"));
/// ```
#[must_use]
pub fn text(said: &str) -> SendMessageRequest {
    SendMessageRequest {
        message: Some(Message {
            message_id: random::uuid().unwrap_or_default(),
            role: Role::User,
            parts: vec![Part::text(said)],
            ..Message::default()
        }),
        ..SendMessageRequest::default()
    }
}

/// When a call may be made again although the agent may have got it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repeat {
    /// Asking twice is asking once.
    Always,
    /// Never.
    Unsent,
}

/// An answer or a stream of them.
pub(crate) enum Outcome {
    Reply(Reply),
    Frames(Box<Frames>),
}

impl Client {
    /// Finds the agent at this URL: its card at the well-known path below it, or at the URL itself if that is a JSON
    /// file.
    ///
    /// # Errors
    /// As [`Builder::connect`].
    pub async fn connect(url: &str) -> Result<Self, Error> {
        Self::builder(url).connect().await
    }

    /// The same with credentials, timeouts and other wishes.
    #[must_use]
    pub fn builder(url: &str) -> Builder {
        Builder::new(url)
    }

    /// The agent's card.
    #[must_use]
    pub fn card(&self) -> Arc<AgentCard> {
        Arc::clone(&self.state().found.card)
    }

    /// The interface in use.
    #[must_use]
    pub fn interface(&self) -> Interface {
        let state = self.state();
        state.transports[state.current()].interface().clone()
    }

    /// Looks whether the card has changed, unless it is fresh, and goes by it from now on.
    ///
    /// # Errors
    /// As [`Builder::connect`]; then the card stays as it was.
    pub async fn refresh(&self) -> Result<Arc<AgentCard>, Error> {
        let found = self.inner.setup.find_card().await?;
        let state = Arc::new(self.inner.setup.state_of(found)?);
        let held = self.inner.state.lock();
        *held.unwrap_or_else(PoisonError::into_inner) = Arc::clone(&state);
        Ok(Arc::clone(&state.found.card))
    }

    /// Sends a message and waits for what it comes to: a task that has ended or asks for something, or a direct reply.
    ///
    /// A message without an id gets one. If the connection breaks it is sent again, under the same id, where that cannot
    /// make the agent do it twice: the request never left, or the agent recognises messages by their ids.
    ///
    /// # Errors
    /// When the agent refuses, or no answer comes.
    pub async fn send(&self, request: SendMessageRequest) -> Result<SendMessageResponse, Error> {
        self.send_with(request, &CallOptions::default()).await
    }

    /// The same with options.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub async fn send_with(
        &self,
        mut request: SendMessageRequest,
        options: &CallOptions,
    ) -> Result<SendMessageResponse, Error> {
        name(&mut request);
        let repeat = match self.is_repeatable(&request, options) {
            true => Repeat::Always,
            false => Repeat::Unsent,
        };
        let limit = options.timeout.unwrap_or(self.timeouts().send);
        let reply = self.call(Operation::SendMessage, &request, options, limit, repeat);
        self.read(&reply.await?, "the answer to a message")
    }

    /// Sends a message once, exactly as it is: it gets no id, and is not sent again.
    ///
    /// # Errors
    /// When the agent refuses, or no answer comes.
    pub async fn send_once(
        &self,
        request: SendMessageRequest,
        options: &CallOptions,
    ) -> Result<SendMessageResponse, Error> {
        let limits = self.limits(options.timeout.unwrap_or(self.timeouts().send));
        let operation = Operation::SendMessage;
        match self
            .once(operation, &request, None, options, &limits)
            .await?
        {
            Outcome::Reply(reply) => self.read(&reply, "the answer to a message"),
            Outcome::Frames(_) => Err(Error::not_a2a("a stream", "")),
        }
    }

    /// Sends a message and follows what it comes to. Nothing happens before the first event is asked for.
    ///
    /// If the agent does not stream, the message is sent all the same, and the task is asked for now and then.
    #[must_use]
    pub fn stream(&self, request: SendMessageRequest) -> EventStream {
        self.stream_with(request, CallOptions::default())
    }

    /// The same with options.
    #[must_use]
    pub fn stream_with(
        &self,
        mut request: SendMessageRequest,
        options: CallOptions,
    ) -> EventStream {
        name(&mut request);
        EventStream::sending(self.clone(), request, options)
    }

    /// Follows a task from now on until it has ended.
    #[must_use]
    pub fn subscribe(&self, task_id: &str) -> EventStream {
        EventStream::following(self.clone(), task_id, None)
    }

    /// Follows a task from after the event of this number, whether it has ended or not. Only agents with the extension
    /// `urn:a2ad:replay:v1` can do that.
    #[must_use]
    pub fn subscribe_after(&self, task_id: &str, number: u64) -> EventStream {
        EventStream::following(self.clone(), task_id, Some(number))
    }

    /// One stream of a message as the server gives it, from after an event of an earlier one if there was one: nothing
    /// is sent again, and nothing is resumed.
    ///
    /// # Errors
    /// When the agent refuses at once. It may also do so in the first frame.
    pub async fn stream_once(
        &self,
        request: SendMessageRequest,
        after: Option<u64>,
        options: &CallOptions,
    ) -> Result<Frames, Error> {
        let operation = Operation::SendStreamingMessage;
        self.open(operation, &request, after, options).await
    }

    /// One stream of a task as the server gives it.
    ///
    /// # Errors
    /// When the agent refuses at once. It may also do so in the first frame.
    pub async fn subscribe_once(
        &self,
        task_id: &str,
        after: Option<u64>,
        options: &CallOptions,
    ) -> Result<Frames, Error> {
        let request = SubscribeToTaskRequest {
            id: task_id.to_owned(),
            ..SubscribeToTaskRequest::default()
        };
        let operation = Operation::SubscribeToTask;
        self.open(operation, &request, after, options).await
    }

    /// A task as it is now, with its history.
    ///
    /// # Errors
    /// When the agent refuses, or no answer comes.
    pub async fn get(&self, task_id: &str) -> Result<Task, Error> {
        self.get_with(GetTaskRequest {
            id: task_id.to_owned(),
            ..GetTaskRequest::default()
        })
        .await
    }

    /// The same, as the request says.
    ///
    /// # Errors
    /// When the agent refuses, or no answer comes.
    pub async fn get_with(&self, request: GetTaskRequest) -> Result<Task, Error> {
        self.ask(Operation::GetTask, &request, "a task").await
    }

    /// A task once it has ended or asks for something.
    ///
    /// # Errors
    /// When the agent refuses, or the connection cannot be kept.
    pub async fn wait(&self, task_id: &str) -> Result<Task, Error> {
        let task = self.get(task_id).await?;
        if task.status.state.is_terminal() || task.status.state == TaskState::InputRequired {
            return Ok(task);
        }
        let mut events = EventStream::waiting(self.clone(), task_id);
        while let Some(event) = events.next().await {
            event?;
        }
        match events.assembly().task() {
            Some(task) => Ok(task.clone()),
            None => self.get(task_id).await,
        }
    }

    /// A page of the tasks.
    ///
    /// # Errors
    /// When the agent refuses, or no answer comes.
    pub async fn list(&self, request: ListTasksRequest) -> Result<ListTasksResponse, Error> {
        self.ask(Operation::ListTasks, &request, "a list of tasks")
            .await
    }

    /// All tasks that the request asks for, page by page.
    #[must_use]
    pub fn list_all(&self, request: ListTasksRequest) -> Tasks {
        Tasks {
            client: self.clone(),
            request: Some(request),
            pages: 0,
            ready: VecDeque::new(),
        }
    }

    /// Asks the agent to stop. The task as it is then may still be working.
    ///
    /// # Errors
    /// When the agent refuses, or no answer comes.
    pub async fn cancel(&self, task_id: &str) -> Result<Task, Error> {
        self.cancel_with(CancelTaskRequest {
            id: task_id.to_owned(),
            ..CancelTaskRequest::default()
        })
        .await
    }

    /// The same, as the request says.
    ///
    /// # Errors
    /// When the agent refuses, or no answer comes.
    pub async fn cancel_with(&self, request: CancelTaskRequest) -> Result<Task, Error> {
        let canceled = self
            .ask_counted(Operation::CancelTask, &request, "a task")
            .await;
        match canceled {
            // The first try may have been heard: then the second comes too late, and all is well.
            (Err(error), true) if error.kind() == Some(ErrorKind::TaskNotCancelable) => {
                let task = self.get(&request.id).await?;
                let is_canceled = task.status.state == TaskState::Canceled;
                if is_canceled { Ok(task) } else { Err(error) }
            }
            (canceled, _) => canceled,
        }
    }

    /// Has the task's events sent to a webhook.
    ///
    /// # Errors
    /// When the agent refuses, or no answer comes.
    pub async fn create_push_config(
        &self,
        config: TaskPushNotificationConfig,
    ) -> Result<TaskPushNotificationConfig, Error> {
        let (options, limit) = (CallOptions::default(), self.timeouts().call);
        // Under an id it is the same one when it comes again (PUSH-03).
        let repeat = if config.id.is_empty() {
            Repeat::Unsent
        } else {
            Repeat::Always
        };
        let reply = self.call(
            Operation::CreatePushConfig,
            &config,
            &options,
            limit,
            repeat,
        );
        self.read(&reply.await?, "a push configuration")
    }

    /// One webhook of a task.
    ///
    /// # Errors
    /// When the agent refuses, or no answer comes.
    pub async fn get_push_config(
        &self,
        task_id: &str,
        id: &str,
    ) -> Result<TaskPushNotificationConfig, Error> {
        let request = GetTaskPushNotificationConfigRequest {
            task_id: task_id.to_owned(),
            id: id.to_owned(),
            ..GetTaskPushNotificationConfigRequest::default()
        };
        let operation = Operation::GetPushConfig;
        self.ask(operation, &request, "a push configuration").await
    }

    /// A page of the webhooks of a task.
    ///
    /// # Errors
    /// When the agent refuses, or no answer comes.
    pub async fn list_push_configs(
        &self,
        request: ListTaskPushNotificationConfigsRequest,
    ) -> Result<ListTaskPushNotificationConfigsResponse, Error> {
        let operation = Operation::ListPushConfigs;
        let what = "a list of push configurations";
        self.ask(operation, &request, what).await
    }

    /// Removes a webhook of a task.
    ///
    /// # Errors
    /// When the agent refuses, or no answer comes.
    pub async fn delete_push_config(&self, task_id: &str, id: &str) -> Result<(), Error> {
        let request = DeleteTaskPushNotificationConfigRequest {
            task_id: task_id.to_owned(),
            id: id.to_owned(),
            ..DeleteTaskPushNotificationConfigRequest::default()
        };
        let (options, limit) = (CallOptions::default(), self.timeouts().call);
        let operation = Operation::DeletePushConfig;
        let reply = self.call(operation, &request, &options, limit, Repeat::Always);
        // Whatever it says, there is nothing to say (AMB-27).
        reply.await.map(drop)
    }

    /// The card for those whom the agent knows. It is not kept.
    ///
    /// # Errors
    /// When the agent refuses, or no answer comes.
    pub async fn extended_card(&self) -> Result<AgentCard, Error> {
        let request = GetExtendedAgentCardRequest::default();
        let (options, limit) = (CallOptions::default(), self.timeouts().call);
        let operation = Operation::GetExtendedCard;
        let reply = self.call(operation, &request, &options, limit, Repeat::Always);
        match reply.await? {
            Reply::Json(bytes) => read_card(&bytes).map_err(|error| self.conceal(error)),
            reply @ Reply::Protobuf(_) => self.read(&reply, "the extended card"),
        }
    }

    /// Whether the message does no harm if it comes twice.
    pub(crate) fn is_repeatable(
        &self,
        request: &SendMessageRequest,
        options: &CallOptions,
    ) -> bool {
        let id = request.message.as_ref().map(|message| &*message.message_id);
        let has_key = options.idempotency_key.is_some();
        self.state().replay && (has_key || id.is_some_and(random::is_unique))
    }

    pub(crate) fn state(&self) -> Arc<State> {
        let state = self.inner.state.lock();
        Arc::clone(&state.unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn settings(&self) -> &Builder {
        &self.inner.setup.settings
    }

    /// What an answer says; if it says nothing sensible, without what it may say of our credentials.
    fn read<T: DeserializeOwned + pb::Message>(
        &self,
        reply: &Reply,
        what: &str,
    ) -> Result<T, Error> {
        reply.read(what).map_err(|error| self.conceal(error))
    }

    fn conceal(&self, error: Error) -> Error {
        error.map_text(|text| self.settings().credentials.conceal(text))
    }

    fn timeouts(&self) -> &crate::Timeouts {
        &self.settings().timeouts
    }

    async fn ask<R: Asking, T: DeserializeOwned + pb::Message>(
        &self,
        operation: Operation,
        request: &R,
        what: &str,
    ) -> Result<T, Error> {
        self.ask_counted(operation, request, what).await.0
    }

    /// The same, and whether it was asked more than once.
    async fn ask_counted<R: Asking, T: DeserializeOwned + pb::Message>(
        &self,
        operation: Operation,
        request: &R,
        what: &str,
    ) -> (Result<T, Error>, bool) {
        let (options, limit) = (CallOptions::default(), self.timeouts().call);
        let mut tries = 0;
        let reply = self.counted(
            operation,
            request,
            &options,
            limit,
            Repeat::Always,
            &mut tries,
        );
        let read = reply.await.and_then(|reply| self.read(&reply, what));
        (read, tries > 1)
    }

    async fn call<R: Asking>(
        &self,
        operation: Operation,
        request: &R,
        options: &CallOptions,
        limit: Duration,
        repeat: Repeat,
    ) -> Result<Reply, Error> {
        let mut tries = 0;
        self.counted(operation, request, options, limit, repeat, &mut tries)
            .await
    }

    async fn counted<R: Asking>(
        &self,
        operation: Operation,
        request: &R,
        options: &CallOptions,
        limit: Duration,
        repeat: Repeat,
        tries: &mut u32,
    ) -> Result<Reply, Error> {
        let retries = &self.settings().retries;
        let limits = self.limits(limit);
        loop {
            *tries += 1;
            let error = match self.once(operation, request, None, options, &limits).await {
                Ok(Outcome::Reply(reply)) => return Ok(reply),
                Ok(Outcome::Frames(_)) => return Err(Error::not_a2a("a stream", "")),
                Err(error) => error,
            };
            // Who is turned away at the door was not let in.
            let harmless = error.is_unsent()
                || error.kind() == Some(ErrorKind::ResourceExhausted)
                || repeat == Repeat::Always;
            if !(harmless && error.is_transient()) || *tries > retries.calls {
                return Err(error);
            }
            let delay = retries.delay(*tries, Some(&error));
            tracing::debug!(operation = operation.name(), %error, ?delay, "trying again");
            self.unless_canceled(async {
                tokio::time::sleep(delay).await;
                Ok(())
            })
            .await?;
        }
    }

    fn limits(&self, limit: Duration) -> Limits {
        Limits {
            connect: self.timeouts().connect,
            head: limit,
            silence: limit,
            total: Some(limit),
            answer_bytes_max: self.settings().sizes.answer_bytes,
        }
    }

    pub(crate) async fn open<R: Asking>(
        &self,
        operation: Operation,
        request: &R,
        after: Option<u64>,
        options: &CallOptions,
    ) -> Result<Frames, Error> {
        let silence = self.timeouts().silence;
        let limits = Limits {
            connect: self.timeouts().connect,
            head: options.timeout.unwrap_or(silence),
            ..Limits::stream(silence)
        };
        match self
            .once(operation, request, after, options, &limits)
            .await?
        {
            Outcome::Frames(frames) => Ok(*frames),
            Outcome::Reply(_) => Err(Error::not_a2a("no stream", "")),
        }
    }

    /// Makes a call at the interface that worked last, or, if that cannot have heard it, at the next.
    async fn once<R: Asking>(
        &self,
        operation: Operation,
        request: &R,
        after: Option<u64>,
        options: &CallOptions,
        limits: &Limits,
    ) -> Result<Outcome, Error> {
        let state = self.state();
        let first = state.current();
        let count = state.transports.len();
        let mut last = None;
        for index in (0..count).map(|step| (first + step) % count) {
            let transport = &*state.transports[index];
            let made = self.once_at(transport, operation, request, after, options, limits);
            match made.await {
                Ok(outcome) => {
                    state.current.store(index, Ordering::Relaxed);
                    return Ok(outcome);
                }
                Err(error) => {
                    // A version that is not served was not acted on either (DUAL-10).
                    let elsewhere =
                        error.is_unsent() || error.kind() == Some(ErrorKind::VersionNotSupported);
                    let invalid = matches!(error, Error::Invalid { .. });
                    if !elsewhere || invalid {
                        return Err(error);
                    }
                    let binding = transport.interface().binding;
                    tracing::debug!(%binding, %error, "an interface cannot be used");
                    // The preferred interface's failure says most, unless it merely was not the right one.
                    last.get_or_insert(error);
                }
            }
        }
        Err(last.unwrap_or(Error::Canceled))
    }

    async fn once_at<R: Asking>(
        &self,
        transport: &dyn Transport,
        operation: Operation,
        request: &R,
        after: Option<u64>,
        options: &CallOptions,
        limits: &Limits,
    ) -> Result<Outcome, Error> {
        let interface = transport.interface();
        let mut request = request.clone();
        if request.tenant().is_empty() {
            request.tenant().clone_from(&interface.tenant);
        }
        let tenant = request.tenant().clone();
        if interface.binding == Binding::HttpJson {
            request.tenant().clear();
        }
        let call = Call {
            operation,
            params: &request,
            tenant: &tenant,
            after,
            options,
            limits: limits.clone(),
        };
        let streams = matches!(
            operation,
            Operation::SendStreamingMessage | Operation::SubscribeToTask
        );
        self.unless_canceled(async {
            if streams {
                let frames = transport.open(call).await?;
                Ok(Outcome::Frames(Box::new(frames)))
            } else {
                transport.call(call).await.map(Outcome::Reply)
            }
        })
        .await
    }

    pub(crate) async fn unless_canceled<T>(
        &self,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        tokio::select! {
            biased;
            () = self.settings().cancel.cancelled() => Err(Error::Canceled),
            done = work => done,
        }
    }
}

/// Gives a message an id, so that it can be sent again.
fn name(request: &mut SendMessageRequest) {
    if let Some(message) = &mut request.message
        && message.message_id.is_empty()
    {
        message.message_id = random::uuid().unwrap_or_default();
    }
}

impl State {
    fn current(&self) -> usize {
        self.current.load(Ordering::Relaxed)
    }
}

impl Setup {
    pub(crate) fn new(settings: Builder, base: Url) -> Self {
        Self { settings, base }
    }

    pub(crate) fn into_client(self, found: FoundCard) -> Result<Client, Error> {
        let state = Mutex::new(Arc::new(self.state_of(found)?));
        Ok(Client {
            inner: Arc::new(Inner { setup: self, state }),
        })
    }

    fn dialer(&self, trusted: bool) -> Result<Dialer, Error> {
        let settings = &self.settings;
        let trusted = settings.trusted_dialer.as_ref().filter(|_| trusted);
        let dialer = trusted.or(settings.dialer.as_ref()).cloned();
        dialer.ok_or(Error::invalid("a client without a dialer"))
    }

    pub(crate) async fn find_card(&self) -> Result<FoundCard, Error> {
        let settings = &self.settings;
        let dialer = self.dialer(true)?;
        let call = settings.timeouts.call;
        let limits = Limits {
            connect: settings.timeouts.connect,
            head: call,
            silence: call,
            total: Some(call),
            ..Limits::default()
        };
        let find = settings
            .cards
            .find(&dialer, &self.base, &settings.credentials, &limits);
        tokio::select! {
            biased;
            () = settings.cancel.cancelled() => Err(Error::Canceled),
            found = find => {
                found.map_err(|error| error.map_text(|text| settings.credentials.conceal(text)))
            }
        }
    }

    fn state_of(&self, found: FoundCard) -> Result<State, Error> {
        let settings = &self.settings;
        let card = &found.card;
        let interfaces = settings.choice.interfaces(card, &found.url)?;
        let declared = &card.capabilities.extensions;
        let replay = declared.iter().any(|extension| extension.uri == REPLAY);
        let nothing = Shown {
            headers: http::HeaderMap::new(),
            query: Vec::new(),
        };
        let mut transports = Vec::new();
        for interface in interfaces {
            let shown = if interface.trusted {
                settings.credentials.show(card)?
            } else {
                nothing.clone()
            };
            transports.push(transport(Line {
                dialer: self.dialer(interface.trusted)?,
                interface,
                shown,
                credentials: settings.credentials.clone(),
                extensions: settings.extensions.clone(),
                replay,
                event_bytes_max: settings.sizes.event_bytes,
            }));
        }
        Ok(State {
            streaming: card.capabilities.streaming == Some(true),
            found,
            transports,
            current: AtomicUsize::new(0),
            replay,
        })
    }
}

/// The tasks of a list, page by page.
#[derive(Debug)]
pub struct Tasks {
    client: Client,
    /// None after the last page.
    request: Option<ListTasksRequest>,
    pages: u32,
    ready: VecDeque<Task>,
}

impl Tasks {
    /// The next task; `None` after the last one, or after an error.
    pub async fn next(&mut self) -> Option<Result<Task, Error>> {
        // A page may have no tasks and still not be the last (LIST-09).
        while self.ready.is_empty() {
            let mut request = self.request.take()?;
            let page = match self.client.list(request.clone()).await {
                Ok(page) => page,
                Err(error) => return Some(Err(error)),
            };
            self.ready = page.tasks.into();
            self.pages += 1;
            if page.next_page_token.is_empty() {
                continue;
            }
            if page.next_page_token == request.page_token || self.pages >= PAGES_MAX {
                self.ready.clear();
                return Some(Err(Error::not_a2a("a list without an end", "")));
            }
            request.page_token = page.next_page_token;
            self.request = Some(request);
        }
        self.ready.pop_front().map(Ok)
    }
}
