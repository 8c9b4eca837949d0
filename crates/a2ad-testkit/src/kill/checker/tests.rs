//! The oracle is tested before it is believed: for each invariant, a history or a store with that
//! one mistake in it goes red under that name, and without the mistake it is green.

use std::time::Duration;

use a2ad_core::keys::{Attempt, Number};
use a2ad_core::task::{Broken, Entry, Hidden, Record};
use a2ad_proto::{
    Artifact, Message, Part as MessagePart, Role, Task, TaskArtifactUpdateEvent, TaskState,
    TaskStatus, TaskStatusUpdateEvent, Timestamp,
};

use super::super::history::{Frame, History, Opened, Part, Stream, Takeover};
use super::super::stored::StoredTask;
use super::{Checker, Invariant};

const OWNER: &str = "anonymous";

/// What clients were told and what the store holds, to be doctored.
struct World {
    history: History,
    tasks: Vec<StoredTask>,
    lost_ids: Vec<String>,
    unsound: Vec<String>,
    turns_left: u64,
    dead: u64,
    settled: bool,
}

fn message(id: &str, text: &str) -> Message {
    Message {
        message_id: id.to_owned(),
        role: Role::User,
        parts: vec![MessagePart::text(text)],
        ..Message::default()
    }
}

fn status(id: &str, context_id: &str, state: TaskState, at: i64) -> Record {
    Record::Status(TaskStatusUpdateEvent {
        task_id: id.to_owned(),
        context_id: context_id.to_owned(),
        status: TaskStatus {
            state,
            message: None,
            timestamp: Some(Timestamp::from_millis(at)),
        },
        metadata: None,
    })
}

fn chunk(id: &str, context_id: &str, text: &str, append: bool) -> Record {
    Record::Artifact(TaskArtifactUpdateEvent {
        task_id: id.to_owned(),
        context_id: context_id.to_owned(),
        artifact: Artifact {
            artifact_id: "response".to_owned(),
            parts: vec![MessagePart::text(text)],
            ..Artifact::default()
        },
        append,
        last_chunk: false,
        metadata: None,
    })
}

fn attempt(number: u32) -> Record {
    Record::Hidden(Hidden::Attempt {
        turn: Number(1),
        attempt: Attempt(number),
    })
}

/// A task that a kill cut after its first word and that was completed by its second attempt,
/// between `from` and `from + 10` milliseconds.
fn records(id: &str, context_id: &str, message_id: &str, from: i64) -> Vec<Record> {
    vec![
        Record::Submitted(Task {
            id: id.to_owned(),
            context_id: context_id.to_owned(),
            status: TaskStatus {
                state: TaskState::Submitted,
                message: None,
                timestamp: Some(Timestamp::from_millis(1)),
            },
            history: vec![message(message_id, "one two")],
            ..Task::default()
        }),
        attempt(1),
        status(id, context_id, TaskState::Working, from),
        chunk(id, context_id, "one", false),
        Record::Hidden(Hidden::AttemptEnded {
            turn: Number(1),
            attempt: Attempt(1),
            reason: Broken::Lost,
        }),
        attempt(2),
        chunk(id, context_id, "one", false),
        chunk(id, context_id, " two", true),
        status(id, context_id, TaskState::Completed, from + 10),
    ]
}

fn entries(records: &[Record]) -> Vec<Entry> {
    (1..)
        .zip(records)
        .map(|(number, record)| Entry::encode(Number(number), record))
        .collect()
}

fn stored(id: &str, context_id: &str, records: &[Record]) -> StoredTask {
    StoredTask {
        id: id.to_owned(),
        context_id: context_id.to_owned(),
        owner: OWNER.to_owned(),
        state: TaskState::Completed,
        version: records.len() as u64,
        turns: 0,
        entries: entries(records),
    }
}

fn frames(task: &StoredTask) -> Vec<Frame> {
    task.entries
        .iter()
        .filter(|entry| entry.shape.visible)
        .map(|entry| Frame {
            number: entry.number.0,
            json: String::from_utf8(entry.bytes.to_vec()).unwrap(),
        })
        .collect()
}

