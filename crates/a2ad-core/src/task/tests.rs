//! Properties of the machine, over random lives of a task.

use std::sync::Arc;

use a2ad_proto::{Artifact, Message, Part, Role, TaskState, Timestamp};
use proptest::prelude::*;

use super::*;
use crate::keys::{Attempt, ContextKey, HolderId, Number, Owner, Scope, TaskKey};
use crate::store::birth;

/// What can happen to a task, told without numbers: which turn is meant is looked up.
#[derive(Clone, Debug)]
enum Event {
    Continue {
        leased: bool,
    },
    /// Leases the ready turn, as a claim does.
    Claim,
    Start,
    Say(u8),
    Chunk {
        id: u8,
        append: bool,
    },
    Finish(u8),
    /// Settles the last turn, if nobody has begun it.
    Settle {
        fails: bool,
    },
    Break {
        retry: bool,
        released: bool,
    },
    /// The same, by a holder whose lease is over.
    Zombie(u8),
    Cancel,
    Expire,
    ClockBack,
}

/// The number of [`Outcome::Replied`] in [`Event::Finish`].
const REPLY: u8 = 5;

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        2 => any::<bool>().prop_map(|leased| Event::Continue { leased }),
        3 => Just(Event::Claim),
        4 => Just(Event::Start),
        3 => (0u8..4).prop_map(Event::Say),
        4 => (0u8..3, any::<bool>()).prop_map(|(id, append)| Event::Chunk { id, append }),
        3 => (0u8..7).prop_map(Event::Finish),
        1 => any::<bool>().prop_map(|fails| Event::Settle { fails }),
        2 => any::<(bool, bool)>().prop_map(|(retry, released)| Event::Break { retry, released }),
        2 => (0u8..3).prop_map(Event::Zombie),
        1 => Just(Event::Cancel),
        1 => Just(Event::Expire),
        1 => Just(Event::ClockBack),
    ]
}

/// A task and what a store would keep of it.
struct Life {
    head: Head,
    fold: Fold,
    entries: Vec<Entry>,
    now: i64,
    started: Option<(Number, Attempt)>,
    ever_leased: Vec<(Number, Attempt)>,
}

fn message(role: Role, text: &str) -> Message {
    Message {
        message_id: format!("m-{text}"),
        role,
        parts: vec![Part::text(text)],
        ..Message::default()
    }
}

fn identity() -> Identity {
    Identity {
        key: TaskKey(1),
        id: "t1".parse().unwrap(),
        context: ContextKey(1),
        context_id: "c1".parse().unwrap(),
        scope: Scope {
            owner: Owner::anonymous(),
            agent: "echo".parse().unwrap(),
        },
    }
}

fn submit() -> Command {
    Command::Submit {
        message: message(Role::User, "hello"),
        metadata: None,
        accepted_output_modes: vec!["text/plain".to_owned()],
    }
}

impl Life {
    fn begin(leased: bool) -> Self {
        let mut life = Self {
            head: Head::unborn(identity()),
            fold: Fold::default(),
            entries: Vec::new(),
            now: 1_000,
            started: None,
            ever_leased: Vec::new(),
        };
        life.give(submit(), leased).unwrap();
        life
    }

    fn leased(&self) -> Option<(Number, Attempt)> {
        let leased: Vec<_> = self
            .head
            .turns
            .iter()
            .filter(|turn| turn.state == TurnState::Leased)
            .collect();
        assert!(leased.len() <= 1, "two turns of one context run at once");
        leased.first().map(|turn| (turn.number, turn.attempt))
    }

