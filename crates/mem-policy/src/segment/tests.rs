use burn::module::{Module, ModuleVisitor, Param};
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::{BatchNorm, BatchNormConfig, Dropout, DropoutConfig, Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams, SgdConfig};
use burn::tensor::{Device, Distribution, Tensor};

use super::*;
use crate::offload::Offload;

/// Two convolution blocks with batch norm, and two linear layers with dropout between.
#[derive(Module, Debug)]
struct Net {
    convs: Vec<Conv2d>,
    norms: Vec<BatchNorm>,
    hidden: Linear,
    dropout: Dropout,
    output: Linear,
}

impl Net {
    fn new(dropout: f64, device: &Device) -> Self {
        device.seed(3);
        let conv = |i, o| Conv2dConfig::new([i, o], [3, 3]).with_bias(false).init(device);
        let net = Self {
            convs: vec![conv(2, 4), conv(4, 6)],
            norms: vec![BatchNormConfig::new(4).init(device), BatchNormConfig::new(6).init(device)],
            hidden: LinearConfig::new(6 * 4 * 4, 10).init(device),
            dropout: DropoutConfig::new(dropout).init(),
            output: LinearConfig::new(10, 3).init(device),
        };
        // Parameters are drawn when they are first used: draw them now, in the same order every time.
        let _ = flat(&net, |_, x| Some(x));
        net
    }
}

impl Segmented for Net {
    fn segments(&self) -> usize {
        4
    }

    fn forward_segment(&self, index: usize, input: Activations) -> Activations {
        match index {
            0 | 1 => self.norms[index].forward(self.convs[index].forward(input.only::<4>())).tanh().into(),
            2 => self.dropout.forward(self.hidden.forward(input.only::<4>().flatten::<2>(1, 3))).into(),
            _ => self.output.forward(input.only::<2>()).into(),
        }
    }
}

fn loss(_: &Net, output: Activations) -> (Tensor<1>, f32) {
    let loss = output.only::<2>().square().mean();
    (loss.clone(), loss.into_scalar())
}

fn images(device: &Device) -> Tensor<4> {
    device.seed(11);
    Tensor::random([5, 2, 8, 8], Distribution::Normal(0.0, 1.0), device)
}

/// The bits of every visited tensor that `f` gives.
fn flat(model: &impl Module, f: impl FnMut(ParamId, Tensor<1>) -> Option<Tensor<1>>) -> Vec<u32> {
    struct Flat<F>(F, Vec<u32>);
    impl<F: FnMut(ParamId, Tensor<1>) -> Option<Tensor<1>>> ModuleVisitor for Flat<F> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if let Some(x) = self.0(param.id, param.val().inner().reshape([-1])) {
                let values: Vec<f32> = x.into_data().try_to_vec().unwrap();
                self.1.extend(values.into_iter().map(f32::to_bits));
            }
        }
    }
    let mut flat = Flat(f, Vec::new());
    model.visit(&mut flat);
    flat.1
}
use burn::module::ParamId;

fn gradient_bits(model: &Net, gradients: &GradientsParams) -> Vec<u32> {
    struct Bits<'a>(&'a GradientsParams, Vec<u32>);
    impl ModuleVisitor for Bits<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if let Some(gradient) = self.0.get::<D>(param.id) {
                let values: Vec<f32> = gradient.into_data().try_to_vec().unwrap();
                self.1.extend(values.into_iter().map(f32::to_bits));
            }
        }
    }
    let mut bits = Bits(gradients, Vec::new());
    model.visit(&mut bits);
    bits.1
}

fn plain(model: &Net, device: &Device) -> (Vec<u32>, f32) {
    let x = (0..4).fold(images(device).into(), |x, index| model.forward_segment(index, x));
    let (scalar, value) = loss(model, x);
    let gradients = GradientsParams::from_grads(scalar.backward(), model);
    (gradient_bits(model, &gradients), value)
}