impl World {
    /// Two tasks one after the other in a context; the first was streamed over a cut.
    fn sound() -> Self {
        let one = stored("t1", "c", &records("t1", "c", "m1", 100));
        let two = stored("t2", "c", &records("t2", "c", "m2", 110));
        let mut history = History::default();
        for (message_id, task_id) in [("m1", "t1"), ("m2", "t2")] {
            history.sending(message_id, "one two");
            history.acknowledged(message_id, task_id, "c");
            let told = [("response".to_owned(), "one two".to_owned())];
            history.ended(task_id, TaskState::Completed, Some(told.into()));
        }
        let tasks = vec!["t1".to_owned(), "t2".to_owned()];
        history.contexts.insert("c".to_owned(), tasks);
        let mut first = frames(&one);
        let rest = first.split_off(3);
        let part = |opened, frames, ended| Part {
            task: "t1".to_owned(),
            opened,
            frames,
            ended,
        };
        history.streamed(Stream {
            parts: vec![
                part(Opened::FromStart, first, false),
                part(Opened::After(4), rest, true),
            ],
        });
        Self {
            history,
            tasks: vec![one, two],
            lost_ids: Vec::new(),
            unsound: Vec::new(),
            turns_left: 0,
            dead: 0,
            settled: true,
        }
    }

    fn rewrite(&mut self, task: usize, doctor: impl FnOnce(&mut Vec<Record>)) {
        let task = &mut self.tasks[task];
        let mut records: Vec<Record> = task
            .entries
            .iter()
            .map(|entry| entry.record().unwrap())
            .collect();
        doctor(&mut records);
        task.entries = entries(&records);
        task.version = records.len() as u64;
    }

    fn part(&mut self, at: usize) -> &mut Part {
        &mut self.history.streams[0].parts[at]
    }

    fn broken(&self) -> Vec<Invariant> {
        let mut checker = Checker::new(&self.history, OWNER, self.settled);
        for what in &self.unsound {
            checker.unsound(what.clone());
        }
        for task in &self.tasks {
            checker.stored(task, !self.lost_ids.contains(&task.id));
        }
        checker.turns_left(self.turns_left, self.dead);
        checker.finish().violated.into_keys().collect()
    }
}

/// The world with one mistake shows exactly these invariants broken.
#[track_caller]
fn check(expected: &[Invariant], doctor: impl FnOnce(&mut World)) {
    let mut world = World::sound();
    doctor(&mut world);
    assert_eq!(world.broken(), expected);
}

#[test]
fn a_sound_world_is_green() {
    check(&[], |_| {});
}

#[test]
fn what_a_run_is_in_the_middle_of_is_green() {
    check(&[], |world| {
        world.settled = false;
        world.tasks[1].entries.truncate(7);
        world.tasks[1].version = 7;
        world.tasks[1].state = TaskState::Working;
        world.tasks[1].turns = 1;
        world.turns_left = 1;
        world.history.tasks.get_mut("t2").unwrap().ends.clear();
    });
}

#[test]
fn i1_a_lost_task_is_seen() {
    // Its message is in no journal either, but one name is enough.
    check(&[Invariant::NothingLost], |world| {
        world.tasks.pop();
    });
}

#[test]
fn i1_a_task_that_its_id_does_not_find_is_seen() {
    check(&[Invariant::NothingLost], |world| {
        world.lost_ids.push("t2".to_owned());
    });
}

#[test]
fn i1_another_owner_or_context_is_seen() {
    check(&[Invariant::NothingLost], |world| {
        world.tasks[0].owner = "token:eve".to_owned();
    });
    check(&[Invariant::NothingLost], |world| {
        world.history.tasks.get_mut("t1").unwrap().context_id = "d".to_owned();
    });
}

#[test]
fn i1_an_acknowledged_follow_up_that_no_journal_holds_is_seen() {
    check(&[Invariant::NothingLost], |world| {
        world.history.sending("m3", "more");
        world.history.acknowledged("m3", "t1", "c");
    });
}

#[test]
fn i2_a_gap_and_a_repeated_number_are_seen() {
    check(&[Invariant::NoGap], |world| {
        world.tasks[1].entries.remove(1);
    });
    check(&[Invariant::NoGap], |world| {
        let again = world.tasks[1].entries[1].clone();
        world.tasks[1].entries[2].number = again.number;
    });
}

