//! Sharded layers under the names and shapes of whole ones, for saving and loading.

use std::collections::VecDeque;

use burn::module::{Flag, Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::tensor::{Bool, Device, Int, Shape, Tensor};

/// A model whose [`ShardedLinear`](super::ShardedLinear)s look like Burn's `Linear`: one tensor `weight` instead of the
/// shards. Its records interchange with those of the model that is not sharded, or sharded otherwise.
///
/// Joining happens on a device of the caller's choice, since a device for which a layer is sharded may not hold it in one
/// piece; take the CPU.
///
/// # Example
///
/// ```
/// use burn::module::Module;
/// use burn::nn::LinearConfig;
/// use burn::tensor::Device;
/// use mem_policy::shard::{OnePiece, ShardedLinearConfig};
///
/// let device = Device::flex();
/// let sharded = ShardedLinearConfig::new(10, 4).with_shards(3).init(&device);
/// let record = OnePiece::new(sharded, &device).into_record();
/// let whole = LinearConfig::new(10, 4).init(&device).load_record(record);
/// assert_eq!(whole.weight.dims(), [10, 4]);
/// ```
#[derive(Debug, Clone)]
pub struct OnePiece<M> {
    module: M,
    host: Device,
}

impl<M: Module> OnePiece<M> {
    /// `module`, its sharded layers joined on `host`.
    #[must_use]
    pub fn new(module: M, host: &Device) -> Self {
        Self { module, host: host.clone().without_autodiff() }
    }

    /// The module itself.
    #[must_use]
    pub fn into_inner(self) -> M {
        self.module
    }
}

/// The dimension along which a list of shards is joined, by the list's name in its layer.
fn joined_along(name: &str, container: &str) -> Option<usize> {
    match (container, name) {
        ("Struct:ShardedLinear", "input_shards") => Some(0),
        ("Struct:ShardedLinear", "output_shards") => Some(1),
        _ => None,
    }
}

impl<M: Module> Module for OnePiece<M> {
    fn collect_devices(&self, devices: Vec<Device>) -> Vec<Device> {
        self.module.collect_devices(devices)
    }

    fn fork(self, device: &Device) -> Self {
        Self { module: self.module.fork(device), ..self }
    }

    fn to_device(self, device: &Device) -> Self {
        Self { module: self.module.to_device(device), ..self }
    }

    fn train(self) -> Self {
        Self { module: self.module.train(), ..self }
    }

    fn valid(&self) -> Self {
        Self { module: self.module.valid(), host: self.host.clone() }
    }

    fn materialize(self) -> Self {
        Self { module: self.module.materialize(), ..self }
    }

    fn visit<V: ModuleVisitor>(&self, visitor: &mut V) {
        self.module.visit(&mut Joining { visitor, host: &self.host, list: None });
    }

    fn map<T: ModuleMapper>(self, mapper: &mut T) -> Self {
        let mut lists = Lists { found: VecDeque::new(), open: None };
        self.module.visit(&mut lists);
        let host = self.host;
        let module = self.module.map(&mut Splitting { mapper, host: &host, lists: lists.found, pieces: None });
        Self { module, host }
    }
}

/// A list of shards that a visitor is in.
struct List {
    along: usize,
    id: Option<ParamId>,
    shards: Vec<Tensor<2>>,
}

/// Shows a visitor one joined tensor for each list of shards.
struct Joining<'a, V> {
    visitor: &'a mut V,
    host: &'a Device,
    list: Option<List>,
}

impl<V: ModuleVisitor> ModuleVisitor for Joining<'_, V> {
    fn enter_module(&mut self, name: &str, container: &str) {
        if self.list.is_some() {
            return;
        }
        match joined_along(name, container) {
            Some(along) => self.list = Some(List { along, id: None, shards: Vec::new() }),
            None => self.visitor.enter_module(name, container),
        }
    }

    fn exit_module(&mut self, name: &str, container: &str) {
        if self.list.is_none() {
            self.visitor.exit_module(name, container);
        } else if joined_along(name, container).is_some()
            && let Some(List { along, id: Some(id), shards }) = self.list.take()
        {
            self.visitor.enter_module("weight", "Struct:Linear");
            self.visitor.visit_float(&Param::initialized(id, Tensor::cat(shards, along)));
            self.visitor.exit_module("weight", "Struct:Linear");
        }
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        match &mut self.list {
            Some(list) => {
                list.id.get_or_insert(param.id);
                list.shards.push(elsewhere(param.val(), self.host));
            }
            None => self.visitor.visit_float(param),
        }
    }

    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        self.visitor.visit_int(param);
    }

    fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<D, Bool>>) {
        self.visitor.visit_bool(param);
    }

    fn visit_flag(&mut self, flag: &Param<Flag>) {
        self.visitor.visit_flag(flag);
    }
}

