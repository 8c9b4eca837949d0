//! Why a server does not start, or does not go on.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use a2ad_core::store::StoreError;
use a2ad_proto::AgentId;
use a2ad_store::OpenError;

/// Why a server did not start. Nothing of it is left running.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// There is nothing to serve.
    #[error(
        "No A2A agents configured: add one under `agents`, or start without a configuration to serve the echo agent"
    )]
    NoAgents,
    /// There is nothing for clients.
    #[error("No A2A agents exposed: remove `expose: false` from at least one")]
    NoneExposed,
    /// Two agents have the same id.
    #[error("Duplicate agent id `{0}`: give every agent an id of its own")]
    DuplicateAgent(AgentId),
    /// A path would mean two things.
    #[error("the agent id `{0}` is reserved: paths begin with that word; choose another")]
    ReservedAgent(AgentId),
    /// A card cannot be served.
    #[error("the card of agent `{agent}`: {what}")]
    Card {
        /// Whose.
        agent: AgentId,
        /// What is wrong with it.
        what: String,
    },
    /// A card file cannot be read.
    #[error("Unable to read agent card file '{}': {source}", path.display())]
    CardFile {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// A card file holds no card.
    #[error("Invalid YAML in agent card file '{}': {source}", path.display())]
    CardYaml {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: crate::config::ConfigError,
    },
    /// Nobody could say who shows it.
    #[error("`{0}` and `{1}` have the same secret: give each one of its own")]
    SameSecret(String, String),
    /// Transcripts cannot be written where they should.
    #[error("cannot write transcripts to {} ({source}): check the folder, or choose another with `transcripts.dir`", path.display())]
    Transcripts {
        /// The folder.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// Nothing runs the agent.
    #[error("the agent `{0}` has no back end")]
    NoBackend(AgentId),
    /// Two listeners want the same address.
    #[error(
        "`listen` and `grpc_listen` are both {0}: gRPC is served on `listen` anyway, so leave `grpc_listen` out"
    )]
    SameAddress(String),
    /// Everybody could call.
    #[error(
        "refusing to listen on {0} without authentication: whoever can reach it could use the agents; make a token with `a2ad token create NAME`, or say --allow-unauthenticated"
    )]
    Unauthenticated(String),
    /// The name of a header is none.
    #[error("`{0}` is not the name of a header")]
    Header(String),
    /// The tokens cannot be used.
    #[error(transparent)]
    Tokens(#[from] crate::tokens::TokensError),
    /// The address for clients is none.
    #[error(
        "`public_url` is not an address that clients could use: write it like https://agents.example.com"
    )]
    PublicUrl,
    /// The listening address cannot be had.
    #[error("cannot listen on {address} ({source}): {advice}")]
    Bind {
        /// The address as configured.
        address: String,
        /// What to do about it.
        advice: String,
        /// What the operating system says.
        source: io::Error,
    },
    /// The data directory cannot be used.
    #[error("cannot use the data directory {} ({source}): check its permissions, or choose another", path.display())]
    DataDir {
        /// The directory.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// The database cannot be used.
    #[error(transparent)]
    Database(#[from] OpenError),
    /// The shared database cannot be used.
    #[error(transparent)]
    Postgres(#[from] a2ad_store::postgres::OpenError),
    /// The database was opened, but then did not do what it should.
    #[error("the database failed at the start")]
    Store(#[from] StoreError),
    /// A bug.
    #[error("a part of the server panicked at the start; the log says where")]
    Panicked,
}

/// Why a server ended without being asked to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The database cannot be written any more, and what is on the disk is in doubt. A new start
    /// reads it afresh.
    #[error("the database stopped ({0}): check the disk, then start again")]
    StoreStopped(Arc<str>),
    /// A bug.
    #[error("a part of the server panicked; the log says where")]
    Panicked,
}
