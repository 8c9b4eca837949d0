//! PostgreSQL: a real server, started for these tests.

mod contract;
