//! What the user does to the bodies of a scene: throws a ball, explodes, adds bodies, drags one.

use super::camera::Ray;
use super::simulation::Command;
use super::state::{Aim, Dragged, Viewer};
use glam::{Quat, Vec3};
use radsweep_scenes::{Action, Kind, Refusal};

/// The sizes of the actions in a scene, in its coordinates and per second.
struct Sizes {
    /// Radius and speed of a ball.
    ball: [f32; 2],
    /// The acceleration by gravity, which a throw allows for.
    gravity: f32,
    /// Radius of an explosion, and the speed that it gives.
    blast: [f32; 2],
    /// Number of bodies that are added at once.
    added: usize,
}

impl Sizes {
    const fn of(kind: Kind) -> Self {
        match kind {
            Kind::FallingChairs => Self {
                ball: [0.4, 25.0],
                gravity: 9.81,
                blast: [4.0, 12.0],
                added: 50,
            },
            // No ball of this scene is faster than 11 m/s.
            Kind::Particles => Self {
                ball: [1.0, 8.0],
                gravity: 9.81,
                blast: [8.0, 11.0],
                added: 1000,
            },
            Kind::Galaxy => Self {
                ball: [2.0, 60.0],
                gravity: 0.0,
                blast: [20.0, 60.0],
                added: 500,
            },
            _ => Self {
                ball: [1.5, 12.0],
                gravity: 0.0,
                blast: [10.0, 6.0],
                added: 1000,
            },
        }
    }
}

/// Max seconds of a ball's flight to its target: it starts that far before it, or beside the eye.
const FLIGHT: f32 = 0.6;
/// Distance of a ball that starts beside the eye, in radii: it is outside of the picture.
const BESIDE: f32 = 3.0;

impl Viewer {
    /// Returns why the scene takes no actions, if so.
    pub fn refusal(&self) -> Option<Refusal> {
        self.snapshot.as_ref()?.refusal.clone()
    }

    /// Throws a ball along a ray, so that it hits the body that the ray hits.
    pub fn throw(&mut self, ray: Ray) {
        let sizes = Sizes::of(self.settings.kind);
        let [radius, speed] = sizes.ball;
        let target = self.target(ray);
        let mut from = target - ray.dir * target.distance(ray.origin).min(FLIGHT * speed);
        // A ball at the eye would fill the picture.
        if from.distance(ray.origin) < BESIDE * radius {
            from = ray.origin + self.camera.right() * (BESIDE * radius);
        }
        let (way, reach) = (target - from).normalize_and_length();
        let lift = Vec3::Y * (sizes.gravity * reach / speed / 2.0);
        self.act(Action::Throw {
            from: from.into(),
            velocity: (way * speed + lift).into(),
            radius,
        });
    }

    /// Explodes where a ray hits a body.
    pub fn explode(&mut self, ray: Ray) {
        let [radius, speed] = Sizes::of(self.settings.kind).blast;
        let at = self.target(ray).into();
        self.act(Action::Explode { at, speed, radius });
    }

    /// Adds bodies.
    pub fn add(&mut self) {
        let count = Sizes::of(self.settings.kind).added;
        self.act(Action::Add { count });
    }

    /// Takes hold of the body that a ray hits, unless it never moves.
    pub fn grab(&mut self, ray: Ray) {
        let Some((hit, snapshot)) = self.hit(ray).zip(self.shown()) else {
            return;
        };
        if snapshot.is_static(hit.body) {
            return;
        }
        let point = ray.origin + ray.dir * hit.distance;
        let anchor = snapshot.instance(hit.body).map(|body| {
            let turn = Quat::from_array(body.rotation).inverse();
            turn * (point - Vec3::from(body.position))
        });
        if self.refusal().is_none()
            && let Some(anchor) = anchor
        {
            self.dragged = Some(Dragged {
                body: hit.body,
                anchor,
                depth: (point - ray.origin).dot(self.camera.forward()),
                target: point,
            });
        }
        self.act(Action::Grab {
            body: hit.body,
            point: point.into(),
        });
    }

    /// Drags the held body to a ray, at the depth at which it was grabbed.
    pub fn drag(&mut self, ray: Ray) {
        let forward = self.camera.forward();
        if let Some(dragged) = &mut self.dragged {
            let target = ray.origin + ray.dir * (dragged.depth / ray.dir.dot(forward));
            if target != dragged.target {
                dragged.target = target;
                let target = target.into();
                self.act(Action::Drag { target });
            }
        }
    }

    /// Lets the held body go.
    pub fn let_go(&mut self) {
        if self.dragged.take().is_some() {
            self.act(Action::Release);
        }
    }

    /// Returns the point where a ray hits a body, or else passes the target of the camera.
    fn target(&self, ray: Ray) -> Vec3 {
        let hit = self.hit(ray).map(|hit| hit.distance);
        ray.origin + ray.dir * hit.unwrap_or(self.camera.distance)
    }

