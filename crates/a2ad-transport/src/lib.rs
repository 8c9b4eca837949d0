//! Who calls us: the listener, the JSON-RPC, HTTP+JSON and gRPC bindings, event streams, the agent card and the probes.
//!
//! An [`Edge`] is put together from an engine, the agents' cards and [`Limits`], becomes an [`App`], and is served by
//! [`serve`]. The crate knows HTTP and the protocol's bindings; it knows neither how tasks are stored nor how the
//! daemon is configured, and it prints nothing.
//!
//! | path | verbs | what |
//! | --- | --- | --- |
//! | (nothing), `/` | POST | JSON-RPC 2.0, protocol 1.0 |
//! | `/message:send`, `/message:stream` | POST | HTTP+JSON, protocol 1.0 |
//! | `/tasks`, `/tasks/{id}` | GET | |
//! | `/tasks/{id}:cancel` | POST | |
//! | `/tasks/{id}:subscribe` | GET, POST | |
//! | `/tasks/{id}/pushNotificationConfigs` | GET, POST | |
//! | `/tasks/{id}/pushNotificationConfigs/{id}` | GET, DELETE | |
//! | `/extendedAgentCard` | GET | |
//! | `/.well-known/agent-card.json`, `/.well-known/agent.json` | GET, HEAD, OPTIONS | the agent card |
//!
//! All of that is there for the first agent at `/` and `/a2a`, and for every agent at `/agents/{id}`,
//! `/a2a/agents/{id}`, `/{id}` and `/a2a/{id}`. The daemon itself has:
//!
//! | path | verbs | what |
//! | --- | --- | --- |
//! | `/lf.a2a.v1.A2AService/{method}` | POST, HTTP/2 | gRPC, protocol 1.0 |
//! | `/grpc.health.v1.Health/{method}` | POST, HTTP/2 | the readiness, by gRPC |
//! | `/grpc.reflection.{v1,v1alpha}.ServerReflection/…` | POST, HTTP/2 | the schema, by gRPC |
//! | `/livez` | GET, HEAD | the process answers |
//! | `/readyz`, `/healthz` | GET, HEAD | the engine takes work and we are not draining |
//! | `/health` | GET, HEAD | `{"status":"healthy","version":…}` |
//! | `/metrics` | GET, HEAD | Prometheus text |
//! | `/monitor/agents`, `/monitor/tasks`, `/monitor/tasks/{id}` | GET, HEAD | the caller's tasks, across agents |
//! | `/monitor/agents/{id}/tasks`, `/monitor/agents/{id}/tasks/{id}` | GET, HEAD | those of one agent |
//! | `/monitor/events`, `/monitor/agents/{id}/events` | GET | what happens to them |
//!
//! A request is gRPC if its content type says so, whatever its path.
//!
//! Everything that can go wrong is a row of one table in `errors.rs`.
#![deny(missing_docs)]

mod address;
pub mod auth;
mod body;
mod call;
mod caller;
mod card;
mod door;
mod edge;
mod errors;
mod extensions;
mod follow;
mod grpc;
mod http_json;
mod jsonrpc;
mod limits;
mod listen;
mod media;
pub mod meters;
mod method;
mod monitor;
mod mounts;
mod operations;
mod percent;
mod probes;
mod query;
mod reply;
mod sse;
mod tongue;
mod version;

#[cfg(test)]
mod tests;

pub use address::{Address, Grpc};
pub use edge::{App, Edge, RenderMetrics};
pub use ipnet::IpNet;
pub use limits::Limits;
pub use listen::{Drained, serve};
pub use mounts::{Exposed, RESERVED, is_reserved};
pub use tongue::FileBytes;
