//! The served agent, as a user of our client sees it over one binding.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::time::Duration;

use a2ad_client::{Binding, Client, Error, Event, EventStream, text};
use a2ad_proto::{
    AgentCard, ErrorKind, ListTasksRequest, Part, SendMessageRequest, SendMessageResponse,
    StreamResponse, Task, TaskState,
};

use crate::proxy::Proxy;

#[derive(Clone)]
pub(crate) struct Agent {
    /// Which SDK serves it.
    pub(crate) server: String,
    pub(crate) card_url: String,
    pub(crate) card: AgentCard,
    pub(crate) binding: Binding,
    pub(crate) client: Client,
}

impl Agent {
    /// Whether it is of protocol 0.3.
    pub(crate) fn is_old(&self) -> bool {
        self.server.ends_with("03")
    }

    pub(crate) async fn over(server: &str, card_url: &str, binding: Binding) -> Self {
        let client = Client::builder(card_url).binding(binding).connect().await;
        let client = client.unwrap();
        Self {
            server: server.to_owned(),
            card_url: card_url.to_owned(),
            card: (*client.card()).clone(),
            binding,
            client,
        }
    }

    /// A client that has to pass a proxy.
    pub(crate) async fn behind(&self, bytes_max: usize) -> (Client, Proxy) {
        let url = self.client.interface().url;
        let port = url.port().unwrap();
        let proxy = Proxy::new(SocketAddr::from(([127, 0, 0, 1], port)), bytes_max).await;
        let mut card = self.card.clone();
        for interface in &mut card.supported_interfaces {
            let (old, new) = (format!(":{port}"), format!(":{}", proxy.address.port()));
            interface.url = interface.url.replace(&old, &new);
        }
        let client = Client::builder(&self.card_url)
            .binding(self.binding)
            .retries(|retries| {
                retries.first = Duration::from_millis(10);
                retries.longest = Duration::from_millis(50);
                retries.poll = Duration::from_millis(20);
                retries.resumes = 100;
            })
            .with_card(card)
            .unwrap();
        (client, proxy)
    }

    /// SendMessage, where a task is the answer.
    pub(crate) async fn send(&self, request: SendMessageRequest) -> Result<Task, Error> {
        match self.client.send(request).await? {
            SendMessageResponse::Task(task) => Ok(task),
            SendMessageResponse::Message(message) => panic!("a message came: {message:?}"),
        }
    }

    /// A task that is running, and shows it.
    pub(crate) async fn running(&self, words: &str) -> Task {
        let task = self.send(at_once(words)).await.unwrap();
        self.until(&task.id, |task| task.status.state == TaskState::Working)
            .await
    }

    /// Lets a task go on that does so step by step.
    pub(crate) async fn go_on(&self, task_id: &str, steps: usize) {
        for _ in 0..steps {
            let request = text(&format!("next {task_id}"));
            self.client.send(request).await.unwrap();
        }
    }

    /// The task once it is so.
    pub(crate) async fn until(&self, id: &str, is_so: impl Fn(&Task) -> bool) -> Task {
        // The runner has a deadline.
        loop {
            let task = self.client.get(id).await.unwrap();
            if is_so(&task) {
                return task;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

pub(crate) fn at_once(words: &str) -> SendMessageRequest {
    let mut request = text(words);
    let configuration = request.configuration.get_or_insert_default();
    configuration.return_immediately = true;
    request
}

pub(crate) fn in_context(mut request: SendMessageRequest, id: &str) -> SendMessageRequest {
    request.message.as_mut().unwrap().context_id = id.to_owned();
    request
}

pub(crate) fn for_task(mut request: SendMessageRequest, id: &str) -> SendMessageRequest {
    request.message.as_mut().unwrap().task_id = id.to_owned();
    request
}

pub(crate) fn in_task(request: SendMessageRequest, task: &Task) -> SendMessageRequest {
    in_context(for_task(request, &task.id), &task.context_id)
}

/// A request for the tasks of a context.
pub(crate) fn listing(context: &str) -> ListTasksRequest {
    ListTasksRequest {
        context_id: context.to_owned(),
        ..ListTasksRequest::default()
    }
}

pub(crate) fn words(parts: &[Part]) -> String {
    let words: Vec<_> = parts.iter().filter_map(Part::as_text).collect();
    words.join("|")
}

/// An event as a line that is easy to compare.
pub(crate) fn shown(event: &Event) -> String {
    match &event.response {
        StreamResponse::Task(it) => format!("task {:?}", it.status.state),
        StreamResponse::Message(it) => format!("message: {}", words(&it.parts)),
        StreamResponse::StatusUpdate(it) => match &it.status.message {
            Some(said) => format!("status {:?}: {}", it.status.state, words(&said.parts)),
            None => format!("status {:?}", it.status.state),
        },
        StreamResponse::ArtifactUpdate(it) => {
            let append = if it.append { "append" } else { "new" };
            let last = if it.last_chunk { " last" } else { "" };
            let (id, words) = (&it.artifact.artifact_id, words(&it.artifact.parts));
            format!("artifact {id} {append}{last}: {words}")
        }
    }
}

/// The next event of a stream that is not to end yet.
pub(crate) async fn next(events: &mut EventStream) -> Event {
    let event = events.next().await.expect("the stream ended too early");
    event.unwrap()
}

/// All events up to one that is shown so.
pub(crate) async fn up_to(events: &mut EventStream, line: &str) -> Vec<Event> {
    let mut seen = Vec::new();
    loop {
        let event = next(events).await;
        let found = shown(&event) == line;
        seen.push(event);
        if found {
            return seen;
        }
    }
}

/// What is left of a stream, up to its end.
pub(crate) async fn rest(events: &mut EventStream) -> Vec<Event> {
    let mut seen = Vec::new();
    while let Some(event) = events.next().await {
        seen.push(event.unwrap());
    }
    seen
}

pub(crate) fn lines(events: &[Event]) -> Vec<String> {
    events.iter().map(shown).collect()
}

/// A call that failed in one of these ways.
pub(crate) fn refused<T: Debug>(kinds: &[ErrorKind], answer: Result<T, Error>) {
    let error = answer.expect_err("a refusal");
    let kind = error.kind();
    assert!(
        kind.is_some_and(|kind| kinds.contains(&kind)),
        "{kind:?}, not one of {kinds:?}: {error:?}"
    );
}

/// A stream that failed so before its first event, and then is over.
pub(crate) async fn refused_stream(kinds: &[ErrorKind], mut events: EventStream) {
    refused(
        kinds,
        events.next().await.expect("an error, not an empty stream"),
    );
    let more = events.next().await;
    assert!(more.is_none(), "{more:?}");
}