    /// Decides, and commits as a store does.
    fn give(&mut self, command: Command, lease: bool) -> Result<(), Refusal> {
        self.now += 1;
        let before = self.head.clone();
        let decision = match decide(&self.head, command, Timestamp::from_millis(self.now)) {
            Ok(decision) => decision,
            Err(refusal) => {
                assert_eq!(self.head, before, "a refused command changes nothing");
                return Err(refusal);
            }
        };
        let was_open = !self.head.turns.is_empty();
        let mut number = self.head.version;
        self.head.advance(&decision);
        for record in decision.records {
            number = number.next();
            let entry = Entry::encode(number, &record);
            self.head.bytes += entry.bytes.len() as u64;
            self.entries.push(entry);
            apply(&mut self.fold, record);
        }
        for change in &decision.turns {
            if let TurnChange::Open { number } = change {
                let state = birth(was_open, lease.then_some(HolderId(1)));
                let turn = self.turn(*number);
                turn.state = state;
                if state == TurnState::Leased {
                    turn.attempt = Attempt::FIRST;
                    self.ever_leased.push((*number, Attempt::FIRST));
                }
            }
        }
        // The commit that ends one turn makes the next one ready.
        if let Some(first) = self.head.turns.first_mut()
            && first.state == TurnState::Waiting
        {
            first.state = TurnState::Ready;
        }
        Ok(())
    }

    fn turn(&mut self, number: Number) -> &mut TurnHead {
        self.head
            .turns
            .iter_mut()
            .find(|turn| turn.number == number)
            .unwrap()
    }

    fn live(&mut self, event: &Event) {
        let held = self.leased();
        // Only a started attempt speaks, as in the runner.
        let speaks = held.filter(|held| self.started == Some(*held));
        match event {
            Event::Continue { leased } => {
                let command = Command::Continue {
                    message: message(Role::User, "more"),
                    metadata: None,
                    accepted_output_modes: Vec::new(),
                };
                let _refused = self.give(command, *leased);
            }
            Event::Claim => {
                if let Some(turn) = self
                    .head
                    .turns
                    .iter_mut()
                    .find(|turn| turn.state == TurnState::Ready)
                {
                    turn.state = TurnState::Leased;
                    turn.attempt = turn.attempt.next();
                    let lease = (turn.number, turn.attempt);
                    assert!(
                        !self.ever_leased.contains(&lease),
                        "an attempt is used twice"
                    );
                    self.ever_leased.push(lease);
                }
            }
            Event::Start => {
                if let Some((turn, attempt)) = held
                    && self.started != held
                {
                    self.give(Command::Start { turn, attempt }, false).unwrap();
                    self.started = held;
                }
            }
            Event::Say(n) => {
                if let Some((turn, attempt)) = speaks {
                    let said = message(Role::Agent, &format!("{turn}-{}-{n}", attempt.0));
                    let output = Output::Status {
                        message: Some(said),
                        metadata: None,
                    };
                    self.give(
                        Command::Emit {
                            turn,
                            attempt,
                            output,
                        },
                        false,
                    )
                    .unwrap();
                }
            }
            Event::Chunk { id, append } => {
                if let Some((turn, attempt)) = speaks {
                    let output = chunk(*id, *append, &format!("{turn}.{}", attempt.0));
                    let _refused = self.give(
                        Command::Emit {
                            turn,
                            attempt,
                            output,
                        },
                        false,
                    );
                }
            }
            Event::Finish(how) => {
                if let Some((turn, attempt)) = speaks {
                    let said = Some(message(Role::Agent, "end"));
                    let outcome = match *how {
                        0 => Outcome::Completed(said),
                        1 => Outcome::InputRequired(said),
                        2 => Outcome::AuthRequired(said),
                        3 => Outcome::Rejected(said),
                        4 => Outcome::Failed(said),
                        REPLY => Outcome::Replied(message(Role::Agent, "end")),
                        _ => Outcome::Canceled(said),
                    };
                    self.give(
                        Command::Finish {
                            turn,
                            attempt,
                            outcome,
                        },
                        false,
                    )
                    .unwrap();
                }
            }
            Event::Settle { fails } => {
                let Some(turn) = self.head.turns.last().copied() else {
                    return;
                };
                let said = Some(message(Role::Agent, "nothing"));
                let outcome = match fails {
                    true => Outcome::Failed(said),
                    false => Outcome::InputRequired(said),
                };
                let number = turn.number;
                let command = Command::Settle {
                    turn: number,
                    outcome,
                };
                let settled = self.give(command, false);
                assert_eq!(settled.is_ok(), turn.attempt == Attempt::NONE);
            }
            Event::Break { retry, released } => {
                if let Some((turn, attempt)) = held {
                    let command = Command::Break {
                        turn,
                        attempt,
                        reason: if *released {
                            Broken::Released
                        } else {
                            Broken::Lost
                        },
                        retry: (*retry || *released).then_some(RetryRule {
                            tries_max: 3,
                            due: Timestamp::from_millis(self.now),
                        }),
                        failure: message(Role::Agent, "broken"),
                    };
                    self.give(command, false).unwrap();
                }
            }
            Event::Zombie(what) => {
                let past = self.ever_leased.iter().find(|lease| Some(**lease) != held);
                if let Some((turn, attempt)) = past.copied() {
                    let command = match what {
                        0 => Command::Start { turn, attempt },
                        1 => Command::Emit {
                            turn,
                            attempt,
                            output: chunk(0, false, "zombie"),
                        },
                        _ => Command::Finish {
                            turn,
                            attempt,
                            outcome: Outcome::Completed(None),
                        },
                    };
                    let refused = self.give(command, false);
                    assert!(refused.is_err(), "a lease that is over still speaks");
                }
            }
            Event::Cancel => {
                let _refused = self.give(Command::Cancel { metadata: None }, false);
            }
            Event::Expire => {
                let expired = message(Role::Agent, "expired");
                let _refused = self.give(Command::Expire { message: expired }, false);
            }
            Event::ClockBack => self.now -= 500,
        }
    }
}

