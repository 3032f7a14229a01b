//! Taking the optimizer's and the scheduler's state out of a learner that Burn restored from a checkpoint.

use std::sync::{Arc, mpsc};

use burn::optim::OptimizerRecord;
use burn::optim::lr_scheduler::LrSchedulerRecord;
use burn::store::ModuleRecord;
use burn::train::checkpoint::{
    AsyncCheckpointer, Checkpoint, Checkpointer, CheckpointerError, CheckpointingAction, CheckpointingStrategy,
};
use burn::train::metric::store::EventStoreClient;
use burn::train::{Learner, LearnerModel, LearningCheckpointer};

use super::trainee::Optimization;

/// `optimization` with the state that `learner` has. A learner keeps its optimizer to itself and gives out its state only
/// to a checkpointer, so it gets one that keeps the records in memory.
pub(super) fn restore<M: LearnerModel>(
    learner: &Learner<M>,
    events: &Arc<EventStoreClient>,
    optimization: Optimization,
) -> Optimization {
    let (optimizer, optimizer_record) = keep::<OptimizerRecord>();
    let (scheduler, scheduler_record) = keep::<LrSchedulerRecord>();
    let mut checkpointer =
        LearningCheckpointer::<M>::new(AsyncCheckpointer::new(Discard), optimizer, scheduler, Box::new(Always));
    checkpointer.checkpoint(learner, 0, events);
    let Optimization { optimizer, scheduler } = optimization;
    Optimization {
        optimizer: match optimizer_record.recv() {
            Ok(record) => optimizer.load_record(record),
            Err(_) => optimizer,
        },
        scheduler: match scheduler_record.recv() {
            Ok(record) => scheduler.load_record(record),
            Err(_) => scheduler,
        },
    }
}

fn keep<R: Checkpoint>() -> (AsyncCheckpointer<R>, mpsc::Receiver<R>) {
    let (sender, receiver) = mpsc::sync_channel(1);
    (AsyncCheckpointer::new(Keep(sender)), receiver)
}

struct Always;

impl CheckpointingStrategy for Always {
    fn checkpointing(&mut self, _: usize, _: &EventStoreClient) -> Vec<CheckpointingAction> {
        vec![CheckpointingAction::Save]
    }
}

struct Keep<R>(mpsc::SyncSender<R>);

impl<R: Checkpoint> Checkpointer<R> for Keep<R> {
    fn save(&self, _: usize, record: R) -> Result<(), CheckpointerError> {
        self.0.send(record).map_err(|error| CheckpointerError::Unknown(error.to_string()))
    }

    fn delete(&self, _: usize) -> Result<(), CheckpointerError> {
        Ok(())
    }

    fn restore(&self, _: usize) -> Result<R, CheckpointerError> {
        Err(CheckpointerError::Unknown("nothing is kept to be read".to_owned()))
    }
}

struct Discard;

impl Checkpointer<ModuleRecord> for Discard {
    fn save(&self, _: usize, _: ModuleRecord) -> Result<(), CheckpointerError> {
        Ok(())
    }

    fn delete(&self, _: usize) -> Result<(), CheckpointerError> {
        Ok(())
    }

    fn restore(&self, _: usize) -> Result<ModuleRecord, CheckpointerError> {
        Err(CheckpointerError::Unknown("nothing is kept to be read".to_owned()))
    }
}
