//! gRPC: HTTP/2 by `h2`, messages by `a2ad-proto`, and nothing between them.

use std::net::SocketAddr;

use a2ad_proto::pb::{self, Message as _, SERVICE};
use a2ad_proto::{
    GetTaskRequest, ListTasksRequest, ListTasksResponse, Message, Part, Role, SendMessageRequest,
    SendMessageResponse, SubscribeToTaskRequest, Task, TaskState,
};
use anyhow::{Context as _, Result, bail, ensure};
use bytes::{Buf as _, Bytes, BytesMut};
use h2::RecvStream;
use h2::client::SendRequest;
use http::{HeaderMap, Request};
use memchr::memmem;
use tokio::net::TcpStream;

use super::check::{self, PAGE};
use super::request::{ID, MARK};
use super::{Case, ListFilter, Made, Target};

/// Calls at a time on one connection.
pub(crate) const CALLS: usize = 8;
/// What a connection and a call may be sent before we have read it: more than any answer.
const WINDOW: u32 = 8 * 1024 * 1024;
/// Zero for "not compressed", and four bytes of length.
const PREFIX: usize = 5;

/// A connection for several calls at a time. It lives on a task of its own, which the caller keeps.
pub(crate) async fn connect(
    address: SocketAddr,
) -> Result<(SendRequest<Bytes>, impl Future<Output = ()>)> {
    let stream = TcpStream::connect(address).await;
    let stream = stream.with_context(|| format!("connect to {address}"))?;
    stream.set_nodelay(true)?;
    let mut builder = h2::client::Builder::new();
    builder.initial_window_size(WINDOW);
    builder.initial_connection_window_size(WINDOW);
    let (sender, connection) = builder.handshake(stream).await?;
    // A call on a connection that broke says so itself.
    Ok((sender, async { drop(connection.await) }))
}

/// The headers of every call of a load.
pub(crate) fn head(target: &Target, case: Case) -> Result<Request<()>> {
    let method = match case {
        Case::Send => "SendMessage",
        Case::Burst | Case::Flush | Case::Sync => "SendStreamingMessage",
        Case::Get => "GetTask",
        Case::List => "ListTasks",
        Case::Resume => "SubscribeToTask",
    };
    let mut request = Request::post(format!("http://{}/{SERVICE}/{method}", target.address))
        .header("content-type", "application/grpc")
        .header("te", "trailers");
    if let Some(token) = &target.token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    if case == Case::Resume {
        request = request
            .header("a2a-extensions", "urn:a2ad:replay:v1")
            .header("last-event-id", "0");
    }
    Ok(request.body(())?)
}

/// A message with places for an id and a mark.
pub(crate) fn message(target: &Target, case: Case) -> Vec<u8> {
    framed(&SendMessageRequest {
        tenant: tenant(target),
        message: Some(Message {
            message_id: ID.to_owned(),
            role: Role::User,
            parts: vec![Part::text(format!("{} {MARK}", case.word()))],
            ..Message::default()
        }),
        ..SendMessageRequest::default()
    })
}

pub(crate) fn get(target: &Target, made: &Made) -> Vec<u8> {
    framed(&GetTaskRequest {
        tenant: tenant(target),
        id: made.id.clone(),
        ..GetTaskRequest::default()
    })
}

pub(crate) fn list(target: &Target, filter: &ListFilter) -> Result<Vec<u8>> {
    let status = filter.status.as_ref();
    let status = status.map(|name| serde_json::from_value(name.as_str().into()));
    Ok(framed(&ListTasksRequest {
        tenant: tenant(target),
        context_id: filter.context_id.clone().unwrap_or_default(),
        status: status
            .transpose()
            .context("no such state")?
            .unwrap_or_default(),
        page_size: Some(PAGE as i32),
        ..ListTasksRequest::default()
    }))
}

pub(crate) fn subscribe(target: &Target, made: &Made) -> Vec<u8> {
    framed(&SubscribeToTaskRequest {
        tenant: tenant(target),
        id: made.id.clone(),
    })
}

