//! Load that does not wait for answers: so many messages a second, however long each takes, and so
//! many streams that are open at any time; over every binding.

use std::sync::Arc;
use std::time::Duration;

use a2ad_client::Binding;
use a2ad_proto::SendMessageRequest;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::super::history::{Frame, Opened, Part, Stream};
use super::streams::{PartEnd, names};
use super::{ANSWER_MAX, Client, Shared, TRIES_MAX, Up, Way};
use crate::client::{Client as _, Events, Failure};

/// Who asks is spread over so many programs, each with connections of its own.
const PROGRAMS: usize = 24;
/// How many calls of a program may be under way. If more were, it could not keep its rate.
const CALLS_MAX: usize = 2_000;

/// How hard to press.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steady {
    /// Messages a second.
    pub rate: u32,
    /// Streams that are open at any time.
    pub streams: usize,
    /// How many words are streamed at least; up to twice as many.
    pub words: u64,
    /// The agent's pause before each word. The slower it speaks, the longer streams stay open.
    pub pause: Duration,
    /// By which bindings, in turn.
    pub bindings: &'static [Binding],
}

impl Steady {
    /// What each of the programs does.
    #[must_use]
    pub fn shares(self) -> Vec<Self> {
        let programs = u32::try_from(PROGRAMS).unwrap_or(1);
        let share = |at: usize| {
            let number = u32::try_from(at).unwrap_or(0);
            Self {
                rate: self.rate / programs + u32::from(number < self.rate % programs),
                streams: self.streams / PROGRAMS + usize::from(at < self.streams % PROGRAMS),
                ..self
            }
        };
        (0..PROGRAMS).map(share).collect()
    }
}

/// Program number `number`: all its calls by one binding, until it is enough.
pub async fn program(shared: Arc<Shared>, seed: u64, number: usize, steady: Steady) {
    let binding = steady.bindings[number % steady.bindings.len()];
    let way = Way::new(binding);
    let mut under_way = JoinSet::new();
    for stream in 0..steady.streams {
        let number = 2_000_000 + number * 10_000 + stream;
        let mut client = Client::new(Arc::clone(&shared), seed, number, Duration::ZERO);
        let way = way.clone();
        under_way.spawn(async move {
            while !client.shared.enough.is_cancelled() {
                client.hold_stream(&way, steady.words).await;
            }
        });
    }
    if steady.rate > 0 {
        let mut client = Client::new(
            Arc::clone(&shared),
            seed,
            3_000_000 + number,
            <_>::default(),
        );
        let mut pace = interval(Duration::from_secs(1) / steady.rate);
        pace.set_missed_tick_behavior(MissedTickBehavior::Burst);
        while !shared.enough.is_cancelled() {
            pace.tick().await;
            let (id, request) = client.new_message(1);
            under_way.spawn(call(Arc::clone(&shared), way.clone(), id, request));
            while under_way.try_join_next().is_some() {}
            if under_way.len() > CALLS_MAX {
                let surprise = format!("{CALLS_MAX} calls wait for their answers");
                shared.history().surprise(surprise);
                break;
            }
        }
    }
    while let Some(ended) = under_way.join_next().await {
        if let Err(error) = ended {
            let surprise = format!("a client broke off: {error}");
            shared.history().surprise(surprise);
        }
    }
}

/// One message and its answer.
async fn call(shared: Arc<Shared>, way: Way, id: String, request: SendMessageRequest) {
    let from = Instant::now();
    let answer = shared
        .answered_by(&way, "SendMessage", |rpc| {
            let request = request.clone();
            Box::pin(async move { rpc.send(request).await })
        })
        .await;
    let took = u64::try_from(from.elapsed().as_millis()).unwrap_or(u64::MAX);
    let mut history = shared.history();
    match answer {
        Ok(task) => {
            history.answered_ms.push(took);
            history.acknowledged(&id, &task.id, &task.context_id);
            history.shown(&task, true);
        }
        Err(refusal) => {
            let binding = way.binding.name();
            history.surprise(format!("message {id} by {binding} was refused: {refusal}"));
        }
    }
}

