//! The model of a chair: nine boxes that form one rigid body of wood.

use glam::{Mat3, Vec3};

/// Density of beech in kg per cubic metre.
const DENSITY: f32 = 700.0;

/// One box of a chair, aligned with the chair's axes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    /// Centre, from the chair's centre of mass, in metres.
    pub center: Vec3,
    pub half: Vec3,
}

impl Part {
    fn mass(&self) -> f32 {
        8.0 * self.half.element_product() * DENSITY
    }
}

/// A chair's boxes about its centre of mass, with its mass (kg) and its inertia about that point
/// (kg m²).
#[derive(Debug, Clone)]
pub(super) struct Model {
    pub parts: Vec<Part>,
    /// The centre of mass, from the middle of the floor between the feet.
    pub center: Vec3,
    pub mass: f32,
    pub inertia: Mat3,
    /// Radius of the ball around the centre of mass that contains the chair.
    pub radius: f32,
}

/// Builds a dining chair 95 cm high: seat, four legs, two back posts and two rails. y points up, z
/// to the front.
pub(super) fn model() -> Model {
    let part = |x: f32, y: f32, z: f32, width: f32, height: f32, depth: f32| Part {
        center: Vec3::new(x, y, z),
        half: Vec3::new(width, height, depth) / 2.0,
    };
    let mut parts = vec![
        part(0.0, 0.43, 0.0, 0.44, 0.04, 0.44),   // seat
        part(0.0, 0.88, -0.20, 0.36, 0.10, 0.03), // top rail
        part(0.0, 0.66, -0.20, 0.36, 0.06, 0.03), // lower rail
    ];
    for x in [-0.20, 0.20] {
        parts.push(part(x, 0.70, -0.20, 0.04, 0.50, 0.04)); // back post
        for z in [-0.20, 0.20] {
            parts.push(part(x, 0.205, z, 0.04, 0.41, 0.04)); // leg
        }
    }
    let mass: f32 = parts.iter().map(Part::mass).sum();
    let center = parts
        .iter()
        .map(|part| part.center * part.mass())
        .sum::<Vec3>()
        / mass;
    for part in &mut parts {
        part.center -= center;
    }
    let inertia = parts
        .iter()
        .map(inertia_of)
        .fold(Mat3::ZERO, |sum, inertia| sum + inertia);
    let reach = |part: &Part| (part.center.abs() + part.half).length();
    let radius = parts.iter().map(reach).fold(0.0, f32::max);
    Model {
        parts,
        center,
        mass,
        inertia,
        radius,
    }
}

/// Returns the inertia of a part about the chair's centre of mass: the box's own and the
/// parallel-axis term.
fn inertia_of(part: &Part) -> Mat3 {
    let squares = part.half * part.half;
    let own = (Vec3::splat(squares.element_sum()) - squares) / 3.0;
    let arm = part.center;
    let outer = Mat3::from_cols(arm * arm.x, arm * arm.y, arm * arm.z);
    (Mat3::from_diagonal(own + arm.length_squared()) - outer) * part.mass()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_balanced_and_symmetric_and_has_the_weight_of_a_chair() {
        let chair = model();
        assert_eq!(chair.parts.len(), 9);
        assert!((6.0..14.0).contains(&chair.mass), "{} kg", chair.mass);
        let moment: Vec3 = chair
            .parts
            .iter()
            .map(|part| part.center * part.mass())
            .sum();
        assert!(moment.length() < 1e-5, "{moment}");
        // The model is symmetric about x = 0, so the x axis is a principal one.
        let inertia = chair.inertia;
        assert!(
            inertia.x_axis.y.abs() < 1e-6 && inertia.x_axis.z.abs() < 1e-6,
            "{inertia}"
        );
        assert!(inertia.determinant() > 0.0);
        assert_eq!(inertia, inertia.transpose());
        assert!((0.5..0.8).contains(&chair.radius), "{}", chair.radius);
    }

    #[test]
    fn the_inertia_of_a_box_cut_in_two_is_that_of_the_whole() {
        let half = Vec3::new(0.3, 0.2, 0.1);
        let whole = inertia_of(&Part {
            center: Vec3::ZERO,
            half,
        });
        let cut = |x| {
            inertia_of(&Part {
                center: Vec3::new(x, 0.0, 0.0),
                half: half * Vec3::new(0.5, 1.0, 1.0),
            })
        };
        let both = cut(-0.15) + cut(0.15);
        assert!(both.abs_diff_eq(whole, 1e-5), "{both} {whole}");
    }

    #[test]
    fn parts_meet_without_overlapping() {
        // The masses of the parts are added, so no wood may be counted twice.
        let parts = model().parts;
        for (i, a) in parts.iter().enumerate() {
            let overlaps = |b: &&Part| {
                let slack = a.half + b.half - (a.center - b.center).abs();
                slack.min_element() > 1e-4
            };
            assert_eq!(
                parts[i + 1..].iter().find(overlaps).map(|part| part.center),
                None,
                "part {i}"
            );
        }
    }
}
