//! Tasks stay until retention removes them, and then they are as if they had never been.

use a2ad_pgkit::Cluster;
use serde_json::{Value, json};

use crate::configured::{Configured, answered, saying};

const CAP_TWO: &str = "
agents:
  - id: one
    script: {otherwise: [complete: I am one]}
    limits: {max_tasks_per_context: 2}
  - {id: free, script: {otherwise: [complete: I am free]}}
";

fn unknown(id: &str) -> String {
    format!("Unknown taskId \"{id}\" (expired or never existed).")
}

/// Three tasks in one conversation: t2 and t3 are kept, t1 is dropped.
async fn cap_two(yaml: &str) {
    let server = Configured::start(yaml).await;
    let in_context = |text: &str| {
        let mut params = saying(text);
        params["message"]["contextId"] = "talk".into();
        params
    };
    let send = async |path: &str, n: u8| {
        let answer = server
            .rpc(path, "SendMessage", &in_context(&n.to_string()))
            .await;
        answered(&answer);
        answer["result"]["task"]["id"].as_str().unwrap().to_owned()
    };
    let mut sent = Vec::new();
    for n in 0..3 {
        sent.push(send("/agents/one", n).await);
    }
    let [t1, t2, t3] = &sent[..] else {
        panic!("{sent:?}")
    };
    let get = async |id: &str| {
        server
            .rpc("/agents/one", "GetTask", &json!({"id": id}))
            .await
    };
    for id in [t2, t3] {
        assert_eq!(get(id).await["result"]["id"], id.as_str());
    }
    let listed = server.rpc("/agents/one", "ListTasks", &json!({})).await;
    let ids: Vec<&Value> = listed["result"]["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["id"])
        .collect();
    assert_eq!(ids, [t3, t2]);
    assert_eq!(listed["result"]["totalSize"], 2);

    // In the same words as one that never was, wherever it is asked for.
    for id in [t1.as_str(), "never", "0198a5b2-7c1e-8f3a-9d2e-3b1f5c7a9e10"] {
        for method in ["GetTask", "CancelTask", "SubscribeToTask"] {
            let answer = server.rpc("/agents/one", method, &json!({"id": id})).await;
            assert_eq!(answer["error"]["code"], -32001, "{method} {id}");
            assert_eq!(answer["error"]["message"], unknown(id).as_str(), "{method}");
        }
        let mut continued = saying("more");
        continued["message"]["taskId"] = id.into();
        let answer = server.rpc("/agents/one", "SendMessage", &continued).await;
        assert_eq!(answer["error"]["message"], unknown(id).as_str());
        let answer = server.get(&format!("/agents/one/tasks/{id}"), &[]).await;
        assert_eq!(answer.status, 404);
        assert_eq!(answer.json()["error"]["message"], unknown(id).as_str());
        let seen = server.get(&format!("/monitor/tasks/{id}"), &[]).await;
        assert_eq!(seen.status, 404);
    }
    // An agent without such a bound keeps them all, and so do other conversations.
    for n in 0..3 {
        send("/agents/free", n).await;
    }
    let listed = server.rpc("/agents/free", "ListTasks", &json!({})).await;
    assert_eq!(listed["result"]["totalSize"], 3);
    for _ in 0..3 {
        let alone = server
            .rpc("/agents/one", "SendMessage", &saying("alone"))
            .await;
        answered(&alone);
    }
    let listed = server.rpc("/agents/one", "ListTasks", &json!({})).await;
    assert_eq!(listed["result"]["totalSize"], 5);
}

/// F-07, CF-13.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f_07_a_cap_of_two_keeps_t2_and_t3_and_drops_t1() {
    cap_two(CAP_TWO).await;
}

/// F-07, CF-13.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f_07_a_cap_of_two_keeps_t2_and_t3_and_drops_t1_on_postgres() {
    let url = tokio::task::spawn_blocking(|| Cluster::shared().create())
        .await
        .unwrap();
    cap_two(&format!("database_url: '{url}'{CAP_TWO}")).await;
}
