//! Who calls us: the listener, the JSON-RPC, HTTP+JSON and gRPC bindings, event streams, the agent card and the probes.
//!
//! An [`Edge`] is put together from an engine, a card and [`Limits`], becomes an [`App`], and is served by
//! [`serve`]. The crate knows HTTP and the protocol's bindings; it knows neither how tasks are stored nor how the
//! daemon is configured, and it prints nothing.
//!
//! | path | verbs | what |
//! | --- | --- | --- |
//! | `/` | POST | JSON-RPC 2.0, protocol 1.0 |
//! | `/message:send`, `/message:stream` | POST | HTTP+JSON, protocol 1.0 |
//! | `/tasks`, `/tasks/{id}` | GET | |
//! | `/tasks/{id}:cancel` | POST | |
//! | `/tasks/{id}:subscribe` | GET, POST | |
//! | `/tasks/{id}/pushNotificationConfigs` | GET, POST | |
//! | `/tasks/{id}/pushNotificationConfigs/{id}` | GET, DELETE | |
//! | `/extendedAgentCard` | GET | |
//! | `/lf.a2a.v1.A2AService/{method}` | POST, HTTP/2 | gRPC, protocol 1.0 |
//! | `/grpc.health.v1.Health/{method}` | POST, HTTP/2 | the readiness, by gRPC |
//! | `/grpc.reflection.{v1,v1alpha}.ServerReflection/…` | POST, HTTP/2 | the schema, by gRPC |
//! | `/.well-known/agent-card.json` | GET, HEAD | the agent card |
//! | `/livez` | GET, HEAD | the process answers |
//! | `/readyz`, `/healthz` | GET, HEAD | the engine takes work and we are not draining |
//! | `/health` | GET, HEAD | `{"status":"healthy","version":…}` |
//! | `/metrics` | GET, HEAD | Prometheus text |
//!
//! A request is gRPC if its content type says so, whatever its path.
//!
//! Everything that can go wrong is a row of one table in `errors.rs`.
#![deny(missing_docs)]

mod body;
mod call;
mod caller;
mod card;
mod edge;
mod errors;
mod follow;
mod grpc;
mod http_json;
mod jsonrpc;
mod limits;
mod listen;
mod media;
pub mod meters;
mod method;
mod operations;
mod probes;
mod query;
mod reply;
mod sse;
mod version;

#[cfg(test)]
mod tests;

pub use edge::{App, Edge, RenderMetrics};
pub use limits::Limits;
pub use listen::{Drained, serve};
