//! Roles and states. The numbers are those of 1.0, the names not all.
#![allow(dead_code, reason = "the macro writes more than is needed here")]

use crate::wire::wire_enum;

wire_enum! {
    pub enum Role of V03 {
        #[default]
        Unspecified = 0 "ROLE_UNSPECIFIED",
        User = 1 "ROLE_USER",
        Agent = 2 "ROLE_AGENT",
    }
}

wire_enum! {
    pub enum TaskState of V03 {
        #[default]
        Unspecified = 0 "TASK_STATE_UNSPECIFIED",
        Submitted = 1 "TASK_STATE_SUBMITTED",
        Working = 2 "TASK_STATE_WORKING",
        Completed = 3 "TASK_STATE_COMPLETED",
        Failed = 4 "TASK_STATE_FAILED",
        Cancelled = 5 "TASK_STATE_CANCELLED",
        InputRequired = 6 "TASK_STATE_INPUT_REQUIRED",
        Rejected = 7 "TASK_STATE_REJECTED",
        AuthRequired = 8 "TASK_STATE_AUTH_REQUIRED",
    }
}

impl From<crate::Role> for Role {
    fn from(role: crate::Role) -> Self {
        Self::from_number(role.number()).unwrap_or_default()
    }
}

impl From<crate::TaskState> for TaskState {
    fn from(state: crate::TaskState) -> Self {
        Self::from_number(state.number()).unwrap_or_default()
    }
}
