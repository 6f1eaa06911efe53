//! The dataflow of each workload, written as a user of differential dataflow would.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::rc::Rc;
use std::sync::Arc;

use differential_dataflow::algorithms::graphs::{bfs, propagate, scc};
use differential_dataflow::input::Input;
use differential_dataflow::operators::iterate::Variable;
use differential_dataflow::operators::{CountTotal, Iterate};
use differential_dataflow::{AsCollection, VecCollection};
use timely::dataflow::Scope;
use timely::dataflow::operators::probe::Handle;
use timely::dataflow::operators::vec::Filter;
use timely::order::Product;

use crate::arguments::{Job, Kind};
use crate::checks::{Checks, Facts};
use crate::drawn::{self, Line, Order, Pair};
use crate::inputs::{Feed, Numbers, Table};
use crate::watching::watch;

type Changing<'scope, D> = VecCollection<'scope, u64, D, isize>;

/// The input rows, drawn before anything is timed and shared by the workers.
pub enum Rows {
    Keys(Arc<Vec<u32>>),
    Pairs(Arc<Vec<Pair>>),
    TwoTables(Arc<Vec<Pair>>, Arc<Vec<Pair>>),
    Orders(Arc<Vec<Pair>>, Arc<Vec<Order>>, Arc<Vec<Line>>),
}

impl Rows {
    pub fn draw(job: &Job) -> Self {
        let count = job.loaded + job.epochs * job.step;
        match job.kind {
            Kind::CountPlain | Kind::CountTotal => {
                Rows::Keys(Arc::new(drawn::keys(job.limit, count)))
            }
            Kind::Sum | Kind::Top => Rows::Pairs(Arc::new(drawn::keyed_values(job.limit, count))),
            Kind::Join => Rows::TwoTables(
                Arc::new(drawn::numbered_keys(job.limit, count, 1)),
                Arc::new(drawn::numbered_keys(job.limit, count, 2)),
            ),
            Kind::Q3 => {
                let orders = drawn::orders(job.limit, count);
                let lines = drawn::lines(&orders);
                Rows::Orders(
                    Arc::new(drawn::customers(job.limit)),
                    Arc::new(orders),
                    Arc::new(lines),
                )
            }
            _ => Rows::Pairs(Arc::new(drawn::edges(job.limit, count))),
        }
    }
}

/// A dataflow that has been built on one worker.
pub struct Built {
    pub feeds: Vec<Box<dyn Feed>>,
    pub probe: Handle<u64>,
}