impl Client {
    /// Begins a task and reads it to its end, over as many servers as that takes.
    async fn hold_stream(&mut self, way: &Way, words: u64) {
        let words = words + self.dice.below(words.max(1));
        let (id, request) = self.new_message(words);
        let mut stream = Stream::default();
        for _ in 0..TRIES_MAX {
            let seen = stream.parts.iter().rev();
            let seen = seen.filter_map(|part| part.frames.last()).next();
            let after = seen.map(|frame| frame.number);
            let over = seen.is_some_and(super::streams::tells_the_end);
            let task = stream.parts.first().map(|part| part.task.clone());
            let up = self.shared.up().await;
            let (frames, end) = self
                .read_events(way, up, &request, task.as_deref(), after)
                .await;
            let end = end.for_client(&self.shared, &frames, over);
            if after.is_some() {
                self.shared.history().tried.resumes += 1;
            }
            let named = frames.first().and_then(|frame| names(&frame.json));
            let Some(task) = task.or_else(|| {
                let (task, context_id) = named?;
                let mut history = self.shared.history();
                history.acknowledged(&id, &task, &context_id);
                Some(task)
            }) else {
                let surprise = format!("a stream of {id} did not begin: {end:?}");
                self.shared.history().surprise(surprise);
                return;
            };
            let ended = matches!(end, PartEnd::Ended);
            stream.parts.push(Part {
                task,
                opened: after.map_or(Opened::FromStart, Opened::After),
                frames,
                ended,
            });
            match end {
                PartEnd::Ended => break,
                PartEnd::Cut => self.shared.pause(up).await,
                PartEnd::Refused(_) | PartEnd::Stalled => {
                    let binding = way.binding.name();
                    let surprise =
                        format!("a stream of {id} by {binding} after {after:?}: {end:?}");
                    self.shared.history().surprise(surprise);
                    break;
                }
            }
        }
        self.keep(stream);
    }

    /// What comes of a stream until it ends, one way or the other.
    async fn read_events(
        &self,
        way: &Way,
        up: Up,
        request: &SendMessageRequest,
        task: Option<&str>,
        after: Option<u64>,
    ) -> (Vec<Frame>, PartEnd) {
        let rpc = way.to(up);
        let mut frames = Vec::new();
        let reading = async {
            let opening = async {
                match task {
                    Some(task) => rpc.subscribe(task, after).await,
                    None => rpc.stream(request.clone(), None).await,
                }
            };
            let mut events: Box<dyn Events> = match timeout(ANSWER_MAX, opening).await {
                Err(_) => return PartEnd::Stalled,
                Ok(Err(failure)) => return failure.into(),
                Ok(Ok(events)) => events,
            };
            loop {
                match timeout(ANSWER_MAX, events.next()).await {
                    Err(_) => return PartEnd::Stalled,
                    Ok(Err(failure)) => return failure.into(),
                    Ok(Ok(None)) => return PartEnd::Ended,
                    Ok(Ok(Some(event))) => match serde_json::to_string(&event.response) {
                        Ok(json) => frames.push(Frame {
                            number: event.number,
                            json,
                        }),
                        Err(error) => return PartEnd::Refused(error.to_string()),
                    },
                }
            }
        };
        let end = self.shared.while_up(up, reading).await;
        (frames, end.unwrap_or(PartEnd::Cut))
    }
}

impl From<Failure> for PartEnd {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused {
                reason, message, ..
            } => Self::Refused(format!("{reason}: {message}")),
            Failure::Broken(_) => Self::Cut,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_by_sharing_it_out() {
        let steady = Steady {
            rate: 301,
            streams: 1_000,
            words: 20,
            pause: Duration::ZERO,
            bindings: &[Binding::JsonRpc],
        };
        let shares = steady.shares();
        assert_eq!(shares.iter().map(|it| it.rate).sum::<u32>(), 301);
        assert_eq!(shares.iter().map(|it| it.streams).sum::<usize>(), 1_000);
    }
}
