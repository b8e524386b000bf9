//! Finds the first body that a ray hits, by the shapes that are drawn.

use super::camera::Ray;
use super::mesh::{radius, triangles};
use glam::{Quat, Vec3};
use radsweep_scenes::{Instance, Mesh, Picture, Shape};
use rayon::prelude::*;

/// A body, and its distance along the ray.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Hit {
    pub body: u32,
    pub distance: f32,
}

/// Returns the nearest of the visible bodies; of two at the same distance, that of the lower index.
/// O(bodies), on all threads.
pub(super) fn pick(
    picture: &Picture,
    chair: &Mesh,
    ray: Ray,
    visible: impl Fn(&Instance) -> bool + Sync,
) -> Option<Hit> {
    let visible = &visible;
    let reach = radius(chair);
    let meets = |shape, instance: &Instance| {
        let center = Vec3::from(instance.position);
        let scale = Vec3::from(instance.scale);
        let turn = Quat::from_array(instance.rotation).inverse();
        let local = Ray {
            origin: turn * (ray.origin - center),
            dir: turn * ray.dir,
        };
        match shape {
            Shape::Box => hit_box(local, scale),
            Shape::Sphere => hit_ball(local, scale.x),
            Shape::Chair => {
                hit_ball(local, reach)?;
                let hits = triangles(chair).filter_map(|t| hit_triangle(local, t));
                hits.min_by(f32::total_cmp)
            }
        }
    };
    let nearest = |shape| {
        let bodies = picture.of(shape).par_iter().filter(|body| visible(body));
        let hits = bodies.filter_map(move |instance| {
            let distance = meets(shape, instance)?;
            let body = instance.body;
            Some(Hit { body, distance })
        });
        hits.min_by(order)
    };
    let shapes = [Shape::Box, Shape::Chair, Shape::Sphere];
    shapes.into_iter().filter_map(nearest).min_by(order)
}

fn order(a: &Hit, b: &Hit) -> std::cmp::Ordering {
    let distance = a.distance.total_cmp(&b.distance);
    distance.then(a.body.cmp(&b.body))
}

/// Returns where a ray enters a box around the origin; `None` from inside, where the box cannot be
/// seen.
fn hit_box(ray: Ray, half: Vec3) -> Option<f32> {
    let inverse = ray.dir.recip();
    let (a, b) = (
        (-half - ray.origin) * inverse,
        (half - ray.origin) * inverse,
    );
    let near = a.min(b).max_element();
    let far = a.max(b).min_element();
    (near <= far && near > 0.0).then_some(near)
}

/// Returns where a ray enters a ball around the origin; 0 from inside.
fn hit_ball(ray: Ray, radius: f32) -> Option<f32> {
    let along = -ray.origin.dot(ray.dir);
    let beside = ray.origin + ray.dir * along;
    let inside = radius * radius - beside.length_squared();
    let far = along + inside.max(0.0).sqrt();
    (inside >= 0.0 && far > 0.0).then(|| (along - inside.sqrt()).max(0.0))
}

/// Returns where a ray hits a triangle from either side (Möller and Trumbore, "Fast, Minimum
/// Storage Ray-Triangle Intersection", 1997).
fn hit_triangle(ray: Ray, [a, b, c]: [Vec3; 3]) -> Option<f32> {
    let (ab, ac) = (b - a, c - a);
    let p = ray.dir.cross(ac);
    let scale = ab.dot(p).recip();
    let from = ray.origin - a;
    let u = from.dot(p) * scale;
    let q = from.cross(ab);
    let v = ray.dir.dot(q) * scale;
    let t = ac.dot(q) * scale;
    // A ray in the plane gives NaN or infinity, which fail these tests.
    (u >= 0.0 && v >= 0.0 && u + v <= 1.0 && t > 0.0).then_some(t)
}

#[cfg(test)]
mod tests {
    use super::*;
    use radsweep_scenes::chair_mesh;

