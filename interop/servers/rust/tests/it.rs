//! The server lives as long as its input.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

#[test]
fn it_says_where_its_card_is_and_ends_with_its_input() {
    let mut server = Command::new(env!("CARGO_BIN_EXE_a2ad-interop-server"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut output = BufReader::new(server.stdout.take().unwrap());
    output.read_line(&mut said).unwrap();
    assert!(said.starts_with("http://127.0.0.1:"), "{said}");
    assert!(said.ends_with("/.well-known/agent-card.json\n"), "{said}");
    drop(server.stdin.take());
    assert!(server.wait().unwrap().success());
}
