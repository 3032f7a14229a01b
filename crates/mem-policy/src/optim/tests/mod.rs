mod codes;
mod states;
mod training;
