//! Files that the program itself writes: the configuration's schema and the help texts.

use anyhow::{Context as _, Result, bail};

use crate::workspace::{cargo, output, root, succeed, target_directory};

const SCHEMA: &str = "docs/a2ad.schema.json";
const HELP: &str = "docs/command.md";

/// The commands whose help stands in docs/command.md.
const COMMANDS: &[&str] = &[
    "",
    "serve",
    "verify",
    "doctor",
    "db",
    "db status",
    "db migrate",
    "db copy",
    "context",
    "context export",
    "token",
    "token create",
    "token list",
    "token revoke",
    "config",
    "config check",
    "config schema",
];

/// Writes them.
pub(crate) fn write() -> Result<()> {
    for (path, text) in generated()? {
        let file = root().join(path);
        if std::fs::read_to_string(&file).ok().as_ref() != Some(&text) {
            std::fs::write(&file, text).with_context(|| format!("write {path}"))?;
            println!("wrote {path}");
        }
    }
    Ok(())
}

/// Fails if they are not as the program would write them.
pub(crate) fn check() -> Result<()> {
    for (path, text) in generated()? {
        let committed = std::fs::read_to_string(root().join(path)).unwrap_or_default();
        if committed != text {
            bail!("{path} is out of date; run `cargo xtask generate` and commit the result");
        }
    }
    Ok(())
}

fn generated() -> Result<Vec<(&'static str, String)>> {
    // As the tests build it: `cargo build` leaves out the features that only tests ask for, and
    // would build half of everything again.
    let mut command = cargo();
    command.args(["test", "--workspace", "--all-features", "--locked"]);
    succeed(command.args(["--no-run", "--quiet", "--test", "it"]))?;
    let name = format!("a2ad{}", std::env::consts::EXE_SUFFIX);
    let program = target_directory()?.join("debug").join(name);
    let ask = |words: &[&str]| output(std::process::Command::new(&program).args(words));

    let schema = ask(&["config", "schema"])?;
    let mut page =
        std::fs::read_to_string(root().join(HELP)).with_context(|| format!("read {HELP}"))?;
    for command in COMMANDS {
        let mut words: Vec<&str> = command.split_whitespace().collect();
        words.push("--help");
        let title = format!("a2ad {command}");
        page = put(&page, title.trim(), &ask(&words)?)?;
    }
    Ok(vec![(SCHEMA, schema), (HELP, page)])
}

/// Replaces the block between `<!-- help: title -->` and `<!-- end -->`.
fn put(page: &str, title: &str, text: &str) -> Result<String> {
    let begin = format!("<!-- help: {title} -->\n");
    let end = "<!-- end -->";
    let missing = || format!("{HELP} has no block `{}`", begin.trim());
    let (before, rest) = page.split_once(&begin).with_context(missing)?;
    let (_, after) = rest.split_once(end).with_context(missing)?;
    Ok(format!(
        "{before}{begin}```text\n{}\n```\n{end}{after}",
        text.trim_end()
    ))
}
