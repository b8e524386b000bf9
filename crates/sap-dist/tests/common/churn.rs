//! Frames in which everything changes at random.

use super::Scene;
use super::random::{Random, around};
use sap::{Aabb, Filter, FilterFlags, OnInvalid};
use sap_dist::Config;

/// A filter of few layers, which is in a group or has a flag at times.
pub fn some_filter(random: &mut Random) -> Filter {
    let bits = random.bits() as u32;
    Filter {
        layers: bits & 7,
        mask: bits >> 3 & 7,
        group: (bits >> 6 & 15).saturating_sub(10),
        flags: FilterFlags(bits >> 10 & bits >> 12 & 3),
    }
}

/// A scene whose boxes change in every way, each frame from the last.
pub struct Churn {
    random: Random,
    scene: Scene,
    next: u64,
}

impl Churn {
    pub fn new(seed: u64) -> Self {
        let mut scene = Scene::default();
        if seed % 2 == 1 {
            scene.filters = Some(Vec::new());
        }
        if seed % 3 == 1 {
            scene.worlds = Some(Vec::new());
        }
        Self {
            random: Random::new(seed),
            scene,
            next: u64::MAX / 2,
        }
    }

    fn some_box(&mut self) -> Aabb {
        let center = [(); 3].map(|()| self.random.between(-8.0, 8.0));
        let half = match self.random.below(40) {
            0 => [f32::INFINITY, 1.0, 1.0], // through all slabs of x
            1 => [20.0; 3],
            2 => [0.0; 3],
            _ => [(); 3].map(|()| self.random.between(0.1, 0.9)),
        };
        match self.random.below(60) {
            0 => Aabb::EMPTY,
            1 => Aabb::new([f32::NAN; 3], center),
            2 => Aabb::new([9.0; 3], center), // inverted
            _ => around(center, half),
        }
    }

    pub fn step(&mut self) -> Scene {
        for i in 0..self.scene.boxes.len() {
            match self.random.below(6) {
                0 => self.scene.boxes[i] = self.some_box(),
                1 => self.scene.origins[i] = self.random.below(5040), // of any rank alike
                _ => {}
            }
        }
        for _ in 0..self.random.below(30) {
            let n = self.scene.boxes.len();
            if n > 0 {
                self.remove(self.random.clone().below(n));
            }
        }
        for _ in 0..self.random.below(60) {
            self.add();
        }
        let config = Config {
            on_invalid: OnInvalid::Skip,
            ..Config::default()
        };
        self.scene.excluded.clear();
        let pairs = self.scene.expected(&config);
        let random = &mut self.random;
        self.scene.excluded = pairs.into_iter().filter(|_| random.chance(10)).collect();
        self.scene.clone()
    }

    fn add(&mut self) {
        // Ids of no order, none twice: an odd factor permutes them.
        self.next += 1;
        let id = self.next.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let (new, filter) = (self.some_box(), some_filter(&mut self.random));
        self.scene.boxes.push(new);
        self.scene.ids.push(id);
        self.scene.origins.push(self.random.below(5040));
        if let Some(filters) = &mut self.scene.filters {
            filters.push(filter);
        }
        if let Some(worlds) = &mut self.scene.worlds {
            worlds.push(self.random.below(3) as u32);
        }
    }

    fn remove(&mut self, i: usize) {
        self.random.bits();
        self.scene.boxes.swap_remove(i);
        self.scene.ids.swap_remove(i);
        self.scene.origins.swap_remove(i);
        if let Some(filters) = &mut self.scene.filters {
            filters.swap_remove(i);
        }
        if let Some(worlds) = &mut self.scene.worlds {
            worlds.swap_remove(i);
        }
    }
}
