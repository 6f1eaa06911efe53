//! The line of JSON that a run prints.

use std::time::Duration;

use crate::arguments::Job;
use crate::checks::Checks;

/// What a run measured and saw.
pub struct Outcome {
    pub load: Duration,
    /// One for each group of `batch` epochs.
    pub changes: Vec<Duration>,
    pub checks: Checks,
}

/// The line about a run on `system`, which took `idle_mib` before its rows were drawn.
pub fn report(system: &str, job: &Job, outcome: &Outcome, idle_mib: Option<f64>) -> String {
    let milliseconds = |duration: &Duration| duration.as_secs_f64() * 1e3;
    let all = outcome
        .changes
        .iter()
        .map(milliseconds)
        .collect::<Vec<f64>>();
    let checks = outcome.checks;
    let fields = [
        format!(r#""system":"{system}""#),
        format!(r#""workload":"{}""#, job.name),
        format!(r#""workers":{}"#, job.workers),
        format!(r#""batch":{}"#, job.batch),
        format!(r#""load_seconds":{:.6}"#, outcome.load.as_secs_f64()),
        format!(r#""change_ms_median":{}"#, rank(&all, 0.5)),
        format!(r#""change_ms_p99":{}"#, rank(&all, 0.99)),
        format!(
            r#""change_ms_all":[{}]"#,
            all.iter()
                .map(|ms| format!("{ms:.4}"))
                .collect::<Vec<_>>()
                .join(",")
        ),
        format!(r#""idle_mib":{}"#, or_null(idle_mib)),
        format!(r#""peak_mib":{}"#, or_null(mib("VmHWM"))),
        format!(r#""check_load":{}"#, checks.load.to_json(job.has_special())),
        format!(
            r#""check_changes":{}"#,
            checks.changes.to_json(job.has_special())
        ),
    ];
    format!("{{{}}}", fields.join(","))
}

/// The least value that at least `share` of the values do not exceed; null if there is none.
fn rank(values: &[f64], share: f64) -> String {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = (share * sorted.len() as f64).ceil() as usize;
    sorted
        .get(place.saturating_sub(1))
        .map_or("null".to_owned(), |ms| format!("{ms:.4}"))
}

/// A number with one digit after the point, or null.
fn or_null(number: Option<f64>) -> String {
    number.map_or("null".to_owned(), |number| format!("{number:.1}"))
}

/// Memory of this process as Linux counts it: `VmRSS` is resident now, `VmHWM` the most that ever was.
pub fn mib(counter: &str) -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(counter)?.strip_prefix(':'))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib / 1024.0)
}
