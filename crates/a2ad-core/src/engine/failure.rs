//! What clients read when a task fails, and how to find the cause in the log.

use sha2::{Digest, Sha256};

use crate::agent::AgentError;

/// A turn that a crash or restart cut off, where running it again might do harm.
pub(super) const CUT_OFF: &str =
    "Task was interrupted by process exit and cannot be revived automatically.";
/// The same where the client is asked.
pub(super) const ASK_AGAIN: &str =
    "Task was interrupted by process exit. Send a message to go on with it.";

/// Failures that have no error of their own.
pub(super) const PANICKED: Known = Known("panic", "The agent failed unexpectedly");
pub(super) const TOO_LONG: Known = Known("deadline", "The agent took too long");
pub(super) const NO_REASON: Known = Known("agent", "The agent gave no reason");

/// How much of an agent's own words clients read.
const TEXT_MAX: usize = 900;

/// A failure as clients read it. The log has the same id, and the cause.
pub(super) struct Failure {
    pub(super) id: String,
    pub(super) text: String,
}

/// A kind of failure, and what is said of it.
#[derive(Clone, Copy)]
pub(super) struct Known(&'static str, &'static str);

impl Known {
    pub(super) fn failure(self) -> Failure {
        Failure::new(self.0, self.1, self.1)
    }
}

impl Failure {
    /// The failure of an agent.
    pub(super) fn of(error: &AgentError) -> Self {
        let cause = error.source.as_ref().map(ToString::to_string);
        Self::new("agent", cause.as_deref().unwrap_or(""), &error.public)
    }

    /// A failure of this kind with this cause; the same ones have the same id.
    pub(super) fn new(kind: &str, cause: &str, public: &str) -> Self {
        let mut hash = Sha256::new();
        for part in [kind, cause, public] {
            hash.update(part);
            hash.update([0]);
        }
        let digest = hash.finalize();
        let id: String = digest
            .iter()
            .take(6)
            .map(|it| format!("{it:02x}"))
            .collect();
        let public: String = public.chars().take(TEXT_MAX).collect();
        let text = format!("Task failed: {public} (error {id})");
        Self { id, text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(public: &str, source: Option<&str>) -> AgentError {
        AgentError {
            public: public.to_owned(),
            retryable: false,
            source: source.map(|it| it.to_owned().into()),
        }
    }

    #[test]
    fn e_03_v_05_a_failure_says_so_and_has_an_id_but_tells_no_cause() {
        let told = Failure::of(&error("No luck", Some("/etc/passwd is not there")));
        assert_eq!(told.id.len(), 12);
        assert_eq!(
            told.text,
            format!("Task failed: No luck (error {})", told.id)
        );
        assert_eq!(
            Failure::of(&error("No luck", Some("/etc/passwd is not there"))).id,
            told.id
        );
        assert_ne!(Failure::of(&error("No luck", None)).id, told.id);
    }

    #[test]
    fn v_05_a_failure_is_no_longer_than_a_thousand_characters() {
        let told = Failure::of(&error(&"é".repeat(5_000), None));
        assert!(told.text.chars().count() <= 1_000);
    }
}
