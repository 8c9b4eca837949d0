use std::process::Command;

use super::*;

const TARGET: &str = "A2AD_CLIENT_TEST_TARGET";

/// The environment of a process is the same for all of its tests, so that this takes a process of its own.
#[test]
fn proxies_of_the_environment_are_not_heard() {
    let proxy = Sink::new();
    let host = Host::fixed("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["dial::environment::asks_a_host", "--exact", "--ignored"]);
    child.env(TARGET, host.url());
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        let url = format!("http://127.0.0.1:{}", proxy.port());
        child.env(name, &url).env(name.to_lowercase(), &url);
    }
    child.env_remove("NO_PROXY").env_remove("no_proxy");
    // Otherwise it is taken for a CGI script, whose variables the other side can set.
    child.env_remove("REQUEST_METHOD");
    let output = child.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(host.seen().len(), 2, "{output:?}");
    proxy.saw_nothing();
}

#[tokio::test]
#[ignore = "the other half of the test above"]
async fn asks_a_host() {
    let Ok(url) = std::env::var(TARGET) else {
        return;
    };
    let port = url.parse::<http::Uri>().unwrap().port_u16().unwrap();
    for dialer in [open(), dialer_to("127.0.0.1", port)] {
        dialer.send(get(&url), &short()).await.unwrap();
    }
}
