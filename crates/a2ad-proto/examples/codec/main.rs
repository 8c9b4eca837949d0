//! Measures the encodings: ours, and for comparison types derived with prost, alone and with conversions.
//!
//! `cargo run --release -p a2ad-proto --features protobuf --example codec`
//!
//! The figures behind docs/adr/0002 come from here.
#![allow(clippy::print_stdout, reason = "printing is what it is for")]
#![allow(clippy::unwrap_used, reason = "the inputs are fixed")]

mod derived;

use std::hint::black_box;
use std::time::Instant;

use a2ad_proto::pb::Message as _;
use a2ad_proto::{StreamResponse, Task, from_json, to_json};
use prost::Message as _;

const TASK: &str = include_str!("task.json");
const UPDATE: &str = r#"{"statusUpdate":{"taskId":"8a0a6f7e-3b58-4c3e-9c60-3f0c7cf2a9b1","contextId":"5f7a1d9c-6c52-4a0d-a7ee-0c4a3a0a9b77","status":{"state":"TASK_STATE_WORKING","timestamp":"2026-01-31T09:00:01.250Z"}}}"#;

/// The best of many short rounds in µs: on a shared machine the minimum is the least disturbed figure.
fn time<T>(mut work: impl FnMut() -> T) -> f64 {
    const ROUNDS: usize = 400;
    const CALLS: u32 = 250;
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..CALLS {
            black_box(work());
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e6 / f64::from(CALLS));
    }
    best
}

fn row(name: &str, size: usize, decode: f64, encode: f64) {
    println!("{name:<44} {size:>6} {decode:>8.2} {encode:>8.2}");
}

fn main() {
    let task: Task = from_json(TASK.as_bytes()).unwrap();
    let update: StreamResponse = from_json(UPDATE.as_bytes()).unwrap();
    println!(
        "{:<44} {:>6} {:>8} {:>8}",
        "", "bytes", "read µs", "write µs"
    );

    let json = to_json(&task);
    row(
        "task, JSON",
        json.len(),
        time(|| from_json::<Task>(black_box(&json)).unwrap()),
        time(|| to_json(black_box(&task))),
    );
    let bytes = task.encode_to_vec();
    row(
        "task, protobuf on the same types",
        bytes.len(),
        time(|| Task::decode(black_box(&bytes)).unwrap()),
        time(|| black_box(&task).encode_to_vec()),
    );
    let other = derived::Task::from(&task);
    assert_eq!(
        derived::Task::decode(&*bytes).unwrap(),
        other,
        "encodings differ"
    );
    assert_eq!(
        Task::try_from(other.clone()).unwrap(),
        Task::decode(&bytes).unwrap()
    );
    row(
        "task, derived with prost",
        other.encoded_len(),
        time(|| derived::Task::decode(black_box(&*bytes)).unwrap()),
        time(|| black_box(&other).encode_to_vec()),
    );
    row(
        "task, derived with prost, and conversions",
        other.encoded_len(),
        time(|| Task::try_from(derived::Task::decode(black_box(&*bytes)).unwrap()).unwrap()),
        time(|| derived::Task::from(black_box(&task)).encode_to_vec()),
    );

    let json = to_json(&update);
    row(
        "update, JSON",
        json.len(),
        time(|| from_json::<StreamResponse>(black_box(&json)).unwrap()),
        time(|| to_json(black_box(&update))),
    );
    let bytes = update.encode_to_vec();
    row(
        "update, protobuf on the same types",
        bytes.len(),
        time(|| StreamResponse::decode(black_box(&bytes)).unwrap()),
        time(|| black_box(&update).encode_to_vec()),
    );
    let other = derived::StreamResponse::from(&update);
    assert_eq!(
        derived::StreamResponse::decode(&*bytes).unwrap(),
        other,
        "encodings differ"
    );
    row(
        "update, derived with prost",
        other.encoded_len(),
        time(|| derived::StreamResponse::decode(black_box(&*bytes)).unwrap()),
        time(|| black_box(&other).encode_to_vec()),
    );
    row(
        "update, derived with prost, and conversions",
        other.encoded_len(),
        time(|| {
            let read = derived::StreamResponse::decode(black_box(&*bytes)).unwrap();
            StreamResponse::try_from(read).unwrap()
        }),
        time(|| derived::StreamResponse::from(black_box(&update)).encode_to_vec()),
    );
}
