use std::io::{BufRead as _, BufReader, Read as _};
use std::time::Instant;

use serde_json::{Value, json};

use crate::daemon::{Daemon, PATIENCE, folder};

const WORDS: usize = 60;

/// An agent that needs some seconds for [`WORDS`] words, and a server that does not wait for it.
fn slow(folder: &std::path::Path, drain: &str) -> Daemon {
    let config =
        format!("drain: {drain}\nagents: [{{id: slow, echo: {{words: true, delay: 50ms}}}}]\n");
    std::fs::write(folder.join("a2ad.yaml"), config).unwrap();
    Daemon::start(folder, &[])
}

fn text() -> String {
    vec!["word"; WORDS].join(" ")
}

/// Opens a stream and reads it up to the first word; answers the reader and the task's id.
fn begun(daemon: &Daemon) -> (BufReader<std::net::TcpStream>, String) {
    let mut reader = BufReader::new(daemon.stream(&text()));
    let mut line = String::new();
    let mut id = String::new();
    while !line.contains("artifactUpdate") {
        line.clear();
        assert_ne!(
            reader.read_line(&mut line).unwrap(),
            0,
            "the stream ended early"
        );
        if let Some(data) = line.strip_prefix("data: ") {
            let event: Value = serde_json::from_str(data).unwrap();
            if let Some(found) = event["result"]["task"]["id"].as_str() {
                id = found.to_owned();
            }
        }
    }
    (reader, id)
}

fn rest(mut reader: BufReader<std::net::TcpStream>) -> String {
    let mut rest = String::new();
    reader.read_to_string(&mut rest).unwrap();
    rest
}

#[test]
fn sigterm_ends_a_stream_after_a_whole_event_and_the_next_start_goes_on() {
    let folder = folder();
    let daemon = slow(folder.path(), "100ms");
    let (reader, id) = begun(&daemon);
    daemon.signal("-TERM");
    let rest = rest(reader);
    let (code, log) = daemon.wait();
    assert_eq!(code, Some(0), "{log}");
    // The last chunk of HTTP is there, and what came before it ends an event.
    let body = rest.strip_suffix("0\r\n\r\n").expect("the stream was cut");
    assert!(body.ends_with("\n\n\r\n"), "{body:?}");
    assert!(!body.contains("COMPLETED"));

    let daemon = Daemon::start(folder.path(), &[]);
    let begin = Instant::now();
    let task = loop {
        let task = daemon.call("GetTask", &json!({"id": id}));
        if task["status"]["state"] == "TASK_STATE_COMPLETED" {
            break task;
        }
        assert!(begin.elapsed() < PATIENCE, "{task}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    let parts = task["artifacts"][0]["parts"].as_array().unwrap();
    let answer: String = parts
        .iter()
        .filter_map(|part| part["text"].as_str())
        .collect();
    assert_eq!(answer, text());
}

#[test]
fn a_turn_that_is_done_in_time_is_not_cut_off() {
    let folder = folder();
    let daemon = slow(folder.path(), "30s");
    let (reader, _) = begun(&daemon);
    daemon.signal("-TERM");
    assert!(rest(reader).contains("TASK_STATE_COMPLETED"));
    assert_eq!(daemon.wait().0, Some(0));
}

#[test]
fn an_idle_server_stops_at_once() {
    let folder = folder();
    let daemon = slow(folder.path(), "30s");
    let begin = Instant::now();
    daemon.signal("-INT");
    assert_eq!(daemon.wait().0, Some(0));
    assert!(begin.elapsed().as_secs() < 10);
}

#[test]
fn a_second_signal_does_not_wait() {
    let folder = folder();
    let daemon = slow(folder.path(), "30s");
    let (reader, _) = begun(&daemon);
    daemon.signal("-INT");
    // The first one has been heard when readiness is gone.
    let begin = Instant::now();
    while daemon.get("/readyz").0 == 200 {
        assert!(begin.elapsed() < PATIENCE);
    }
    daemon.signal("-INT");
    let (code, error) = daemon.wait();
    assert_eq!(code, Some(1), "{error}");
    assert!(error.contains("stopped by a second signal"), "{error}");
    drop(reader);
}

#[test]
fn a_stop_that_arrives_twice_is_one_stop() {
    let folder = folder();
    let daemon = slow(folder.path(), "20s");
    let (reader, _) = begun(&daemon);
    // As GNU timeout does: the process, then its group.
    daemon.signal("-TERM");
    daemon.signal("-TERM");
    let rest = rest(reader);
    let (code, log) = daemon.wait();
    assert_eq!(code, Some(0), "{log}");
    assert!(
        rest.contains("TASK_STATE_COMPLETED"),
        "the turn could finish: {rest}"
    );
}
