//! The frames before the one that is shown, so that the user can look back.

use crate::snapshot::Snapshot;
use crate::timeline::Timeline;
use std::collections::VecDeque;

/// The last frames of a scene, by number. Snapshots are moved in and out, never copied.
#[derive(Default)]
pub struct Past {
    frames: VecDeque<Box<Snapshot>>,
    bytes: usize,
}

impl Past {
    /// Max bytes of all frames: the 600 of the timeline for 7,000 chairs, 90 for 50,000 balls.
    pub const MAX_BYTES: usize = 256 << 20;

    /// Adds a frame. Returns one that is no longer needed, for reuse: an older one of the same
    /// number, one of another scene, or the oldest if there are too many.
    pub fn push(&mut self, snapshot: Box<Snapshot>) -> Option<Box<Snapshot>> {
        let scene = self.frames.back().map_or(0, |last| last.scene);
        if snapshot.scene < scene {
            return Some(snapshot);
        }
        if snapshot.scene > scene {
            self.frames.clear();
            self.bytes = 0;
        }
        let at = self.position(snapshot.frame);
        let known = self.frames.get(at).map(|known| (known.frame, known.serial));
        let mut unused = None;
        match known {
            Some((frame, serial)) if frame == snapshot.frame => {
                if snapshot.serial < serial {
                    return Some(snapshot);
                }
                unused = self.remove(at);
            }
            _ => {}
        }
        self.bytes += snapshot.bytes();
        self.frames.insert(at, snapshot);
        while self.bytes > Self::MAX_BYTES || self.frames.len() > Timeline::CAPACITY {
            unused = self.remove(0);
        }
        unused
    }

    /// Takes a frame of a scene out.
    pub fn take(&mut self, (scene, frame): (u64, u64)) -> Option<Box<Snapshot>> {
        let at = self.position(frame);
        let found = self.frames.get(at)?;
        let wanted = (found.scene, found.frame) == (scene, frame);
        wanted.then(|| self.remove(at)).flatten()
    }

    fn position(&self, frame: u64) -> usize {
        self.frames.partition_point(|old| old.frame < frame)
    }

    fn remove(&mut self, at: usize) -> Option<Box<Snapshot>> {
        let removed = self.frames.remove(at);
        self.bytes -= removed.as_ref().map_or(0, |removed| removed.bytes());
        removed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(scene: u64, frame: u64, serial: u64) -> Box<Snapshot> {
        Box::new(Snapshot {
            scene,
            frame,
            serial,
            ..Snapshot::default()
        })
    }

    #[test]
    fn frames_are_found_in_any_order_and_the_oldest_go() {
        let mut past = Past::default();
        for frame in [2, 1, 4, 3] {
            assert!(past.push(snapshot(1, frame, frame)).is_none());
        }
        assert_eq!(past.take((1, 3)).map(|found| found.serial), Some(3));
        assert!(past.take((1, 3)).is_none() && past.take((1, 9)).is_none());
        // The newest details of a frame stay, and the others are reused.
        assert_eq!(past.push(snapshot(1, 4, 7)).map(|old| old.serial), Some(4));
        assert_eq!(past.push(snapshot(1, 4, 6)).map(|old| old.serial), Some(6));
        for frame in 5..2 + Timeline::CAPACITY as u64 {
            assert!(past.push(snapshot(1, frame, frame)).is_none());
        }
        let next = 2 + Timeline::CAPACITY as u64;
        assert_eq!(
            past.push(snapshot(1, next, next)).map(|old| old.frame),
            Some(1)
        );
        assert!(past.push(snapshot(2, 1, 999)).is_none());
        assert!(past.take((1, 9)).is_none(), "frames of another scene");
        assert!(past.push(snapshot(1, 10, 1000)).is_some());
    }

    #[test]
    fn large_frames_stay_within_the_bound() {
        let mut past = Past::default();
        let large = |frame| {
            let mut large = snapshot(1, frame, frame);
            large.by_body = vec![0; Past::MAX_BYTES / 4 / 3 - 1000];
            large
        };
        for frame in 1..=3 {
            assert!(past.push(large(frame)).is_none());
        }
        assert_eq!(past.push(large(4)).map(|old| old.frame), Some(1));
        assert!(past.bytes <= Past::MAX_BYTES && past.frames.len() == 3);
        for frame in 2..=4 {
            assert!(past.take((1, frame)).is_some());
        }
        assert_eq!(past.bytes, 0);
    }
}
