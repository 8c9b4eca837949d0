//! What all connections of a load do.

use std::cell::Cell;

use anyhow::{Context as _, Result};
use http::Request;

use super::request::{self, Template};
use super::{Binding, Case, Made, Making, Plan, Target, grpc};

/// Tasks to ask for again.
const MADE: usize = 1000;
/// Streams to replay.
const STREAMED: usize = 200;

pub(crate) struct Job {
    pub(crate) target: Target,
    pub(crate) requests: Requests,
    /// The headers of a gRPC call; over HTTP/1.1 they are part of the requests.
    pub(crate) grpc_head: Request<()>,
    pub(crate) case: Case,
    /// For lists, how many tasks there are in all, if that is known.
    pub(crate) total: Option<u64>,
}

pub(crate) enum Requests {
    /// A new message each time.
    Fresh(Template),
    /// Each of these in turn.
    Prepared(Vec<Prepared>, Cell<usize>),
}

impl Requests {
    fn prepared(requests: Vec<Prepared>) -> Self {
        Self::Prepared(requests, Cell::new(0))
    }
}

pub(crate) struct Prepared {
    pub(crate) request: Vec<u8>,
    /// What its answer is known by.
    pub(crate) mark: String,
}

impl Job {
    /// Makes the requests and, for some cases, the tasks that they are about.
    pub(crate) async fn prepare(plan: &Plan) -> Result<Self> {
        let (target, binding, case) = (&plan.target, plan.binding, plan.case);
        let requests = match case {
            Case::Send | Case::Burst | Case::Flush | Case::Sync => {
                Requests::Fresh(Template::new(match binding {
                    Binding::Grpc => grpc::message(target, case),
                    _ => request::message(target, binding, case.word(), None, case.streams()),
                })?)
            }
            Case::Get => about(tasks(plan, MADE).await?, |made| match binding {
                Binding::Grpc => grpc::get(target, made),
                _ => request::get(target, binding, made),
            }),
            Case::Resume => about(tasks(plan, STREAMED).await?, |made| match binding {
                Binding::Grpc => grpc::subscribe(target, made),
                _ => request::subscribe(target, binding, &made.id, Some("0")),
            }),
            Case::List => {
                tasks(plan, MADE).await?;
                let request = match binding {
                    Binding::Grpc => grpc::list(target, &plan.filter)?,
                    _ => request::list(target, binding, &plan.filter),
                };
                Requests::prepared(vec![Prepared {
                    request,
                    mark: String::new(),
                }])
            }
        };
        Ok(Self {
            target: target.clone(),
            requests,
            grpc_head: grpc::head(target, case)?,
            case,
            total: plan.filter.total,
        })
    }
}

/// The tasks that are there, or `count` new ones.
async fn tasks(plan: &Plan, count: usize) -> Result<Vec<Made>> {
    match &plan.tasks {
        Some(tasks) => Ok(tasks.clone()),
        None => {
            let making = Making::of(&plan.target, plan.case, count);
            making.make().await.context("make tasks")
        }
    }
}

fn about(tasks: Vec<Made>, request: impl Fn(&Made) -> Vec<u8>) -> Requests {
    let prepare = |made: Made| Prepared {
        request: request(&made),
        mark: made.mark,
    };
    Requests::prepared(tasks.into_iter().map(prepare).collect())
}
