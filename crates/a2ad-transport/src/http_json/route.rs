//! Which path and verb mean which method, and in which generation.

use http::Method as Verb;

use crate::method::Method;
use crate::version::{Generation, Spoken};

/// Where a path leads, and which generation has such paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target<'a> {
    pub(crate) route: Route<'a>,
    pub(crate) generation: Generation,
}

impl<'a> Target<'a> {
    /// Where a path leads that is relative to the agent's interface. Those of 0.3 begin with `/v1` (DUAL-03).
    pub(crate) fn find(path: &'a str) -> Option<Self> {
        let (route, generation) = match path.strip_prefix("/v1/") {
            Some("card") => (Some(Route::ExtendedCard), Generation::V03),
            Some("extendedAgentCard") => (None, Generation::V03),
            Some(_) => (Route::find(path.strip_prefix("/v1")?), Generation::V03),
            // From before 0.3.
            None if path == "/agent/authenticatedExtendedCard" => {
                (Some(Route::ExtendedCard), Generation::V03)
            }
            None => (Route::find(path), Generation::V10),
        };
        Some(Self {
            route: route?,
            generation,
        })
    }

    pub(crate) const fn spoken(self) -> Spoken {
        match self.generation {
            Generation::V03 => Spoken::V03,
            Generation::V10 => Spoken::V10,
        }
    }
}

/// The generation in whose words to say that nothing is at a path.
pub(crate) fn generation_of(path: &str) -> Generation {
    if path.contains("/v1/") {
        Generation::V03
    } else {
        Generation::V10
    }
}

