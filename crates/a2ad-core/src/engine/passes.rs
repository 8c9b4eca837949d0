//! How an agent's text is cut into events, and what of it is said again at the end.

use a2ad_proto::Part;

use crate::agent::Say;
use crate::behaviour::{Behaviour, Granularity, Surface};

/// No more text than this is held back, whatever was chosen: then it is an event.
const HELD_MAX: usize = 1 << 20;

/// Where what an agent says stands when it is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Point {
    /// More may come.
    GoesOn,
    /// The agent waits until it is written.
    Flushed,
    /// It was the last.
    Ended,
}

/// The passes of one attempt.
#[derive(Debug)]
pub(super) struct Passes {
    granularity: Granularity,
    surface: Surface,
    /// Text that is held back.
    held: String,
    /// Text that the end says again: of the last pass, or all.
    kept: String,
    /// The last pass is over; what comes begins another.
    over: bool,
}

impl Passes {
    pub(super) fn new(behaviour: &Behaviour) -> Self {
        Self {
            granularity: behaviour.granularity,
            surface: behaviour.surface,
            held: String::new(),
            kept: String::new(),
            over: true,
        }
    }

    /// Whether all is told as it comes and nothing is said again.
    pub(super) fn are_plain(&self) -> bool {
        self.granularity == Granularity::Delta && self.surface == Surface::Artifact
    }

    /// Whether text is held back that is to be told before the end.
    pub(super) fn hold(&self) -> bool {
        self.granularity == Granularity::Pass && !self.held.is_empty()
    }

    /// Takes what was said and gives what is to be told now.
    pub(super) fn sift(&mut self, says: Vec<Say>, point: Point) -> Vec<Say> {
        if self.are_plain() {
            return says;
        }
        let mut told = Vec::with_capacity(says.len());
        for say in says {
            match say {
                Say::Text(text) => {
                    self.keep(&text);
                    if self.granularity == Granularity::Delta {
                        told.push(Say::Text(text));
                        continue;
                    }
                    self.held.push_str(&text);
                    if self.held.len() > HELD_MAX {
                        self.let_out(&mut told);
                    }
                }
                other @ (Say::Artifact { .. } | Say::Status { .. }) => {
                    if self.granularity == Granularity::Pass {
                        self.let_out(&mut told);
                    }
                    self.over = true;
                    told.push(other);
                }
            }
        }
        let pass_ends = point == Point::Flushed && self.granularity == Granularity::Pass;
        if pass_ends || point == Point::Ended {
            self.let_out(&mut told);
        }
        self.over |= point == Point::Flushed;
        told
    }

    /// The text with which the agent ends, if it is to be repeated there.
    pub(super) fn last_word(&self) -> Option<Part> {
        let text = self.kept.trim_end();
        (!text.is_empty()).then(|| Part::text(text))
    }

    fn keep(&mut self, text: &str) {
        match self.surface {
            Surface::Artifact => {}
            Surface::Both => self.kept.push_str(text),
            // All of it is one pass.
            Surface::Status if self.granularity == Granularity::Final => self.kept.push_str(text),
            Surface::Status => {
                if self.over && text.trim().is_empty() {
                    return;
                }
                if self.over {
                    self.kept.clear();
                    self.over = false;
                }
                self.kept.push_str(text);
            }
        }
    }

    fn let_out(&mut self, told: &mut Vec<Say>) {
        let mut text = std::mem::take(&mut self.held);
        if self.surface == Surface::Status {
            // A message of its own ends with its last word, and is not there without one.
            text.truncate(text.trim_end().len());
        }
        if !text.is_empty() {
            told.push(Say::Text(text));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(granularity: Granularity, surface: Surface) -> Passes {
        Passes::new(&Behaviour {
            granularity,
            surface,
            ..Behaviour::default()
        })
    }

    fn text(text: &str) -> Say {
        Say::Text(text.to_owned())
    }

    fn status() -> Say {
        Say::Status {
            parts: Vec::new(),
            metadata: None,
        }
    }

    #[test]
    fn deltas_are_told_as_they_come() {
        let mut passes = passes(Granularity::Delta, Surface::Artifact);
        let says = vec![text("a "), text("b")];
        assert_eq!(passes.sift(says.clone(), Point::GoesOn), says);
        assert_eq!(passes.last_word(), None);
    }

    #[test]
    fn a_pass_is_told_when_it_is_over() {
        let mut passes = passes(Granularity::Pass, Surface::Artifact);
        assert_eq!(passes.sift(vec![text("a ")], Point::GoesOn), []);
        assert!(passes.hold());
        let told = passes.sift(vec![text("b "), status(), text("c")], Point::GoesOn);
        assert_eq!(told, [text("a b "), status()]);
        assert_eq!(passes.sift(Vec::new(), Point::Flushed), [text("c")]);
        assert!(!passes.hold());
        assert_eq!(passes.sift(vec![text("d")], Point::Ended), [text("d")]);
    }

    #[test]
    fn all_text_can_wait_for_the_end() {
        let mut passes = passes(Granularity::Final, Surface::Artifact);
        let told = passes.sift(vec![text("a "), status(), text("b ")], Point::Flushed);
        assert_eq!(told, [status()]);
        assert!(!passes.hold(), "nothing that a flush could wait for");
        assert_eq!(passes.sift(vec![text("c")], Point::Ended), [text("a b c")]);
    }

    #[test]
    fn what_is_held_back_has_a_limit() {
        for granularity in [Granularity::Pass, Granularity::Final] {
            let mut passes = passes(granularity, Surface::Artifact);
            let long = "x".repeat(HELD_MAX + 1);
            assert_eq!(passes.sift(vec![text(&long)], Point::GoesOn), [text(&long)]);
        }
    }

    /// E-14.
    #[test]
    fn the_last_pass_is_the_last_word_of_a_status() {
        for granularity in [Granularity::Delta, Granularity::Pass] {
            let mut passes = passes(granularity, Surface::Status);
            passes.sift(vec![text("one")], Point::Flushed);
            passes.sift(vec![text("two"), status(), text(" ")], Point::GoesOn);
            assert_eq!(passes.last_word(), Some(Part::text("two")));
            passes.sift(vec![text("thr"), text("ee \n")], Point::Ended);
            assert_eq!(passes.last_word(), Some(Part::text("three")));
        }
    }

    /// E-14.
    #[test]
    fn text_that_waits_for_the_end_is_one_pass() {
        let mut passes = passes(Granularity::Final, Surface::Status);
        passes.sift(vec![text("one "), status(), text("two ")], Point::Flushed);
        let told = passes.sift(vec![text("three\n")], Point::Ended);
        assert_eq!(told, [text("one two three")]);
        assert_eq!(passes.last_word(), Some(Part::text("one two three")));
    }

    #[test]
    fn a_pass_of_a_status_has_no_blanks_at_its_end_and_a_blank_one_is_none() {
        let mut passes = passes(Granularity::Pass, Surface::Status);
        let told = passes.sift(vec![text(" a \n"), status(), text(" ")], Point::Ended);
        assert_eq!(told, [text(" a"), status()]);
    }

    #[test]
    fn both_say_all_of_it_again() {
        let mut passes = passes(Granularity::Delta, Surface::Both);
        passes.sift(vec![text("one "), status()], Point::Flushed);
        passes.sift(vec![text("two\n")], Point::Ended);
        assert_eq!(passes.last_word(), Some(Part::text("one two")));
    }
}
