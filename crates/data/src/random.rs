//! Seeds from seeds. The generators are `rand`'s named, portable ones: a seed means the same run on every machine and
//! with every version.

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom;

/// A seed for the part `number` of what `seed` decides (SplitMix64's finaliser, Steele, Lea and Flood, 2014).
pub(crate) fn mix(seed: u64, number: u64) -> u64 {
    let mut z = seed.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Shuffles in place; the order depends on `seed` and the length alone.
pub(crate) fn shuffle<T>(items: &mut [T], seed: u64) {
    items.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_means_the_same_order_with_every_version() {
        let mut items: Vec<u32> = (0..8).collect();
        shuffle(&mut items, 7);
        assert_eq!(items, ORDER_OF_SEED_7, "recorded results would no longer be reproducible");
    }

    const ORDER_OF_SEED_7: [u32; 8] = [4, 5, 3, 6, 0, 7, 2, 1];

    #[test]
    fn parts_of_one_seed_differ() {
        let seeds: std::collections::HashSet<u64> =
            (0..100).flat_map(|seed| (0..100).map(move |part| mix(seed, part))).collect();
        assert_eq!(seeds.len(), 10_000);
    }
}
