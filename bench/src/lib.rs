//! What a2ad costs, beside its peers: a load generator, and what runs it against all of them.
#![allow(
    clippy::print_stdout,
    reason = "tables and progress are what this program is for"
)]

pub mod catalogue;
pub mod cluster;
mod disk;
pub mod histogram;
pub mod load;
pub mod machine;
pub mod process;
mod record;
pub mod run;
pub mod scale;
pub mod server;
pub mod smoke;
mod table;
