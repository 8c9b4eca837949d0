//! A server from a configuration, and plain calls to it.

use a2ad_proto::pb::Message;
use a2ad_proto::{
    CancelTaskRequest, DeleteTaskPushNotificationConfigRequest, GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest, GetTaskRequest, ListTaskPushNotificationConfigsRequest,
    ListTasksRequest, SendMessageRequest, SubscribeToTaskRequest, TaskPushNotificationConfig,
    from_json,
};
use a2ad_server::config::Source;
use a2ad_server::{Handle, Server, StartError};
use a2ad_testkit::grpc::{self, Grpc};
use a2ad_testkit::http::{Answer, call};
use hyper::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A running server with its data.
pub(crate) struct Configured {
    pub(crate) handle: Handle,
    _folder: TempDir,
}

/// Starts a server with this configuration on a free port, card files being looked for in `folder`.
pub(crate) async fn try_start(yaml: &str, folder: TempDir) -> Result<Configured, StartError> {
    let mut config = Source::yaml("test.yaml", yaml).read(&|_| None).unwrap();
    config.listen = "127.0.0.1:0".parse().unwrap();
    config.data_dir = folder.path().join("data");
    config.look_in(folder.path());
    let handle = Server::start(config).await?;
    Ok(Configured {
        handle,
        _folder: folder,
    })
}

impl Configured {
    pub(crate) async fn start(yaml: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        try_start(yaml, folder).await.unwrap()
    }

    /// Any call, in version 1.0.
    pub(crate) async fn call(
        &self,
        verb: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<String>,
    ) -> Answer {
        let mut all = vec![("a2a-version", "1.0"), ("content-type", "application/json")];
        all.extend_from_slice(headers);
        let answer = call(self.handle.addr(), verb, path, &all, body.into()).await;
        answer.unwrap()
    }

    pub(crate) async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.call(Method::GET, path, headers, "").await
    }

    /// A JSON-RPC call to `path`: the whole response.
    pub(crate) async fn rpc(&self, path: &str, method: &str, params: &Value) -> Value {
        self.rpc_with(path, &[], method, params).await.json()
    }

    pub(crate) async fn rpc_with(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        method: &str,
        params: &Value,
    ) -> Answer {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.call(Method::POST, path, headers, body.to_string())
            .await
    }
}

impl Configured {
    /// A gRPC call, whose message is the protobuf of `params`.
    pub(crate) async fn grpc(
        &self,
        method: &str,
        metadata: &[(&str, &str)],
        params: &Value,
    ) -> grpc::Answer {
        let client = Grpc::new(self.handle.addr());
        let answer = client
            .call(method, metadata, &protobuf(method, params))
            .await;
        answer.unwrap()
    }
}

/// `ErrorInfo.reason` of a call that failed.
pub(crate) fn grpc_reason(answer: &grpc::Answer) -> String {
    let status = answer.status();
    let details = status
        .details
        .as_ref()
        .unwrap_or_else(|| panic!("{status:?}"));
    details["details"][0]["reason"].as_str().unwrap().to_owned()
}

fn protobuf(method: &str, params: &Value) -> Vec<u8> {
    fn of<T: serde::de::DeserializeOwned + Message>(params: &Value) -> Vec<u8> {
        let message: T = from_json(params.to_string().as_bytes()).unwrap();
        message.encode_to_vec()
    }
    match method {
        "SendMessage" | "SendStreamingMessage" => of::<SendMessageRequest>(params),
        "GetTask" => of::<GetTaskRequest>(params),
        "ListTasks" => of::<ListTasksRequest>(params),
        "CancelTask" => of::<CancelTaskRequest>(params),
        "SubscribeToTask" => of::<SubscribeToTaskRequest>(params),
        "CreateTaskPushNotificationConfig" => of::<TaskPushNotificationConfig>(params),
        "GetTaskPushNotificationConfig" => of::<GetTaskPushNotificationConfigRequest>(params),
        "ListTaskPushNotificationConfigs" => of::<ListTaskPushNotificationConfigsRequest>(params),
        "DeleteTaskPushNotificationConfig" => of::<DeleteTaskPushNotificationConfigRequest>(params),
        "GetExtendedAgentCard" => of::<GetExtendedAgentCardRequest>(params),
        _ => panic!("no method {method}"),
    }
}

/// The params of a message that says this.
pub(crate) fn saying(text: &str) -> Value {
    json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}]}})
}

/// The same for a tenant.
pub(crate) fn for_tenant(tenant: &str, mut params: Value) -> Value {
    params["tenant"] = tenant.into();
    params
}

/// What the agent answered in a JSON-RPC response.
pub(crate) fn answered(response: &Value) -> &str {
    let text = &response["result"]["task"]["status"]["message"]["parts"][0]["text"];
    text.as_str().unwrap_or_else(|| panic!("{response}"))
}
