//! The log: one line per event on the standard error, as text or JSON.
//!
//! The formats are our own for two reasons: values come from outside and must not be able to end
//! a line or speak to a terminal, and the causes of an error belong into the log.

use std::error::Error;
use std::fmt::{self, Write as _};

use a2ad_server::config::{Log, LogFormat};
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer as _;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::failure::{Exit, Failure};

/// What is let through.
pub(crate) fn filter(log: &Log) -> Result<Targets, Failure> {
    let wrong = || {
        Failure::usage(format!(
            "log.level: `{}` is no filter; write error, warn, info, debug or trace, or something like info,a2ad_core=debug",
            log.level
        ))
    };
    // A word alone would be taken for the name of a module, so that a misspelt level would quietly
    // turn the log off.
    let alone = |word: &&str| !word.contains('=') && !word.trim().starts_with("a2ad");
    let mut alone = log.level.split(',').filter(alone);
    let level = |word: &str| !word.is_empty() && word.parse::<LevelFilter>().is_ok();
    if !alone.all(|word| level(word.trim())) {
        return Err(wrong());
    }
    log.level.parse().map_err(|_| wrong())
}

/// Starts logging, for the whole process.
pub(crate) fn start(log: &Log) -> Result<(), Failure> {
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .fmt_fields(Fields)
        .event_format(Lines(log.format))
        .with_filter(filter(log)?);
    tracing_subscriber::registry()
        .with(lines)
        .try_init()
        .map_err(|error| Failure::new(Exit::Internal, error.into()))
}

/// Keeps the fields of spans as JSON, from which both formats are made.
struct Fields;

impl<'writer> FormatFields<'writer> for Fields {
    fn format_fields<R: RecordFields>(
        &self,
        mut writer: Writer<'writer>,
        fields: R,
    ) -> fmt::Result {
        let mut collected = Collected::default();
        fields.record(&mut collected);
        write!(writer, "{}", Value::Object(collected.0))
    }

    fn add_fields(
        &self,
        current: &'writer mut FormattedFields<Self>,
        fields: &tracing::span::Record<'_>,
    ) -> fmt::Result {
        let mut collected = Collected(parse(&current.fields));
        fields.record(&mut collected);
        current.fields = Value::Object(collected.0).to_string();
        Ok(())
    }
}

fn parse(fields: &str) -> Map<String, Value> {
    serde_json::from_str(fields).unwrap_or_default()
}

/// Fields by name.
#[derive(Default)]
struct Collected(Map<String, Value>);

impl Collected {
    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Collected {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        let mut text = value.to_string();
        let mut cause = value.source();
        while let Some(error) = cause {
            let _fits = write!(text, ": {error}");
            cause = error.source();
        }
        self.put(field, text);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}"));
    }
}

/// One line per event.
struct Lines(LogFormat);

impl<S> FormatEvent<S, Fields> for Lines
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, Fields>,
        writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = Collected::default();
        event.record(&mut fields);
        let spans: Vec<(&'static str, Map<String, Value>)> = context
            .event_scope()
            .into_iter()
            .flat_map(|scope| scope.from_root())
            .map(|span| {
                let extensions = span.extensions();
                let fields = extensions.get::<FormattedFields<Fields>>();
                let fields = fields.map_or_else(Map::new, |fields| parse(&fields.fields));
                (span.name(), fields)
            })
            .collect();
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        match self.0 {
            LogFormat::Text => text_line(writer, &time, event, fields.0, &spans),
            LogFormat::Json => json_line(writer, time, event, fields.0, &spans),
        }
    }
}

fn text_line(
    mut writer: Writer<'_>,
    time: &str,
    event: &Event<'_>,
    mut fields: Map<String, Value>,
    spans: &[(&'static str, Map<String, Value>)],
) -> fmt::Result {
    let metadata = event.metadata();
    let message = fields.remove("message").unwrap_or_default();
    write!(
        writer,
        "{time} {:>5} {}: ",
        metadata.level(),
        metadata.target()
    )?;
    plain(&mut writer, &message)?;
    let fields = fields.iter();
    for (name, value) in fields.chain(spans.iter().rev().flat_map(|(_, fields)| fields)) {
        write!(writer, " {name}=")?;
        plain(&mut writer, value)?;
    }
    writeln!(writer)
}

/// Writes a value so that it stays on its line and does nothing to a terminal.
fn plain(writer: &mut Writer<'_>, value: &Value) -> fmt::Result {
    let Value::String(text) = value else {
        return write!(writer, "{value}");
    };
    for c in text.chars() {
        if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}') {
            write!(writer, "{}", c.escape_default())?;
        } else {
            writer.write_char(c)?;
        }
    }
    Ok(())
}

fn json_line(
    mut writer: Writer<'_>,
    time: String,
    event: &Event<'_>,
    mut fields: Map<String, Value>,
    spans: &[(&'static str, Map<String, Value>)],
) -> fmt::Result {
    let metadata = event.metadata();
    let mut line = Map::new();
    line.insert("timestamp".to_owned(), time.into());
    line.insert("level".to_owned(), metadata.level().as_str().into());
    line.insert("target".to_owned(), metadata.target().into());
    let message = fields.remove("message").unwrap_or_default();
    line.insert("message".to_owned(), message);
    if let Some((name, _)) = spans.last() {
        line.insert("span".to_owned(), (*name).into());
    }
    // What is nearest wins: the event's own fields, then those of the spans from the inside out.
    let around = spans.iter().rev().flat_map(|(_, fields)| fields);
    for (name, value) in fields.iter().chain(around) {
        line.entry(name.clone()).or_insert_with(|| value.clone());
    }
    writeln!(writer, "{}", Value::Object(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(level: &str) -> bool {
        let mut log = Log::default();
        level.clone_into(&mut log.level);
        filter(&log).is_ok()
    }

    #[test]
    fn a_misspelt_level_is_refused() {
        for level in [
            "info",
            "off",
            "DEBUG",
            "warn,a2ad_core=debug",
            "a2ad_store",
            "info, hyper=off",
        ] {
            assert!(accepts(level), "{level}");
        }
        for level in ["", "loud", "inof,a2ad_core=debug", "a2ad_core=loud"] {
            assert!(!accepts(level), "{level}");
        }
    }

    #[test]
    fn a_value_stays_on_its_line() {
        let mut line = String::new();
        let value = Value::from("a\nb\u{1b}[31m\u{9b}\u{202e}ü");
        plain(&mut Writer::new(&mut line), &value).unwrap();
        assert_eq!(line, "a\\nb\\u{1b}[31m\\u{9b}\\u{202e}ü");
    }
}
