//! The operations.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use a2ad_proto::{
    AgentCard, CancelTaskRequest, DeleteTaskPushNotificationConfigRequest, ErrorKind,
    GetExtendedAgentCardRequest, GetTaskPushNotificationConfigRequest, GetTaskRequest,
    ListTaskPushNotificationConfigsRequest, ListTaskPushNotificationConfigsResponse,
    ListTasksRequest, ListTasksResponse, Message, Part, Role, SendMessageRequest,
    SendMessageResponse, SubscribeToTaskRequest, Task, TaskPushNotificationConfig, TaskState,
};

use crate::builder::Builder;
use crate::calling::{Outcome, Repeat};
use crate::error::Error;
use crate::interface::Interface;
use crate::pages::Tasks;
use crate::settings::random;
use crate::setup::{Setup, State};
use crate::stream::EventStream;
use crate::transport::{CallOptions, Frames, Operation};

/// A client of one agent. Cheap to clone; clones share their connections.
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) setup: Setup,
    pub(crate) state: Mutex<Arc<State>>,
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
        Tasks::new(self.clone(), request)
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
        let card = reply.await?.read_card();
        card.map_err(|error| self.conceal(error))
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
