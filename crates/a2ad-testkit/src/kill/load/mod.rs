//! Clients that ask for everything, believe nothing, and write down what they were told.

mod probe;
mod shared;
mod steady;
mod streams;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use a2ad_proto::{ListTasksRequest, SendMessageConfiguration, SendMessageRequest, Task};
use futures_util::future::join;
use tokio::time::sleep;

use super::plan::Dice;
use crate::client::{self, Client as _};

pub use probe::Probe;
pub use shared::{Bears, Shared, Up, Way, get_task};
pub use steady::{Steady, program};

/// How long an answer or a frame may take while the server lives. A turn that was cut several
/// times waits for up to a minute before it is tried again.
const ANSWER_MAX: Duration = Duration::from_secs(100);
/// How often one operation is tried again at most.
const TRIES_MAX: usize = 10_000;
/// How many of its own tasks a client remembers to ask about.
const REMEMBERED: usize = 100;

/// One client.
#[derive(Debug)]
pub struct Client {
    shared: Arc<Shared>,
    dice: Dice,
    rest_max: Duration,
    own: VecDeque<Own>,
}

/// A task that the client began.
#[derive(Clone, Debug)]
struct Own {
    id: String,
    context_id: String,
}

impl Client {
    /// Client number `number` of the run with this `seed`.
    #[must_use]
    pub fn new(shared: Arc<Shared>, seed: u64, number: usize, rest_max: Duration) -> Self {
        Self {
            shared,
            dice: Dice::new(seed).fork(0x636c_6965_0000_0000 | number as u64),
            rest_max,
            own: VecDeque::new(),
        }
    }

    /// Asks for this and that until it is enough.
    pub async fn run(mut self, operations_max: usize) {
        for _ in 0..operations_max {
            if self.shared.enough.is_cancelled() {
                return;
            }
            let shared = Arc::clone(&self.shared);
            let share = shared.floor.read().await;
            match self.dice.below(100) {
                0..22 => self.send().await,
                22..40 => self.send_and_leave().await,
                40..62 => self.stream().await,
                62..72 => self.converse().await,
                72..78 => self.follow_up().await,
                78..84 => self.cancel().await,
                84..88 => self.watch().await,
                88..92 => self.replay().await,
                92..97 => self.get().await,
                _ => self.list().await,
            }
            drop(share);
            let rest_max = u64::try_from(self.rest_max.as_micros()).unwrap_or(0).max(1);
            let rest = Duration::from_micros(self.dice.below(rest_max));
            tokio::select! {
                () = sleep(rest) => {}
                () = self.shared.enough.cancelled() => {}
            }
        }
    }

    fn short(&mut self) -> u64 {
        1 + self.dice.below(12)
    }

    /// A message that the server can recognise, written down before it is sent.
    fn message(&mut self, mut request: SendMessageRequest) -> (String, SendMessageRequest) {
        let id = self.dice.uuid();
        let message = request.message.get_or_insert_default();
        message.message_id.clone_from(&id);
        let said: String = message
            .parts
            .iter()
            .filter_map(|part| part.as_text())
            .collect();
        self.shared.history().sending(&id, &said);
        (id, request)
    }

    fn new_message(&mut self, words: u64) -> (String, SendMessageRequest) {
        let said = self.dice.text(words);
        self.message(client::text(&said))
    }

    /// Sends until acknowledged.
    async fn acknowledged(&mut self, id: &str, request: &SendMessageRequest) -> Option<Task> {
        let answer = self
            .shared
            .answered("SendMessage", |rpc| {
                let request = request.clone();
                Box::pin(async move { rpc.send(request).await })
            })
            .await;
        match answer {
            Ok(task) => {
                self.note_task(id, &task);
                Some(task)
            }
            Err(refusal) => {
                let surprise = format!("message {id} was refused: {refusal}");
                self.shared.history().surprise(surprise);
                None
            }
        }
    }

    fn note_task(&mut self, message_id: &str, task: &Task) {
        let mut history = self.shared.history();
        history.acknowledged(message_id, &task.id, &task.context_id);
        history.shown(task, true);
        drop(history);
        self.remember(&task.id, &task.context_id);
    }

    fn remember(&mut self, id: &str, context_id: &str) {
        if self.own.len() >= REMEMBERED {
            self.own.pop_front();
        }
        self.own.push_back(Own {
            id: id.to_owned(),
            context_id: context_id.to_owned(),
        });
    }

    fn some_own(&mut self) -> Option<Own> {
        let own: Vec<_> = self.own.iter().cloned().collect();
        self.dice.pick(&own).cloned()
    }

    /// A blocking send, often repeated, sometimes twice at once.
    async fn send(&mut self) {
        let words = self.short();
        let (id, request) = self.new_message(words);
        if self.dice.chance(15) {
            let call = || {
                self.shared.answered("SendMessage twice at once", |rpc| {
                    let request = request.clone();
                    Box::pin(async move { rpc.send(request).await })
                })
            };
            let (one, two) = join(call(), call()).await;
            self.shared.history().tried.repeats += 1;
            for answer in [one, two] {
                match answer {
                    Ok(task) => self.note_task(&id, &task),
                    Err(refusal) => {
                        let surprise = format!("message {id}, sent twice, was refused: {refusal}");
                        self.shared.history().surprise(surprise);
                    }
                }
            }
        } else if let Some(task) = self.acknowledged(&id, &request).await
            && !task.status.state.is_terminal()
            && !self.shared.bears.early_ends
        {
            let surprise = format!("a blocking send of {id} answered {:?}", task.status.state);
            self.shared.history().surprise(surprise);
        }
        for _ in 0..2 {
            if self.dice.chance(25) {
                self.shared.history().tried.repeats += 1;
                self.acknowledged(&id, &request).await;
            }
        }
    }

