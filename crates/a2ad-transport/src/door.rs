//! The door that every request goes through, whatever binding it came by (OPS-04).

use a2ad_core::engine::Caller;
use a2ad_core::keys::Scope;
use http::request::Parts;

use crate::call::Request;
use crate::edge::Inner;
use crate::errors::Fault;
use crate::extensions::Active;
use crate::mounts::{Mount, Visit};
use crate::{caller, query};

/// A request that was let in.
pub(crate) struct Admitted<'a> {
    pub(crate) mount: &'a Mount,
    pub(crate) caller: Caller,
    pub(crate) active: Active,
}

/// Whom somebody calls, and with which extensions; who it is and in which version has been found out before.
/// `request` is what could be read of the request, for its tenant; that it could not be read is said only to those
/// who got this far.
pub(crate) fn admit<'a>(
    inner: &'a Inner,
    visit: Visit<'a>,
    head: &Parts,
    request: Option<&Request>,
) -> Result<Admitted<'a>, Fault> {
    let in_query = query::find(head.uri.query(), "tenant")?;
    let tenants = [in_query.as_deref(), request.map(Request::tenant)];
    let mount = inner.mounts.resolve(visit, tenants, request)?;
    let active = mount.extensions.negotiate(&head.headers)?;
    let idempotency_key = caller::idempotency_key(&head.headers, &inner.limits)?;
    let agent = mount.agent.clone();
    Ok(Admitted {
        mount,
        caller: Caller {
            scope: Scope {
                owner: visit.principal.owner.clone(),
                agent,
            },
            idempotency_key,
        },
        active,
    })
}
