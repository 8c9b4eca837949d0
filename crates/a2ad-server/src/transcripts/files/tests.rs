use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::sync::Arc;

use a2ad_core::keys::{ContextKey, Number, Scope, TaskKey};
use a2ad_core::task::Identity;
use a2ad_proto::{Message, Part, Role, Task, TaskState, TaskStatus};

use super::*;

fn rested(owner: &str, context: &str, id: &str, version: u64, text: &str) -> Rested {
    let message = |role| Message {
        role,
        parts: vec![Part::text(text)],
        ..Message::default()
    };
    Rested {
        identity: Arc::new(Identity {
            key: TaskKey(1),
            id: id.parse().unwrap(),
            context: ContextKey(1),
            context_id: context.parse().unwrap(),
            scope: Scope {
                owner: owner.parse().unwrap(),
                agent: "helper".parse().unwrap(),
            },
        }),
        task: Task {
            id: id.to_owned(),
            history: vec![message(Role::User)],
            status: TaskStatus {
                state: TaskState::Completed,
                message: Some(message(Role::Agent)),
                timestamp: None,
            },
            ..Task::default()
        },
        version: Number(version),
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// All files below a folder, but for what is not for people.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if !path.ends_with(POSITION) {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn i_05_each_owner_has_files_that_nobody_else_reads() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("transcripts");
    let folder = Folder::open(&dir, Path::new("/srv/work")).unwrap();
    for (owner, id) in [
        ("anonymous", "t1"),
        ("token:alice", "t2"),
        ("token:bob", "t3"),
    ] {
        folder.put(&rested(owner, "talk", id, 3, "hello")).unwrap();
    }
    folder
        .put(&rested("anonymous", "talk", "t4", 3, "again"))
        .unwrap();
    let written = files(&dir);
    assert_eq!(written.len(), 3, "{written:?}");
    let key = fs::read_dir(&dir).unwrap().next().unwrap().unwrap().path();
    let anonymous = fs::read_to_string(key.join("helper/talk.md")).unwrap();
    assert!(anonymous.contains("task t1 ") && anonymous.contains("task t4 "));
    assert!(!anonymous.contains("task t2 ") && !anonymous.contains("task t3 "));
    for file in &written {
        assert_eq!(mode(file), 0o600);
        assert_eq!(mode(file.parent().unwrap()), 0o700);
    }
    assert_eq!((mode(&dir), mode(&key)), (0o700, 0o700));
    // Servers that run elsewhere have other files.
    Folder::open(&dir, Path::new("/srv/other")).unwrap();
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 2);
}

#[test]
fn i_05_a_link_in_the_place_of_a_folder_or_file_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let elsewhere = place.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let linked = place.path().join("linked");
    symlink(&elsewhere, &linked).unwrap();
    assert!(Folder::open(&linked, Path::new("/")).is_err());

    let dir = place.path().join("dir");
    let folder = Folder::open(&dir, Path::new("/")).unwrap();
    symlink(&elsewhere, folder.root.join("helper")).unwrap();
    let one = rested("anonymous", "talk", "t1", 3, "hello");
    assert_eq!(
        folder.put(&one).unwrap_err().kind(),
        io::ErrorKind::NotADirectory
    );
    fs::remove_file(folder.root.join("helper")).unwrap();
    fs::create_dir(folder.root.join("helper")).unwrap();
    let secret = elsewhere.join("secret");
    fs::write(&secret, "secret").unwrap();
    symlink(&secret, folder.root.join("helper/talk.md")).unwrap();
    assert!(folder.put(&one).is_err());
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
    assert_eq!(files(&elsewhere), [secret]);
}

/// I-05: `:`, a dot at the end, names of devices, and letters that differ in size only.
#[test]
fn i_05_no_two_ids_share_a_file_and_each_is_a_harmless_name() {
    let long = "x".repeat(200);
    let longer = "x".repeat(201);
    let ids = [
        "talk", "Talk", "TALK", "a:b", "a", "a.", "a..", ".", "..", ".hidden", "-x", "con", "CON",
        "con.txt", "com1", "com10", "lpt0", "nul", "aux.md", "a2aid~61", "a2aid", "a/b", "../x",
        "@token", "ü", "a b", "a\u{0}", &long, &longer,
    ];
    let mut names = std::collections::BTreeSet::new();
    for id in ids {
        let name = file_name(id);
        assert!(names.insert(name.to_lowercase()), "{id} is {name}");
        assert!(name.len() <= 240, "{name}");
        assert!(
            !name.ends_with('.') && !name.starts_with(['.', '@', '-']),
            "{name}"
        );
        assert!(
            name.chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-~".contains(c)),
            "{name}"
        );
        assert!(!is_device(&name), "{name}");
    }
    for readable in [
        "talk",
        "a",
        "com10",
        "0198a5b2-7c1e-7f3a-9d2e-3b1f5c7a9e10",
        "trip_2026.may",
    ] {
        assert_eq!(file_name(readable), readable);
    }
}

#[test]
fn i_05_a_turn_is_written_once_and_whole() {
    let place = tempfile::tempdir().unwrap();
    let folder = Folder::open(place.path(), Path::new("/")).unwrap();
    let file = folder.root.join("helper/talk.md");
    assert_eq!(folder.position(), Timestamp::from_millis(0));
    for _ in 0..3 {
        folder
            .put(&rested("anonymous", "talk", "t1", 3, "hello"))
            .unwrap();
    }
    let once = fs::read_to_string(&file).unwrap();
    assert_eq!(once.matches("<!-- a2ad task").count(), 1);
    // A crash before the new file has taken the place of the old one leaves the old one.
    fs::write(folder.root.join("helper/.1-0.tmp"), "half a tu").unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), once);
    folder
        .put(&rested("anonymous", "talk", "t2", 3, "more"))
        .unwrap();
    assert!(fs::read_to_string(&file).unwrap().starts_with(&once));
    folder.note(Timestamp::from_millis(77)).unwrap();
    assert_eq!(folder.position(), Timestamp::from_millis(77));
}