/// Builds the dataflow of `job` in `scope`.
pub fn build(scope: Scope<'_, u64>, job: &Job, rows: &Rows, checks: &Rc<RefCell<Checks>>) -> Built {
    match rows {
        Rows::Keys(keys) => {
            let (input, keys_in) = scope.new_collection();
            let feeds = vec![Table::boxed(keys, job.loaded, job.step, input)];
            let counts = if job.kind == Kind::CountTotal {
                keys_in.count_total()
            } else {
                keys_in.count()
            };
            let probe = watch(counts, checks, |&(key, count)| {
                Facts::new(count == 1, count as u64, (key, count as u32))
            });
            Built { feeds, probe }
        }
        Rows::Pairs(pairs) => {
            let (input, pairs_in) = scope.new_collection();
            let mut feeds = vec![Table::boxed(pairs, job.loaded, job.step, input)];
            let probe = match job.kind {
                Kind::Sum => sum(pairs_in, checks),
                Kind::Top => top(pairs_in, checks),
                Kind::SccPlain => inside_components(scc::strongly_connected(pairs_in), checks),
                Kind::SccPrioritised => inside_components(
                    scc::strongly_connected_at(pairs_in, |&node| u64::from(node)),
                    checks,
                ),
                Kind::Pagerank => watch(pagerank(pairs_in), checks, |&node| {
                    Facts::new(false, u64::from(node), (node, node))
                }),
                _ => {
                    let (numbers_input, numbers) = scope.new_collection();
                    let roots_only = job.kind == Kind::Bfs;
                    let count = if roots_only { 1 } else { job.limit as u32 };
                    feeds.push(Numbers::boxed(count, numbers_input));
                    labels(job.kind, pairs_in, numbers, checks)
                }
            };
            Built { feeds, probe }
        }
        Rows::Orders(customers, orders, lines) => {
            let (customers_input, customers_in) = scope.new_collection();
            let (orders_input, orders_in) = scope.new_collection();
            let (lines_input, lines_in) = scope.new_collection();
            let each = drawn::LINES_OF_ORDER;
            let feeds = vec![
                Table::boxed(customers, customers.len(), 0, customers_input),
                Table::boxed(orders, job.loaded, job.step, orders_input),
                Table::boxed(lines, job.loaded * each, job.step * each, lines_input),
            ];
            let probe = q3(customers_in, orders_in, lines_in, checks);
            Built { feeds, probe }
        }
        Rows::TwoTables(left, right) => {
            let (left_input, left_in) = scope.new_collection();
            let (right_input, right_in) = scope.new_collection();
            let feeds = vec![
                Table::boxed(left, job.loaded, job.step, left_input),
                Table::boxed(right, job.loaded, job.step, right_input),
            ];
            let joined = left_in.join_map(right_in, |&key, &left, &right| (key, left, right));
            let probe = watch(joined, checks, |&(key, left, right)| {
                Facts::new(left == right, u64::from(key), (left, right))
            });
            Built { feeds, probe }
        }
    }
}

/// Labels or distances of nodes: wcc in both forms, and bfs.
fn labels<'scope>(
    kind: Kind,
    edges: Changing<'scope, Pair>,
    numbers: Changing<'scope, u32>,
    checks: &Rc<RefCell<Checks>>,
) -> Handle<u64> {
    let result = match kind {
        Kind::Bfs => bfs::bfs(edges, numbers),
        Kind::WccPrioritised => {
            let nodes = numbers.map(|node| (node, node));
            propagate::propagate_at(both_directions(edges), nodes, |&label| u64::from(label))
        }
        _ => wcc_plain(both_directions(edges), numbers.map(|node| (node, node))),
    };
    let is_distance = kind == Kind::Bfs;
    watch(result, checks, move |&(node, label)| {
        let special_label = if is_distance { 1 } else { node };
        Facts::new(label == special_label, u64::from(label), (node, label))
    })
}

fn both_directions(edges: Changing<'_, Pair>) -> Changing<'_, Pair> {
    edges.flat_map(|(source, target)| [(source, target), (target, source)])
}

/// Every node takes the least label among its own and its neighbours', until nothing changes.
fn wcc_plain<'scope>(
    edges: Changing<'scope, Pair>,
    nodes: Changing<'scope, Pair>,
) -> Changing<'scope, Pair> {
    let edges = edges.arrange_by_key();
    nodes.clone().iterate(|scope, labels| {
        let edges = edges.enter(scope);
        let nodes = nodes.enter(scope);
        labels
            .join_core(edges, |_node, &label, &neighbour| Some((neighbour, label)))
            .concat(nodes)
            .reduce(|_node, labels, least| least.push((*labels[0].0, 1)))
    })
}

/// Iterations of `pagerank`.
const ITERATIONS: u32 = 20;