fn segmented(model: Net, plan: SegmentPlan, device: &Device) -> (Net, Vec<u32>, f32) {
    run(model, SegmentedBackward::new(plan), device)
}

fn run(model: Net, mut backward: SegmentedBackward, device: &Device) -> (Net, Vec<u32>, f32) {
    let mut all = GradientsParams::new();
    let (model, value) = backward.run(model, images(device).into(), loss, |model, gradients| {
        all = copies::add_gradients(&model, std::mem::take(&mut all), gradients);
        model
    });
    let bits = gradient_bits(&model, &all);
    (model, bits, value)
}

/// The running statistics, once all updates are in.
fn statistics(model: &Net) -> Vec<u32> {
    let valid = model.valid();
    let ids: Vec<u64> = Vec::new();
    let _ = ids;
    let mut all = Vec::new();
    for norm in &valid.norms {
        for value in [norm.running_mean.value(), norm.running_var.value()] {
            let values: Vec<f32> = value.into_data().try_to_vec().unwrap();
            all.extend(values.into_iter().map(f32::to_bits));
        }
    }
    all
}

fn plans(model: &Net) -> Vec<SegmentPlan> {
    let mut plans = vec![SegmentPlan::each(model), SegmentPlan::each(model).keeping_all()];
    plans.extend((1..=4).map(|groups| SegmentPlan::groups_of(model, groups).unwrap()));
    plans.push(SegmentPlan::at(model, &[1]).unwrap());
    plans.push(SegmentPlan::at(model, &[2, 3]).unwrap());
    plans
}

#[test]
fn gradients_equal_the_plain_backward_pass_bit_for_bit() {
    let device = Device::flex().autodiff();
    let (expected, value) = plain(&Net::new(0.0, &device), &device);
    assert!(expected.len() > 1000 && expected.iter().any(|bits| *bits != 0));
    for plan in plans(&Net::new(0.0, &device)) {
        let (_, bits, loss) = segmented(Net::new(0.0, &device), plan.clone(), &device);
        assert_eq!(bits, expected, "{plan:?}");
        assert_eq!(loss.to_bits(), value.to_bits(), "{plan:?}");
    }
}

#[test]
fn gradients_are_the_same_with_burns_own_checkpointing_below() {
    let device = Device::flex().autodiff().gradient_checkpointing();
    let (expected, _) = plain(&Net::new(0.0, &device), &device);
    let plan = SegmentPlan::each(&Net::new(0.0, &device));
    assert_eq!(segmented(Net::new(0.0, &device), plan, &device).1, expected);
}

#[test]
fn the_norm_of_all_gradients_is_known_before_the_first_update() {
    let device = Device::flex().autodiff();
    for plan in plans(&Net::new(0.4, &device)) {
        let model = Net::new(0.4, &device);
        let before = statistics(&model);
        let backward = SegmentedBackward::new(plan.clone()).with_seed(11);
        let norm = backward.gradient_norm(&model, images(&device).into(), |model, output| loss(model, output).0);
        assert_eq!(statistics(&model), before, "{plan:?}");
        // The pass that comes next has the same masks, where masks are repeated at all.
        let twice = plan.groups().iter().any(|group| !group.keep);
        let (_, bits, _) = run(model, backward, &device);
        let expected = bits.iter().map(|bits| f64::from(f32::from_bits(*bits)).powi(2)).sum::<f64>().sqrt();
        let norm = f64::from(norm.into_scalar::<f32>());
        assert!(norm > 0.0 && (!twice || (norm - expected).abs() < 1e-5 * expected), "{norm} and {expected}, {plan:?}");
    }
}

#[test]
fn batch_norm_statistics_move_once_a_step() {
    let device = Device::flex().autodiff();
    let model = Net::new(0.0, &device);
    let before = statistics(&model);
    plain(&model, &device);
    let expected = statistics(&model);
    assert_ne!(before, expected, "a plain step moves them");
    for plan in plans(&model) {
        let (model, ..) = segmented(Net::new(0.0, &device), plan.clone(), &device);
        assert_eq!(statistics(&model), expected, "{plan:?}");
    }
}

