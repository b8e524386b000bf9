//! The choice of what is drawn, and the lines over the scene.

use super::cells::cuts;
use super::lines::{Line, edges, line};
use super::snapshot::{Extent, Picked, Snapshot, Watch};
use glam::Vec3;
use radsweep::Aabb;
use radsweep_scenes::Kind;

/// What the colour of a body shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Colour {
    /// The body itself.
    #[default]
    Body,
    /// The number of its pairs.
    Overlaps,
    /// Whether it sleeps.
    Asleep,
    /// Its speed.
    Speed,
}

impl Colour {
    /// All colourings, in the order of the list.
    pub const ALL: [Self; 4] = [Self::Body, Self::Overlaps, Self::Asleep, Self::Speed];

    /// Returns the name on the command line and in the panels.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Body => "body",
            Self::Overlaps => "overlaps",
            Self::Asleep => "sleeping",
            Self::Speed => "speed",
        }
    }
}

impl std::str::FromStr for Colour {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|colour| colour.name() == name);
        let known = Self::ALL.map(Self::name).join(", ");
        found.ok_or_else(|| format!("unknown colour `{name}`: known are {known}"))
    }
}

/// The choice of what is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Look {
    pub colour: Colour,
    /// Whether to draw the boxes that the broad phase sees.
    pub wireframes: bool,
    /// Whether to draw the columns or cells.
    pub cells: bool,
    /// Whether to draw the sweep axis.
    pub axis: bool,
    /// Whether to draw lines from the picked body to those it has pairs with.
    pub pairs: bool,
    /// Whether to draw a line for each two bodies with pairs.
    pub links: bool,
    /// How far through the scene the bodies before a plane across the line of sight are left out,
    /// from 0 to 1.
    pub cut: f32,
    /// Whether bodies cast shadows under a sky.
    pub shadows: bool,
    /// Whether to draw a black background instead of a sky.
    pub space: bool,
}

impl Look {
    /// Returns the default for a scene.
    pub fn of(kind: Kind) -> Self {
        Self {
            colour: match kind {
                Kind::FallingChairs | Kind::Stack => Colour::Body,
                Kind::Particles | Kind::Galaxy => Colour::Speed,
                _ => Colour::Overlaps,
            },
            space: kind == Kind::Galaxy,
            pairs: true,
            shadows: true,
            ..Self::default()
        }
    }

    /// Returns what the simulation must provide for it.
    pub fn watch(&self, body: Option<u32>) -> Watch {
        Watch {
            overlaps: self.colour == Colour::Overlaps,
            boxes: self.wireframes,
            cells: self.cells,
            links: self.links,
            body,
            ..Watch::default()
        }
    }

    /// Adds the lines to draw over a frame.
    pub fn lines(&self, snapshot: &Snapshot, lines: &mut Vec<Line>) {
        lines.clear();
        if self.cells
            && let (Some(subdivision), Some(extent)) = (&snapshot.subdivision, snapshot.extent)
        {
            cuts(subdivision, most_bodies(&extent), lines);
        }
        if self.axis {
            sweep_axis(snapshot, lines);
        }
        if self.links {
            let links = snapshot.links.iter().map(|link| {
                let colour = if link.resting { RESTING } else { LINK };
                line(link.ends[0], link.ends[1], colour, 1.0)
            });
            lines.extend(links);
        }
        if let Some(picked) = &snapshot.picked {
            picked_boxes(picked, lines);
            if self.pairs {
                let links = picked.pairs.iter().map(|pair| {
                    let [from, to] = pair.aabbs.map(|aabb| middle(&aabb));
                    let colour = if pair.resting { RESTING } else { LINK };
                    line(from, to, colour, 2.0)
                });
                lines.extend(links);
            }
        }
    }
}

const AXIS: [f32; 4] = [0.95, 0.12, 0.10, 0.95];
const MARKED: [f32; 4] = [1.0, 0.62, 0.02, 1.0];
const PARTNER: [f32; 4] = [0.0, 0.45, 0.85, 0.9];
/// The colour of resting pairs: violet.
pub(super) const RESTING: [f32; 4] = [0.42, 0.13, 0.78, 0.95];
/// The colour of pairs.
pub(super) const LINK: [f32; 4] = [0.9, 0.95, 1.0, 0.85];

fn middle(aabb: &Aabb) -> Vec3 {
    (Vec3::from(aabb.min) + Vec3::from(aabb.max)) / 2.0
}

/// Returns the corners of a box around most bodies, without those far away.
fn most_bodies(extent: &Extent) -> [Vec3; 2] {
    let [low, high] = extent.corners;
    let reach = Vec3::splat(extent.radius);
    [
        low.max(extent.center - reach),
        high.min(extent.center + reach),
    ]
}

