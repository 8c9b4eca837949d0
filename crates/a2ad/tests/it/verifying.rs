use serde_json::Value;

use crate::daemon::{Daemon, a2ad, fails, folder, message, run};

#[test]
fn a_sound_database_is_said_to_be_sound() {
    let folder = folder();
    let daemon = Daemon::start(folder.path(), &[]);
    daemon.call("SendMessage", &message("one"));
    daemon.call("SendMessage", &message("two"));
    daemon.kill();

    let output = run(folder.path(), &["verify"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(
        text.starts_with("a2ad-data/a2ad.db: sound; 2 tasks, "),
        "{text}"
    );

    let output = run(folder.path(), &["verify", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&report["sound"], &report["tasks"]),
        (&true.into(), &2.into())
    );
}

#[test]
fn a_damaged_database_is_not() {
    let folder = folder();
    let daemon = Daemon::start(folder.path(), &[]);
    daemon.call("SendMessage", &message("find this again"));
    daemon.signal("-INT");
    assert_eq!(daemon.wait().0, Some(0));

    let path = folder.path().join("a2ad-data/a2ad.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let word = b"find this again";
    let places: Vec<usize> = (0..bytes.len() - word.len())
        .filter(|&at| bytes[at..].starts_with(word))
        .collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at] = b'F';
    }
    std::fs::write(&path, bytes).unwrap();

    let error = fails(&mut a2ad(folder.path(), &["verify"]), 1);
    assert!(error.contains("is not sound"), "{error}");
    let output = run(folder.path(), &["verify", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["sound"], false);
    assert!(report["problems"][0]["what"].is_string());
}

#[test]
fn a_database_that_is_not_there_is_an_error() {
    let folder = folder();
    fails(&mut a2ad(folder.path(), &["verify"]), 4);
    assert!(!folder.path().join("a2ad-data").exists());
}