/// Every node as often as its rank says: what is handed on is a sixth less than the rank, in equal parts.
///
/// The example that differential dataflow has, with the same numbers.
fn pagerank<'scope>(edges: Changing<'scope, Pair>) -> Changing<'scope, u32> {
    let nodes = edges
        .clone()
        .flat_map(|(source, target)| [source, target])
        .distinct();
    let degrees = edges.clone().map(|(source, _target)| source).count();
    let outer = edges.scope();
    outer.iterative::<u32, _, _>(|inner| {
        let edges = edges.enter(inner);
        let nodes = nodes.enter(inner);
        let degrees = degrees.enter(inner);
        let first = nodes.clone().explode(|node| Some((node, 6_000_000)));
        let rest = nodes.explode(|node| Some((node, 1_000_000)));
        let (bind, ranks) = Variable::new_from(first, Product::new(Default::default(), 1));
        let shares = degrees
            .semijoin(ranks)
            .threshold(|(_node, degree), rank| (5 * rank) / (6 * degree))
            .map(|(node, _degree)| node);
        let handed = edges
            .semijoin(shares)
            .map(|(_node, target)| target)
            .concat(rest)
            .consolidate()
            .inner
            .filter(|(_node, time, _diff)| time.inner < ITERATIONS)
            .as_collection();
        bind.set(handed.clone());
        handed.leave(outer)
    })
}

fn inside_components(edges: Changing<'_, Pair>, checks: &Rc<RefCell<Checks>>) -> Handle<u64> {
    watch(edges, checks, |&(source, target)| {
        Facts::new(
            false,
            u64::from(source) + u64::from(target),
            (source, target),
        )
    })
}

/// Totals by `reduce` over a key's values: as a difference a value of 0 would lose its key.
fn sum(rows: Changing<'_, Pair>, checks: &Rc<RefCell<Checks>>) -> Handle<u64> {
    let totals = rows.reduce(|_key, values, totals| {
        let products = values
            .iter()
            .map(|(value, times)| u64::from(**value) * *times as u64);
        totals.push((products.sum::<u64>(), 1));
    });
    watch(totals, checks, |&(key, total)| {
        Facts::new(false, total, (key, total as u32))
    })
}

/// Rows of each key in `top`, and in the answer of `q3`.
const TOP_ROWS: isize = 3;
const Q3_ROWS: isize = 10;

/// The three largest values of each key.
fn top(rows: Changing<'_, Pair>, checks: &Rc<RefCell<Checks>>) -> Handle<u64> {
    let largest = rows.reduce(|_key, values, largest| {
        let mut left = TOP_ROWS;
        for (value, times) in values.iter().rev() {
            if left == 0 {
                break;
            }
            let taken = (*times).min(left);
            largest.push((**value, taken));
            left -= taken;
        }
    });
    watch(largest, checks, |&(key, value)| {
        Facts::new(false, u64::from(value), (key, value))
    })
}

/// The ten orders of one segment with the most revenue that is not shipped yet.
fn q3(
    customers: Changing<'_, Pair>,
    orders: Changing<'_, Order>,
    lines: Changing<'_, Line>,
    checks: &Rc<RefCell<Checks>>,
) -> Handle<u64> {
    let chosen = customers
        .filter(|&(_, segment)| segment == 0)
        .map(|(customer, _)| customer);
    let booked = orders
        .filter(|&(_, _, day, _)| day < drawn::BOOKED_DAY)
        .map(|(order, customer, day, priority)| (customer, (order, day, priority)))
        .semijoin(chosen)
        .map(|(_, (order, day, priority))| (order, (day, priority)));
    let open = lines
        .filter(|&(_, shipped, _)| shipped > drawn::BOOKED_DAY)
        .map(|(order, _, revenue)| (order, revenue));
    let totals = booked
        .join_map(open, |&order, &(day, priority), &revenue| {
            ((order, day, priority), u64::from(revenue))
        })
        .reduce(|_order, revenues, totals| {
            let products = revenues
                .iter()
                .map(|(revenue, times)| **revenue * *times as u64);
            totals.push((products.sum::<u64>(), 1));
        });
    let first = totals
        .map(|((order, day, priority), revenue)| ((), (Reverse(revenue), day, order, priority)))
        .reduce(|_all, rows, first| {
            let taken = rows.iter().take(Q3_ROWS as usize);
            first.extend(taken.map(|(row, times)| (**row, *times)));
        })
        .map(|(_all, row)| row);
    watch(first, checks, |&(Reverse(revenue), _, order, _)| {
        Facts::new(false, revenue, (order, revenue as u32))
    })
}