#[test]
fn dropout_repeats_its_mask_in_the_second_run() {
    let device = Device::flex().autodiff();
    // With all graphs kept nothing runs twice, so there the mask cannot differ; the seeds are drawn alike if one group
    // of the plan runs twice.
    let once = SegmentPlan::of_groups(vec![
        Group { segments: 0..1, keep: false, slices: 1 },
        Group { segments: 1..3, keep: true, slices: 1 },
        Group { segments: 3..4, keep: true, slices: 1 },
    ]);
    let twice = SegmentPlan::each(&Net::new(0.5, &device));
    let (_, expected, value) = segmented(Net::new(0.5, &device), once, &device);
    let (_, bits, loss) = segmented(Net::new(0.5, &device), twice.clone(), &device);
    assert_eq!(bits, expected);
    assert_eq!(loss.to_bits(), value.to_bits());
    let other_seed = SegmentedBackward::new(twice).with_seed(1);
    assert_ne!(run(Net::new(0.5, &device), other_seed, &device).1, expected, "another seed, another mask");
}

#[test]
fn offloaded_inputs_give_the_same_gradients() {
    let device = Device::flex().autodiff();
    let (expected, _) = plain(&Net::new(0.0, &device), &device);
    let backward = SegmentedBackward::new(SegmentPlan::each(&Net::new(0.0, &device))).with_offload(Offload::new());
    assert_eq!(run(Net::new(0.0, &device), backward, &device).1, expected);
}

#[test]
fn updates_inside_the_backward_pass_equal_updates_after_it() {
    let device = Device::flex().autodiff();
    for optimizer in [SgdConfig::new().init(), AdamConfig::new().init()] {
        let (mut one, mut other) = (optimizer.clone(), optimizer);
        let (mut inside, mut after) = (Net::new(0.0, &device), Net::new(0.0, &device));
        let mut backward = SegmentedBackward::new(SegmentPlan::each(&inside));
        for _ in 0..3 {
            inside = backward
                .run(inside, images(&device).into(), loss, |model, gradients| one.step(0.05, model, gradients))
                .0;
            let x = (0..4).fold(images(&device).into(), |x, index| after.forward_segment(index, x));
            let gradients = GradientsParams::from_grads(loss(&after, x).0.backward(), &after);
            after = other.step(0.05, after, gradients);
        }
        let bits = |model: &Net| flat(&model.valid(), |_, x| Some(x));
        assert_eq!(bits(&inside), bits(&after));
    }
}

#[test]
fn slices_of_independent_samples_give_the_gradients_of_the_whole_batch() {
    #[derive(Module, Debug)]
    struct Mlp {
        layers: Vec<Linear>,
    }
    impl Segmented for Mlp {
        fn segments(&self) -> usize {
            self.layers.len()
        }
        fn forward_segment(&self, index: usize, input: Activations) -> Activations {
            self.layers[index].forward(input.only::<2>()).tanh().into()
        }
        fn independent_samples(&self, _: usize) -> bool {
            true
        }
    }
    let device = Device::flex().autodiff();
    device.seed(5);
    let model = Mlp { layers: (0..3).map(|_| LinearConfig::new(6, 6).init(&device)).collect() };
    let x = Tensor::<2>::random([7, 6], Distribution::Default, &device);
    let gradients = |plan: SegmentPlan| {
        let mut all = Vec::new();
        SegmentedBackward::new(plan).run(
            model.clone(),
            x.clone().into(),
            |_, y| (y.only::<2>().square().mean(), ()),
            |model, gradients| {
                for layer in &model.layers {
                    if let Some(gradient) = gradients.get::<2>(layer.weight.id) {
                        all.extend(gradient.into_data().try_to_vec::<f32>().unwrap());
                    }
                }
                model
            },
        );
        all
    };
    let whole = gradients(SegmentPlan::each(&model));
    let sliced = SegmentPlan::each(&model).sliced(&model, &(0..2), 3, false).unwrap();
    assert_eq!(sliced.groups()[0].slices, 3);
    assert_eq!(sliced.groups()[2].slices, 1);
    let sliced = gradients(sliced);
    assert_eq!(whole.len(), 3 * 36);
    let worst = whole.iter().zip(&sliced).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(worst < 1e-6, "{worst}");
}

