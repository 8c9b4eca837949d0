//! Which path means what.

/// Where a path below `/monitor` leads. Ids are as they were sent, still encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route<'a> {
    Agents,
    /// The tasks of all agents, or of one.
    Tasks(Option<&'a str>),
    /// A task of any agent, or of one.
    Task(Option<&'a str>, &'a str),
    /// What happens to tasks of all agents, or of one.
    Events(Option<&'a str>),
}

impl<'a> Route<'a> {
    /// Where a path leads.
    pub(crate) fn find(path: &'a str) -> Option<Self> {
        let mut segments = path.strip_prefix("/monitor/")?.split('/');
        let first = segments.next()?;
        let rest = [segments.next(), segments.next(), segments.next()];
        if segments.next().is_some() {
            return None;
        }
        Some(match (first, rest) {
            ("agents", [None, ..]) => Self::Agents,
            ("tasks", [None, ..]) => Self::Tasks(None),
            ("tasks", [Some(task), None, _]) => Self::Task(None, task),
            ("events", [None, ..]) => Self::Events(None),
            ("agents", [Some(agent), Some("tasks"), None]) => Self::Tasks(Some(agent)),
            ("agents", [Some(agent), Some("tasks"), Some(task)]) => Self::Task(Some(agent), task),
            ("agents", [Some(agent), Some("events"), None]) => Self::Events(Some(agent)),
            _ => return None,
        })
    }

    /// The agent that the path names.
    pub(super) const fn agent(self) -> Option<&'a str> {
        match self {
            Self::Agents => None,
            Self::Tasks(agent) | Self::Task(agent, _) | Self::Events(agent) => agent,
        }
    }

    /// The verbs that mean something here, as the header `Allow` has them.
    pub(crate) const fn allow(self) -> &'static str {
        match self {
            Self::Agents | Self::Tasks(_) | Self::Task(..) => "GET, HEAD",
            Self::Events(_) => "GET",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    ///
    #[test]
    fn r_01_paths_lead_where_they_should() {
        for (path, route) in [
            ("/monitor/agents", Route::Agents),
            ("/monitor/tasks", Route::Tasks(None)),
            ("/monitor/tasks/t", Route::Task(None, "t")),
            ("/monitor/events", Route::Events(None)),
            ("/monitor/agents/a/tasks", Route::Tasks(Some("a"))),
            ("/monitor/agents/a/tasks/t", Route::Task(Some("a"), "t")),
            ("/monitor/agents/a/events", Route::Events(Some("a"))),
        ] {
            assert_eq!(Route::find(path), Some(route), "{path}");
        }
        for path in [
            "/monitor",
            "/monitor/",
            "/monitor/agents/a",
            "/monitor/agents/a/tasks/t/x",
            "/monitor/tasks/t/x",
            "/monitor/events/x",
            "/monitors/agents",
        ] {
            assert_eq!(Route::find(path), None, "{path}");
        }
    }
}