    /// Returns at once; the task goes on without anybody looking.
    async fn send_and_leave(&mut self) {
        let words = self.short();
        let (id, request) = self.new_message(words);
        let request = at_once(request);
        self.acknowledged(&id, &request).await;
        if self.dice.chance(20) {
            self.shared.history().tried.repeats += 1;
            self.acknowledged(&id, &request).await;
        }
    }

    /// Several messages in one context, each acknowledged before the next is sent.
    async fn converse(&mut self) {
        let mut context_id = if self.dice.chance(50) {
            self.dice.uuid()
        } else {
            String::new()
        };
        let count = 2 + self.dice.below(4);
        let mut tasks = Vec::new();
        for at in 0..count {
            let words = self.short();
            let said = self.dice.text(words);
            let (id, request) = self.message(client::text_in(&context_id, &said));
            // The last one waits, and with it for all before.
            let request = if at + 1 < count {
                at_once(request)
            } else {
                request
            };
            let Some(task) = self.acknowledged(&id, &request).await else {
                break;
            };
            context_id = task.context_id;
            tasks.push(task.id);
        }
        let cancel = tasks.get(1).filter(|_| self.dice.chance(20)).cloned();
        self.shared.history().contexts.insert(context_id, tasks);
        if let Some(id) = cancel {
            // By now it has ended or waits in line.
            self.cancel_task(&id).await;
        }
    }

    /// A further message to a task that may still run.
    async fn follow_up(&mut self) {
        let (id, request) = self.new_message(20);
        let Some(task) = self.acknowledged(&id, &at_once(request)).await else {
            return;
        };
        for _ in 0..=self.dice.below(2) {
            let words = self.short();
            let said = self.dice.text(words);
            let (id, request) = self.message(client::text_to(&task, &said));
            let request = if self.dice.chance(50) {
                at_once(request)
            } else {
                request
            };
            let answer = self
                .shared
                .answered("SendMessage to a task", |rpc| {
                    let request = request.clone();
                    Box::pin(async move { rpc.send(request).await })
                })
                .await;
            match answer {
                Ok(task) => {
                    self.note_task(&id, &task);
                    self.shared.history().tried.follow_ups += 1;
                }
                // It has ended meanwhile.
                Err(refusal) if refusal.starts_with("UNSUPPORTED_OPERATION") => {
                    self.shared.history().refused(&id, &refusal);
                }
                Err(refusal) => {
                    let surprise = format!("follow-up {id} was refused: {refusal}");
                    self.shared.history().surprise(surprise);
                }
            }
        }
    }

    /// A long task, and a cancel somewhere on its way.
    async fn cancel(&mut self) {
        let words = 30 + self.dice.below(60);
        let (id, request) = self.new_message(words);
        let Some(task) = self.acknowledged(&id, &at_once(request)).await else {
            return;
        };
        sleep(Duration::from_millis(self.dice.below(200))).await;
        self.cancel_task(&task.id).await;
    }

    async fn cancel_task(&mut self, id: &str) {
        let answer = self
            .shared
            .answered("CancelTask", |rpc| {
                let id = id.to_owned();
                Box::pin(async move { rpc.cancel(&id).await })
            })
            .await;
        match answer {
            Ok(task) => {
                let mut history = self.shared.history();
                history.cancel_taken(&task.id);
                history.shown(&task, true);
            }
            // It was faster, or an earlier try of ours was heard.
            Err(refusal) if refusal.starts_with("TASK_NOT_CANCELABLE") => {
                if let Some(task) = self.get_task(id).await
                    && !task.status.state.is_terminal()
                {
                    let surprise = format!("{id} is {:?}, not cancelable", task.status.state);
                    self.shared.history().surprise(surprise);
                }
            }
            Err(refusal) => {
                let surprise = format!("the cancel of {id} was refused: {refusal}");
                self.shared.history().surprise(surprise);
            }
        }
    }

    async fn get(&mut self) {
        if let Some(own) = self.some_own() {
            self.get_task(&own.id).await;
        }
    }

    async fn get_task(&mut self, id: &str) -> Option<Task> {
        get_task(&self.shared, id).await
    }

    /// Lists a context of the client's; what it was told of must be there.
    async fn list(&mut self) {
        let Some(own) = self.some_own() else { return };
        let request = ListTasksRequest {
            context_id: own.context_id.clone(),
            include_artifacts: Some(true),
            page_size: Some(100),
            ..ListTasksRequest::default()
        };
        let answer = self
            .shared
            .answered("ListTasks", |rpc| {
                let request = request.clone();
                Box::pin(async move { rpc.list(request).await })
            })
            .await;
        let mut history = self.shared.history();
        history.tried.reads += 1;
        match answer {
            Ok(page) => {
                if !page.tasks.iter().any(|task| task.id == own.id) {
                    history.surprise(format!("a list of its context leaves out {}", own.id));
                }
                for task in &page.tasks {
                    history.shown(task, true);
                }
            }
            Err(refusal) => history.surprise(format!("a list was refused: {refusal}")),
        }
    }
}

fn at_once(mut request: SendMessageRequest) -> SendMessageRequest {
    request.configuration = Some(SendMessageConfiguration {
        return_immediately: true,
        ..SendMessageConfiguration::default()
    });
    request
}
