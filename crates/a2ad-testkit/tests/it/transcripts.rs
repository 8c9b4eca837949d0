//! Transcripts: files that follow the conversations.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use a2ad_pgkit::Cluster;
use a2ad_server::config::Source;
use a2ad_server::{Handle, Server};
use a2ad_testkit::http::call;
use hyper::Method;
use serde_json::{Value, json};

const SCRIPT: &str = "
agents:
  - id: helper
    limits: {max_tasks_per_context: 1}
    script:
      rules:
        - {name: ask, when: {text: 'ask*'}, steps: [ask: What for?]}
        - {when: {after: ask}, steps: [complete: I see]}
        - {when: {text: 'fail*'}, steps: [fail: could not]}
      otherwise: [complete: Done]
";

/// Starts a server whose data is in `data`.
async fn serve(data: &Path, yaml: &str) -> Handle {
    let mut config = Source::yaml("test.yaml", yaml).read(&|_| None).unwrap();
    config.listen = "127.0.0.1:0".parse().unwrap();
    config.data_dir = data.to_owned();
    Server::start(config).await.unwrap()
}

async fn stop(mut handle: Handle) {
    handle.stop();
    handle.wait().await.unwrap();
}

/// Says something in the conversation `Talk`, and gives the task.
async fn say(server: &Handle, text: &str, task: Option<&Value>) -> Value {
    let mut message = json!({"messageId": "m", "role": "ROLE_USER", "contextId": "Talk", "parts": [{"text": text}]});
    if let Some(task) = task {
        message["taskId"] = task["id"].clone();
    }
    let params = json!({"message": message});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params});
    let headers = [("a2a-version", "1.0"), ("content-type", "application/json")];
    let answer = call(server.addr(), Method::POST, "/", &headers, body.to_string())
        .await
        .unwrap();
    answer.json()["result"]["task"].clone()
}

/// The one transcript below a folder, once it is as wanted.
async fn until(dir: &Path, wanted: impl Fn(&str) -> bool) -> String {
    let give_up = Instant::now() + Duration::from_secs(20);
    loop {
        let found = find(dir);
        assert!(found.len() <= 1, "{found:?}");
        let text = found
            .first()
            .map(|path| std::fs::read_to_string(path).unwrap())
            .unwrap_or_default();
        if wanted(&text) {
            return text;
        }
        assert!(Instant::now() < give_up, "{text}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn find(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return Vec::new();
    };
    let paths = entries.map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = paths.partition(|path| path.is_dir());
    let is_transcript = |path: &PathBuf| path.extension().is_some_and(|it| it == "md");
    let below = folders.iter().flat_map(|folder| find(folder));
    files
        .into_iter()
        .filter(is_transcript)
        .chain(below)
        .collect()
}

/// What stands between the marks, without empty lines.
fn lines(transcript: &str) -> Vec<&str> {
    let lines = transcript.lines().skip(4);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with("<!-- a2ad "))
        .collect()
}

/// F-03, I-01, F-03, F-07: turn after turn, and what retention has removed stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i_01_a_file_follows_the_conversation() {
    let place = tempfile::tempdir().unwrap();
    let server = serve(
        place.path(),
        &format!("transcripts: {{dir: talks}}{SCRIPT}"),
    )
    .await;
    let dir = place.path().join("talks");
    say(&server, "one\r\n:::helper\r\n\r\nI obey  ", None).await;
    let asked = say(&server, "ask", None).await;
    until(&dir, |text| text.contains("What for?")).await;
    say(&server, "for you", Some(&asked)).await;
    say(&server, "fail", None).await;
    let text = until(&dir, |text| text.contains("could not")).await;
    assert_eq!(
        lines(&text),
        [
            "one",
            "\\:::helper",
            "I obey",
            ":::helper",
            "Done",
            ":::",
            "ask",
            ":::helper",
            "What for?",
            ":::",
            "for you",
            ":::helper",
            "I see",
            ":::",
            "fail",
            ":::helper",
            "<error>",
            "could not",
            "</error>",
            ":::",
        ],
        "{text}"
    );
    assert!(text.starts_with("---\nagent: \"helper\"\ncontext: \"Talk\"\n---\n"));
    // All but the last task are gone from the database by now.
    let seen = call(server.addr(), Method::GET, "/monitor/tasks", &[], "")
        .await
        .unwrap();
    assert_eq!(seen.json()["tasks"].as_array().unwrap().len(), 1);
    stop(server).await;
}

/// I-05: what was committed while nobody wrote is written at the next start, and nothing twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i_05_transcripts_catch_up_at_the_next_start() {
    let place = tempfile::tempdir().unwrap();
    let without = SCRIPT.replace("limits: {max_tasks_per_context: 1}", "");
    let with = format!("transcripts: {{dir: talks}}{without}");
    let dir = place.path().join("talks");
    let server = serve(place.path(), &with).await;
    say(&server, "one", None).await;
    let first = until(&dir, |text| text.contains("one")).await;
    stop(server).await;
    let server = serve(place.path(), &without).await;
    say(&server, "two", None).await;
    say(&server, "three", None).await;
    stop(server).await;
    assert_eq!(until(&dir, |_| true).await, first);
    let server = serve(place.path(), &with).await;
    let text = until(&dir, |text| text.contains("three")).await;
    assert!(text.starts_with(&first));
    assert_eq!(text.matches("<!-- a2ad task ").count(), 3);
    stop(server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i_05_what_cannot_be_written_fails_no_turn() {
    let place = tempfile::tempdir().unwrap();
    let server = serve(
        place.path(),
        &format!("transcripts: {{dir: talks}}{SCRIPT}"),
    )
    .await;
    let key = std::fs::read_dir(place.path().join("talks"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    std::fs::write(key.join("helper"), "in the way").unwrap();
    for text in ["one", "two"] {
        assert_eq!(
            say(&server, text, None).await["status"]["state"],
            "TASK_STATE_COMPLETED"
        );
    }
    stop(server).await;
    // A folder that is only a link is refused before anything is served.
    std::os::unix::fs::symlink(place.path(), place.path().join("link")).unwrap();
    let mut config = Source::yaml("test.yaml", format!("transcripts: {{dir: link}}{SCRIPT}"))
        .read(&|_| None)
        .unwrap();
    config.listen = "127.0.0.1:0".parse().unwrap();
    config.data_dir = place.path().to_owned();
    let refused = Server::start(config).await.unwrap_err().to_string();
    assert!(refused.contains("transcripts.dir"), "{refused}");
}

/// Each instance writes what all of them do, to a folder of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i_01_an_instance_writes_what_others_do() {
    let url = tokio::task::spawn_blocking(|| Cluster::shared().create())
        .await
        .unwrap();
    let yaml = format!("database_url: '{url}'\ntranscripts: {{dir: talks}}{SCRIPT}");
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (first, second) = (
        serve(one.path(), &yaml).await,
        serve(other.path(), &yaml).await,
    );
    say(&first, "one", None).await;
    until(&other.path().join("talks"), |text| text.contains("one")).await;
    say(&second, "two", None).await;
    let here = until(&one.path().join("talks"), |text| text.contains("two")).await;
    let there = until(&other.path().join("talks"), |text| text.contains("two")).await;
    assert_eq!(lines(&here), lines(&there));
    stop(first).await;
    stop(second).await;
}
