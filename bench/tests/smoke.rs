//! The benchmarks still work: every case, in small, with the a2ad of this build.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on should panic"
)]

use std::path::Path;

use a2ad_bench::smoke::{SmokeArguments, smoke};

#[test]
fn every_case_gets_right_answers() {
    let own = std::env::current_exe().expect("a test is a file");
    let deps = own.parent().expect("a file is in a folder");
    let a2ad = deps.with_file_name(format!("a2ad{}", std::env::consts::EXE_SUFFIX));
    assert!(
        a2ad.exists(),
        "{} is not there; `cargo build` makes it, and so does `cargo test --workspace`",
        a2ad.display()
    );
    smoke(&SmokeArguments {
        a2ad,
        sources: Path::new(env!("CARGO_MANIFEST_DIR")).to_owned(),
        work: Path::new(env!("CARGO_TARGET_TMPDIR")).to_owned(),
    })
    .unwrap();
}