#[test]
fn i2_a_head_ahead_of_or_behind_its_journal_is_seen() {
    check(&[Invariant::NoGap], |world| world.tasks[1].version += 1);
    check(&[Invariant::NoGap], |world| world.tasks[1].version -= 1);
}

#[test]
fn i3_a_second_end_is_seen() {
    check(&[Invariant::OneEnd], |world| {
        world.rewrite(1, |records| {
            records.push(status("t2", "c", TaskState::Completed, 130));
        });
    });
}

#[test]
fn i3_anything_after_the_end_is_seen() {
    check(&[Invariant::OneEnd], |world| {
        world.rewrite(1, |records| records.push(attempt(3)));
    });
}

#[test]
fn i3_another_end_than_told_is_seen() {
    check(&[Invariant::OneEnd], |world| {
        world.history.ended("t2", TaskState::Canceled, None);
    });
}

#[test]
fn i3_a_cancel_that_was_taken_and_forgotten_is_seen() {
    check(&[Invariant::OneEnd], |world| {
        world.history.cancel_taken("t2")
    });
}

#[test]
fn i3_a_task_that_moves_no_more_is_seen() {
    check(&[Invariant::OneEnd], |world| {
        world.rewrite(1, |records| {
            records.pop();
        });
        world.tasks[1].state = TaskState::Working;
        world.history.tasks.get_mut("t2").unwrap().ends.clear();
    });
}

#[test]
fn i3_a_head_that_contradicts_its_journal_is_seen() {
    check(&[Invariant::OneEnd], |world| {
        world.tasks[1].state = TaskState::Canceled;
    });
}

#[test]
fn i4_two_tasks_for_one_message_are_seen() {
    // The client was told of both.
    check(&[Invariant::OneTaskPerMessage], |world| {
        world
            .tasks
            .push(stored("t3", "c3", &records("t3", "c3", "m2", 200)));
        world.history.acknowledged("m2", "t3", "c3");
    });
    // The client was told of one; the other is a secret of the server.
    check(&[Invariant::OneTaskPerMessage], |world| {
        world
            .tasks
            .insert(0, stored("t3", "c3", &records("t3", "c3", "m2", 200)));
    });
}

#[test]
fn i4_a_message_that_is_twice_in_one_task_is_seen() {
    let broken = [Invariant::OneTaskPerMessage, Invariant::TextOnce];
    check(&broken, |world| {
        world.rewrite(1, |records| {
            records.insert(1, Record::Hidden(Hidden::Message(message("m2", "one two"))));
        });
    });
}

#[test]
fn i4_a_refused_message_that_counts_is_seen() {
    check(&[Invariant::OneTaskPerMessage], |world| {
        let sent = world.history.messages.get_mut("m2").unwrap();
        sent.refused = true;
    });
}

#[test]
fn i5_a_missing_frame_is_seen() {
    check(&[Invariant::ExactStreams], |world| {
        world.part(1).frames.remove(0);
    });
    check(&[Invariant::ExactStreams], |world| {
        world.part(0).frames.remove(1);
    });
}

#[test]
fn i5_a_stream_that_ends_early_is_seen() {
    check(&[Invariant::ExactStreams], |world| {
        world.part(1).frames.pop();
    });
}

#[test]
fn i5_a_repeated_frame_is_seen() {
    // Within a connection, and the last one again at the head of the next.
    check(&[Invariant::ExactStreams], |world| {
        let again = world.part(0).frames[1].clone();
        world.part(0).frames.insert(1, again);
    });
    check(&[Invariant::ExactStreams], |world| {
        let again = world.part(0).frames[2].clone();
        world.part(1).frames.insert(0, again);
    });
}

#[test]
fn i5_reordered_frames_are_seen() {
    check(&[Invariant::ExactStreams], |world| {
        world.part(1).frames.swap(0, 1);
    });
}

#[test]
fn i5_a_changed_byte_is_seen() {
    check(&[Invariant::ExactStreams], |world| {
        let frame = &mut world.part(1).frames[1];
        frame.json = frame.json.replace(" two", " twO");
    });
}

#[test]
fn i5_a_frame_that_was_shown_but_not_kept_is_seen() {
    check(&[Invariant::ExactStreams], |world| {
        let frame = Frame {
            number: 10,
            json: "{}".to_owned(),
        };
        world.part(1).frames.push(frame);
    });
}

