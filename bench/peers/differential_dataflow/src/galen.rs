//! The six rules of `examples/galen.py`: facts p and q that follow from one another.
//!
//! Reads p.txt, q.txt, r.txt, c.txt, u.txt and s.txt, comma-separated whole numbers. One worker loads them all,
//! then takes given facts of p and q away, one in an epoch, and puts each back in the next: the same
//! facts in the same order as the example. Prints one line of JSON; facts are counted as they flow by.

use std::cell::RefCell;
use std::fs;
use std::path::Path;
use std::rc::Rc;
use std::str::FromStr;
use std::time::Instant;

use differential_dataflow::VecCollection;
use differential_dataflow::input::{Input, InputSession};
use differential_dataflow::operators::iterate::Variable;
use timely::dataflow::operators::probe::Handle;
use timely::order::Product;
use timely::worker::Worker;

type Pair = (u32, u32);
type Triple = (u32, u32, u32);
type Changing<'scope, D> = VecCollection<'scope, u64, D, isize>;

/// The given facts.
struct Facts {
    p: Vec<Pair>,
    q: Vec<Triple>,
    r: Vec<Triple>,
    c: Vec<Triple>,
    u: Vec<Triple>,
    s: Vec<Pair>,
}

/// What is read of the rules' files; their columns are those of the rules in `derived`.
impl Facts {
    fn read(folder: &Path) -> Result<Facts, String> {
        let pairs = |name: &str| {
            numbers(folder, name).map(|rows| rows.into_iter().map(|[a, b]| (a, b)).collect())
        };
        let triples = |name: &str| {
            numbers(folder, name).map(|rows| rows.into_iter().map(|[a, b, c]| (a, b, c)).collect())
        };
        Ok(Facts {
            p: pairs("p")?,
            q: triples("q")?,
            r: triples("r")?,
            c: triples("c")?,
            u: triples("u")?,
            s: pairs("s")?,
        })
    }
}

/// The rows of a file.
fn numbers<const N: usize>(folder: &Path, name: &str) -> Result<Vec<[u32; N]>, String> {
    let path = folder.join(format!("{name}.txt"));
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let row = |line: &str| {
        let read: Result<Vec<u32>, _> = line
            .split(',')
            .map(|word| u32::from_str(word.trim()))
            .collect();
        read.ok().and_then(|row| <[u32; N]>::try_from(row).ok())
    };
    text.lines()
        .map(|line| {
            row(line).ok_or_else(|| format!("{}: {line:?} is not {N} numbers", path.display()))
        })
        .collect()
}

/// How many facts there are of each kind.
type Counts = Rc<RefCell<(i64, i64)>>;

/// Reads `K FOLDER`, runs on one worker, and returns the line to print.
pub fn run(words: impl Iterator<Item = String>) -> Result<String, String> {
    let words: Vec<String> = words.collect();
    let [changes, folder] = words.as_slice() else {
        return Err("expected: galen K FOLDER".to_owned());
    };
    let changes = usize::from_str(changes).map_err(|_| format!("not a number: {changes:?}"))?;
    let facts = Facts::read(Path::new(folder))?;
    Ok(timely::execute_directly(move |worker| {
        measured(worker, &facts, changes)
    }))
}

fn measured(worker: &mut Worker, facts: &Facts, changes: usize) -> String {
    let counts = Counts::default();
    let (mut p, mut q, probe, fixed) = worker.dataflow(|scope| {
        let (p_in, p) = scope.new_collection();
        let (q_in, q) = scope.new_collection();
        let (r_in, r) = scope.new_collection();
        let (c_in, c) = scope.new_collection();
        let (u_in, u) = scope.new_collection();
        let (s_in, s) = scope.new_collection();
        let (p, q) = derived(p, q, r, c, u, s);
        let probe = Handle::new();
        let (of_p, of_q) = (Rc::clone(&counts), Rc::clone(&counts));
        p.inspect(move |(_, _, diff)| of_p.borrow_mut().0 += *diff as i64)
            .probe_with(&probe);
        q.inspect(move |(_, _, diff)| of_q.borrow_mut().1 += *diff as i64)
            .probe_with(&probe);
        (p_in, q_in, probe, (r_in, c_in, u_in, s_in))
    });
    let begun = Instant::now();
    // Not before the dataflow is built: an input that is closed earlier holds its first epoch for ever.
    let (r, c, u, s) = fixed;
    for (input, rows) in [(r, &facts.r), (c, &facts.c), (u, &facts.u)] {
        load_and_close(input, rows);
    }
    load_and_close(s, &facts.s);
    facts.p.iter().for_each(|&fact| p.insert(fact));
    facts.q.iter().for_each(|&fact| q.insert(fact));
    let mut wait = |p: &mut InputSession<u64, Pair, isize>,
                    q: &mut InputSession<u64, Triple, isize>| {
        let next = p.time() + 1;
        p.advance_to(next);
        q.advance_to(next);
        p.flush();
        q.flush();
        worker.step_while(|| probe.less_than(&next));
    };
    wait(&mut p, &mut q);
    let seconds = begun.elapsed().as_secs_f64();
    let at_first = *counts.borrow();
    let mut times = Vec::new();
    for number in 0..changes {
        for diff in [-1, 1] {
            let begun = Instant::now();
            if number % 2 == 0 {
                p.update(facts.p[number * 7919 % facts.p.len()], diff);
            } else {
                q.update(facts.q[number * 7919 % facts.q.len()], diff);
            }
            wait(&mut p, &mut q);
            times.push(begun.elapsed().as_secs_f64() * 1e3);
        }
    }
    let at_last = *counts.borrow();
    let all: Vec<String> = times.iter().map(|ms| format!("{ms:.4}")).collect();
    format!(
        r#"{{"p":{},"q":{},"p_last":{},"q_last":{},"seconds":{seconds:.3},"change_ms_all":[{}]}}"#,
        at_first.0,
        at_first.1,
        at_last.0,
        at_last.1,
        all.join(",")
    )
}

