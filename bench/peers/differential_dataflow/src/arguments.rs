//! The command line: which workload, how large, how many workers.

use crate::drawn::{LINES_OF_ORDER, customers_of};

/// Updates by which an order and its lines go and others come.
const Q3_UPDATES: usize = 2 * (1 + LINES_OF_ORDER);

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    WccPlain,
    WccPrioritised,
    Bfs,
    SccPlain,
    SccPrioritised,
    Pagerank,
    CountPlain,
    CountTotal,
    Sum,
    Join,
    Top,
    Q3,
}

/// One run.
pub struct Job {
    /// The workload as it is printed: words and numbers.
    pub name: String,
    pub kind: Kind,
    /// Nodes or keys are drawn below this; of q3 customers.
    pub limit: u64,
    /// Rows of the first epoch; of q3 orders.
    pub loaded: usize,
    pub epochs: usize,
    /// Rows removed, and rows inserted, in each later epoch.
    pub step: usize,
    pub batch: usize,
    pub workers: usize,
}

impl Job {
    pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Job, String> {
        let (mut words, mut numbers) = (Vec::new(), Vec::new());
        let (mut batch, mut workers) = (1, 1);
        let mut arguments = arguments;
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--batch" => batch = positive(&argument, arguments.next())?,
                "-w" => workers = positive(&argument, arguments.next())?,
                text if text.starts_with(|c: char| c.is_ascii_digit()) => {
                    numbers.push(number(text)?)
                }
                _ => words.push(argument),
            }
        }
        let kind = kind(&words.join(" "))?;
        let printed = words
            .into_iter()
            .chain(numbers.iter().map(usize::to_string))
            .collect::<Vec<_>>();
        let (limit, loaded, epochs, step) = sizes(kind, &numbers)?;
        Ok(Job {
            name: printed.join(" "),
            kind,
            limit,
            loaded,
            epochs,
            step,
            batch,
            workers,
        })
    }

    /// Whether the check of this workload counts special rows.
    pub fn has_special(&self) -> bool {
        !matches!(
            self.kind,
            Kind::SccPlain
                | Kind::SccPrioritised
                | Kind::Pagerank
                | Kind::Sum
                | Kind::Top
                | Kind::Q3
        )
    }
}

fn kind(words: &str) -> Result<Kind, String> {
    Ok(match words {
        "wcc plain" => Kind::WccPlain,
        "wcc prioritised" => Kind::WccPrioritised,
        "bfs" => Kind::Bfs,
        "scc plain" | "scc written" => Kind::SccPlain,
        "scc prioritised" => Kind::SccPrioritised,
        "pagerank" => Kind::Pagerank,
        "count plain" => Kind::CountPlain,
        "count total" => Kind::CountTotal,
        "sum" => Kind::Sum,
        "join" => Kind::Join,
        "top" => Kind::Top,
        "q3" => Kind::Q3,
        _ => return Err(format!("no workload {words:?}")),
    })
}

/// Limit of the draws, rows loaded, epochs, and rows replaced in each epoch.
fn sizes(kind: Kind, numbers: &[usize]) -> Result<(u64, usize, usize, usize), String> {
    let is_graph = !matches!(
        kind,
        Kind::CountPlain | Kind::CountTotal | Kind::Sum | Kind::Join | Kind::Top | Kind::Q3
    );
    let (limit, loaded, epochs, step) = match *numbers {
        [orders, epochs, updates] if kind == Kind::Q3 && updates % Q3_UPDATES == 0 => {
            (customers_of(orders), orders, epochs, updates / Q3_UPDATES)
        }
        _ if kind == Kind::Q3 => {
            return Err("expected three numbers, the last one a multiple of 10: N K U".to_owned());
        }
        [nodes, edges, changes] if is_graph => (nodes, edges, changes, 1),
        [keys, rows, epochs, updates] if !is_graph && updates % 2 == 0 => {
            (keys, rows, epochs, updates / 2)
        }
        _ if is_graph => return Err("expected three numbers: N E K".to_owned()),
        _ => return Err("expected four numbers, the last one even: M R K U".to_owned()),
    };
    // Draws have 31 bits, and row numbers must fit the 32 bits that a hash has for each.
    let all = epochs
        .checked_mul(step)
        .and_then(|rows| rows.checked_add(loaded))
        .and_then(|rows| rows.checked_mul(if kind == Kind::Q3 { LINES_OF_ORDER } else { 1 }));
    if limit == 0 || limit > 1 << 31 || all.is_none_or(|rows| rows > 1 << 31) {
        return Err("nodes or keys must be 1 … 2³¹, and rows at most 2³¹".to_owned());
    }
    Ok((limit as u64, loaded, epochs, step))
}

fn positive(option: &str, text: Option<String>) -> Result<usize, String> {
    match number(&text.unwrap_or_default())? {
        0 => Err(format!("{option} must be at least 1")),
        value => Ok(value),
    }
}

fn number(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("not a number: {text:?}"))
}
