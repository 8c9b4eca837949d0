//! An agent served by the official Rust SDK, for a client to be tested against.
//!
//! It listens on the loopback interface, prints where its card is, and ends when its input does.
#![allow(clippy::print_stdout, reason = "it says where its card is")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use a2a::{
    A2AError, AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Artifact, Message, Part,
    Role, StreamResponse, TRANSPORT_PROTOCOL_GRPC, TRANSPORT_PROTOCOL_HTTP_JSON,
    TRANSPORT_PROTOCOL_JSONRPC, TaskArtifactUpdateEvent, TaskState, TaskStatus,
    TaskStatusUpdateEvent,
};
use a2a_grpc::GrpcHandler;
use a2a_pb::proto::a2a_service_server::A2aServiceServer;
use a2a_server::agent_card::agent_card_router;
use a2a_server::jsonrpc::jsonrpc_router;
use a2a_server::rest::rest_router;
use a2a_server::{
    AgentExecutor, DefaultRequestHandler, ExecutorContext, InMemoryTaskStore, StaticAgentCard,
    WELL_KNOWN_AGENT_CARD_PATH,
};
use anyhow::Result;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tonic::transport::server::TcpIncoming;

const CHUNKS: [&str; 3] = ["one ", "two ", "three"];

type Events = BoxStream<'static, Result<StreamResponse, A2AError>>;

/// What is known of running tasks.
#[derive(Default)]
struct Tasks {
    /// What is held goes on when its sender is dropped.
    held: HashMap<String, oneshot::Sender<()>>,
    /// Tasks that wait for the word `next` before each step.
    steps: HashMap<String, Arc<Semaphore>>,
}

/// Does what the first word of a message says.
#[derive(Default)]
struct Words {
    tasks: Arc<Mutex<Tasks>>,
}

fn steps(tasks: &Mutex<Tasks>, id: &str) -> Arc<Semaphore> {
    let mut tasks = tasks.lock().unwrap_or_else(PoisonError::into_inner);
    let none = || Arc::new(Semaphore::new(0));
    Arc::clone(tasks.steps.entry(id.to_owned()).or_insert_with(none))
}

impl AgentExecutor for Words {
    fn execute(&self, context: ExecutorContext) -> Events {
        let (sender, receiver) = mpsc::channel(1);
        let run = Run {
            events: sender,
            task_id: context.task_id.clone(),
            context_id: context.context_id.clone(),
            tasks: Arc::clone(&self.tasks),
        };
        let events = stream::unfold(receiver, |mut receiver| async {
            let event = receiver.recv().await?;
            Some((Ok(event), receiver))
        });
        let running = stream::once(run.words(context)).filter_map(|_over| async { None });
        Box::pin(stream::select(events, running))
    }

    fn cancel(&self, context: ExecutorContext) -> Events {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.held.remove(&context.task_id);
        let canceled = StreamResponse::StatusUpdate(TaskStatusUpdateEvent {
            task_id: context.task_id,
            context_id: context.context_id,
            status: status(TaskState::Canceled, None),
            metadata: None,
        });
        Box::pin(stream::iter([Ok(canceled)]))
    }
}

fn status(state: TaskState, message: Option<Message>) -> TaskStatus {
    TaskStatus {
        state,
        message,
        timestamp: None,
    }
}

/// Nobody wants more events.
struct Over;

struct Run {
    events: mpsc::Sender<StreamResponse>,
    task_id: String,
    context_id: String,
    tasks: Arc<Mutex<Tasks>>,
}

impl Run {
    async fn words(self, context: ExecutorContext) -> Result<(), Over> {
        let text = context.message.as_ref().and_then(Message::text);
        let text = text.unwrap_or_default();
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        if word == "message" || word == "next" {
            if word == "next" {
                steps(&self.tasks, rest).add_permits(1);
            }
            let message = Message {
                context_id: Some(self.context_id.clone()),
                ..Message::new(Role::Agent, vec![Part::text("Just this")])
            };
            return self.tell(StreamResponse::Message(message)).await;
        }
        let before = context.stored_task.map(|task| task.status.state);
        self.status(TaskState::Working, None).await?;
        if before == Some(TaskState::InputRequired) {
            let paint = format!("A bucket of {text}");
            self.artifact("paint", None, &paint, None, None).await?;
            return self.status(TaskState::Completed, Some("Done")).await;
        }
        match word {
            "echo" => {
                self.artifact("echo", Some("Echo"), rest, None, None)
                    .await?;
                self.status(TaskState::Completed, None).await
            }
            "chunks" => {
                let steps = (rest == "stepwise").then(|| steps(&self.tasks, &self.task_id));
                let step = async || {
                    if let Some(steps) = &steps
                        && let Ok(step) = steps.acquire().await
                    {
                        step.forget();
                    }
                };
                for (index, chunk) in CHUNKS.into_iter().enumerate() {
                    if index > 0 {
                        step().await;
                    }
                    let (append, last) = (index > 0, index + 1 == CHUNKS.len());
                    self.artifact("numbers", None, chunk, Some(append), Some(last))
                        .await?;
                }
                step().await;
                self.status(TaskState::Completed, None).await
            }
            "ask" => {
                self.status(TaskState::InputRequired, Some("Which colour?"))
                    .await
            }
            "hold" => {
                let (sender, canceled) = oneshot::channel();
                self.tasks
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .held
                    .insert(self.task_id.clone(), sender);
                let _dropped = canceled.await;
                Ok(())
            }
            "fail" => self.status(TaskState::Failed, Some("It broke")).await,
            _ => {
                let said = format!("No such word: {word}");
                self.status(TaskState::Rejected, Some(&said)).await
            }
        }
    }

