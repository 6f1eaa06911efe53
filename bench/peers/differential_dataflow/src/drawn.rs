//! What goes in: the generator of the workloads.
//!
//! One 64-bit state, `state ← state·6364136223846793005 + 1442695040888963407 (mod 2⁶⁴)`; a draw
//! below m advances it and takes `(state >> 33) mod m`. `bench/workloads.py` is the same in Python.

/// Two columns of a row: source and target, key and value, or key and row number.
pub type Pair = (u32, u32);

/// An order: its number, customer, day and priority.
pub type Order = (u32, u32, u32, u32);

/// A line of an order: the order, the day on which it was shipped, and its revenue.
pub type Line = (u32, u32, u32);

/// Values of `sum` and `top`, and prices of `q3`, are drawn below this.
const VALUES: u64 = 1 << 20;

/// What is in the tables of `q3`, as in `bench/workloads.py`.
const SEGMENTS: u64 = 5;
const DAYS: u64 = 2_406;
const SHIPPED_DAYS: u64 = 121;
const DISCOUNTS: u64 = 11;
const ORDERS_OF_CUSTOMER: usize = 10;
pub const LINES_OF_ORDER: usize = 4;
/// The day that the filters of `q3` name.
pub const BOOKED_DAY: u32 = 1_168;

/// The generator.
struct Draws {
    state: u64,
}

impl Draws {
    fn new(seed: u64) -> Self {
        Draws { state: seed }
    }

    fn below(&mut self, limit: u64) -> u32 {
        self.state = self
            .state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        u32::try_from((self.state >> 33) % limit).expect("31 bits fit")
    }
}

/// `count` directed edges between nodes below `nodes`: source, then target.
pub fn edges(nodes: u64, count: usize) -> Vec<Pair> {
    let mut draws = Draws::new(1);
    (0..count)
        .map(|_| (draws.below(nodes), draws.below(nodes)))
        .collect()
}

/// `count` keys below `keys`.
pub fn keys(keys: u64, count: usize) -> Vec<u32> {
    let mut draws = Draws::new(1);
    (0..count).map(|_| draws.below(keys)).collect()
}

/// `count` keys below `keys`, each followed by a value.
pub fn keyed_values(keys: u64, count: usize) -> Vec<Pair> {
    let mut draws = Draws::new(1);
    (0..count)
        .map(|_| (draws.below(keys), draws.below(VALUES)))
        .collect()
}

/// `count` keys below `keys`, each with the number of its row.
pub fn numbered_keys(keys: u64, count: usize, seed: u64) -> Vec<Pair> {
    let mut draws = Draws::new(seed);
    (0u32..)
        .take(count)
        .map(|row| (draws.below(keys), row))
        .collect()
}

/// How many customers there are where `orders` orders are loaded.
pub fn customers_of(orders: usize) -> usize {
    (orders / ORDERS_OF_CUSTOMER).max(1)
}

/// `count` customers, each with its segment.
pub fn customers(count: u64) -> Vec<Pair> {
    let mut draws = Draws::new(1);
    (0..count as u32)
        .map(|number| (number, draws.below(SEGMENTS)))
        .collect()
}

/// `count` orders of customers below `customers`.
pub fn orders(customers: u64, count: usize) -> Vec<Order> {
    let mut draws = Draws::new(2);
    (0u32..)
        .take(count)
        .map(|number| (number, draws.below(customers), draws.below(DAYS), 0))
        .collect()
}

/// The lines of `orders`.
pub fn lines(orders: &[Order]) -> Vec<Line> {
    let mut draws = Draws::new(3);
    orders
        .iter()
        .flat_map(|&order| std::iter::repeat_n(order, LINES_OF_ORDER))
        .map(|(number, _, day, _)| {
            let shipped = day + draws.below(SHIPPED_DAYS) + 1;
            let price = draws.below(VALUES);
            (number, shipped, price * (100 - draws.below(DISCOUNTS)))
        })
        .collect()
}