    /// Sends an action to the simulation, or shows why the scene refuses it. The camera then stays
    /// where it is.
    fn act(&mut self, action: Action) {
        if let Some(refusal) = self.refusal() {
            self.say(refusal.to_string());
            return;
        }
        self.aim = Aim::Free;
        self.inspected = None;
        self.command(Command::Act(action));
    }
}

#[cfg(test)]
mod tests {
    use super::super::snapshot::mark;
    use super::super::state::Request;
    use super::super::state::tests::viewer;
    use super::*;
    use glam::Vec2;

    fn actions(viewer: &mut Viewer) -> Vec<Action> {
        let requests = viewer.requests().into_iter();
        let actions = requests.filter_map(|request| match request {
            Request::Simulation(Command::Act(action)) => Some(action),
            _ => None,
        });
        actions.collect()
    }

    #[test]
    fn a_throw_and_an_explosion_meet_the_body_under_the_pointer() {
        let mut viewer = viewer();
        let ray = viewer.camera.ray(Vec2::ZERO, 1.0);
        let hit = viewer.hit(ray).expect("the middle of a crowd");
        let point = ray.origin + ray.dir * hit.distance;
        for (kind, fall) in [(Kind::Uniform, 0.0), (Kind::FallingChairs, 9.81)] {
            viewer.settings.kind = kind;
            viewer.throw(ray);
            viewer.explode(ray);
            let [
                Action::Throw { from, velocity, .. },
                Action::Explode { at, .. },
            ] = actions(&mut viewer)[..]
            else {
                panic!("two actions");
            };
            assert!(point.distance(at.into()) < 1e-4);
            let (from, velocity) = (Vec3::from(from), Vec3::from(velocity));
            let seconds = point.distance(from) / Sizes::of(kind).ball[1];
            let there = from + velocity * seconds - Vec3::Y * (fall * seconds * seconds / 2.0);
            assert!(there.distance(point) < 0.1, "{kind}: {there} {point}");
        }
        assert_eq!(viewer.aim, Aim::Free, "the camera stays");
    }

    #[test]
    fn a_ball_does_not_start_in_the_middle_of_the_picture() {
        let mut viewer = viewer();
        let far = viewer.camera.distance;
        let mut beside = 0;
        for part in [1.0, 0.5, 0.1, 0.01] {
            viewer.camera.distance = far * part;
            let ray = viewer.camera.ray(Vec2::new(0.1, 0.2), 1.6);
            viewer.throw(ray);
            let [Action::Throw { from, radius, .. }] = actions(&mut viewer)[..] else {
                panic!("a throw");
            };
            let from = Vec3::from(from) - viewer.camera.eye();
            assert!(from.length() >= 2.9 * radius, "{part}: {from}");
            beside += u32::from(from.dot(viewer.camera.right()) > 2.9 * radius);
        }
        assert!(beside > 0, "none started beside the eye");
    }

    #[test]
    fn a_grabbed_body_follows_the_pointer_until_it_is_let_go() {
        let mut viewer = viewer();
        let ray = viewer.camera.ray(Vec2::ZERO, 1.0);
        viewer.grab(ray);
        let spring = viewer.spring().expect("a line");
        assert!(spring.from.distance(spring.to) < 1e-3);
        viewer.drag(ray);
        viewer.drag(viewer.camera.ray(Vec2::new(0.3, 0.0), 1.0));
        viewer.let_go();
        viewer.let_go();
        let found = actions(&mut viewer);
        let [
            Action::Grab { body, point },
            Action::Drag { target },
            Action::Release,
        ] = found[..]
        else {
            panic!("{found:?}");
        };
        assert_eq!(Some(body), viewer.hit(ray).map(|hit| hit.body));
        let moved = Vec3::from(target) - Vec3::from(point);
        assert!(moved.dot(viewer.camera.right()) > 0.1, "{moved}");
        assert!(moved.dot(viewer.camera.forward()).abs() < 1e-3, "{moved}");
        assert_eq!(viewer.spring(), None);
        let away = Ray {
            origin: Vec3::splat(-100.0),
            dir: Vec3::NEG_X,
        };
        viewer.grab(away);
        assert_eq!(actions(&mut viewer), [], "there is no body");
        let snapshot = viewer.snapshot.as_mut().expect("a frame");
        snapshot.by_body.fill(mark::STATIC);
        viewer.grab(ray);
        assert_eq!(actions(&mut viewer), [], "it never moves");
    }

    #[test]
    fn a_refusal_is_shown_and_nothing_is_sent() {
        let mut viewer = viewer();
        let snapshot = viewer.snapshot.as_mut().expect("a frame");
        snapshot.refusal = Some(Refusal::OnDevice);
        let ray = viewer.camera.ray(Vec2::ZERO, 1.0);
        viewer.throw(ray);
        viewer.add();
        viewer.grab(ray);
        assert_eq!(actions(&mut viewer), []);
        assert_eq!(viewer.spring(), None);
        let message = viewer.message.expect("the reason");
        assert!(message.contains("backend cpu"), "{message}");
    }
}
