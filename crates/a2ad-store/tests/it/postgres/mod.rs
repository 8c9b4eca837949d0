//! PostgreSQL: a real server, started for these tests.

mod contract;
mod crash;
mod cut;
mod instances;
mod leases;
mod open;
mod rig;
mod tls;