/// Rows that are there from the first epoch on, and do not change.
fn load_and_close<D: differential_dataflow::Data>(
    mut input: InputSession<u64, D, isize>,
    rows: &[D],
) {
    rows.iter().for_each(|row| input.insert(row.clone()));
}

/// All facts that follow, and the given ones, once each.
///
/// What several rules read by the same columns is arranged once.
fn derived<'scope>(
    p_given: Changing<'scope, Pair>,
    q_given: Changing<'scope, Triple>,
    r: Changing<'scope, Triple>,
    c: Changing<'scope, Triple>,
    u: Changing<'scope, Triple>,
    s: Changing<'scope, Pair>,
) -> (Changing<'scope, Pair>, Changing<'scope, Triple>) {
    // The files have r(r, p, e), c(y, z, w), u(r, z, w) and s(r, p), in the words of the example.
    let r = r.map(|(y, u, e)| (y, (u, e))).arrange_by_key();
    let c = c.map(|(y, w, z)| (w, (y, z))).arrange_by_key();
    let u = u.map(|(w, r, z)| (w, (r, z))).arrange_by_key();
    let s = s.arrange_by_key();
    let outer = p_given.scope();
    outer.iterative::<u32, _, _>(|inner| {
        let (r, c, u, s) = (
            r.enter(inner),
            c.enter(inner),
            u.enter(inner),
            s.enter(inner),
        );
        let step = Product::new(Default::default(), 1);
        let (p_bind, p) = Variable::new(inner, step);
        let (q_bind, q) = Variable::new(inner, step);

        let p_by_first = p.clone().arrange_by_key();
        let p_by_second = p.clone().map(|(x, z)| (z, x)).arrange_by_key();
        let p_by_both = p.arrange_by_self();
        let q_by_first = q.clone().map(|(x, r, z)| (x, (r, z))).arrange_by_key();
        let q_by_second = q.clone().map(|(x, r, z)| (r, (x, z))).arrange_by_key();
        let q_by_target = q.clone().map(|(x, r, z)| ((r, z), x)).arrange_by_key();
        let q_by_source = q.map(|(x, r, z)| ((x, r), z)).arrange_by_key();

        // p(x,z) :- p(x,y), p(y,z).
        let p_by_p = p_by_second
            .clone()
            .join_core(p_by_first, |_y, &x, &z| Some((x, z)));
        // q(x,r,z) :- p(x,y), q(y,r,z).
        let q_by_p = p_by_second
            .clone()
            .join_core(q_by_first, |_y, &x, &(r, z)| Some((x, r, z)));
        // p(x,z) :- p(y,w), u(w,r,z), q(x,r,y).
        let p_by_u = p_by_second
            .clone()
            .join_core(u, |_w, &y, &(r, z)| Some(((r, y), z)))
            .arrange_by_key()
            .join_core(q_by_target, |_, &z, &x| Some((x, z)));
        // p(x,z) :- c(y,w,z), p(x,w), p(x,y).
        let p_by_c = p_by_second
            .join_core(c, |_w, &x, &(y, z)| Some(((x, y), z)))
            .arrange_by_key()
            .join_core(p_by_both, |&(x, _y), &z, &()| Some((x, z)));
        // q(x,q,z) :- q(x,r,z), s(r,q).
        let q_by_s = q_by_second
            .clone()
            .join_core(s, |_r, &(x, z), &q| Some((x, q, z)));
        // q(x,e,o) :- q(x,y,z), r(y,u,e), q(z,u,o).
        let q_by_r = q_by_second
            .join_core(r, |_y, &(x, z), &(u, e)| Some(((z, u), (x, e))))
            .arrange_by_key()
            .join_core(q_by_source, |_, &(x, e), &o| Some((x, e, o)));

        let p = p_given
            .enter(inner)
            .concatenate([p_by_p, p_by_u, p_by_c])
            .distinct();
        let q = q_given
            .enter(inner)
            .concatenate([q_by_p, q_by_s, q_by_r])
            .distinct();
        p_bind.set(p.clone());
        q_bind.set(q.clone());
        (p.leave(outer), q.leave(outer))
    })
}
