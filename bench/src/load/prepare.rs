//! Making the tasks that others are then asked for.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tokio::task::{JoinSet, LocalSet};

use super::check::shown;
use super::http1::Connection;
use super::random::Random;
use super::request::{self, Template};
use super::{Binding, Case, Target};

/// Connections that make tasks.
const MAKERS: usize = 32;

/// A task that a server has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// Its id.
    pub id: String,
    /// What its text contains, and so does the echo.
    pub mark: String,
}

/// Tasks to make.
#[derive(Clone, Debug)]
pub struct Making {
    /// Of this agent.
    pub target: Target,
    /// What their messages begin with.
    pub word: &'static str,
    /// Whether by a stream.
    pub streams: bool,
    /// All in this context, or each in its own.
    pub context_id: Option<String>,
    /// How many.
    pub count: usize,
    /// Over how many connections.
    pub connections: usize,
}

impl Making {
    /// Those that a case needs.
    pub(crate) fn of(target: &Target, case: Case, count: usize) -> Self {
        Self {
            target: target.clone(),
            word: case.word(),
            streams: case.streams(),
            context_id: None,
            count,
            connections: MAKERS,
        }
    }

    /// Makes them, over JSON-RPC, and waits until they have ended.
    ///
    /// # Errors
    /// When the server cannot be reached or answers something else.
    pub async fn make(self) -> Result<Vec<Made>> {
        let context_id = self.context_id.as_deref();
        let message = request::message(
            &self.target,
            Binding::JsonRpc,
            self.word,
            context_id,
            self.streams,
        );
        let template = Template::new(message)?;
        let shared = Rc::new(Shared {
            left: Cell::new(self.count),
            made: RefCell::new(Vec::with_capacity(self.count)),
        });
        let set = LocalSet::new();
        let mut makers = JoinSet::new();
        for _ in 0..self.connections.min(self.count) {
            let maker = Maker {
                address: self.target.address,
                streams: self.streams,
                template: template.clone(),
                shared: Rc::clone(&shared),
            };
            makers.spawn_local_on(maker.run(), &set);
        }
        let all = async {
            while let Some(ended) = makers.join_next().await {
                ended.context("make tasks")??;
            }
            anyhow::Ok(())
        };
        set.run_until(all).await?;
        Ok(shared.made.take())
    }
}

struct Shared {
    left: Cell<usize>,
    made: RefCell<Vec<Made>>,
}

struct Maker {
    address: SocketAddr,
    streams: bool,
    template: Template,
    shared: Rc<Shared>,
}

impl Maker {
    async fn run(mut self) -> Result<()> {
        let mut random = Random::new();
        let mut connection = Connection::open(self.address).await?;
        let mut body = Vec::new();
        while let Some(left) = self.shared.left.get().checked_sub(1) {
            self.shared.left.set(left);
            let mark = self.template.refresh(&mut random);
            if !connection.is_reusable() {
                connection = Connection::open(self.address).await?;
            }
            let status = connection.ask(self.template.bytes()).await?;
            connection.whole_body(&mut body).await?;
            ensure!(status == 200, "status {status}: {}", shown(&body));
            let id = task_id(&body, self.streams);
            self.shared.made.borrow_mut().push(Made {
                id: id.with_context(|| format!("no task: {}", shown(&body)))?,
                mark: String::from_utf8_lossy(&mark).into_owned(),
            });
        }
        Ok(())
    }
}

/// The id of the task in a JSON-RPC answer, or in the first event of a stream.
pub(crate) fn task_id(body: &[u8], streams: bool) -> Option<String> {
    let mut lines = body.split(|byte| *byte == b'\n');
    let json = match streams {
        true => lines.find_map(|line| line.strip_prefix(b"data:"))?,
        false => body,
    };
    let answer: Value = serde_json::from_slice(json).ok()?;
    Some(answer["result"]["task"]["id"].as_str()?.to_owned())
}
