//! What a task produces.

use crate::wire::message;
use crate::{Metadata, Part};

message! {
    /// One result of a task.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Artifact {
        /// Its name inside the task.
        pub artifact_id: String = 1 "artifactId" R,
        /// A name for people.
        pub name: String = 2 "name",
        /// A description for people.
        pub description: String = 3 "description",
        /// The content.
        pub parts: Vec<Part> = 4 "parts" R,
        /// Free content.
        pub metadata: Option<Metadata> = 5 "metadata",
        /// The extensions that contributed to it.
        pub extensions: Vec<String> = 6 "extensions",
    }
}
