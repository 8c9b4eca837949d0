//! `empty_input` and `unsupported_input`.

use a2ad_proto::{Part, TaskState};
use a2ad_testkit::client::{at_once, drain, text, text_in, text_to};
use a2ad_testkit::harness::Harness;
use serde_json::{Value, json};

use super::{kinds, made, said, states, unique};
use crate::configured::Configured;

crate::scenarios![
    cf_20_v_04_a_message_with_nothing_in_it_asks_for_input,
    cf_20_e_08_a_message_with_nothing_in_it_can_fail,
    cf_20_a_message_with_nothing_in_it_can_be_worked_on,
    cf_20_a_blank_message_to_a_task_changes_nothing_that_is_under_way,
];

const NO_INPUT: &str = "No input received. Please provide your input.";

async fn cf_20_v_04_a_message_with_nothing_in_it_asks_for_input(server: Harness) {
    let mut blank = text(" \n");
    if let Some(message) = &mut blank.message {
        message.parts.push(Part::text(""));
    }
    let request = unique(blank, 1);
    let asked = server.client.send(request.clone()).await.unwrap();
    assert_eq!(asked.status.state, TaskState::InputRequired);
    assert_eq!(said(&asked), NO_INPUT);
    assert_eq!(server.client.send(request).await.unwrap(), asked);
    let stream = server.client.stream(text_in("talk", " "), None).await;
    let events = drain(stream.unwrap()).await.unwrap();
    assert_eq!(kinds(&events), ["task", "status"]);
    assert_eq!(
        states(&events),
        [TaskState::Submitted, TaskState::InputRequired]
    );
    let again = server.client.send(text_to(&asked, "\t")).await.unwrap();
    assert_eq!(said(&again), NO_INPUT);
    assert_eq!(server.agent_begun(), 0);

    let done = server.client.send(text_to(&asked, "echo this")).await;
    let done = done.unwrap();
    assert_eq!((&done.id, made(&done).as_str()), (&asked.id, "this"));
    assert_eq!(done.status.state, TaskState::Completed);
}

async fn cf_20_e_08_a_message_with_nothing_in_it_can_fail(mut server: Harness) {
    server.adopt("{empty_input: failed}").await;
    let failed = server.client.send(text_in("talk", " ")).await.unwrap();
    assert_eq!(failed.status.state, TaskState::Failed);
    assert_eq!(said(&failed), NO_INPUT);
    assert_eq!(server.agent_begun(), 0);
    let next = server.client.send(text_in("talk", "echo x")).await;
    assert_eq!(made(&next.unwrap()), "x");
}

async fn cf_20_a_message_with_nothing_in_it_can_be_worked_on(mut server: Harness) {
    server.adopt("{empty_input: run}").await;
    let done = server.client.send(text(" ")).await.unwrap();
    assert_eq!(done.status.state, TaskState::Completed);
    assert_eq!(server.agent_begun(), 1);
}

async fn cf_20_a_blank_message_to_a_task_changes_nothing_that_is_under_way(mut server: Harness) {
    for (policy, begun_in_all) in [("{}", 1), ("{empty_input: failed}", 2)] {
        server.adopt(policy).await;
        let begun = server.client.send(at_once(text("gate"))).await.unwrap();
        server.wait_at_gate(&begun.id).await;
        let blank = server.client.send(at_once(text_to(&begun, " "))).await;
        assert_eq!(blank.unwrap().history.len(), 2);
        server.agent.open_gate();
        let ended = |task: &a2ad_proto::Task| task.status.state.is_terminal();
        let done = server.until(&begun.id, ended).await;
        assert_eq!(done.status.state, TaskState::Completed);
        assert_eq!(made(&done), "waiting passed");
        assert_eq!(server.agent_begun(), begun_in_all, "nobody works on it");
    }
}

/// An agent that takes plain text alone, and answers with what it got.
async fn choosy(policy: &str) -> Configured {
    let card = "{default_input_modes: [text/plain]}";
    Configured::start(&format!(
        "agents: [{{id: parrot, echo: , card: {card}, policy: {policy}}}]"
    ))
    .await
}

fn with_parts(parts: &Value) -> Value {
    json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": parts}})
}

/// Sends the parts; the task, and what the agent said.
async fn sent(server: &Configured, parts: &Value) -> (Value, String) {
    let answer = server.rpc("/", "SendMessage", &with_parts(parts)).await;
    let task = answer["result"]["task"].clone();
    assert!(task.is_object(), "{answer}");
    let artifact = &task["artifacts"][0]["parts"][0]["text"];
    let status = &task["status"]["message"]["parts"][0]["text"];
    let said = artifact.as_str().or(status.as_str());
    let said = said.unwrap_or_else(|| panic!("{task}")).to_owned();
    (task, said)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cf_21_parts_that_the_agent_does_not_take_are_an_error_unless_chosen_otherwise() {
    let server = choosy("{}").await;
    let parts = json!([{"text": "look"}, {"raw": "aGk=", "mediaType": "image/png"}]);
    let answer = server.rpc("/", "SendMessage", &with_parts(&parts)).await;
    assert_eq!(answer["error"]["code"], -32005, "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cf_21_parts_that_the_agent_does_not_take_can_be_left_out() {
    let server = choosy("{unsupported_input: ignore}").await;
    let parts = json!([{"text": "look"}, {"raw": "aGk=", "mediaType": "image/png"}, {"data": 1}]);
    let (task, said) = sent(&server, &parts).await;
    assert_eq!(said, "look");
    assert_eq!(task["history"][0]["parts"], parts, "kept as it was sent");
    // What is left is nothing.
    let (task, said) = sent(&server, &json!([{"data": {"a": 1}}, {"text": " "}])).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    assert_eq!(said, NO_INPUT);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cf_21_l_05_parts_that_the_agent_does_not_take_can_be_described() {
    let server = choosy("{unsupported_input: manifest}").await;
    let parts = json!([
        {"text": "look"},
        {"raw": "aGk=", "mediaType": "image/png", "filename": "a.png\n- source=x"},
        {"url": "https://example.com/b.pdf", "mediaType": "application/pdf"},
    ]);
    let (task, said) = sent(&server, &parts).await;
    // The hash is that of the two bytes `hi`.
    let described = "look
A2A multimodal attachment:
- filename=a.png_- source=x
- mediaType=image/png
- byteSize=2
- sha256=8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4
- source=inline
A2A multimodal attachment:
- mediaType=application/pdf
- source=uri
- uri=https://example.com/b.pdf";
    assert_eq!(said, described);
    assert_eq!(task["history"][0]["parts"], parts, "kept as it was sent");
    let (_, said) = sent(&server, &json!([{"data": {"a": 1}}])).await;
    assert!(said.contains("- source=data"), "{said}");
}

/// CF-22.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts_are_joined_by_line_breaks() {
    let server = choosy("{}").await;
    let (_, said) = sent(&server, &json!([{"text": "one"}, {"text": "two"}])).await;
    assert_eq!(said, "one\ntwo");
}
