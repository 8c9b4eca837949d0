//! A bounded map that forgets what was not used for longest, roughly.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Mutex;

use super::lock;

/// Two generations: when the young one is full, it becomes the old one and the old one is dropped.
/// What is read moves to the young one, so it survives; the rest costs nothing to evict.
#[derive(Debug)]
pub(super) struct Cache<K, V> {
    generations: Mutex<Generations<K, V>>,
    weight_max: usize,
}

#[derive(Debug)]
struct Generations<K, V> {
    young: HashMap<K, (V, usize)>,
    old: HashMap<K, (V, usize)>,
    young_weight: usize,
}

impl<K: Eq + Hash + Copy, V: Clone> Cache<K, V> {
    /// Holds at most about twice `weight_max`.
    pub(super) fn new(weight_max: usize) -> Self {
        Self {
            generations: Mutex::new(Generations {
                young: HashMap::new(),
                old: HashMap::new(),
                young_weight: 0,
            }),
            weight_max,
        }
    }

    pub(super) fn get(&self, key: K) -> Option<V> {
        let mut all = lock(&self.generations);
        if let Some((value, _)) = all.young.get(&key) {
            return Some(value.clone());
        }
        let (value, weight) = all.old.remove(&key)?;
        all.insert(key, value.clone(), weight, self.weight_max);
        Some(value)
    }

    /// Keeps `value` unless `newer` says that what is there is better.
    pub(super) fn insert_unless(
        &self,
        key: K,
        value: V,
        weight: usize,
        newer: impl FnOnce(&V) -> bool,
    ) {
        let mut all = lock(&self.generations);
        let known = all.young.get(&key).or_else(|| all.old.get(&key));
        if known.is_some_and(|(known, _)| newer(known)) {
            return;
        }
        all.remove(key);
        all.insert(key, value, weight, self.weight_max);
    }

    pub(super) fn remove(&self, key: K) {
        lock(&self.generations).remove(key);
    }

    /// The weight of all that is kept.
    #[cfg(feature = "test-util")]
    pub(super) fn weight(&self) -> usize {
        let all = lock(&self.generations);
        let values = all.young.values().chain(all.old.values());
        values.map(|(_, weight)| weight).sum()
    }
}

impl<K: Eq + Hash + Copy, V> Generations<K, V> {
    fn insert(&mut self, key: K, value: V, weight: usize, weight_max: usize) {
        if weight > weight_max {
            return;
        }
        if self.young_weight + weight > weight_max {
            self.old = std::mem::take(&mut self.young);
            self.young_weight = 0;
        }
        self.young_weight += weight;
        self.young.insert(key, (value, weight));
    }

    fn remove(&mut self, key: K) {
        if let Some((_, weight)) = self.young.remove(&key) {
            self.young_weight = self.young_weight.saturating_sub(weight);
        }
        self.old.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_survives_what_is_not() {
        let cache = Cache::new(4);
        for key in 0..4 {
            cache.insert_unless(key, key, 1, |_| false);
        }
        cache.insert_unless(9, 9, 1, |_| false);
        assert_eq!(cache.get(0), Some(0));
        for key in 10..13 {
            cache.insert_unless(key, key, 1, |_| false);
        }
        assert_eq!(cache.get(0), Some(0));
        assert_eq!(cache.get(1), None);
    }

    #[test]
    fn what_is_newer_stays() {
        let cache = Cache::new(4);
        cache.insert_unless(1, 7, 1, |_| false);
        cache.insert_unless(1, 6, 1, |known| *known > 6);
        assert_eq!(cache.get(1), Some(7));
    }

    #[test]
    fn what_is_too_heavy_is_not_kept() {
        let cache = Cache::new(4);
        cache.insert_unless(1, 1, 5, |_| false);
        assert_eq!(cache.get(1), None);
    }
}
