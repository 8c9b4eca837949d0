//! What is measured, and under which names.

use std::time::Duration;

use metrics::{
    Counter, Histogram, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge,
    histogram,
};

use crate::method::Method;

/// Requests answered, by binding, method and outcome (`ok` or the error's reason).
pub const REQUESTS_TOTAL: &str = "a2ad_requests_total";
/// How long a request took until its answer, or the first frame of its stream, was ready.
pub const REQUEST_SECONDS: &str = "a2ad_request_seconds";
/// Event streams being served.
pub const OPEN_STREAMS: &str = "a2ad_open_streams";
/// Connections open.
pub const OPEN_CONNECTIONS: &str = "a2ad_open_connections";

/// Stands for every method we do not know, so that callers cannot invent labels.
const UNKNOWN: &str = "unknown";
const OK: &str = "ok";

/// How a request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binding {
    JsonRpc,
    HttpJson,
    Grpc,
}

impl Binding {
    const ALL: [Self; 3] = [Self::JsonRpc, Self::HttpJson, Self::Grpc];

    /// Its label.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::JsonRpc => "jsonrpc",
            Self::HttpJson => "http_json",
            Self::Grpc => "grpc",
        }
    }
}

/// Tells the recorder what the metrics mean. Call it once, after the recorder is installed.
pub fn describe() {
    describe_counter!(REQUESTS_TOTAL, "Requests answered, by outcome.");
    describe_histogram!(
        REQUEST_SECONDS,
        Unit::Seconds,
        "Time until the answer or the first frame was ready."
    );
    describe_gauge!(OPEN_STREAMS, "Event streams being served.");
    describe_gauge!(OPEN_CONNECTIONS, "Connections open.");
}

/// The label of a method.
pub(crate) fn label(method: Option<Method>) -> &'static str {
    method.map_or(UNKNOWN, Method::name)
}

/// Handles of the metrics touched with every request; looking them up by name each time would cost more than the
/// rest of the bookkeeping.
#[derive(Debug)]
pub(crate) struct Meters([OfBinding; Binding::ALL.len()]);

#[derive(Debug)]
struct OfBinding {
    methods: [(Counter, Histogram); Method::ALL.len()],
    unknown: Histogram,
}

impl Meters {
    /// Asks the installed recorder for the handles.
    pub(crate) fn new() -> Self {
        // There from the start, also where nobody has come yet.
        gauge!(OPEN_CONNECTIONS).increment(0.0);
        gauge!(OPEN_STREAMS).increment(0.0);
        Self(Binding::ALL.map(|binding| {
            let of_method = |method: Method| {
                let method = method.name();
                (answered(binding, method, OK), seconds(binding, method))
            };
            OfBinding {
                methods: Method::ALL.map(of_method),
                unknown: seconds(binding, UNKNOWN),
            }
        }))
    }

    /// Counts a request; `refused` is the reason of its error.
    pub(crate) fn count(
        &self,
        binding: Binding,
        method: Option<Method>,
        refused: Option<&'static str>,
        took: Duration,
    ) {
        let of_binding = &self.0[binding as usize];
        let known = method.and_then(|method| of_binding.methods.get(method as usize));
        known
            .map_or(&of_binding.unknown, |(_, time)| time)
            .record(took.as_secs_f64());
        match (known, refused) {
            (Some((ok, _)), None) => ok.increment(1),
            (_, outcome) => {
                answered(binding, label(method), outcome.unwrap_or(OK)).increment(1);
            }
        }
    }
}

fn answered(binding: Binding, method: &'static str, outcome: &'static str) -> Counter {
    counter!(REQUESTS_TOTAL, "binding" => binding.name(), "method" => method, "outcome" => outcome)
}

fn seconds(binding: Binding, method: &'static str) -> Histogram {
    histogram!(REQUEST_SECONDS, "binding" => binding.name(), "method" => method)
}

/// Something open that is counted for as long as this lives.
#[derive(Debug)]
pub(crate) struct Gauge(metrics::Gauge);

impl Gauge {
    pub(crate) fn open_connection() -> Self {
        Self::of(gauge!(OPEN_CONNECTIONS))
    }

    pub(crate) fn open_stream() -> Self {
        Self::of(gauge!(OPEN_STREAMS))
    }

    fn of(gauge: metrics::Gauge) -> Self {
        gauge.increment(1.0);
        Self(gauge)
    }
}

impl Drop for Gauge {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_and_bindings_are_listed_in_the_order_of_their_numbers() {
        for (place, binding) in Binding::ALL.into_iter().enumerate() {
            assert_eq!(binding as usize, place, "{}", binding.name());
        }
        for (place, method) in Method::ALL.into_iter().enumerate() {
            assert_eq!(method as usize, place, "{}", method.name());
        }
    }
}
