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
        name: "a2ad-pgkit",
        ours: &[],
        not: &[],
        outermost: true,
    },
    Layer {
        name: "a2ad-testkit",
        ours: &[
            "a2ad-client",
            "a2ad-core",
            "a2ad-pgkit",
            "a2ad-proto",
            "a2ad-server",
            "a2ad-store",
        ],
        not: &[],
        outermost: true,
    },
    Layer {
        name: "a2ad-bench",
        ours: &["a2ad-pgkit", "a2ad-proto"],
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
        name: "a2ad-interop-server",
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

/// The one published crate that may call out: its dialer judges whom.
const CALLS_OUT: &str = "a2ad-client";

/// HTTP clients, under whatever features.
const HTTP_CLIENTS: &[&str] = &[
    "attohttpc",
    "awc",
    "curl",
    "hyper-rustls",
    "hyper-tls",
    "isahc",
    "minreq",
    "reqwest",
    "surf",
    "ureq",
];

/// Crates of which some features are HTTP clients, with how the names of those features begin.
const PARTLY_CLIENTS: &[(&str, &[&str])] = &[
    ("hyper", &["client", "full"]),
    ("hyper-util", &["client", "full"]),
    ("tonic", &["channel", "transport", "tls"]),
];

/// What calls out, in sources.
const CALLING_WORDS: &[&str] = &[
    "reqwest::",
    "use reqwest",
    "hyper::client",
    "hyper_util::client",
    "tonic::transport::Channel",
    "TcpStream::connect",
];

/// Fails on the arrows that are not in the table, naming all of them.
pub(crate) fn check() -> Result<()> {
    let metadata = metadata()?;
    let mut wrong = wrong_arrows(&metadata);
    wrong.extend(wrong_ways_out(&metadata));
    for layer in LAYERS {
        let folder = root().join("crates").join(layer.name).join("src");
        if !folder.exists() {
            continue;
        }
        if !layer.outermost {
            let why = "only the binaries read the environment or exit";
            wrong_words(&folder, OUTERMOST_WORDS, why, &mut wrong)?;
        }
        if published(&metadata).any(|package| package["name"] == layer.name)
            && layer.name != CALLS_OUT
        {
            let why = "only the dialer of a2ad-client calls out";
            wrong_words(&folder, CALLING_WORDS, why, &mut wrong)?;
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

/// Our packages that others may use.
fn published(metadata: &Value) -> impl Iterator<Item = &Value> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    packages.filter(|package| package["publish"].is_null())
}

/// Looks for HTTP clients beside the guarded one.
fn wrong_ways_out(metadata: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    for package in published(metadata).filter(|package| package["name"] != CALLS_OUT) {
        let name = package["name"].as_str().unwrap_or_default();
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let used = dependency["name"].as_str().unwrap_or_default();
            if dependency["kind"] != "dev" && calls_out(dependency) {
                wrong.push(format!(
                    "{name} must not use {used} as an HTTP client: only the dialer of {CALLS_OUT} calls out"
                ));
            }
        }
    }
    wrong
}

fn calls_out(dependency: &Value) -> bool {
    let used = dependency["name"].as_str().unwrap_or_default();
    let features = dependency["features"].as_array().into_iter().flatten();
    let mut features = features.filter_map(Value::as_str);
    let partly = PARTLY_CLIENTS.iter().find(|(name, _)| *name == used);
    HTTP_CLIENTS.contains(&used)
        || partly.is_some_and(|(_, client)| {
            features.any(|feature| client.iter().any(|begin| feature.starts_with(begin)))
        })
        // The only one of them that calls out by default.
        || (used == "tonic" && dependency["uses_default_features"] != false)
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

/// Looks for `words` in the sources of a crate, its tests aside.
fn wrong_words(folder: &Path, words: &[&str], why: &str, wrong: &mut Vec<String>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.file_stem().is_some_and(|name| name == "tests") {
            continue;
        }
        if path.is_dir() {
            wrong_words(&path, words, why, wrong)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path)?;
            let path = path.strip_prefix(root()).unwrap_or(&path);
            for line in lines_with(words, &text) {
                wrong.push(format!("{}:{line}: {why}", path.display()));
            }
        }
    }
    Ok(())
}

/// The numbers of the lines of code that have one of `words`.
fn lines_with<'a>(words: &'a [&str], text: &'a str) -> impl Iterator<Item = usize> + 'a {
    // Tests inside a file come last in it.
    let code = text
        .split("#[cfg(test)]\nmod tests {")
        .next()
        .unwrap_or(text);
    let lines = code.lines().enumerate();
    lines
        .filter(|(_, line)| words.iter().any(|word| line.contains(word)))
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
        .map(|(index, _)| index + 1)
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
        assert_eq!(arrows("a2ad-client", "a2ad-core", None).len(), 1);
        assert_eq!(arrows("a2ad-transport", "a2ad-client", None).len(), 1);
        assert_eq!(arrows("a2ad-core", "a2ad-client", None).len(), 1);
        assert_eq!(arrows("a2ad-store", "a2ad-client", None).len(), 1);
        assert_eq!(arrows("a2ad-core", "http-body", None).len(), 1);
        assert_eq!(arrows("a2ad-proto", "tokio-util", None).len(), 1);
        assert_eq!(arrows("a2ad-server", "anyhow", None).len(), 1);
        assert_eq!(arrows("a2ad-server", "rusqlite", Some("build")).len(), 1);
        assert_eq!(arrows("a2ad-newcomer", "serde", None).len(), 1);
    }

    fn ways_out(name: &str, publish: Value, dependency: Value) -> Vec<String> {
        wrong_ways_out(&serde_json::json!({
            "packages": [{"name": name, "publish": publish, "dependencies": [dependency]}]
        }))
    }

    fn hyper(features: &[&str], kind: Option<&str>) -> Value {
        serde_json::json!({"name": "hyper", "features": features, "kind": kind})
    }

    #[test]
    fn an_http_client_beside_the_dialer_is_found() {
        let reqwest = serde_json::json!({"name": "reqwest", "features": [], "kind": null});
        let util = serde_json::json!({"name": "hyper-util", "features": ["client-legacy"]});
        let tonic =
            serde_json::json!({"name": "tonic", "features": [], "uses_default_features": true});
        for dependency in [
            &reqwest,
            &hyper(&["http1", "client"], None),
            &hyper(&["full"], Some("build")),
            &util,
            &tonic,
        ] {
            for name in ["a2ad-backends", "a2ad-server", "a2ad"] {
                let wrong = ways_out(name, Value::Null, dependency.clone());
                assert_eq!(wrong.len(), 1, "{name} {dependency}");
            }
            assert!(ways_out(CALLS_OUT, Value::Null, dependency.clone()).is_empty());
            // What is not published may.
            let none = serde_json::json!([]);
            assert!(ways_out("a2ad-testkit", none, dependency.clone()).is_empty());
        }
        let server = hyper(&["http1", "http2", "server"], None);
        assert!(ways_out("a2ad-transport", Value::Null, server).is_empty());
        let tests = hyper(&["client"], Some("dev"));
        assert!(ways_out("a2ad-transport", Value::Null, tests).is_empty());
        let tonic = serde_json::json!({"name": "tonic", "features": ["codegen"], "uses_default_features": false});
        assert!(ways_out("a2ad-transport", Value::Null, tonic).is_empty());
    }

    #[test]
    fn a_source_that_calls_out_is_found() {
        let text = "use std::io;\n// reqwest::Client is elsewhere\nlet client = reqwest::Client::new();\n\
                    let stream = TcpStream::connect(address);\n\n#[cfg(test)]\nmod tests {\n    reqwest::get();\n}\n";
        let found: Vec<_> = lines_with(CALLING_WORDS, text).collect();
        assert_eq!(found, [3, 4]);
    }

    #[test]
    fn a_right_arrow_is_not() {
        assert!(arrows("a2ad-store", "a2ad-core", None).is_empty());
        assert!(arrows("a2ad-store", "rusqlite", None).is_empty());
        assert!(arrows("a2ad", "anyhow", None).is_empty());
        for user in ["a2ad-backends", "a2ad-server", "a2ad", "a2ad-testkit"] {
            assert!(arrows(user, "a2ad-client", None).is_empty());
        }
        assert!(arrows("a2ad-client", "a2ad-proto", None).is_empty());
        assert!(arrows("a2ad-proto", "tokio", Some("dev")).is_empty());
    }
}
