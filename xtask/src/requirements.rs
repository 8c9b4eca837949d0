//! Which requirements of the protocol have a test: docs/requirements.md against the tests.
//!
//! A test carries an id by its name (`send_07_…`, `json_03_json_04_…`) or at the head of its doc
//! comment (`/// SEND-07, SEND-08: …`). Ids anywhere else count for nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde_json::json;

use crate::workspace::root;

const TABLE: &str = "docs/requirements.md";

/// How to print the outcome.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The ids without a test.
    Untested,
    /// Every id with its tests.
    List,
    Json,
}

/// One row of the table.
#[derive(Debug, PartialEq, Eq)]
struct Requirement {
    id: String,
    level: String,
    side: String,
    /// Why it needs no test.
    reason: Option<String>,
}

/// A test, and the ids it carries.
#[derive(Debug, PartialEq, Eq)]
struct Test {
    /// `file:function`.
    name: String,
    ids: Vec<String>,
}

/// Prints which requirements have which tests; fails if that is not as the table says.
pub(crate) fn run(form: Form) -> Result<()> {
    let text = std::fs::read_to_string(root().join(TABLE)).context(TABLE)?;
    let requirements = table(&text)?;
    let mut files = Vec::new();
    sources(&root().join("crates"), &mut files)?;
    files.sort();
    let mut found = Vec::new();
    for path in files {
        let shown = path.strip_prefix(root()).unwrap_or(&path);
        let shown = shown.display().to_string().replace('\\', "/");
        found.extend(tests(&shown, &std::fs::read_to_string(&path)?));
    }
    let mut by_id: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for test in &found {
        for id in &test.ids {
            by_id.entry(id).or_default().push(&test.name);
        }
    }
    let wrong = wrong(&requirements, &by_id);
    match form {
        Form::Json => println!("{:#}", as_json(&requirements, &by_id, &wrong)),
        Form::Untested | Form::List => print(&requirements, &by_id, form),
    }
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n       "));
    }
    Ok(())
}

fn print(requirements: &[Requirement], by_id: &BTreeMap<&str, Vec<&str>>, form: Form) {
    for Requirement {
        id, level, reason, ..
    } in requirements
    {
        match by_id.get(id.as_str()) {
            Some(tests) if form == Form::List => {
                println!(
                    "{id:<10} {level:<10} {}",
                    tests.join(&format!("\n{:22}", ""))
                );
            }
            Some(_) => {}
            None => {
                let reason = reason.as_deref().unwrap_or("has no test");
                println!("{id:<10} {level:<10} {reason}");
            }
        }
    }
    let tested = |it: &&Requirement| by_id.contains_key(it.id.as_str());
    println!(
        "{} requirements, {} of them with tests",
        requirements.len(),
        requirements.iter().filter(tested).count()
    );
}

fn as_json(
    requirements: &[Requirement],
    by_id: &BTreeMap<&str, Vec<&str>>,
    wrong: &[String],
) -> serde_json::Value {
    let none = Vec::new();
    let rows = requirements.iter().map(|it| {
        let tests = by_id.get(it.id.as_str()).unwrap_or(&none);
        json!({"id": it.id, "level": it.level, "side": it.side, "reason": it.reason, "tests": tests})
    });
    json!({"requirements": rows.collect::<Vec<_>>(), "wrong": wrong})
}

/// Everything that is not as it should be.
fn wrong(requirements: &[Requirement], by_id: &BTreeMap<&str, Vec<&str>>) -> Vec<String> {
    let mut wrong = Vec::new();
    for Requirement { id, reason, .. } in requirements {
        match (by_id.get(id.as_str()), reason) {
            (None, None) => wrong.push(format!("{id} has neither a test nor a reason")),
            (Some(tests), Some(_)) => wrong.push(format!(
                "{id} has a reason to have no test, and the test {}",
                tests.join(", ")
            )),
            (None, Some(_)) | (Some(_), None) => {}
        }
    }
    let known: BTreeSet<&str> = requirements.iter().map(|it| it.id.as_str()).collect();
    for (id, tests) in by_id.iter().filter(|(id, _)| !known.contains(*id)) {
        let tests = tests.join(", ");
        wrong.push(format!("{TABLE} does not know {id}, which {tests} carries"));
    }
    wrong
}

