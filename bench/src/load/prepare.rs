//! Making the tasks that others are then asked for.

use std::cell::RefCell;
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

/// Makes so many tasks, over JSON-RPC, and waits until they have ended.
///
/// # Errors
/// When the server cannot be reached or answers something else.
pub async fn make(target: &Target, case: Case, count: usize) -> Result<Vec<Made>> {
    let message = request::message(target, Binding::JsonRpc, case.word(), case.streams());
    let template = Template::new(message)?;
    let shared = Rc::new(Shared {
        left: RefCell::new(count),
        made: RefCell::new(Vec::with_capacity(count)),
    });
    let set = LocalSet::new();
    let mut makers = JoinSet::new();
    for _ in 0..MAKERS.min(count) {
        let (target, template, shared) = (target.clone(), template.clone(), Rc::clone(&shared));
        makers.spawn_local_on(maker(target, template, case, shared), &set);
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

struct Shared {
    left: RefCell<usize>,
    made: RefCell<Vec<Made>>,
}

async fn maker(
    target: Target,
    mut template: Template,
    case: Case,
    shared: Rc<Shared>,
) -> Result<()> {
    let mut random = Random::new();
    let mut connection = Connection::open(target.address).await?;
    let mut body = Vec::new();
    while let Some(left) = { shared.left.borrow().checked_sub(1) } {
        *shared.left.borrow_mut() = left;
        let mark = template.refresh(&mut random);
        if !connection.is_reusable() {
            connection = Connection::open(target.address).await?;
        }
        let status = connection.ask(template.bytes()).await?;
        connection.whole_body(&mut body).await?;
        ensure!(status == 200, "status {status}: {}", shown(&body));
        let id = task_id(&body, case).with_context(|| format!("no task: {}", shown(&body)))?;
        shared.made.borrow_mut().push(Made {
            id,
            mark: String::from_utf8_lossy(&mark).into_owned(),
        });
    }
    Ok(())
}

/// The id of the task in a JSON-RPC answer, or in the first event of a stream.
pub(crate) fn task_id(body: &[u8], case: Case) -> Option<String> {
    let mut lines = body.split(|byte| *byte == b'\n');
    let json = match case.streams() {
        true => lines.find_map(|line| line.strip_prefix(b"data:"))?,
        false => body,
    };
    let answer: Value = serde_json::from_slice(json).ok()?;
    Some(answer["result"]["task"]["id"].as_str()?.to_owned())
}
