//! Ids are checked once.

use a2ad_proto::{AgentId, ArtifactId, ContextId, IdError, MessageId, PushConfigId, TaskId};

fn is<T: std::str::FromStr<Err = IdError>>(text: &str) -> bool {
    text.parse::<T>().is_ok()
}

#[test]
fn ids_are_neither_empty_nor_huge_nor_unprintable() {
    for accepts in [
        is::<TaskId>,
        is::<MessageId>,
        is::<ArtifactId>,
        is::<PushConfigId>,
        is::<ContextId>,
    ] {
        assert!(accepts("8a0a6f7e-3b58-4c3e-9c60-3f0c7cf2a9b1"));
        assert!(accepts("any thing/é:#"));
        for text in ["", "a\nb", "a\u{0}", "\u{7f}", "\u{85}"] {
            assert!(!accepts(text), "{text:?}");
        }
        assert!(accepts(&"x".repeat(128)));
        assert!(!accepts(&"x".repeat(257)));
    }
    assert!(is::<TaskId>(&"x".repeat(256)));
    assert!(!is::<ContextId>(&"x".repeat(129)));
    // CF-23: what stands in paths is no folder.
    for folder in [".", ".."] {
        assert!(!is::<ContextId>(folder) && !is::<PushConfigId>(folder));
    }
}

#[test]
fn agent_ids_are_safe_in_paths() {
    for text in ["a", "echo-1", "A.b_c", "0"] {
        assert!(is::<AgentId>(text), "{text}");
    }
    for text in [
        "",
        ".",
        "..",
        "-a",
        "_a",
        "a/b",
        "a b",
        "é",
        "a%2f",
        &"x".repeat(129),
    ] {
        assert!(!is::<AgentId>(text), "{text}");
    }
}

#[test]
fn reading_an_id_checks_it_too() {
    assert_eq!(
        serde_json::from_str::<TaskId>("\"t\"").unwrap().as_str(),
        "t"
    );
    assert!(serde_json::from_str::<TaskId>("\"\"").is_err());
    let error = TaskId::try_from("").unwrap_err();
    assert_eq!(error.to_string(), "task id is empty");
    assert_eq!(
        serde_json::to_string(&"t".parse::<TaskId>().unwrap()).unwrap(),
        "\"t\""
    );
}
