//! Schemas: forward only, all or nothing, and never over a newer one.

use a2ad_core::clock::Surroundings;
use rusqlite::Connection;

use super::{Rig, commit};
use crate::sqlite::open::{MIGRATIONS, Migration, OpenError, meta, migrate, schema};
use crate::{SqliteStore, verify};

const SECOND: Migration = Migration {
    schema: 2,
    oldest_compatible: 1,
    sql: "ALTER TABLE holders ADD COLUMN name TEXT;",
};
const THIRD: Migration = Migration {
    schema: 3,
    oldest_compatible: 3,
    sql: "DROP TABLE push_configs;",
};

fn apply(rig: &Rig, db: &mut Connection, later: &[Migration]) -> Result<(), OpenError> {
    let steps: Vec<Migration> = MIGRATIONS.iter().chain(later).copied().collect();
    migrate(db, &rig.path(), &steps, &Surroundings::default())
}

#[test]
fn migrations_are_numbered_without_gap_and_say_why() {
    for (at, step) in MIGRATIONS.iter().enumerate() {
        assert_eq!(step.schema as usize, at + 1);
        assert!(step.oldest_compatible <= step.schema);
        assert!(step.sql.starts_with("-- "), "it opens with why");
    }
}

#[test]
fn a_database_is_migrated_once_and_keeps_what_it_holds() {
    let mut rig = Rig::new();
    let mut core = rig.open();
    let submission = rig.submission(&core);
    commit(&mut core, submission).unwrap();
    let ids = core.public_ids().clone();
    drop(core);
    let core = rig.open();
    assert_eq!(
        ids.tag(&[b"x"]),
        core.public_ids().tag(&[b"x"]),
        "the secret of its ids never changes"
    );
    drop(core);
    let report = verify(&rig.path()).unwrap();
    assert_eq!((report.tasks, report.problems), (1, vec![]));
}

#[test]
fn later_steps_are_taken_in_order_and_only_once() {
    let mut rig = Rig::new();
    drop(rig.open());
    let mut db = rig.surgery();
    apply(&rig, &mut db, &[SECOND]).unwrap();
    apply(&rig, &mut db, &[SECOND]).unwrap();
    apply(&rig, &mut db, &[SECOND, THIRD]).unwrap();
    assert_eq!(meta::<u32>(&db, "schema").unwrap(), Some(3));
    assert_eq!(meta::<u32>(&db, "oldest_compatible").unwrap(), Some(3));
}

#[test]
fn a_step_that_fails_leaves_the_database_as_it_was() {
    let mut rig = Rig::new();
    drop(rig.open());
    let mut db = rig.surgery();
    let broken = Migration {
        sql: "DROP TABLE chunks; DROP TABLE no_such_table;",
        ..SECOND
    };
    apply(&rig, &mut db, &[broken]).unwrap_err();
    assert_eq!(meta::<u32>(&db, "schema").unwrap(), Some(1));
    drop(db);
    drop(rig.open());
    assert_eq!(verify(&rig.path()).unwrap().problems, []);
}

#[test]
fn a_newer_schema_is_used_if_it_says_it_can_be_and_refused_if_not() {
    let mut rig = Rig::new();
    drop(rig.open());
    let mut db = rig.surgery();
    apply(&rig, &mut db, &[SECOND]).unwrap();
    drop(db);
    let mut core = rig.open();
    let submission = rig.submission(&core);
    commit(&mut core, submission).unwrap();
    drop(core);

    let mut db = rig.surgery();
    apply(&rig, &mut db, &[SECOND, THIRD]).unwrap();
    drop(db);
    let error = SqliteStore::open(rig.options(), rig.wake.clone()).unwrap_err();
    assert!(
        matches!(
            error,
            OpenError::Newer {
                found: 3,
                known: 1,
                ..
            }
        ),
        "{error:?}"
    );
    assert!(error.to_string().contains("a2ad.db has schema 3"));
    assert!(matches!(
        verify(&rig.path()).unwrap_err(),
        OpenError::Newer { .. }
    ));
    let db = rig.surgery();
    assert!(schema(&db, &rig.path(), 3).is_ok());
}
