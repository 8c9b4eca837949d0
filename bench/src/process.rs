//! What the system knows of a process, and on which cores things run.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The time that all threads of a process have run, also those that have ended.
///
/// The kernel counts in nanoseconds and shows hundredths of a second, so measure for a second or more.
///
/// # Errors
/// When there is no such process.
pub fn cpu_time(pid: u32) -> Result<Duration> {
    let path = format!("/proc/{pid}/stat");
    let stat = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
    // The name, in parentheses, may contain anything; what follows is numbers.
    let (_, fields) = stat.rsplit_once(')').context("a stat file has a name")?;
    let mut times = fields.split_whitespace().skip(11);
    let mut ticks = || times.next().and_then(|field| field.parse::<u64>().ok());
    let (user, system) = (ticks(), ticks());
    let ticks = user.zip(system).map(|(user, system)| user + system);
    let ticks = ticks.with_context(|| format!("{path} has no times"))?;
    let per_second = rustix::param::clock_ticks_per_second();
    Ok(Duration::from_secs_f64(ticks as f64 / per_second as f64))
}

/// The memory of a process that is there, in KiB.
///
/// # Errors
/// When there is no such process.
pub fn resident_kib(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/status");
    let status = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number
        .and_then(|number| number.parse().ok())
        .with_context(|| format!("{path} has no VmRSS"))
}

/// Lets this thread, and what it starts from now on, run on one core alone.
///
/// # Errors
/// When there is no such core.
pub fn pin(core: usize) -> Result<()> {
    ensure!(core < CpuSet::MAX_CPU, "there is no core {core}");
    let mut cores = CpuSet::new();
    cores.set(core);
    sched_setaffinity(None, &cores).with_context(|| format!("run on core {core}"))
}

/// Does something on one core, and goes back to where it was. A process started there stays there.
///
/// # Errors
/// When there is no such core, or what is done fails.
pub fn on_core<T>(core: usize, action: impl FnOnce() -> Result<T>) -> Result<T> {
    let before = sched_getaffinity(None).context("ask for the cores")?;
    pin(core)?;
    let done = action();
    sched_setaffinity(None, &before).context("go back to the other cores")?;
    done
}

/// Lets this process, and what it starts from now on, have as many open files as it may.
///
/// # Errors
/// When the system refuses.
pub fn raise_open_files() -> Result<()> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).context("raise the limit of open files")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_time_and_memory() {
        let pid = std::process::id();
        let before = cpu_time(pid).unwrap();
        let begin = std::time::Instant::now();
        while cpu_time(pid).unwrap() < before + Duration::from_millis(20) {
            assert!(begin.elapsed() < Duration::from_secs(10), "no time passes");
        }
        assert!(resident_kib(pid).unwrap() > 100);
    }
}
