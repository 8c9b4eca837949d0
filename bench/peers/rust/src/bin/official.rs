//! The agent served by the official Rust SDK (a2a-server-lf), its tasks in memory.

use std::sync::Arc;

use a2a::{
    A2AError, AgentCapabilities, Artifact, Message, Part, StreamResponse, Task,
    TaskArtifactUpdateEvent, TaskState, TaskStatus, TaskStatusUpdateEvent,
};
use a2a_server::jsonrpc::jsonrpc_router;
use a2a_server::{AgentExecutor, DefaultRequestHandler, ExecutorContext, InMemoryTaskStore};
use a2ad_bench_peers::{PIECES, Wish, listen, piece_text, say_ready};
use axum::serve::ListenerExt as _;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};

type Events = BoxStream<'static, Result<StreamResponse, A2AError>>;

struct Agent;

impl AgentExecutor for Agent {
    fn execute(&self, context: ExecutorContext) -> Events {
        let text = context.message.as_ref().and_then(Message::text);
        let text = text.unwrap_or_default().to_owned();
        let wish = Wish::of(&text);
        let work = Work {
            task_id: context.task_id,
            context_id: context.context_id,
        };
        let mut events = vec![work.task(context.message), work.status(TaskState::Working)];
        match wish {
            Wish::Echo => events.push(work.artifact("response", Part::text(text), false, true)),
            Wish::Burst | Wish::Flush => events.extend((0..PIECES).map(|number| {
                let data = serde_json::json!({"n": number, "text": piece_text(number)});
                work.artifact("answer", Part::data(data), number > 0, number + 1 == PIECES)
            })),
            Wish::Hold => {
                return stream::iter(events)
                    .map(Ok)
                    .chain(stream::pending())
                    .boxed();
            }
        }
        events.push(work.status(TaskState::Completed));
        let events = stream::iter(events).map(Ok);
        match wish {
            Wish::Flush => events.enumerate().then(paused).boxed(),
            _ => events.boxed(),
        }
    }

    fn cancel(&self, context: ExecutorContext) -> Events {
        let work = Work {
            task_id: context.task_id,
            context_id: context.context_id,
        };
        stream::iter([Ok(work.status(TaskState::Canceled))]).boxed()
    }
}

async fn paused<T>((index, event): (usize, T)) -> T {
    Wish::Flush.pause(index).await;
    event
}

struct Work {
    task_id: String,
    context_id: String,
}

impl Work {
    fn task(&self, message: Option<Message>) -> StreamResponse {
        StreamResponse::Task(Task {
            id: self.task_id.clone(),
            context_id: self.context_id.clone(),
            status: status(TaskState::Submitted),
            artifacts: None,
            history: message.map(|message| vec![message]),
            metadata: None,
        })
    }

    fn status(&self, state: TaskState) -> StreamResponse {
        StreamResponse::StatusUpdate(TaskStatusUpdateEvent {
            task_id: self.task_id.clone(),
            context_id: self.context_id.clone(),
            status: status(state),
            metadata: None,
        })
    }

    fn artifact(&self, id: &str, part: Part, append: bool, last_chunk: bool) -> StreamResponse {
        StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
            task_id: self.task_id.clone(),
            context_id: self.context_id.clone(),
            artifact: Artifact {
                artifact_id: id.to_owned(),
                name: None,
                description: None,
                parts: vec![part],
                metadata: None,
                extensions: None,
            },
            append: Some(append),
            last_chunk: Some(last_chunk),
            metadata: None,
        })
    }
}

fn status(state: TaskState) -> TaskStatus {
    TaskStatus {
        state,
        message: None,
        timestamp: None,
    }
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let listener = listen().await?;
    let handler = DefaultRequestHandler::new(Agent, InMemoryTaskStore::new()).with_capabilities(
        AgentCapabilities {
            streaming: Some(true),
            push_notifications: Some(false),
            extensions: None,
            extended_agent_card: None,
        },
    );
    let routes = jsonrpc_router(Arc::new(handler));
    say_ready(&listener, "/")?;
    // Without this its first event is 40 ms late.
    let listener = listener.tap_io(|stream| {
        if let Err(error) = stream.set_nodelay(true) {
            eprintln!("set TCP_NODELAY: {error}");
        }
    });
    axum::serve(listener, routes).await
}
