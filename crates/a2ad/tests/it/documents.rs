//! What is written about the program is true.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::daemon::{Daemon, folder, run};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

fn printed(words: &[&str]) -> String {
    let output = run(folder().path(), words);
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_help_is_the_documented_one() {
    let page = read("docs/command.md");
    for words in [
        &["--help"][..],
        &["serve", "--help"],
        &["verify", "--help"],
        &["doctor", "--help"],
        &["db", "--help"],
        &["db", "status", "--help"],
        &["db", "migrate", "--help"],
        &["db", "copy", "--help"],
        &["config", "--help"],
        &["config", "check", "--help"],
        &["config", "schema", "--help"],
    ] {
        let help = printed(words);
        assert!(
            page.contains(help.trim_end()),
            "run `cargo xtask generate`; {words:?} has become:\n{help}"
        );
    }
}

#[test]
fn the_schema_is_the_documented_one() {
    assert!(
        printed(&["config", "schema"]) == read("docs/a2ad.schema.json"),
        "run `cargo xtask generate`"
    );
}

#[test]
fn the_version_is_printed() {
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(printed(&["--version"]), format!("a2ad {version}\n"));
}

#[test]
fn no_configuration_is_a_configuration() {
    assert_eq!(
        printed(&["config", "check"]),
        "no configuration file: ok, serves echo\n"
    );
}

/// The commands of the README, in order, against a real server.
#[test]
fn the_readme_keeps_its_word() {
    if Command::new("curl").arg("--version").output().is_err() {
        return;
    }
    let folder = folder();
    let mut daemon = Daemon::start(folder.path(), &[]);
    let readme = read("README.md");
    let blocks = readme.split("```sh\n").skip(1);
    let calls: Vec<&str> = blocks
        .filter_map(|block| block.split("```").next())
        .filter(|block| block.starts_with("curl "))
        .collect();
    assert_eq!(calls.len(), 4);

    let mut task = String::new();
    for (call, expected) in calls.iter().zip([
        &["TASK_STATE_COMPLETED", "Hello, agent"][..],
        &["id: 1", "TASK_STATE_COMPLETED", "Hello, stream"],
        &["artifactUpdate", "TASK_STATE_COMPLETED", "Hello, stream"],
        &["TASK_STATE_COMPLETED", "Hello, stream"],
    ]) {
        if call.contains("GetTask") {
            daemon.kill();
            daemon = Daemon::start(folder.path(), &[]);
        }
        let call = call.replace("127.0.0.1:41240", &daemon.address);
        let output = Command::new("bash")
            .args(["-c", &call])
            .env("TASK", &task)
            .output()
            .unwrap();
        let answer = String::from_utf8(output.stdout).unwrap();
        for word in expected {
            assert!(answer.contains(word), "{call}\n{answer}");
        }
        if let Some(id) = answer.split("\"task\":{\"id\":\"").nth(1) {
            task = id.split('"').next().unwrap().to_owned();
        }
    }
}

/// What the image asks, once in a while, to learn whether its server is ready.
#[test]
fn the_health_check_of_the_image_tells_a_server_from_none() {
    if Command::new("bash").arg("--version").output().is_err() {
        return;
    }
    let image = read("deploy/Dockerfile");
    let (_, check) = image.split_once("HEALTHCHECK ").unwrap();
    let (_, check) = check.split_once("CMD ").unwrap();
    let words: Vec<String> = serde_json::from_str(check.lines().next().unwrap()).unwrap();
    let healthy = |address: &str| {
        let (host, port) = address.split_once(':').unwrap();
        let script = words[2].replace("127.0.0.1/41240", &format!("{host}/{port}"));
        assert_ne!(script, words[2]);
        let mut command = Command::new(&words[0]);
        command
            .args([&words[1], &script])
            .stderr(std::process::Stdio::null());
        command.status().unwrap().success()
    };
    let folder = folder();
    let daemon = Daemon::start(folder.path(), &[]);
    let address = daemon.address.clone();
    assert!(healthy(&address));
    daemon.kill();
    assert!(!healthy(&address));
}
