//! Asking for the task itself, where there is no stream or it does not tell.

use a2ad_proto::{ErrorKind, GetTaskRequest, StreamResponse, Task};

use super::heal::heals;
use super::{EventStream, Kept, Purpose, Source};
use crate::error::Error;

impl EventStream {
    /// Looks at the task itself if `error` may mean that it has ended: then it cannot be followed, and servers say so
    /// in many ways (AMB-05, AMB-06).
    pub(super) async fn look_instead(&mut self, error: Error) -> Result<(), Error> {
        match error.kind() {
            Some(
                ErrorKind::UnsupportedOperation
                | ErrorKind::MethodNotFound
                | ErrorKind::InvalidParams
                | ErrorKind::TaskNotFound,
            ) => {
                self.source = Source::Polling(0);
                self.catch_up().await
            }
            _ => Err(error),
        }
    }

    pub(super) async fn poll(&mut self, unchanged: u32) -> Result<(), Error> {
        if self.looking.is_none() {
            let delay = self.client.settings().retries.poll(unchanged);
            self.pause(delay).await;
            self.source = Source::Polling(unchanged.saturating_add(1));
        }
        self.catch_up().await
    }

    /// Whether the task is to be asked for before it is followed: agents of 0.3 need not begin with it (V03-20), and
    /// some say nothing at all before something happens.
    pub(super) fn looks_first(&self) -> bool {
        let state = self.client.state();
        self.task_id.is_some()
            && self.cursor.is_none()
            && !self.looked
            && state.streaming
            && self.client.interface().is_v03()
            && !matches!(self.purpose, Purpose::Resume)
    }

    /// Asks for the task before it is followed. What happens before the stream is open is found when something comes.
    pub(super) async fn look_before(&mut self) -> Result<(), Error> {
        let first = self.attempts == 0;
        self.catch_up().await?;
        self.looked = true;
        if first {
            // What was delivered came by no stream.
            self.attempts = 0;
        }
        Ok(())
    }

    /// Asks for the task and delivers what is new. If it cannot be had now, what follows is another attempt.
    pub(super) async fn catch_up(&mut self) -> Result<(), Error> {
        let Some(id) = self.task_id.clone() else {
            return Err(Error::invalid("a task without an id"));
        };
        let request = GetTaskRequest {
            id,
            ..GetTaskRequest::default()
        };
        let looking = self.looking.get_or_insert_with(|| {
            let client = self.client.clone();
            Kept::new(async move { client.get_with(request).await })
        });
        let found = looking.done().await;
        self.looking = None;
        match found {
            Ok(task) => self.absorb(task, None),
            Err(error) if heals(&error) => {
                self.cut(false, Some(error));
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Delivers the difference between what was delivered and the task as it is.
    pub(super) fn absorb(&mut self, task: Task, number: Option<u64>) -> Result<(), Error> {
        let snapshot = StreamResponse::Task(task);
        self.check_task(&snapshot)?;
        let StreamResponse::Task(task) = snapshot else {
            return Ok(());
        };
        let missed = self.assembly.difference(&task);
        let last = missed.len().saturating_sub(1);
        let news = !missed.is_empty();
        for (index, response) in missed.into_iter().enumerate() {
            self.deliver(response, number.filter(|_| index == last));
        }
        self.cursor = number.or(self.cursor);
        if let Source::Polling(unchanged) = &mut self.source
            && news
        {
            *unchanged = 0;
        }
        if self.is_settled(false) {
            self.source = Source::Over;
        }
        Ok(())
    }
}
