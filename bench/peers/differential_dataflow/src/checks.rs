//! What came out: sums over the accumulated output by which a run is believed.
//!
//! Each output row contributes to `n`, `special`, `sum` and `hash`; all four are linear in the
//! differences, so they are kept up as differences arrive, in a few nanoseconds each and without
//! memory. All arithmetic is modulo 2⁶⁴, so that partial sums may wrap and the total is right.

/// What one row contributes.
pub struct Facts {
    pub special: bool,
    pub sum: u64,
    pub hash: u64,
}

impl Facts {
    /// A row with the two numbers `a` and `b` for its hash.
    pub fn new(special: bool, sum: u64, (a, b): (u32, u32)) -> Self {
        Facts {
            special,
            sum,
            hash: mix(a, b),
        }
    }
}

/// The finalizer of splitmix64 on `a` and `b` put side by side.
fn mix(a: u32, b: u32) -> u64 {
    let mut x = u64::from(a) << 32 | u64::from(b);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d049bb133111eb);
    x ^ (x >> 31)
}

/// Sums over rows, each times its difference.
#[derive(Clone, Copy, Default)]
pub struct Check {
    n: i64,
    special: i64,
    sum: i64,
    hash: u64,
}

impl Check {
    pub fn add(&mut self, facts: &Facts, diff: i64) {
        self.n = self.n.wrapping_add(diff);
        self.special = self
            .special
            .wrapping_add(if facts.special { diff } else { 0 });
        self.sum = self.sum.wrapping_add(diff.wrapping_mul(facts.sum as i64));
        self.hash = self
            .hash
            .wrapping_add((diff as u64).wrapping_mul(facts.hash));
    }

    /// The check of two workers' outputs together.
    pub fn merge(&mut self, other: &Check) {
        self.n = self.n.wrapping_add(other.n);
        self.special = self.special.wrapping_add(other.special);
        self.sum = self.sum.wrapping_add(other.sum);
        self.hash = self.hash.wrapping_add(other.hash);
    }

    /// As JSON; `special` is null for a workload that states none.
    pub fn to_json(self, has_special: bool) -> String {
        let special = if has_special {
            self.special.to_string()
        } else {
            "null".to_owned()
        };
        format!(
            r#"{{"n":{},"special":{special},"sum":{},"hash":"{:016x}"}}"#,
            self.n, self.sum, self.hash
        )
    }
}

/// The checks of one worker.
#[derive(Clone, Copy, Default)]
pub struct Checks {
    /// Over the output of epoch 0.
    pub load: Check,
    /// Over the output of all epochs.
    pub changes: Check,
}
