//! Media types that an agent does not take, or that its client does not.

use a2ad_core::agent::AgentPolicy;
use a2ad_core::engine::EngineError;
use a2ad_proto::{Part, PartContent, SendMessageRequest, TaskState, Violations};
use a2ad_testkit::client::{text, text_to};

use super::{Life, World, caller, unique};

/// A world whose agent takes text and JSON and answers with text.
fn choosy() -> World {
    World::new(AgentPolicy {
        input_modes: ["text/plain", "application/json"].into_iter().collect(),
        output_modes: ["text/*"].into_iter().collect(),
        ..AgentPolicy::default()
    })
}

/// The request with a picture as its second part.
fn with_picture(mut request: SendMessageRequest) -> SendMessageRequest {
    let picture = Part {
        media_type: "image/png".to_owned(),
        ..PartContent::Raw("png".into()).into()
    };
    request.message.as_mut().unwrap().parts.push(picture);
    request
}

fn accepting(mut request: SendMessageRequest, modes: &[&str]) -> SendMessageRequest {
    let accepted = modes.iter().map(|mode| (*mode).to_owned()).collect();
    request
        .configuration
        .get_or_insert_default()
        .accepted_output_modes = accepted;
    request
}

/// What is wrong with the content of a request, which must be sent in vain either way.
fn refused(life: &Life, request: &SendMessageRequest) -> Violations {
    let caller = caller();
    let sent = life.engine.send(&caller, request.clone());
    let sent = life.run(sent).map(|_| ()).unwrap_err();
    let streamed = life.engine.stream(&caller, request.clone(), None);
    let streamed = life.run(streamed).map(|_| ()).unwrap_err();
    match (sent, streamed) {
        (
            EngineError::ContentTypeNotSupported(violations),
            EngineError::ContentTypeNotSupported(streamed),
        ) => {
            assert_eq!(violations, streamed);
            violations
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn send_09_a_part_that_the_agent_does_not_take_is_refused_before_any_work() {
    for pure in [false, true] {
        let world = choosy();
        world.agent.pure.store(pure, super::Ordering::SeqCst);
        let life = world.live();
        let violations = refused(&life, &with_picture(text("echo x")));
        let [violation] = &violations.0[..] else {
            panic!("{violations:?}");
        };
        assert_eq!(violation.field, "message.parts[1].mediaType");
        let told = &violation.description;
        assert!(told.contains("image/png"), "{told}");
        assert!(told.contains("text/plain, application/json"), "{told}");
        assert_eq!(world.begun(), 0);
        assert_eq!(life.count(TaskState::Unspecified), 0, "nothing is stored");
    }
}

#[test]
fn send_09_what_the_agent_takes_is_taken() {
    let world = choosy();
    let life = world.live();
    let mut request = text("echo x");
    let message = request.message.as_mut().unwrap();
    message.parts[0].media_type = "Text/Plain; charset=utf-8".to_owned();
    let data = a2ad_proto::Json::from_value(&serde_json::Value::Null);
    message.parts.push(Part::data(data));
    assert_eq!(life.send(request).status.state, TaskState::Completed);
}

#[test]
fn send_09_a_refused_follow_up_leaves_the_task_as_it_was() {
    let world = choosy();
    let life = world.live();
    let asked = life.send(text("ask what?"));
    let reply = text_to(&asked, "echo this");
    refused(&life, &with_picture(reply.clone()));
    refused(&life, &accepting(reply.clone(), &["image/png"]));
    assert_eq!(life.get(&asked.id).unwrap(), asked);
    assert_eq!(world.begun(), 1);
    assert_eq!(life.send(reply).status.state, TaskState::Completed);
}

#[test]
fn send_08_an_answer_that_the_client_cannot_take_is_not_begun() {
    let world = choosy();
    let life = world.live();
    let request = accepting(text("echo x"), &["image/png", "application/json"]);
    let violations = refused(&life, &request);
    assert_eq!(violations.0[0].field, "configuration.acceptedOutputModes");
    assert!(violations.0[0].description.contains("text/*"));
    assert_eq!(world.begun(), 0);
    assert_eq!(life.count(TaskState::Unspecified), 0, "nothing is stored");
    for modes in [&["image/png", "text/html"][..], &["*/*"], &["text"], &[]] {
        let done = life.send(accepting(text("echo x"), modes));
        assert_eq!(done.status.state, TaskState::Completed, "{modes:?}");
    }
}

#[test]
fn what_is_told_stays_small() {
    let world = choosy();
    let life = world.live();
    let mut request = text("echo x");
    let message = request.message.as_mut().unwrap();
    let strange = Part {
        media_type: "\u{e4}".repeat(10_000),
        ..Part::text("x")
    };
    message.parts = vec![strange; 200];
    assert!(refused(&life, &request).to_string().len() < 10_000);
}

#[test]
fn send_17_what_was_taken_once_is_answered_also_if_it_would_be_refused_now() {
    let mut world = World::new(AgentPolicy::default());
    let life = world.live();
    let request = unique(with_picture(text("echo x")));
    let first = life.send(request.clone());
    life.crash();
    world.policy = choosy().policy;
    let life = world.live();
    assert_eq!(life.send(request.clone()), first);
    assert_eq!(world.begun(), 1);
    // Another message under the same id is told what is wrong with the id.
    let mut other = request;
    other.message.as_mut().unwrap().parts[0] = Part::text("echo y");
    let refused = life.run(life.engine.send(&caller(), other));
    assert!(
        matches!(refused, Err(EngineError::InvalidParams(_))),
        "{refused:?}"
    );
}