/// The values of `x`, of any rank that has two dimensions, on `device`, without autodiff.
fn elsewhere<const D: usize>(x: Tensor<D>, device: &Device) -> Tensor<2> {
    let data = x.inner().into_data();
    let dtype = data.dtype();
    Tensor::from_data(data, (device, dtype))
}

/// The lists of shards of a module, in the order in which it is mapped.
struct Lists {
    found: VecDeque<Shapes>,
    open: Option<Shapes>,
}

#[derive(Clone)]
struct Shapes {
    along: usize,
    id: Option<ParamId>,
    shards: Vec<[usize; 2]>,
}

impl ModuleVisitor for Lists {
    fn enter_module(&mut self, name: &str, container: &str) {
        if let Some(along) = joined_along(name, container) {
            self.open = Some(Shapes { along, id: None, shards: Vec::new() });
        }
    }

    fn exit_module(&mut self, name: &str, container: &str) {
        if joined_along(name, container).is_some() {
            self.found.extend(self.open.take());
        }
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(list) = &mut self.open {
            list.id.get_or_insert(param.id);
            list.shards.push(param.lazy_shape().dims());
        }
    }
}

/// Maps one joined tensor for each list of shards and hands the pieces to the shards.
struct Splitting<'a, T> {
    mapper: &'a mut T,
    host: &'a Device,
    lists: VecDeque<Shapes>,
    pieces: Option<VecDeque<Option<Tensor<2>>>>,
}

impl<T: ModuleMapper> Splitting<'_, T> {
    /// The pieces of the tensor that the mapper makes of a whole weight; `None` where it left it alone.
    fn pieces(&mut self, list: Shapes) -> VecDeque<Option<Tensor<2>>> {
        let Shapes { along, id: Some(id), shards } = list else { return VecDeque::new() };
        let mut whole = [shards[0][0], shards[0][1]];
        whole[along] = shards.iter().map(|shape| shape[along]).sum();
        // Never drawn, unless the mapper reads it: then it reads zeros, and what it makes of them is not used.
        let param = Param::<Tensor<2>>::uninitialized(
            id,
            move |device, _| Tensor::zeros(whole, device),
            self.host.clone(),
            false,
            Shape::from(whole),
        );
        self.mapper.enter_module("weight", "Struct:Linear");
        let mapped = self.mapper.map_float(param);
        self.mapper.exit_module("weight", "Struct:Linear");
        if !mapped.is_initialized() {
            return shards.iter().map(|_| None).collect();
        }
        let mapped = mapped.val();
        let mut start = 0;
        shards
            .iter()
            .map(|shape| {
                start += shape[along];
                Some(mapped.clone().narrow(along, start - shape[along], shape[along]))
            })
            .collect()
    }
}

impl<T: ModuleMapper> ModuleMapper for Splitting<'_, T> {
    fn enter_module(&mut self, name: &str, container: &str) {
        if joined_along(name, container).is_some() {
            if let Some(list) = self.lists.pop_front() {
                self.pieces = Some(self.pieces(list));
            }
        } else if self.pieces.is_none() {
            self.mapper.enter_module(name, container);
        }
    }

    fn exit_module(&mut self, name: &str, container: &str) {
        if joined_along(name, container).is_some() {
            self.pieces = None;
        } else if self.pieces.is_none() {
            self.mapper.exit_module(name, container);
        }
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(pieces) = &mut self.pieces else { return self.mapper.map_float(param) };
        let Some(Some(piece)) = pieces.pop_front() else { return param };
        let device = param.lazy_device();
        let data = piece.into_data();
        let dtype = data.dtype();
        let piece = Tensor::from_data(data, (&device, dtype));
        let id = param.id;
        param.transform_for_load(piece, id)
    }

    fn map_int<const D: usize>(&mut self, param: Param<Tensor<D, Int>>) -> Param<Tensor<D, Int>> {
        self.mapper.map_int(param)
    }

    fn map_bool<const D: usize>(&mut self, param: Param<Tensor<D, Bool>>) -> Param<Tensor<D, Bool>> {
        self.mapper.map_bool(param)
    }

    fn map_flag(&mut self, flag: Param<Flag>) -> Param<Flag> {
        self.mapper.map_flag(flag)
    }
}
