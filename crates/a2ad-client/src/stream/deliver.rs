//! What is told, and when all is.

use a2ad_proto::{StreamResponse, TaskState};

use super::{Event, EventStream, Purpose, Source};
use crate::assemble::Applied;

impl EventStream {
    pub(super) fn deliver(&mut self, response: StreamResponse, number: Option<u64>) {
        self.attempts = 1;
        self.last_error = None;
        if let (StreamResponse::Task(task), None) = (&response, self.assembly.task())
            && self.continues()
        {
            self.opening = Some(task.status.clone());
        }
        let fits = self.assembly.apply(&response);
        debug_assert!(fits == Applied::Fits || self.orphans > 0 || self.is_partial());
        let asked = match &response {
            StreamResponse::StatusUpdate(update) => update.status.state == TaskState::InputRequired,
            // The question with which a continued task opens is the old one.
            StreamResponse::Task(task) => {
                task.status.state == TaskState::InputRequired
                    && self.opening.as_ref() != Some(&task.status)
            }
            StreamResponse::Message(_) | StreamResponse::ArtifactUpdate(_) => false,
        };
        let over = match &response {
            StreamResponse::Message(_) => true,
            _ => self.assembly.state().is_some_and(TaskState::is_terminal),
        };
        if over || (asked && self.ends_with_question()) {
            self.source = Source::Over;
        }
        self.ready.push_back(Event::new(response, number));
    }

    fn is_partial(&self) -> bool {
        matches!(self.purpose, Purpose::Resume)
    }

    /// Whether the message went to a task that was there before.
    fn continues(&self) -> bool {
        match &self.purpose {
            Purpose::Send(request, _) => {
                let message = request.message.as_ref();
                message.is_some_and(|message| !message.task_id.is_empty())
            }
            Purpose::Follow { .. } | Purpose::Resume => false,
        }
    }

    fn ends_with_question(&self) -> bool {
        match self.purpose {
            Purpose::Send(..) => true,
            Purpose::Follow { asks } => asks,
            Purpose::Resume => false,
        }
    }

    /// Whether nothing more is to come, if the stream is over: in good order, or not.
    pub(super) fn is_settled(&self, in_order: bool) -> bool {
        let Some(task) = self.assembly.task() else {
            return self.assembly.reply().is_some();
        };
        let state = task.status.state;
        if state.is_terminal() {
            return true;
        }
        if !self.ends_with_question() {
            return false;
        }
        // A server that numbers its events closes at a question and nowhere else, and stops in good order, too.
        let trusted_end = in_order && self.cursor.is_none();
        match state {
            TaskState::InputRequired => {
                let is_new = self.opening.as_ref() != Some(&task.status);
                is_new || trusted_end
            }
            TaskState::AuthRequired => trusted_end,
            _ => false,
        }
    }
}
