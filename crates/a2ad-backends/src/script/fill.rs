//! What texts take from the message they answer: `{text}`, `{message_id}`, `{task_id}`,
//! `{context_id}`.

use a2ad_core::agent::Turn;
use serde_json::Value;

/// Fills in texts for one turn.
pub(super) struct Filler<'a>(pub(super) &'a Turn);

impl Filler<'_> {
    /// The text with its names replaced, once: what is put in is not looked at again. `{{text}`
    /// stands for `{text}`; braces around anything else stand for themselves.
    pub(super) fn fill(&self, text: &str) -> String {
        fill(text, &|name| {
            Some(match name {
                "text" => self.0.text(),
                "message_id" => self.0.message().message_id.clone(),
                "task_id" => self.0.task_id().to_string(),
                "context_id" => self.0.context_id().to_string(),
                _ => return None,
            })
        })
    }

    /// The same in every text of a JSON value; names of members stay.
    pub(super) fn fill_data(&self, data: &Value) -> Value {
        match data {
            Value::String(text) => self.fill(text).into(),
            Value::Array(items) => items.iter().map(|item| self.fill_data(item)).collect(),
            Value::Object(members) => members
                .iter()
                .map(|(name, value)| (name.clone(), self.fill_data(value)))
                .collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) => data.clone(),
        }
    }
}

fn fill(text: &str, value: &dyn Fn(&str) -> Option<String>) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let (before, after) = (&rest[..at], &rest[at + 1..]);
        filled.push_str(before);
        let escaped = after.strip_prefix('{');
        let inside = escaped.unwrap_or(after).split_once('}');
        match inside.and_then(|(name, behind)| Some((name, value(name)?, behind))) {
            Some((name, _, behind)) if escaped.is_some() => {
                filled.push('{');
                filled.push_str(name);
                filled.push('}');
                rest = behind;
            }
            Some((_, value, behind)) => {
                filled.push_str(&value);
                rest = behind;
            }
            None => {
                filled.push('{');
                rest = after;
            }
        }
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use super::fill;

    #[test]
    fn names_are_replaced_once_and_braces_are_left_alone() {
        let value = |name: &str| match name {
            "text" => Some("<{task_id}>".to_owned()),
            "task_id" => Some("T".to_owned()),
            _ => None,
        };
        for (text, expected) in [
            ("", ""),
            ("no names", "no names"),
            ("You said {text}.", "You said <{task_id}>."),
            ("{text}{task_id}", "<{task_id}>T"),
            ("{unknown} { text } {", "{unknown} { text } {"),
            (r#"{"a":{"id":"{task_id}"}}"#, r#"{"a":{"id":"T"}}"#),
            ("{{text}", "{text}"),
            ("{{{task_id}", "{{task_id}"),
            ("{{other}}", "{{other}}"),
            ("{ü} {task_id}", "{ü} T"),
        ] {
            assert_eq!(fill(text, &value), expected, "{text}");
        }
    }
}