/// gRPC knows no paths: what is an agent's path elsewhere is its tenant here.
fn tenant(target: &Target) -> String {
    let name = target.path.rsplit('/').next();
    name.unwrap_or_default().to_owned()
}

fn framed(message: &impl pb::Message) -> Vec<u8> {
    let mut bytes = vec![0; PREFIX];
    message.encode(&mut bytes);
    let length = (bytes.len() - PREFIX) as u32;
    bytes[1..PREFIX].copy_from_slice(&length.to_be_bytes());
    bytes
}

/// Calls, and checks what comes back.
pub(crate) async fn call(
    sender: &mut SendRequest<Bytes>,
    head: &Request<()>,
    request: Bytes,
    case: Case,
    mark: &[u8],
) -> Result<()> {
    std::future::poll_fn(|context| sender.poll_ready(context)).await?;
    let mut to_send = Request::new(());
    *to_send.method_mut() = head.method().clone();
    *to_send.uri_mut() = head.uri().clone();
    *to_send.headers_mut() = head.headers().clone();
    let (response, mut body) = sender.send_request(to_send, false)?;
    body.send_data(request, true)?;
    let response = response.await?;
    ensure!(response.status() == 200, "status {}", response.status());
    ensure_ok(response.headers(), false)?;
    let mut answer = Messages {
        body: response.into_body(),
        unread: BytesMut::new(),
    };
    if case.streams() {
        let mut events = check::Events::default();
        while let Some(event) = answer.next().await? {
            events.message(&event)?;
        }
        events.finish()?;
    } else {
        let message = answer.next().await?.context("no message in the answer")?;
        whole(&message, case, mark)?;
        ensure!(answer.next().await?.is_none(), "more than one message");
    }
    let trailers = answer.body.trailers().await?;
    ensure_ok(&trailers.context("no trailers")?, true)
}

fn ensure_ok(headers: &HeaderMap, required: bool) -> Result<()> {
    match headers.get("grpc-status") {
        None if !required => Ok(()),
        Some(status) if status == "0" => Ok(()),
        status => bail!("gRPC status {status:?}: {:?}", headers.get("grpc-message")),
    }
}

fn whole(message: &[u8], case: Case, mark: &[u8]) -> Result<()> {
    match case {
        Case::List => {
            let page = ListTasksResponse::decode(message)?;
            let tasks = page.tasks.len();
            ensure!(tasks == PAGE, "{tasks} tasks on a page");
            ensure!(page.total_size >= PAGE as i32, "no total");
            Ok(())
        }
        Case::Get => echoed(&Task::decode(message)?, mark),
        _ => match SendMessageResponse::decode(message)? {
            SendMessageResponse::Task(task) => echoed(&task, mark),
            other => bail!("no task: {other:?}"),
        },
    }
}

fn echoed(task: &Task, mark: &[u8]) -> Result<()> {
    ensure!(task.status.state == TaskState::Completed, "not completed");
    let parts = task.artifacts.iter().flat_map(|artifact| &artifact.parts);
    let mut texts = parts.filter_map(Part::as_text);
    let echoed = texts.any(|text| memmem::find(text.as_bytes(), mark).is_some());
    ensure!(echoed, "the text is not echoed");
    Ok(())
}

/// The messages of an answer.
struct Messages {
    body: RecvStream,
    unread: BytesMut,
}

impl Messages {
    async fn next(&mut self) -> Result<Option<Bytes>> {
        loop {
            if let Some([flag, length @ ..]) = self.unread.first_chunk::<PREFIX>() {
                ensure!(*flag == 0, "a compressed message");
                let length = u32::from_be_bytes(*length) as usize;
                if self.unread.len() >= PREFIX + length {
                    self.unread.advance(PREFIX);
                    return Ok(Some(self.unread.split_to(length).freeze()));
                }
            }
            let Some(data) = self.body.data().await else {
                ensure!(self.unread.is_empty(), "the call ended within a message");
                return Ok(None);
            };
            let data = data?;
            self.body.flow_control().release_capacity(data.len())?;
            self.unread.extend_from_slice(&data);
        }
    }
}