#[test]
fn slicing_batch_norm_needs_a_word_and_moves_the_statistics_once() {
    let device = Device::flex().autodiff();
    let model = Net::new(0.0, &device);
    let refused = SegmentPlan::each(&model).sliced(&model, &(0..1), 2, false).unwrap_err();
    assert_eq!(refused, PlanError::DependentSamples { segment: 0 });
    let plan = SegmentPlan::each(&model).sliced(&model, &(0..1), 2, true).unwrap();
    let (sliced, ..) = segmented(Net::new(0.0, &device), plan, &device);
    // The mean of the slices' means is the batch's mean: two and three rows of five, weighted.
    let mean =
        |model: &Net| -> Vec<f32> { model.valid().norms[0].running_mean.value().into_data().try_to_vec().unwrap() };
    plain(&model, &device);
    let worst = mean(&model).iter().zip(mean(&sliced)).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(worst < 1e-6, "{worst}");
}

#[test]
fn an_activation_handed_on_untouched_keeps_its_gradient() {
    /// `x` is used by every segment; the one between hands it on besides.
    #[derive(Module, Debug)]
    struct Skip {
        layers: Vec<Linear>,
        recompute: bool,
    }
    impl Segmented for Skip {
        fn segments(&self) -> usize {
            3
        }
        fn forward_segment(&self, index: usize, mut input: Activations) -> Activations {
            let mut top: Tensor<2> = input.pop().unwrap().into();
            if index == 1 {
                top = top + Tensor::<2>::from(input.iter().next().unwrap().clone());
            }
            top = self.layers[index].forward(top).tanh();
            match index {
                0 => Activations::new(vec![top.clone().into(), top.into()]),
                1 => {
                    input.push(top);
                    input
                }
                _ => (top + Tensor::<2>::from(input.pop().unwrap())).into(),
            }
        }
        fn recomputing_saves(&self, _: usize) -> bool {
            self.recompute
        }
    }
    let device = Device::flex().autodiff();
    for recompute in [true, false] {
        device.seed(5);
        let model = Skip { layers: (0..3).map(|_| LinearConfig::new(4, 4).init(&device)).collect(), recompute };
        let x = Tensor::<2>::random([3, 4], Distribution::Default, &device);
        let loss = |y: Activations| y.only::<2>().square().mean();
        let y = (0..3).fold(Activations::from(x.clone()), |x, index| model.forward_segment(index, x));
        let plain = GradientsParams::from_grads(loss(y).backward(), &model);
        let plan = SegmentPlan::each(&model);
        // The first group runs again only if that saves memory.
        assert_eq!(plan.groups()[1].keep, !recompute);
        let mut backward = SegmentedBackward::new(plan);
        let mut worst = 0.0_f32;
        let mut seen = 0;
        backward.run(
            model,
            x.into(),
            |_, y| (loss(y), ()),
            |model, gradients| {
                for layer in &model.layers {
                    if let (Some(a), Some(b)) = (gradients.get::<2>(layer.weight.id), plain.get::<2>(layer.weight.id)) {
                        seen += 1;
                        worst = worst.max((a - b).abs().max().into_scalar::<f32>());
                    }
                }
                model
            },
        );
        assert_eq!(seen, 3);
        assert!(worst < 1e-7, "{worst} with recomputing {recompute}");
    }
}