#[test]
fn i5_an_opening_that_is_not_the_task_as_it_was_is_seen() {
    let opening = |world: &mut World, number: u64| {
        let records: Vec<Record> = world.tasks[0]
            .entries
            .iter()
            .map(|entry| entry.record().unwrap())
            .collect();
        let json = super::streams::opening_json(&records, 4).unwrap();
        world.history.streams = vec![Stream {
            parts: vec![Part {
                task: "t1".to_owned(),
                opened: Opened::Now,
                frames: vec![Frame { number, json }],
                ended: false,
            }],
        }];
    };
    check(&[], |world| opening(world, 4));
    check(&[Invariant::ExactStreams], |world| opening(world, 3));
}

#[test]
fn i6_doubled_text_is_seen() {
    check(&[Invariant::TextOnce], |world| {
        // The second attempt adds to what the first said instead of saying it anew.
        world.rewrite(1, |records| records[6] = chunk("t2", "c", "one", true));
    });
}

#[test]
fn i6_missing_text_is_seen() {
    check(&[Invariant::TextOnce], |world| {
        world.rewrite(1, |records| {
            records.remove(7);
        });
    });
}

#[test]
fn i6_a_told_text_that_the_journal_does_not_make_is_seen() {
    check(&[Invariant::TextOnce], |world| {
        let told = [("response".to_owned(), "oneone two".to_owned())];
        world
            .history
            .ended("t2", TaskState::Completed, Some(told.into()));
    });
}

#[test]
fn i6_a_task_that_failed_though_nothing_failed_is_seen() {
    check(&[Invariant::TextOnce], |world| {
        world.rewrite(1, |records| {
            records[8] = status("t2", "c", TaskState::Failed, 120)
        });
        world.tasks[1].state = TaskState::Failed;
        world.history.tasks.get_mut("t2").unwrap().ends.clear();
    });
}

#[test]
fn i6_a_late_word_of_an_attempt_that_was_fenced_off_is_seen() {
    check(&[Invariant::TextOnce], |world| {
        // The first attempt goes on with its text when the second has begun.
        world.rewrite(1, |records| {
            records.insert(7, chunk("t2", "c", " two", true))
        });
    });
}

#[test]
fn i7_tasks_that_overlap_or_overtake_in_a_context_are_seen() {
    check(&[Invariant::InOrder], |world| {
        world.tasks[1] = stored("t2", "c", &records("t2", "c", "m2", 109));
    });
    check(&[Invariant::InOrder], |world| {
        world.tasks[1] = stored("t2", "c", &records("t2", "c", "m2", 50));
    });
}

#[test]
fn i7_an_attempt_that_speaks_after_a_later_one_is_seen() {
    check(&[Invariant::InOrder], |world| {
        world.rewrite(1, |records| records.swap(1, 5));
    });
}

#[test]
fn i8_what_verify_finds_and_what_cannot_be_read_is_seen() {
    check(&[Invariant::Sound], |world| {
        world.unsound.push("a hash does not match".to_owned());
    });
    check(&[Invariant::Sound], |world| {
        world.history.streams.clear();
        world.history.messages.remove("m1");
        world.history.contexts.clear();
        world.tasks[0].entries[3].bytes = "{".into();
    });
}

#[test]
fn i9_turns_left_over_are_seen() {
    check(&[Invariant::NothingLeftOver], |world| world.turns_left = 1);
    check(&[Invariant::NothingLeftOver], |world| world.dead = 1);
    check(&[Invariant::NothingLeftOver], |world| {
        world.tasks[1].turns = 1;
    });
}

#[test]
fn i10_a_task_that_goes_on_elsewhere_too_late_is_seen() {
    let after = |world: &mut World, took: u64| {
        world.history.taken_over(Takeover {
            task: "t1".to_owned(),
            took: Duration::from_millis(took),
            due: Duration::from_secs(7),
        });
    };
    check(&[], |world| after(world, 7_000));
    check(&[Invariant::TakenOver], |world| after(world, 7_001));
}

#[test]
fn i11_an_answer_that_should_not_have_been_given_is_seen() {
    check(&[Invariant::NoSurprise], |world| {
        world.history.surprise("INTERNAL".to_owned());
    });
}
