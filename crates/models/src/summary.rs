//! Shapes and parameters of a network, layer by layer, without building it.

use std::fmt;

use serde::Serialize;

/// One layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LayerRow {
    /// Its name: `block 1 conv`.
    pub layer: String,
    /// The output's shape without the batch dimension: `[channels, height, width]` or `[features]`.
    pub output: Vec<usize>,
    /// Trainable parameters.
    pub parameters: u64,
}

/// All layers, input to output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// The layers.
    pub rows: Vec<LayerRow>,
}

impl Summary {
    /// Trainable parameters of the whole network; at most `u64::MAX`.
    #[must_use]
    pub fn parameters(&self) -> u64 {
        self.rows.iter().fold(0, |total, row| total.saturating_add(row.parameters))
    }

    /// Elements of all layers' outputs for one sample; at most `u64::MAX`.
    #[must_use]
    pub fn outputs_per_sample(&self) -> u64 {
        let elements = |row: &LayerRow| row.output.iter().fold(1, |size: u64, n| size.saturating_mul(*n as u64));
        self.rows.iter().fold(0, |total, row| total.saturating_add(elements(row)))
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<16} {:>18} {:>16}", "layer", "output", "parameters")?;
        for row in &self.rows {
            let shape = row.output.iter().map(ToString::to_string).collect::<Vec<_>>().join(" x ");
            writeln!(f, "{:<16} {:>18} {:>16}", row.layer, shape, grouped(row.parameters))?;
        }
        write!(f, "{:<16} {:>18} {:>16}", "total", "", grouped(self.parameters()))
    }
}

/// Thousands separated by commas.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
