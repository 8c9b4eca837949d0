//! Conversations for people to read: out of the database when asked, and as files while they go on.

mod export;
mod files;
mod scribe;

pub(crate) use files::Folder;
pub(crate) use scribe::write_transcripts;

pub use export::{ExportError, Exported, export_context};
