//! The agent served by a2a-protocol-server, its tasks in memory or, if a second argument names a file, in SQLite.

use std::sync::Arc;

use a2a_protocol_server::store::SqliteTaskStore;
use a2a_protocol_server::{
    EventEmitter, JsonRpcDispatcher, RequestHandlerBuilder, Server, agent_executor,
};
use a2a_protocol_types::{
    AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part, TaskState,
};
use a2ad_bench_peers::{PIECES, Wish, listen, piece_text, say_ready};

struct Agent;

agent_executor!(Agent,
    execute: |context, queue| async {
        let text = context.message.text().unwrap_or_default();
        let wish = Wish::of(text);
        let emit = EventEmitter::new(context, queue);
        emit.status(TaskState::Working).await?;
        match wish {
            Wish::Echo => emit.artifact("response", vec![Part::text(text)], None, Some(true)).await?,
            Wish::Burst | Wish::Flush => {
                for number in 0..PIECES {
                    wish.pause(number + 2).await;
                    let data = serde_json::json!({"n": number, "text": piece_text(number)});
                    let (append, last) = (Some(number > 0), Some(number + 1 == PIECES));
                    emit.artifact("answer", vec![Part::data(data)], append, last).await?;
                }
                wish.pause(PIECES + 2).await;
            }
            Wish::Hold => context.cancellation_token.cancelled().await,
        }
        emit.status(TaskState::Completed).await
    },
    cancel: |context, queue| async {
        EventEmitter::new(context, queue).status(TaskState::Canceled).await
    }
);

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = listen().await?;
    let url = format!("http://{}", listener.local_addr()?);
    let card = AgentCard::new("bench", "1", AgentInterface::jsonrpc(url))
        .with_description("Does what the first word of a message says.")
        .with_capabilities(AgentCapabilities::none().with_streaming(true))
        .with_skill(AgentSkill::new("bench", "Bench", "Does as it is told").with_tags(["test"]));
    let mut handler = RequestHandlerBuilder::new(Agent).with_agent_card(card);
    if let Some(file) = std::env::args().nth(2) {
        let store = SqliteTaskStore::with_migrations(&format!("sqlite://{file}")).await?;
        handler = handler.with_task_store(store);
    }
    let dispatcher = JsonRpcDispatcher::new(Arc::new(handler.build()?));
    say_ready(&listener, "/")?;
    Server::from_listener(listener)
        .serve_with_shutdown(dispatcher, std::future::pending())
        .await;
    Ok(())
}
