//! Messages between a client and an agent.

use crate::wire::{message, wire_enum};
use crate::{Metadata, Part};

message! {
    /// One turn of the conversation.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Message {
        /// Its name, minted by the sender.
        pub message_id: String = 1 "messageId" R,
        /// The conversation it belongs to.
        pub context_id: String = 2 "contextId",
        /// The task it is about.
        pub task_id: String = 3 "taskId",
        /// Who speaks.
        pub role: Role = 4 "role" R,
        /// What is said.
        pub parts: Vec<Part> = 5 "parts" R [Message::PARTS_MAX],
        /// Free content.
        pub metadata: Option<Metadata> = 6 "metadata",
        /// The extensions that contributed to it.
        pub extensions: Vec<String> = 7 "extensions" [Message::EXTENSIONS_MAX],
        /// Earlier tasks it refers to.
        pub reference_task_ids: Vec<String> = 8 "referenceTaskIds" [Message::REFERENCES_MAX],
    }
}

impl Message {
    /// Most parts in a message from a client.
    pub const PARTS_MAX: usize = 10_000;
    /// Most extensions that a message from a client may name.
    pub const EXTENSIONS_MAX: usize = 1_000;
    /// Most tasks that a message from a client may refer to.
    pub const REFERENCES_MAX: usize = 1_000;
}

wire_enum! {
    /// Who speaks.
    pub enum Role {
        /// Not given.
        #[default]
        Unspecified = 0 "ROLE_UNSPECIFIED",
        /// The client.
        User = 1 "ROLE_USER",
        /// The agent.
        Agent = 2 "ROLE_AGENT",
    }
}
