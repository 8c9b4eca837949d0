//! One of those who ask.

use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use bytes::Bytes;
use h2::client::SendRequest;

use super::http1::Connection;
use super::job::{Job, Requests};
use super::random::Random;
use super::request::Template;
use super::{Case, check, grpc};

/// Where requests go.
pub(crate) enum Line {
    /// A connection of one's own, opened when there is none.
    Http1(Option<Connection>),
    /// A part in a connection.
    Grpc(SendRequest<Bytes>),
}

pub(crate) struct Asker {
    job: Rc<Job>,
    line: Line,
    random: Random,
    /// A copy of the job's template to write into.
    fresh: Option<Template>,
    body: Vec<u8>,
}

impl Asker {
    pub(crate) fn new(job: Rc<Job>, line: Line) -> Self {
        Self {
            job,
            line,
            random: Random::new(),
            fresh: None,
            body: Vec::new(),
        }
    }

    /// Asks once and checks the answer; how long the answer took.
    pub(crate) async fn ask(&mut self) -> Result<Duration> {
        let fresh_mark;
        let (request, mark) = match &self.job.requests {
            Requests::Fresh(template) => {
                let template = self.fresh.get_or_insert_with(|| template.clone());
                fresh_mark = template.refresh(&mut self.random);
                (template.bytes(), fresh_mark.as_slice())
            }
            Requests::Prepared(requests, next) => {
                let prepared = &requests[next.get() % requests.len()];
                next.set(next.get() + 1);
                (prepared.request.as_slice(), prepared.mark.as_bytes())
            }
        };
        let case = self.job.case;
        match &mut self.line {
            Line::Http1(connection) => {
                let mut open = match connection.take() {
                    Some(open) => open,
                    None => Connection::open(self.job.target.address).await?,
                };
                let expected = Expected {
                    case,
                    mark,
                    total: self.job.total,
                };
                let took = exchange(&mut open, request, &expected, &mut self.body).await?;
                if open.is_reusable() {
                    *connection = Some(open);
                }
                Ok(took)
            }
            Line::Grpc(sender) => {
                let request = Bytes::copy_from_slice(request);
                let begin = Instant::now();
                grpc::call(sender, &self.job.grpc_head, request, case, mark).await?;
                Ok(begin.elapsed())
            }
        }
    }
}

/// What is right about an answer.
struct Expected<'a> {
    case: Case,
    mark: &'a [u8],
    total: Option<u64>,
}

async fn exchange(
    connection: &mut Connection,
    request: &[u8],
    expected: &Expected<'_>,
    body: &mut Vec<u8>,
) -> Result<Duration> {
    let begin = Instant::now();
    let status = connection.ask(request).await?;
    if status != 200 {
        connection.whole_body(body).await?;
        bail!("status {status}: {}", check::shown(body));
    }
    if expected.case.streams() {
        let mut events = check::Events::default();
        body.clear();
        while connection.body(body).await? {
            events.take_lines(body)?;
        }
        events.take_lines(body)?;
        events.finish()?;
        return Ok(begin.elapsed());
    }
    connection.whole_body(body).await?;
    let took = begin.elapsed();
    match expected.case {
        Case::List => check::page(body, expected.total)?,
        _ => check::task(body, expected.mark)?,
    }
    Ok(took)
}