    fn instance(body: u32, position: Vec3, scale: f32) -> Instance {
        Instance {
            position: position.into(),
            body,
            rotation: Quat::IDENTITY.into(),
            scale: [scale; 3],
            speed: 0.0,
            asleep: 0,
        }
    }

    fn along_x(y: f32, z: f32) -> Ray {
        Ray {
            origin: Vec3::new(-10.0, y, z),
            dir: Vec3::X,
        }
    }

    #[test]
    fn the_nearest_body_of_any_shape_is_picked() {
        let picture = Picture {
            boxes: vec![instance(0, Vec3::new(5.0, 0.0, 0.0), 1.0)],
            chairs: vec![instance(1, Vec3::new(8.0, 0.0, 0.0), 1.0)],
            spheres: vec![
                instance(3, Vec3::new(1.0, 0.0, 0.0), 0.5),
                instance(2, Vec3::new(1.0, 0.0, 0.0), 0.5),
            ],
        };
        let chair = chair_mesh();
        let body = |ray| pick(&picture, &chair, ray, |_| true).map(|hit| hit.body);
        let hit = pick(&picture, &chair, along_x(0.0, 0.0), |_| true).expect("a body");
        let other = pick(&picture, &chair, along_x(0.0, 0.0), |body| {
            body.scale[0] == 1.0
        });
        assert!(
            matches!(other, Some(Hit { body: 0 | 1, .. })),
            "the balls are cut off"
        );
        assert_eq!(hit.body, 2, "the lower index of the two");
        assert!((hit.distance - 10.5).abs() < 1e-5);
        assert_eq!(body(along_x(0.7, 0.0)), Some(0), "above the balls");
        assert_eq!(body(along_x(3.0, 0.0)), None);
        let back = Ray {
            origin: Vec3::new(20.0, 0.0, 0.0),
            dir: Vec3::NEG_X,
        };
        // At its centre of mass a ray hits the back of the chair's seat, or nothing.
        assert!(matches!(body(back), Some(0 | 1)));
        assert_eq!(pick(&Picture::default(), &chair, back, |_| true), None);
    }

    #[test]
    fn a_ray_hits_a_rotated_box() {
        let mut turned = instance(7, Vec3::ZERO, 1.0);
        turned.rotation = Quat::from_rotation_y(std::f32::consts::FRAC_PI_4).into();
        let picture = Picture {
            boxes: vec![turned],
            ..Picture::default()
        };
        let chair = chair_mesh();
        let hit = pick(&picture, &chair, along_x(0.0, 0.0), |_| true).expect("its edge");
        assert!((hit.distance - (10.0 - 2.0_f32.sqrt())).abs() < 1e-4);
        assert!(pick(&picture, &chair, along_x(0.0, 1.3), |_| true).is_some());
        assert!(pick(&picture, &chair, along_x(0.0, 1.5), |_| true).is_none());
    }

    #[test]
    fn a_ray_passes_between_the_legs_of_a_chair() {
        let picture = Picture {
            chairs: vec![instance(1, Vec3::ZERO, 1.0)],
            ..Picture::default()
        };
        let chair = chair_mesh();
        // At the height of the seat, from the side; then between the front and back legs.
        assert!(pick(&picture, &chair, along_x(-0.04, 0.05), |_| true).is_some());
        assert!(pick(&picture, &chair, along_x(-0.25, 0.05), |_| true).is_none());
    }

    #[test]
    fn a_ray_misses_boxes_behind_or_around_the_eye() {
        let inside = Ray {
            origin: Vec3::ZERO,
            dir: Vec3::X,
        };
        assert_eq!(hit_box(inside, Vec3::ONE), None);
        assert_eq!(hit_ball(inside, 1.0), Some(0.0));
        let behind = Ray {
            origin: Vec3::new(5.0, 0.0, 0.0),
            dir: Vec3::X,
        };
        assert_eq!(hit_box(behind, Vec3::ONE), None);
        assert_eq!(hit_ball(behind, 1.0), None);
    }
}