fn chunk(id: u8, append: bool, text: &str) -> Output {
    Output::Artifact {
        artifact: Artifact {
            artifact_id: format!("a{id}"),
            parts: vec![Part::text(text)],
            ..Artifact::default()
        },
        append,
        last_chunk: false,
    }
}

fn lives() -> impl Strategy<Value = (bool, Vec<Event>)> {
    (any::<bool>(), proptest::collection::vec(event(), 0..60))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// MODEL-03, STREAM-13.
    #[test]
    fn an_ended_task_never_moves((leased, events) in lives()) {
        let mut life = Life::begin(leased);
        let mut ended: Option<(Head, Fold)> = None;
        for event in &events {
            life.live(event);
            if let Some((head, fold)) = &ended {
                prop_assert_eq!(&life.head, head);
                prop_assert_eq!(&life.fold, fold);
            } else if life.head.state.is_terminal() {
                prop_assert!(life.head.turns.is_empty(), "an ended task has open turns");
                ended = Some((life.head.clone(), life.fold.clone()));
            }
        }
        let terminal = life
            .entries
            .iter()
            .filter(|entry| entry.shape.state.is_some_and(TaskState::is_terminal))
            .count();
        prop_assert_eq!(terminal, usize::from(life.head.state.is_terminal()));
    }

    #[test]
    fn replay_equals_live((leased, events) in lives(), freeze_at in 0usize..80) {
        let mut life = Life::begin(leased);
        for event in &events {
            life.live(event);
        }
        let mut replayed = Fold::default();
        for (at, entry) in life.entries.iter().enumerate() {
            if at == freeze_at {
                // A snapshot anywhere on the way changes nothing.
                replayed = Fold::thaw(&replayed.snapshot()).unwrap();
            }
            apply(&mut replayed, entry.record().unwrap());
        }
        prop_assert_eq!(&replayed, &life.fold);
        prop_assert_eq!(replayed.version, life.head.version);
        prop_assert_eq!(replayed.task.status.state, life.head.state);
        let frozen = life.fold.snapshot();
        let whole: a2ad_proto::Task = serde_json::from_slice(&frozen.task_json()).unwrap();
        prop_assert_eq!(&whole, &life.fold.task);
        if let Some(spliced) = splice(&life.entries) {
            prop_assert_eq!(spliced, frozen);
        }
    }

    #[test]
    fn numbers_have_no_gap_and_time_never_goes_back((leased, events) in lives()) {
        let mut life = Life::begin(leased);
        for event in &events {
            life.live(event);
        }
        let mut at = Timestamp::from_millis(0);
        for (expected, entry) in (1..).zip(&life.entries) {
            prop_assert_eq!(entry.number, Number(expected));
            prop_assert_eq!(Shape::from_byte(entry.shape.to_byte()), entry.shape);
            if let Record::Status(update) = entry.record().unwrap() {
                let then = update.status.timestamp.unwrap();
                prop_assert!(then >= at, "time goes backwards");
                at = then;
            }
        }
        prop_assert_eq!(life.head.version.0, life.entries.len() as u64);
    }

    /// CANCEL-04.
    #[test]
    fn cancel_wins((leased, events) in lives()) {
        let mut life = Life::begin(leased);
        let mut canceled = false;
        for event in &events {
            life.live(event);
            canceled |= life.head.cancel_requested;
            if canceled && life.head.state.is_terminal() {
                prop_assert_eq!(life.head.state, TaskState::Canceled);
            }
        }
    }

    #[test]
    fn a_new_attempt_takes_back_what_the_dead_one_said((leased, events) in lives()) {
        let mut life = Life::begin(leased);
        for event in &events {
            life.live(event);
        }
        // Of each turn, the messages that remain are all of one attempt.
        let said = life.fold.task.history.iter().chain(&life.fold.task.status.message);
        let mut seen: std::collections::HashMap<String, String> = std::collections::HashMap::new();
        for said in said {
            let text = said.parts[0].as_text().unwrap_or_default();
            let mut words = text.split('-');
            if let (Some(turn), Some(attempt), Some(_)) = (words.next(), words.next(), words.next()) {
                let first = seen.entry(turn.to_owned()).or_insert_with(|| attempt.to_owned());
                prop_assert_eq!(first, attempt, "messages of two attempts of one turn");
            }
        }
        // So are the chunks of each artifact that a turn wrote.
        for artifact in &life.fold.task.artifacts {
            let mut by_turn: std::collections::HashMap<&str, &str> = std::collections::HashMap::new();
            for part in &artifact.parts {
                let (turn, attempt) = part.as_text().unwrap_or_default().split_once('.').unwrap();
                prop_assert_eq!(*by_turn.entry(turn).or_insert(attempt), attempt);
            }
        }
    }

    #[test]
    fn send_15_only_the_only_word_to_the_only_message_is_a_direct_reply((leased, events) in lives()) {
        let mut life = Life::begin(leased);
        for event in &events {
            life.live(event);
        }
        let records: Vec<Record> = life.entries.iter().map(|entry| entry.record().unwrap()).collect();
        let marked: Vec<usize> = (0..records.len())
            .filter(|at| matches!(records[*at], Record::Hidden(Hidden::Replied { .. })))
            .collect();
        let asked = life.fold.task.history.iter().filter(|said| said.role == Role::User).count();
        prop_assert_eq!(!marked.is_empty() && asked == 1, life.fold.reply().is_some());
        prop_assert_eq!(life.fold.snapshot().may_be_reply(), life.fold.reply().is_some());
        let thawed = Fold::thaw(&life.fold.snapshot()).unwrap();
        prop_assert_eq!(thawed.reply(), life.fold.reply());
        if let Some(reply) = life.fold.reply() {
            prop_assert_eq!(marked, [records.len() - 2], "the mark stands before the end");
            prop_assert_eq!(life.head.state, TaskState::Completed);
            prop_assert_eq!(Some(reply), life.fold.task.status.message.as_ref());
            prop_assert!(life.fold.task.artifacts.is_empty());
        }
    }

    #[test]
    fn a_turn_dies_after_its_last_try_and_hand_backs_do_not_count(hand_backs in 0u32..5) {
        let mut life = Life::begin(false);
        for _ in 0..hand_backs {
            life.live(&Event::Claim);
            life.live(&Event::Break { retry: true, released: true });
        }
        for _ in 0..2 {
            life.live(&Event::Claim);
            life.live(&Event::Break { retry: true, released: false });
            prop_assert!(!life.head.state.is_terminal());
        }
        life.live(&Event::Claim);
        life.live(&Event::Break { retry: true, released: false });
        prop_assert_eq!(life.head.state, TaskState::Failed);
    }
}

