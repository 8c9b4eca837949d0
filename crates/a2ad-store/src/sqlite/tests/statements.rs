//! Statements are parsed once per connection, and then never again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use a2ad_core::contract::sample::{alice, finish, follow_up, once};
use a2ad_core::keys::HolderId;
use a2ad_core::store::ListFilter;
use a2ad_core::task::Outcome;
use a2ad_proto::Timestamp;
use rusqlite::Connection;
use rusqlite::hooks::{AuthContext, Authorization};

use super::{Rig, commit};
use crate::sqlite::commit::{Core, Work};
use crate::sqlite::list::{self, Query};
use crate::sqlite::names::Names;
use crate::sqlite::open::reader;
use crate::sqlite::read::Readers;
use crate::sqlite::{read, snapshots};

/// Counts what SQLite asks while it parses a statement.
fn count_parsing(db: &mut Connection) -> Arc<AtomicU32> {
    let asked = Arc::new(AtomicU32::new(0));
    let heard = Arc::clone(&asked);
    db.authorizer(Some(move |_: AuthContext<'_>| {
        heard.fetch_add(1, Ordering::Relaxed);
        Authorization::Allow
    }))
    .unwrap();
    asked
}

/// A task's life, with everything that a daemon does beside it.
fn live(rig: &mut Rig, core: &mut Core, round: u8) {
    core.run(vec![Work::OpenHolder, Work::Check]);
    let holder = HolderId(core.first_holder());
    let mut begin = rig.submission(core);
    begin.once = Some(once(round, round, 1));
    begin.lease_to = Some(holder);
    let mut named = rig.submission(core);
    named.context = a2ad_core::store::ContextChoice::Named(format!("c{round}").parse().unwrap());
    commit(core, begin.clone()).unwrap();
    commit(core, begin.clone()).unwrap_err();
    commit(core, named).unwrap();
    core.run(vec![Work::Claim {
        holder,
        wanted: vec![("echo".parse().unwrap(), 9)],
    }]);
    let head = read::head(core.db(), &mut Default::default(), begin.head.identity.key);
    let head = head.unwrap().unwrap();
    let end = rig.change(
        &head,
        &[follow_up("more"), finish(&head, Outcome::Completed(None))],
    );
    commit(core, end).unwrap();
    let before = Timestamp::from_millis(rig.now().as_millis() + 1);
    core.run(vec![Work::Purge { before, limit: 1 }]);
}

fn look(rig: &Rig, core: &Core, db: &Connection, names: &mut Names) {
    let query = Query {
        filter: &ListFilter::default(),
        after: None,
        limit: 9,
        bytes_max: usize::MAX,
        artifacts: true,
    };
    let page = list::page(
        db,
        names,
        core.public_ids(),
        &alice(),
        &query,
        &mut |_, _| false,
    )
    .unwrap();
    let place = page.tasks[0].place;
    let head = read::head(db, names, place.key).unwrap().unwrap();
    let id = &head.identity.id;
    read::find(db, names, core.public_ids(), &alice(), id).unwrap();
    read::load(db, names, core.public_ids(), &alice(), id, 99).unwrap();
    read::entries(db, place.key, a2ad_core::keys::Number::ZERO, 99).unwrap();
    snapshots::find(db, place.key, true).unwrap();
    let in_context = ListFilter {
        context_id: Some(head.identity.context_id.clone()),
        ..ListFilter::default()
    };
    let query = Query {
        filter: &in_context,
        ..query
    };
    list::page(
        db,
        names,
        core.public_ids(),
        &alice(),
        &query,
        &mut |_, _| false,
    )
    .unwrap();
    read::line(db, place.key).unwrap();
    read::orphans(db, names, 9, 9).unwrap();
    read::idle(db, rig.now(), 9).unwrap();
    read::stats(db).unwrap();
}

#[test]
fn no_statement_of_the_writer_is_parsed_twice() {
    let mut rig = Rig::new();
    let mut core = rig.open();
    let asked = count_parsing(core.db_mut());
    for round in 1..=3 {
        live(&mut rig, &mut core, round);
    }
    let parsing = asked.load(Ordering::Relaxed);
    assert!(parsing > 0, "it was counted");
    for round in 4..=9 {
        live(&mut rig, &mut core, round);
    }
    assert_eq!(asked.load(Ordering::Relaxed), parsing);
}

#[test]
fn no_statement_of_a_reader_is_parsed_twice() {
    let mut rig = Rig::new();
    let mut core = rig.open();
    let mut db = reader(&rig.path()).unwrap();
    let asked = count_parsing(&mut db);
    let readers = Readers::new(vec![db]);
    let mut parsing = 0;
    for round in 1..=5 {
        live(&mut rig, &mut core, round);
        let looked = readers.read(|db, names| {
            look(&rig, &core, db, names);
            Ok(())
        });
        looked.unwrap().unwrap();
        if round == 2 {
            parsing = asked.load(Ordering::Relaxed);
            assert!(parsing > 0, "it was counted");
        }
    }
    assert_eq!(asked.load(Ordering::Relaxed), parsing);
}
