//! The workloads of `bench/workloads.py` on Rust differential dataflow.
//!
//! Draws the inputs, builds one dataflow on each worker, loads, then applies the changes one
//! group of epochs at a time and waits for each; prints one line of JSON. Timed are the load
//! (first row inserted until its result is complete) and each group likewise; drawing the inputs
//! and building the dataflow are not. Figures count only if the checks are the expected ones.
//! Memory is told twice: as it was before the rows were drawn, and the most that it ever was.

mod arguments;
mod checks;
mod drawn;
mod galen;
mod inputs;
mod report;
mod watching;
mod workloads;

use std::cell::RefCell;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::{Arc, Barrier};
use std::time::Instant;

use timely::Config;
use timely::worker::Worker;

use arguments::Job;
use checks::Checks;
use report::{Outcome, mib, report};
use workloads::{Built, Rows, build};

/// How the program is called.
const USAGE: &str = "usage: ddpeer WORKLOAD NUMBERS [--batch B] [-w W]

  wcc plain N E K          connected components: iterate(join, concat, reduce min)
  wcc prioritised N E K    the same by propagate_at, small labels first
  bfs N E K                distances from node 0
  scc plain N E K          edges inside strongly connected components: strongly_connected
  scc written N E K        the same: what is compared with it is the program that a user writes
  scc prioritised N E K    the same by strongly_connected_at, small labels first
  pagerank N E K           ranks in whole numbers, 20 iterations
  count plain M R K U      rows by key
  count total M R K U      the same by count_total
  sum M R K U              totals of a value by key
  join M R K U             two tables on their key
  top M R K U              the three largest values of each key
  q3 N K U                 query 3 of TPC-H over N orders: three tables, a sum, the first ten
  galen K FOLDER           facts by six rules from p.txt … s.txt in FOLDER; K facts go and come back

  --batch B                B epochs in flight before waiting (default 1)
  -w W                     worker threads (default 1)";

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
    let system = "differential-dataflow 0.25";
    Ok(report(system, &shared.0, &together(outcomes), idle_mib))
}

/// The outcome of a run, from those of its workers: the times are those of worker 0, which enters the changes.
fn together(outcomes: Vec<Outcome>) -> Outcome {
    outcomes
        .into_iter()
        .reduce(|mut first, other| {
            first.checks.load.merge(&other.checks.load);
            first.checks.changes.merge(&other.checks.changes);
            first
        })
        .expect("there is a worker")
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
