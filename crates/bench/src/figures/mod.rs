//! The figures and tables of the five papers, as lists of measurements.
//!
//! `docs/papers.md` compares the results with the papers' claims.

mod cederman;
mod cell;
mod dehne;
mod ha;
mod satish;

pub(crate) use cell::{Cell, Figure, Sizes, Unit};

/// Returns all figures, paper by paper.
pub(crate) fn all() -> impl Iterator<Item = &'static Figure> {
    [
        ha::FIGURES,
        satish::FIGURES,
        cederman::FIGURES,
        dehne::FIGURES,
    ]
    .into_iter()
    .flatten()
}

/// Returns the names that select figures: those of the papers, then of each figure.
pub(crate) fn names() -> Vec<&'static str> {
    let papers = ["ha", "satish", "cederman", "dehne"].into_iter();
    papers.chain(all().map(|figure| figure.name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_has_cells_at_distinct_positions() {
        for sizes in [Sizes::Small, Sizes::Full] {
            for figure in all() {
                let cells = (figure.cells)(sizes);
                assert_eq!(
                    cells.is_empty(),
                    figure.unit.is_of_updates(),
                    "{}",
                    figure.name
                );
                let mut positions: Vec<_> =
                    cells.iter().map(|cell| (&cell.row, &cell.column)).collect();
                positions.sort();
                positions.dedup();
                assert_eq!(positions.len(), cells.len(), "{}", figure.name);
            }
        }
        let mut names: Vec<_> = all().map(|figure| figure.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all().count());
    }

    #[test]
    fn the_page_shows_every_figure_once() {
        let page = include_str!("../../../../docs/papers.md");
        for figure in all() {
            let marker = format!("<!-- today: {} -->\n", figure.name);
            assert_eq!(page.matches(&marker).count(), 1, "{}", figure.name);
        }
        assert_eq!(page.matches("<!-- today: ").count(), all().count() + 1); // and the device
    }

    #[test]
    fn small_figures_are_small() {
        let largest = all().flat_map(|figure| (figure.cells)(Sizes::Small));
        assert!(largest.map(|cell| cell.case.n).max() <= Some(1 << 20));
    }
}
