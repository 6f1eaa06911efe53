//! The workloads of `bench/timely/beside.py` on Rust timely dataflow. Prints one line of JSON.
//!
//!     timelypeer exchange ROWS PIECE [timely's arguments, such as -w 2, or -n 2 -p 0]
//!     timelypeer rounds COUNT STAGES [timely's arguments]
//!     timelypeer chain STAGES
//!     timelypeer fan STAGES
//!     timelypeer pointstamps COUNT

use std::time::Instant;

use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::{Exchange as ByNumber, Pipeline};
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::operators::{Concatenate, ConnectLoop, Feedback, Probe};
use timely::dataflow::{InputHandle, StreamVec};
use timely::progress::frontier::Antichain;
use timely::progress::reachability::Builder;
use timely::progress::{Source, Target};
use timely::worker::Worker;

/// Rounds before the clock starts.
const WARM: usize = 100;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| -> usize { words[at].parse().expect("a number") };
    let rest = |from: usize| words[from..].to_vec().into_iter();
    match words.first().map(String::as_str) {
        Some("exchange") => exchange(number(1), number(2), rest(3)),
        Some("rounds") => rounds(number(1), number(2), rest(3)),
        Some("chain") => stages(number(1), false),
        Some("fan") => stages(number(1), true),
        Some("pointstamps") => pointstamps(number(1)),
        _ => {
            eprintln!("timelypeer: exchange, rounds, chain, fan or pointstamps; see src/main.rs");
            std::process::exit(2);
        }
    }
}

/// Each worker sends its share of the rows, in pieces, to the workers of their keys, which count them.
fn exchange(rows: usize, piece: usize, arguments: impl Iterator<Item = String>) {
    timely::execute_from_args(arguments, move |worker| {
        let mut input = InputHandle::<usize, CapacityContainerBuilder<Vec<(u64, u64)>>>::new();
        let count = std::rc::Rc::new(std::cell::Cell::new(0usize));
        let counting = count.clone();
        let probe = worker.dataflow(|scope| {
            input
                .to_stream(scope)
                .unary::<CapacityContainerBuilder<Vec<()>>, _, _, _>(
                    ByNumber::new(|row: &(u64, u64)| row.0),
                    "Count",
                    move |_, _| {
                        move |input, _output| {
                            input.for_each(|_, data| counting.set(counting.get() + data.len()));
                        }
                    },
                )
                .probe()
                .0
        });
        let drawn: Vec<(u64, u64)> = (0..piece as u64).map(|at| (mixed(at), at)).collect();
        meet(worker, &mut input, &probe, 1);
        let start = Instant::now();
        let mut left = rows / worker.peers();
        while left > 0 {
            let part = left.min(piece);
            input.send_batch(&mut drawn[..part].to_vec());
            left -= part;
            worker.step();
        }
        meet(worker, &mut input, &probe, 2);
        let seconds = start.elapsed().as_secs_f64();
        if worker.index() == 0 {
            println!("{{\"seconds\": {seconds}, \"rows_here\": {}}}", count.get());
        }
    })
    .expect("arguments of timely");
}

/// Waits until all workers have sent everything before `time`.
fn meet<CB>(
    worker: &mut Worker,
    input: &mut InputHandle<usize, CB>,
    probe: &timely::dataflow::ProbeHandle<usize>,
    time: usize,
) where
    CB: timely::ContainerBuilder<Container: Clone>,
{
    input.advance_to(time);
    while probe.less_than(&time) {
        worker.step();
    }
}

