//! ListTasks.

use a2ad_proto::{ListTasksRequest, TaskState};
use a2ad_testkit::client::{at_once, text, text_in};
use a2ad_testkit::harness::Harness;

crate::scenarios![
    list_02_newest_first,
    list_03_list_04_pages_cover_everything_once,
    list_05_artifacts_only_when_asked_for,
    list_06_filters_and_totals,
    list_08_a_token_fits_only_its_own_list,
    list_09_a_page_ends_before_it_grows_too_large,
    page_size_is_checked,
];

fn all() -> ListTasksRequest {
    ListTasksRequest::default()
}

/// C-04.
async fn list_02_newest_first(server: Harness) {
    let empty = server.client.list(all()).await.unwrap();
    assert_eq!((empty.tasks.len(), empty.total_size), (0, 0));
    assert_eq!((empty.page_size, empty.next_page_token.as_str()), (50, ""));
    let one = server.client.send(text("ask one")).await.unwrap();
    let two = server.client.send(text("echo two")).await.unwrap();
    let list = server.client.list(all()).await.unwrap();
    let ids: Vec<_> = list.tasks.iter().map(|task| &task.id).collect();
    assert_eq!(ids, [&two.id, &one.id]);
    // A change of status brings a task to the front.
    server.client.cancel(&one.id).await.unwrap();
    let list = server.client.list(all()).await.unwrap();
    assert_eq!(list.tasks[0].id, one.id);
    assert_eq!(list.tasks[0].status.state, TaskState::Canceled);
    assert_eq!(list.tasks[1].history, two.history);
}

async fn list_03_list_04_pages_cover_everything_once(server: Harness) {
    let mut ids = Vec::new();
    for n in 0..25 {
        let verb = if n % 3 == 0 { "ask" } else { "echo" };
        let task = server.client.send(text(&format!("{verb} {n}"))).await;
        ids.push(task.unwrap().id);
    }
    let mut seen = Vec::new();
    let mut token = String::new();
    loop {
        let page = server
            .client
            .list(ListTasksRequest {
                page_size: Some(7),
                page_token: token,
                ..all()
            })
            .await
            .unwrap();
        assert_eq!((page.page_size, page.total_size), (7, 25));
        seen.extend(page.tasks.into_iter().map(|task| task.id));
        token = page.next_page_token;
        if token.is_empty() {
            break;
        }
    }
    seen.reverse();
    assert_eq!(seen, ids);
}

async fn list_05_artifacts_only_when_asked_for(server: Harness) {
    server.client.send(text("echo x")).await.unwrap();
    let without = server.client.list(all()).await.unwrap();
    assert!(without.tasks[0].artifacts.is_empty());
    let with = server
        .client
        .list(ListTasksRequest {
            include_artifacts: Some(true),
            ..all()
        })
        .await
        .unwrap();
    assert_eq!(with.tasks[0].artifacts[0].parts[0].as_text(), Some("x"));
    let short = server
        .client
        .list(ListTasksRequest {
            history_length: Some(0),
            ..all()
        })
        .await
        .unwrap();
    assert!(short.tasks[0].history.is_empty());
}

/// C-04.
async fn list_06_filters_and_totals(server: Harness) {
    for n in 0..6 {
        let verb = if n % 2 == 0 { "ask" } else { "echo" };
        let context = if n < 4 { "here" } else { "there" };
        let request = text_in(context, &format!("{verb} {n}"));
        server.client.send(request).await.unwrap();
    }
    let count = |request: ListTasksRequest| async {
        let page = server.client.list(request).await.unwrap();
        assert_eq!(page.tasks.len(), usize::try_from(page.total_size).unwrap());
        page.total_size
    };
    let here = || ListTasksRequest {
        context_id: "here".to_owned(),
        ..all()
    };
    assert_eq!(count(all()).await, 6);
    assert_eq!(count(here()).await, 4);
    let asked = ListTasksRequest {
        status: TaskState::InputRequired,
        ..here()
    };
    assert_eq!(count(asked).await, 2);
    let done = ListTasksRequest {
        status: TaskState::Completed,
        ..all()
    };
    assert_eq!(count(done).await, 3);
    let nowhere = ListTasksRequest {
        context_id: "nowhere".to_owned(),
        ..all()
    };
    assert_eq!(count(nowhere).await, 0);
    let newest = server.client.list(all()).await.unwrap().tasks[0].clone();
    let since = ListTasksRequest {
        status_timestamp_after: newest.status.timestamp,
        ..all()
    };
    let page = server.client.list(since).await.unwrap();
    assert!(
        page.tasks.iter().any(|task| task.id == newest.id),
        "inclusive"
    );
    assert!(page.total_size < 6);
}

async fn list_08_a_token_fits_only_its_own_list(server: Harness) {
    for _ in 0..3 {
        server.client.send(text("echo x")).await.unwrap();
    }
    let page = server
        .client
        .list(ListTasksRequest {
            page_size: Some(1),
            ..all()
        })
        .await
        .unwrap();
    let token = page.next_page_token;
    let mut forged = token.clone();
    let last = if forged.ends_with('0') { "1" } else { "0" };
    forged.replace_range(forged.len() - 1.., last);
    for (token, context) in [(token, "elsewhere"), (forged, ""), ("x".to_owned(), "")] {
        let refused = server
            .client
            .list(ListTasksRequest {
                page_token: token,
                context_id: context.to_owned(),
                ..all()
            })
            .await
            .unwrap_err();
        assert_eq!(refused.reason(), "INVALID_PARAMS");
    }
}

async fn page_size_is_checked(server: Harness) {
    for size in [0, -1, 101] {
        let refused = server
            .client
            .list(ListTasksRequest {
                page_size: Some(size),
                ..all()
            })
            .await
            .unwrap_err();
        assert_eq!(refused.reason(), "INVALID_PARAMS", "{size}");
    }
}

/// The bound is 8 MiB; what is left out comes with the next page, and the counts stay what they are.
async fn list_09_a_page_ends_before_it_grows_too_large(server: Harness) {
    const BOUND: usize = 8 << 20;
    let mut ids = Vec::new();
    // Over the bound alone, large, small; and one still at work, so without a snapshot.
    for (verb, megabytes) in [("echo", 5), ("echo", 3), ("echo", 0), ("hold", 3)] {
        let said = format!("{verb} {}", "x".repeat(megabytes << 20));
        let request = match verb {
            "hold" => at_once(text(&said)),
            _ => text(&said),
        };
        ids.insert(0, server.client.send(request).await.unwrap().id);
    }
    for (include_artifacts, expected) in [(true, &[2, 1, 1][..]), (false, &[3, 1])] {
        let mut seen = Vec::new();
        let mut pages = Vec::new();
        let mut token = String::new();
        loop {
            let page = server
                .client
                .list(ListTasksRequest {
                    page_size: Some(100),
                    include_artifacts: Some(include_artifacts),
                    page_token: token,
                    ..all()
                })
                .await
                .unwrap();
            assert_eq!((page.page_size, page.total_size), (100, 4));
            let bytes = a2ad_proto::to_json(&page).len();
            assert!(bytes <= BOUND || page.tasks.len() == 1, "{bytes}");
            pages.push(page.tasks.len());
            seen.extend(page.tasks.into_iter().map(|task| task.id));
            token = page.next_page_token;
            if token.is_empty() {
                break;
            }
        }
        assert_eq!(pages, expected, "artifacts: {include_artifacts}");
        assert_eq!(seen, ids);
    }
}
