//! PostgreSQL: a real server, started for these tests.

mod contract;
#[cfg(feature = "sqlite")]
mod copying;
mod crash;
mod cut;
mod instances;
mod leases;
mod open;
mod rig;
mod tls;
mod verifying;
