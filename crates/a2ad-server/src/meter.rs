//! The recorder behind `/metrics`: one per process, shared by every server in it.

use std::sync::OnceLock;
use std::time::Duration;

use a2ad_transport::RenderMetrics;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use std::sync::Arc;

/// How often samples of histograms are put into their buckets when nobody asks for `/metrics`;
/// until then they take up memory.
pub(crate) const UPKEEP: Duration = Duration::from_secs(5);

/// From a commit on a fast disk to a turn that waits for a model.
const SECONDS: &[f64] = &[
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 10.0, 30.0, 60.0,
];

/// How many share a commit.
const COUNTS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];

static RECORDER: OnceLock<Option<PrometheusHandle>> = OnceLock::new();

/// The process's metrics. Empty if the embedding program has installed a recorder of its own: then
/// the figures are there, under the same names.
#[derive(Clone, Debug)]
pub(crate) struct Recorder(Option<PrometheusHandle>);

impl Recorder {
    /// Installs the recorder, or finds the one that is.
    pub(crate) fn get() -> Self {
        Self(RECORDER.get_or_init(install).clone())
    }

    /// What the edge calls for `/metrics`.
    pub(crate) fn render(&self) -> RenderMetrics {
        let handle = self.0.clone();
        Arc::new(move || {
            handle
                .as_ref()
                .map(PrometheusHandle::render)
                .unwrap_or_default()
        })
    }

    /// Puts away samples.
    pub(crate) fn tidy(&self) {
        if let Some(handle) = &self.0 {
            handle.run_upkeep();
        }
    }
}

fn install() -> Option<PrometheusHandle> {
    let buckets = [("_seconds", SECONDS), ("_size", COUNTS)];
    let builder = buckets
        .iter()
        .try_fold(PrometheusBuilder::new(), |builder, (suffix, bounds)| {
            builder.set_buckets_for_metric(Matcher::Suffix((*suffix).to_owned()), bounds)
        });
    let installed = builder.and_then(PrometheusBuilder::install_recorder);
    a2ad_core::engine::describe_metrics();
    a2ad_store::metric::describe();
    a2ad_transport::meters::describe();
    match installed {
        Ok(handle) => Some(handle),
        Err(error) => {
            tracing::warn!(%error, "/metrics stays empty: another recorder is installed");
            None
        }
    }
}