/// The rows of the tables: `| id | level | side | what it asks | why it has no test |`.
fn table(text: &str) -> Result<Vec<Requirement>> {
    let mut rows: Vec<Requirement> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let Some(row) = line.strip_prefix('|') else {
            continue;
        };
        let cells: Vec<&str> = row
            .trim_end_matches('|')
            .split('|')
            .map(str::trim)
            .collect();
        if cells[0] == "id" || cells[0].starts_with("--") {
            continue;
        }
        let here = || format!("{TABLE}:{}", at + 1);
        let [id, level, side, asks, reason] = cells[..] else {
            bail!("{}: {} cells instead of 5", here(), cells.len());
        };
        let levels = ["MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "REC", "MAY"];
        if !is_id(id)
            || !levels.contains(&level)
            || !["S", "C", "B"].contains(&side)
            || asks.is_empty()
        {
            bail!("{}: not an id, a level, a side and a text", here());
        }
        if rows.iter().any(|row| row.id == id) {
            bail!("{}: {id} is there twice", here());
        }
        rows.push(Requirement {
            id: id.to_owned(),
            level: level.to_owned(),
            side: side.to_owned(),
            reason: (!reason.is_empty()).then(|| reason.to_owned()),
        });
    }
    if rows.is_empty() {
        bail!("{TABLE} has no table");
    }
    Ok(rows)
}