/// Where a path leads. Ids are as they were sent, still encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route<'a> {
    Send,
    Stream,
    Tasks,
    Task(&'a str),
    Cancel(&'a str),
    Subscribe(&'a str),
    PushConfigs(&'a str),
    PushConfig(&'a str, &'a str),
    ExtendedCard,
}

impl<'a> Route<'a> {
    /// Where a path leads that is relative to the agent's interface.
    ///
    /// An action is what follows the last colon of the last segment, if it is one we know: ids may hold colons, and
    /// one that ends like an action has its colon encoded (REST-05).
    fn find(path: &'a str) -> Option<Self> {
        let mut segments = path.strip_prefix('/')?.split('/');
        let first = segments.next()?;
        let rest = [segments.next(), segments.next(), segments.next()];
        if segments.next().is_some() {
            return None;
        }
        Some(match (first, rest) {
            ("message:send", [None, ..]) => Self::Send,
            ("message:stream", [None, ..]) => Self::Stream,
            ("extendedAgentCard", [None, ..]) => Self::ExtendedCard,
            ("tasks", [None, ..]) => Self::Tasks,
            ("tasks", [Some(last), None, _]) => match last.rsplit_once(':') {
                Some((id, "cancel")) => Self::Cancel(id),
                Some((id, "subscribe")) => Self::Subscribe(id),
                Some(_) | None => Self::Task(last),
            },
            ("tasks", [Some(task), Some("pushNotificationConfigs"), config]) => match config {
                None => Self::PushConfigs(task),
                Some(config) => Self::PushConfig(task, config),
            },
            _ => return None,
        })
    }

    /// What a verb means here.
    pub(crate) fn method(self, verb: &Verb) -> Option<Method> {
        self.methods()
            .iter()
            .find(|(known, _)| known == verb)
            .map(|(_, method)| *method)
    }

    /// The verbs that mean something here, as the header `Allow` has them.
    pub(crate) const fn allow(self) -> &'static str {
        match self {
            Self::Send | Self::Stream | Self::Cancel(_) => "POST",
            Self::Tasks | Self::Task(_) | Self::ExtendedCard => "GET",
            Self::Subscribe(_) | Self::PushConfigs(_) => "GET, POST",
            Self::PushConfig(..) => "GET, DELETE",
        }
    }

    const fn methods(self) -> &'static [(Verb, Method)] {
        match self {
            Self::Send => &[(Verb::POST, Method::SendMessage)],
            Self::Stream => &[(Verb::POST, Method::SendStreamingMessage)],
            Self::Tasks => &[(Verb::GET, Method::ListTasks)],
            Self::Task(_) => &[(Verb::GET, Method::GetTask)],
            Self::Cancel(_) => &[(Verb::POST, Method::CancelTask)],
            // The specification has one in its text and the other in its schema (AMB-02).
            Self::Subscribe(_) => &[
                (Verb::GET, Method::SubscribeToTask),
                (Verb::POST, Method::SubscribeToTask),
            ],
            Self::PushConfigs(_) => &[
                (Verb::GET, Method::ListTaskPushNotificationConfigs),
                (Verb::POST, Method::CreateTaskPushNotificationConfig),
            ],
            Self::PushConfig(..) => &[
                (Verb::GET, Method::GetTaskPushNotificationConfig),
                (Verb::DELETE, Method::DeleteTaskPushNotificationConfig),
            ],
            Self::ExtendedCard => &[(Verb::GET, Method::GetExtendedAgentCard)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// REST-05.
    #[test]
    fn paths_lead_where_the_specification_says() {
        for (path, route) in [
            ("/message:send", Route::Send),
            ("/message:stream", Route::Stream),
            ("/tasks", Route::Tasks),
            ("/tasks/t1", Route::Task("t1")),
            ("/tasks/", Route::Task("")),
            ("/tasks/t1:cancel", Route::Cancel("t1")),
            ("/tasks/:cancel", Route::Cancel("")),
            ("/tasks/t1:subscribe", Route::Subscribe("t1")),
            ("/tasks/a:cancel:subscribe", Route::Subscribe("a:cancel")),
            ("/tasks/a:b", Route::Task("a:b")),
            ("/tasks/a:Cancel", Route::Task("a:Cancel")),
            ("/tasks/a%3Acancel", Route::Task("a%3Acancel")),
            ("/tasks/a%2Fb:cancel", Route::Cancel("a%2Fb")),
            ("/tasks/..", Route::Task("..")),
            (
                "/tasks/a:cancel/pushNotificationConfigs",
                Route::PushConfigs("a:cancel"),
            ),
            (
                "/tasks/t1/pushNotificationConfigs/c:1",
                Route::PushConfig("t1", "c:1"),
            ),
            ("/extendedAgentCard", Route::ExtendedCard),
        ] {
            assert_eq!(Route::find(path), Some(route), "{path}");
        }
        for path in [
            "",
            "/",
            "*",
            "tasks",
            "//tasks",
            "/Tasks",
            "/message",
            "/message:send/",
            "/message%3Asend",
            "/message:other",
            "/tasks/t1/",
            "/tasks/t1/artifacts",
            "/tasks/t1/pushNotificationConfigs/c/d",
            "/extendedAgentCard/",
            "/v1/tasks",
        ] {
            assert_eq!(Route::find(path), None, "{path}");
        }
    }

    /// DUAL-03, B-08.
    #[test]
    fn paths_of_0_3_begin_with_v1() {
        for (path, route) in [
            ("/v1/message:send", Route::Send),
            ("/v1/message:stream", Route::Stream),
            ("/v1/tasks", Route::Tasks),
            ("/v1/tasks/t1", Route::Task("t1")),
            ("/v1/tasks/t1:cancel", Route::Cancel("t1")),
            ("/v1/tasks/t1:subscribe", Route::Subscribe("t1")),
            (
                "/v1/tasks/t1/pushNotificationConfigs",
                Route::PushConfigs("t1"),
            ),
            (
                "/v1/tasks/t1/pushNotificationConfigs/c",
                Route::PushConfig("t1", "c"),
            ),
            ("/v1/card", Route::ExtendedCard),
            ("/agent/authenticatedExtendedCard", Route::ExtendedCard),
        ] {
            let target = Target::find(path).unwrap();
            assert_eq!(target.route, route, "{path}");
            assert_eq!(target.generation, Generation::V03, "{path}");
        }
        let target = Target::find("/extendedAgentCard").unwrap();
        assert_eq!(target.generation, Generation::V10);
        for path in [
            "/v1",
            "/v1/",
            "/v1/v1/tasks",
            "/v1/extendedAgentCard",
            "/card",
            "/v2/tasks",
        ] {
            assert_eq!(Target::find(path), None, "{path}");
        }
    }

    /// OPS-01.
    #[test]
    fn every_method_has_a_path_and_every_path_names_its_verbs() {
        let mut met = Vec::new();
        for path in [
            "/message:send",
            "/message:stream",
            "/tasks",
            "/tasks/t",
            "/tasks/t:cancel",
            "/tasks/t:subscribe",
            "/tasks/t/pushNotificationConfigs",
            "/tasks/t/pushNotificationConfigs/c",
            "/extendedAgentCard",
        ] {
            let route = Route::find(path).unwrap();
            let verbs: Vec<_> = route
                .methods()
                .iter()
                .map(|(verb, _)| verb.as_str())
                .collect();
            assert_eq!(verbs.join(", "), route.allow(), "{path}");
            met.extend(route.methods().iter().map(|(_, method)| *method));
            assert_eq!(route.method(&Verb::PUT), None);
            assert_eq!(route.method(&Verb::HEAD), None);
        }
        for method in Method::ALL {
            assert!(met.contains(&method), "{}", method.name());
        }
    }

    proptest! {
        #[test]
        fn any_path_leads_somewhere_or_nowhere(path in "(/|tasks|:|%|cancel|[^\0]){0,12}") {
            if let Some(route) = Route::find(&path) {
                prop_assert!(!route.allow().is_empty());
            }
        }
    }
}
