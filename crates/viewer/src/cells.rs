//! The edges of the columns or cells that the broad phase divides the space into, as lines.

use super::lines::{Line, edges, line};
use glam::Vec3;
use radsweep::Aabb;
use radsweep::internals::Subdivision;

const CUT: [f32; 4] = [0.55, 0.0, 0.33, 0.75];

/// Max planes per axis that are drawn: more would be as dense as pixels.
const MAX_PLANES: f32 = 256.0;

/// Adds the edges of a box, and those of each plane that cuts it.
pub(super) fn cuts(subdivision: &Subdivision, part: [Vec3; 2], lines: &mut Vec<Line>) {
    edges(
        &Aabb::new(part[0].to_array(), part[1].to_array()),
        CUT,
        1.0,
        lines,
    );
    match subdivision {
        Subdivision::Columns { axes, cuts } => {
            for (&axis, cuts) in axes.iter().zip(cuts) {
                planes(axis, cuts.iter().copied(), part, lines);
            }
        }
        Subdivision::Cells { origin, size } => {
            for axis in 0..3 {
                let number = |at: f32| (at - origin[axis]) / size[axis];
                let first = number(part[0][axis]).ceil();
                let count = number(part[1][axis]).floor() - first + 1.0;
                if count <= MAX_PLANES {
                    let all = (0..count as u32).map(|k| first + k as f32);
                    let all = all.map(|number| origin[axis] + number * size[axis]);
                    planes(axis, all, part, lines);
                }
            }
        }
        _ => {}
    }
}

/// Adds the edges of the planes across an axis that cut the box.
fn planes(
    axis: usize,
    at: impl Iterator<Item = f32>,
    [low, high]: [Vec3; 2],
    lines: &mut Vec<Line>,
) {
    let (across, u, v) = (
        Vec3::AXES[axis],
        Vec3::AXES[(axis + 1) % 3],
        Vec3::AXES[(axis + 2) % 3],
    );
    for at in at.filter(|&at| low[axis] < at && at < high[axis]) {
        let corner = |on_u: Vec3, on_v: Vec3| across * at + u * on_u + v * on_v;
        let corners = [
            corner(low, low),
            corner(high, low),
            corner(high, high),
            corner(low, high),
        ];
        let around = (0..4).map(|i| line(corners[i], corners[(i + 1) % 4], CUT, 1.0));
        lines.extend(around);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PART: [Vec3; 2] = [Vec3::ZERO, Vec3::splat(10.0)];

    fn lines(subdivision: &Subdivision) -> Vec<Line> {
        let mut lines = Vec::new();
        cuts(subdivision, PART, &mut lines);
        let inside = |at: Vec3| at.cmpge(PART[0]).all() && at.cmple(PART[1]).all();
        assert!(
            lines
                .iter()
                .all(|line| inside(line.from) && inside(line.to))
        );
        lines.split_off(12) // without the edges of the box itself
    }

    #[test]
    fn every_cut_is_a_rectangle_along_the_sweep_axis() {
        let columns = Subdivision::Columns {
            axes: [2, 0],
            cuts: [vec![-1.0, 4.0, 11.0], vec![2.0, 3.0]],
        };
        let lines = lines(&columns);
        assert_eq!(lines.len(), 3 * 4);
        assert!(lines[..4].iter().all(|l| l.from.z == 4.0 && l.to.z == 4.0));
        assert!(lines[4..8].iter().all(|l| l.from.x == 2.0 && l.to.x == 2.0));
        let length: f32 = lines[..4].iter().map(|l| l.from.distance(l.to)).sum();
        assert_eq!(length, 40.0);
    }

    #[test]
    fn cells_have_planes_on_every_axis_up_to_the_limit() {
        let cells = |size| Subdivision::Cells {
            origin: [1.0, 100.0, -100.0],
            size: [5.0, size, 4.0],
        };
        // x: 1 and 6; y: 5 (0 and 10 are edges of the box); z: 0 is an edge, 4 and 8.
        assert_eq!(lines(&cells(5.0)).len(), (2 + 1 + 2) * 4);
        assert_eq!(lines(&cells(0.01)).len(), (2 + 2) * 4);
    }
}
