//! `/monitor`: a look at tasks across agents, for people and dashboards. Read-only.
//!
//! Callers see what they could ask the agents for: their own tasks, of the agents that they may call. The shapes are
//! those of the A2A server of Lectic, so that what was written for that works here.

mod route;
mod stream;
mod view;

pub(crate) use route::Route;

use a2ad_core::engine::{Engine, EngineError, Seen, SeenPage, Sight, Sighting, Sightings};
use a2ad_proto::{AgentId, ContextId, IdError, Violations};
use futures_util::future::BoxFuture;
use http::header::CACHE_CONTROL;
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};

use crate::auth::Principal;
use crate::edge::Inner;
use crate::errors::{Fault, Refusal};
use crate::listen::Connection;
use crate::percent::{Plus, decode};
use crate::reply::{self, Body};
use crate::{http_json, query};

/// How many tasks a list has at most, and unless the caller asks for fewer.
const PAGE_MAX: usize = 100;

pub(crate) type Batch = Option<Result<Vec<Sighting>, EngineError>>;

/// What the monitor asks of the engine.
pub(crate) trait Monitor: Send + Sync {
    fn look<'a>(
        &'a self,
        sight: &'a Sight,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<Seen>, EngineError>>;
    fn look_over<'a>(
        &'a self,
        sight: &'a Sight,
        page_token: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<SeenPage, EngineError>>;
    fn follow_all(&self, sight: Sight) -> Box<dyn SightingSource>;
}

/// A stream in progress. A future given up before it is done must lose nothing.
pub(crate) trait SightingSource: Send {
    fn next(&mut self) -> BoxFuture<'_, Batch>;
}

impl Monitor for Engine {
    fn look<'a>(
        &'a self,
        sight: &'a Sight,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<Seen>, EngineError>> {
        Box::pin(Self::look(self, sight, id))
    }

    fn look_over<'a>(
        &'a self,
        sight: &'a Sight,
        page_token: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<SeenPage, EngineError>> {
        Box::pin(Self::look_over(self, sight, page_token, limit))
    }

    fn follow_all(&self, sight: Sight) -> Box<dyn SightingSource> {
        Box::new(Self::follow_all(self, sight))
    }
}

impl SightingSource for Sightings {
    fn next(&mut self) -> BoxFuture<'_, Batch> {
        Box::pin(Self::next(self))
    }
}

/// Answers one request.
pub(crate) async fn answer(
    inner: &Inner,
    principal: &Principal,
    route: Route<'_>,
    head: &Parts,
    connection: &Connection,
) -> Response<Body> {
    let answered = match Asked::read(inner, principal, route, head) {
        Ok(asked) => asked.answer(inner, head, connection).await,
        Err(fault) => Err(fault),
    };
    answered.unwrap_or_else(|fault| http_json::refuse(&fault, &head.headers, &inner.limits))
}

/// A request that has been read.
struct Asked<'a> {
    principal: &'a Principal,
    route: Route<'a>,
    sight: Sight,
    /// The agent that the path or the query names.
    agent: Option<AgentId>,
}

impl<'a> Asked<'a> {
    fn read(
        inner: &Inner,
        principal: &'a Principal,
        route: Route<'a>,
        head: &Parts,
    ) -> Result<Self, Fault> {
        let parameter = |name| query::find(head.uri.query(), name);
        let named = match route.agent() {
            Some(id) => Some(
                decode(id, Plus::Plus)
                    .ok_or(Refusal::NoSuchPath)?
                    .into_owned(),
            ),
            None => parameter("agentId")?.map(|id| id.into_owned()),
        };
        let reached = inner.mounts.reached_by(principal);
        let agents: Vec<AgentId> = reached
            .map(|mount| mount.agent.clone())
            .filter(|id| named.as_ref().is_none_or(|named| named == id.as_str()))
            .collect();
        if named.is_some() && agents.is_empty() {
            return Err(Refusal::NoSuchPath.into());
        }
        let context = parameter("contextId")?.filter(|id| !id.is_empty());
        let context_id = context
            .map(|id| id.parse::<ContextId>())
            .transpose()
            .map_err(|error: IdError| Violations::one("contextId", error.to_string()))?;
        Ok(Self {
            principal,
            route,
            agent: named.and(agents.first().cloned()),
            sight: Sight {
                owner: principal.owner.clone(),
                agents,
                context_id,
            },
        })
    }

    async fn answer(
        self,
        inner: &Inner,
        head: &Parts,
        connection: &Connection,
    ) -> Result<Response<Body>, Fault> {
        let Self { sight, agent, .. } = &self;
        let json = match self.route {
            Route::Agents => {
                let trusted = &inner.trusted_proxies;
                let forwarded = inner.address.forwarded(head, connection.peer(), trusted);
                let base = forwarded.as_ref().unwrap_or(&inner.address).url();
                let mounts = inner.mounts.reached_by(self.principal);
                view::agents(base, mounts.map(|mount| (&mount.agent, mount.card.card())))
            }
            Route::Tasks(within) => {
                let (token, limit) = paging(head)?;
                let page = inner
                    .operations
                    .look_over(sight, token.as_deref(), limit)
                    .await?;
                view::tasks(sight, agent.as_ref(), within.is_some(), &page)
            }
            Route::Task(_, id) => {
                let id = decode(id, Plus::Plus).ok_or(Refusal::NoSuchPath)?;
                let seen = inner.operations.look(sight, &id).await?;
                let seen = seen.ok_or_else(|| EngineError::TaskNotFound {
                    id: id.into_owned(),
                })?;
                view::task(&seen)
            }
            Route::Events(_) => {
                let hello = view::hello(sight, agent.as_ref());
                let source = inner.operations.follow_all(self.sight);
                return Ok(stream::open(hello, source, connection, &inner.limits));
            }
        };
        let mut response = reply::whole(StatusCode::OK, reply::JSON, json);
        response
            .headers_mut()
            .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Ok(response)
    }
}

/// Which page is asked for, and how long it may be.
fn paging(head: &Parts) -> Result<(Option<String>, usize), Violations> {
    let parameter = |name| query::find(head.uri.query(), name);
    let token = parameter("pageToken")?.map(|token| token.into_owned());
    let limit = match parameter("pageSize")? {
        None => PAGE_MAX,
        Some(text) => text
            .parse()
            .ok()
            .filter(|size| (1..=PAGE_MAX).contains(size))
            .ok_or_else(|| {
                Violations::one("pageSize", format!("is a number from 1 to {PAGE_MAX}"))
            })?,
    };
    Ok((token, limit))
}