#[test]
fn a_task_with_messages_in_line_does_not_end_before_them() {
    let mut life = Life::begin(true);
    life.live(&Event::Start);
    life.live(&Event::Continue { leased: true });
    life.live(&Event::Finish(0));
    assert_eq!(life.head.state, TaskState::Working);
    life.live(&Event::Claim);
    life.live(&Event::Start);
    life.live(&Event::Finish(0));
    assert_eq!(life.head.state, TaskState::Completed);
}

#[test]
fn a_failure_ends_the_messages_in_line() {
    let mut life = Life::begin(true);
    life.live(&Event::Start);
    life.live(&Event::Continue { leased: true });
    life.live(&Event::Finish(4));
    assert_eq!(life.head.state, TaskState::Failed);
    assert!(life.head.turns.is_empty());
}

#[test]
fn send_15_a_direct_reply_is_one_only_where_no_task_was_shown() {
    let begun = || {
        let mut life = Life::begin(true);
        life.live(&Event::Start);
        life
    };
    let replied = |mut life: Life| {
        life.live(&Event::Finish(REPLY));
        life.fold.reply().is_some()
    };
    assert!(replied(begun()));

    let mut wrote = begun();
    wrote.live(&Event::Chunk {
        id: 0,
        append: false,
    });
    assert!(!replied(wrote), "there is an artifact");

    let mut later = begun();
    later.live(&Event::Finish(1));
    later.live(&Event::Continue { leased: true });
    later.live(&Event::Start);
    assert!(!replied(later), "it is the second turn");

    let mut canceled = begun();
    canceled.live(&Event::Cancel);
    assert!(!replied(canceled), "the task is canceled");

    let mut in_line = begun();
    in_line.live(&Event::Continue { leased: true });
    in_line.live(&Event::Finish(REPLY));
    assert_eq!(in_line.head.state, TaskState::Working);
    assert!(in_line.fold.reply().is_none(), "the task goes on");
}

