//! Lists, page by page.

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use a2ad_proto::{ListTasksRequest, Task};

use crate::client::Client;
use crate::error::Error;

/// How many pages of a list are asked for.
const PAGES_MAX: usize = 100_000;

/// The tasks of a list, page by page.
#[derive(Debug)]
pub struct Tasks {
    client: Client,
    /// None after the last page.
    request: Option<ListTasksRequest>,
    /// What the tokens of the pages so far come to: one that comes again leads round and round.
    seen: HashSet<u64>,
    ready: VecDeque<Task>,
}

impl Tasks {
    pub(crate) fn new(client: Client, request: ListTasksRequest) -> Self {
        Self {
            client,
            request: Some(request),
            seen: HashSet::new(),
            ready: VecDeque::new(),
        }
    }

    /// The next task; `None` after the last one, or after an error.
    ///
    /// Cancel safe: a page that was not waited for is asked for again.
    pub async fn next(&mut self) -> Option<Result<Task, Error>> {
        // A page may have no tasks and still not be the last (LIST-09).
        while self.ready.is_empty() {
            let mut request = self.request.clone()?;
            let page = self.client.list(request.clone()).await;
            self.request = None;
            let page = match page {
                Ok(page) => page,
                Err(error) => return Some(Err(error)),
            };
            self.ready = page.tasks.into();
            if page.next_page_token.is_empty() {
                continue;
            }
            let mut hasher = DefaultHasher::new();
            page.next_page_token.hash(&mut hasher);
            if !self.seen.insert(hasher.finish()) || self.seen.len() >= PAGES_MAX {
                self.ready.clear();
                return Some(Err(Error::not_a2a("a list without an end", "")));
            }
            request.page_token = page.next_page_token;
            self.request = Some(request);
        }
        self.ready.pop_front().map(Ok)
    }
}
