//! The workloads of `bench/workloads.py` on Rust differential dataflow.
//!
//! Draws the inputs, builds one dataflow on each worker, loads, then applies the changes one
//! group of epochs at a time and waits for each; prints one line of JSON. Timed are the load
//! (first row inserted until its result is complete) and each group likewise; drawing the inputs
//! and building the dataflow are not. Figures count only if the checks are the expected ones.
//! Memory is told twice: as it was before the rows were drawn, and the most that it ever was.

mod arguments;
mod checks;
mod galen;
mod inputs;
mod workloads;

use std::cell::RefCell;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use timely::Config;
use timely::worker::Worker;

use arguments::{Job, USAGE};
use checks::Checks;
use workloads::{Built, Rows, build};

/// What one worker measured and saw.
struct Outcome {
    load: Duration,
    /// One for each group of `batch` epochs.
    changes: Vec<Duration>,
    checks: Checks,
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    if words.next().as_deref() == Some("galen") {
        return finished(galen::run(words));
    }
    let job = match Job::parse(std::env::args().skip(1)) {
        Ok(job) => job,
        Err(message) => {
            eprintln!("ddpeer: {message}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    finished(run(job))
}

/// Prints the line, or what went wrong.
fn finished(outcome: Result<String, String>) -> ExitCode {
    match outcome {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("ddpeer: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the job on all its workers and returns the line to print.
fn run(job: Job) -> Result<String, String> {
    let config = if job.workers == 1 {
        Config::thread()
    } else {
        Config::process(job.workers)
    };
    let idle_mib = mib("VmRSS");
    let rows = Rows::draw(&job);
    let start = Barrier::new(job.workers);
    let shared = Arc::new((job, rows, start));
    let for_workers = Arc::clone(&shared);
    let guards = timely::execute(config, move |worker| {
        let (job, rows, start) = &*for_workers;
        work(worker, job, rows, start)
    })?;
    let outcomes = guards
        .join()
        .into_iter()
        .collect::<Result<Vec<Outcome>, String>>()?;
    Ok(report(&shared.0, &outcomes, idle_mib))
}

/// One worker: build, load, change.
fn work(worker: &mut Worker, job: &Job, rows: &Rows, start: &Barrier) -> Outcome {
    let checks = Rc::new(RefCell::new(Checks::default()));
    let Built { mut feeds, probe } = worker.dataflow(|scope| build(scope, job, rows, &checks));
    let (index, peers) = (worker.index(), worker.peers());

    start.wait();
    let timer = Instant::now();
    for feed in &mut feeds {
        let mut part = 0;
        // In parts: rows that all wait in the queue first cost `count` four times its memory.
        while feed.load(part, index, peers) {
            worker.step();
            part += 1;
        }
        feed.advance_to(1);
        feed.flush();
    }
    worker.step_while(|| probe.less_than(&1));
    let load = timer.elapsed();

    let mut changes = Vec::with_capacity(job.epochs.div_ceil(job.batch));
    let (mut done, mut epoch) = (0, 1);
    while done < job.epochs {
        let timer = Instant::now();
        for k in done..job.epochs.min(done + job.batch) {
            epoch += 1;
            for feed in &mut feeds {
                // Changes are small, so one worker enters them; the others only let time pass.
                if index == 0 {
                    feed.change(k);
                }
                feed.advance_to(epoch);
            }
        }
        feeds.iter_mut().for_each(|feed| feed.flush());
        worker.step_while(|| probe.less_than(&epoch));
        changes.push(timer.elapsed());
        done += job.batch;
    }
    let checks = *checks.borrow();
    Outcome {
        load,
        changes,
        checks,
    }
}

/// The line of JSON. Times are those of worker 0, which enters the changes.
fn report(job: &Job, outcomes: &[Outcome], idle_mib: Option<f64>) -> String {
    let mut checks = Checks::default();
    for outcome in outcomes {
        checks.load.merge(&outcome.checks.load);
        checks.changes.merge(&outcome.checks.changes);
    }
    let milliseconds = |duration: &Duration| duration.as_secs_f64() * 1e3;
    let all = outcomes[0]
        .changes
        .iter()
        .map(milliseconds)
        .collect::<Vec<f64>>();
    let fields = [
        r#""system":"differential-dataflow 0.25""#.to_owned(),
        format!(r#""workload":"{}""#, job.name),
        format!(r#""workers":{}"#, job.workers),
        format!(r#""batch":{}"#, job.batch),
        format!(r#""load_seconds":{:.6}"#, outcomes[0].load.as_secs_f64()),
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
fn mib(counter: &str) -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(counter)?.strip_prefix(':'))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib / 1024.0)
}
