//! What the tests of a2ad share: a client that trusts nothing, agents that do as they are told,
//! and a server on a free port.
#![expect(
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test kit fails loudly and reports to whoever runs it"
)]

pub mod agents;
pub mod client;
pub mod golden;
pub mod grpc;
pub mod harness;
pub mod http;
pub mod kill;
pub mod proxy;