/// The rounds of a barrier: each worker asks for the next time once one is over. With stages, worker 0 sends
/// a record in each round, which passes them, at each on another worker.
fn rounds(count: usize, stages: usize, arguments: impl Iterator<Item = String>) {
    timely::execute_from_args(arguments, move |worker| {
        let taken = std::rc::Rc::new(std::cell::Cell::new((0.0, 0.0)));
        let taken_here = taken.clone();
        let index = worker.index();
        worker.dataflow(move |scope| {
            let (handle, stream) = scope.feedback::<Vec<u64>>(1);
            let mut start = (Instant::now(), 0.0);
            let mut stream = stream.unary_notify::<CapacityContainerBuilder<Vec<u64>>, _, _>(
                Pipeline,
                "Drive",
                vec![0],
                move |input, output, notificator| {
                    input.for_each(|_, _| {});
                    while let Some((cap, _)) = notificator.next() {
                        let time = *cap.time() + 1;
                        if time == WARM {
                            start = (Instant::now(), on_core());
                        }
                        if time < count + WARM {
                            if stages > 0 && index == 0 {
                                output.session(&cap).give(time as u64);
                            }
                            notificator.notify_at(cap.delayed(&time));
                        } else {
                            let elapsed = start.0.elapsed().as_secs_f64();
                            taken_here.set((elapsed, on_core() - start.1));
                        }
                    }
                },
            );
            for stage in 0..stages {
                stream = stream.unary::<CapacityContainerBuilder<Vec<u64>>, _, _, _>(
                    ByNumber::new(move |time: &u64| *time + stage as u64),
                    "Pass",
                    |_, _| {
                        |input, output| {
                            input.for_each(|time, data| output.session(&time).give_container(data));
                        }
                    },
                );
            }
            stream.connect_loop(handle);
        });
        // As timely itself does behind the closure: a worker without work sleeps.
        while taken.get().0 == 0.0 {
            worker.step_or_park(None);
        }
        if index == 0 {
            let (elapsed, core) = taken.get();
            let each = 1e6 / count as f64;
            println!(
                "{{\"µs\": {}, \"core µs\": {}}}",
                elapsed * each,
                core * each
            );
        }
    })
    .expect("arguments of timely");
}

/// Adds a stage that sends on what it gets.
fn pass<'scope>(stream: StreamVec<'scope, usize, u64>) -> StreamVec<'scope, usize, u64> {
    stream.unary::<CapacityContainerBuilder<Vec<u64>>, _, _, _>(Pipeline, "Pass", |_, _| {
        |input, output| {
            input.for_each(|time, data| output.session(&time).give_container(data));
        }
    })
}

/// Stages behind or beside each other on one worker: the install, and the least of four passes of a record.
fn stages(count: usize, beside: bool) {
    timely::execute_directly(move |worker| {
        let before = peak_mib();
        let start = Instant::now();
        let mut input = InputHandle::<usize, CapacityContainerBuilder<Vec<u64>>>::new();
        let probe = worker.dataflow(|scope| {
            let first = input.to_stream(scope);
            if beside {
                let all: Vec<_> = (0..count).map(|_| pass(first.clone())).collect();
                pass(first.scope().concatenate(all)).probe().0
            } else {
                let mut stream = first;
                for _ in 0..count {
                    stream = pass(stream);
                }
                stream.probe().0
            }
        });
        worker.step();
        let install = start.elapsed().as_secs_f64();
        let memory = peak_mib() - before;
        let mut best = f64::MAX;
        for epoch in 1..5 {
            let start = Instant::now();
            input.send(epoch as u64);
            input.advance_to(epoch);
            while probe.less_than(&epoch) {
                worker.step();
            }
            best = best.min(start.elapsed().as_secs_f64());
        }
        println!(
            "{{\"install s\": {install}, \"MiB\": {memory}, \"µs\": {}}}",
            best / count as f64 * 1e6
        );
    });
}

/// A place holds `count` times; then one more comes and goes, a thousand times.
fn pointstamps(count: usize) {
    let mut builder = Builder::<usize>::new();
    let plain = || vec![[(0, Antichain::from_elem(0))].into_iter().collect()];
    builder.add_node(0, 1, 1, plain());
    builder.add_node(1, 1, 1, plain());
    builder.add_edge(Source::new(0, 0), Target::new(1, 0));
    let (mut tracker, _) = builder.build(None);
    let mut change = |time: usize, delta: i64| {
        tracker.update_source(Source::new(0, 0), time, delta);
        tracker.propagate_all();
        tracker.pushed().0.drain().for_each(drop);
    };
    let start = Instant::now();
    for time in 0..count {
        change(time + 1, 1);
    }
    let seconds = start.elapsed().as_secs_f64();
    let start = Instant::now();
    for _ in 0..1_000 {
        change(count + 7, 1);
        change(count + 7, -1);
    }
    let each = start.elapsed().as_secs_f64() / 2_000.0 * 1e6;
    println!("{{\"seconds\": {seconds}, \"µs\": {each}}}");
}

/// Seconds that this thread has been on a core.
fn on_core() -> f64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    told.split_whitespace()
        .next()
        .and_then(|word| word.parse::<f64>().ok())
        .unwrap_or(0.0)
        / 1e9
}

/// A number that looks random, always the same.
fn mixed(at: u64) -> u64 {
    let mut x = at.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// The most that was ever resident.
fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap_or_default();
    let kib: f64 = line
        .split_whitespace()
        .nth(1)
        .and_then(|word| word.parse().ok())
        .unwrap_or(0.0);
    kib / 1024.0
}