#[test]
fn wrong_cuts_are_refused_with_the_value() {
    let model = Net::new(0.0, &Device::flex());
    assert_eq!(SegmentPlan::groups_of(&model, 5).unwrap_err(), PlanError::Groups { groups: 5, segments: 4 });
    assert_eq!(SegmentPlan::groups_of(&model, 0).unwrap_err(), PlanError::Groups { groups: 0, segments: 4 });
    for cuts in [vec![0], vec![4], vec![2, 2], vec![3, 1]] {
        assert!(matches!(SegmentPlan::at(&model, &cuts), Err(PlanError::Cut { .. })), "{cuts:?}");
    }
}

mod budgets {
    use super::*;

    fn costs(of: &[(u64, u64, f64)]) -> Vec<SegmentCost> {
        of.iter().map(|&(input_bytes, graph_bytes, work)| SegmentCost { input_bytes, graph_bytes, work }).collect()
    }

    /// Peak and repeated work of a plan, counted from the definition.
    fn count(plan: &SegmentPlan, costs: &[SegmentCost]) -> (u64, f64) {
        let (mut stored, mut peak, mut again) = (0, 0, 0.0);
        for group in plan.groups() {
            let graph: u64 = costs[group.segments.clone()].iter().map(|cost| cost.graph_bytes).sum();
            peak = peak.max(stored + graph);
            if group.keep {
                stored += graph;
            } else {
                stored += costs[group.segments.start].input_bytes;
                again += costs[group.segments.clone()].iter().map(|cost| cost.work).sum::<f64>();
            }
        }
        (peak, again)
    }

    /// Every grouping with every choice of graphs to keep.
    fn all(n: usize) -> Vec<SegmentPlan> {
        let mut plans = Vec::new();
        for cuts in 0_u32..1 << (n - 1) {
            let starts: Vec<usize> = (0..n).filter(|i| *i == 0 || cuts >> (i - 1) & 1 == 1).collect();
            for keeps in 0_u32..1 << (starts.len() - 1) {
                let groups = starts.iter().enumerate().map(|(g, start)| Group {
                    segments: *start..starts.get(g + 1).copied().unwrap_or(n),
                    keep: g + 1 == starts.len() || keeps >> g & 1 == 1,
                    slices: 1,
                });
                plans.push(SegmentPlan::of_groups(groups.collect()));
            }
        }
        plans
    }

    #[test]
    fn the_least_repeated_work_within_the_budget_is_found() {
        let costs = costs(&[(4, 30, 5.0), (10, 25, 9.0), (8, 40, 2.0), (6, 12, 7.0), (3, 9, 1.0)]);
        for budget in [30, 45, 55, 60, 75, 90, 110, 116, 200] {
            let best = all(5)
                .iter()
                .map(|plan| count(plan, &costs))
                .filter(|(peak, _)| *peak <= budget)
                .map(|(_, again)| again)
                .fold(f64::INFINITY, f64::min);
            match SegmentPlan::within_budget(&costs, budget) {
                Ok(plan) => {
                    let (peak, again) = count(&plan, &costs);
                    assert!(peak <= budget, "{budget}: {peak}");
                    assert!((again - best).abs() < 1e-9, "{budget}: {again} and {best}");
                }
                Err(error) => {
                    assert!(best.is_infinite(), "{budget}: {error}, but {best} is possible");
                    let least = all(5).iter().map(|plan| count(plan, &costs).0).min().unwrap();
                    assert_eq!(error, BudgetTooSmall { budget, least });
                }
            }
        }
    }

    #[test]
    fn with_room_enough_nothing_runs_twice() {
        let costs = costs(&[(1, 10, 1.0); 6]);
        let plan = SegmentPlan::within_budget(&costs, 60).unwrap();
        assert!(plan.groups().iter().all(|group| group.keep));
    }
}
