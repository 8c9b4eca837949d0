//! The script back end: an agent that is described rather than programmed. For whoever tests a
//! client and needs an agent that does exactly this or that.
//!
//! A [`Script`] is a list of rules. The first one whose `when` fits a message is played, step by
//! step. `docs/script.md` has the language.
//!
//! Nothing is kept between turns: which rule answered a task's earlier messages is found out by
//! matching them again. So a script survives restarts because the journal does.

mod fill;
mod pattern;
mod play;
mod step;
mod when;
mod written;

pub use play::ScriptAgent;

use a2ad_proto::Message;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use step::Step;
use when::{Before, When};
use written::WrittenScript;

/// An agent's script, checked. It is made by reading a configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "WrittenScript")]
#[schemars(with = "WrittenScript")]
pub struct Script {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rules: Vec<Rule>,
    #[serde(skip_serializing_if = "Option::is_none")]
    otherwise: Option<Vec<Step>>,
}

impl Script {
    /// What it says of itself on a card.
    pub const DESCRIPTION: &'static str = "Answers by a script.";
    /// The most rules a script may have.
    pub const RULES_MAX: usize = 1000;
    /// The most steps a rule may have.
    pub const STEPS_MAX: usize = 1000;
    /// How large a script may be, written as JSON.
    pub const BYTES_MAX: usize = 8 << 20;

    /// The steps for a message, given what the client said before it in the same task.
    fn steps_for<'a>(
        &self,
        earlier: impl Iterator<Item = &'a Message>,
        message: &Message,
    ) -> Option<&[Step]> {
        let find = |message: &Message, before: Before<'_>| {
            self.rules.iter().find(|rule| rule.fits(message, before))
        };
        let looks_back = self.rules.iter().any(Rule::looks_back);
        let mut before = Before::Nothing;
        for message in earlier {
            let rule = looks_back.then(|| find(message, before)).flatten();
            before = Before::Rule(rule.and_then(|rule| rule.name.as_deref()));
        }
        let steps = find(message, before).map(|rule| &rule.steps);
        steps.or(self.otherwise.as_ref()).map(Vec::as_slice)
    }
}

/// What to do with some messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Rule {
    /// A name, so that later rules can say `after`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Which messages: all that is said has to hold. A list of these fits if one of them does.
    #[serde(deserialize_with = "written::conditions")]
    #[schemars(schema_with = "written::conditions_schema")]
    when: Vec<When>,
    /// What happens then, in order.
    #[serde(deserialize_with = "written::steps")]
    #[schemars(length(min = 1))]
    steps: Vec<Step>,
}

impl Rule {
    fn looks_back(&self) -> bool {
        self.when.iter().any(|when| !when.after().is_empty())
    }

    fn fits(&self, message: &Message, before: Before<'_>) -> bool {
        self.when.iter().any(|when| when.fits(message, before))
    }
}
