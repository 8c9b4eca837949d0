//! What every server is asked to do.

use crate::catalogue::Peer;
use crate::load::{Binding, Case, Target};

/// One thing to measure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measure {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// Its name in tables.
    pub(crate) title: &'static str,
    pub(crate) case: Case,
    pub(crate) binding: Binding,
    pub(crate) connections: usize,
    /// Whether it is for a2ad alone.
    pub(crate) ours_only: bool,
    /// The same over JSON-RPC, to compare a binding with.
    pub(crate) over_json_rpc: Option<&'static str>,
}

/// What holds streams open, which is measured in another way.
pub(crate) const IDLE: &str = "idle";

const fn shared(
    name: &'static str,
    title: &'static str,
    case: Case,
    connections: usize,
) -> Measure {
    Measure {
        name,
        title,
        case,
        binding: Binding::JsonRpc,
        connections,
        ours_only: false,
        over_json_rpc: None,
    }
}

const fn ours(
    name: &'static str,
    title: &'static str,
    case: Case,
    binding: Binding,
    over_json_rpc: Option<&'static str>,
) -> Measure {
    Measure {
        name,
        title,
        case,
        binding,
        connections: 32,
        ours_only: true,
        over_json_rpc,
    }
}

/// All of them, in the order in which they are done: what reads comes first, while the stores are small and alike.
pub(crate) const MEASURES: &[Measure] = &[
    shared("get", "GetTask, 32 connections", Case::Get, 32),
    shared(
        "list",
        "ListTasks, a page of 50, 32 connections",
        Case::List,
        32,
    ),
    shared("send", "SendMessage, 32 connections", Case::Send, 32),
    shared("send-256", "SendMessage, 256 connections", Case::Send, 256),
    shared(
        "burst",
        "stream of 20 events at once, 32 connections",
        Case::Burst,
        32,
    ),
    shared(
        "flush",
        "stream of 20 events one by one, 32 connections",
        Case::Flush,
        32,
    ),
    ours(
        "sync",
        "stream of 20 events, each awaited",
        Case::Sync,
        Binding::JsonRpc,
        Some("flush"),
    ),
    ours(
        "resume",
        "replay of 20 events, 32 connections",
        Case::Resume,
        Binding::JsonRpc,
        None,
    ),
    ours(
        "http-json-get",
        "GetTask over HTTP+JSON",
        Case::Get,
        Binding::HttpJson,
        Some("get"),
    ),
    ours(
        "http-json-send",
        "SendMessage over HTTP+JSON",
        Case::Send,
        Binding::HttpJson,
        Some("send"),
    ),
    ours(
        "http-json-burst",
        "stream of 20 events over HTTP+JSON",
        Case::Burst,
        Binding::HttpJson,
        Some("burst"),
    ),
    ours(
        "grpc-get",
        "GetTask over gRPC",
        Case::Get,
        Binding::Grpc,
        Some("get"),
    ),
    ours(
        "grpc-send",
        "SendMessage over gRPC",
        Case::Send,
        Binding::Grpc,
        Some("send"),
    ),
    ours(
        "grpc-burst",
        "stream of 20 events over gRPC",
        Case::Burst,
        Binding::Grpc,
        Some("burst"),
    ),
];

impl Measure {
    /// Whether this server can do it.
    pub(crate) fn is_for(&self, peer: &Peer) -> bool {
        peer.ours || !self.ours_only
    }

    /// The agent that it is asked of.
    pub(crate) fn target(&self, peer: &Peer, server: &Target) -> Target {
        server.at(match self.case {
            Case::Burst | Case::Flush | Case::Sync | Case::Resume => peer.stream_path(),
            Case::Send | Case::Get | Case::List => peer.echo_path(),
        })
    }

    /// Whether it leaves something on a disk.
    pub(crate) fn writes(&self) -> bool {
        matches!(
            self.case,
            Case::Send | Case::Burst | Case::Flush | Case::Sync
        )
    }
}
