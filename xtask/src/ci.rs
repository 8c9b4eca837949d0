//! Everything that has to be right before a change lands.
//!
//! The steps share what they build: clippy and rustdoc check the same features, the tests build
//! the binary that the generated files come from.

use std::time::Instant;

use anyhow::{Context as _, Result, bail};

use crate::requirements::{self, Form};
use crate::workspace::{cargo, metadata, succeed};
use crate::{deny, generate, interop, layers, postgres};

struct Step {
    name: &'static str,
    run: fn() -> Result<()>,
}

/// Quick ones first.
const STEPS: &[Step] = &[
    Step {
        name: "fmt",
        run: || succeed(cargo().args(["fmt", "--all", "--check"])),
    },
    Step {
        name: "layers",
        run: layers::check,
    },
    Step {
        name: "requirements",
        run: || requirements::run(Form::Untested),
    },
    Step {
        name: "clippy",
        run: clippy,
    },
    Step {
        name: "test",
        run: test,
    },
    Step {
        name: "interop",
        run: || interop::run(&[]),
    },
    Step {
        name: "generated",
        run: generate::check,
    },
    Step {
        name: "doc",
        run: doc,
    },
    Step {
        name: "alone",
        run: alone,
    },
    Step {
        name: "deny",
        run: deny::check,
    },
];

pub(crate) fn list() {
    for step in STEPS {
        println!("{}", step.name);
    }
}

/// Runs the named steps, or all; stops at the first failure.
pub(crate) fn run(names: &[&str]) -> Result<()> {
    if let Some(unknown) = names
        .iter()
        .find(|name| STEPS.iter().all(|step| step.name != **name))
    {
        bail!("no step `{unknown}`; `cargo xtask ci --list` names them");
    }
    let chosen: Vec<&Step> = STEPS
        .iter()
        .filter(|step| names.is_empty() || names.contains(&step.name))
        .collect();
    let begin = Instant::now();
    let mut times = Vec::new();
    for (index, step) in chosen.iter().enumerate() {
        println!("==> {}/{} {}", index + 1, chosen.len(), step.name);
        let begin = Instant::now();
        (step.run)().with_context(|| format!("step {}", step.name))?;
        let seconds = begin.elapsed().as_secs_f64();
        println!("<== {} ok, {seconds:.1} s", step.name);
        times.push(format!("{} {seconds:.1}", step.name));
    }
    println!(
        "all {} steps ok in {:.1} s ({})",
        chosen.len(),
        begin.elapsed().as_secs_f64(),
        times.join(", ")
    );
    Ok(())
}

/// Some tests need a PostgreSQL.
fn test() -> Result<()> {
    postgres::install()?;
    succeed(cargo().args(["test", "--workspace", "--all-features", "--locked"]))
}

fn clippy() -> Result<()> {
    let mut command = cargo();
    command.args(["clippy", "--workspace", "--all-targets", "--all-features"]);
    succeed(command.args(["--locked", "--", "-D", "warnings"]))
}

fn doc() -> Result<()> {
    let mut command = cargo();
    command.args(["doc", "--workspace", "--all-features", "--no-deps"]);
    succeed(command.arg("--locked").env("RUSTDOCFLAGS", "-D warnings"))
}

/// Each published crate has to build with nothing but what it asks for itself: in the workspace,
/// another crate's features could be what makes it compile.
fn alone() -> Result<()> {
    for package in metadata()?["packages"].as_array().into_iter().flatten() {
        let published = package["publish"].is_null();
        let Some(name) = package["name"].as_str().filter(|_| published) else {
            continue;
        };
        succeed(cargo().args(["check", "--locked", "--package", name]))?;
        let features = package["features"].as_object().into_iter().flatten();
        for (feature, _) in features.filter(|(feature, _)| *feature != "default") {
            let mut command = cargo();
            command.args(["check", "--locked", "--no-default-features"]);
            succeed(command.args(["--package", name, "--features", feature]))?;
        }
    }
    Ok(())
}
