//! Scripts, played by a real server and seen by a client.

mod conformance;
mod mistakes;
mod playing;
mod server;
