//! What many rounds come to.

use std::fmt::Write as _;

use serde::Serialize;

use super::cases::MEASURES;
use super::{Measured, MeasuredIdle, Results};
use crate::catalogue::{Keeps, PEERS, Peer, YARDSTICK};
use crate::table::{Table, number};

/// A case of a server over all rounds.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Summary {
    pub(super) server: &'static str,
    pub(super) case: &'static str,
    /// Medians.
    pub(super) cpu_us: Option<f64>,
    rate: f64,
    p50_ms: f64,
    p99_ms: f64,
    sync_us: Option<f64>,
    /// The best round.
    rate_best: f64,
    /// All rounds.
    errors: u64,
    /// How much more of the core than a bare axum handler.
    to_yardstick: Option<f64>,
    /// How much more than the best SDK that keeps tasks in memory.
    to_fastest_in_memory: Option<f64>,
    /// How much more than the same server over JSON-RPC.
    to_json_rpc: Option<f64>,
}

pub(super) fn summarise(results: &Results) -> Vec<Summary> {
    let mut summaries = Vec::new();
    for measure in MEASURES {
        let of_case: Vec<Summary> = PEERS
            .iter()
            .filter_map(|peer| of_server(results, peer.name, measure.name))
            .collect();
        let cpu = |wanted: &dyn Fn(&Peer) -> bool| {
            let peers = PEERS.iter().filter(|peer| wanted(peer));
            peers
                .filter_map(|peer| {
                    of_case
                        .iter()
                        .find(|summary| summary.server == peer.name)?
                        .cpu_us
                })
                .reduce(f64::min)
        };
        let yardstick = cpu(&|peer| peer.name == YARDSTICK);
        let in_memory = cpu(&|peer| peer.keeps == Keeps::InMemory);
        let over_json_rpc = |server: &'static str| {
            let over_json_rpc = measure.over_json_rpc?;
            of_server(results, server, over_json_rpc)?.cpu_us
        };
        summaries.extend(of_case.into_iter().map(|summary| Summary {
            to_yardstick: ratio(summary.cpu_us, yardstick),
            to_fastest_in_memory: ratio(summary.cpu_us, in_memory),
            to_json_rpc: ratio(summary.cpu_us, over_json_rpc(summary.server)),
            ..summary
        }));
    }
    summaries
}

fn of_server(results: &Results, server: &'static str, case: &'static str) -> Option<Summary> {
    let all: Vec<&Measured> = results
        .measured
        .iter()
        .filter(|measured| measured.server == server && measured.case == case)
        .collect();
    let middle = |value: &dyn Fn(&Measured) -> Option<f64>| {
        median(all.iter().filter_map(|measured| value(measured)).collect())
    };
    Some(Summary {
        server,
        case,
        cpu_us: middle(&|it| it.cpu_us),
        rate: middle(&|it| Some(it.rate))?,
        p50_ms: middle(&|it| Some(it.p50_ms))?,
        p99_ms: middle(&|it| Some(it.p99_ms))?,
        sync_us: middle(&|it| it.sync_us),
        rate_best: all.iter().map(|it| it.rate).reduce(f64::max)?,
        errors: all.iter().map(|it| it.errors).sum(),
        to_yardstick: None,
        to_fastest_in_memory: None,
        to_json_rpc: None,
    })
}

fn ratio(value: Option<f64>, to: Option<f64>) -> Option<f64> {
    value.zip(to).map(|(value, to)| value / to)
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}

const SHARED_HEAD: [&str; 10] = [
    "server",
    "CPU µs",
    "÷ bare axum",
    "÷ fastest in-memory SDK",
    "per second",
    "best",
    "p50 ms",
    "p99 ms",
    "errors",
    "sync µs",
];
const BINDING_HEAD: [&str; 9] = [
    "server",
    "CPU µs",
    "÷ its JSON-RPC",
    "per second",
    "best",
    "p50 ms",
    "p99 ms",
    "errors",
    "sync µs",
];

