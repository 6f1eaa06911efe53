//! How the checks of a run are kept up while its output arrives.

use std::cell::RefCell;
use std::rc::Rc;

use differential_dataflow::{Data, VecCollection};
use timely::dataflow::operators::probe::Handle;

use crate::checks::{Checks, Facts};

/// Adds what `output` emits to `checks`; the probe says which epochs are complete.
pub fn watch<D: Data>(
    output: VecCollection<'_, u64, D, isize>,
    checks: &Rc<RefCell<Checks>>,
    facts: impl Fn(&D) -> Facts + 'static,
) -> Handle<u64> {
    let checks = Rc::clone(checks);
    let watched = output.inspect_batch(move |_, updates| {
        let mut checks = checks.borrow_mut();
        for (row, epoch, diff) in updates {
            let facts = facts(row);
            checks.changes.add(&facts, *diff as i64);
            if *epoch == 0 {
                checks.load.add(&facts, *diff as i64);
            }
        }
    });
    watched.probe().0
}
