//! SendStreamingMessage, SubscribeToTask, and picking up where one left off.

use a2ad_proto::{Part, SendMessageConfiguration, StreamResponse, TaskState};
use a2ad_testkit::client::{Event, at_once, drain, text, text_to};
use a2ad_testkit::harness::Harness;

crate::scenarios![
    stream_01_opens_with_the_task_and_ends_with_its_end,
    stream_02_a_continued_task_opens_with_its_snapshot,
    stream_05_all_streams_see_the_same,
    stream_07_updates_carry_both_ids,
    stream_08_a_question_ends_the_senders_stream_but_not_a_subscribers,
    sub_01_opens_with_the_task_as_it_is,
    sub_02_an_ended_task_cannot_be_followed,
    sub_03_an_interrupted_task_can_be_followed,
    a_cut_stream_goes_on_after_its_last_frame,
    an_ended_task_is_replayed_from_any_number,
    a_number_beyond_the_end_is_refused,
    a_repeated_stream_is_replayed,
    a_repeated_stream_ends_where_the_first_did,
    hist_02_the_opening_task_honours_history_length,
    a_long_stream_arrives_whole,
    a_reader_that_lags_loses_nothing,
];

fn states(events: &[Event]) -> Vec<TaskState> {
    events
        .iter()
        .filter_map(|event| match &event.response {
            StreamResponse::Task(task) => Some(task.status.state),
            StreamResponse::StatusUpdate(update) => Some(update.status.state),
            StreamResponse::ArtifactUpdate(_) | StreamResponse::Message(_) => None,
        })
        .collect()
}

fn streamed_text(events: &[Event]) -> String {
    let mut text = String::new();
    for event in events {
        if let StreamResponse::ArtifactUpdate(update) = &event.response {
            if !update.append {
                text.clear();
            }
            text.extend(update.artifact.parts.iter().filter_map(Part::as_text));
        }
    }
    text
}

/// STREAM-03, STREAM-04, E-04, G-03.
async fn stream_01_opens_with_the_task_and_ends_with_its_end(server: Harness) {
    let stream = server
        .client
        .stream(text("words one two three"), None)
        .await
        .unwrap();
    let events = drain(stream).await.unwrap();
    assert_eq!(
        states(&events),
        [
            TaskState::Submitted,
            TaskState::Working,
            TaskState::Completed
        ]
    );
    assert!(matches!(events[0].response, StreamResponse::Task(_)));
    assert_eq!(events[0].number, 1);
    assert!(events.is_sorted_by(|a, b| a.number < b.number));
    assert_eq!(streamed_text(&events), "one two three");
}

async fn stream_02_a_continued_task_opens_with_its_snapshot(server: Harness) {
    let task = server.client.send(text("ask what?")).await.unwrap();
    let stream = server
        .client
        .stream(text_to(&task, "echo this"), None)
        .await
        .unwrap();
    let events = drain(stream).await.unwrap();
    let StreamResponse::Task(opening) = &events[0].response else {
        panic!("{:?}", events[0]);
    };
    assert_eq!(opening.id, task.id);
    assert_eq!(opening.history.len(), 3);
    assert_eq!(states(&events).last(), Some(&TaskState::Completed));
}

/// G-09.
async fn stream_05_all_streams_see_the_same(server: Harness) {
    let task = server.client.send(at_once(text("gate"))).await.unwrap();
    let one = server.client.subscribe(&task.id, Some(0)).await.unwrap();
    let two = server.client.subscribe(&task.id, Some(0)).await.unwrap();
    let dropped = server.client.subscribe(&task.id, None).await.unwrap();
    drop(dropped);
    server.wait_at_gate(&task.id).await;
    server.agent.open_gate();
    let one = drain(one).await.unwrap();
    let two = drain(two).await.unwrap();
    assert_eq!(one, two);
    assert_eq!(states(&one).last(), Some(&TaskState::Completed));
}

async fn stream_07_updates_carry_both_ids(server: Harness) {
    let stream = server.client.stream(text("words a b"), None).await.unwrap();
    let events = drain(stream).await.unwrap();
    let StreamResponse::Task(task) = &events[0].response else {
        panic!("{:?}", events[0]);
    };
    for event in &events[1..] {
        let (task_id, context_id) = match &event.response {
            StreamResponse::StatusUpdate(update) => (&update.task_id, &update.context_id),
            StreamResponse::ArtifactUpdate(update) => (&update.task_id, &update.context_id),
            StreamResponse::Task(_) | StreamResponse::Message(_) => panic!("{event:?}"),
        };
        assert_eq!((task_id, context_id), (&task.id, &task.context_id));
    }
}