/// `SEND-07`, `V03-07`.
fn is_id(word: &str) -> bool {
    word.split_once('-').is_some_and(|(group, number)| {
        group.starts_with(|first: char| first.is_ascii_uppercase())
            && group
                .bytes()
                .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
            && number.len() == 2
            && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

fn sources(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            sources(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// What stands directly above a function.
#[derive(Default)]
struct Above {
    doc: String,
    is_test: bool,
    is_ignored: bool,
}

/// The tests in a file that carry ids. Works line by line, on what rustfmt has been over.
fn tests(file: &str, source: &str) -> Vec<Test> {
    let mut functions = Vec::new();
    let mut scenarios: BTreeSet<&str> = BTreeSet::new();
    let mut above = Above::default();
    // What ends the comment, attribute or list that we are in.
    let mut inside: Option<&str> = None;
    for line in source.lines().map(str::trim) {
        if let Some(end) = inside {
            if end == "]" && !line.starts_with("//") {
                scenarios.extend(line.split(',').map(str::trim));
            }
            if line.contains(end) {
                inside = None;
            }
        } else if let Some(doc) = line.strip_prefix("///") {
            above.doc.push_str(doc);
        } else if line.starts_with("//") {
        } else if line.starts_with("/*") {
            inside = (!line.contains("*/")).then_some("*/");
        } else if line.starts_with("#[") {
            above.is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
            above.is_ignored |= line.starts_with("#[ignore");
            inside = (!line.contains(']')).then_some(")]");
        } else if let Some((_, list)) = line.split_once("scenarios![") {
            match list.split_once(']') {
                Some((list, _)) => scenarios.extend(list.split(',').map(str::trim)),
                None => inside = Some("]"),
            }
        } else {
            let above = std::mem::take(&mut above);
            if let Some(name) = function(line) {
                functions.push((name, above));
            }
        }
    }
    let mut found = Vec::new();
    for (name, above) in functions {
        let runs = (above.is_test || scenarios.contains(name)) && !above.is_ignored;
        let ids: BTreeSet<String> = ids_in_name(name).chain(ids_in_doc(&above.doc)).collect();
        if runs && !ids.is_empty() {
            found.push(Test {
                name: format!("{file}:{name}"),
                ids: ids.into_iter().collect(),
            });
        }
    }
    found
}

/// The name of the function that begins on this line.
fn function(line: &str) -> Option<&str> {
    let words = line.strip_prefix("pub(crate) ").unwrap_or(line);
    let words = words.strip_prefix("pub ").unwrap_or(words);
    let words = words.strip_prefix("async ").unwrap_or(words);
    let rest = words.strip_prefix("fn ")?;
    let end = rest.find(|it: char| it != '_' && !it.is_ascii_alphanumeric())?;
    Some(&rest[..end]).filter(|name| !name.is_empty())
}

/// `SEND-07`, `SEND-08` of `send_07_send_08_a_fact`.
fn ids_in_name(name: &str) -> impl Iterator<Item = String> {
    let words: Vec<&str> = name.split('_').collect();
    let ids: Vec<String> = words
        .chunks(2)
        .map(|pair| pair.join("-").to_uppercase())
        .take_while(|id| is_id(id))
        .collect();
    ids.into_iter()
}

/// The ids with which a doc comment begins.
fn ids_in_doc(doc: &str) -> impl Iterator<Item = String> {
    let words = doc.split_whitespace().map(|word| {
        let id = word.trim_end_matches([',', ':', '.']);
        (id, is_id(id) && word.ends_with(','))
    });
    // The list goes on after a comma only.
    let mut goes_on = true;
    words
        .map_while(move |(id, comma)| {
            let listed = goes_on && is_id(id);
            goes_on = comma;
            listed.then(|| id.to_owned())
        })
        .collect::<Vec<_>>()
        .into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(source: &str) -> Vec<String> {
        let found = tests("f.rs", source);
        found.into_iter().flat_map(|test| test.ids).collect()
    }

    #[test]
    fn a_test_carries_the_ids_at_the_head_of_its_name() {
        assert_eq!(ids("#[test]\nfn send_07_a_fact() {"), ["SEND-07"]);
        let both = "    #[test]\n    fn json_03_json_04_facts(n in 0..3) {";
        assert_eq!(ids(both), ["JSON-03", "JSON-04"]);
        let attribute = "#[tokio::test(\n    flavor = \"multi_thread\"\n)]\nasync fn get_01_x() {";
        assert_eq!(ids(attribute), ["GET-01"]);
        assert!(ids("#[test]\nfn the_send_07() {").is_empty());
        assert!(ids("#[test]\nfn send_7_and_send_123_x() {").is_empty());
        assert!(ids("#[test]\nfn version_1_0() {").is_empty());
    }

    #[test]
    fn a_test_carries_the_ids_at_the_head_of_its_doc_comment() {
        let doc = |text: &str| ids(&format!("{text}\n#[test]\nfn a_fact() {{"));
        assert_eq!(doc("/// SEND-07."), ["SEND-07"]);
        assert_eq!(doc("/// SEND-07, SEND-08: both."), ["SEND-07", "SEND-08"]);
        assert_eq!(
            doc("/// GET-01, GET-02,\n/// GET-03: all."),
            ["GET-01", "GET-02", "GET-03"]
        );
        assert!(doc("/// All of UTF-16, as SEND-07 says.").is_empty());
        assert_eq!(doc("/// SEND-07: not SEND-08."), ["SEND-07"]);
        assert!(doc("// SEND-07: for us alone.").is_empty());
        assert!(doc("/// SEND-07.\nconst OTHER: u8 = 1;").is_empty());
    }

    #[test]
    fn both_count_once() {
        assert_eq!(ids("/// TEN-02.\n#[test]\nfn ten_02_x() {"), ["TEN-02"]);
    }

    #[test]
    fn only_what_runs_is_a_test() {
        assert!(ids("fn send_07_helper() {").is_empty());
        assert!(ids("#[test]\n#[ignore = \"slow\"]\nfn send_07_x() {").is_empty());
        assert!(ids("// #[test]\nfn send_07_x() {").is_empty());
        assert!(ids("/*\n#[test]\nfn send_07_x() {\n}\n*/").is_empty());
        assert!(ids("#[test]\nfn other() {}\nfn send_07_x() {").is_empty());
        assert_eq!(
            ids("#[expect(\n    lint,\n)]\n#[test]\nfn a_01_x() {").len(),
            1
        );
        assert_eq!(ids("#[inline] fn x() {}\n#[test]\nfn a_01_x() {").len(), 1);
        assert!(ids("#[tokio::test]\nasync fn $name() {").is_empty());
    }

    #[test]
    fn a_scenario_counts_where_it_is_listed() {
        let fact = "/// ART-01.\nasync fn send_07_x(server: Harness) {";
        let listed = format!("crate::scenarios![\n    send_07_x,\n];\n{fact}");
        assert_eq!(ids(&listed), ["ART-01", "SEND-07"]);
        assert_eq!(
            ids(&format!("crate::scenarios![send_07_x];\n{fact}")).len(),
            2
        );
        let off = format!("crate::scenarios![\n    // send_07_x,\n    other,\n];\n{fact}");
        assert!(ids(&off).is_empty());
        assert!(ids(fact).is_empty());
    }

    const HEAD: &str = "| id | level | side | asks | no test because |\n|---|---|---|---|---|\n";

    #[test]
    fn rows_are_read_and_checked() {
        let rows = table(&format!(
            "{HEAD}| A-01 | MUST | S | x | |\n| A-02 | REC | B | y | later |"
        ));
        let rows = rows.unwrap();
        assert_eq!((rows[0].id.as_str(), &rows[0].reason), ("A-01", &None));
        assert_eq!(rows[1].reason.as_deref(), Some("later"));
        for row in [
            "",
            "| A-01 | MUST | S | x |",
            "| A-1 | MUST | S | x | |",
            "| A-01 | PERHAPS | S | x | |",
            "| A-01 | MUST | X | x | |",
            "| A-01 | MUST | S | | |",
            "| A-01 | MUST | S | x | |\n| A-01 | MUST | S | x | |",
        ] {
            assert!(table(&format!("{HEAD}{row}")).is_err(), "{row}");
        }
    }

    #[test]
    fn untested_unknown_and_stale_are_wrong() {
        let rows = "| A-01 | MUST | S | x | |\n| A-02 | MUST | S | x | later |";
        let rows = table(&format!("{HEAD}{rows}")).unwrap();
        let told = |ids: &[&'static str]| {
            let by_id = ids.iter().map(|id| (*id, vec!["f.rs:x"])).collect();
            wrong(&rows, &by_id)
        };
        assert!(told(&["A-01"]).is_empty());
        assert_eq!(told(&[]), ["A-01 has neither a test nor a reason"]);
        assert!(told(&["A-01", "A-02"])[0].contains("a reason to have no test"));
        assert!(told(&["A-01", "B-01"])[0].contains("does not know B-01"));
    }
}
