//! Memory policies for training Burn models: decide, compose, apply.