async fn stream_08_a_question_ends_the_senders_stream_but_not_a_subscribers(server: Harness) {
    let stream = server.client.stream(text("ask what?"), None).await.unwrap();
    let events = drain(stream).await.unwrap();
    assert_eq!(states(&events).last(), Some(&TaskState::InputRequired));
    let StreamResponse::Task(task) = &events[0].response else {
        panic!("{:?}", events[0]);
    };
    let following = server.client.subscribe(&task.id, None).await.unwrap();
    server
        .client
        .send(text_to(task, "ask again?"))
        .await
        .unwrap();
    server.client.send(text_to(task, "echo end")).await.unwrap();
    let events = drain(following).await.unwrap();
    assert_eq!(
        states(&events),
        [
            TaskState::InputRequired,
            TaskState::Working,
            TaskState::InputRequired,
            TaskState::Working,
            TaskState::Completed
        ]
    );
    // An authorisation comes from elsewhere: the sender's stream stays open for it.
    let mut stream = server.client.stream(text("auth"), None).await.unwrap();
    let mut task_id = String::new();
    while let Some(event) = stream.next().await.unwrap() {
        match event.response {
            StreamResponse::Task(task) => task_id = task.id,
            StreamResponse::StatusUpdate(update)
                if update.status.state == TaskState::AuthRequired =>
            {
                server.client.cancel(&task_id).await.unwrap();
            }
            StreamResponse::StatusUpdate(update) if update.status.state.is_terminal() => {
                assert_eq!(update.status.state, TaskState::Canceled);
                task_id.clear();
            }
            _ => {}
        }
    }
    assert!(task_id.is_empty(), "the stream ended before the task");
}

/// G-04.
async fn sub_01_opens_with_the_task_as_it_is(server: Harness) {
    let task = server.client.send(at_once(text("gate"))).await.unwrap();
    server.wait_at_gate(&task.id).await;
    let mut stream = server.client.subscribe(&task.id, None).await.unwrap();
    let first = stream.next().await.unwrap().unwrap();
    let StreamResponse::Task(now) = &first.response else {
        panic!("{first:?}");
    };
    assert_eq!(now.artifacts[0].parts[0].as_text(), Some("waiting "));
    server.agent.open_gate();
    let rest = drain(stream).await.unwrap();
    assert!(rest.iter().all(|event| event.number > first.number));
    assert_eq!(states(&rest), [TaskState::Completed]);
}

/// CF-14.
async fn sub_02_an_ended_task_cannot_be_followed(server: Harness) {
    let task = server.client.send(text("echo x")).await.unwrap();
    let Err(refused) = server.client.subscribe(&task.id, None).await else {
        panic!("an ended task was followed");
    };
    assert_eq!(refused.reason(), "UNSUPPORTED_OPERATION");
    let Err(refused) = server.client.subscribe("nobody", None).await else {
        panic!("an unknown task was followed");
    };
    assert_eq!(refused.reason(), "TASK_NOT_FOUND");
}

async fn sub_03_an_interrupted_task_can_be_followed(server: Harness) {
    let task = server.client.send(text("ask what?")).await.unwrap();
    let stream = server.client.subscribe(&task.id, None).await.unwrap();
    server
        .client
        .send(text_to(&task, "echo this"))
        .await
        .unwrap();
    let events = drain(stream).await.unwrap();
    assert_eq!(
        states(&events),
        [
            TaskState::InputRequired,
            TaskState::Working,
            TaskState::Completed
        ]
    );
}

/// G-05.
async fn a_cut_stream_goes_on_after_its_last_frame(server: Harness) {
    let words = "words a b c d e f g h i j k l m n o p q r s t u v w x y z";
    let whole = server.client.stream(text(words), None).await.unwrap();
    let whole = drain(whole).await.unwrap();
    let expected = streamed_text(&whole);
    for cut in 1..6 {
        let mut stream = server.client.stream(text(words), None).await.unwrap();
        let mut events = Vec::new();
        for _ in 0..cut {
            events.push(stream.next().await.unwrap().unwrap());
        }
        drop(stream);
        let StreamResponse::Task(task) = events[0].response.clone() else {
            panic!("{:?}", events[0]);
        };
        let after = events[cut - 1].number;
        let rest = server
            .client
            .subscribe(&task.id, Some(after))
            .await
            .unwrap();
        let rest = drain(rest).await.unwrap();
        assert!(rest[0].number > after);
        assert!(!matches!(rest[0].response, StreamResponse::Task(_)));
        events.extend(rest);
        assert_eq!(streamed_text(&events), expected);
        let replay = server.client.subscribe(&task.id, Some(0)).await.unwrap();
        assert_eq!(drain(replay).await.unwrap(), events);
    }
}

