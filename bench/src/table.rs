//! Markdown tables that are also fit to be read as they are.

use std::fmt;

/// A table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// With these columns. One that has nothing but numbers in it is set to the right.
    #[must_use]
    pub(crate) fn new(head: &[&str]) -> Self {
        Self {
            head: head.iter().map(|&name| name.to_owned()).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, row: impl Into<Vec<String>>) {
        self.rows.push(row.into());
    }

    /// Whether it has no rows.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |column: usize| {
            let lines = self.rows.iter().chain([&self.head]);
            let cells = lines.filter_map(|line| line.get(column));
            cells
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
                .max(3)
        };
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let numeric = |column: usize| {
            let mut cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.all(|cell| {
                cell.starts_with(|first: char| first.is_ascii_digit() || "-–".contains(first))
            })
        };
        let mut line = |cells: &[String]| {
            for (column, (cell, width)) in cells.iter().zip(&widths).enumerate() {
                match numeric(column) {
                    true => write!(f, "| {cell:>width$} ")?,
                    false => write!(f, "| {cell:<width$} ")?,
                }
            }
            writeln!(f, "|")
        };
        line(&self.head)?;
        let rule = |(column, width): (usize, &usize)| match numeric(column) {
            true => format!("{}:", "-".repeat(width - 1)),
            false => "-".repeat(*width),
        };
        let rules: Vec<String> = widths.iter().enumerate().map(rule).collect();
        line(&rules)?;
        self.rows.iter().try_for_each(|row| line(row))
    }
}

/// A number with as many digits as it deserves, or a dash.
#[must_use]
pub(crate) fn number(value: Option<f64>) -> String {
    match value {
        None => "–".to_owned(),
        Some(value) if value.abs() >= 100.0 => grouped(value),
        Some(value) if value.abs() >= 10.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.2}"),
    }
}

/// A whole number with commas between the thousands.
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", digits.as_str()),
    };
    let mut text = sign.to_owned();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_they_deserve() {
        let texts = [0.123, 12.34, 123.4, 1234.0, -1_234_567.0].map(|value| number(Some(value)));
        assert_eq!(texts, ["0.12", "12.3", "123", "1,234", "-1,234,567"]);
        assert_eq!(number(None), "–");
    }

    #[test]
    fn columns_are_as_wide_as_their_widest() {
        let mut table = Table::new(&["server", "µs"]);
        table.row(["a2ad".to_owned(), "12.5".to_owned()]);
        let text = "| server |   µs |\n| ------ | ---: |\n| a2ad   | 12.5 |\n";
        assert_eq!(table.to_string(), text);
    }
}
