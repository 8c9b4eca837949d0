//! Which crate may use which: the arrows of docs/ARCHITECTURE.md, checked.

use std::path::Path;

use anyhow::{Result, bail};
use serde_json::Value;

use crate::workspace::{metadata, root};

/// One of our crates.
struct Layer {
    name: &'static str,
    /// Which of our crates it may use.
    ours: &'static [&'static str],
    /// Which others it must not use: itself, or anything that begins so.
    not: &'static [&'static str],
    /// Whether it may read the environment, print, exit, and use `anyhow`.
    outermost: bool,
}

const SQL: &[&str] = &["rusqlite", "sqlx", "tokio-postgres", "postgres"];

const LAYERS: &[Layer] = &[
    Layer {
        name: "a2ad-proto",
        ours: &[],
        // No async, I/O, clock or randomness.
        not: &[
            "tokio",
            "futures",
            "hyper",
            "http",
            "axum",
            "tonic",
            "rusqlite",
            "sqlx",
            "metrics",
            "tracing",
            "getrandom",
            "rand",
        ],
        outermost: false,
    },
    Layer {
        name: "a2ad-core",
        ours: &["a2ad-proto"],
        // No HTTP, SQL or vendor.
        not: &[
            "hyper",
            "http",
            "axum",
            "tonic",
            "tower",
            "reqwest",
            "rusqlite",
            "sqlx",
            "postgres",
            "tokio-postgres",
            "metrics-exporter",
        ],
        outermost: false,
    },
    Layer {
        name: "a2ad-store",
        ours: &["a2ad-core", "a2ad-proto"],
        not: &["hyper", "http", "axum", "tonic", "tower", "reqwest"],
        outermost: false,
    },
    Layer {
        name: "a2ad-transport",
        ours: &["a2ad-core", "a2ad-proto"],
        not: SQL,
        outermost: false,
    },
    Layer {
        name: "a2ad-client",
        ours: &["a2ad-proto"],
        not: SQL,
        outermost: false,
    },
    Layer {
        name: "a2ad-backends",
        ours: &["a2ad-client", "a2ad-core", "a2ad-proto"],
        not: SQL,
        outermost: false,
    },
    Layer {
        name: "a2ad-server",
        ours: &[
            "a2ad-backends",
            "a2ad-client",
            "a2ad-core",
            "a2ad-proto",
            "a2ad-store",
            "a2ad-transport",
        ],
        not: SQL,
        outermost: false,
    },
    Layer {
        name: "a2ad",
        ours: &["a2ad-client", "a2ad-server"],
        not: SQL,
        outermost: true,
    },
    Layer {
        name: "a2ad-testkit",
        ours: &[
            "a2ad-client",
            "a2ad-core",
            "a2ad-proto",
            "a2ad-server",
            "a2ad-store",
        ],
        not: &[],
        outermost: true,
    },
    Layer {
        name: "a2ad-interop",
        ours: &[],
        not: &[],
        outermost: true,
    },
    Layer {
        name: "xtask",
        ours: &[],
        not: &[],
        outermost: true,
    },
];

/// What only the outermost crates may write.
const OUTERMOST_WORDS: &[&str] = &["std::env::", "use std::env", "std::process::exit"];

/// Fails on the arrows that are not in the table, naming all of them.
pub(crate) fn check() -> Result<()> {
    let mut wrong = wrong_arrows(&metadata()?);
    for layer in LAYERS.iter().filter(|layer| !layer.outermost) {
        let folder = root().join("crates").join(layer.name).join("src");
        if folder.exists() {
            wrong_words(&folder, &mut wrong)?;
        }
    }
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n       "));
    }
    Ok(())
}

fn wrong_arrows(metadata: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or_default();
        let Some(layer) = LAYERS.iter().find(|layer| layer.name == name) else {
            wrong.push(format!(
                "{name} has no place in the table of xtask/src/layers.rs"
            ));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            // Tests may use whatever they like.
            if dependency["kind"] == "dev" {
                continue;
            }
            let used = dependency["name"].as_str().unwrap_or_default();
            if let Some(why) = layer.refuses(used) {
                wrong.push(format!("{name} must not use {used}: {why}"));
            }
        }
    }
    wrong
}

impl Layer {
    fn refuses(&self, used: &str) -> Option<&'static str> {
        let begins = |word: &&str| used == *word || used.starts_with(&format!("{word}-"));
        if LAYERS.iter().any(|layer| layer.name == used) {
            (!self.ours.contains(&used)).then_some("the arrows go one way")
        } else if used == "anyhow" && !self.outermost {
            Some("libraries have error types of their own")
        } else {
            self.not
                .iter()
                .any(begins)
                .then_some("that belongs to another layer")
        }
    }
}

/// Looks for what libraries leave to their callers.
fn wrong_words(folder: &Path, wrong: &mut Vec<String>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            wrong_words(&path, wrong)?;
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && path.file_name().is_some_and(|name| name != "tests.rs")
        {
            let text = std::fs::read_to_string(&path)?;
            // Tests inside a file come last in it.
            let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or(&text);
            for (index, line) in code.lines().enumerate() {
                if OUTERMOST_WORDS.iter().any(|word| line.contains(word))
                    && !line.trim_start().starts_with("//")
                {
                    let path = path.strip_prefix(root()).unwrap_or(&path);
                    wrong.push(format!(
                        "{}:{}: only the binaries read the environment or exit",
                        path.display(),
                        index + 1
                    ));
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrows(name: &str, used: &str, kind: Option<&str>) -> Vec<String> {
        wrong_arrows(&serde_json::json!({
            "packages": [{"name": name, "dependencies": [{"name": used, "kind": kind}]}]
        }))
    }

    #[test]
    fn the_workspace_keeps_to_its_layers() {
        check().unwrap();
    }

    #[test]
    fn a_wrong_arrow_is_found() {
        assert_eq!(arrows("a2ad-store", "a2ad-transport", None).len(), 1);
        assert_eq!(arrows("a2ad-proto", "a2ad-core", None).len(), 1);
        assert_eq!(arrows("a2ad-backends", "a2ad-store", None).len(), 1);
        assert_eq!(arrows("a2ad-core", "http-body", None).len(), 1);
        assert_eq!(arrows("a2ad-proto", "tokio-util", None).len(), 1);
        assert_eq!(arrows("a2ad-server", "anyhow", None).len(), 1);
        assert_eq!(arrows("a2ad-server", "rusqlite", Some("build")).len(), 1);
        assert_eq!(arrows("a2ad-newcomer", "serde", None).len(), 1);
    }

    #[test]
    fn a_right_arrow_is_not() {
        assert!(arrows("a2ad-store", "a2ad-core", None).is_empty());
        assert!(arrows("a2ad-store", "rusqlite", None).is_empty());
        assert!(arrows("a2ad", "anyhow", None).is_empty());
        assert!(arrows("a2ad-proto", "tokio", Some("dev")).is_empty());
    }
}
