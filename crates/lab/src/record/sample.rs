//! A sample of the requests for the scatter of addresses over time.

use dovetail_time::Rng;

use crate::results::ScatterPoint;

/// Points kept.
const POINTS: usize = 6000;

/// A uniform sample of a stream of unknown length (Vitter's algorithm R, ACM TOMS 1985).
#[derive(Debug)]
pub(crate) struct Sample {
    points: Vec<ScatterPoint>,
    seen: u64,
    rng: Rng,
}

impl Sample {
    pub(crate) fn new(seed: u64) -> Self {
        Self { points: Vec::new(), seen: 0, rng: Rng::new(seed).fork(2) }
    }

    pub(crate) fn offer(&mut self, point: ScatterPoint) {
        self.seen += 1;
        if self.points.len() < POINTS {
            self.points.push(point);
            return;
        }
        let place = self.rng.below(self.seen) as usize;
        if place < POINTS {
            self.points[place] = point;
        }
    }

    /// The sample in the order of time.
    pub(crate) fn finish(&mut self) -> Vec<ScatterPoint> {
        self.points.sort_by(|a, b| a.t.total_cmp(&b.t).then(a.at.cmp(&b.at)));
        std::mem::take(&mut self.points)
    }
}
