//! Tables whose rows change epoch by epoch, as inputs of a dataflow.

use std::sync::Arc;

use differential_dataflow::Data;
use differential_dataflow::input::InputSession;

/// Rows of the load that are handed over between two steps of the worker.
const PART_ROWS: usize = 1 << 16;

/// An input of a dataflow, whatever its rows are.
pub trait Feed {
    /// Inserts this worker's share of part `part` of the first epoch and hands it over; whether
    /// there is another part.
    fn load(&mut self, part: usize, index: usize, peers: usize) -> bool;
    /// Applies change `k`: removes the oldest rows, inserts as many new ones.
    fn change(&mut self, k: usize);
    /// Moves on to `epoch`; without `flush` the dataflow does not learn of it yet.
    fn advance_to(&mut self, epoch: u64);
    /// Hands everything so far to the dataflow.
    fn flush(&mut self);
}

/// Rows of which the first `loaded` are there at first; change `k` removes the rows from
/// `k · step` and inserts those from `loaded + k · step`, `step` of each.
pub struct Table<D: Data> {
    rows: Arc<Vec<D>>,
    loaded: usize,
    step: usize,
    input: InputSession<u64, D, isize>,
}

impl<D: Data> Table<D> {
    pub fn boxed(
        rows: &Arc<Vec<D>>,
        loaded: usize,
        step: usize,
        input: InputSession<u64, D, isize>,
    ) -> Box<dyn Feed> {
        Box::new(Table {
            rows: Arc::clone(rows),
            loaded,
            step,
            input,
        })
    }
}

impl<D: Data> Feed for Table<D> {
    fn load(&mut self, part: usize, index: usize, peers: usize) -> bool {
        let end = self.loaded.min((part + 1) * PART_ROWS);
        for row in self.rows[part * PART_ROWS..end]
            .iter()
            .skip(index)
            .step_by(peers)
        {
            self.input.insert(row.clone());
        }
        self.flush();
        end < self.loaded
    }

    fn change(&mut self, k: usize) {
        let (old, new) = (k * self.step, self.loaded + k * self.step);
        for row in &self.rows[old..old + self.step] {
            self.input.remove(row.clone());
        }
        for row in &self.rows[new..new + self.step] {
            self.input.insert(row.clone());
        }
    }

    fn advance_to(&mut self, epoch: u64) {
        self.input.advance_to(epoch);
    }

    fn flush(&mut self) {
        self.input.flush();
    }
}

/// Rows 0 … `count` − 1 that are loaded and never change: all nodes, or the root.
pub struct Numbers {
    count: u32,
    input: Option<InputSession<u64, u32, isize>>,
}

impl Numbers {
    pub fn boxed(count: u32, input: InputSession<u64, u32, isize>) -> Box<dyn Feed> {
        Box::new(Numbers {
            count,
            input: Some(input),
        })
    }
}

impl Feed for Numbers {
    fn load(&mut self, _part: usize, index: usize, peers: usize) -> bool {
        // Taking the session closes the input: no later epoch has to be announced on it.
        if let Some(mut input) = self.input.take() {
            (0..self.count)
                .skip(index)
                .step_by(peers)
                .for_each(|number| input.insert(number));
        }
        false
    }

    fn change(&mut self, _k: usize) {}
    fn advance_to(&mut self, _epoch: u64) {}
    fn flush(&mut self) {}
}
