//! A program that serves an agent of its own.

use std::sync::Arc;

use a2ad_server::agent::{Agent, AgentError, Ending, Turn};
use a2ad_server::config::AgentConfig;
use a2ad_server::{Config, Handle, Server, StartError};
use futures_util::future::BoxFuture;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

#[derive(Debug)]
struct Shout;

impl Agent for Shout {
    fn run(&self, turn: Turn) -> BoxFuture<'_, Result<Ending, AgentError>> {
        Box::pin(async move {
            let _over = turn.say_text(turn.text().to_uppercase()).await;
            Ok(Ending::Completed(Vec::new()))
        })
    }
}

fn config(folder: &std::path::Path) -> Config {
    let mut config = Config::default();
    config.listen.port = 0;
    config.data_dir = folder.join("data");
    config
}

async fn say(handle: &Handle, text: &str) -> String {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{{"message":{{"messageId":"m","role":"ROLE_USER","parts":[{{"text":"{text}"}}]}}}}}}"#
    );
    let mut stream = tokio::net::TcpStream::connect(handle.addr()).await.unwrap();
    let request = format!(
        "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nA2A-Version: 1.0\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn an_agent_of_the_program_answers() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    config.agents.clear();
    let agent = AgentConfig::new("shout".parse().unwrap());
    let mut handle = Server::new(config)
        .agent(agent, Arc::new(Shout))
        .run()
        .await
        .unwrap();
    assert_eq!(handle.url(), format!("http://{}", handle.addr()));
    assert!(say(&handle, "louder").await.contains("LOUDER"));
    handle.stop();
    handle.wait().await.unwrap();
}

#[tokio::test]
async fn two_servers_live_in_one_program() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let mut first = Server::start(config(folders[0].path())).await.unwrap();
    let mut second = Server::start(config(folders[1].path())).await.unwrap();
    assert!(say(&first, "one").await.contains("TASK_STATE_COMPLETED"));
    first.stop();
    first.wait().await.unwrap();
    assert!(say(&second, "two").await.contains("TASK_STATE_COMPLETED"));
    second.stop();
    second.wait().await.unwrap();
}

#[tokio::test]
async fn a_stopped_server_leaves_the_database_free() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let mut handle = Server::start(config(folder.path())).await.unwrap();
        let again = Server::start(config(folder.path())).await;
        assert!(matches!(again, Err(StartError::Database(_))));
        handle.stop();
        handle.wait().await.unwrap();
    }
}

#[tokio::test]
async fn a_server_needs_agents_with_ids_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    config.agents.clear();
    let none = Server::start(config.clone()).await;
    assert!(matches!(none, Err(StartError::NoAgents)));
    config.agents = vec![AgentConfig::echo(), AgentConfig::echo()];
    let many = Server::start(config.clone()).await;
    assert!(matches!(many, Err(StartError::DuplicateAgent(_))));
    let mut hidden = AgentConfig::echo();
    hidden.expose = false;
    config.agents = vec![hidden];
    let hidden = Server::start(config.clone()).await;
    assert!(matches!(hidden, Err(StartError::NoneExposed)));
    let mut reserved = AgentConfig::echo();
    reserved.id = "Tasks".parse().unwrap();
    config.agents = vec![AgentConfig::echo(), reserved];
    let reserved = Server::start(config.clone()).await;
    assert!(matches!(reserved, Err(StartError::ReservedAgent(_))));
    config.agents = vec![AgentConfig::new("bare".parse().unwrap())];
    let bare = Server::start(config).await;
    assert!(matches!(bare, Err(StartError::NoBackend(_))));
    assert!(!folder.path().join("data").exists());
}
