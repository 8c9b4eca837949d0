//! A stream that somebody else looks at.

use anyhow::{Context as _, Result, ensure};

use super::check::shown;
use super::http1::Connection;
use super::prepare::task_id;
use super::random::Random;
use super::request::{self, Template};
use super::{Binding, Target};

/// A stream of events over JSON-RPC.
#[derive(Debug)]
pub struct Follower {
    connection: Connection,
    /// What was read already.
    read: Vec<u8>,
}

impl Follower {
    /// Sends a message that begins with `word`, and follows its task, which is named as well.
    ///
    /// # Errors
    /// When there is no task.
    pub async fn send(target: &Target, word: &str) -> Result<(Self, String)> {
        let message = request::message(target, Binding::JsonRpc, word, None, true);
        let mut template = Template::new(message)?;
        template.refresh(&mut Random::new());
        let follower = Self::open(target, template.bytes()).await?;
        let task = task_id(&follower.read, true);
        let task = task.with_context(|| format!("no task: {}", shown(&follower.read)))?;
        Ok((follower, task))
    }

    /// Follows a task.
    ///
    /// # Errors
    /// When it cannot be followed.
    pub async fn subscribe(target: &Target, task: &str) -> Result<Self> {
        let request = request::subscribe(target, Binding::JsonRpc, task, None);
        Self::open(target, &request).await
    }

    async fn open(target: &Target, request: &[u8]) -> Result<Self> {
        let mut connection = Connection::open(target.address).await?;
        let status = connection.ask(request).await?;
        let mut read = Vec::new();
        connection.body(&mut read).await?;
        ensure!(status == 200, "status {status}: {}", shown(&read));
        Ok(Self { connection, read })
    }

    /// Adds what has come to `into`; false if that was all.
    ///
    /// # Errors
    /// When the connection breaks.
    pub async fn read(&mut self, into: &mut Vec<u8>) -> Result<bool> {
        if !self.read.is_empty() {
            into.append(&mut self.read);
            return Ok(true);
        }
        self.connection.body(into).await
    }
}
