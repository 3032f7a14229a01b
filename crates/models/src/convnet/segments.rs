//! The network in segments.
//!
//! Every block is two segments, its convolution and the rest, because the two want different things: a convolution treats
//! samples independently, batch norm does not. Then the flattened features are handed to the shards of the first linear
//! layer, one segment each, which add up their outputs; the second linear layer is the last segment.

use burn::tensor::Tensor;
use burn::train::ClassificationOutput;
use mem_policy::segment::{Activation, Activations, SegmentCost, Segmented, SegmentedStep};

use super::config::KERNEL;
use super::network::{ClassificationBatch, ConvNet};

/// What a segment of a [`ConvNet`] does.
enum Part {
    Convolve(usize),
    Finish(usize),
    /// Flattens, and cuts the features into the shards' parts.
    Flatten,
    Shard(usize),
    Classify,
}

impl ConvNet {
    fn part(&self, index: usize) -> Part {
        let blocks = 2 * self.blocks.len();
        let shards = self.hidden.input_shards.len().max(1);
        match index {
            index if index < blocks && index.is_multiple_of(2) => Part::Convolve(index / 2),
            index if index < blocks => Part::Finish(index / 2),
            index if index == blocks => Part::Flatten,
            index if index <= blocks + shards => Part::Shard(index - blocks - 1),
            _ => Part::Classify,
        }
    }
}

impl Segmented for ConvNet {
    fn segments(&self) -> usize {
        2 * self.blocks.len() + 1 + self.hidden.input_shards.len().max(1) + 1
    }

    fn forward_segment(&self, index: usize, mut input: Activations) -> Activations {
        match self.part(index) {
            Part::Convolve(block) => self.blocks[block].convolve(input.only::<4>()).into(),
            Part::Finish(block) => self.blocks[block].finish(input.only::<4>(), block == 0).into(),
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
                // The sum of the shards before, if there are any, is on top.
                let sum: Option<Tensor<2>> = if shard == 0 { None } else { input.pop().map(Tensor::from) };
                if let Some(part) = input.pop() {
                    let y = self.hidden.forward_shard::<2>(shard, part.into());
                    input.push(match sum {
                        Some(sum) => sum + y,
                        None => y,
                    });
                }
                input
            }
            Part::Classify => self.classify(self.hidden.add_bias(input.only::<2>())).into(),
        }
    }

    fn recomputing_saves(&self, index: usize) -> bool {
        // A convolution and a linear layer keep their input and their weight; norm, activation and pooling keep more.
        matches!(self.part(index), Part::Finish(_))
    }

    fn independent_samples(&self, index: usize) -> bool {
        !matches!(self.part(index), Part::Finish(_))
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
            // Norm keeps its input, in 32 bits if it had to be cast, and pooling its input and where the largest were.
            (height, width) = (height - 1, width - 1);
            let pooled = batch * outputs * height * width;
            let cast = if size < 4 { 4 * after } else { 0 };
            costs.push(SegmentCost {
                input_bytes: after * size,
                graph_bytes: after * size + cast + after * size + 4 * pooled,
                work: work(10 * after),
            });
            channels = outputs;
        }
        let flat = batch * channels * height * width * size;
        costs.push(SegmentCost { input_bytes: flat, graph_bytes: flat, work: 0.0 });
        let [inputs, hidden] = self.hidden.features().map(|n| n as u64);
        let shards = self.hidden.input_shards.len().max(1) as u64;
        for shard in 0..shards {
            // Parts that are still to come pass by.
            let input_bytes = flat - flat * shard / shards;
            let part =
                SegmentCost { input_bytes, graph_bytes: flat / shards, work: work(batch * inputs * hidden / shards) };
            costs.push(part);
        }
        let top = batch * hidden * size;
        costs.push(SegmentCost { input_bytes: top, graph_bytes: top, work: work(batch * hidden) });
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
