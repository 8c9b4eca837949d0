//! What each step does, which rule is played, and what a cancel and a restart make of it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::server::{Scripted, artifact_text, parts, said, state, text};

#[tokio::test]
async fn each_ending_ends_as_it_says() {
    let server = Scripted::script(
        "
rules:
  - {when: {text: ask}, steps: [ask: What?]}
  - {when: {text: auth}, steps: [auth: [Sign in, {url: https://id.example, media_type: text/html}]]}
  - {when: {text: complete}, steps: [complete: Done]}
  - {when: {text: fail}, steps: [fail: Broken]}
  - {when: {text: reject}, steps: [reject: No]}
  - {when: {text: silent}, steps: [complete: ]}
  - {when: {text: none}, steps: [status: Busy]}
",
    )
    .await;
    for (word, expected, answer) in [
        ("ask", "INPUT_REQUIRED", "What?"),
        ("auth", "AUTH_REQUIRED", "Sign in"),
        ("complete", "COMPLETED", "Done"),
        ("fail", "FAILED", "Broken"),
        ("reject", "REJECTED", "No"),
        ("silent", "COMPLETED", ""),
        ("none", "COMPLETED", ""),
        (
            "other",
            "REJECTED",
            "No rule of the script fits this message.",
        ),
    ] {
        let task = server.send(text(word)).await;
        assert_eq!((state(&task), said(&task)), (expected, answer), "{word}");
    }
    let auth = server.send(text("auth")).await;
    assert_eq!(
        auth["status"]["message"]["parts"][1],
        json!({"url": "https://id.example", "mediaType": "text/html"})
    );
    let silent = server.send(text("silent")).await;
    assert_eq!(silent["status"].get("message"), None);
}

#[tokio::test]
async fn a_message_answers_instead_of_a_task() {
    let server = Scripted::script(
        "
rules:
  - {when: {text: busy}, steps: [status: Busy, message: Done]}
  - {when: {text: slow}, steps: [wait: 30ms, message: Done]}
  - {when: {text: ask}, steps: [ask: What?]}
otherwise:
  - message: ['You said {text}', data: {words: 1}]
",
    )
    .await;
    let kinds = |events: &[Value]| -> Vec<String> {
        let kind = |event: &Value| event.as_object().unwrap().keys().next().unwrap().clone();
        events.iter().map(kind).collect()
    };
    let answer = server.answer(text("hi")).await;
    let parts = json!([{"text": "You said hi"}, {"data": {"words": 1}}]);
    assert_eq!(answer["message"]["parts"], parts);
    let task = server
        .get(&json!({"id": answer["message"]["taskId"]}))
        .await;
    assert_eq!(state(&task), "COMPLETED");
    assert_eq!(task["status"]["message"], answer["message"]);
    assert_eq!(kinds(&server.stream(text("hi")).await), ["message"]);

    // What takes a while is a task to a stream, and so is what may have to wait in line.
    let slow = server.answer(text("slow")).await;
    assert_eq!(slow["message"]["parts"], json!([{"text": "Done"}]));
    let as_task = ["task", "statusUpdate", "statusUpdate"];
    assert_eq!(kinds(&server.stream(text("slow")).await), as_task);
    let within = text("hi").within("talk");
    assert_eq!(kinds(&server.stream(within).await), as_task);

    let busy = server.send(text("busy")).await;
    assert_eq!((state(&busy), said(&busy)), ("COMPLETED", "Done"));
    let asked = server.send(text("ask")).await;
    let later = server.send(text("that").to(&asked)).await;
    assert_eq!(
        (state(&later), said(&later)),
        ("COMPLETED", "You said that")
    );
}

#[tokio::test]
async fn a_stream_shows_the_steps_in_order() {
    let server = Scripted::script(
        "
otherwise:
  - status: Thinking
  - text: {deltas: [One, ' two'], every: 400ms}
  - artifact: {id: a, name: A, description: An A, parts: [first]}
  - artifact: {id: b, chunks: [[x], [y, z]]}
  - complete: Done
",
    )
    .await;
    let events = server.stream(text("go")).await;
    let seen: Vec<Value> = events.iter().map(brief).collect();
    assert_eq!(
        Value::from(seen),
        json!([
            "TASK_STATE_SUBMITTED",
            ["TASK_STATE_WORKING", null],
            ["TASK_STATE_WORKING", "Thinking"],
            ["response", false, false, ["One"]],
            ["response", true, false, [" two"]],
            ["a", false, true, ["first"]],
            ["b", false, false, ["x"]],
            ["b", true, true, ["y", "z"]],
            ["TASK_STATE_COMPLETED", "Done"],
        ])
    );
    let task = server.get(&events[0]["task"]).await;
    assert_eq!(task["artifacts"][1]["name"], "A");
    assert_eq!(task["artifacts"][1]["description"], "An A");
    assert_eq!(artifact_text(&task, 2), "xyz");
}

fn brief(event: &Value) -> Value {
    let flag = |name: &str| event["artifactUpdate"][name].as_bool().unwrap_or(false);
    if let Some(task) = event.get("task") {
        return task["status"]["state"].clone();
    }
    if let Some(update) = event.get("statusUpdate") {
        let status = &update["status"];
        return json!([status["state"], status["message"]["parts"][0]["text"]]);
    }
    let artifact = &event["artifactUpdate"]["artifact"];
    let texts: Vec<&Value> = artifact["parts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| &part["text"])
        .collect();
    json!([
        artifact["artifactId"],
        flag("append"),
        flag("lastChunk"),
        texts
    ])
}

#[tokio::test]
async fn an_artifact_has_parts_of_any_kind() {
    let server = Scripted::script(
        "
otherwise:
  - artifact:
      id: all
      parts:
        - just text
        - {text: '# Title', media-type: text/markdown}
        - raw: |
            aGVs
            bG8
          filename: hello.txt
        - {url: 'https://example.com/{message_id}', media_type: image/png}
        - data: {n: 42, f: 1.50, s: '1.50', t: true, z: null, l: [a, -1], with-dash: x}
        - data:
",
    )
    .await;
    let task = server.send(text("go").id("m-7")).await;
    assert_eq!(
        task["artifacts"][0]["parts"],
        json!([
            {"text": "just text"},
            {"text": "# Title", "mediaType": "text/markdown"},
            {"raw": "aGVsbG8=", "filename": "hello.txt"},
            {"url": "https://example.com/m-7", "mediaType": "image/png"},
            {"data": {"n": 42, "f": 1.5, "s": "1.50", "t": true, "z": null, "l": ["a", -1], "with-dash": "x"}},
            {"data": null},
        ])
    );
}

#[tokio::test]
async fn texts_take_from_the_message() {
    let server = Scripted::script(
        "
otherwise:
  - text: 007
  - text: {words: ' for {text}'}
  - artifact: {id: a, parts: [{data: {'{text}': ['{text}', '{{text}', '{other}']}}]}
  - complete: '{message_id} {task_id} {context_id}'
",
    )
    .await;
    let task = server.send(text("a {task_id}").id("m-7")).await;
    assert_eq!(artifact_text(&task, 0), "007 for a {task_id}");
    assert_eq!(
        task["artifacts"][1]["parts"][0]["data"],
        json!({"{text}": ["a {task_id}", "{text}", "{other}"]})
    );
    let ids = [&task["id"], &task["contextId"]].map(|id| id.as_str().unwrap());
    assert_eq!(said(&task), format!("m-7 {} {}", ids[0], ids[1]));
}

#[tokio::test]
async fn waiting_takes_its_time() {
    let server = Scripted::script("otherwise: [wait: 150ms, complete: Done]").await;
    let begun = Instant::now();
    let task = server.send(text("go")).await;
    assert_eq!(said(&task), "Done");
    assert!(begun.elapsed() >= Duration::from_millis(150));
}

#[tokio::test]
async fn the_first_rule_that_fits_is_played() {
    let server = Scripted::script(
        "
rules:
  - {when: {message-id: id-*, text: '*both*'}, steps: [complete: both]}
  - {when: {message_id: id-*}, steps: [complete: id]}
  - {when: {text: [exact, '*tail']}, steps: [complete: text]}
  - {when: {media_type: image/*}, steps: [complete: image]}
  - {when: {media_type: application/json}, steps: [complete: data]}
  - {when: [{text: one}, {media_type: application/octet-stream}], steps: [complete: either]}
  - {when: {text: 'first line*', turn: first}, steps: [complete: two lines]}
  - {when: {turn: later}, steps: [complete: never]}
otherwise: [complete: otherwise]
",
    )
    .await;
    for (message, expected) in [
        (text("is both").id("id-1"), "both"),
        (text("exact").id("id-1"), "id"),
        (text("exact"), "text"),
        (text("a tail"), "text"),
        (text("exactly"), "otherwise"),
        (
            parts(json!([{"text": "see"}, {"raw": "AA==", "mediaType": "image/png"}])),
            "image",
        ),
        (parts(json!([{"data": 1}])), "data"),
        (parts(json!([{"raw": "AA=="}])), "either"),
        (text("one"), "either"),
        (
            parts(json!([{"text": "first line"}, {"text": "second"}])),
            "two lines",
        ),
        (
            parts(json!([{"url": "https://example.com/a.png"}])),
            "otherwise",
        ),
    ] {
        assert_eq!(said(&server.send(message).await), expected);
    }
}

const TALK: &str = "
rules:
  - name: start
    when: {text: talk}
    steps: [ask: first?]
  - when: {after: [start, more], text: done*}
    steps: [complete: '{text}']
  - name: more
    when: {after: [start, more]}
    steps: [ask: more?]
  - when: {text: nameless}
    steps: [ask: which?]
  - when: {turn: later}
    steps: [fail: lost]
otherwise: [complete: otherwise]
";

#[tokio::test]
async fn a_rule_can_follow_on_another() {
    let mut server = Scripted::script(TALK).await;
    let task = server.send(text("talk")).await;
    assert_eq!((state(&task), said(&task)), ("INPUT_REQUIRED", "first?"));
    for word in ["one", "talk", "three"] {
        let now = server.send(text(word).to(&task)).await;
        // In the middle of a conversation the first rule comes first, as everywhere.
        let expected = if word == "talk" { "first?" } else { "more?" };
        assert_eq!(
            (state(&now), said(&now)),
            ("INPUT_REQUIRED", expected),
            "{word}"
        );
        // Where the conversation stands is in the journal.
        server.restart().await;
    }
    let done = server.send(text("done at last").to(&task)).await;
    assert_eq!((state(&done), said(&done)), ("COMPLETED", "done at last"));
}

#[tokio::test]
async fn a_rule_that_follows_fits_nothing_else() {
    let server = Scripted::script(TALK).await;
    assert_eq!(said(&server.send(text("done")).await), "otherwise");
    let task = server.send(text("nameless")).await;
    assert_eq!(said(&server.send(text("done").to(&task)).await), "lost");
}

/// The conversation that the documentation leads through.
#[tokio::test]
async fn the_mocks_that_are_shown_do_what_is_said_of_them() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let page = std::fs::read_to_string(format!("{root}/docs/script.md")).unwrap();
    let block = page.split("```yaml\n").nth(1).unwrap();
    let shown = block.split("```").next().unwrap();
    let example = std::fs::read_to_string(format!("{root}/examples/mock.yaml")).unwrap();
    for yaml in [shown, &example] {
        let server = Scripted::start(yaml).await;
        let events = server.stream(text("Please book a trip")).await;
        let task = &events[0]["task"];
        let last = &events.last().unwrap()["statusUpdate"];
        assert_eq!(said(last), "Where do you want to go?");
        let booked = server.send(text("Lisbon").to(task)).await;
        assert_eq!(said(&booked), "Have a nice trip!");
        let response = "A window seat to Lisbon, as always.";
        assert_eq!(artifact_text(&booked, 0), response);
        let ticket = &booked["artifacts"][1]["parts"][0]["data"];
        assert_eq!(
            (&ticket["to"], &ticket["seat"]),
            (&"Lisbon".into(), &42.into())
        );

        let task = server.send(text("book!")).await;
        let failed = server.send(text("Atlantis").to(&task)).await;
        assert_eq!(said(&failed), "There are no trains to Atlantis.");
        assert_eq!(state(&failed), "FAILED");
    }
}

#[tokio::test]
async fn a_cancel_ends_every_kind_of_waiting() {
    let server = Scripted::script(
        "
rules:
  - {when: {text: wait}, steps: [text: ready, wait: 1h, fail: waited]}
  - {when: {text: hold}, steps: [text: ready, hold: ]}
  - {when: {text: text}, steps: [text: {deltas: [ready, never], every: 1h}]}
  - {when: {text: chunks}, steps: [artifact: {id: a, chunks: [[ready], [never]], every: 1h}]}
",
    )
    .await;
    for word in ["wait", "hold", "text", "chunks"] {
        let task = server.begin(text(word)).await;
        let ready = |task: &Value| artifact_text(task, 0) == "ready";
        server.until(&task, ready).await;
        let begun = Instant::now();
        let canceled = server.cancel(&task).await;
        assert_eq!(state(&canceled), "CANCELED", "{word}");
        assert_eq!(artifact_text(&server.get(&task).await, 0), "ready");
        // Long before the time that an agent has to stop.
        assert!(begun.elapsed() < Duration::from_secs(3), "{word}");
    }
}

#[tokio::test]
async fn a_restart_in_the_middle_plays_it_again_and_says_nothing_twice() {
    let mut server = Scripted::script(
        "
otherwise:
  - status: working on it
  - text: 'one '
  - artifact: {id: a, chunks: [[x], [y]]}
  - wait: 2500ms
  - text: two
  - complete: Done
",
    )
    .await;
    let task = server.begin(text("go")).await;
    server
        .until(&task, |task| artifact_text(task, 1) == "xy")
        .await;
    server.restart().await;
    let again = server.get(&task).await;
    assert_eq!(state(&again), "WORKING", "{again}");
    let done = server.until(&task, |task| state(task) == "COMPLETED").await;
    assert_eq!(said(&done), "Done");
    assert_eq!(artifact_text(&done, 0), "one two");
    assert_eq!(artifact_text(&done, 1), "xy");
    let spoken = done["history"].to_string();
    assert_eq!(spoken.matches("working on it").count(), 1, "{spoken}");
}

#[tokio::test]
async fn more_steps_than_an_agent_may_say_ahead_all_arrive() {
    let steps = "  - status: again\n".repeat(600);
    let server = Scripted::script(&format!("otherwise:\n{steps}  - complete: Done")).await;
    let events = server.stream(text("go")).await;
    assert_eq!(events.len(), 600 + 3);
    assert_eq!(brief(events.last().unwrap())[1], "Done");
}