/// A table for each case, in Markdown.
pub(super) fn tables(summaries: &[Summary], idle: &[MeasuredIdle]) -> String {
    let mut text = String::new();
    let mut add = |title: &str, table: Table| {
        if !table.is_empty() {
            let _strings_take_everything = write!(text, "**{title}**\n\n{table}\n");
        }
    };
    let mut who = Table::new(&["server", "what", "version"]);
    for peer in PEERS {
        if summaries.iter().any(|it| it.server == peer.name)
            || idle.iter().any(|it| it.server == peer.name)
        {
            let version = peer.version().unwrap_or("?").to_owned();
            who.row([peer.name.to_owned(), peer.what.to_owned(), version]);
        }
    }
    add("Servers", who);
    for measure in MEASURES {
        let mut table = Table::new(match measure.over_json_rpc {
            None => &SHARED_HEAD,
            Some(_) => &BINDING_HEAD,
        });
        for summary in summaries.iter().filter(|it| it.case == measure.name) {
            let ratios = match measure.over_json_rpc {
                None => vec![summary.to_yardstick, summary.to_fastest_in_memory],
                Some(_) => vec![summary.to_json_rpc],
            };
            let mut row = vec![summary.server.to_owned(), number(summary.cpu_us)];
            row.extend(ratios.into_iter().map(number));
            row.extend([
                number(Some(summary.rate)),
                number(Some(summary.rate_best)),
                number(Some(summary.p50_ms)),
                number(Some(summary.p99_ms)),
                summary.errors.to_string(),
                number(summary.sync_us),
            ]);
            table.row(row);
        }
        add(measure.title, table);
    }
    let mut table = Table::new(&[
        "server",
        "streams",
        "KiB each",
        "start ms",
        "RSS before, MiB",
        "event p50 ms",
        "event p99 ms",
    ]);
    for peer in PEERS {
        let all = || idle.iter().filter(|idle| idle.server == peer.name);
        let middle = |value: &dyn Fn(&MeasuredIdle) -> Option<f64>| {
            median(all().filter_map(value).collect())
        };
        if let Some(first) = all().next() {
            table.row([
                peer.name.to_owned(),
                first.streams.to_string(),
                number(middle(&|it| Some(it.kib_each))),
                number(middle(&|it| Some(it.start_ms))),
                number(middle(&|it| Some(it.rss_kib as f64 / 1024.0))),
                number(middle(&|it| it.event_p50_ms)),
                number(middle(&|it| it.event_p99_ms)),
            ]);
        }
    }
    add(
        "Start, idle streams, and then one event to all of them",
        table,
    );
    text
}

/// One measurement, while others run.
pub(super) fn line(measured: &Measured) -> String {
    let sync = match measured.sync_us {
        Some(sync) => format!(", sync {sync:.0} µs"),
        None => String::new(),
    };
    format!(
        "{:<16} {:>9} µs CPU  {:>9}/s  p50 {:>7} ms  p99 {:>7} ms  {} errors{sync}",
        measured.case,
        number(measured.cpu_us),
        number(Some(measured.rate)),
        number(Some(measured.p50_ms)),
        number(Some(measured.p99_ms)),
        measured.errors,
    )
}

pub(super) fn idle_line(idle: &MeasuredIdle) -> String {
    format!(
        "{:<16} {} streams, {} KiB each, one event to all: p50 {} ms, p99 {} ms",
        "idle",
        idle.streams,
        number(Some(idle.kib_each)),
        number(idle.event_p50_ms),
        number(idle.event_p99_ms),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_to_the_yardstick_and_to_the_best_sdk() {
        let measured = |server, round, cpu_us| Measured {
            round,
            server,
            case: "send",
            rate: 1.0,
            cpu_us: Some(cpu_us),
            p50_ms: 1.0,
            p99_ms: 1.0,
            errors: 0,
            first_errors: Vec::new(),
            sync_us: None,
        };
        let results = Results {
            measured: vec![
                measured("bare-axum", 1, 10.0),
                measured("a2ad", 1, 21.0),
                measured("a2ad", 2, 90.0),
                measured("a2ad", 3, 20.0),
                measured("official", 1, 42.0),
                measured("python", 1, 420.0),
            ],
            ..Results::default()
        };
        let summaries = summarise(&results);
        let ours = summaries.iter().find(|it| it.server == "a2ad").unwrap();
        assert_eq!(ours.cpu_us, Some(21.0));
        assert_eq!(ours.to_yardstick, Some(2.1));
        assert_eq!(ours.to_fastest_in_memory, Some(0.5));
    }
}