/// Adds an arrow along the bodies' lower edge in the direction of the sweep, with the intervals of
/// the picked body's boxes.
fn sweep_axis(snapshot: &Snapshot, lines: &mut Vec<Line>) {
    let Some(extent) = snapshot.extent else {
        return;
    };
    let axis = Vec3::AXES[snapshot.axis.min(2)];
    let [low, high] = most_bodies(&extent);
    // Just outside of the bodies.
    let margin = extent.radius * 0.06;
    let base = low - (Vec3::ONE - axis) * margin;
    let at = |value: f32| base * (Vec3::ONE - axis) + axis * value;
    let (from, to) = (at(low.dot(axis) - margin), at(high.dot(axis) + margin));
    lines.push(line(from, to, AXIS, 4.0));
    let head = extent.radius * 0.08;
    let (u, v) = axis.any_orthonormal_pair();
    for side in [u, -u, v, -v] {
        lines.push(line(to, to - axis * head + side * head * 0.4, AXIS, 4.0));
    }
    for own in snapshot.picked.iter().flat_map(|picked| &picked.boxes) {
        let (low, high) = (Vec3::from(own.aabb.min), Vec3::from(own.aabb.max));
        let (begin, end) = (at(low.dot(axis)), at(high.dot(axis)));
        lines.push(line(begin, end, MARKED, 7.0));
        lines.push(line(begin, low, MARKED, 1.0));
        let across = high * axis + low * (Vec3::ONE - axis);
        lines.push(line(end, across, MARKED, 1.0));
    }
}

fn picked_boxes(picked: &Picked, lines: &mut Vec<Line>) {
    for pair in &picked.pairs {
        let colour = if pair.resting { RESTING } else { PARTNER };
        edges(&pair.aabbs[1], colour, 1.5, lines);
    }
    for own in &picked.boxes {
        edges(&own.aabb, MARKED, 2.5, lines);
    }
}

#[cfg(test)]
mod tests {
    use super::super::snapshot::{Link, PickedBox, PickedPair};
    use super::*;

    const UNIT: Aabb = Aabb::new([0.0; 3], [1.0; 3]);

    fn snapshot() -> Snapshot {
        let other = Aabb::new([0.5; 3], [1.5; 3]);
        Snapshot {
            axis: 1,
            extent: Some(Extent {
                center: Vec3::splat(0.5),
                radius: 2.0,
                corners: [Vec3::ZERO, Vec3::ONE],
                speed: 1.0,
                overlaps: 1.0,
            }),
            picked: Some(Picked {
                body: 0,
                boxes: vec![PickedBox {
                    index: 0,
                    aabb: UNIT,
                    filter: None,
                }],
                pairs: vec![PickedPair {
                    own: 0,
                    other: 1,
                    other_body: 1,
                    aabbs: [UNIT, other],
                    resting: false,
                }],
            }),
            ..Snapshot::default()
        }
    }

    #[test]
    fn a_picked_body_has_its_box_its_partners_and_a_line_for_each_pair() {
        let mut lines = Vec::new();
        let mut look = Look::of(Kind::Uniform);
        look.lines(&snapshot(), &mut lines);
        assert_eq!(lines.len(), 12 + 12 + 1);
        let length = |line: &Line| line.from.distance(line.to);
        assert!(
            lines[..24]
                .iter()
                .all(|line| (length(line) - 1.0).abs() < 1e-6)
        );
        assert_eq!(lines[24].from, Vec3::splat(0.5));
        assert_eq!(lines[24].to, Vec3::ONE);
        look.pairs = false;
        look.lines(&snapshot(), &mut lines);
        assert_eq!(lines.len(), 24);
    }

    #[test]
    fn resting_pairs_have_a_colour_of_their_own() {
        let mut lines = Vec::new();
        let mut look = Look::of(Kind::FallingChairs);
        let mut snapshot = snapshot();
        snapshot.picked.as_mut().expect("picked").pairs[0].resting = true;
        look.lines(&snapshot, &mut lines);
        let count = |lines: &[Line]| lines.iter().filter(|l| l.colour == RESTING).count();
        assert_eq!((count(&lines), lines.len()), (12 + 1, 25));
        snapshot.picked = None;
        for resting in [false, true] {
            snapshot.links.push(Link {
                ends: [Vec3::ZERO, Vec3::ONE],
                resting,
            });
        }
        look.lines(&snapshot, &mut lines);
        assert!(lines.is_empty());
        look.links = true;
        look.lines(&snapshot, &mut lines);
        assert_eq!((count(&lines), lines.len()), (1, 2));
    }

    #[test]
    fn the_sweep_axis_spans_all_bodies_and_shows_the_interval() {
        let mut lines = Vec::new();
        let look = Look {
            axis: true,
            ..Look::default()
        };
        look.lines(&snapshot(), &mut lines);
        let arrow = lines[0];
        assert!(arrow.from.y < 0.0 && arrow.to.y > 1.0);
        assert_eq!((arrow.from.x, arrow.from.z), (arrow.to.x, arrow.to.z));
        let interval = lines.iter().find(|line| line.width == 7.0).expect("one");
        assert_eq!((interval.from.y, interval.to.y), (0.0, 1.0));
        look.lines(&Snapshot::default(), &mut lines);
        assert!(lines.is_empty());
    }

    #[test]
    fn an_infinite_box_has_no_edges() {
        let mut lines = Vec::new();
        edges(&Aabb::EMPTY, AXIS, 1.0, &mut lines);
        assert!(lines.is_empty());
    }

    #[test]
    fn only_what_is_drawn_is_requested() {
        let mut look = Look::of(Kind::FallingChairs);
        assert_eq!(look.watch(None), Watch::default());
        look.colour = Colour::Overlaps;
        look.wireframes = true;
        look.cells = true;
        look.links = true;
        let watch = look.watch(Some(3));
        assert!(
            watch.links && watch.overlaps && watch.boxes && watch.cells && watch.body == Some(3)
        );
    }
}