    async fn tell(&self, event: StreamResponse) -> Result<(), Over> {
        self.events.send(event).await.map_err(|_| Over)
    }

    async fn status(&self, state: TaskState, said: Option<&str>) -> Result<(), Over> {
        let message = said.map(|said| Message {
            task_id: Some(self.task_id.clone()),
            context_id: Some(self.context_id.clone()),
            ..Message::new(Role::Agent, vec![Part::text(said)])
        });
        self.tell(StreamResponse::StatusUpdate(TaskStatusUpdateEvent {
            task_id: self.task_id.clone(),
            context_id: self.context_id.clone(),
            status: status(state, message),
            metadata: None,
        }))
        .await
    }

    async fn artifact(
        &self,
        id: &str,
        name: Option<&str>,
        text: &str,
        append: Option<bool>,
        last_chunk: Option<bool>,
    ) -> Result<(), Over> {
        self.tell(StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
            task_id: self.task_id.clone(),
            context_id: self.context_id.clone(),
            artifact: Artifact {
                artifact_id: id.to_owned(),
                name: name.map(str::to_owned),
                description: None,
                parts: vec![Part::text(text)],
                metadata: None,
                extensions: None,
            },
            append,
            last_chunk,
            metadata: None,
        }))
        .await
    }
}

fn card(http: &str, rpc: &str) -> AgentCard {
    let words = "Does what the first word of a message says.";
    let plain = || vec!["text/plain".to_owned()];
    AgentCard {
        name: "Words".to_owned(),
        description: words.to_owned(),
        version: "1".to_owned(),
        supported_interfaces: vec![
            AgentInterface::new(format!("{http}/rpc"), TRANSPORT_PROTOCOL_JSONRPC),
            AgentInterface::new(format!("{http}/rest"), TRANSPORT_PROTOCOL_HTTP_JSON),
            AgentInterface::new(rpc, TRANSPORT_PROTOCOL_GRPC),
        ],
        capabilities: AgentCapabilities {
            streaming: Some(true),
            push_notifications: Some(false),
            extensions: None,
            extended_agent_card: None,
        },
        default_input_modes: plain(),
        default_output_modes: plain(),
        skills: vec![AgentSkill {
            id: "words".to_owned(),
            name: "Words".to_owned(),
            description: words.to_owned(),
            tags: vec!["test".to_owned()],
            examples: None,
            input_modes: None,
            output_modes: None,
            security_requirements: None,
        }],
        provider: None,
        documentation_url: None,
        icon_url: None,
        security_schemes: None,
        security_requirements: None,
        signatures: None,
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let web = TcpListener::bind("127.0.0.1:0").await?;
    let http = format!("http://{}", web.local_addr()?);
    let rpc = TcpListener::bind("127.0.0.1:0").await?;
    let card = card(&http, &format!("http://{}", rpc.local_addr()?));

    let handler = DefaultRequestHandler::new(Words::default(), InMemoryTaskStore::new())
        .with_capabilities(card.capabilities.clone());
    let handler = Arc::new(handler);
    let routes = axum::Router::new()
        .merge(agent_card_router(Arc::new(StaticAgentCard::new(card))))
        .nest("/rpc", jsonrpc_router(Arc::clone(&handler)))
        .nest("/rest", rest_router(Arc::clone(&handler)));
    let service = A2aServiceServer::new(GrpcHandler::new(handler));
    let rpc = tonic::transport::Server::builder()
        .add_service(service)
        .serve_with_incoming(TcpIncoming::from(rpc));
    println!("{http}{WELL_KNOWN_AGENT_CARD_PATH}");

    let mut nothing = Vec::new();
    let mut input = tokio::io::stdin();
    tokio::select! {
        ended = axum::serve(web, routes).into_future() => ended?,
        ended = rpc => ended?,
        ended = input.read_to_end(&mut nothing) => drop(ended?),
    }
    Ok(())
}