#[test]
fn a_direct_reply_is_stored_as_agreed_and_older_snapshots_are_read() {
    let record = Record::Hidden(Hidden::Replied { turn: Number(1) });
    let entry = Entry::encode(Number(4), &record);
    assert_eq!(&entry.bytes[..], br#"{"replied":{"turn":1}}"#);
    assert!(!entry.shape.visible);

    let mut life = Life::begin(true);
    life.live(&Event::Start);
    let marks = br#"{"attempt":{"turn":1,"attempt":1,"history_from":1,"said_status":true}}"#;
    let frozen = life.fold.snapshot();
    assert_eq!(
        &frozen.marks[..],
        marks,
        "written as before there were replies"
    );
    life.live(&Event::Finish(0));
    let ended = life.fold.snapshot();
    assert_eq!(
        &ended.marks[..],
        b"{}",
        "no attempt will take anything back"
    );
    assert_eq!(Fold::thaw(&ended).unwrap().reply(), None);
}

#[test]
fn ctx_11_an_answer_stands_after_its_question() {
    let mut life = Life::begin(true);
    life.live(&Event::Start);
    life.live(&Event::Finish(1));
    assert_eq!(life.head.state, TaskState::InputRequired);
    assert!(life.head.is_settled());
    life.live(&Event::Continue { leased: false });
    assert!(!life.head.is_settled());
    let texts: Vec<_> = life
        .fold
        .task
        .history
        .iter()
        .filter_map(|said| said.parts[0].as_text())
        .collect();
    assert_eq!(texts, ["hello", "end", "more"]);
}

#[test]
fn art_03_adding_to_an_artifact_that_was_never_begun_is_refused() {
    let mut life = Life::begin(true);
    life.live(&Event::Start);
    let (turn, attempt) = life.leased().unwrap();
    let output = chunk(1, true, "x");
    let refused = life.give(
        Command::Emit {
            turn,
            attempt,
            output,
        },
        false,
    );
    assert_eq!(refused, Err(Refusal::NoSuchArtifact("a1".to_owned())));
}

#[test]
fn a_full_task_takes_no_more_but_can_end() {
    let mut life = Life::begin(true);
    life.live(&Event::Start);
    life.head.bytes = BYTES_MAX;
    let (turn, attempt) = life.leased().unwrap();
    let output = chunk(1, false, "x");
    let refused = life.give(
        Command::Emit {
            turn,
            attempt,
            output,
        },
        false,
    );
    assert!(matches!(refused, Err(Refusal::Full(_))));
    life.live(&Event::Finish(4));
    assert_eq!(life.head.state, TaskState::Failed);
}

#[test]
fn a_waiting_task_is_canceled_at_once_and_a_running_one_is_asked() {
    let mut waiting = Life::begin(false);
    waiting.live(&Event::Cancel);
    assert_eq!(waiting.head.state, TaskState::Canceled);

    let mut running = Life::begin(true);
    running.live(&Event::Start);
    running.live(&Event::Cancel);
    assert_eq!(running.head.state, TaskState::Working);
    assert!(running.head.cancel_requested);
    running.live(&Event::Finish(0));
    assert_eq!(running.head.state, TaskState::Canceled);
}

#[test]
fn what_nobody_has_begun_is_settled_without_work() {
    for (fails, state) in [(false, TaskState::InputRequired), (true, TaskState::Failed)] {
        let mut life = Life::begin(false);
        life.live(&Event::Settle { fails });
        assert_eq!(life.head.state, state);
        assert!(life.head.turns.is_empty());
        let said = life.fold.task.status.message.as_ref().unwrap();
        assert_eq!(said.parts, [Part::text("nothing")]);
    }
}

#[test]
fn settling_a_message_does_not_disturb_who_is_at_work() {
    for fails in [false, true] {
        let mut life = Life::begin(true);
        life.live(&Event::Start);
        life.live(&Event::Continue { leased: false });
        life.live(&Event::Settle { fails });
        assert_eq!(life.head.state, TaskState::Working);
        assert_eq!(life.head.turns.len(), 1);
        assert_eq!(life.fold.task.history.len(), 2, "the message is kept");
        // Nor can what somebody has begun be settled over their head.
        life.live(&Event::Settle { fails });
        assert_eq!(life.head.turns.len(), 1);
    }
}

#[test]
fn a_task_goes_on_waiting_for_what_it_waits_for() {
    let mut life = Life::begin(true);
    life.live(&Event::Start);
    life.live(&Event::Finish(2));
    life.live(&Event::Continue { leased: false });
    life.live(&Event::Settle { fails: false });
    assert_eq!(life.head.state, TaskState::AuthRequired);
}

#[test]
fn the_first_chunk_of_a_new_attempt_replaces() {
    let mut life = Life::begin(true);
    life.live(&Event::Start);
    life.live(&Event::Chunk {
        id: 1,
        append: false,
    });
    life.live(&Event::Chunk {
        id: 1,
        append: true,
    });
    life.live(&Event::Break {
        retry: true,
        released: false,
    });
    life.live(&Event::Claim);
    life.live(&Event::Start);
    life.live(&Event::Chunk {
        id: 1,
        append: true,
    });
    life.live(&Event::Chunk {
        id: 1,
        append: true,
    });
    let texts: Vec<_> = life.fold.task.artifacts[0]
        .parts
        .iter()
        .filter_map(Part::as_text)
        .collect();
    assert_eq!(texts, ["1.2", "1.2"]);
}

#[test]
fn the_same_artifact_of_another_turn_is_added_to() {
    let mut life = Life::begin(true);
    life.live(&Event::Start);
    life.live(&Event::Chunk {
        id: 1,
        append: false,
    });
    life.live(&Event::Finish(1));
    life.live(&Event::Continue { leased: true });
    life.live(&Event::Start);
    life.live(&Event::Chunk {
        id: 1,
        append: true,
    });
    assert_eq!(life.fold.task.artifacts[0].parts.len(), 2);
    let heads: Arc<Vec<ArtifactHead>> = Arc::clone(&life.head.artifacts);
    assert_eq!(heads.len(), 1);
}
