//! The order in which runs begin, so that those that share a drive follow each other and seldom
//! wait for it.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// Indices of runs in the order in which `threads` at a time best begin them. Runs of one group
/// share drives; those of `None` share with nobody. As many groups as there are threads are begun
/// side by side, in the order of their first runs: each drive is kept for a short time, and the
/// second run of a group comes when its first has prepared it. Without groups the order is kept.
pub fn order<G: Eq + Hash>(groups: &[Option<G>], threads: usize) -> Vec<usize> {
    let mut waiting: VecDeque<VecDeque<usize>> = VecDeque::new();
    let mut place_of = HashMap::new();
    for (run, group) in groups.iter().enumerate() {
        let next = waiting.len();
        let place = group.as_ref().map_or(next, |group| *place_of.entry(group).or_insert(next));
        if place == next {
            waiting.push_back(VecDeque::new());
        }
        waiting[place].push_back(run);
    }
    let mut begun = VecDeque::new();
    let mut order = Vec::with_capacity(groups.len());
    loop {
        while begun.len() < threads.max(1)
            && let Some(group) = waiting.pop_front()
        {
            begun.push_back(group);
        }
        let Some(mut group) = begun.pop_front() else { return order };
        order.extend(group.pop_front());
        if !group.is_empty() {
            begun.push_back(group);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_follow_each_other_side_by_side() {
        let groups = [1, 2, 3, 1, 2, 3, 1, 2, 3].map(Some);
        assert_eq!(order(&groups, 1), [0, 3, 6, 1, 4, 7, 2, 5, 8]);
        assert_eq!(order(&groups, 2), [0, 1, 3, 4, 6, 7, 2, 5, 8]);
        let uneven = [Some(1), Some(1), Some(2), Some(1), Some(3), Some(3)];
        assert_eq!(order(&uneven, 2), [0, 2, 1, 4, 3, 5]);
    }

    #[test]
    fn without_groups_the_order_is_kept() {
        assert_eq!(order(&[None::<u32>; 5], 3), [0, 1, 2, 3, 4]);
        assert_eq!(order(&[] as &[Option<u32>], 3), Vec::<usize>::new());
    }
}
