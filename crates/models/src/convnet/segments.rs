//! The network in segments.
//!
//! Every block is three segments, because they want different things: convolution and pooling treat samples independently,
//! batch norm does not, and what norm and pooling need for their backward passes need not exist at once. Then the flattened
//! features are handed to the shards of the first linear layer, one segment each; the second linear layer, which adds up
//! their outputs first, is the last segment.

use burn::tensor::Tensor;
use burn::train::ClassificationOutput;
use mem_policy::segment::{Activation, Activations, SegmentCost, Segmented, SegmentedStep};
use mem_policy::shard::ShardedLinear;

use super::config::KERNEL;
use super::network::{ClassificationBatch, ConvNet};

/// Segments of a block: convolution, norm, pooling.
const SEGMENTS_OF_A_BLOCK: usize = 3;

/// What a segment of a [`ConvNet`] does.
enum Part {
    Convolve(usize),
    Normalize(usize),
    Pool(usize),
    /// Flattens, and cuts the features into the shards' parts.
    Flatten,
    Shard(usize),
    Classify,
}

impl ConvNet {
    fn part(&self, index: usize) -> Part {
        let blocks = SEGMENTS_OF_A_BLOCK * self.blocks.len();
        let shards = self.hidden.input_shards.len().max(1);
        match index {
            index if index < blocks => match (index / SEGMENTS_OF_A_BLOCK, index % SEGMENTS_OF_A_BLOCK) {
                (block, 0) => Part::Convolve(block),
                (block, 1) => Part::Normalize(block),
                (block, _) => Part::Pool(block),
            },
            index if index == blocks => Part::Flatten,
            index if index <= blocks + shards => Part::Shard(index - blocks - 1),
            _ => Part::Classify,
        }
    }
}

impl Segmented for ConvNet {
    fn segments(&self) -> usize {
        SEGMENTS_OF_A_BLOCK * self.blocks.len() + 1 + self.hidden.input_shards.len().max(1) + 1
    }

    fn forward_segment(&self, index: usize, mut input: Activations) -> Activations {
        match self.part(index) {
            Part::Convolve(block) => self.blocks[block].convolve(input.only::<4>()).into(),
            Part::Normalize(block) => self.blocks[block].normalize(input.only::<4>(), block == 0).into(),
            Part::Pool(block) => self.blocks[block].pool(input.only::<4>()).into(),
            Part::Flatten => {
                let x: Tensor<2> = input.only::<4>().flatten(1, 3);
                // Taken from the end, so the first shard's part comes last.
                self.hidden.split(&x).into_iter().rev().map(Activation::from).collect()
            }
            Part::Shard(shard) if self.hidden.input_shards.is_empty() => {
                debug_assert_eq!(shard, 0, "shards along the output are one segment");
                self.hidden.forward(input.only::<2>()).into()
            }
            Part::Shard(shard) => {
                // The outputs of the shards before come first, then the parts of the others, the next one's last.
                let part = input.pop();
                let mut all: Vec<Activation> = input.into_iter().collect();
                all.extend(part.map(|part| Activation::from(self.hidden.forward_shard::<2>(shard, part.into()))));
                all[shard..].rotate_right(1);
                all.into_iter().collect()
            }
            Part::Classify => {
                let y = ShardedLinear::sum(input.into_iter().map(Tensor::<2>::from).collect());
                self.classify(self.hidden.add_bias(y)).into()
            }
        }
    }

    fn recomputing_saves(&self, index: usize) -> bool {
        // A convolution and a linear layer keep their input and their weight; norm, activation and pooling keep more.
        matches!(self.part(index), Part::Normalize(_) | Part::Pool(_))
    }

    fn independent_samples(&self, index: usize) -> bool {
        !matches!(self.part(index), Part::Normalize(_))
    }

    fn costs(&self, input: &Activations) -> Option<Vec<SegmentCost>> {
        let images = input.iter().next()?;
        let dims = images.dims();
        let [batch, mut channels, mut height, mut width] = <[usize; 4]>::try_from(dims).ok()?.map(|n| n as u64);
        let elements: u64 = batch * channels * height * width;
        let size = images.bytes() / elements.max(1);
        let mut costs = Vec::with_capacity(self.segments());
        #[expect(clippy::cast_precision_loss, reason = "operations are compared, not counted exactly")]
        let work = |operations: u64| operations as f64;
        for block in &self.blocks {
            let outputs = block.outputs() as u64;
            let before = batch * channels * height * width * size;
            (height, width) = (height - (KERNEL as u64 - 1), width - (KERNEL as u64 - 1));
            let after = batch * outputs * height * width;
            costs.push(SegmentCost {
                input_bytes: before,
                graph_bytes: before,
                work: work(after * channels * (KERNEL * KERNEL) as u64),
            });
            // Norm keeps its input, in 32 bits if it had to be cast, and what it normalised.
            let cast = if size < 4 { 4 * after } else { 0 };
            costs.push(SegmentCost {
                input_bytes: after * size,
                graph_bytes: after * size + cast + after * size,
                work: work(8 * after),
            });
            // Pooling keeps its input and where the largest were.
            (height, width) = (height - 1, width - 1);
            let pooled = batch * outputs * height * width;
            costs.push(SegmentCost {
                input_bytes: after * size,
                graph_bytes: after * size + 4 * pooled,
                work: work(2 * after),
            });
            channels = outputs;
        }
        let flat = batch * channels * height * width * size;
        costs.push(SegmentCost { input_bytes: flat, graph_bytes: flat, work: 0.0 });
        let [inputs, hidden] = self.hidden.features().map(|n| n as u64);
        let shards = self.hidden.input_shards.len().max(1) as u64;
        let top = batch * hidden * size;
        for shard in 0..shards {
            // Parts that are still to come, and outputs of the shards before, pass by.
            let input_bytes = flat - flat * shard / shards + top * shard;
            let part =
                SegmentCost { input_bytes, graph_bytes: flat / shards, work: work(batch * inputs * hidden / shards) };
            costs.push(part);
        }
        costs.push(SegmentCost { input_bytes: top * shards, graph_bytes: top * shards, work: work(batch * hidden) });
        Some(costs)
    }
}

impl SegmentedStep for ConvNet {
    fn enter(&self, batch: &ClassificationBatch) -> Activations {
        batch.images.clone().into()
    }

    fn leave(&self, output: Activations, batch: ClassificationBatch) -> (Tensor<1>, ClassificationOutput) {
        let output = Self::judge(output.only::<2>(), batch.targets);
        (output.loss.clone(), output)
    }
}
