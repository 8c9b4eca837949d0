//! The CPU time of every server in every case that all have, as an SVG.

use std::fmt::Write as _;

use super::cases::MEASURES;
use super::summary::Summary;
use crate::catalogue::PEERS;
use crate::table::number;

const LEFT: f64 = 130.0;
const WIDTH: f64 = 560.0;
const RIGHT: f64 = 70.0;
const BAR: f64 = 15.0;
const GAP: f64 = 34.0;
/// Microseconds at the left and the right end; each power of ten is as wide as the others.
const SCALE: (f64, f64) = (1.0, 100_000.0);

pub(super) fn plot(summaries: &[Summary]) -> String {
    let mut drawn = String::new();
    let mut y = 40.0;
    for measure in MEASURES.iter().filter(|measure| !measure.ours_only) {
        let bars: Vec<&Summary> = summaries
            .iter()
            .filter(|it| it.case == measure.name)
            .collect();
        if bars.is_empty() {
            continue;
        }
        text(&mut drawn, (10.0, y), "start", "bold", measure.title);
        y += 8.0;
        for summary in bars {
            let Some(cpu_us) = summary.cpu_us else {
                continue;
            };
            let ours = PEERS
                .iter()
                .any(|peer| peer.ours && peer.name == summary.server);
            let colour = if ours { "#c2410c" } else { "#94a3b8" };
            let width = place(cpu_us) - LEFT;
            let _strings_take_everything = writeln!(
                drawn,
                r#"<rect x="{LEFT}" y="{y:.0}" width="{width:.1}" height="{:.0}" fill="{colour}"/>"#,
                BAR - 3.0
            );
            let baseline = y + BAR - 5.0;
            text(
                &mut drawn,
                (LEFT - 6.0, baseline),
                "end",
                "normal",
                summary.server,
            );
            let label = format!("{} µs", number(Some(cpu_us)));
            text(
                &mut drawn,
                (place(cpu_us) + 5.0, baseline),
                "start",
                "normal",
                &label,
            );
            y += BAR;
        }
        y += GAP;
    }
    let (width, height) = (LEFT + WIDTH + RIGHT, y);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    text(
        &mut svg,
        (10.0, 18.0),
        "start",
        "bold",
        "CPU time of the server per request, logarithmic",
    );
    svg.push_str(&drawn);
    svg.push_str("</svg>\n");
    svg
}

/// Where a time ends.
fn place(microseconds: f64) -> f64 {
    let (low, high) = SCALE;
    let share = (microseconds.clamp(low, high) / low).log10() / (high / low).log10();
    LEFT + share * WIDTH
}

fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, weight: &str, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    let _strings_take_everything = writeln!(
        svg,
        r#"<text x="{x:.0}" y="{y:.0}" text-anchor="{anchor}" font-weight="{weight}">{words}</text>"#
    );
}