async fn an_ended_task_is_replayed_from_any_number(server: Harness) {
    let stream = server
        .client
        .stream(text("words one two three"), None)
        .await
        .unwrap();
    let events = drain(stream).await.unwrap();
    let StreamResponse::Task(task) = &events[0].response else {
        panic!("{:?}", events[0]);
    };
    for (at, event) in events.iter().enumerate() {
        let replay = server
            .client
            .subscribe(&task.id, Some(event.number))
            .await
            .unwrap();
        assert_eq!(drain(replay).await.unwrap(), events[at + 1..]);
    }
}

async fn a_number_beyond_the_end_is_refused(server: Harness) {
    let task = server.client.send(text("echo x")).await.unwrap();
    let Err(refused) = server.client.subscribe(&task.id, Some(1_000)).await else {
        panic!("a number beyond the end was taken");
    };
    assert_eq!(refused.reason(), "INVALID_PARAMS");
}

/// SEND-17, CF-15.
/// CF-14, CF-15: also for a reader that has all of it, and whatever has happened in the task since.
async fn a_repeated_stream_ends_where_the_first_did(server: Harness) {
    let mut request = text("ask what?");
    let message = request.message.as_mut().unwrap();
    "0198a5b2-7c1e-7f3a-9d2e-3b1f5c7a9e11".clone_into(&mut message.message_id);
    let first = server.client.stream(request.clone(), None).await.unwrap();
    let first = drain(first).await.unwrap();
    let numbers: Vec<u64> = first.iter().map(|event| event.number).collect();
    let check = async |server: &Harness| {
        for (at, after) in numbers.iter().enumerate() {
            let again = server.client.stream(request.clone(), Some(*after)).await;
            let rest = drain(again.unwrap()).await.unwrap();
            assert_eq!(rest, first[at + 1..], "after {after}");
        }
    };
    check(&server).await;
    let StreamResponse::Task(task) = &first[0].response else {
        panic!("a stream opens with its task");
    };
    let answered = server.client.send(text_to(task, "that")).await.unwrap();
    assert!(answered.status.state.is_terminal());
    check(&server).await;
}

async fn a_repeated_stream_is_replayed(server: Harness) {
    let mut request = text("words one two three");
    request.message.as_mut().unwrap().message_id =
        "0198a5b2-7c1e-7f3a-9d2e-3b1f5c7a9e10".to_owned();
    let first = server.client.stream(request.clone(), None).await.unwrap();
    let first = drain(first).await.unwrap();
    let again = server.client.stream(request.clone(), None).await.unwrap();
    assert_eq!(drain(again).await.unwrap(), first);
    let after = first[1].number;
    let rest = server.client.stream(request, Some(after)).await.unwrap();
    assert_eq!(drain(rest).await.unwrap(), first[2..]);
    assert_eq!(server.agent_begun(), 1);
}

async fn hist_02_the_opening_task_honours_history_length(server: Harness) {
    let mut request = text("echo x");
    request.configuration = Some(SendMessageConfiguration {
        history_length: Some(0),
        ..SendMessageConfiguration::default()
    });
    let stream = server.client.stream(request, None).await.unwrap();
    let events = drain(stream).await.unwrap();
    let StreamResponse::Task(task) = &events[0].response else {
        panic!("{:?}", events[0]);
    };
    assert!(task.history.is_empty());
}

async fn a_long_stream_arrives_whole(server: Harness) {
    let stream = server.client.stream(text("burst 900"), None).await.unwrap();
    let events = drain(stream).await.unwrap();
    let artifacts = events
        .iter()
        .filter(|event| matches!(event.response, StreamResponse::ArtifactUpdate(_)))
        .count();
    assert_eq!(artifacts, 900);
}

/// STREAM-12, G-11.
async fn a_reader_that_lags_loses_nothing(server: Harness) {
    // More than the shared tail holds is written before the first frame is read.
    let stream = server.client.stream(text("burst 900"), None).await.unwrap();
    let task = server.client.send(text("echo barrier")).await.unwrap();
    assert_eq!(task.status.state, TaskState::Completed);
    let events = drain(stream).await.unwrap();
    let StreamResponse::Task(task) = &events[0].response else {
        panic!("{:?}", events[0]);
    };
    let replay = server.client.subscribe(&task.id, Some(0)).await.unwrap();
    assert_eq!(drain(replay).await.unwrap(), events);
}
